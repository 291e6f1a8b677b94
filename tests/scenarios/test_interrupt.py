"""Ctrl-C: every command says in a line what was done, what was not, and how to go on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hermes_doctor.cli import demo_home
from tests.helpers import support

INTERRUPTS = """
import importlib, os, signal, sys
place, number = sys.argv[1], int(sys.argv[2])
sys.argv = ["hermes-doctor", *sys.argv[3:]]
module, _, name = place.partition(":")
owner = importlib.import_module(module)
*outer, name = name.split(".")
for one in outer:
    owner = getattr(owner, one)
original, calls = getattr(owner, name), []

def interrupted(*args, **options):
    calls.append(1)
    if len(calls) == number:
        os.kill(os.getpid(), signal.SIGINT)
    return original(*args, **options)

setattr(owner, name, interrupted)
from hermes_doctor.__main__ import main
main()
"""
GO_ON = "To go on, run the same command again."


def interrupt(place: str, *args: str | Path, at: int = 1) -> support.Done:
    """Run a command that gets SIGINT at a call of a function."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTS, place, str(at), *map(str, args)],
        env=support.environ(None),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return support.Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The broken home of the demo."""
    demo_home.make(tmp_path / "home")
    return tmp_path / "home"


def contents(home: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and bytes of every file but those of backups."""
    return {
        str(path.relative_to(home)): (path.stat().st_mode, path.read_bytes())
        for path in sorted(home.rglob("*"))
        if path.is_file() and "backups" not in path.relative_to(home).parts
    }


def said(done: support.Done) -> str:
    """The one line on stderr; the exit code is that of an interrupt."""
    assert done.code == 130, done.err
    assert "Traceback" not in done.err
    [line] = done.err.splitlines()
    assert line.startswith("hermes-doctor: Interrupted. ")
    assert line.endswith(GO_ON)
    return line


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("hermes_doctor.diagnosis.examination.report:report", ("check",)),
        ("hermes_doctor.diagnosis.examination.timeline:make_timeline", ("timeline",)),
        ("hermes_doctor.diagnosis.probes.hermes_view:SettingsView.resolved", ("config",)),
        ("hermes_doctor.diagnosis.examination.report:report", ("fix",)),
        ("hermes_doctor.diagnosis.examination.report:report", ("fix", "--apply", "--yes")),
        ("hermes_doctor.backup.vault.vault:Vault.create", ("fix", "--apply", "--yes")),
        ("hermes_doctor.repair.transaction.run:stage", ("fix", "--apply", "--yes")),
    ],
)
def test_nothing_was_changed(home: Path, place: str, words: tuple[str, ...]) -> None:
    """Before the first change, the line says that there was none."""
    before = contents(home)

    line = said(interrupt(place, *words, "--home", home))

    assert "Nothing was changed." in line
    assert contents(home) == before


def test_a_repair_is_rolled_back(home: Path) -> None:
    """After the change and before its check, everything is as before."""
    before = contents(home)

    line = said(
        interrupt(
            "hermes_doctor.repair.transaction.run:Run._verify",
            "fix",
            "--apply",
            "--yes",
            "--home",
            home,
        )
    )

    assert "was rolled back, so every file is as before." in line
    assert contents(home) == before


def test_what_is_repaired_stays(home: Path) -> None:
    """After a complete run, the line says what is repaired and how to undo it."""
    look = "hermes_doctor.cli.fix_session:Session.look"

    line = said(interrupt(look, "fix", "--apply", "--yes", "--home", home, at=2))

    assert "Repaired: CFG-YAML, DB-NOTADB, ENV-BOM, KANBAN-SCHEMA and PERM-SECRETS." in line
    assert "To undo it: hermes-doctor undo 2" in line
    assert "CFG-YAML" not in support.doctor("check", "--home", home).out


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("hermes_doctor.repair.transaction.undo:undo_plan", "Nothing was changed."),
        ("hermes_doctor.backup.vault.vault:Vault.create", "Nothing was changed."),
        (
            "hermes_doctor.repair.transaction.run:Run._verify",
            "was rolled back, so every file is as before.",
        ),
    ],
)
def test_undo(home: Path, place: str, text: str) -> None:
    """An interrupted undo leaves the repaired files, and can be run again."""
    support.doctor("fix", "--apply", "--yes", "--home", home)
    repaired = contents(home)

    line = said(interrupt(place, "undo", "--yes", "--home", home))

    assert text in line
    assert contents(home) == repaired
    assert support.doctor("undo", "--yes", "--home", home).code == 0


def test_backup_create(home: Path) -> None:
    """No half backup is left."""
    create = "hermes_doctor.backup.vault.vault:Vault.create"

    line = said(interrupt(create, "backup", "create", "--home", home))

    assert "No backup was created, and the home is unchanged." in line
    assert support.doctor("backup", "list", "--json", "--home", home).json["backups"] == []


def test_backup_prune(tmp_path: Path) -> None:
    """The line says how many are gone; the others stay until it is run again."""
    home = support.healthy(tmp_path / "healthy")
    for _ in range(4):
        support.doctor("backup", "create", "--home", home)
    prune = ("backup", "prune", "--keep", "1", "--yes", "--home", home)

    first = said(
        interrupt("hermes_doctor.backup.vault.prune_rules:select_by_count_and_age", *prune)
    )
    second = said(interrupt("hermes_doctor.backup.vault.vault:Vault.discard", *prune, at=2))

    assert "No backup was removed." in first
    assert "1 of 3 backups removed" in second
    assert "1 backup left to remove." in second
    assert support.doctor(*prune).code == 0
    assert len(support.doctor("backup", "list", "--json", "--home", home).json["backups"]) == 1


def test_before_the_command_line(home: Path) -> None:
    """Also while modules are still being loaded."""
    done = interrupt("hermes_doctor.cli.main:main", "check", "--home", home)

    assert done.code == 130
    assert done.err == "\nhermes-doctor: Interrupted. Nothing was changed.\n"


def test_json(home: Path) -> None:
    """With --json it is a document."""
    done = interrupt(
        "hermes_doctor.diagnosis.examination.report:report", "check", "--json", "--home", home
    )

    assert done.code == 130
    assert done.json["error"]["exit_code"] == 130
    assert "Nothing was changed." in done.json["error"]["message"]
