"""Export a backup to one encrypted file, verify such an archive, and import it again.

It is a tar file with the manifest first, encrypted by `age` for a recipient (an age or ssh public
key) or with a passphrase, which goes to age only through a terminal.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hermes_doctor.backup import blocks, passphrase
from hermes_doctor.backup.engines import find_program
from hermes_doctor.backup.entry import BackupEntry
from hermes_doctor.backup.intake import finish_import, import_folder, refuse_invalid_entries
from hermes_doctor.backup.manifest import MANIFEST, Backup, parse, place_of, seal
from hermes_doctor.backup.vault import Vault
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook, Trouble
from hermes_doctor.system import digests, disk, memory_limit, progress
from hermes_doctor.system.files import MEGABYTE, open_regular
from hermes_doctor.system.privileges import as_owner_of

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
        for one in self.recipients:
            words += ["-R", one[1:]] if one.startswith("@") else ["-r", one]
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
            text(
                "{target} already exists. Nothing was written. Choose another file.", target=target
            )
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
        raise Trouble(
            text("Could not write {target} ({reason}).", target=target, reason=why)
        ) from None
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
        found, self._left = self._left[:size], self._left[size:]
        return found


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
    with _opened(path, lock) as (backup, tar), import_folder(vault) as partial:
        vault.room(backup.size)
        left = {str(place_of(Path(), e.path)): e for e in backup.entries if e.kind == "file"}
        for info in _rest(tar):
            entry, stream = left.pop(info.name, None), tar.extractfile(info)
            if entry is None or stream is None:
                continue
            if info.size != entry.size:
                raise Trouble(text(_CHANGED, archive=path.name, file=entry.path))
            place = place_of(partial, entry.path)
            disk.make_folder(place.parent)
            with disk.new_file(place, durable=False) as fd:
                found, _ = disk.copy_stream(stream, fd, like=entry.sha256, skip_zeros=True)
            if found != entry.sha256:
                raise Trouble(text(_CHANGED, archive=path.name, file=entry.path))
        if left:
            name = next(iter(left.values())).path
            raise Trouble(
                text(
                    "{archive} is damaged: {file} is missing. Nothing was changed. Use another "
                    "archive.",
                    archive=path.name,
                    file=name,
                )
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
                            text(
                                "{file} does not contain a backup of hermes-doctor.",
                                file=path.name,
                            )
                        )
                    backup = parse(path, stream.read())
                    refuse_invalid_entries(backup, path.name)
                    yield backup, tar
                    while age.stdout.read(MEGABYTE):  # to the end, so age checks everything
                        pass
            except (tarfile.TarError, EOFError):
                _blame(age)
                raise Trouble(
                    text("{file} is damaged or incomplete. Use another archive.", file=path.name)
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
    with passphrase.terminal(lock.passphrase_file, new=new) as terminal:
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
    said = ""
    if age.stderr is not None and not age.stderr.closed:
        with age.stderr:
            said = age.stderr.read().decode("utf-8", "replace")
    if age.wait():
        from hermes_doctor.redaction import clean

        lines = [line for line in said.splitlines() if line.strip()] or ["no message"]
        message = clean(lines[0].removeprefix("age: error: "))[:200]
        raise Trouble(text("age failed: {message}", message=message))
