"""A round in which nothing changed examines nothing, and the next change is noticed at once."""

from __future__ import annotations

import gc
import mmap
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Report
from hermes_doctor.core.system import mounts, remembered_files
from hermes_doctor.diagnosis.examination import report
from hermes_doctor.diagnosis.plugins.load import Plugins, load
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.logs.entry import LogEntry
from hermes_doctor.hermes.processes import gateway_processes
from hermes_doctor.operations.watch import what_changed
from hermes_doctor.operations.watch.child_process import ChildProcesses
from hermes_doctor.operations.watch.examination_apart import ExaminationApart
from hermes_doctor.sqlite.examine import known_sound
from tests.helpers import fake_gateway, support
from tests.helpers.rule_lines import lines, said

pytestmark = pytest.mark.usefixtures("utc")
ADAPTER = "gateway.platforms.qqbot.adapter"
CLOSED = "[QQBot:102000001] WebSocket closed: code=4009 reason=Session timed out"
ASKED = "inbound message: platform=qqbot user=U1 chat=U1 msg='hello'"


class Rounds:
    """The rounds of a watch on one home, and in how many of them it was examined."""

    def __init__(self, home: Path, plugins: Plugins) -> None:
        self.home, self.plugins = home, plugins
        self._count = mmap.mmap(-1, 1)  # shared with the processes of the rounds
        self.round = ExaminationApart(
            self._examine, plugins, ChildProcesses(), unchanged_home=Home(home)
        )

    def _examine(self) -> Report:
        self._count[0] += 1
        probes = Probes(Home(self.home), paid_requests=False)
        try:
            return report.report(probes, self.plugins, self.plugins.checks)
        finally:
            probes.close()

    def codes(self) -> set[str]:
        """The codes that one more round finds."""
        return {finding.code for finding in self.round().findings}

    @property
    def examinations(self) -> int:
        """How often the home was examined since this was asked last."""
        number, self._count[0] = self._count[0], 0
        return number

    def settle(self) -> Report:
        """Make rounds until one examines nothing."""
        for _ in range(5):
            last = self.round()
            if not self.examinations:
                return last
        raise AssertionError("each round examines the home")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How many seconds the wall clock is turned forward."""
    turned, real = [0.0], time.time
    monkeypatch.setattr(time, "time", lambda: real() + turned[0])
    return turned


@pytest.fixture
def rounds(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rounds]:
    """Rounds on a home whose log says that a message came in and was answered."""
    monkeypatch.setattr(remembered_files, "RECENT", 0.0)
    see_only_own_processes(monkeypatch)
    write(home, ago(30, "Starting Hermes Gateway..."), ago(20, ASKED))
    yield Rounds(home, load())
    known_sound.forget()
    remembered_files.forget()
    gc.unfreeze()


def see_only_own_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the gateways of other tests, which come and go."""
    me = psutil.Process()
    monkeypatch.setattr(
        gateway_processes, "all_pids", lambda: [one.pid for one in me.children(recursive=True)]
    )


def ago(minutes: float, text: str, level: str = "INFO", logger: str = "gateway.run") -> LogEntry:
    """A line that was written so many minutes ago."""
    return said(time.time() - 60 * minutes, text, level, logger)


def write(home: Path, *entries: LogEntry) -> None:
    """Add lines to the log, and an answer to all messages."""
    (home / "logs").mkdir(exist_ok=True)
    answer = ago(0, "response ready: platform=qqbot chat=U1 time=2.1s api_calls=1")
    with (home / "logs" / "gateway.log").open("a") as file:
        file.write(lines([*entries, answer]))


def replace_in_place(path: Path, old: bytes, new: bytes) -> None:
    """Replace bytes by as many others, and give the file its old times back."""
    before, data = path.stat(), path.read_bytes()
    assert data.count(old) >= 1 and len(old) == len(new)
    with path.open("r+b") as file:
        file.write(data.replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_quiet_round_examines_nothing(rounds: Rounds) -> None:
    """And reports what the one before found, with the time of the round."""
    first = rounds.round()
    assert rounds.examinations == 1
    quiet = [rounds.round() for _ in range(3)]
    assert rounds.examinations == 0
    for one in quiet:
        assert one.findings == first.findings and one.checks == first.checks
        assert one.verdict == first.verdict and one.started_at > first.started_at


def damage_database(home: Path) -> None:
    """Overwrite the first bytes of a database."""
    with (home / "state.db").open("r+b") as file:
        file.write(b"not a database")


def replace_by_link(home: Path) -> None:
    """Move the settings, and leave a link to them."""
    (home / "config.yaml").rename(home / "other.yaml")
    (home / "config.yaml").symlink_to(home / "other.yaml")


CHANGES: dict[str, Callable[[Path], object]] = {
    "settings edited in place": lambda home: replace_in_place(home / ".env", b"KEY", b"KEX"),
    "file removed": lambda home: (home / "config.yaml").unlink(),
    "missing file appears": lambda home: (home / "auth.json").write_text("{"),
    "file becomes a folder": lambda home: (home / "processes.json").mkdir(),
    "permissions": lambda home: (home / ".env").chmod(0o644),
    "database damaged": damage_database,
    "file replaced": lambda home: support.put(home / ".env", b"\xef\xbb\xbf" + b"A=b\n"),
    "new name in a folder": lambda home: (home / "profiles" / "second").mkdir(parents=True),
    "line in a log": lambda home: write(home, ago(3, CLOSED, "WARNING", ADAPTER)),
    "log removed": lambda home: (home / "logs" / "gateway.log").unlink(),
    "file replaced by a link": replace_by_link,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_a_file(rounds: Rounds, name: str) -> None:
    """The next round examines the home."""
    rounds.settle()
    CHANGES[name](rounds.home)
    rounds.round()
    assert rounds.examinations == 1


def test_what_a_change_brings(rounds: Rounds) -> None:
    """It is found by the next round, kept in those after it, and gone with its cause."""
    assert not rounds.settle().open
    write(rounds.home, ago(3, CLOSED, "WARNING", ADAPTER))
    damage_database(rounds.home)
    assert {"QQ-4009", "DB-NOTADB"} <= rounds.codes()
    assert rounds.examinations == 1
    assert {"QQ-4009", "DB-NOTADB"} <= {one.code for one in rounds.settle().findings}
    with (rounds.home / "state.db").open("r+b") as file:
        file.write(b"SQLite format ")
    assert "DB-NOTADB" not in rounds.codes()


def test_what_becomes_due_by_time_alone(rounds: Rounds, clock: list[float]) -> None:
    """A message that gets no answer is an error after some time; later, nobody waits for it."""
    [rule] = [one for one in rounds.plugins.rules if one.id == "reply-none"]
    with (rounds.home / "logs" / "gateway.log").open("a") as file:
        file.write(lines([ago(0, ASKED)]))
    assert rule.code not in rounds.codes()
    for turned, there in ((rule.settle - 100, False), (rule.settle + 1, True)):
        clock[0] = turned
        assert (rule.code in rounds.codes()) is there
    clock[0] = rule.window + 60
    assert rule.code not in rounds.codes()


def test_what_shows_no_other_sign(rounds: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home is examined again after some minutes, whatever seems to be unchanged."""
    rounds.settle()
    real = time.monotonic
    for passed, examined in ((what_changed.FULL_EVERY - 60, 0), (what_changed.FULL_EVERY, 1)):
        monkeypatch.setattr(time, "monotonic", lambda by=passed: real() + by)
        rounds.round()
        assert rounds.examinations == examined


def test_a_clock_that_was_set_back(rounds: Rounds, clock: list[float]) -> None:
    """What was found then may be in the future now."""
    rounds.settle()
    clock[0] = -3600
    rounds.round()
    assert rounds.examinations == 1


def test_being_told_to_examine(rounds: Rounds) -> None:
    """After SIGHUP, a repair, or a gap, the watch forgets the last report."""
    rounds.settle()
    rounds.round.forget()
    rounds.round()
    assert rounds.examinations == 1


def test_a_disk_that_fills_up(rounds: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    """A little less free space is no change; crossing a limit is one."""
    room = [mounts.Space(10**12, 600 << 20, 10**6, 10**6, read_only=False)]
    monkeypatch.setattr(mounts, "free_space", lambda _: room[0])
    assert "DISK-FULL" in {one.code for one in rounds.settle().findings}
    for free, examined in ((599 << 20, 0), (127 << 20, 1)):
        room[0] = room[0]._replace(free=free)
        assert "DISK-FULL" in rounds.codes()
        assert rounds.examinations == examined


def test_a_gateway_that_starts_and_is_killed(rounds: Rounds) -> None:
    """Each is seen by the next round; while one runs and nothing happens, rounds are quiet."""
    rounds.settle()
    with fake_gateway.gateway(rounds.home) as one:
        assert [gateway.pid for gateway in rounds.round().gateways or ()] == [one.pid]
        rounds.settle()
        one.process.kill()
        one.process.wait()
        assert [rounds.round().gateways for _ in range(2)] == [(), ()]


def test_a_gateway_that_is_stopped(rounds: Rounds) -> None:
    """A process that a signal has stopped is another state, although all files stay the same."""
    with fake_gateway.gateway(rounds.home) as one:
        rounds.settle()
        os.kill(one.pid, 19)
        rounds.round()
        assert rounds.examinations == 1


def test_a_heartbeat_that_stops(rounds: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new heartbeat is no change, one that becomes too old is one."""
    with fake_gateway.gateway(rounds.home):
        rounds.settle()
        beat = rounds.home / "state" / "gateway.heartbeat"
        shutil.copy(beat, beat.with_suffix(".new"))
        beat.with_suffix(".new").rename(beat)
        rounds.round()
        assert rounds.examinations == 0
        from hermes_doctor.diagnosis.probes import pulse

        real: Any = pulse.beat_age
        monkeypatch.setattr(pulse, "beat_age", lambda *args: (real(*args) or 0.0) + 500)
        monkeypatch.setattr(pulse, "_rests", lambda _: False)
        rounds.round()
        assert rounds.examinations == 1
