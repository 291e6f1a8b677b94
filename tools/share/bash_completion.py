"""Writes the completion for bash: tables of the commands, and a function that reads them."""

from __future__ import annotations

from collections.abc import Iterator

from tools.share.command_tree import FILE, FOLDER, NAMES, RUN, Command, Value
from tools.share.word_lists import WordLists

_HEAD = """\
# Completion of hermes-doctor for bash. Made from the commands; do not edit.
"""
_READER = r"""
# Sets `kind` and `choices` for the value of an option ($2) of a command ($1).
# Fails if the option takes no value.
_hermes_doctor_value() {
  kind=text choices=
  case "$1 $2" in
@values@
    *) return 1 ;;
  esac
}

# Sets `kind` and `choices` for the argument number $2 of a command ($1).
_hermes_doctor_argument() {
  kind=text choices=
  case "$1 $2" in
@arguments@
  esac
}

# Sets `commands` and `options` of a command ($1).
_hermes_doctor_command() {
  commands= options=
  case "$1" in
@commands@
  esac
}

_hermes_doctor() {
  local IFS=$' \t\n'
  local cur=${COMP_WORDS[COMP_CWORD]} at= option= word rest=
  local commands options kind choices
  local -i number=1 count=0 foreign=0
  _hermes_doctor_command ''
  for ((number = 1; number < COMP_CWORD; number++)); do
    word=${COMP_WORDS[number]}
    if ((foreign)); then
      foreign+=1
    elif [[ $word == = && -n $option ]]; then
      continue
    elif [[ -n $option ]]; then
      option=
    elif [[ $word == -- ]]; then
      foreign=1
    elif [[ $word == -* ]]; then
      _hermes_doctor_value "$at" "$word" && option=$word
    elif [[ " $commands " == *" $word "* ]]; then
      at=${at:+$at }$word count=0
      _hermes_doctor_command "$at"
    else
      count+=1
    fi
  done
  COMPREPLY=()
  if [[ $cur == = && -n $option ]]; then
    cur=
  elif [[ $cur == --*=* ]]; then  # where "=" does not separate words
    option=${cur%%=*} rest=${cur%%=*}= cur=${cur#*=}
  fi
  if ((foreign)); then
    case "$at" in @foreign@) ;; *) return ;; esac
    kind=file choices=
    ((foreign == 1)) && kind=command
  elif [[ -n $option ]]; then
    _hermes_doctor_value "$at" "$option" || return
  elif [[ $cur == -* ]]; then
    kind=text choices=$options
  else
    _hermes_doctor_argument "$at" "$count"
    choices="$commands $choices"
  fi
  case $kind in
    folder | file | command)
      local action=-f line
      [[ $kind == folder ]] && action=-d
      [[ $kind == command ]] && action=-c
      [[ $kind != command ]] && compopt -o filenames 2>/dev/null
      while IFS= read -r line; do
        COMPREPLY+=("$rest$line")
      done < <(compgen "$action" -- "$cur")
      ;;
    run)
      local home=${HERMES_HOME:-$HOME/.hermes} path
      for ((number = 1; number < COMP_CWORD; number++)); do
        [[ ${COMP_WORDS[number]} == --home ]] && home=${COMP_WORDS[number + 1]/#\~/$HOME}
      done
      for path in "$home"/backups/doctor/runs/*/; do
        path=${path%/} path=${path##*/}
        [[ $path == "$cur"* && $path != '*' ]] && COMPREPLY+=("$path")
      done
      ;;
    *)
      for word in $(compgen -W "$choices" -- "$cur"); do
        COMPREPLY+=("$rest$word")
      done
      ;;
  esac
}

complete -F _hermes_doctor @names@
"""


def script(tree: Command) -> str:
    """Return the completion for all names of the program."""
    lists = WordLists(tree)
    variables = "".join(
        f"_hermes_doctor_{name}='{' '.join(words)}'\n" for name, words in lists.named.items()
    )
    foreign = [_key(one.path) for one in tree.walk() if one.runs_others]
    body = (
        _READER.replace("@values@", "\n".join(_values(tree, lists)))
        .replace("@arguments@", "\n".join(_arguments(tree, lists)))
        .replace("@commands@", "\n".join(_commands(tree)))
        .replace("@foreign@", " | ".join(foreign) or "''")
        .replace("@names@", " ".join(NAMES))
    )
    return f"{_HEAD}\n{variables}{body}"


def _values(tree: Command, lists: WordLists) -> Iterator[str]:
    for command in tree.walk():
        for option in command.options:
            if option.value is not None:
                keys = [_key((*command.path, name), bool(command.path)) for name in option.names]
                yield f"    {' | '.join(keys)}) {_found(option.value, lists)} ;;"


def _arguments(tree: Command, lists: WordLists) -> Iterator[str]:
    for command in tree.walk():
        for number, argument in enumerate(command.arguments):
            if argument.value.words or argument.value.kind != "text":
                key = _key((*command.path, str(number)))
                if argument.repeatable:
                    key = f"{_key(command.path)}' '*"
                yield f"    {key}) {_found(argument.value, lists)} ;;"


def _commands(tree: Command) -> Iterator[str]:
    for command in tree.walk():
        below = " ".join(one.path[-1] for one in command.commands)
        options = " ".join(name for one in command.options for name in one.names)
        yield f"    {_key(command.path)}) commands='{below}' options='{options}' ;;"


def _found(value: Value, lists: WordLists) -> str:
    if value.kind in (FOLDER, FILE, RUN):
        return f"kind={value.kind}"
    name = lists.name_of(value.words)
    if name is not None:
        return f"choices=$_hermes_doctor_{name}"
    return f"choices='{' '.join(value.words)}'" if value.words else ":"


def _key(words: tuple[str, ...], below: bool = True) -> str:
    """The words as a pattern; an option of the program itself has an empty word before it."""
    return f"'{' '.join(words if below else ('', *words))}'"
