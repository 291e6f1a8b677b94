"""Writes the completion for fish: one line for each command, option and argument."""

from __future__ import annotations

from collections.abc import Iterator

from tools.share.command_tree import FILE, FOLDER, NAME, NAMES, RUN, Command, Value
from tools.share.word_lists import WordLists

_HEAD = """\
# Completion of hermes-doctor for fish. Made from the commands; do not edit.

# Prints the command that the words before the cursor lead to, the number of its arguments so far,
# and whether `--` was there.
function __hermes_doctor_place
    set -l at
    set -l count 0
    set -l skip 0
    set -l words (commandline -opc)
    for word in $words[2..-1]
        if test $skip = 1
            set skip 0
        else if test "$word" = --
            printf '%s\\n' "$at" $count foreign
            return
        else if string match -q -- '-*' $word
            contains -- "$at $word" $__hermes_doctor_values; and set skip 1
        else if contains -- (string trim -- "$at $word") $__hermes_doctor_commands
            set at (string trim -- "$at $word")
            set count 0
        else
            set count (math $count + 1)
        end
    end
    printf '%s\\n' "$at" $count own
end

# Succeeds at this command, and at this argument of it if there is a number.
function __hermes_doctor_at
    set -l place (__hermes_doctor_place)
    test "$place[3]" = own; and test "$place[1]" = "$argv[1]"; or return 1
    test (count $argv) -lt 2; or test "$place[2]" = "$argv[2]"
end

# Succeeds after the `--` of this command.
function __hermes_doctor_after
    set -l place (__hermes_doctor_place)
    test "$place[3]" = foreign; and test "$place[1]" = "$argv[1]"
end

# Prints the runs of the home.
function __hermes_doctor_runs
    set -l home $HERMES_HOME
    test -n "$home"; or set home $HOME/.hermes
    set -l words (commandline -opc)
    set -l at (contains -i -- --home $words)
    and set home (string replace -r '^~' $HOME -- $words[(math $at + 1)])
    for path in $home/backups/doctor/runs/*/
        string replace -r '.*/([^/]+)/$' '$1' -- $path
    end
end

# Completes the command after `--`.
function __hermes_doctor_foreign
    set -l words (commandline -opc)
    set -l start (math (contains -i -- -- $words) + 1)
    complete -C (string join ' ' -- (string escape -- $words[$start..-1]) (commandline -ct))
end

"""


def script(tree: Command) -> str:
    """Return the completion for the first name of the program."""
    lists = WordLists(tree)
    commands = [_quoted(" ".join(one.path)) for one in tree.walk() if one.path]
    values = [
        _quoted(f"{' '.join(one.path)} {name}")
        for one in tree.walk()
        for option in one.options
        if option.value is not None
        for name in option.names
    ]
    variables = [f"set -g __hermes_doctor_{name} {' '.join(w)}" for name, w in lists.named.items()]
    lines = [
        f"set -g __hermes_doctor_commands {' '.join(commands)}",
        f"set -g __hermes_doctor_values {' '.join(values)}",
        *variables,
        "",
        f"complete -c {NAME} -f",
    ]
    for command in tree.walk():
        lines += ["", *_lines(command, lists)]
    return _HEAD + "\n".join(lines) + "\n"


def other(name: str) -> str:
    """Return the completion for another name of the program."""
    assert name in NAMES
    return (
        f"# Completion of {name} for fish. Made from the commands; do not edit.\n"
        f"complete -c {name} -w {NAME}\n"
    )


def _lines(command: Command, lists: WordLists) -> Iterator[str]:
    path = " ".join(command.path)
    here = f"complete -c {NAME} -n {_quoted(f'__hermes_doctor_at {_double(path)}')}"
    first = f"complete -c {NAME} -n {_quoted(f'__hermes_doctor_at {_double(path)} 0')}"
    for one in command.commands:
        yield f"{first} -a {one.path[-1]} -d {_quoted(one.summary.rstrip('.'))}"
    for option in command.options:
        names = " ".join(
            f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.on
        )
        value = f" {_value(option.value, lists)}" if option.value else ""
        yield f"{here} {names}{value} -d {_quoted(option.summary)}"
        if option.off:
            yield f"{here} -l {option.off[2:]} -d {_quoted(option.summary_of(option.off))}"
    for number, argument in enumerate(command.arguments):
        if argument.value.words or argument.value.kind in (FOLDER, FILE, RUN):
            place = f"{_double(path)}" + ("" if argument.repeatable else f" {number}")
            condition = _quoted(f"__hermes_doctor_at {place}")
            yield f"complete -c {NAME} -n {condition} {_value(argument.value, lists, '')}"
    if command.runs_others:
        condition = _quoted(f"__hermes_doctor_after {_double(path)}")
        yield f"complete -c {NAME} -n {condition} -xa '(__hermes_doctor_foreign)'"


def _value(value: Value, lists: WordLists, needed: str = "x") -> str:
    if value.kind == FOLDER:
        return f"-{needed}a '(__fish_complete_directories)'"
    if value.kind == FILE:
        return "-rF"
    if value.kind == RUN:
        return f"-{needed}a '(__hermes_doctor_runs)'"
    name = lists.name_of(value.words)
    if name is not None:
        return f"-{needed}a '$__hermes_doctor_{name}'"
    return f"-{needed}a '{' '.join(value.words)}'" if value.words else "-x"


def _double(text: str) -> str:
    return f'"{text}"'


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
