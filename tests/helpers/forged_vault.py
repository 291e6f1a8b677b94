"""Forge backups and receipts as the owner of a home can: the seal is a hash, not a signature."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

from tests.helpers import support

ID = "20261115-030000-0666"
ENEMY = b"the enemy's own content\n"


def entry(path: str, kind: str = "file", **fields: Any) -> dict[str, Any]:
    """Return one entry of a manifest; a file's copy has the attacker's content."""
    content = kind == "file"
    return {
        "path": path,
        "kind": kind,
        "size": len(ENEMY) if content else 0,
        "mode": 0o644,
        "uid": 0,
        "gid": 0,
        "mtime_ns": 0,
        "sha256": hashlib.sha256(ENEMY).hexdigest() if content else None,
        "target": None,
        "xattrs": {},
        "method": "bytes",
        "integrity": None,
    } | fields


def manifest(
    home: Path,
    *entries: dict[str, Any],
    id: str = ID,
    vault: Path | None = None,
    head: dict[str, Any] | None = None,
) -> Path:
    """Write a correctly sealed backup with these entries, and a copy of each file.

    `head` contains more fields of the manifest.
    """
    folder = (vault or home / "backups" / "doctor") / id
    (folder / "files" / "sessions").mkdir(parents=True, exist_ok=True)  # a folder for paths with ..
    for one in entries:
        path = str(one["path"])
        name = f"outside{path}" if path.startswith("/") else f"files/{path}"
        if one["kind"] == "file":
            copy = Path(os.path.normpath(folder / name))
            if copy.is_relative_to(folder):
                support.put(copy, ENEMY)
    document: dict[str, Any] = {
        "schema": "hermes-doctor/backup/1",
        "id": id,
        "created_at": "2026-11-15T03:00:00+00:00",
        "home": str(home),
        "reason": "forged",
        "tool": "0",
        "hermes": None,
        "entries": list(entries),
    } | (head or {})
    document["seal"] = hashlib.sha256(_canonical(document)).hexdigest()
    support.put(folder / "manifest.json", _canonical(document))
    return folder


def _canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, indent=1).encode("ascii") + b"\n"


def state(path: Path, *, content: bool = True) -> dict[str, Any]:
    """Return the state of a path in the format of a receipt."""
    if not os.path.lexists(path):
        return {"kind": "absent"}
    st = path.lstat()
    owner = {"uid": st.st_uid, "gid": st.st_gid}
    if path.is_symlink():
        return {"kind": "symlink", "target": os.readlink(path)} | owner
    sha = hashlib.sha256(path.read_bytes()).hexdigest() if content else None
    return {"kind": "file", "sha256": sha, "mode": stat.S_IMODE(st.st_mode)} | owner


def before(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the state that an entry claims for its path, in the format of a receipt."""
    kind = entry["kind"]
    if kind == "absent":
        return {"kind": "absent"}
    owner = {"uid": entry["uid"], "gid": entry["gid"]}
    if kind == "symlink":
        return {"kind": "symlink", "target": entry["target"]} | owner
    return {"kind": "file", "sha256": entry["sha256"], "mode": entry["mode"]} | owner


def receipt(
    home: Path, run_state: str, *records: dict[str, Any], id: str = ID, **fields: Any
) -> Path:
    """Write the receipt of a run that never happened."""
    document = {
        "schema": "hermes-doctor/run/1",
        "id": id,
        "kind": "fix",
        "home": str(home),
        "vault": "",
        "started_at": "2026-11-15T03:00:00+00:00",
        "state": run_state,
        "items": [],
        "paths": list(records),
    } | fields
    path = home / "backups" / "doctor" / "runs" / id / "run.json"
    return support.put(path, json.dumps(document))


def record(
    home: Path, entry: dict[str, Any], after: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the record of a path whose current state is the alleged result of the run."""
    path = home / str(entry["path"])
    now = after or state(path, content=entry["kind"] != "mode")
    return {"path": entry["path"], "before": before(entry), "after": now}
