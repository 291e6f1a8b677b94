"""`undo` undoes a whole command, although `fix` makes one run for each round of repairs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml

from hermes_doctor.backup.records.home_lock import lock_home
from hermes_doctor.backup.records.journal import Journal, Journals
from hermes_doctor.backup.records.receipts import RUN_FILE
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system.files import ABSENT, snapshot
from hermes_doctor.diagnosis.step import Step
from hermes_doctor.repair.steps.files import Remove, ReplaceFile, SetMode
from hermes_doctor.repair.transaction import undo
from hermes_doctor.repair.transaction.run import Run
from hermes_doctor.repair.transaction.undo import undo_plan
from tests.cli.test_commands import plain, terminal
from tests.helpers import crash_server, damage, support
from tests.helpers.budget import sample
from tests.helpers.crash_server import Cut
from tests.scenarios.test_steps import cured, item

ENV = b"\xef\xbb\xbfOPENROUTER_API_KEY=not-a-key\nSECOND=two\nSECOND=three\n"
"""Two problems in one file: the second can be repaired only after the first."""


@pytest.fixture
def sick(home: Path) -> dict[str, object]:
    """A home whose repair takes two rounds, and every byte of it."""
    support.put(home / ".env", ENV, 0o644)
    support.put(home / "config.yaml", support.CONFIG.replace("openrouter", "openroute"))
    return dict(crash_server.state(home))


def fix(home: Path) -> list[str]:
    """Repair everything; return the runs."""
    done = support.doctor("fix", "--apply", "--yes", "--json", "--home", home)
    return [run["run"] for run in done.json["repair"]["runs"]]


# -- the commands --------------------------------------------------------------------------


def test_a_bare_undo_undoes_all_rounds(home: Path, sick: dict[str, object]) -> None:
    """Every byte is as before the command; then nothing is left to undo."""
    runs = fix(home)
    assert len(runs) == 2

    done = support.doctor("undo", "--yes", "--json", "--home", home)

    assert done.code == 0, done.err
    assert done.json["undone"] == runs
    assert crash_server.state(home) == sick
    assert [one["state"] for one in crash_server.journals(home)] == ["undone", "undone", "done"]
    again = support.doctor("undo", "--yes", "--home", home)
    assert again.code == 2
    assert "No run is left to undo" in again.err


@pytest.mark.parametrize("which", [0, 1])
def test_any_run_of_the_command_names_it(home: Path, sick: dict[str, object], which: int) -> None:
    """The first or the last: the whole command is undone, and the screen says so."""
    runs = fix(home)

    done = support.doctor("undo", runs[which], "--yes", "--home", home)

    assert done.code == 0, done.err
    assert f"Undone: all 2 runs of that command ({', '.join(runs)})." in done.out
    assert crash_server.state(home) == sick
    other = support.doctor("undo", runs[1 - which], "--yes", "--home", home)
    assert other.code == 2
    assert "was already undone by run" in other.err


def test_one_line_says_how(home: Path, sick: dict[str, object]) -> None:
    """The result of several rounds has one command to undo them all, also in JSON."""
    done = support.doctor("fix", "--apply", "--yes", "--home", home)

    lines = [line for line in done.out.splitlines() if line.startswith("Undo: ")]
    last = crash_server.journals(home)[-1]["id"]
    assert lines == [f"Undo: hermes-doctor undo {last} --home {home}"]
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    made = support.doctor("fix", "--apply", "--yes", "--json", "--home", home).json["repair"]
    assert made["undo"] == f"hermes-doctor undo {made['runs'][-1]['run']} --home {home}"


def test_the_question(home: Path, sick: dict[str, object]) -> None:
    """It says how many runs are undone, and which; nothing is changed if the answer is no."""
    runs = fix(home)
    healthy = crash_server.state(home)

    code, screen = terminal("undo", "--home", home, answer="n\n")

    said = " ".join(plain(screen).split())
    assert code == 1
    assert f"Undo 2 runs of one command ({', '.join(runs)}) and restore 2 files?" in said
    assert crash_server.state(home) == healthy
    assert terminal("undo", "--home", home, answer="y\n")[0] == 0
    assert crash_server.state(home) == sick


def test_undo_of_the_undo(home: Path, sick: dict[str, object]) -> None:
    """It repairs everything again in one run; a bare undo then restores every byte again."""
    fix(home)
    healthy = crash_server.state(home)
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    undone = crash_server.journals(home)[-1]["id"]

    assert support.doctor("undo", undone, "--yes", "--home", home).code == 0
    assert crash_server.state(home) == healthy
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert crash_server.state(home) == sick


def test_another_command_is_not_undone(home: Path, sick: dict[str, object]) -> None:
    """Two commands are undone one after the other."""
    fix(home)
    between = crash_server.state(home)
    (home / "auth.json").chmod(0o644)
    broken = crash_server.state(home)
    fix(home)

    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert crash_server.state(home) == broken != between
    (home / "auth.json").chmod(0o600)
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert crash_server.state(home) == sick


def test_all_or_nothing(home: Path, sick: dict[str, object]) -> None:
    """A file of the first round that changed since: nothing is undone, unless forced."""
    fix(home)
    with (home / "config.yaml").open("a") as file:
        file.write("# mine\n")
    edited = crash_server.state(home)

    done = support.doctor("undo", "--yes", "--home", home)

    assert done.code == 2
    assert "config.yaml changed since run" in done.err
    assert crash_server.state(home) == edited
    assert support.doctor("undo", "--yes", "--force", "--home", home).code == 0
    assert crash_server.state(home) == sick
    assert support.doctor("undo", "--yes", "--home", home).code == 2, "no run is left"


def edit_receipts(home: Path, **fields: object) -> None:
    """Let the receipts say that their runs controlled a gateway."""
    for journal in Journals(Home(home)).all():
        for name, value in fields.items():
            setattr(journal, name, value)
        journal.save()


def test_what_the_gateway_wrote(home: Path) -> None:
    """Rows of a gateway that the repair started stop no undo; they are counted, said and kept.

    An edited file stops it still, and so do rows if no gateway was started.
    """
    support.put(home / "state.db", damage.history(home / "other.db").read_bytes())
    support.clobber(home / "state.db")
    sick = (home / "state.db").read_bytes()
    assert support.doctor("fix", "DB-NOTADB", "--apply", "--yes", "--home", home).code == 0
    with damage.opened(home / "state.db") as db:
        db.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) "
            "VALUES ('s1', 'user', 'newer', ?)",
            (time.time() + 60,),
        )
    refused = support.doctor("undo", "--yes", "--home", home)
    assert refused.code == 2 and "state.db changed since run" in refused.err

    edit_receipts(home, gateway="started", was_running=False)
    done = support.doctor("undo", "--yes", "--json", "--home", home)

    assert done.code == 0, done.err
    [loss] = done.json["losses"]
    assert loss.startswith("1 message from after ") and "removed from state.db" in loss
    assert (home / "state.db").read_bytes() == sick
    kept = Path(done.json["backup"]) / "files" / "state.db"
    with damage.opened(kept) as db:
        assert db.execute("SELECT count(*) FROM messages WHERE content = 'newer'").fetchone() == (
            1,
        )


def test_a_mark_of_the_gateway_in_config(home: Path) -> None:
    """Hermes marks a shown hint in config.yaml and drops comments; an edit is something else."""
    config = support.put(home / "config.yaml", support.CONFIG.replace("openrouter", "openroute"))
    sick = config.read_text()
    fixed = support.doctor("fix", "CFG-PROVIDER-UNKNOWN", "--apply", "--yes", "--home", home)
    assert fixed.code == 0, fixed.err
    repaired = config.read_text()
    values = {**yaml.safe_load(repaired), "onboarding": {"seen": {"profile_build_offered": True}}}

    config.write_text(yaml.safe_dump(values))
    assert support.doctor("undo", "--yes", "--home", home).code == 2
    edit_receipts(home, gateway="started", was_running=False)
    config.write_text(yaml.safe_dump({**values, "timezone": "UTC"}))
    assert support.doctor("undo", "--yes", "--home", home).code == 2
    config.write_text(yaml.safe_dump(values))
    done = support.doctor("undo", "--yes", "--home", home)

    assert done.code == 0, done.err
    assert config.read_text() == sick


def test_whether_a_gateway_shall_run() -> None:
    """The state before the first run; one that was only restarted stays as people left it."""

    def wanted(*states: tuple[bool | None, str | None]) -> bool | None:
        runs = [
            Journal("1", "fix", "/", "", "", was_running=ran, gateway=left) for ran, left in states
        ]
        return undo.was_running(runs)

    assert wanted((None, None)) is None
    assert wanted((False, "started")) is False
    assert wanted((False, "started"), (True, "started")) is False
    assert wanted((None, None), (False, "started")) is False
    assert wanted((True, "started")) is None
    assert wanted((True, "left-stopped")) is True


def test_the_next_command_records_an_interrupted_undo(home: Path, sick: dict[str, object]) -> None:
    """Killed after the undo and before both receipts say so: the next command writes it."""
    runs = fix(home)
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    for id in runs:
        receipt = Home(home).runs / id / RUN_FILE
        said = json.loads(receipt.read_text())
        receipt.write_text(json.dumps(said | {"state": "done", "undone_by": None}))

    done = support.doctor("undo", "--yes", "--home", home)

    assert done.code == 2
    assert "No run is left to undo" in done.err
    assert [one["state"] for one in crash_server.journals(home)] == ["undone", "undone", "done"]
    assert crash_server.state(home) == sick


def test_killed_anywhere(home: Path, sick: dict[str, object], tmp_path: Path) -> None:
    """Whenever the command is killed, one `undo` leaves every byte as before the command."""
    server = crash_server.serving(alone=True)
    words = ("fix", "--apply", "--yes")
    probe = crash_server.clone(home, tmp_path / "probe")
    calls = server(*words, "--home", probe).calls
    assert len(crash_server.journals(probe)) == 2

    for at in sample(range(len(calls)), 12):
        place = crash_server.clone(home, tmp_path / f"at-{at}")
        assert server(*words, "--home", place, cuts=(Cut(at, "kill"),)).code == -9
        server("undo", "--yes", "--home", place)
        assert crash_server.state(place) == sick, calls[at]
        assert not crash_server.leftovers(place)


# -- what the runs of one command did to a path --------------------------------------------


def command(home: Path, *rounds: Callable[[], Step]) -> list[Journal]:
    """One run for each step; all belong to one command."""
    where, runs = Home(home), list[Journal]()
    for make in rounds:
        first = runs[0].id if runs else None
        with lock_home(where):
            run = Run(where, Vault(where), kind="fix", reason="a test", command=first)
            runs.append(run.apply([item(make())], cured))
        assert runs[-1].state == "done", runs[-1].note
    return runs


def undone(home: Path, journal: Journal) -> Journal:
    """Undo the command that made a run."""
    where = Home(home)
    with lock_home(where):
        plan = undo_plan(where, Journals(where).load(journal.id), force=False)
        run = Run(where, Vault(where), kind="undo", reason="a test", of=journal.id)
        return run.apply(plan.items, plan.verify)


def _other_mode(path: Path) -> int:
    return 0o600 if path.stat().st_mode & 0o777 == 0o640 else 0o640


STEPS: dict[str, Callable[[Path], Step]] = {
    "content": lambda path: ReplaceFile(path, os.urandom(9), "a test", snapshot(path)),
    "mode": lambda path: SetMode(path, _other_mode(path), "a test", snapshot(path)),
    "removed": lambda path: Remove(path, why="a test"),
    "created": lambda path: ReplaceFile(path, b"new", "a test", ABSENT),
}
ORDERS = (
    ("mode", "content"),
    ("content", "mode"),
    ("mode", "mode", "content", "mode"),
    ("content", "content"),
    ("content", "removed"),
    ("mode", "removed"),
    ("removed", "created"),
    ("removed", "created", "mode", "removed"),
    ("mode", "removed", "created", "content"),
)


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_one_path_in_several_rounds(home: Path, order: tuple[str, ...]) -> None:
    """Content, mode and time are those before the first round, whatever the rounds changed."""
    path = support.put(home / "SOUL.md", "mine\n", 0o644)
    before, times = crash_server.state(home), crash_server.modified(home)
    runs = command(home, *(partial(STEPS[what], path) for what in order))
    after = crash_server.state(home)

    done = undone(home, runs[0])

    assert done.state == "done", done.note
    assert crash_server.state(home) == before
    assert crash_server.modified(home) == times
    assert undone(home, done).state == "done"
    assert crash_server.state(home) == after


def test_what_another_program_wrote_between_two_rounds(home: Path) -> None:
    """An undo would lose it, so it is refused as if it had been written after the command."""
    path = support.put(home / "SOUL.md", "mine\n")

    def second() -> Step:
        path.write_text("written between the rounds\n")
        return STEPS["content"](path)

    runs = command(home, lambda: STEPS["content"](path), second)
    after = crash_server.state(home)

    with pytest.raises(Trouble, match=f"SOUL.md changed since run {runs[0].id}"):
        undone(home, runs[1])
    assert crash_server.state(home) == after
