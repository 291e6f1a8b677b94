"""Let real shells complete lines, with our files and with nothing of the user's."""

from __future__ import annotations

import atexit
import fcntl
import functools
import os
import pty
import select
import shutil
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.helpers import support
from tools.share.files import files

NAMES = ("hermes-doctor", "hermes-gateway-doctor")
LIMIT = 30.0
_BASH = r"""
. "$SHARE/bash-completion/completions/$NAME"
while IFS= read -r line; do
  read -ra COMP_WORDS <<<"${line//=/ = }"
  [[ $line == *[[:space:]=] ]] && COMP_WORDS+=("")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _hermes_doctor
  printf '%s\t' "${COMPREPLY[@]}"
  printf '\n'
done
"""
_FISH = r"""
while read -l -d \n line
    for one in (complete -C "$line")
        printf '%s\t' (string split -f 1 \t -- $one)
    end
    echo
end
"""
_ZSH = r"""
fpath=($SHARE/zsh/site-functions $fpath)
autoload -Uz compinit
compinit -D -u
PROMPT=
LISTMAX=10000  # or it asks before it shows many words
zstyle ':completion:*' insert-tab false
zstyle ':completion:*' menu no
setopt no_beep no_list_beep list_ambiguous
compprefuncs=(before)
comppostfuncs=(after)
before() { : >$HITS }
after() { compprefuncs=(before) comppostfuncs=(after); print done >>$HITS; zle -U $'\C-u' }
compadd() {
  local -a hits
  if [[ " ${@[1,(i)(-|--)]} " == *\ -(O|A|D)\ * ]]; then
    builtin compadd "$@"
    return
  fi
  builtin compadd -O hits "$@"
  (($#hits)) && print -rl -- $hits >>$HITS
  builtin compadd "$@"
}
print ready >$HITS
"""


@functools.cache
def share() -> Path:
    """Return a folder with the man page and the completions, as an installation has them."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, text in files().items():
        support.put(folder / name, text)
    return folder


def environment(folder: Path, name: str = "hermes-doctor", **more: str) -> dict[str, str]:
    """Variables with which no Python is found, and programs of our names that leave a trace."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for program in NAMES:
        support.put(tools / program, "#!/bin/sh\n: >~/started\n", 0o755)
    for program in ("cat", "ls", "uname"):
        if not (tools / program).is_symlink():
            (tools / program).symlink_to(Path("/bin") / program)
    known = {"PATH": str(tools), "HOME": str(folder), "LANG": "C.UTF-8", "TERM": "dumb"}
    return {**known, "SHARE": str(share()), "NAME": name, "XDG_DATA_DIRS": str(share()), **more}


def bash(lines: Sequence[str], folder: Path, name: str = "hermes-doctor") -> list[set[str]]:
    """What bash offers at the end of each line."""
    return _piped(["/bin/bash", "--norc", "-c", _BASH], lines, folder, name)


def fish(lines: Sequence[str], folder: Path, name: str = "hermes-doctor") -> list[set[str]]:
    """What fish offers at the end of each line."""
    return _piped(["/usr/bin/fish", "-c", _FISH], lines, folder, name)


def _piped(command: Sequence[str], lines: Sequence[str], folder: Path, name: str) -> list[set[str]]:
    done = subprocess.run(
        command,
        input="".join(f"{line}\n" for line in lines),
        env=environment(folder, name),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.stderr == ""
    return [{word for word in line.split("\t") if word} for line in done.stdout.splitlines()]


def zsh(lines: Sequence[str], folder: Path, name: str = "hermes-doctor") -> list[set[str]]:
    """What zsh offers at the end of each line that is typed."""
    hits = folder / "hits"
    found = []
    with tempfile.NamedTemporaryFile("w", suffix=".zsh") as script:
        script.write(_ZSH)
        script.flush()
        with Terminal(["/usr/bin/zsh", "-f", "-i"], folder, name, HITS=str(hits)) as terminal:
            terminal.type(f". {script.name}\n")
            terminal.wait(lambda: hits.exists() and hits.read_text() == "ready\n")
            for line in lines:
                hits.write_text("")
                terminal.type(f"{line}\t")
                terminal.wait(lambda: hits.read_text().endswith("done\n"))
                found.append(set(hits.read_text().splitlines()) - {"done"})
    return found


class Terminal:
    """A shell on a terminal."""

    def __init__(self, command: Sequence[str], folder: Path, name: str, **more: str) -> None:
        """Start it."""
        self.seen = b""
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        self._process = subprocess.Popen(
            command,
            env=environment(folder, name, **more),
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def __enter__(self) -> Terminal:
        """Use it."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the shell."""
        self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def type(self, text: str) -> None:
        """Type some keys."""
        os.write(self._ours, text.encode())

    def wait(self, until: Callable[[], bool]) -> None:
        """Read what it shows until something is true."""
        end = time.monotonic() + LIMIT
        while not until():
            assert time.monotonic() < end, self.seen.decode(errors="replace")[-2000:]
            if select.select([self._ours], [], [], 0.01)[0]:
                self.seen += os.read(self._ours, 65536)
