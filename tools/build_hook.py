"""Add to a wheel what is made from other files: indexes, compiled log rules, and files for share/.

An sdist has the sources of these files, so a wheel that is built from it gets them, too. An
editable install makes its own when it runs (`hermes_doctor/diagnosis/plugins/built_in.py`).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuildHook(BuildHookInterface[Any]):
    """Called by hatchling before and after it builds a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files into a temporary folder and say where they belong."""
        sys.path.insert(0, self.root)
        try:
            texts = shared_files()
            if version != "editable":
                texts |= computed_files()
        finally:
            sys.path.remove(self.root)
        self.folder = tempfile.TemporaryDirectory()
        for name, text in texts.items():
            path = Path(self.folder.name) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            place = "shared_data" if name.startswith("share/") else "force_include"
            build_data[place][str(path)] = name

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the temporary folder."""
        self.folder.cleanup()


def shared_files() -> dict[str, str]:
    """Return what goes into share/ of the environment, by path."""
    from tools.share.files import files

    return {f"share/{name}": text for name, text in files().items()}


def computed_files() -> dict[str, str]:
    """Return what goes into the package, by path; a mistake in a plugin or rule ends the build."""
    from hermes_doctor.diagnosis.plugins import built_in, index, load
    from hermes_doctor.diagnosis.plugins.log_rules.folder import Folder

    plugins = load.load()
    _ = plugins.fixes
    rules = Folder(built_in.builtin("checks") / built_in.SIGNATURES, ours=True).compute()
    if plugins.broken or rules is None:
        raise SystemExit("\n".join(f"{one.path}: {one.why}" for one in plugins.broken))
    indexes = {f"{name}.json": index.compute(kind) for kind, name in index.FOLDERS.items()}
    folder = f"hermes_doctor/{built_in.IN_WHEEL}"
    return {f"{folder}/{name}": text for name, text in {**indexes, **rules}.items()}
