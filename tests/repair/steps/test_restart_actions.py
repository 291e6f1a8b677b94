"""A crontab line that starts the gateway again: added once, and removed without a trace."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from hermes_doctor.backup.records.journal import MachineActionRecord
from hermes_doctor.core.home import Home, identity, state_folder
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import crontab
from hermes_doctor.core.system.accounts import account
from hermes_doctor.hermes.supervisors import starters
from hermes_doctor.hermes.supervisors.starters import find_keeper
from hermes_doctor.repair.steps.machine import action_from_record
from hermes_doctor.repair.steps.restart_actions import InstallCrontabLine
from tests.helpers import crash_server, fake_crontab
from tests.scenarios.test_steps import apply, ill, item, undo


@pytest.fixture
def tab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The crontab of this process."""
    return fake_crontab.use(tmp_path / "managers", monkeypatch)


def test_there_and_back(home: Path, tab: Path) -> None:
    """All other lines stay byte for byte; the undo of the undo adds the same line again."""
    before, line = crash_server.state(home), InstallCrontabLine(Home(home), "GW-DOWN")
    done = apply(home, item(line))
    assert done.state == "done", done.note
    added = tab.read_text()
    assert added.startswith(fake_crontab.OTHERS) and added.count("\n") == 4
    assert added.splitlines()[-1] == line.lines()[0].removeprefix("+")
    undone = undo(home, done)
    assert undone.state == "done", undone.note
    assert tab.read_text() == fake_crontab.OTHERS
    assert undo(home, undone).state == "done"
    assert tab.read_text() == added
    assert crash_server.state(home) == before


def test_twice_is_once(home: Path, tab: Path) -> None:
    """A line that is there is left as it is, also if a person changed its time."""
    InstallCrontabLine(Home(home), "GW-DOWN").do()
    tab.write_text(tab.read_text().replace("* * * * * env", "*/2 * * * * env"))
    changed = tab.read_text()
    InstallCrontabLine(Home(home), "GW-DOWN").do()
    assert tab.read_text() == changed


def test_a_line_that_did_not_help_is_removed(home: Path, tab: Path) -> None:
    """The run is rolled back."""
    assert apply(home, item(InstallCrontabLine(Home(home), "GW-DOWN")), verify=ill).state == (
        "rolled-back"
    )
    assert tab.read_text() == fake_crontab.OTHERS


def test_a_line_that_a_person_changed_stays(home: Path, tab: Path) -> None:
    """Undo removes only what was added, and says what stays."""
    done = apply(home, item(InstallCrontabLine(Home(home), "GW-DOWN")))
    for old, new in (("* * * * * env", "*/2 * * * * env"), (" --heal", "")):
        tab.write_text(tab.read_text().replace(old, new))
        changed = tab.read_text()
        undone = undo(home, done)
        assert undone.state == "done", undone.note
        assert tab.read_text() == changed
        [note] = undone.items[0].notes
        assert note.startswith("The line of your crontab was changed, so it stays.")
        assert undo(home, undone).state == "done"
        assert tab.read_text() == changed


def test_undo_without_crontab(home: Path, tab: Path) -> None:
    """It fails with the reason, and claims nothing about the line."""
    done = apply(home, item(InstallCrontabLine(Home(home), "GW-DOWN")))
    program = tab.parent / "crontab"
    program.write_text("#!/bin/sh\nexit 1\n")
    undone = undo(home, done)
    assert undone.state != "done" and undone.items[0].notes == []
    assert "Could not read the crontab" in str(undone.items[0].reason)


def test_a_line_of_another_installation_is_removed(
    home: Path, tab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receipt knows the line, also if the tool would write another one today."""
    done = apply(home, item(InstallCrontabLine(Home(home), "GW-DOWN")))
    monkeypatch.setenv("XDG_STATE_HOME", str(home.parent / "another"))
    undone = undo(home, done)
    assert (undone.state, undone.items[0].notes) == ("done", [])
    assert tab.read_text() == fake_crontab.OTHERS


def test_a_line_that_was_there_before_stays(home: Path, tab: Path) -> None:
    """Nothing is added, so a run that would take it back later is refused."""
    line = InstallCrontabLine(Home(home), "GW-DOWN")
    line.do()
    with pytest.raises(CannotFix, match="has a line that starts the gateway again already"):
        line.refuse()


@pytest.mark.parametrize("said", ["no crontab for you", "crontab: can't open 'x': No such file"])
def test_no_crontab_before(home: Path, tab: Path, said: str) -> None:
    """A user without a crontab has none again. Debian and Alpine say it differently."""
    tab.unlink()
    program = tab.parent / "crontab"
    program.write_text(program.read_text().replace("no crontab for you", said))
    line = InstallCrontabLine(Home(home), "GW-DOWN")
    line.do()
    assert len(tab.read_text().splitlines()) == 1
    line.revert()
    assert not tab.exists()


def test_refused(home: Path, tab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that only looks is not replaced, and nobody's crontab is changed by another user."""
    line = InstallCrontabLine(Home(home), "GW-DOWN")
    tab.write_text(line.lines()[0].removeprefix("+").replace(" --heal", "") + "\n")
    with pytest.raises(CannotFix, match="watch install --cron --heal"):
        line.refuse()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(CannotFix, match=r"must start the gateway\. Run this command as"):
        line.refuse()


def test_a_receipt_cannot_add_other_words(home: Path) -> None:
    """Only the name of a code is taken from it."""
    kind = InstallCrontabLine.kind
    assert action_from_record(Home(home), MachineActionRecord(kind, {"agreed": "GW-DOWN"}))
    for word in ("", "gw-down", "GW-DOWN; rm -r /", "--notify-command=x"):
        assert action_from_record(Home(home), MachineActionRecord(kind, {"agreed": word})) is None
    words = {"agreed": "GW-DOWN", "line": "x"}
    assert action_from_record(Home(home), MachineActionRecord(kind, words)) is None


def test_a_user_without_a_crontab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The folders of crontabs answer it only if all of them may be searched."""
    monkeypatch.setattr(crontab, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(crontab, "_FOLDERS", (str(tmp_path), str(tmp_path / "missing")))
    user = account(os.geteuid())

    assert crontab.is_surely_empty(user.uid)
    (tmp_path / str(user.name)).touch()
    assert not crontab.is_surely_empty(user.uid)
    monkeypatch.setattr(crontab, "_FOLDERS", ())
    assert not crontab.is_surely_empty(user.uid)


def test_a_watch_of_root_counts(home: Path, tab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps its state in root's folder, although the home belongs to another user."""
    monkeypatch.setattr(starters, "_owners_folder", lambda home: tab.parent / "theirs")
    lock = state_folder() / f"watch-{identity(Home(home))}.lock"
    lock.parent.mkdir(parents=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        found = find_keeper(Home(home))
    assert found is not None and found.works and f"process {os.getpid()}" in found.why


def test_the_line_is_recognised(home: Path, tab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts while cron runs, and not if it is commented out or of another home."""
    assert find_keeper(Home(home)) is None
    InstallCrontabLine(Home(home), "GW-DOWN").do()
    found = find_keeper(Home(home))
    assert found is not None and found.works and found.name == "cron"
    assert find_keeper(Home(home.parent)) is None
    monkeypatch.setattr(crontab, "is_running", lambda: False)
    stopped = find_keeper(Home(home))
    assert stopped is not None and not stopped.works and "cron does not run" in stopped.why
    lines = tab.read_text().splitlines()
    tab.write_text("\n".join([*lines[:-1], "#" + lines[-1]]) + "\n")
    assert find_keeper(Home(home)) is None
