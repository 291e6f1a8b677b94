"""Find what `hermes-doctor learn` stored about an installed Hermes.

Each file has the answers of one commit or version, for one owner of homes: what the code of one
user says is not used for the home of another. A file is used only if no other user can write to it
or to a folder on the way to it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hermes_doctor.knowledge.data import Learned, learned_folder
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import MEGABYTE, read

FORMAT = 1
MOST = 16 * MEGABYTE
_NAME = re.compile(r"[0-9][0-9A-Za-z.+]{0,39}")


def path_of(version: str, commit: str | None, owner: int) -> Path | None:
    """Return the file for a Hermes and an owner; None if its version is not a plain one."""
    if not _NAME.fullmatch(version):
        return None
    return (
        Path(learned_folder()) / str(owner) / f"{version}{f'-{commit[:12]}' if commit else ''}.json"
    )


def load(path: Path) -> Learned | None:
    """Read a file; None if it is missing, not trusted, or of another format."""
    from hermes_doctor.system.trust import why_untrusted

    try:
        data, _ = read(path, MOST)
        if why_untrusted(path) is not None:
            return None
        return parse(json.loads(data))
    except (OSError, CouldNotLook, ValueError, RecursionError):
        return None


def parse(said: Any) -> Learned | None:
    """Return the content of a file; None if it is of another format."""
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        return None
    fields = {"version": str, "commit": str, "config": int, "schema": int, "answers": dict}
    if not all(type(said.get(name)) is kind for name, kind in fields.items()):
        return None
    return Learned(*(said[name] for name in fields))


def document(learned: Learned) -> dict[str, Any]:
    """Return the content of a file."""
    return {"format": FORMAT, **learned._asdict()}
