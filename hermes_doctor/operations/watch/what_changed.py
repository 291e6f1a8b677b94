"""Tells what has changed in a home since it was examined, at a fraction of the cost of that.

Nothing has changed if all of this is true:

- each file and folder at which the examination looked is as it was, also each missing one
  (`core/system/remembered_files.py`);
- the questions about processes, connections and free space have the same answers, reduced to what
  the checks judge, so that they stay the same while a healthy gateway works;
- the supervisor has kept no new line of the gateway's output;
- no line of a log has become so old that it counts in another way;
- the examination was less than `FULL_EVERY` seconds ago, because some things show no other sign.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import cached_calls, remembered_files
from hermes_doctor.diagnosis.probes.links import STUCK
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.logs import stream
from hermes_doctor.hermes.logs.entry import LogWindow
from hermes_doctor.hermes.processes.process_stat import ProcessDetails
from hermes_doctor.hermes.processes.sockets import Connection

_WHAT = "changes of the home"
LIMIT = 10.0
"""Seconds for the whole question, as on an idle machine."""
FULL_EVERY = 300.0
"""Seconds after which the home is examined although nothing seems to have changed."""


class Examined(NamedTuple):
    """What an examination depended on."""

    began: float
    """When it began, by the wall clock."""
    monotonic: float
    """The same by the monotonic clock."""
    until: float
    """The moment from which on the same files may mean something else."""
    paths: dict[str, remembered_files.State]
    facts: dict[str, str]


class Look:
    """A look at a home in the process of a round; it may become an examination."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._began, self._monotonic = time.time(), time.monotonic()
        self._facts: dict[str, str] = {}
        self._recorder: remembered_files.Recorder | None = None

    def change_since(self, last: Examined | None) -> str | None:
        """Return what has changed since an examination; None if nothing has."""
        try:
            self._facts, change = cached_calls.limited(
                _WHAT, LIMIT, lambda: self._facts_and_change(last)
            )
        except CouldNotLook as why:  # the examination finds out where the disk does not answer
            return str(why)
        return change

    def _facts_and_change(self, last: Examined | None) -> tuple[dict[str, str], str | None]:
        cached_calls.enter(cached_calls.WatchedThread())  # no probe needs a thread of its own
        probes = Probes(self._home, paid_requests=False)
        facts = ask(probes)
        return facts, self._change_since(last, probes, facts)

    def _change_since(
        self, last: Examined | None, probes: Probes, facts: dict[str, str]
    ) -> str | None:
        if last is None or self._monotonic - last.monotonic >= FULL_EVERY:
            return "time for a full examination"
        if not last.began <= self._began < last.until:
            return "age of the log lines"
        for name, answer in facts.items():
            if last.facts.get(name) != answer:
                return name
        if path := remembered_files.find_change(last.paths):
            return path
        return "output of the gateway" if has_new_output(probes, last.began) else None

    def record(self) -> None:
        """Record what the examination looks at that begins now."""
        self._recorder = remembered_files.record()

    def examined(self) -> Examined | None:
        """Return what the examination depended on; None if that is not known.

        What changed while it went on may have been examined before or after its change.
        """
        recorder = self._recorder
        if recorder is None or not recorder.is_complete() or not self._facts:
            return None
        try:
            now, _ = cached_calls.limited(_WHAT, LIMIT, lambda: self._facts_and_change(None))
        except CouldNotLook:
            return None
        if now != self._facts:
            return None
        return Examined(self._began, self._monotonic, recorder.until, recorder.states, self._facts)


_QUIET = (180.0, 360.0)
"""Seconds after which a platform's connection counts as dead (`quiet_after` of platforms.json)."""
_TICKER_SILENT = timedelta(seconds=300)
_INODES = (2, 16, 1000, 50_000)
_SCARCE = 0.03


def ask(probes: Probes) -> dict[str, str]:
    """Return the answer to each question, shortened so that the watch keeps no text of a home."""
    marks = {}
    for name, question in _QUESTIONS.items():
        try:
            answer = question(probes)
        except CouldNotLook as why:
            answer = str(why)
        packed = repr(answer).encode(errors="replace")
        marks[name] = hashlib.blake2b(packed, digest_size=8).hexdigest()
    return marks


def has_new_output(probes: Probes, since: float) -> bool:
    """Whether the journal or Docker has got a line for the gateway since that moment."""
    try:
        owner = probes.gateway.supervision().owner
    except CouldNotLook:
        return False
    if owner is None or not stream.is_asked(owner):
        return False
    lines = stream.unit_entries(owner, LogWindow(since), stream.QUICK, lambda _: None)
    return next(lines, None) is not None


def _gateways(probes: Probes) -> object:
    """The processes of this home's gateways."""
    return [_of_process(probes.machine.vitals(gateway.pid)) for gateway in probes.gateway.running()]


def _of_process(vitals: ProcessDetails) -> object:
    """The state of a process, and how close it is to its limits, in steps."""
    used, limit = vitals.memory_used, vitals.memory_limit
    files, most = vitals.files, vitals.files_limit
    kinds = vitals.kinds or {}
    return (
        (
            vitals.pid,
            vitals.start_time,
            vitals.halted,
            vitals.doing == "Z",
            vitals.uid,
            vitals.deleted,
        ),
        (vitals.memory.bit_length(), int(20 * used / limit) if used and limit else None),
        (int(100 * files / most) if files and most else files is None),
        sorted((name, (count - 1) // 20) for name, count in kinds.items() if name.endswith(".db")),
        "gateway.lock" in kinds,
    )


def _connections(probes: Probes) -> object:
    """Where the gateways listen, whom they called, and which of these connections are dead.

    Who calls them is left out: monitors and webhooks come and go.
    """
    answers = []
    for gateway in probes.gateway.running():
        connections = probes.machine.connections(gateway.pid)
        doors = {connection.local[1] for connection in connections if connection.state == "LISTEN"}
        judged = [one for one in connections if one.state == "LISTEN" or one.local[1] not in doors]
        counts = Counter(_of_connection(connection) for connection in judged)
        answers.append(sorted((what, (count - 1) // 10) for what, count in counts.items()))
    return answers


def _of_connection(connection: Connection) -> tuple[object, ...]:
    dead = connection.unsent > 0 and (connection.silent or 0.0) >= STUCK
    quiet = sum((connection.quiet or 0.0) > limit for limit in _QUIET)
    return (
        str(connection.remote or connection.local),
        connection.state,
        dead,
        quiet,
        connection.remote is None and connection.unread,
    )


def _pulse(probes: Probes) -> object:
    """Whether the event loop runs, as its heartbeat and its API server show."""
    pulse = probes.health.pulse()
    return pulse.pid, pulse.running, pulse.certain, pulse.halted, pulse.answer


def _ticker(probes: Probes) -> object:
    """Whether the scheduler of jobs has been silent for too long."""
    now = datetime.now(UTC)
    return [at and now - at > _TICKER_SILENT for at in probes.stores.ticker()]


def _users_of_databases(probes: Probes) -> object:
    """Who has databases open or locked, also deleted ones.

    While one is locked for writing, no answer is like another: how bad that is depends on what the
    process does that holds the lock.
    """
    users = probes.databases.users()
    locks = sorted({(lock.pid, str(lock.path)) for lock in users.locked if lock.write})
    return (
        sorted(
            {
                (open_file.pid, str(open_file.path), open_file.deleted, open_file.identity)
                for open_file in users.open
            }
        ),
        locks,
        time.monotonic() if locks else None,
    )


def _space(probes: Probes) -> object:
    """The free space in steps: a power of two, and the other limits of the check."""
    room = probes.machine.space()
    return (
        (room.read_only, room.free.bit_length(), room.free < room.total * _SCARCE),
        [room.inodes_free < limit for limit in (*_INODES, room.inodes * _SCARCE)],
    )


_QUESTIONS: dict[str, Callable[[Probes], object]] = {
    "gateways": _gateways,
    "supervisor": lambda probes: probes.gateway.supervision(),
    "holder of the lock": lambda probes: probes.gateway.runtime().lock_holder,
    "connections": _connections,
    "event loop": _pulse,
    "scheduler of jobs": _ticker,
    "users of databases": _users_of_databases,
    "processes left behind": lambda probes: probes.gateway.orphans(),
    "processes killed for memory": lambda probes: probes.machine.memory_kills(),
    "free space": _space,
    "mount of the home": lambda probes: probes.machine.mount(probes.home.path),
    "time zone": lambda _: time.localtime()[-2:],
}
