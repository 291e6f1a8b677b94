"""Whole journeys with a real gateway: a repair and its printed undo, and an approved person."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import support
from tests.helpers.real import chat_partner, qq
from tests.helpers.real.controlled_gateways import VERSION, Ward, ward
from tests.helpers.real.gateways import answers, end, sealed, until
from tests.helpers.real.release_homes import MakeHome
from tests.real.test_proof import ask, headline
from tools import real_home, releases

pytestmark = pytest.mark.real
OF_THE_GATEWAY = ("logs/", "backups/", "state/", "cron/ticker", "gateway-starts.log",
                  "gateway_state.json", "channel_directory.json", "response_store.db",
                  ".clean_shutdown", ".tirith-install-failed")  # fmt: skip
"""Files that a gateway writes by itself, and our own; the repair changed none of them."""
PAST = ("DB-MALFORMED", "GW-RESTART-SPAM")
"""What the log says of the time before the repair."""


@contextmanager
def answering(home: Path, folder: Path) -> Iterator[Ward]:
    """A gateway with an API server, and a model that answers."""
    with qq.platform(folder) as platform:
        platform.tell("model answer")
        support.put(home / "config.yaml", chat_partner.SETTINGS.format(place=platform.place))
        with ward(home) as one:
            yield one


def runs(home: Path) -> bool:
    """Whether a gateway runs."""
    return bool(Probes(Home(home)).gateway.running())


def kill(one: Ward) -> None:
    """End the gateway as the kernel does when memory is short."""
    os.kill(one.pid, signal.SIGKILL)
    until(lambda: not runs(one.home), "the end of the gateway")


def truncate(database: Path) -> None:
    """Cut off the last third of a database, with everything beside it."""
    for suffix in ("-wal", "-shm"):
        Path(f"{database}{suffix}").unlink(missing_ok=True)
    pages = database.stat().st_size // 4096
    os.truncate(database, pages * 2 // 3 * 4096)


def digests(home: Path) -> dict[str, str]:
    """A digest of each file that is not the gateway's own or ours."""
    found = {str(path.relative_to(home)): path for path in home.rglob("*") if path.is_file()}
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in found.items()
        if not name.startswith(OF_THE_GATEWAY) and not name.endswith(".lock")
    }


def start_and_stop(one: Ward) -> None:
    """Start a gateway as a script does that stops it again soon."""
    hermes = str(releases.python_of(one.version).parent / "hermes")
    env = real_home.environment(one.home) | sealed(one.port) | one.env
    process = subprocess.Popen(
        [hermes, "gateway", "run"],
        env=env,
        cwd=one.home.parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: answers(one.port), "the gateway")
    finally:
        end(process)


def printed_undo(done: support.Done) -> list[str]:
    """The arguments of the undo command that a repair printed; the home is added by the caller."""
    [line] = [line for line in done.out.splitlines() if line.startswith("Undo: ")]
    return line.partition("hermes-doctor ")[2].partition(" --home")[0].split()


def planned_start(one: Ward) -> list[str]:
    """What a repair would do about a gateway that is not running."""
    lines = one.doctor("fix").out.splitlines()
    return [line.partition("GW-DOWN")[2] for line in lines if "GW-DOWN" in line]


@pytest.mark.wide
def test_repaired_started_answered_undone(hermes_home: MakeHome, tmp_path: Path) -> None:
    """Killed with a truncated history, started four times, repaired: it answers.

    The complaints in the log and the earlier stops no longer count. The printed undo restores the
    state before: no gateway runs, and the files have their bytes. What was said meanwhile is
    counted and kept; the undo of the undo restores it.
    """
    home = hermes_home(VERSION)
    with answering(home, tmp_path) as one:
        assert ask(one) == "stop"
        kill(one)
        truncate(home / "state.db")
        for _ in range(4):
            start_and_stop(one)
        before = digests(home)
        assert "Your bot is not running. Repair this first: state.db is inc" in headline(one)
        assert "DB-MALFORMED" not in one.doctor("fix").out, "the fix is that of the file"
        assert set(PAST) <= set(one.check().codes)
        start = planned_start(one)

        done = one.doctor("fix", "--apply", "--yes")
        assert "Your bot is running, not tried yet." in done.out
        assert not {*PAST, "GW-CRASH-LOOP"} & set(one.check().codes), "what was repaired is over"
        assert ask(one) == "stop"
        assert "Your bot is working" in headline(one)

        plan = one.doctor(*printed_undo(done)).out
        assert plan.index("stop the gateway") < plan.index("restore state.db"), plan
        undone = one.doctor(*printed_undo(done), "--yes")
        assert undone.code == 0, undone.out + undone.err
        assert "2 messages from after " in undone.out
        assert "The gateway is stopped, as it was before the repair." in undone.out
        assert not runs(home)
        assert digests(home) == before
        assert {"DB-TRUNCATED", "GW-DOWN"} <= set(one.check().codes)
        assert "Your bot is not running. Repair this first:" in headline(one)
        assert planned_start(one) == start

        [id] = [line.rpartition("/")[2] for line in undone.out.splitlines() if "receipt:" in line]
        again = one.doctor("undo", id, "--yes")
        assert again.code == 0, again.out + again.err
        assert runs(home)
        assert "hello" in (texts := one.ask(SAID)), texts
        assert ask(one) == "stop"
    until(lambda: not runs(home), "the end of the gateway")


@pytest.mark.wide
def test_a_person_is_approved(hermes_home: MakeHome, tmp_path: Path) -> None:
    """A stranger gets a code, is listed once, is approved, and the next message is answered.

    Nothing tells the operator to restart the gateway, and it is not restarted.
    """
    home = hermes_home(VERSION)
    with qq.platform(tmp_path) as platform:
        platform.tell("model answer")
        support.put(home / "config.yaml", chat_partner.SETTINGS.format(place=platform.place))
        with qq.bot(VERSION, home, platform) as running:
            one, chat = Ward(VERSION, home), chat_partner.Chat(platform)
            chat.say("hello")
            chat.hear("pairing code")
            found = [each for each in one.check().json["findings"] if "friend" in each["title"]]
            assert [each["code"] for each in found] == ["PAIRING-WAITING"]

            subject = ("--subject", found[0]["subject"])
            done = one.doctor("fix", "PAIRING-WAITING", *subject, "--apply", "--yes")

            assert done.code == 0, done.out
            assert "old files" not in done.out and "Restart" not in done.out
            assert chat.heard()[-1:] != ["Yes."]
            chat.say("hello again")
            chat.hear("Yes.")
            assert one.pid == running.pid
            assert "Your bot is working" in headline(one)
            assert not [each for each in one.check().json["findings"] if "friend" in each["title"]]
    assert not runs(home)


SAID = """
import os, sqlite3
print(sqlite3.connect(os.environ["HERMES_HOME"] + "/state.db").execute(
    "SELECT group_concat(content) FROM messages").fetchone())
"""
