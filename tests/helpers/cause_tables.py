"""A small reader of causes and places for tests of log rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hermes_doctor.core.lazy import EMPTY
from hermes_doctor.diagnosis.plugins.log_causes.cause_index import Cause
from hermes_doctor.diagnosis.plugins.log_causes.reading import Place, Reader, Reading, Success
from hermes_doctor.diagnosis.plugins.log_causes.tables import Tables
from hermes_doctor.hermes.logs.entry import LogEntry

TELEGRAM = Place("platform", "telegram", "Telegram")
MODEL = Place("model", "model", "the model")
JOBS = Place("cron", "scheduled jobs", "scheduled jobs")
PORT = Cause(
    *("port-in-use", "machine", 20, "GW-PORT-IN-USE"),
    title="port {port} is already in use | a port is already in use",
    advice="Stop the program that uses it.",
)
DNS = Cause(
    *("name-not-resolved", "network", 41, "NET-DNS", ["QQ-DNS"]),
    title="the server name cannot be resolved",
    advice="Test the name server.",
    transient=True,
)
REFUSED = Cause(
    *("login-refused", "login", 45, "PROVIDER-401", ["TG-BAD-TOKEN"]),
    title="the login was refused",
    advice="Replace the key.",
)
TIMED_OUT = Cause(
    *("timed-out", "time", 90, "PLATFORM-TIMEOUT"), title="it took too long", transient=True
)
FULL = Cause(
    *("disk-full", "machine", 5, "DISK-FULL"),
    title="the disk is full",
    advice="Free space.",
    severity="critical",
    lines=2,
    unless_ok=["disk-space"],
    fix="free-space",
)
TOOLS = Place("tools", "tools", "tools")
CAUSES = [PORT, DNS, REFUSED, TIMED_OUT, FULL]
_WORDS = {"port": PORT, "dns": DNS, "401": REFUSED, "timed out": TIMED_OUT, "no space": FULL}
_PLACES = {"telegram": TELEGRAM, "model": MODEL, "cron": JOBS, "tools": TOOLS}


class SmallReader(Reader):
    """Reads `connect: dns`: an operation and a cause; the logger is the place."""

    causes: Sequence[Cause] = CAUSES

    def __init__(self) -> None:
        super().__init__(Tables())

    def cause_of(
        self, text: str, more: Sequence[str] = ()
    ) -> tuple[Cause | None, Mapping[str, str]]:
        """Return the cause that a text names."""
        rest = "\n".join((text.partition(": ")[2], *more))
        return next((one for words, one in _WORDS.items() if words in rest), None), EMPTY

    def place_of(self, entry: LogEntry) -> Place | None:
        """Return the place that an entry is about."""
        return next((one for name, one in _PLACES.items() if name in entry.text), None)

    def read(self, entry: LogEntry) -> Reading:
        """Return what an entry says."""
        operation, _, rest = entry.text.partition(": ")
        cause = next((one for words, one in _WORDS.items() if words in rest), None)
        fields = {"port": rest.split()[1]} if rest.startswith("port ") else EMPTY
        outcome = "given up" if "gave up" in entry.text else ""
        return Reading(_PLACES.get(entry.logger), operation, cause, fields, outcome, operation)

    def successes(self, entry: LogEntry) -> Sequence[Success]:
        """Return what works again: `ok connect`."""
        place = _PLACES.get(entry.logger)
        if place is None or not entry.text.startswith("ok"):
            return ()
        return [Success(place, entry.text.split()[1:])]

    def may_succeed(self, level: str, logger: str) -> bool:
        """Tell whether entries could show that something works."""
        return level == "INFO" and logger in _PLACES
