"""A copy of the tool whose knowledge ends at an earlier release."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from hermes_doctor.hermes.knowledge import merging, parse_release
from tests.helpers import support
from tests.helpers.support import Done
from tools import add_release, build_hook

ROOT = Path(__file__).parents[2]
PARTS = ("checks", "fixes", "docs/failures")
"""What a wheel has inside the package."""


class CutTool:
    """The tool in a folder of its own, as if it had been released after that Hermes."""

    def __init__(self, folder: Path, last: str) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__")
        package = folder / "hermes_doctor"
        shutil.copytree(ROOT / "hermes_doctor", package, ignore=ignored)
        for part in PARTS:
            shutil.copytree(ROOT / part, package / part, ignore=ignored)
        self.knowledge = package / "hermes" / "knowledge"
        known = add_release.known()
        for name in (*merging.NAMES, *add_release.SCHEMAS):
            path = self.knowledge / f"{name}.json"
            said = merging.split(name, json.loads(path.read_bytes()), known)
            kept = {v: one for v, one in said.items() if parse_release(v) <= parse_release(last)}
            path.write_text(json.dumps(merging.join(name, kept)))
        self._numbers(last)
        for name, text in build_hook.computed_files().items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)

    def _numbers(self, last: str) -> None:
        config = json.loads((self.knowledge / "resolution.json").read_bytes())["config_version"]
        schema = json.loads((self.knowledge / "schemas" / "state.json").read_bytes())["releases"]
        path = self.knowledge / "releases.py"
        text = path.read_text()
        for line in (
            f"NEWEST = ({', '.join(map(str, parse_release(last)))})",
            f"NEWEST_CONFIG, NEWEST_SCHEMA = {max(map(int, config))}, {schema[last]}",
        ):
            names = line.partition(" = ")[0]
            text, count = re.subn(rf"^{names} = .*$", line, text, flags=re.MULTILINE)
            assert count == 1, names
        path.write_text(text)

    def run(self, *args: str | Path, env: dict[str, str], timeout: float = 900) -> Done:
        """Run the command of this copy."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "hermes_doctor", *map(str, args)],
            # Compiled once, not by each of a dozen commands.
            env=support.environ({**env, "PYTHONDONTWRITEBYTECODE": None})
            | {"PYTHONPATH": str(self.folder)},
            cwd=os.path.realpath(self.folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        return Done(done.returncode, done.stdout, done.stderr)
