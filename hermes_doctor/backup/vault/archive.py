"""Export a backup to one encrypted file, verify such an archive, and import it again.

It is a tar file with the manifest first, encrypted by `age` for a recipient (an age or ssh public
key) or with a passphrase. `age` reads a passphrase only from a terminal, so that it is never in an
argument or a variable, where others can read it. For a passphrase from a file, a pseudo-terminal
types it.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import select
import stat
import subprocess
import tarfile
import termios
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from hermes_doctor.backup.vault import blocks
from hermes_doctor.backup.vault.engines import find_program
from hermes_doctor.backup.vault.intake import finish_import, refuse_invalid_entries
from hermes_doctor.backup.vault.manifest import MANIFEST, Backup, BackupEntry, parse, place_of, seal
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system import digests, disk, memory_limit, progress
from hermes_doctor.core.system.files import MEGABYTE, open_regular, read
from hermes_doctor.core.system.privileges import as_owner_of

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


# -- export --------------------------------------------------------------------------------------


def write(backup: Backup, target: Path, lock: ArchiveKeys) -> None:
    """Write a backup into a new encrypted file; no unencrypted copy is made."""
    if lock.passphrase and lock.recipients:
        raise Trouble("Encrypt to keys or with a passphrase, not both. Nothing was written.")
    if os.path.lexists(target):
        raise Trouble(
            "{target} already exists. Nothing was written. Choose another file.", target=target
        )
    temp = disk.temporary(target)
    try:
        with (
            disk.new_file(temp) as fd,
            _age(lock.encrypt_arguments(), lock, stdout=fd, new=True) as age,
            contextlib.suppress(BrokenPipeError),  # age says why
        ):
            assert age.stdin is not None
            _fill(backup, age.stdin)
            age.stdin.close()
        disk.rename(temp, target)
        disk.sync_folder(target.parent)
    except OSError as error:
        disk.remove(temp)
        why = os.strerror(error.errno or 0).lower()
        raise Trouble("Could not write {target} ({reason}).", target=target, reason=why) from None
    except BaseException:
        disk.remove(temp)
        raise


def _fill(backup: Backup, out: IO[bytes]) -> None:
    """Write the tar: the manifest, then every copy as one whole file."""
    entries = tuple(entry.alone() for entry in backup.entries)
    sealed = seal(backup._replace(entries=entries, shares=None))
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, MANIFEST, len(sealed), [sealed])
        done = 0
        for entry in backup.entries:
            if entry.kind == "file":
                name = str(place_of(Path(), entry.path))
                content = _counted(_content(backup, entry), done, backup.size)
                _add(tar, name, entry.size, content)
                done += entry.size


def _counted(chunks: Iterator[bytes], done: int, total: int) -> Iterator[bytes]:
    """Yield the chunks and report progress after each."""
    for chunk in chunks:
        yield chunk
        done += len(chunk)
        progress.report("encrypting", done / total)


def _content(backup: Backup, entry: BackupEntry) -> Iterator[bytes]:
    copy = backup.copy_of(entry)
    if entry.blocks:
        yield from blocks.read(copy)
        return
    with blocks.open_as_owner(copy) as fd:
        yield from blocks.chunks(fd)


def _add(tar: tarfile.TarFile, name: str, size: int, chunks: Iterator[bytes] | list[bytes]) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, disk.FILE_MODE
    tar.addfile(info, _Stream(iter(chunks)))


class _Stream(io.RawIOBase):
    """A file object that reads from an iterator of chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while len(self._left) < size:
            more = next(self._chunks, b"")
            if not more:
                break
            self._left += more
        data, self._left = self._left[:size], self._left[size:]
        return data


# -- import --------------------------------------------------------------------------------------


def is_archive(path: Path) -> bool:
    """Whether a file is encrypted by age, judged by its first bytes."""
    try:
        with blocks.open_as_owner(path) as fd:
            head = os.pread(fd, 64, 0)
    except (OSError, CouldNotLook):
        return False
    return head.startswith((_AGE, _ARMOUR))


def verify(path: Path, lock: ArchiveKeys) -> list[str]:
    """Read an archive and compare every file with its manifest; nothing is written."""
    wrong: list[str] = []
    with _opened(path, lock) as (backup, tar):
        left = {str(place_of(Path(), e.path)): e for e in backup.entries if e.kind == "file"}
        for info in _rest(tar):
            entry = left.pop(info.name, None)
            stream = tar.extractfile(info)
            if entry is None or stream is None:
                wrong.append(f"{info.name}: it is not in the manifest")
                continue
            if info.size != entry.size:
                wrong.append(f"{entry.path}: its content is damaged")
                continue
            digest = digests.new_like(entry.sha256)
            while chunk := stream.read(MEGABYTE):
                digest.update(chunk)
            if digest.hexdigest() != entry.sha256:
                wrong.append(f"{entry.path}: its content is damaged")
        wrong += [f"{entry.path}: it is missing" for entry in left.values()]
    return wrong


_CHANGED = (
    "{archive} is damaged: the content of {file} has changed. Nothing was changed. Use another "
    "archive."
)


def import_archive(vault: Vault, path: Path, lock: ArchiveKeys) -> Backup:
    """Import an archive into the vault as a verified backup."""
    with _opened(path, lock) as (backup, tar), vault.unfinished() as partial:
        vault.room(backup.size)
        left = {str(place_of(Path(), e.path)): e for e in backup.entries if e.kind == "file"}
        for info in _rest(tar):
            entry, stream = left.pop(info.name, None), tar.extractfile(info)
            if entry is None or stream is None:
                continue
            if info.size != entry.size:
                raise Trouble(_CHANGED, archive=path.name, file=entry.path)
            place = place_of(partial, entry.path)
            disk.make_folder(place.parent)
            with disk.new_file(place, durable=False) as fd:
                digest, _ = disk.copy_stream(stream, fd, like=entry.sha256, skip_zeros=True)
            if digest != entry.sha256:
                raise Trouble(_CHANGED, archive=path.name, file=entry.path)
        if left:
            name = next(iter(left.values())).path
            raise Trouble(
                "{archive} is damaged: {file} is missing. Nothing was changed. Use another "
                "archive.",
                archive=path.name,
                file=name,
            )
        return finish_import(vault, backup._replace(folder=partial))


def _rest(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the members after the manifest."""
    while (info := tar.next()) is not None:
        yield info


@contextmanager
def _opened(path: Path, lock: ArchiveKeys) -> Iterator[tuple[Backup, tarfile.TarFile]]:
    """Open an archive: its manifest, and the rest of it as a stream."""
    with as_owner_of(path) as here:
        source = open_regular(here)
    try:
        with _age(lock.decrypt_arguments(), lock, stdin=source) as age:
            assert age.stdout is not None
            try:
                with tarfile.open(fileobj=age.stdout, mode="r|") as tar:
                    first = tar.next()
                    fits = first and first.name == MANIFEST and first.size <= 256 * MEGABYTE
                    stream = tar.extractfile(first) if first and fits else None
                    if stream is None:
                        raise Trouble(
                            "{file} does not contain a backup of hermes-doctor.", file=path.name
                        )
                    backup = parse(path, stream.read())
                    refuse_invalid_entries(backup, path.name)
                    yield backup, tar
                    while age.stdout.read(MEGABYTE):  # to the end, so age checks everything
                        pass
            except (tarfile.TarError, EOFError):
                _blame(age)
                raise Trouble(
                    "{file} is damaged or incomplete. Use another archive.", file=path.name
                ) from None
    finally:
        os.close(source)


# -- age -----------------------------------------------------------------------------------------


@contextmanager
def _age(
    words: Sequence[str],
    lock: ArchiveKeys,
    *,
    stdin: int | None = None,
    stdout: int | None = None,
    new: bool = False,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run age; raise Trouble with its error message if it fails."""
    command = find_program("age")
    with terminal_for(lock.passphrase_file, new=new) as terminal:
        with memory_limit.lifted():
            age = subprocess.Popen(
                [command, *words],
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
                    _blame(age)
                raise
            _blame(age)


def _blame(age: subprocess.Popen[bytes]) -> None:
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
