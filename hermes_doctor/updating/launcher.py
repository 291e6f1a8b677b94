"""A `hermes` that stands before the real one on PATH and turns only updates to the guard.

It is a few lines of shell: every other command is handed on by `exec`, so that arguments, exit
code and signals are those of the real one. It lies in a folder of its own, so that an update that
writes the real launcher anew does not touch it.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from hermes_doctor import durable
from hermes_doctor.files import read, user_home
from hermes_doctor.model import CouldNotLook

NAME = "hermes"
_FORM = """\
#!/bin/sh
# Written by hermes-doctor: an update gets a backup before and a check after it. All else goes
# straight to the real hermes. Remove it with: hermes-doctor hook remove
here={here}
real=
old_ifs=$IFS
IFS=:
for folder in $PATH; do
  [ "${{folder%/}}" = "$here" ] && continue
  if [ -f "${{folder:-.}}/hermes" ] && [ -x "${{folder:-.}}/hermes" ]; then
    real=${{folder:-.}}/hermes
    break
  fi
done
IFS=$old_ifs
if [ -z "$real" ]; then
  echo "hermes: not found on PATH (hermes-doctor's launcher is, in $here)" >&2
  exit 127
fi
if [ -z "${{HERMES_DOCTOR_UPDATE:-}}" ]; then
  skip=
  for word in "$@"; do
    if [ -n "$skip" ]; then
      skip=
      continue
    fi
    case $word in
      -p | --profile) skip=1 ;;
      -*) ;;
      update)
        case " $* " in
          *" --check "* | *" -h "* | *" --help "*) break ;;
        esac
        if [ -x {doctor} ]; then
          exec {doctor} update-guard -- "$real" "$@"
        fi
        echo "hermes: {shown} is gone, so this update has no backup" >&2
        break
        ;;
      *) break ;;
    esac
  done
fi
exec "$real" "$@"
"""


def folder() -> Path:
    """Where the launcher lies: a folder with nothing else in it."""
    named = os.environ.get("XDG_DATA_HOME", "")
    base = Path(named) if named.startswith("/") else user_home() / ".local" / "share"
    return base / "hermes-doctor" / "bin"


def text() -> str:
    """The launcher for this installation of the tool."""
    doctor = Path(sys.executable).parent / "hermes-doctor"
    return _FORM.format(
        here=shlex.quote(str(folder())), doctor=shlex.quote(str(doctor)), shown=str(doctor)
    )


def install() -> bool:
    """Write it; whether that took anything."""
    path = folder() / NAME
    wanted = text().encode()
    if _data(path) == wanted and os.access(path, os.X_OK):
        return False
    durable.make_folder(path.parent)
    durable.save(path, wanted)
    durable.set_mode(path, 0o755)
    return True


def remove() -> bool:
    """Take it and its folder away."""
    path = folder() / NAME
    if not os.path.lexists(path):
        return False
    durable.remove(path)
    for one in (path.parent, path.parent.parent):
        try:
            os.rmdir(one)
        except OSError:
            break
    return True


def is_there() -> bool:
    """Whether it lies there as this tool would write it."""
    path = folder() / NAME
    return _data(path) == text().encode() and os.access(path, os.X_OK)


def is_first(path: str | None = None) -> bool:
    """Whether it is what a shell with this PATH would run."""
    for one in (path if path is not None else os.environ.get("PATH", "")).split(":"):
        if os.access(Path(one or ".") / NAME, os.X_OK):
            return Path(one).absolute() == folder()
    return False


def _data(path: Path) -> bytes | None:
    try:
        return read(path, 65536)[0]
    except (FileNotFoundError, CouldNotLook):
        return None
