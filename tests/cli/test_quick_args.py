"""The words of commands mean the same with and without typer."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pytest
from typer.main import get_command

from hermes_doctor.cli import quick_args
from hermes_doctor.cli.commands import app

CHECK: tuple[list[str], ...] = (
    [],
    ["--json"],
    ["--deep", "--network", "--all-homes", "--json"],
    ["--home", "/srv/a b", "--fail-on", "warning"],
    ["--home=/srv/x", "--home=/srv/y"],
    ["--only=databases", "--only", "ENV-BOM", "--skip", "secrets"],
    ["--plugins", "one", "--plugins=two", "--deep"],
    ["--home=a=b"],
    ["--record", "--all-homes"],
)
CREATE: tuple[list[str], ...] = (
    [],
    ["--json", "--full"],
    ["--home", "/srv/a b", "--vault=/mnt/disk", "--reason", "before it"],
    ["--include", "logs", "--exclude=sessions/*", "--exclude", "*.jsonl"],
)
EXPLAIN = (
    ["GW-DOWN"],
    ["gw-down", "--plugins", "one", "--plugins=two"],
    ["--plugins", "one", "GW-DOWN"],
)
PROBE: tuple[list[str], ...] = (["live"], ["ready", "--home", "/srv/a b"], ["--home=x", "started"])
WATCH: tuple[list[str], ...] = (
    [],
    ["--once", "--json", "--network", "--heal"],
    ["--once", "--home", "/srv/a b", "--fail-on=warning", "--vault", "/mnt/disk"],
    ["--metrics", "out.prom", "--heartbeat", "https://a/b", "--heartbeat-fail=https://a/c"],
    ["--interval", "5m", "--budget=3/30m", "--patience", "1m", "--also", "reset-gateway"],
    ["--notify-on=info", "--notify-command", "mail me", "--notify-webhook", "@/etc/hook"],
    ["--notify-hermes=telegram:1", "--only", "databases", "--skip=secrets", "--plugins", "one"],
)
CLEAR = [
    (table, given)
    for table, each in zip(quick_args.TABLES, (CHECK, CREATE, EXPLAIN, PROBE, WATCH), strict=True)
    for given in each
]
TYPERS = (
    ["--help"],
    ["-h"],
    ["--jso"],
    ["--json=yes"],
    ["--all_homes"],
    ["--home"],
    ["--home", ""],
    ["--home", "--json"],
    ["--only", "-x"],
    ["--", "--json"],
    ["--no-such-option"],
    ["---json"],
    ["--"],
    [""],
)


def declared(table: quick_args.OptionTable) -> Any:
    """The command as typer has it."""
    found: Any = get_command(app)
    for name in table.command:
        found = found.commands[name]
    return found


@pytest.mark.parametrize(("table", "given"), CLEAR)
def test_same(table: quick_args.OptionTable, given: list[str]) -> None:
    """What is read here is what typer would have read."""
    run = import_module(f"hermes_doctor.cli.{table.module}").run
    parameters = inspect.signature(run).parameters
    defaults = {name: one.default for name, one in parameters.items()}

    asked = quick_args.of(table, [*table.command, *given])

    assert asked is not None
    theirs = declared(table).make_context("it", list(given)).params
    for name, make in table.single.items():  # it makes paths of words only when it calls
        theirs[name] = make(theirs[name]) if theirs[name] else None
    for name, make in table.repeated.items():
        theirs[name] = [make(one) for one in theirs[name] or ()] or None
    known = {*table.switches, *table.single, *table.repeated, *filter(None, [table.argument])}
    read = dict.fromkeys(known) | defaults | asked  # what `run` does not declare has no value
    assert {name: read[name] for name in known} == {name: theirs[name] for name in known}
    unread = {name: value for name, value in theirs.items() if name not in known and value}
    assert unread == {name: defaults[name] for name in unread}


@pytest.mark.parametrize("table", quick_args.TABLES)
@pytest.mark.parametrize("given", TYPERS, ids=" ".join)
def test_left_to_typer(table: quick_args.OptionTable, given: list[str]) -> None:
    """Help, mistakes and whatever is not plain are not decided here."""
    assert quick_args.of(table, [*table.command, *given]) is None


def test_argument() -> None:
    """A command that needs a word gets exactly one, wherever it is."""
    assert quick_args.of(quick_args.EXPLAIN, ["explain"]) is None
    assert quick_args.of(quick_args.EXPLAIN, ["explain", "--plugins", "one"]) is None
    assert quick_args.of(quick_args.EXPLAIN, ["explain", "A", "B"]) is None
    for table in (quick_args.CHECK, quick_args.CREATE, quick_args.WATCH):
        assert quick_args.of(table, [*table.command, "now"]) is None


@pytest.mark.parametrize("table", quick_args.TABLES)
@pytest.mark.parametrize(
    "given", [[], ["fix"], ["backup"], ["--version"], ["--json", "check"]], ids=" ".join
)
def test_other_commands(table: quick_args.OptionTable, given: list[str]) -> None:
    """Nor are other commands."""
    assert quick_args.of(table, given) is None


@pytest.mark.parametrize("table", quick_args.TABLES)
def test_table(table: quick_args.OptionTable) -> None:
    """A table has nothing that its command does not declare, and leaves few options to typer."""
    options = [one for one in declared(table).params if one.name not in ("help", table.argument)]
    several = {one.name for one in options if one.multiple}
    switches = {one.name for one in options if one.is_flag}
    single = {one.name for one in options} - several - switches

    assert switches == table.switches
    assert {*table.single} <= single
    assert {*table.repeated} <= several
    if table is not quick_args.CREATE:
        assert several == {*table.repeated}
        assert single - {*table.single} <= {"after"}, "a number that typer checks"
    read = {*table.switches, *table.single, *table.repeated}
    short = {name: form for form, name in quick_args.SHORT.items()}
    assert all(
        one.opts == [f"--{one.name.replace('_', '-')}", *filter(None, [short.get(one.name)])]
        for one in options
        if one.name in read
    )
