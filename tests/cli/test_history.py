"""`history`, `history prune` and `check --record`, as an operator uses them."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hermes_doctor.cli import history as cli_history
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import crontab
from hermes_doctor.operations.history import database, place, prune
from tests.helpers import example_history, support, terminal_screen
from tests.helpers.histories import rows
from tests.helpers.warm_server import ROOT


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A state folder of this test."""
    return {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the history is."""
    return tmp_path / "state" / "hermes-doctor" / "history.db"


def test_check_records_only_if_asked(home: Path, env: dict[str, str], file: Path) -> None:
    """Looking changes nothing, not even outside the home."""
    support.clobber(home / "state.db")
    plain = support.doctor("check", "--home", home, env=env)
    assert not file.parent.parent.exists()
    before = support.tree(home)
    done = support.doctor("check", "--record", "--home", home, env=env)

    assert (done.code, done.err) == (plain.code, plain.err) and file.is_file()
    assert support.tree(home) == before
    assert "DB-NOTADB" in [row["code"] for row in rows(file, "episodes")]


def test_check_says_how_often(home: Path, env: dict[str, str], file: Path) -> None:
    """Twice in a week, with a time without the problem between them."""
    support.clobber(home / "state.db")
    good = home / "state.db"
    damaged = good.read_bytes()
    support.doctor("check", "--record", "--home", home, env=env)
    support.history(home / "new.db")
    os.replace(home / "new.db", good)
    support.doctor("check", "--record", "--home", home, env=env)
    now = f"{datetime.now(UTC):%Y-%m-%dT00:00:00Z}"
    with contextlib.closing(sqlite3.connect(file)) as db:  # as if that had been at midnight
        db.execute("UPDATE episodes SET ended = ?, how = 'unknown' WHERE ended IS NOT NULL", [now])
        db.commit()
    good.write_bytes(damaged)
    shown = support.doctor("check", "--home", home, env=env)
    told = support.doctor("check", "--json", "--all-homes", "--home", home, env=env).json

    assert "2nd time in 7 days" in shown.out
    times = {one["code"]: one["times_in_7_days"] for one in told["homes"][0]["findings"]}
    assert times["DB-NOTADB"] == 2


def test_a_history_that_cannot_be_written(home: Path, env: dict[str, str], file: Path) -> None:
    """One line on stderr; the exit code and the report stay."""
    file.parent.parent.write_text("in the way")
    plain = support.doctor("check", "--json", "--home", home, env=env)
    done = support.doctor("check", "--json", "--record", "--home", home, env=env)

    assert done.code == plain.code and done.json["schema"] == plain.json["schema"]
    assert done.err.count("\n") == 1 and "could not write the history" in done.err


def test_all_homes_are_recorded(home: Path, env: dict[str, str], file: Path) -> None:
    """Each profile has its own history in the same file."""
    support.healthy(home / "profiles" / "work")
    support.doctor("check", "--all-homes", "--record", "--home", home, env=env)

    assert {str(home), str(home / "profiles" / "work")} <= {r["path"] for r in rows(file, "homes")}


def test_a_watch_writes_it(home: Path, env: dict[str, str], file: Path) -> None:
    """Also a single round; a second one adds to it."""
    for _ in range(2):
        support.doctor("watch", "--once", "--home", home, env=env)
    shown = support.doctor("history", "--home", home, env=env)

    assert len(rows(file, "homes")) == 1
    assert shown.code == 0 and "history since" in shown.out and "Recorded since" in shown.out


def test_no_history_yet(home: Path, env: dict[str, str], file: Path) -> None:
    """One line that says how to get one, exit code 2, and nothing is created."""
    for words in (["history"], ["history", "prune"]):
        done = support.doctor(*words, "--home", home, env=env)
        assert done.code == 2 and done.out == "" and done.err.count("\n") <= 2
        assert "has no history yet" in done.err and "hermes-doctor watch" in done.err
    assert (
        "no history"
        in support.doctor("history", "--json", "--home", home, env=env).json["error"]["message"]
    )
    assert not file.parent.exists()


@pytest.mark.parametrize(
    ("cron", "command"), [(True, "hermes-doctor watch install"), (False, "hermes-doctor watch")]
)
def test_what_can_write_a_history(
    home: Path, monkeypatch: pytest.MonkeyPatch, cron: bool, command: str
) -> None:
    """A watch is installed only where systemd or cron can run it."""
    monkeypatch.setattr(os.path, "isdir", lambda path: False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(crontab, "is_installed", lambda: cron)

    assert str(cli_history._no_history(Home(home))).endswith(f": {command}")


def test_the_screen(home: Path, env: dict[str, str], file: Path) -> None:
    """With a real file: the strip, problems, the update and what appeared after it."""
    example_history.record(home, file, datetime.now(UTC))
    shown = support.doctor("history", "--home", home, env=env)
    code = support.doctor("history", "qq-token", "--home", home, "--since", "90d", env=env)
    told = support.doctor("history", "QQ-TOKEN", "--json", "--home", home, env=env).json

    assert "└ 10 min later: state.db lacks a column" in shown.out
    assert f"hermes-doctor history QQ-TOKEN --home {home}" in shown.out
    assert "QQ rejects the app secret  QQ-TOKEN\n  3 times, " in code.out
    assert [one["code"] for one in told["episodes"]] == ["QQ-TOKEN"] * 3
    words = [sys.executable, "-m", "hermes_doctor", "history", "--home", str(home)]
    screen = terminal_screen.screen(words, support.environ(env), ROOT)
    lines = [one.rstrip() for one in screen.splitlines() if "--home" not in one]  # to be pasted
    assert max(map(len, lines)) <= terminal_screen.COLUMNS
    assert len(screen.splitlines()) <= terminal_screen.ROWS and "QQ-TOKEN" in screen


def test_bad_words(home: Path, env: dict[str, str], file: Path) -> None:
    """One clear line each, and exit code 2."""
    example_history.record(home, file, datetime.now(UTC))

    def refused(*words: str) -> str:
        done = support.doctor("history", *words, env={**env, "HERMES_HOME": str(home)})
        assert done.code == 2 and done.out == "" and "Traceback" not in done.err, done
        return done.err

    assert "Did you mean QQ-TOKEN?" in refused("QQ-TOKN")
    assert "--since needs" in refused("--since", "soon")
    assert "--keep needs days" in refused("prune", "--keep", "soon")
    assert "Put the options after `prune`" in refused("--since", "3d", "prune")
    assert "No such command 'B'" in refused("A", "B")


def test_prune(home: Path, env: dict[str, str], file: Path) -> None:
    """Says what it removed; open problems stay."""
    example_history.record(home, file, datetime.now(UTC))
    before = len(rows(file, "hours"))
    done = support.doctor("history", "prune", "--keep", "5d", "--home", home, env=env)

    assert done.code == 0 and "removed" in done.out and str(file) in done.out
    assert len(rows(file, "hours")) < before / 3
    assert [row["code"] for row in rows(file, "episodes") if row["ended"] is None] == ["QQ-TOKEN"]
    again = support.doctor("history", "prune", "--keep", "5d", "--home", home, env=env)
    assert "0 episodes, 0 hours, 0 marks and 0 homes removed" in again.out


def test_prune_of_a_damaged_history(home: Path, env: dict[str, str], file: Path) -> None:
    """It is left as it is."""
    file.parent.mkdir(parents=True)
    file.write_bytes(b"nonsense" * 600)
    done = support.doctor("history", "prune", "--home", home, env=env)
    shown = support.doctor("history", "--home", home, env=env)

    assert done.code == shown.code == 2 and "The history is damaged" in done.err + shown.err
    assert file.read_bytes() == b"nonsense" * 600 and len(list(file.parent.iterdir())) == 1


def test_a_large_history_shrinks(home: Path, env: dict[str, str], file: Path) -> None:
    """If a quarter of it is free and that is more than a megabyte."""
    example_history.record(home, file, datetime.now(UTC))
    with database.transaction(file) as db:
        db.table("marks").insert_all(
            {"home": 1, "at": "2020-01-01T00:00:00Z", "kind": "repair", "what": "x" * 400}
            for _ in range(6000)
        )
    before = file.stat().st_size
    done = support.doctor("history", "prune", "--home", home, env=env)

    assert "6,000 marks" in done.out and file.stat().st_size < before / 5


def test_prune_of_one_home(home: Path, env: dict[str, str], file: Path) -> None:
    """With --home, the others keep their records; without, all are pruned."""
    other = support.healthy(home.parent / "other")
    for one in (home, other):
        example_history.record(one, file, datetime.now(UTC))

    def hours() -> list[int]:
        return [sum(row["home"] == number for row in rows(file, "hours")) for number in (1, 2)]

    before = hours()
    support.doctor("history", "prune", "--keep", "5d", "--home", other, env=env)
    assert hours()[0] == before[0] and hours()[1] < before[1] / 3
    support.doctor("history", "prune", "--keep", "5d", env={**env, "HERMES_HOME": str(home)})
    assert hours()[0] < before[0] / 3


def test_damage_found_while_shrinking(
    home: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then the records are removed, and the message says so."""
    example_history.record(home, file, datetime.now(UTC))

    def torn(_: Path) -> None:
        raise database.Damaged("it is torn")

    monkeypatch.setattr(database, "vacuum", torn)
    monkeypatch.setattr(prune, "is_worth_shrinking", lambda _: True)
    with pytest.raises(Trouble, match="were removed, but the history is damaged"):
        prune.prune_file(file, 5 * 86400)
    assert min(row["hour"] for row in rows(file, "hours")) > f"{datetime.now(UTC):%Y}"


def test_another_history_cannot_be_read(
    home: Path, env: dict[str, str], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that can be read is shown, and stderr names the other."""
    example_history.record(home, file, datetime.now(UTC))
    other = file.with_name("other.db")
    other.write_bytes(b"nonsense" * 600)
    monkeypatch.setattr(place, "files_of", lambda _: [file, other])
    for name, value in {**env, "HERMES_HOME": str(home)}.items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(cli_history.app, ["--json"])

    assert done.exit_code == 0 and json.loads(done.stdout)["file"] == str(file)
    assert "Another history is not shown." in done.stderr and str(other) in done.stderr
