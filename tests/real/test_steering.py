"""Real gateways that nobody supervises: stopped, started, repaired and refused by the doctor."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes_doctor.backup.records.journal import Journals
from hermes_doctor.core.home import Home
from tests.helpers import support
from tests.helpers.real.controlled_gateways import VERSION, Ward, ward
from tests.helpers.real.gateways import answers, until
from tests.helpers.real.release_homes import ROWS, MakeHome
from tests.helpers.support import copy_home

pytestmark = pytest.mark.real


def alive(pid: int) -> bool:
    """Whether a process is there, and not only its grave."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.long
def test_brought_back(hermes_home: MakeHome) -> None:
    """Restarted in order, killed, frozen and suspended: each time there is a new process of this
    very home, and the gateway of another home goes on."""
    home = hermes_home(VERSION)
    with ward(copy_home(home, home.parent / "other" / "home")) as other, ward(home) as one:
        beside = other.pid
        restarted(one)
        killed(one)
        frozen(one)
        suspended(one)
        assert other.pid == beside and answers(other.port)


def restarted(one: Ward) -> None:
    """In order, by a fix that needs it."""
    first = one.pid
    (one.home / "gateway.lock").unlink()

    asked = one.doctor("fix", "GW-LOCK-LOST", "--apply")
    assert asked.code == 1 and one.pid == first, "it interrupts a gateway, so it asks first"
    done = one.fix("GW-LOCK-LOST")

    assert done.code == 0, done.out + done.err
    [run] = done.json["repair"]["runs"]
    assert (run["gateway"], run["items"][0]["outcome"]) == ("started", "verified")
    assert any("it has been running for" in note for note in run["items"][0]["notes"]), run
    second = one.pid
    assert second != first and not alive(first)
    log = (one.home / "logs" / "gateway.log").read_text()
    assert "as a planned gateway stop" in log, "it was told, so that it drained"
    assert not (one.home / ".gateway-planned-stop.json").exists()
    assert answers(one.port)
    environ = Path(f"/proc/{second}/environ").read_bytes().split(b"\0")
    assert f"HERMES_HOME={one.home.resolve()}".encode() in environ
    assert not [name for name in environ if name.startswith(b"_HERMES_GATEWAY")]
    again = one.fix("GW-LOCK-LOST")
    assert (again.code, again.json["repair"]["runs"]) == (0, []) and one.pid == second


def killed(one: Ward) -> None:
    """Killed by somebody else, and started again."""
    first = one.pid
    os.kill(first, signal.SIGKILL)
    until(lambda: not alive(first), "its end")
    inside = support.doctor(
        *("fix", "GW-DOWN", "--apply", "--yes", "--json", "--home", one.home),
        env=one.env | {"_HERMES_GATEWAY": "1"},
    )
    [planned] = [p for p in inside.json["repair"]["plan"] if p["code"] == "GW-DOWN"]
    assert inside.code == 1 and "inside the gateway" in planned["refusal"]
    done = one.fix("GW-DOWN")

    assert done.code == 0, done.out + done.err
    third = one.pid
    assert third != first
    assert answers(one.port), "what .env says is enough for it"
    assert "GW-DOWN" not in one.check().codes
    again = one.fix("GW-DOWN")
    assert (again.code, again.json["repair"]["runs"]) == (0, []) and one.pid == third


def frozen(one: Ward) -> None:
    """A loop that does not turn is killed, and only that process."""
    first = one.pid
    one.freeze()
    assert "GW-LOOP-BLOCKED" in one.check().codes

    done = one.fix("GW-LOOP-BLOCKED")

    assert done.code == 0, done.out + done.err
    [item] = done.json["repair"]["runs"][0]["items"]
    assert f"process {first} was frozen and was killed" in item["notes"][0]
    assert one.pid != first and answers(one.port)
    assert not (one.home / ".gateway-planned-stop.json").exists()


def suspended(one: Ward) -> None:
    """A suspended process is woken, so that it can drain."""
    second = one.pid
    os.kill(second, signal.SIGSTOP)
    until(lambda: Path(f"/proc/{second}/stat").read_text().split()[2] == "T", "it to stand")
    done = one.fix("GW-SUSPENDED")

    assert done.code == 0, done.out + done.err
    [item] = done.json["repair"]["runs"][0]["items"]
    assert not [note for note in item["notes"] if "killed" in note], "woken, it drains"
    assert one.pid != second and answers(one.port)


@pytest.mark.wide
def test_two_rounds_are_undone_together(hermes_home: MakeHome) -> None:
    """The first round restarts the gateway; one undo restores the bytes, and it runs again.

    A variable is seen to be set twice only after .env has become plain UTF-8.
    """
    with ward(hermes_home(VERSION)) as one:
        env, board = one.home / ".env", one.home / "kanban.db"
        before = env.read_bytes() if env.exists() else b""
        support.put(env, b"\xef\xbb\xbfFIRST=1\n" + before + b"\nSECOND=2\nSECOND=3\n")
        support.clobber(board)
        sick = env.read_bytes(), board.read_bytes()
        named = one.doctor("fix", "KANBAN-CORRUPT", "--apply", "--yes")
        assert named.code == 1 and "(DB-NOTADB)" in named.out
        first = one.pid

        done = one.fix("DB-NOTADB", "ENV-BOM", "ENV-DUP")

        runs = [run["run"] for run in done.json["repair"]["runs"]]
        assert len(runs) == 2, done.out
        assert [each["state"] for each in done.json["repair"]["named"]] == ["repaired"] * 3
        assert one.pid != first and answers(one.port)
        undone = one.doctor("undo", runs[0], "--yes", "--json")
        assert undone.code == 0, undone.out + undone.err
        assert undone.json["undone"] == runs
        assert (env.read_bytes(), board.read_bytes()) == sick
        assert answers(one.port)


def test_repaired_under_a_writing_gateway(hermes_home: MakeHome) -> None:
    """It writes all the while: down for the repair, up again, and every row is there."""
    with ward(hermes_home(VERSION)) as one:
        first = one.pid
        (one.home.parent / "write").touch()
        until(lambda: (one.home.parent / "written").exists(), "the first message")
        support.clobber(one.home / "kanban.db")

        plan = one.doctor("fix", "DB-NOTADB")
        assert "restart the gateway" in plan.out and one.pid == first
        done = one.fix("DB-NOTADB")

        assert done.code == 0, done.out + done.err
        assert one.pid != first and answers(one.port)
        (one.home.parent / "write").unlink()
        time.sleep(0.5)
        second = one.pid
        undone = one.doctor("undo", "--yes")
        assert undone.code == 0, undone.out + undone.err
        assert one.pid != second and answers(one.port), "down for the way back too"
        assert "DB-NOTADB" in one.check().codes
    rows = one.ask(ROWS).splitlines()
    numbers = [int(number) for row in rows[40:] if (number := row.rpartition(" ")[2])]
    # The gateway that came after the first begins to count anew.
    turns = [n for n in range(1, len(numbers)) if numbers[n] <= numbers[n - 1]]
    assert len(numbers) > 10 and len(turns) <= 1
    starts = [0, *turns]
    for start, end in zip(starts, [*turns, len(numbers)], strict=True):
        assert numbers[start:end] == list(range(40, 40 + end - start))


@pytest.mark.wide
def test_cut_off(hermes_home: MakeHome) -> None:
    """Killed while the gateway is down for the repair: the next command brings both to an end."""
    with ward(hermes_home(VERSION)) as one:
        first = one.pid
        support.clobber(one.home / "kanban.db")
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "hermes_doctor", "fix", "DB-NOTADB", "--apply", "--yes"),
                *("--home", str(one.home)),
            ],
            env=os.environ | one.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        until(lambda: not alive(first), "the gateway to be down")
        process.kill()
        process.wait()

        done = one.fix("DB-NOTADB")

        assert done.code == 0, done.out + done.err
        assert "is running again" in done.json["repair"]["recovered"][0]
        assert one.pid != first and answers(one.port)
        assert "DB-NOTADB" not in one.check().codes
        runs = one.home / "backups" / "doctor" / "runs"
        assert not list(runs.rglob("origin.json")), "what it was started with is kept no longer"
        assert all(journal.final for journal in Journals(Home(one.home)).all())
        assert not re.search("not-a-key-but", "".join(p.read_text() for p in runs.rglob("*.json")))
