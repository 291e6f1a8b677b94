"""Export a backup to one encrypted file, verify such an archive, and import it again.

It is a tar file with the manifest first, encrypted by `age` for a recipient (an age or ssh public
key) or with a passphrase.
"""

from __future__ import annotations

import contextlib
import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hermes_doctor.backup.vault import age, age_of_root, blocks, large_manifest
from hermes_doctor.backup.vault.age import ArchiveKeys, NamedCopy
from hermes_doctor.backup.vault.intake import finish_import, refuse_invalid_entries
from hermes_doctor.backup.vault.manifest import MANIFEST, Backup, BackupEntry, parse, place_of, seal
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import digests, disk, progress
from hermes_doctor.core.system.files import MEGABYTE
from hermes_doctor.core.system.root_parent import ask_root

# -- export --------------------------------------------------------------------------------------


def write(backup: Backup, target: Path, lock: ArchiveKeys) -> None:
    """Write a backup into a new encrypted file; no unencrypted copy is made."""
    with age.new_archive(target) as fd, age.encrypting(lock, stdout=fd) as process:
        assert process.stdin is not None
        fill(backup, process.stdin)


def write_by_root(backup: Backup, folder: Path | None) -> tuple[Path, int]:
    """Let root encrypt it, into this folder or where the operator said; return its size, too."""
    given = ask_root("encrypt", backup.id)
    if folder is None:
        with age_of_root.content(given) as out:
            fill(backup, out)
        path, size = ask_root("end_age")
        return Path(path), int(size)
    target = folder / f"{backup.id}{age.SUFFIX}"
    with age.new_archive(target) as fd:
        output = ask_root("age_output")
        with age_of_root.received(output, fd), age_of_root.content(given) as out:
            fill(backup, out)
        ask_root("end_age")
    return target, target.stat().st_size


def fill(backup: Backup, out: IO[bytes]) -> None:
    """Write the tar, the manifest and then every copy as one whole file, and close the stream.

    If age has ended before, nothing is raised: age says why.
    """
    entries = tuple(entry.alone() for entry in backup.entries)
    sealed = seal(backup._replace(entries=entries, shares=None))
    with (
        contextlib.suppress(BrokenPipeError),
        out,
        tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        _add(tar, MANIFEST, len(sealed), [sealed])
        done = 0
        for entry in backup.entries:
            if entry.kind == "file":
                name = str(place_of(Path(), entry.path))
                _add(tar, name, entry.size, _content(backup, entry, done))
                done += entry.size


def _content(backup: Backup, entry: BackupEntry, done: int) -> Iterator[bytes]:
    """Read a copy in chunks and report progress after each; `done` bytes were read before."""
    read = blocks.read if entry.blocks else large_manifest.chunks
    for chunk in read(backup.copy_of(entry)):
        yield chunk
        done += len(chunk)
        progress.report("encrypting", done / backup.size)


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


def verify(copy: NamedCopy) -> list[str]:
    """Read an archive and compare every file with its manifest; nothing is written."""
    wrong: list[str] = []
    with _opened(copy) as (backup, tar):
        left = {str(place_of(Path(), e.path)): e for e in backup.entries if e.kind == "file"}
        for info in iter(tar.next, None):
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


def import_archive(vault: Vault, copy: NamedCopy) -> Backup:
    """Import an archive into the vault as a verified backup."""
    with _opened(copy) as (backup, tar), vault.unfinished() as partial:
        vault.room(backup.size)
        left = {str(place_of(Path(), e.path)): e for e in backup.entries if e.kind == "file"}
        for info in iter(tar.next, None):
            entry, stream = left.pop(info.name, None), tar.extractfile(info)
            if entry is None or stream is None:
                continue
            if info.size != entry.size:
                raise Trouble(_CHANGED, archive=copy.path.name, file=entry.path)
            place = place_of(partial, entry.path)
            disk.make_folder(place.parent)
            with disk.new_file(place, durable=False) as fd:
                digest, _ = disk.copy_stream(stream, fd, like=entry.sha256, skip_zeros=True)
            if digest != entry.sha256:
                raise Trouble(_CHANGED, archive=copy.path.name, file=entry.path)
        if left:
            name = next(iter(left.values())).path
            raise Trouble(
                "{archive} is damaged: {file} is missing. Nothing was changed. Use another "
                "archive.",
                archive=copy.path.name,
                file=name,
            )
        return finish_import(vault, backup._replace(folder=partial))


@contextmanager
def _opened(copy: NamedCopy) -> Iterator[tuple[Backup, tarfile.TarFile]]:
    """Open an archive: its manifest, and the rest of it as a stream."""
    path = copy.path
    with age_of_root.decrypted(copy) as plain:
        try:
            with tarfile.open(fileobj=plain.stream, mode="r|") as tar:
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
                while plain.stream.read(MEGABYTE):  # to the end, so age checks everything
                    pass
        except (tarfile.TarError, EOFError):
            plain.blame()
            raise Trouble(
                "{file} is damaged or incomplete. Use another archive.", file=path.name
            ) from None
