"""A small reader of causes and places for tests of log rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hermes_doctor.lazy import EMPTY
from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.plugins.log_causes.cause import Cause
from hermes_doctor.plugins.log_causes.reading import Place, Reading
from hermes_doctor.plugins.log_causes.success_reader import Success

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
CAUSES = [PORT, DNS, REFUSED, TIMED_OUT]
_WORDS = {"port": PORT, "dns": DNS, "401": REFUSED, "timed out": TIMED_OUT}
_PLACES = {"telegram": TELEGRAM, "model": MODEL, "cron": JOBS}


class SmallReader:
    """Reads `connect: dns`: an operation and a cause; the logger is the place."""

    causes: Sequence[Cause] = CAUSES

    def cause_of(
        self, text: str, more: Sequence[str] = ()
    ) -> tuple[Cause | None, Mapping[str, str]]:
        """Return the cause that a text names."""
        rest = "\n".join((text.partition(": ")[2], *more))
        return next((one for words, one in _WORDS.items() if words in rest), None), EMPTY

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
