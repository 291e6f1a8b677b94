"""Restore a database that is lost entirely from its newest sound copy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes_doctor.file_copies import DatabaseCopy
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.sqlite.files import require_sound, sidecars
from hermes_doctor.system import disk
from hermes_doctor.system.files import open_regular, snapshot


def restore_from_copy(copy: Path, candidates: Sequence[DatabaseCopy]) -> list[str]:
    """Replace `copy` by the sound candidate with the newest content.

    A candidate that may be of another home is used only if there is no other candidate.
    """
    if not candidates:
        raise CannotFix("no older copy was found")
    own = [one for one in candidates if not one.doubtful]
    for one in sorted(own or candidates, key=lambda candidate: candidate.rank):
        for old in (copy, *sidecars(copy)):
            disk.remove(old)
        try:
            copy_candidate(one, copy)
            require_sound(copy)
        except CannotFix:
            continue
        when = one.written_at
        where = f"{one.path.parent.name}/{one.path.name}" + (one.member and f":{one.member}")
        said = [f"It is {where} of {when:%Y-%m-%d %H:%M} UTC; what came later is not in it."]
        return [*said, "It may be of another home."] if one.doubtful else said
    if own and len(own) < len(candidates):
        raise CannotFix(
            "every older copy is damaged, too, except copies that may be of another home"
        )
    raise CannotFix("every older copy is damaged, too")


def copy_candidate(one: DatabaseCopy, copy: Path) -> None:
    """Copy a candidate with its log, or extract it from its zip."""
    if one.member:
        with disk.new_file(copy) as fd:
            _extract(one, fd)
        return
    if snapshot(one.path).kind != "file":
        raise CannotFix("the copy was removed")
    for suffix in ("", "-wal"):
        source = one.path.with_name(one.path.name + suffix)
        if snapshot(source).kind == "file":
            with disk.new_file(copy.with_name(copy.name + suffix)) as fd:
                try:
                    disk.copy(source, fd)
                except (FileNotFoundError, CouldNotLook) as error:
                    raise CannotFix("the copy cannot be read") from error


def _extract(one: DatabaseCopy, fd: int) -> None:
    """Extract a database from a zip."""
    for chunk in _chunks(one):
        disk.write(fd, chunk)


def _chunks(one: DatabaseCopy) -> Iterator[bytes]:
    """Read a database in a zip, at most as many bytes as its table of contents says."""
    import zipfile

    left = one.size
    try:
        with (
            os.fdopen(open_regular(one.path), "rb") as file,
            zipfile.ZipFile(file) as archive,
            archive.open(one.member) as member,
        ):
            while left and (chunk := member.read(min(left, disk.CHUNK))):
                left -= len(chunk)
                yield chunk
            if left or member.read(1):
                raise CannotFix("the zip is damaged")
    except Exception as error:
        # zlib.error, LZMAError, BadZipFile, CouldNotLook, FileNotFoundError, …
        raise CannotFix("the zip is damaged") from error
