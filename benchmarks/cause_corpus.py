"""Make log entries whose place and cause are known, for judging what reads them.

Every logging call of a release that shows an error or its traceback is filled with real errors,
which `benchmarks.real_errors` raised with the libraries of that release. The place follows from the
call, the cause from what was raised. One in five calls and one in five errors are held out, by a
hash of what they are: nobody looks at them while writing what reads the log.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.true_places import PLATFORMS, Platform, TruePlace, true_place
from hermes_doctor.core.home import Home
from hermes_doctor.hermes.knowledge.logging_calls import LoggingCall, calls_of, pieces
from hermes_doctor.hermes.knowledge.releases import load_knowledge
from hermes_doctor.hermes.logs.entry import LogEntry
from hermes_doctor.hermes.logs.stream import read
from tests.helpers import support
from tools import releases

ROOT = Path(__file__).parents[1]
SHOWN_LEVELS = ("WARNING", "ERROR", "CRITICAL")
FIRST = datetime(2026, 11, 15, tzinfo=UTC).timestamp()
LOADED_AS_PACKAGES = tuple(
    f"plugins/{kind}/" for kind in ("memory", "context_engine", "cron_providers", "model-providers")
)
"""Plugins that keep the name of their package."""
LAST_PACKAGED = releases.ALL[-1]
"""The release whose libraries those after it use."""


class RealError(NamedTuple):
    """An error that was raised."""

    causes: frozenset[str]
    """What it may be called; empty if it is no problem, such as a cancelled task."""
    vague: frozenset[str]
    """What it may be called, too, where no traceback shows the number of the error."""
    name: str
    type: str
    types: frozenset[str]
    text: str
    traceback: str

    @property
    def held_out(self) -> bool:
        """Whether nobody may look at how it was read."""
        return is_held_out(f"error {self.name}")


class Made(NamedTuple):
    """A log entry, and what is true about it."""

    lines: str
    call: LoggingCall
    error: RealError
    place: TruePlace
    causes: frozenset[str]
    held_out: bool


def is_held_out(what: str) -> bool:
    """Tell whether something is in the fifth that is held out, on every machine the same."""
    return hashlib.sha256(what.encode()).digest()[0] % 5 == 0


@cache
def real_errors(version: str) -> tuple[tuple[RealError, ...], tuple[str, ...]]:
    """Raise all errors with the libraries of a release; also what could not be raised."""
    python = releases.python_of(version if version in releases.ALL else LAST_PACKAGED)
    apart = ["unshare", "--net", "--mount"]
    if os.geteuid():
        apart.append("--map-root-user")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        command = [*apart, str(python), "-m", "benchmarks.real_errors", folder]
        environ = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "HOME": folder}
        done = subprocess.run(
            command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=300
        )
    if done.returncode:
        raise RuntimeError(f"no errors of {version}: {done.stderr.strip()[-500:]}")
    found, lost = json.loads(done.stdout)
    seen: dict[tuple[str, str], RealError] = {}
    for one in found:
        error = _real_error(one)
        seen.setdefault((error.type, re.sub(r"\d", "0", error.text)), error)
    return tuple(seen.values()), tuple(lost)


def _real_error(said: dict[str, Any]) -> RealError:
    causes, _, vague = said["cause"].partition("~")
    return RealError(
        frozenset(causes.split("|")) - {""},
        frozenset(vague.split("|")) - {""},
        said["name"],
        said["type"],
        frozenset(said["types"]),
        said["text"],
        said["traceback"],
    )


def corpus(version: str, seed: int, per_call: int) -> Iterator[Made]:
    """Yield the entries of a release."""
    errors, _ = real_errors(version)
    number = 0
    for call in calls_of(version):
        if call.level not in SHOWN_LEVELS or not (call.error or call.traceback):
            continue
        fitting = [one for one in errors if fits(call, one)]
        chance = random.Random(f"{seed} {call.file} {call.function} {call.template}")
        for error in chance.sample(fitting, min(per_call, len(fitting))):
            if made := fill(call, error, number, chance):
                number += 1
                yield made


def fits(call: LoggingCall, error: RealError) -> bool:
    """Tell whether the handler around a call can catch an error."""
    if not call.caught:
        return "Exception" in error.types
    caught = call.caught.split()
    return any({name, name.rpartition(".")[2]} & error.types for name in caught)


def fill(call: LoggingCall, error: RealError, number: int, chance: random.Random) -> Made | None:
    """Return the entry that a call writes about an error; None if it would not show the error."""
    platform = chance.choice(PLATFORMS)
    place = true_place(call.file, platform if about_platform(call) else "", call.template)
    if call.logger in ("", "root"):
        place = place._replace(parts=place.parts | {"gateway"})  # its name says nothing
    own = next((one for one in PLATFORMS if one.id == place.platform), platform)
    if place.platform and own.id != place.platform:
        own = Platform(place.platform, place.platform.replace("_", " ").title())
    texts, names = pieces(call.template)
    said, shown = texts[0], False
    for name, text in zip(names, texts[1:], strict=True):
        value = _error_value(name, call.error, error)
        shown = shown or (value is not None and bool(error.text) and error.text in value)
        said += (_value(name, own.id, own.name, chance) if value is None else value) + text
    if not shown and not call.traceback:
        return None
    more = f"\n{_traceback(call, error)}" if call.traceback else ""
    at = datetime.fromtimestamp(FIRST + number, UTC)
    head = f"{at:%Y-%m-%d %H:%M:%S},000 {call.level} {logger_of(call)}: "
    causes = error.causes | (frozenset() if "Errno " in more else error.vague)
    held_out = error.held_out or is_held_out(f"{call.file} {call.function} {call.template}")
    return Made(f"{head}{said}{more}\n", call, error, place, causes, held_out)


def logger_of(call: LoggingCall) -> str:
    """Return the name that a call's logger has in a gateway, which loads most plugins itself."""
    if not call.logger:
        return "root"
    for folder, name in load_knowledge("logging_calls")["plugins"].items():
        module = folder.replace("/", ".")
        if not folder.startswith(LOADED_AS_PACKAGES) and f"{call.logger}.".startswith(f"{module}."):
            own = name if "/platforms/" in folder else folder.removeprefix("plugins/")
            slug = own.replace("/", "__").replace("-", "_")
            return f"hermes_plugins.{slug}{call.logger.removeprefix(module)}"
    return call.logger


def about_platform(call: LoggingCall) -> bool:
    """Tell whether the message names the platform that it is about."""
    _, names = pieces(call.template)
    return any(re.search(r"(?i)\bplatform\b|self\.name\b|adapter\.name", one) for one in names)


def _error_value(slot: str, expression: str, error: RealError) -> str | None:
    """Return what an error puts into a slot; None if the slot is about something else."""
    if not expression or not re.search(rf"(?<![\w.]){re.escape(expression)}\b", slot):
        return None
    if "type(" in slot or "__name__" in slot:
        return error.type
    if re.search(rf"{re.escape(expression)}[.]\w", slot):
        return "1"
    length = re.search(r"\[:(\d+)\]", slot)
    return error.text[: int(length[1])] if length else error.text


_VALUES = (
    (r"__name__", "RuntimeError"),
    (r"count|len|attempt|retries|num|delay|second|timeout|size|max|limit", "3"),
    (r"\bpid|port|code|status|\bn\b|\bi\b", "3"),
    (r"path|file|dir|home|dest|src", "/home/hermes/.hermes/made/up"),
    (r"url|endpoint|host", "made-up.example"),
    (r"model", "made-up-model"),
    (r"provider", "openrouter"),
)  # fmt: skip


def _value(slot: str, platform: str, display: str, chance: random.Random) -> str:
    if re.search(r"self\.name\b|adapter\.name|display|label", slot):
        return display
    if re.search(r"(?i)platform", slot):
        return platform
    for pattern, value in _VALUES:
        if re.search(pattern, slot, re.IGNORECASE):
            return value
    return f"made{chance.randrange(100, 999)}"


_OUR_FRAME = re.compile(r'  File "[^"]*/benchmarks/[^"]*".*\n(?:    .*\n)*')
"""The part of a traceback in this benchmark, which no gateway has."""


def _traceback(call: LoggingCall, error: RealError) -> str:
    """Return the traceback of an error that passed through the function of the call."""
    function = call.function.rpartition(".")[2] or "<module>"
    frame = f'  File "/usr/local/lib/hermes-agent/{call.file}", line 100, in {function}\n'
    text = _OUR_FRAME.sub("", error.traceback).rstrip()
    begin = "Traceback (most recent call last):\n"
    place = text.rfind(begin)
    if place < 0:
        return f"{begin}{frame}{text}"
    return text[: place + len(begin)] + frame + text[place + len(begin) :]


def entries(made: Sequence[Made], folder: Path) -> list[LogEntry]:
    """Write entries into a log of a home and return what the reader of logs makes of them."""
    home = support.healthy(folder / "home")
    for path in (home / "logs").iterdir():
        path.unlink()
    (home / "logs" / "errors.log").write_text("".join(one.lines for one in made))
    found = list(read(Home(home), since=0, max_bytes=None, whole=True, wanted=None))
    if len(found) != len(made):
        sys.exit(f"{len(made)} entries were written, {len(found)} were read")
    return found
