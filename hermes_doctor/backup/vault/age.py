"""Run `age`, which encrypts and decrypts archives, with the keys that the operator has named.

`age` reads a passphrase only from a terminal, so that it is never in an argument or a variable,
where others can read it. For a passphrase from a file, a pseudo-terminal types it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import stat
import subprocess
import termios
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any

from hermes_doctor.backup.vault import blocks
from hermes_doctor.backup.vault.engines import find_program
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system import disk, limits, privileges
from hermes_doctor.core.system.files import read

SUFFIX = ".tar.age"
_AGE = b"age-encryption.org/"
_ARMOUR = b"-----BEGIN AGE"


class ArchiveKeys(NamedTuple):
    """The keys or passphrase that encrypt or decrypt an archive."""

    recipients: Sequence[str] = ()
    """Public keys; `@FILE` is a file with public keys."""
    passphrase: bool = False
    passphrase_file: Path | None = None
    identity: Path | None = None
    """The file with the private key; only age reads it."""

    def encrypt_arguments(self) -> list[str]:
        """The arguments for age to encrypt."""
        words = ["-e"]
        for recipient in self.recipients:
            words += ["-R", recipient[1:]] if recipient.startswith("@") else ["-r", recipient]
        return [*words, "-p"] if self.passphrase else words

    def decrypt_arguments(self) -> list[str]:
        """The arguments for age to decrypt."""
        return ["-d", *(["-i", str(self.identity)] if self.identity else [])]


class NamedCopy(NamedTuple):
    """A copy of a home that the operator has named, with the keys to it; perhaps a backup's id."""

    name: str
    keys: ArchiveKeys = ArchiveKeys()
    kind: str = ""
    """archive, zip or snapshot, if root has opened it for a process of the home's owner."""
    mtime_ns: int = 0
    """When it was written, if root has opened it."""

    @property
    def path(self) -> Path:
        """The name as a path."""
        return Path(self.name)


class PlainContent(NamedTuple):
    """What age has decrypted."""

    stream: IO[bytes]
    blame: Callable[[], object]
    """Waits for age, and raises Trouble with its message if it failed."""


@contextmanager
def new_archive(target: Path) -> Iterator[int]:
    """Yield an open file, which gets its name if the context ends without an error."""
    if os.path.lexists(target):
        raise Trouble(
            "{target} already exists. Nothing was written. Choose another file.", target=target
        )
    temp = disk.temporary(target)
    try:
        with disk.new_file(temp) as fd:
            yield fd
        disk.rename(temp, target)
        disk.sync_folder(target.parent)
    except OSError as error:
        disk.remove(temp)
        why = os.strerror(error.errno or 0).lower()
        raise Trouble("Could not write {target} ({reason}).", target=target, reason=why) from None
    except BaseException:
        disk.remove(temp)
        raise


def is_archive(path: Path) -> bool:
    """Whether a file is encrypted by age, judged by its first bytes."""
    try:
        with blocks.open_as_owner(path) as fd:
            return is_open_archive(fd)
    except (OSError, CouldNotLook):
        return False


def is_open_archive(fd: int) -> bool:
    """Whether an open file is encrypted by age."""
    return os.pread(fd, 64, 0).startswith((_AGE, _ARMOUR))


@contextmanager
def run(
    words: Sequence[str],
    lock: ArchiveKeys,
    *,
    stdin: int | None = None,
    stdout: int | None = None,
    new: bool = False,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run age; raise Trouble with its error message if it fails."""
    command = find_program("age")
    with (
        contextlib.ExitStack() as opened,
        terminal_for(lock.passphrase_file, new=new) as terminal,
    ):
        words, key_files = _opened_keys(words, opened)
        with limits.lifted():
            age = subprocess.Popen(
                [command, *words],
                pass_fds=key_files,
                stdin=subprocess.PIPE if stdin is None else stdin,
                stdout=subprocess.PIPE if stdout is None else stdout,
                stderr=subprocess.PIPE,
                **terminal.options,
            )
        with terminal.answer_prompts():
            try:
                yield age
            except BaseException:
                age.kill()
                with contextlib.suppress(Trouble):
                    blame(age)
                raise
            blame(age)


def _opened_keys(words: Sequence[str], opened: contextlib.ExitStack) -> tuple[list[str], list[int]]:
    """Open key files in folders of other users as these users: a link could lead root elsewhere."""
    named, fds = [*words], []
    for at, option in enumerate(words[:-1]):
        path = Path(words[at + 1])
        if option not in ("-i", "-R") or privileges.of(path.absolute()) is None:
            continue
        try:
            fds.append(opened.enter_context(blocks.open_as_owner(path.absolute())))
        except (OSError, CouldNotLook):
            raise Trouble("Could not read the key file {path}.", path=path) from None
        named[at + 1] = f"/dev/fd/{fds[-1]}"
    return named, fds


def encrypting(
    lock: ArchiveKeys, *, stdout: int, stdin: int | None = None
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """Run age to encrypt; raise Trouble if the operator named keys and a passphrase."""
    if lock.passphrase and lock.recipients:
        raise Trouble("Encrypt to keys or with a passphrase, not both. Nothing was written.")
    return run(lock.encrypt_arguments(), lock, stdin=stdin, stdout=stdout, new=True)


@contextmanager
def decrypting(source: int, lock: ArchiveKeys) -> Iterator[PlainContent]:
    """Run age to decrypt an open file."""
    with run(lock.decrypt_arguments(), lock, stdin=source) as process:
        assert process.stdout is not None
        yield PlainContent(process.stdout, lambda: blame(process))


def blame(age: subprocess.Popen[bytes]) -> None:
    """Wait for age; raise Trouble with its error message if it failed."""
    for stream in (age.stdin, age.stdout):
        if stream is not None and not stream.closed:
            with contextlib.suppress(OSError):
                stream.close()
    output = ""
    if age.stderr is not None and not age.stderr.closed:
        with age.stderr:
            output = age.stderr.read().decode("utf-8", "replace")
    if age.wait():
        from hermes_doctor.core.redaction import clean

        lines = [line for line in output.splitlines() if line.strip()] or ["no message"]
        message = clean(lines[0].removeprefix("age: error: "))[:200]
        raise Trouble("age failed: {message}", message=message)


PROMPT = b": "
TICK = 0.05
MOST = 1000
"""Bytes of a passphrase. A terminal cuts off longer lines and treats control characters as
commands: one could empty the line, and then age would generate a passphrase that nobody sees."""


class Terminal:
    """The terminal of a program: the operator's own, or one that types the passphrase."""

    def __init__(self, answer: bytes | None = None, tries: int = 0) -> None:
        self.options: dict[str, Any] = {}
        self._answer, self._times = answer, tries
        self._master = self._slave = -1
        if answer is not None:
            import pty

            self._master, self._slave = pty.openpty()
            self.options = {"start_new_session": True, "preexec_fn": self._take}

    def _take(self) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSCTTY, 0)

    @contextmanager
    def answer_prompts(self) -> Iterator[None]:
        """Answer the program's prompts inside this context."""
        if self._answer is None:
            yield
            return
        done = threading.Event()
        worker = threading.Thread(target=self._answers, args=(done,), daemon=True)
        worker.start()
        try:
            yield
        finally:
            done.set()
            worker.join()

    def _answers(self, done: threading.Event) -> None:
        heard, left = b"", self._times
        while not done.is_set():
            if not select.select([self._master], [], [], TICK)[0]:
                continue
            heard += os.read(self._master, 1024)  # our own end keeps it open
            if left and heard.endswith(PROMPT):
                heard, left = b"", left - 1
                os.write(self._master, (self._answer or b"") + b"\n")

    def close(self) -> None:
        """Close the pseudo-terminal."""
        for fd in (self._master, self._slave):
            if fd >= 0:
                with contextlib.suppress(OSError):
                    os.close(fd)


@contextmanager
def terminal_for(file: Path | None, *, new: bool) -> Iterator[Terminal]:
    """A terminal that types the passphrase of a file, twice if it is a new one."""
    opened = Terminal(_passphrase(file), 2 if new else 1) if file else Terminal()
    try:
        yield opened
    finally:
        opened.close()


def _passphrase(file: Path) -> bytes:
    """Read the passphrase: the first line of a private file."""
    try:
        data, state = read(file.expanduser(), 65536)
    except (OSError, CouldNotLook):
        raise Trouble("Could not read the passphrase file {file}.", file=file) from None
    if state.mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise Trouble("Other users may read {file}. To solve it: chmod 600 {file}", file=file)
    line = data.split(b"\n", 1)[0].rstrip(b"\r")
    if not line:
        raise Trouble("{file} contains no passphrase.", file=file)
    if len(line) > MOST or any(byte < 32 or byte == 127 for byte in line):
        raise Trouble("The passphrase in {file} is too long or not text.", file=file)
    return line
