"""A command that is killed at any moment, or raced by the owner of the home, keeps its promises.

`test_crash` and `test_root_races` try chosen calls of the system; here the clock decides, and
another program writes into the message history meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import budget, crash_server, support, symlink_races
from tests.helpers.fake_provider import serving
from tests.helpers.provider_scenes import ENV, KEY, ROUTER, write
from tests.scenarios.test_root_races import FOLDERS, double, facts, leaked

WRITER = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
number = 0
while True:
    number += 1
    db.execute("INSERT INTO messages (session_id, role, content, timestamp) "
               "VALUES ('s1', 'user', ?, 1)", (f"beside {number}",))
    print(number, flush=True)
    time.sleep(0.005)
"""
COMMANDS = {
    "fix": ("fix", "--apply", "--yes"),
    "undo": ("undo", "--yes"),
    "create": ("backup", "create"),
    "switch": ("switch-provider", "relay", "--key-env", "RELAY_API_KEY", "--model", "gpt-4o-mini"),
}


@contextlib.contextmanager
def writing(home: Path, log: Path) -> Iterator[None]:
    """A program that adds messages; the log has the number of each one that is stored."""
    with open(log, "w") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(home / "state.db")], stdout=out
        )
        try:
            until = time.monotonic() + 30
            while not log.stat().st_size:
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.01)
            yield
        finally:
            process.kill()
            process.wait()


def stored(home: Path) -> set[int]:
    """Return the numbers of the messages that the other program has added."""
    with contextlib.closing(sqlite3.connect(home / "state.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = db.execute("SELECT content FROM messages WHERE content LIKE 'beside %'").fetchall()
    return {int(content.rpartition(" ")[2]) for (content,) in rows}


def settings(home: Path) -> tuple[bytes, ...]:
    """Return the files that the commands change."""
    return tuple((home / name).read_bytes() for name in ("config.yaml", ".env"))


def run(words: tuple[str, ...], home: Path, delay: float | None) -> tuple[int, float, str]:
    """Run a command, and kill it after so many seconds; return its code, time and output."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hermes_doctor", *words, "--home", str(home)],
        env=support.environ({}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    began = time.monotonic()
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(f"{KEY}\n".encode() if words[0] == "switch-provider" else b"")
        process.stdin.flush()
    if delay is not None:
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
    with contextlib.suppress(BrokenPipeError):
        out, _ = process.communicate(timeout=120)
    return process.returncode, time.monotonic() - began, out.decode("utf-8", "replace")


@pytest.mark.sampled
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_while_another_program_writes(name: str, tmp_path: Path) -> None:
    """No stored message is lost, no file is between, and the next run gets to its end."""
    dice = budget.chance(5)
    template = support.healthy(tmp_path / "template")
    if name == "switch":
        write(template, ROUTER, ENV)
    else:
        support.put(template / "config.yaml", support.CONFIG.replace("  default:", "\tdefault:"))
    home = tmp_path / "home"
    crash_server.clone(template, home)
    with serving() as provider:
        words = COMMANDS[name]
        if name == "switch":
            words = (*words, "--base-url", provider.url, "--apply", "--yes")
        if name == "undo":
            assert run(COMMANDS["fix"], home, None)[0] == 0
            shutil.rmtree(template)
            crash_server.clone(home, template)
        before = settings(home)
        code, seconds, out = run(words, home, None)
        assert code == 0, out
        known = {before, settings(home)}
        for number in range(budget.tries(2, 15)):
            shutil.rmtree(home)
            crash_server.clone(template, home)
            log = tmp_path / f"log-{number}"
            with writing(home, log):
                delay = dice.uniform(0, seconds)
                run(words, home, delay)
                assert settings(home) in known or _in_recovery(home), (name, delay)
                code, _, out = run(words, home, None)
                assert code == 0 or "othing" in out or "No run is left" in out, (name, delay, out)
            said = {
                int(line) for line in log.read_text().splitlines(keepends=True) if line[-1:] == "\n"
            }
            assert said <= stored(home), (name, delay, sorted(said - stored(home))[:5])
            assert crash_server.leftovers(home) == [], (name, delay)


def _in_recovery(home: Path) -> bool:
    """Whether a journal says that the run was cut off, so that the next command ends it."""
    return any(run["state"] not in crash_server.FINAL for run in crash_server.journals(home))


class Swapper(threading.Thread):
    """Swaps a folder for a symlink and back, after random pauses, until it is stopped."""

    def __init__(self, folder: Path, elsewhere: Path, dice: random.Random) -> None:
        super().__init__()
        self.folder, self.elsewhere, self.dice = folder, elsewhere, dice
        self.moved = Path(f"{folder}{symlink_races.MOVED}")
        self.over = threading.Event()
        self.swaps = 0

    def run(self) -> None:
        """Swap until it is stopped; the folder is a folder then."""
        while not self.over.wait(self.dice.expovariate(1 / 0.02)):
            with contextlib.suppress(OSError):
                if self.folder.is_symlink():
                    self.folder.unlink()
                    self.moved.rename(self.folder)
                elif self.folder.is_dir():
                    self.folder.rename(self.moved)
                    self.folder.symlink_to(self.elsewhere)
                    self.swaps += 1
        with contextlib.suppress(OSError):
            if self.folder.is_symlink():
                self.folder.unlink()
            if self.moved.is_dir() and not self.folder.exists():
                self.moved.rename(self.folder)


FIX, CREATE, CHECK = ("fix", "--apply", "--yes"), ("backup", "create"), ("check",)
RACES = [(command, name) for command in (FIX, CREATE, CHECK) for name in FOLDERS]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has something to lose here")
@pytest.mark.sampled(one_of=5)
@pytest.mark.parametrize(("command", "name"), RACES)
def test_swapped_after_random_pauses(command: tuple[str, ...], name: str, tmp_path: Path) -> None:
    """Root changes nothing elsewhere, and copies nothing of it into the home."""
    dice = budget.chance(9)
    template = tmp_path / "user" / "home"
    support.put(template / "config.yaml", support.CONFIG)
    crash_server.lacking(template / "kanban" / "boards" / "one" / "kanban.db")
    support.put(template / "state-snapshots" / "one" / ".env", support.ENV, 0o644)
    (template / "backups" / "doctor" / "runs").mkdir(parents=True)
    elsewhere = double(template / name, tmp_path / "elsewhere", secret=True)
    intact = json.dumps(facts(elsewhere), default=repr)
    crash_server.chown(tmp_path / "user")
    for number in range(budget.tries(4, 200)):
        home = tmp_path / "user" / f"home-{number}"
        crash_server.clone(template, home)
        swapper = Swapper(home / name if name != "." else home, elsewhere, dice)
        swapper.start()
        try:
            done = support.doctor(*command, "--home", home)
        finally:
            swapper.over.set()
            swapper.join()
        assert "bug in" not in done.err, done.err
        assert json.dumps(facts(elsewhere), default=repr) == intact, (name, command, number)
        assert leaked(home) == [], (name, command, number)
        shutil.rmtree(home)
        shutil.rmtree(swapper.moved, ignore_errors=True)
