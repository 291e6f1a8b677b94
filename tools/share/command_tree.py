"""The commands with their options and arguments, as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from typer import Context
from typer.main import get_command

from hermes_doctor.cli.commands import app

NAME = "hermes-doctor"
NAMES = (NAME, "hermes-gateway-doctor")
"""The scripts in pyproject.toml; all are the same program."""
FOLDER, FILE, TEXT, RUN = "folder", "file", "text", "run"
_FOLDERS = {"DIR"}
"""Names of values that are folders."""
_FEW = 5
"""So many words no longer fit into a line of usage."""


@dataclass(frozen=True)
class Value:
    """What an option or an argument takes: one of some words, a folder, a file, a run, any text."""

    kind: str
    name: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Option:
    """An option, by all its names, short ones first; without a value it is a switch."""

    names: tuple[str, ...]
    value: Value | None
    repeatable: bool
    help: str
    """What it does, with its default."""
    off: str | None = None
    """The one of its names that switches it off, such as `--no-heal` of `--heal`."""

    @property
    def on(self) -> tuple[str, ...]:
        """Its names without the one that switches it off."""
        return tuple(name for name in self.names if name != self.off)

    @property
    def summary(self) -> str:
        """The first sentence, for menus."""
        first, stop, _ = self.help.partition(". ")
        return first if stop else self.help.partition(" [default")[0].rstrip(".")

    def summary_of(self, name: str) -> str:
        """The text for one of its names in a menu."""
        return f"Switch off {self.on[-1]}" if name == self.off else self.summary


@dataclass(frozen=True)
class Argument:
    """An argument; a repeatable one takes all further words."""

    value: Value
    repeatable: bool
    required: bool
    help: str

    @property
    def shown(self) -> str:
        """The argument in a line of usage."""
        name = self.value.name if self.required else f"[{self.value.name}]"
        return f"{name}..." if self.repeatable else name


@dataclass(frozen=True)
class Command:
    """A command or a group of commands; its path has no words for the program itself."""

    path: tuple[str, ...]
    summary: str
    epilog: str
    options: tuple[Option, ...]
    arguments: tuple[Argument, ...]
    commands: tuple[Command, ...]
    callable: bool
    """Whether it can be called without the name of a command below it."""
    runs_others: bool
    """Whether the words after `--` are a command of their own."""

    @property
    def usage(self) -> tuple[str, ...]:
        """The words after the path in a line of usage."""
        words = ["[OPTIONS]", *(one.shown for one in self.arguments)]
        if self.commands:
            words += ["[COMMAND]" if self.callable else "COMMAND", "[ARGS]..."]
        return (*words, *(["--", "COMMAND..."] if self.runs_others else []))

    def walk(self) -> Iterator[Command]:
        """Yield this command and all commands below it."""
        yield self
        for one in self.commands:
            yield from one.walk()


def read() -> Command:
    """Return the program with all its commands, without hidden ones."""
    return _command(get_command(app), (), None)


def _command(command: Any, path: tuple[str, ...], above: Context | None) -> Command:
    name = path[-1] if path else NAME
    ctx = Context(command, parent=above, info_name=name, **command.context_settings)
    shown = [one for one in command.get_params(ctx) if not getattr(one, "hidden", False)]
    options = [one for one in shown if one.param_type_name == "option"]
    arguments = [one for one in shown if one.param_type_name == "argument"]
    below = {key: one for key, one in getattr(command, "commands", {}).items() if not one.hidden}
    return Command(
        path,
        command.get_short_help_str(limit=200),
        command.epilog or "",
        tuple(_option(one, ctx) for one in options),
        tuple(_argument(one, ctx) for one in arguments),
        tuple(_command(one, (*path, key), ctx) for key, one in below.items()),
        not below or command.invoke_without_command,
        bool(ctx.allow_extra_args and not below),
    )


def _option(param: Any, ctx: Context) -> Option:
    names = tuple(sorted((*param.opts, *param.secondary_opts), key=lambda name: (len(name), name)))
    value = None if param.is_flag else _value(param, ctx)
    off = param.secondary_opts[0] if param.secondary_opts else None
    return Option(names, value, bool(param.multiple), _text(param), off)


def _argument(param: Any, ctx: Context) -> Argument:
    return Argument(_value(param, ctx), param.nargs == -1, bool(param.required), _text(param))


def _value(param: Any, ctx: Context) -> Value:
    if param.name == RUN:  # the shell lists those of the user's home
        return Value(RUN, "RUN")
    words = tuple(one.value for one in param.shell_complete(ctx, "") if one.type == "plain")
    choice = "|".join(words) if param.param_type_name == "argument" and len(words) < _FEW else ""
    name = _without_brackets(param.metavar or "") or choice
    if "path" in param.type.name:
        name = name or "FILE"
        return Value(FOLDER if name in _FOLDERS else FILE, name)
    plain = param.name.rstrip("s").upper() if param.param_type_name == "argument" else "TEXT"
    return Value(TEXT, name or plain, words)


def _without_brackets(metavar: str) -> str:
    """The name of a value, without what marks it as optional or repeatable."""
    name = metavar.rstrip(". ")
    return name[1:-1] if name.startswith("[") and name.endswith("]") else name


def _text(param: Any) -> str:
    """The help with the default, worded the same by each release of typer."""
    text = " ".join((param.help or "").split())
    default = param.show_default if isinstance(param.show_default, str) else param.default
    if param.secondary_opts:
        default = param.opts[0] if default else param.secondary_opts[0]
    if isinstance(default, bool) or default in (None, 0, "", [], ()) or "[default" in text:
        return text
    return f"{text} [default: {getattr(default, 'value', default)}]"
