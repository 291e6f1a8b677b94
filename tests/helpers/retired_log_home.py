"""A home in which Hermes set aside a write-ahead log that was deleted under it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.helpers.real.gateways import end
from tests.helpers.saved_log_home import HOLDER

FOLDER = "state.db.retired-wal-20261116-070812-4242"


def retire(path: Path, *written: str, folder: str = FOLDER, image: bool = True) -> Path:
    """Write rows into a deleted log, and copy it into a folder as Hermes 0.21 does."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    place = path.with_name(folder)
    try:
        assert process.stdout.readline() == b"open\n"
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink()
        process.stdin.write(json.dumps(written).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"written\n"
        place.mkdir(mode=0o700)
        for fd in Path(f"/proc/{process.pid}/fd").iterdir():
            name = str(fd.readlink()).removesuffix(" (deleted)").rpartition("/")[2]
            if name == f"{path.name}-wal":
                (place / name).write_bytes(fd.read_bytes())
        if image:
            shutil.copyfile(path, place / path.name)
        said = {"version": 1, "database": str(path), "trigger": "halt", "pid": process.pid}
        (place / "manifest.json").write_text(json.dumps(said))
    finally:
        process.kill()
        process.stdin.close()
        process.stdout.close()
        end(process)
    return place
