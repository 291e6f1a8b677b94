"""Parses the options of five commands without typer, which is slow to load.

Only unambiguous options are parsed here. Everything else (help, a mistake, a short form) is left to
typer, which parses all of it again; a test compares the tables with the commands' declarations.

With typer instead, `check` takes 53 ms more CPU: 438 ms instead of 385 ms, on a used home beside a
running gateway (`benchmarks/trees.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from hermes_doctor.core.lazy import NamedTuple

Make = Callable[[str], Any]


class OptionTable(NamedTuple):
    """The options of a command, by the names of the parameters of `run` in its module."""

    command: tuple[str, ...]
    module: str
    switches: frozenset[str]
    single: Mapping[str, Make]
    repeated: Mapping[str, Make]
    argument: str | None = None
    """The one word that the command needs."""


SHORT = {"-v": "verbose"}
"""Short forms that are often typed."""
CHECK = OptionTable(
    ("check",),
    "check_run",
    frozenset({"all_homes", "json", "deep", "network", "verbose", "record", "force"}),
    {"home": Path, "fail_on": str, "format": str, "output": Path},
    {"only": str, "skip": str, "plugins": Path},
)
CREATE = OptionTable(
    ("backup", "create"),
    "backup_create",
    frozenset({"full", "json"}),
    {"home": Path, "vault": Path, "reason": str},
    {"include": str, "exclude": str},
)
EXPLAIN = OptionTable(
    ("explain",), "explain_run", frozenset(), {}, {"plugins": Path}, argument="code"
)
WATCH = OptionTable(
    ("watch",),
    "watch_run",
    frozenset({"once", "heal", "json", "network"}),
    {
        **{"home": Path, "vault": Path, "interval": str, "budget": str, "patience": str},
        **{"notify_on": str, "notify_command": str, "notify_webhook": str, "notify_hermes": str},
        **{"fail_on": str, "metrics": Path, "heartbeat": str, "heartbeat_fail": str},
    },
    {"also": str, "only": str, "skip": str, "plugins": Path},
)
PROBE = OptionTable(("probe",), "probe_run", frozenset(), {"home": Path}, {}, argument="question")
TABLES = (CHECK, CREATE, EXPLAIN, PROBE, WATCH)


def parse(words: Sequence[str]) -> Callable[[], int] | None:
    """Return the command that these words call; None if typer must parse them."""
    for table in TABLES:
        asked = of(table, words)
        if asked is not None:
            return partial(import_module(f"hermes_doctor.cli.{table.module}").run, **asked)
    return None


def of(table: OptionTable, words: Sequence[str]) -> dict[str, Any] | None:
    """Parse the options of the table's command; None if it is another or typer must parse it."""
    length = len(table.command)
    if tuple(words[:length]) != table.command:
        return None
    asked: dict[str, Any] = {}
    rest = iter(words[length:])
    for word in rest:
        if word in SHORT and SHORT[word] in table.switches:
            asked[SHORT[word]] = True
            continue
        if table.argument and table.argument not in asked and word[:1] not in ("", "-"):
            asked[table.argument] = word
            continue
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--").replace("-", "_")
        if flag != f"--{name.replace('_', '-')}":
            return None
        if name in table.switches and not equals:
            asked[name] = True
            continue
        value = value if equals else next(rest, "")
        if not value or value.startswith("-"):
            return None
        if name in table.single:
            asked[name] = table.single[name](value)
        elif name in table.repeated:
            asked.setdefault(name, []).append(table.repeated[name](value))
        else:
            return None
    return None if table.argument and table.argument not in asked else asked
