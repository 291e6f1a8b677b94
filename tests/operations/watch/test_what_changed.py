"""What changes without a change of a file gets another answer; what is always moving does not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.mounts import Space
from hermes_doctor.diagnosis.probes.cron import Ticker
from hermes_doctor.diagnosis.probes.database_users import DatabaseUsers
from hermes_doctor.diagnosis.probes.pulse import Pulse
from hermes_doctor.hermes.logs import stream
from hermes_doctor.hermes.processes.process_stat import ProcessDetails
from hermes_doctor.hermes.processes.sockets import Connection
from hermes_doctor.hermes.supervisors.units import SYSTEMD_USER, Unit
from hermes_doctor.operations.watch import what_changed

PID = 4711
NOW = datetime.now(UTC)
VITALS = ProcessDetails(
    *(PID, "S", NOW, 1000, 20, 1000, {"state.db": 3, "gateway.lock": 1}, ()),
    *(300 << 20, None, {}),
)
LINK = Connection(("10.0.0.1", 40000), ("149.154.167.220", 443), "ESTABLISHED", quiet=3.0)
DOOR = Connection(("10.0.0.1", 8642), None, "LISTEN")
UNIT = Unit(SYSTEMD_USER, "hermes-gateway.service", None, None, PID, "active", {}, {}, None)


HEALTHY: dict[str, Any] = {
    "gateway.running": lambda: [SimpleNamespace(pid=PID)],
    "gateway.supervision": lambda: (UNIT,),
    "gateway.runtime": lambda: SimpleNamespace(lock_holder=PID),
    "gateway.orphans": list,
    "machine.vitals": lambda _: VITALS,
    "machine.connections": lambda _: [LINK, DOOR],
    "machine.memory_kills": lambda: 0,
    "machine.space": lambda: Space(10**12, 10**11, 10**6, 10**6, read_only=False),
    "machine.mount": lambda _: "/dev/sda1",
    "health.pulse": lambda: Pulse(PID, True, "its last heartbeat is 12 s old", age=12.0),
    "stores.ticker": lambda: _ticked(0),
    "databases.users": DatabaseUsers,
}
"""What the probes say about a home whose gateway runs under systemd."""


def with_link(**fields: Any) -> dict[str, Any]:
    return {"machine.connections": lambda _: [LINK._replace(**fields), DOOR]}


def with_vitals(**fields: Any) -> dict[str, Any]:
    return {"machine.vitals": lambda _: VITALS._replace(**fields)}


def failing() -> Any:
    raise CouldNotLook("permission denied")


CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "gateway gone": ("gateways", {"gateway.running": list}),
    "gateway hidden": ("gateways", {"gateway.running": failing}),
    "pid used again": ("gateways", with_vitals(start_time=5)),
    "process stopped": ("gateways", with_vitals(doing="T")),
    "container paused": ("gateways", with_vitals(frozen=True)),
    "few descriptors left": ("gateways", with_vitals(files=980)),
    "database opened too often": ("gateways", with_vitals(kinds={"state.db": 61})),
    "library deleted": ("gateways", with_vitals(deleted=("/x/site-packages/y.so",))),
    "memory": ("gateways", with_vitals(memory=3 << 30)),
    "memory of the group": ("gateways", with_vitals(memory_used=96, memory_limit=100)),
    "unit failed": (
        "supervisor",
        {"gateway.supervision": lambda: (UNIT._replace(state="failed"),)},
    ),
    "lock lost": (
        "holder of the lock",
        {"gateway.runtime": lambda: SimpleNamespace(lock_holder=None)},
    ),
    "connection closed": ("connections", with_link(state="CLOSE_WAIT")),
    "many connections closed": (
        "connections",
        {"machine.connections": lambda _: [LINK] + [DOOR] * 100},
    ),
    "no longer listening": ("connections", {"machine.connections": lambda _: [LINK]}),
    "connection gone": ("connections", {"machine.connections": lambda _: []}),
    "connection not acknowledged": ("connections", with_link(unsent=90, tries=5, silent=20.0)),
    "connection silent": ("connections", with_link(quiet=200.0)),
    "event loop hangs": ("event loop", {"health.pulse": lambda: Pulse(PID, False, "silent")}),
    "scheduler silent": (
        "scheduler of jobs",
        {"stores.ticker": lambda: _ticked(400)},
    ),
    "process killed for memory": (
        "processes killed for memory",
        {"machine.memory_kills": lambda: 1},
    ),
    "disk almost full": (
        "free space",
        {"machine.space": lambda: Space(10**12, 10**7, 0, 0, False)},
    ),
    "inodes": ("free space", {"machine.space": lambda: Space(10**12, 10**11, 10**6, 900, False)}),
    "disk read-only": (
        "free space",
        {"machine.space": lambda: Space(10**12, 10**11, 10**6, 10**6, True)},
    ),
    "another disk": ("mount of the home", {"machine.mount": lambda _: "/dev/sdb1"}),
}
MOVING: dict[str, dict[str, Any]] = {
    "age of the heartbeat": {"health.pulse": lambda: Pulse(PID, True, "31 s old", age=31.0)},
    "processor": with_vitals(doing="R", waits_in="ep_poll"),
    "a little memory": with_vitals(memory=310 << 20),
    "data came in": with_link(quiet=30.0),
    "a request in a pool": with_link(local=("10.0.0.1", 50000), unread=10),
    "somebody calls the gateway": {
        "machine.connections": lambda _: [
            LINK,
            DOOR,
            Connection(DOOR.local, ("10.0.0.2", 55555), "ESTABLISHED"),
        ]
    },
    "ticker": {"stores.ticker": lambda: _ticked(60)},
    "free space": {"machine.space": lambda: Space(10**12, 10**11 - 4096, 10**6, 10**6 - 1, False)},
}


def _ticked(ago: float) -> Ticker:
    """A scheduler of jobs that ran so many seconds ago, and succeeded now."""
    now = datetime.now(UTC)
    return Ticker(now - timedelta(seconds=ago), now)


def ask(changed: dict[str, Any] | None = None) -> dict[str, str]:
    """The marks of a healthy home with some other answers."""
    probes = SimpleNamespace(home=SimpleNamespace(path="/home"))
    for name, answer in (HEALTHY | (changed or {})).items():
        view, _, question = name.partition(".")
        if not hasattr(probes, view):
            setattr(probes, view, SimpleNamespace())
        setattr(getattr(probes, view), question, answer)
    marks: dict[str, str] = what_changed.ask(probes)  # type: ignore[arg-type]
    return marks


@pytest.mark.parametrize("name", CHANGES)
def test_a_change(name: str) -> None:
    """The question about it has another answer."""
    question, changed = CHANGES[name]
    before, after = ask(), ask(changed)
    assert question in {one for one in before if before[one] != after[one]}


@pytest.mark.parametrize("name", MOVING)
def test_what_is_always_moving(name: str) -> None:
    """A healthy gateway at work keeps all answers."""
    assert ask(MOVING[name]) == ask()


def test_a_database_that_is_locked() -> None:
    """How bad that is depends on the process, so the home is examined as long as it lasts."""
    lock = SimpleNamespace(pid=PID, path="/home/state.db", write=True)
    users = SimpleNamespace(open=[], locked=[lock])
    locked = {"databases.users": lambda: users}
    question = "users of databases"
    assert ask(locked)[question] != ask(locked)[question]


def test_no_text_of_the_home_is_kept() -> None:
    """The watch needs to know only whether an answer is another one."""
    assert all(len(mark) == 16 and int(mark, 16) >= 0 for mark in ask().values())


@pytest.mark.parametrize(
    ("owner", "lines", "new"),
    [
        (UNIT, ["a line"], True),
        (UNIT, [], False),
        (None, ["a line"], False),
        (UNIT._replace(kind="s6"), ["a line"], False),
    ],
)
def test_what_a_supervisor_keeps(
    owner: Unit | None, lines: list[str], new: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal and Docker are asked for lines since the last examination."""
    asked: list[float] = []

    def entries(_unit: object, span: Any, *_: object) -> Any:
        asked.append(span.since)
        return iter(lines)

    monkeypatch.setattr(stream, "unit_entries", entries)
    supervision: Callable[[], Any] = lambda: SimpleNamespace(owner=owner)  # noqa: E731
    probes: Any = SimpleNamespace(gateway=SimpleNamespace(supervision=supervision))
    assert what_changed.has_new_output(probes, 77.0) is new
    assert asked in ([77.0], []) and bool(asked) is (owner is UNIT)


def test_a_supervisor_that_does_not_answer() -> None:
    """Its silence is an answer to another question."""
    probes: Any = SimpleNamespace(gateway=SimpleNamespace(supervision=failing))
    assert what_changed.has_new_output(probes, 0.0) is False
