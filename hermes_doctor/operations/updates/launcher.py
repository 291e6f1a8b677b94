"""Installs a `hermes` that is first on PATH and sends only updates to the guard.

It is a few lines of shell. Every other command is passed on with `exec`, so that arguments, exit
code and signals are those of the real one. Its variables have unusual names, because a variable
that exists in the environment would reach the real command changed. It has its own folder, so that
an update that rewrites the real launcher does not touch it.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

import hermes_doctor
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system import disk, privileges
from hermes_doctor.core.system.commands import ask
from hermes_doctor.core.system.files import read, user_home
from hermes_doctor.core.system.own_environment import refuse_cached
from hermes_doctor.hermes.installation.find import LAUNCHER

NAME = "hermes"
_FORM = """\
#!/bin/sh
# Written by hermes-doctor: guards `hermes update` with a backup and a check. Everything else goes
# straight to the real hermes. Remove it with: hermes-doctor hook remove
# Folders made for it: {made}
set -f
hd_here={here}
hd_home={home}
is_launcher() {{
  [ "$1" -ef "$0" ] || [ "$1" -ef "$hd_here/hermes" ] && return 0
  hd_line=
  {{
    IFS= read -r hd_line && [ "$hd_line" = "#!/bin/sh" ] && IFS= read -r hd_line
  }} 2>/dev/null <"$1"
  case $hd_line in "# Written by hermes-doctor: "*) return 0 ;; esac
  return 1
}}
hd_real=
hd_old_ifs=$IFS
IFS=:
for hd_folder in $PATH; do
  if [ -f "${{hd_folder:-.}}/hermes" ] && [ -x "${{hd_folder:-.}}/hermes" ]; then
    is_launcher "${{hd_folder:-.}}/hermes" && continue
    hd_real=${{hd_folder:-.}}/hermes
    break
  fi
done
IFS=$hd_old_ifs
if [ -z "$hd_real" ]; then
  echo "hermes: not found on PATH (hermes-doctor's launcher is, in $hd_here)" >&2
  exit 127
fi
hd_skip=
for hd_word in "$@"; do
  case $hd_skip:$hd_word in
    value:*) hd_skip= && continue ;;
    name:-* | more:-* | more:update) hd_skip= ;;
    name:* | more:*) hd_skip=more && continue ;;
  esac
  case $hd_word in
    -p | --profile | -m | --model | --provider | -z | --oneshot) hd_skip=value ;;
    -t | --toolsets | -s | --skills | --usage-file) hd_skip=value ;;
    -c | --continue | -r | --resume) hd_skip=name ;;
    -*) ;;
    update)
      case " $* " in
        *" --check "* | *" -h "* | *" --help "*) break ;;
      esac
      if [ -x {program} ] && [ -f {code} ]; then
        case " $* " in
          *" --gateway "*) hd_chat=--from-chat ;;
          *) hd_chat= && [ -n "${{HERMES_HOME:-}}" ] && hd_home= ;;  # typed, for that one
        esac
        exec {words} update-guard $hd_chat ${{hd_home:+--home "$hd_home"}} -- "$hd_real" "$@"
      fi
      echo "hermes: hermes-doctor is missing, so this update has no backup" >&2
      case " $* " in *" --gateway "*) exit 1 ;; esac
      break
      ;;
    profile | import)  # writes down which hermes is first on PATH: not one that may be removed
      hd_rest=
      IFS=:
      for hd_folder in $PATH; do
        [ -f "${{hd_folder:-.}}/hermes" ] && is_launcher "${{hd_folder:-.}}/hermes" && continue
        hd_rest=$hd_rest:$hd_folder
      done
      IFS=$hd_old_ifs
      PATH=${{hd_rest#:}}
      export PATH
      break
      ;;
    *) break ;;
  esac
done
exec "$hd_real" "$@"
"""


def folder() -> Path:
    """The launcher's folder, which contains nothing else."""
    named = os.environ.get("XDG_DATA_HOME", "")
    base = Path(named) if named.startswith("/") else user_home() / ".local" / "share"
    return base / "hermes-doctor" / "bin"


def script(folder_count: int = 0, here: Path | None = None, home: Path | None = None) -> str:
    """The launcher for this installation; one in another folder can be bound to one home."""
    program, code = command_files()
    return _FORM.format(
        here=shlex.quote(str(here or folder())),
        home=shlex.quote(str(home)) if home else "",
        program=shlex.quote(str(program)),
        code=shlex.quote(str(code)),
        words=shlex.join(command_words()),
        made=folder_count,
    )


def refuse_foreign_launcher() -> None:
    """Raise Trouble if a file that is not ours would be replaced."""
    path = folder() / NAME
    refuse_foreign_file(path)
    if os.path.lexists(path) and not is_ours(path):
        raise Trouble(
            "{path} was not written by hermes-doctor. Move it away, then try again. "
            "Nothing was changed.",
            path=path,
        )


def is_ours(path: Path) -> bool:
    """Whether any version of this tool wrote the file."""
    return not path.is_symlink() and LAUNCHER in (read_data(path) or b"")[:512]


def install(*, dry_run: bool = False) -> bool:
    """Install the launcher; return whether anything changed, or would change."""
    path = folder() / NAME
    if is_installed():
        return False
    refuse_uncallable()
    refuse_foreign_launcher()
    if dry_run:
        return True
    there = read_data(path)
    folder_count = (
        count_created_folders(there) if there is not None else count_missing_folders(path.parent)
    )
    disk.make_folder(path.parent)
    disk.save(path, script(folder_count).encode(), 0o755)
    return True


def remove() -> bool:
    """Remove the launcher and the folders that were created for it."""
    path = folder() / NAME
    if not is_ours(path):
        return False
    refuse_foreign_file(path)
    folder_count = count_created_folders(read_data(path) or b"")
    disk.remove(path)
    remove_folders([*path.parents][: max(folder_count, 2)])
    return True


def remove_folders(folders: Iterable[Path]) -> None:
    """Remove empty folders, deepest first, up to one that is not empty."""
    for place in folders:
        try:
            disk.remove_folder(place)
        except OSError:
            break


def is_installed() -> bool:
    """Whether the launcher is installed as this version writes it."""
    path = folder() / NAME
    content = read_data(path)
    return content == script(count_created_folders(content or b"")).encode() and is_executable(path)


def is_executable(path: Path) -> bool:
    """Whether its mode lets everybody execute it; the mount may still forbid it."""
    try:
        return os.stat(path).st_mode & 0o111 == 0o111
    except OSError:
        return False


def is_noexec(path: Path) -> bool:
    """Whether its mode allows execution but the mount does not (noexec)."""
    return is_executable(path) and not os.access(path, os.X_OK)


def is_from_other_version() -> bool:
    """Whether the launcher was written by another installation or version of this tool."""
    return not is_installed() and LAUNCHER in (read_data(folder() / NAME) or b"")


def count_missing_folders(folder: Path) -> int:
    """How many folders must be created for this one to exist."""
    return sum(not os.path.lexists(place) for place in (folder, *folder.parents))


def count_created_folders(data: bytes) -> int:
    """How many folders were created for a file, as recorded in it."""
    recorded = re.search(rb"^# Folders made for it: ([0-9]{1,2})$", data, re.MULTILINE)
    return int(recorded[1]) if recorded else 0


def is_first_on_path(path: str | None = None) -> bool:
    """Whether a shell with this PATH would run the launcher."""
    for place in (path if path is not None else os.environ.get("PATH", "")).split(":"):
        if os.access(Path(place or ".") / NAME, os.X_OK):
            return Path(place).absolute() == folder()
    return False


def read_data(path: Path) -> bytes | None:
    """The content of a small file; None if it cannot be read."""
    try:
        return read(path, 65536)[0]
    except (FileNotFoundError, CouldNotLook):
        return None


ANSWER_LIMIT = 60.0


def command_words() -> list[str]:
    """The command without arguments; it ignores PYTHONPATH, which is meant for Hermes."""
    return [sys.executable, "-E", "-P", "-m", "hermes_doctor"]


def command_files() -> tuple[Path, Path]:
    """The files that must exist for the command to work."""
    return Path(sys.executable), Path(hermes_doctor.__file__).parent / "__main__.py"


def refuse_uncallable() -> None:
    """Raise Trouble if this tool cannot be called later."""
    refuse_cached()
    program, code = command_files()
    if not os.access(program, os.X_OK) or not code.is_file():
        raise Trouble(
            "hermes-doctor runs from {folder}, where the hook could not find it "
            "later. Install it with pipx, uv tool or pip first. Nothing was changed.",
            folder=code.parent,
        )


def prove() -> None:
    """Raise Trouble unless the command works from another folder, without PYTHON variables."""
    refuse_uncallable()
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        works = ask(*command_words(), "--version", env=env, limit=ANSWER_LIMIT).code == 0
    except CouldNotLook:
        works = False
    if not works:
        raise Trouble(
            "{python} does not find hermes-doctor from another folder, so the hook "
            "could not call it later. Install it with pipx, uv tool or pip first. "
            "Nothing was changed.",
            python=sys.executable,
        )


def refuse_foreign_file(path: Path) -> None:
    """Raise Trouble if the file, or its target, does not belong to the effective user.

    `sudo -E` keeps another user's HOME: root would write to files that this user can replace.
    """
    real = Path(os.path.realpath(path))
    for place in (path, real):
        whose = privileges.of(place)
        if whose is not None:
            raise Trouble(
                "{folder} belongs to uid {uid}, not to root, so {path} was not changed. "
                "Run this as that user, or with root's own HOME (sudo -H).",
                folder=whose.folder,
                uid=whose.uid,
                path=path,
            )
        if os.path.lexists(place) and os.lstat(place).st_uid != os.geteuid():
            raise Trouble(
                "{path} belongs to uid {uid}, not to you, so it was not changed.",
                path=path,
                uid=os.lstat(place).st_uid,
            )
