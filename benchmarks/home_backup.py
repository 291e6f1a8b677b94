"""Compare backups of a 1 GB home while a real Hermes writes with `cp -a` and `hermes backup`.

    python -m benchmarks.home_backup [--rounds 5] [--without-hermes]

The home has a history of 280 MB, logs of 40 MB and what accumulates in a year: transcripts,
attachments of the platforms, skills, memories, some 3000 files. Each round, with one writer: `cp
-a` of the home and a sync of its disk (data that is only in memory is not a backup); a first
backup, into an empty vault, with the logs, because `cp` copies them too; a second one, for which
only the writer's changes and a few files are different. `cp` and the first backup change places in
every round. Once, `hermes backup` of the same release. Nothing is removed before the end: after
removing files, ext4 creates new ones slowly for minutes.

The ratios are of wall time, because that is what an operator waits for; those of CPU time, with all
children, are printed too. A backup hashes each byte and reads it back from the disk, so it needs
both cores where `cp` needs one: on a machine that is busy with other work it does worse.

Bars: a first backup takes at most 1.5 times `cp -a`, one with few changes at most 0.2 times, both
at least 3 times less than `hermes backup`; no write of the writer fails; the restored files are
identical, and the restored database is intact and has every message committed before the backup.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import history
from benchmarks.live_backup import Writer, count, faults, seconds, timed
from benchmarks.salvage import RELEASE
from benchmarks.timing import Cost, load, middle
from hermes_doctor.backup.vault.restore_files import write_content
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from tools import real_home, releases

FIRST, AGAIN, FASTER = 1.5, 0.2, 3.0
FILES = 3000
TOTAL = 710 * 1024 * 1024
LOG = 5 * 1024 * 1024
SETTLING = 61.0
"""Seconds after which a file counts as unchanged."""
CHANGED = 20
"""Files that change before the second backup."""


@dataclass
class Round:
    """The measurements of one round."""

    copy: Cost
    first: Cost
    again: Cost
    added: int
    """Disk space of the second backup in bytes."""
    longest: float
    wrong: list[str] = field(default_factory=list)


def fill(home: Path) -> None:
    """Write the files next to the database: many small ones, and a few large ones."""
    chance = random.Random(1)
    left = TOTAL
    for number in range(FILES):
        folder = ("sessions", "skills/some", "memories", "whatsapp/media")[number % 4]
        size = min(left, int(chance.lognormvariate(11, 1.6)))
        put(home / folder / f"{number % 40:02}" / f"{number}.bin", chance.randbytes(size))
        left -= size
    for name in ("agent", "gateway"):
        for number in range(4):
            line = b"2026-11-15 04:13:00,000 INFO gateway.run: response ready: chat=%08d\n" % number
            put(home / "logs" / f"{name}.log.{number + 1}", line * (LOG // len(line)))
    for number in range(4):
        put(home / "sessions" / f"long-{number}.jsonl", chance.randbytes(max(0, left) // 4))


def put(path: Path, data: bytes) -> None:
    """Write one file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@contextlib.contextmanager
def patient() -> Iterator[Path]:
    """Create a folder with its own home, and wait until its files count as unchanged."""
    with tempfile.TemporaryDirectory(prefix="whole-", dir=history.folder()) as folder:
        home = Path(folder) / "home"
        shutil.copytree(history.home(1), home)
        fill(home)
        os.sync()
        time.sleep(SETTLING)
        yield Path(folder)


def create(home: Path, vault: Path) -> tuple[Cost, Path]:
    """Run our own backup, and return its cost and its folder."""
    known = set(vault.iterdir()) if vault.exists() else set()
    command = [sys.executable, "-m", "hermes_doctor", "backup", "create", "--include", "logs"]
    cost = timed([*command, "--home", str(home), "--vault", str(vault)])
    (made,) = set(vault.iterdir()) - known
    return cost, made


def plain(home: Path, target: Path) -> Cost:
    """Copy the home with `cp -a` and sync it to the disk."""
    script = 'cp -a "$1" "$2" && sync -f "$2"'
    return timed(["sh", "-c", script, "sh", str(home), str(target)])


def used(folder: Path) -> int:
    """Return the bytes used on the disk, with each file counted once."""
    files = {f.lstat().st_ino: f.lstat().st_blocks for f in folder.rglob("*")}
    return sum(files.values()) * 512


def one(folder: Path, number: int) -> Round:
    """Measure all methods with one writer."""
    home, vault = folder / "home", folder / f"vault-{number}"
    messages = count(home / "state.db")
    writer = Writer(home, f"written-meanwhile-{number}")
    try:
        copy = plain(home, folder / f"plain-{number}") if number % 2 else None
        first, _ = create(home, vault)
        copy = copy or plain(home, folder / f"plain-{number}")
        before = used(vault)
        for n in range(CHANGED):
            put(home / "sessions" / "00" / f"{n * 40}.bin", os.urandom(20_000))
        committed = writer.committed
        again, last = create(home, vault)
        added = used(vault) - before
    finally:
        said = writer.end()
    wrong = [*said["errors"], *restored(home, last, writer.session, messages, committed)]
    if said["kept"] != said["written"]:
        wrong.append(f"the writer has {said['kept']} of its {said['written']} messages")
    return Round(copy, first, again, added, said["longest"], wrong)


def restored(home: Path, made: Path, session: str, messages: int, committed: int) -> list[str]:
    """Return the differences after restoring the second backup into an empty home."""
    empty = made.parent / "empty"
    backup = Vault(Home(home), made.parent).load(made.name)
    wrong = []
    for entry in backup.entries:
        target = empty / entry.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            write_content(backup, entry, file.fileno())
        if entry.path != "state.db" and digest(target) != digest(home / entry.path):
            wrong.append(f"{entry.path} is different")
    if len(backup.entries) < FILES:
        wrong.append("files are missing")
    return wrong + faults(empty / "state.db", session, messages, committed)


def digest(path: Path) -> str:
    """Return the hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def own(folder: Path) -> Cost:
    """Run `hermes backup` of the same home, with its own writer."""
    writer = Writer(folder / "home", "while-hermes-copies")
    known = real_home.environment(folder / "home")
    environment = [f"{name}={value}" for name, value in known.items()]
    target = folder / "hermes.zip"
    script = "import sys; from hermes_cli.main import main; sys.exit(main())"
    command = ["env", "-i", *environment, str(releases.python_of(RELEASE)), "-c", script]
    try:
        return timed([*command, "backup", "-o", str(target)])
    finally:
        writer.end()
        target.unlink(missing_ok=True)


def told(name: str, costs: list[tuple[Cost, Cost]], bar: float) -> float:
    """Print the ratios of our costs to those of `cp -a`, and return the one of wall time.

    A ratio per round, because other work on the machine affects both.
    """
    wall, spread = middle([ours.wall / theirs.wall for ours, theirs in costs])
    cpu, more = middle([ours.cpu / theirs.cpu for ours, theirs in costs])
    print(
        f"{name}: {wall:.2f} ± {spread / 2:.2f} times cp -a in wall time (bar: at most {bar:g}), "
        f"{cpu:.2f} ± {more / 2:.2f} times in CPU time"
    )
    return wall


def main() -> int:
    """Measure, print the table, and fail when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-hermes", action="store_true")
    options = parser.parse_args()
    rounds = []
    with patient() as folder:
        print(f"{load()}; {used(folder / 'home') >> 20} MB in {FILES} files, under a writer")
        for number in range(options.rounds + 1):
            done = one(folder, number)
            print(
                f"cp -a {seconds(done.copy)}   first {seconds(done.first)}   "
                f"again {seconds(done.again)}, {done.added >> 20} MB more   "
                f"a write took at most {done.longest * 1000:.0f} ms   {load()}",
                *done.wrong,
                *(["(warms up)"] if not number else []),
                flush=True,
            )
            rounds += [done] if number else []
        hermes = None if options.without_hermes else own(folder)
    first = told("first", [(r.first, r.copy) for r in rounds], FIRST)
    again = told("little changed", [(r.again, r.copy) for r in rounds], AGAIN)
    missed = first > FIRST or again > AGAIN or any(r.wrong for r in rounds)
    if hermes is not None:
        slower = hermes.wall / middle([r.first.wall for r in rounds])[0]
        print(
            f"hermes backup {seconds(hermes)}: {slower:.1f} times a first one "
            f"(bar: at least {FASTER:g})"
        )
        missed = missed or slower < FASTER
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
