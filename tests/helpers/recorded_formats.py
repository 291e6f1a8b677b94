"""Unpack what an earlier commit of this tool wrote, so that the current one can continue.

Each archive in `tests/data/formats` was written by `tools/record_formats.py`. A home with its own
vault can be moved, so its files are used exactly as they were recorded. Some other files name the
place where they were recorded: a receipt whose vault is outside the home, the record of an update,
and the state of a watch. Only in these files the place is replaced.

The archives were recorded by root. An ordinary user cannot own files of root, so for such a user
the numbers of owner and group are replaced as well, and changed manifests are sealed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parents[1] / "data" / "formats"
PLACE = Path("/tmp/hermes-doctor-recording")
"""Everything is recorded below this path."""
ABOUT = "about.json"
"""What the recorder stored about the rest: digests, documents, names of commands and options."""
CALM = {"HERMES_DOCTOR_SETTLE": "0"}
_SEAL = re.compile(rb', "seal": "[0-9a-f]{64}"')

Files = dict[str, list[Any]]


@dataclass(frozen=True)
class Recording:
    """One archive, unpacked into a folder of a test."""

    folder: Path
    about: Mapping[str, Any]

    def home(self, name: str) -> Path:
        """Return one of the recorded homes."""
        return self.folder / name

    @property
    def plugins(self) -> Path:
        """The folder with an operator's own check, fix and log rule."""
        return self.folder / "plugins"

    @property
    def env(self) -> dict[str, str]:
        """An environment without any settings of the user who runs the tests."""
        return environment(self.folder)

    def files(self, name: str, when: str) -> Files:
        """Return the files of a home as they were at some moment of the recording."""
        found: Files = self.about["files"][name][when]
        return found


def environment(folder: Path) -> dict[str, str]:
    """The environment of every command, in the recorder and in the tests."""
    return {"HOME": str(folder / "user"), "XDG_STATE_HOME": str(folder / "state"), **CALM}


def about(archive: Path) -> dict[str, Any]:
    """What the recorder stored about an archive."""
    with tarfile.open(archive) as opened:
        first = opened.next()  # looking it up by name would read the whole archive
        assert first is not None
        assert first.name == ABOUT
        file = opened.extractfile(first)
        assert file is not None
        found: dict[str, Any] = json.load(file)
        return found


def unpacked(archive: Path, folder: Path, *names: str) -> Recording:
    """Unpack the folders that a test needs."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as opened:
        wanted = [one for one in opened.getmembers() if one.name.split("/")[0] in names]
        opened.extraction_filter = lambda member, _: member  # Python 3.11.2 does not have `filter=`
        opened.extractall(folder, wanted)
    (folder / "user").mkdir(exist_ok=True)
    old, new = os.fsencode(PLACE), os.fsencode(folder)
    for path in sorted(folder.rglob("*.json")):
        data = path.read_bytes()
        if _names_its_place(path.relative_to(folder)):
            data = data.replace(old, new)
        if os.geteuid():
            owner = path.stat()
            data = re.sub(rb'"uid": 0\b', b'"uid": %d' % owner.st_uid, data)
            data = re.sub(rb'"gid": 0\b', b'"gid": %d' % owner.st_gid, data)
        if data != path.read_bytes():
            _overwrite(path, _sealed(data) if path.name == "manifest.json" else data)
    for path in folder.glob("vault/*/home"):
        _overwrite(path, path.read_bytes().replace(old, new))
    return Recording(folder, about(archive))


def _names_its_place(path: Path) -> bool:
    """Return whether a file must contain the right path for its home to work."""
    return path.parts[0] in ("elsewhere", "vault") or "updates" in path.parts


def _overwrite(path: Path, data: bytes) -> None:
    """Replace the content, but keep the mode and the hard links."""
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()


def _sealed(manifest: bytes) -> bytes:
    """Return a manifest with its seal: the SHA-256 of everything but the seal."""
    seal = hashlib.sha256(_SEAL.sub(b"", manifest, count=1)).hexdigest()
    return _SEAL.sub(b', "seal": "%s"' % seal.encode(), manifest, count=1)


def contents(home: Path) -> Files:
    """Return mode and digest of every file of a home, except the vault."""
    found: Files = {}
    for path in sorted(home.rglob("*")):
        if path.is_file() and not path.is_relative_to(home / "backups"):
            mode = stat.S_IMODE(path.stat().st_mode)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(home))] = [oct(mode), digest]
    return found


def move_watch(folder: Path, home: Path, *, same_boot: bool) -> Path:
    """Move the recorded state of a watch to the current home, and return its file.

    The name of the file and of its lock contains a digest of the path of the home. With
    `same_boot`, the machine was not restarted since the recording, which ended a moment ago: times
    in the state count seconds since the machine was started.
    """
    [old] = (folder / "state" / "hermes-doctor").glob("watch-*.json")
    new = old.with_name(f"watch-{home.name}-{_digest(home, 8)}.json")
    lock = old.with_suffix(".lock")
    lock.rename(new.with_suffix(".lock"))
    old.rename(new)
    state = json.loads(new.read_bytes())
    state["home"] = str(home)
    lease = home / "backups" / "doctor" / "watch.lease"
    held = json.loads(lease.read_bytes())
    held["who"] = f"{os.geteuid()}-{_digest(new, 16)}"
    if same_boot:
        _continue(state, held)
        there = home.stat()
        state["place"] = f"{there.st_dev}:{there.st_ino}"
    _overwrite(new, json.dumps(state).encode())
    _overwrite(lease, json.dumps(held).encode().ljust(256))
    return new


def _continue(state: dict[str, Any], held: dict[str, Any]) -> None:
    """Adjust the times of a state to the running machine."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    later = now - state["clocks"][1] - 1
    state["boot"] = held["boot"] = boot
    state["clocks"] = [time.monotonic() - 1, now - 1, time.time() - 1]
    state["repairs"] = [max(0.0, at + later) for at in state["repairs"]]
    state["failures"] = [[*key, times, until + later] for *key, times, until in state["failures"]]
    state["notified"] = [[*key, max(0.0, at + later)] for *key, at in state["notified"]]
    held["until"] += later


def _digest(path: Path, length: int) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:length]
