"""Writes the man page: what the help of each command says, and what holds for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import wrap

from hermes_doctor import __version__
from hermes_doctor.cli.front_page import PURPOSE
from tools.share.command_tree import NAME, NAMES, Command, Option

_WIDE = 78
"""Columns of the source."""
_SCREEN = 73
"""Columns that man leaves for text, of 80."""
_DESCRIPTION = (
    "{name} examines the home of Hermes Agent, says whether its bot answers people, why not, and "
    "what to type. Then it repairs what is broken. It also works if Hermes is too broken to start.",
    "Looking changes nothing: `check` writes no file and waits for no lock. Repairing loses "
    "nothing: `fix --apply` backs up each file before it changes it, checks the result, and `undo` "
    "restores the old files byte for byte.",
    "The home is the folder of `--home`, or of the variable HERMES_HOME, or of `home` in "
    "config.toml, or `~/.hermes`, or `/opt/data`, whichever is set or exists first.",
)
_FILES = {
    "~/.hermes": "The home, unless `--home`, HERMES_HOME or config.toml names another folder.",
    "HOME/backups/doctor/": "Backups and the receipts of repairs in a home, unless `--vault`, "
    "HERMES_DOCTOR_VAULT or config.toml names another folder for backups. Only the owner can read "
    "them.",
    "/etc/hermes-doctor/config.toml": "Settings for all users.",
    "~/.config/hermes-doctor/config.toml": "Settings of one user; they come before those for all "
    "users. `settings` shows what applies.",
    "~/.config/hermes-doctor/mutes.json": "What `mute` muted. Mutes of root are in "
    "`/etc/hermes-doctor/` and count for all users.",
    "~/.local/state/hermes-doctor/": "What a watch remembers between its checks.",
    "~/.local/state/hermes-doctor/history.db": "What `history` shows; a watch and `check --record` "
    "write it.",
    "/var/lib/hermes-doctor-watch-*/": "The same for a watch that is a system service.",
    "~/.local/share/hermes-doctor/bin/": "The launcher that `hook install` puts first on PATH.",
    "~/.local/share/hermes-doctor/learned/": "What `learn` asked a new release of Hermes.",
    "PREFIX/share/hermes-doctor/prometheus-alerts.yml": "Alerts for Prometheus. PREFIX is the "
    "environment that the program is installed in.",
}
_ENVIRONMENT = {
    "HERMES_HOME": "The home, if `--home` is not given.",
    "HERMES_DOCTOR_FAIL_ON": "From this severity on, `check` exits with 1, if `--fail-on` is not "
    "given.",
    "HERMES_DOCTOR_LANGUAGE": "The language of texts; so far, there is only `en`.",
    "HERMES_DOCTOR_PLUGINS": "Folders of plugins, separated by colons, if `--plugins` is not "
    "given.",
    "HERMES_DOCTOR_VAULT": "The folder for backups, if `--vault` is not given.",
    "XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_DATA_HOME": "Use these folders instead of `~/.config`, "
    "`~/.local/state` and `~/.local/share`.",
    "NO_COLOR": "If it is set and not empty, the output has no colours.",
    "COLUMNS": "The width of the output, if it is not that of the terminal.",
    "TMPDIR": "The folder for temporary files.",
}
_SEE_ALSO = (
    ("systemd.timer", "5"),
    ("crontab", "5"),
    ("age", "1"),
    ("restic", "1"),
    ("rsync", "1"),
)


def page(tree: Command) -> str:
    """Return the page as roff, with the macros of man(7)."""
    return "".join(f"{part}\n" for line in _lines(tree) for part in _wrapped(line))


def other() -> str:
    """Return the page for another name of the program: a reference to the page."""
    return f".so man1/{NAME}.1\n"


def _lines(tree: Command) -> Iterator[str]:
    yield r".\" Written from the help of the commands when the package is built. Do not edit."
    yield f'.TH {NAME.upper()} 1 "" "{NAME} {__version__}" "User Commands"'
    yield from (".nh", ".ad l")
    yield ".SH NAME"
    yield f"{', '.join(map(_plain, NAMES))} \\- {_plain(PURPOSE[0].lower() + PURPOSE[1:-1])}"
    yield ".SH SYNOPSIS"
    for number, command in enumerate((tree, *tree.commands)):
        yield from [".br"] if number else []
        yield _usage(command)
    yield ".SH DESCRIPTION"
    for number, text in enumerate(_DESCRIPTION):
        yield from [".PP"] if number else []
        yield _text(text.format(name=NAME))
    yield ".SH OPTIONS"
    yield _text("Each command also has the option `--help`.")
    yield from _options(tree.options)
    yield ".SH COMMANDS"
    for command in [*tree.walk()][1:]:
        yield from _command(command)
    sections = dict(_sections(tree.epilog))
    yield ".SH EXIT STATUS"
    yield from exit_codes(sections["Exit codes"])
    yield _text("The commands above name what differs.")
    yield ".SH FILES"
    yield from _table(_FILES)
    yield ".SH ENVIRONMENT"
    yield from _table(_ENVIRONMENT)
    yield ".SH EXAMPLES"
    yield from as_typed(sections["Start here"])
    yield ".SH SEE ALSO"
    places = [f".BR {name} ({section})" for name, section in _SEE_ALSO]
    yield from [f"{one} ," for one in places[:-1]]
    yield places[-1]


def _usage(command: Command) -> str:
    words = [f"\\fI{_plain(one)}\\fR" if one[0].isupper() else _plain(one) for one in command.usage]
    return " ".join((f"\\fB{_plain(' '.join((NAME, *command.path)))}\\fR", *words))


def _command(command: Command) -> Iterator[str]:
    yield f".SS {_plain(' '.join(command.path))}"
    yield _usage(command)
    yield ".PP"
    yield _text(command.summary)
    for argument in command.arguments:
        yield ".TP"
        yield f"\\fI{_plain(argument.value.name)}\\fR"
        yield _text(argument.help)
    yield from _options(command.options)
    for title, lines in _sections(command.epilog):
        yield ".PP"
        yield f"{_plain(title)}:"
        yield from as_typed(lines)


def _options(options: tuple[Option, ...]) -> Iterator[str]:
    for option in options:
        if "--help" in option.names:
            continue
        names = ", ".join(f"\\fB{_plain(name)}\\fR" for name in option.names)
        yield ".TP"
        yield f"{names} \\fI{_plain(option.value.name)}\\fR" if option.value else names
        yield _text(_help(option))


def _help(option: Option) -> str:
    """What an option does; one that can be switched off says how before its default."""
    if option.off is None:
        return option.help
    text, default, value = option.help.partition(" [default")
    return f"{text} `{option.off}` switches it off.{default}{value}"


def _sections(epilog: str) -> Iterator[tuple[str, list[str]]]:
    """The titles of an epilog with the lines below them."""
    for part in re.split(r"\n\s*\n", epilog.replace("\b\n", "").strip("\n")):
        title, *lines = part.splitlines()
        if title:
            yield title.rstrip(":"), [line.removeprefix("  ") for line in lines]


def exit_codes(lines: list[str]) -> Iterator[str]:
    """The exit codes of a help text, each with its meaning as a sentence."""
    for line in lines:
        code, _, meaning = line.partition(" ")
        meaning = meaning.strip()
        yield from (".TP", f"\\fB{code}\\fR", _text(f"{meaning[:1].upper()}{meaning[1:]}."))
    yield ".PP"


def _table(rows: dict[str, str]) -> Iterator[str]:
    for name, text in rows.items():
        yield from (".TP", f"\\fI{_plain(name)}\\fR", _text(text))


def as_typed(lines: list[str]) -> Iterator[str]:
    """Lines that keep their breaks and spaces."""
    yield ".nf"
    for line in lines:
        for part in wrap(line, _SCREEN, subsequent_indent="    ", break_on_hyphens=False) or [""]:
            yield _start(_plain(part))
    yield ".fi"


def _text(text: str) -> str:
    """A sentence; words between backticks are bold."""
    parts = _plain(text).split("\\(ga")
    marked = [f"\\fB{one}\\fR" if number % 2 else one for number, one in enumerate(parts)]
    return _start("".join(marked))


def _plain(text: str) -> str:
    """Text as roff prints it unchanged."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    text = text.replace("`", "\\(ga").replace("~", "\\(ti").replace("^", "\\(ha")
    return "".join(one if ord(one) < 128 else f"\\[u{ord(one):04X}]" for one in text)


def _wrapped(line: str) -> list[str]:
    """A line of a paragraph as several short ones; roff joins them."""
    if len(line) <= _WIDE or line.startswith((".", "'")) or "  " in line or line.count("\\f") % 2:
        return [line]
    parts = wrap(line, _WIDE, break_long_words=False, break_on_hyphens=False)
    return [_start(part) for part in parts]


def _start(line: str) -> str:
    """A line that roff does not take for a request."""
    return f"\\&{line}" if line.startswith((".", "'")) else line
