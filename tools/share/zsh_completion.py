"""Writes the completion for zsh: a function with `_arguments` for each command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tools.share.command_tree import FILE, FOLDER, NAMES, RUN, Argument, Command, Option, Value
from tools.share.word_lists import WordLists

_HEAD = """\
#compdef {names}
# Completion of hermes-doctor for zsh. Made from the commands; do not edit.
"""
_RUNS = """
_hermes_doctor_runs() {
  local -i at=${words[(I)--home]}
  local home=${HERMES_HOME:-$HOME/.hermes}
  ((at)) && home=${words[at + 1]/#\\~/$HOME}
  local -a found=($home/backups/doctor/runs/*(N/:t))
  compadd -a found
}
"""
_FUNCTION = """
{name}() {{
  _arguments -s -S \\
{specs}
}}
"""
_ARGUMENT = """\
        *)
          _arguments -s -S \\
{specs} && ret=0
          ;;"""
_GROUP = """
{name}() {{
  local curcontext="$curcontext" context state state_descr line
  local -i ret=1
  typeset -A opt_args
  local -a below=(
{commands}
  )
  _arguments -C -s \\
{specs} \\
    '1: :->command' \\
    '*:: :->rest' && ret=0
  case $state in
    command)
      _describe -t commands command below && ret=0
{first}      ;;
    rest)
      curcontext="${{curcontext%:*}}-$line[1]:"
      case $line[1] in
{cases}
      esac
      ;;
  esac
  return ret
}}
"""


def script(tree: Command) -> str:
    """Return the completion for all names of the program."""
    lists = WordLists(tree)
    parts = [_HEAD.format(names=" ".join(NAMES))]
    for name, words in lists.named.items():
        parts.append(
            f"\n_hermes_doctor_{name}() {{\n"
            f"  local -a found=({' '.join(words)})\n  compadd -a found\n}}\n"
        )
    parts.append(_RUNS)
    parts += [_function(one, lists) for one in [*tree.walk()][::-1]]
    return "".join([*parts, '\n_hermes_doctor "$@"\n'])


def _function(command: Command, lists: WordLists) -> str:
    specs = [spec for one in command.options for spec in _option(one, lists)]
    if command.commands:
        cases = [f"        {one.path[-1]}) {_name(one)} && ret=0 ;;" for one in command.commands]
        if command.arguments:  # the first word is an argument
            later = [*specs, *_arguments(command.arguments[1:], lists)]
            cases.append(_ARGUMENT.format(specs=_joined(later, 12)))
        return _GROUP.format(
            name=_name(command),
            commands="\n".join(
                f"    {_quoted(f'{one.path[-1]}:{_colons(one.summary)}')}"
                for one in command.commands
            ),
            specs=_joined(specs),
            first="".join(_first(command, lists)),
            cases="\n".join(cases),
        )
    specs += _arguments(command.arguments, lists)
    if command.runs_others:
        specs += [_quoted("(-)1:command: _command_names -e"), _quoted("*::argument:_normal")]
    return _FUNCTION.format(name=_name(command), specs=_joined(specs))


def _arguments(arguments: Sequence[Argument], lists: WordLists) -> Iterator[str]:
    for number, argument in enumerate(arguments, 1):
        place = "*" if argument.repeatable else str(number)
        name = _colons(argument.value.name.lower().replace("|", " or "))
        yield _quoted(f"{place}:{name}:{_action(argument.value, lists)}")


def _first(command: Command, lists: WordLists) -> Iterator[str]:
    """A line that also offers the argument of a group, where its commands are offered."""
    for argument in command.arguments[:1]:
        found = _action(argument.value, lists).strip()
        if found.startswith("("):
            found = f"compadd {found[1:-1]}"
        if found:
            yield f"      {found} && ret=0\n"


def _option(option: Option, lists: WordLists) -> Iterator[str]:
    others = "" if option.repeatable else f"({' '.join(option.names)})"
    many = "*" if option.repeatable else ""
    for name in option.names:
        text = option.summary_of(name).replace("[", "(").replace("]", ")")
        equals, value = "", ""
        if option.value is not None:
            equals = "=" if name.startswith("--") else "+"
            value = f":{_colons(option.value.name.lower())}:{_action(option.value, lists)}"
        yield _quoted(f"{others}{many}{name}{equals}[{text}]{value}")


def _action(value: Value, lists: WordLists) -> str:
    if value.kind == FOLDER:
        return "_files -/"
    if value.kind == FILE:
        return "_files"
    if value.kind == RUN:
        return "_hermes_doctor_runs"
    name = lists.name_of(value.words)
    if name is not None:
        return f"_hermes_doctor_{name}"
    return f"({' '.join(value.words)})" if value.words else " "


def _name(command: Command) -> str:
    return "_".join(("_hermes_doctor", *command.path)).replace("-", "_")


def _joined(specs: list[str], indent: int = 4) -> str:
    return " \\\n".join(f"{' ' * indent}{one}" for one in specs)


def _colons(text: str) -> str:
    return text.replace(":", "\\:")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
