"""Let root run `age` for a process that works as the owner of a home.

The operator has named the keys, and the file that an archive is read from or written to; only root
may use them. So root starts `age`, and the process gets only the plain content, as a stream. An
archive that belongs to the owner, such as one in a vault of his, is opened by the process, and goes
to root as a stream, too.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from hermes_doctor.backup.vault import age, blocks
from hermes_doctor.backup.vault.age import ArchiveKeys, NamedCopy, PlainContent
from hermes_doctor.backup.vault.whole_backup import BACKUP
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import disk, root_parent
from hermes_doctor.core.system.files import open_regular
from hermes_doctor.core.system.privileges import as_owner_of
from hermes_doctor.core.system.root_parent import ask_root
from hermes_doctor.core.system.separate_process import Action, OpenFile

# -- in the process of the owner -------------------------------------------------------------------


@contextmanager
def decrypted(copy: NamedCopy) -> Iterator[PlainContent]:
    """Decrypt an archive; in a process of the owner, root does it."""
    with ExitStack() as stack:
        source = -1
        if copy.kind != "archive":
            with as_owner_of(copy.path) as here:
                source = open_regular(here)
            stack.callback(os.close, source)
        if not root_parent.is_separate():
            yield stack.enter_context(age.decrypting(source, copy.keys))
            return
        given = output = ask_root("decrypt")
        if source >= 0:
            output = ask_root("age_output")
            stack.enter_context(_sent(source, given))
        stream = stack.enter_context(open(output, "rb"))
        yield PlainContent(stream, lambda: ask_root("end_age"))
        ask_root("end_age")


@contextmanager
def _sent(source: int, given: int) -> Iterator[None]:
    """Send a file to age while the context lasts."""
    with socket.socket(fileno=given) as line:

        def send() -> None:
            with contextlib.suppress(OSError):  # age says why
                for chunk in blocks.chunks(source):
                    line.sendall(chunk)
                line.shutdown(socket.SHUT_WR)

        worker = threading.Thread(target=send, daemon=True)
        worker.start()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            worker.join()


@contextmanager
def content(given: int) -> Iterator[IO[bytes]]:
    """Yield a stream to age, which ends with the context although root has a copy of it."""
    with socket.socket(fileno=given) as line:
        try:
            yield line.makefile("wb")
        finally:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_WR)


@contextmanager
def received(source: int, target: int) -> Iterator[None]:
    """Copy what age writes into a file, during the context and then to its end."""
    failed: list[OSError] = []

    def copy() -> None:
        with socket.socket(fileno=source) as line:
            try:
                disk.copy_stream(line.makefile("rb"), target)
            except OSError as error:
                failed.append(error)
                line.shutdown(socket.SHUT_RDWR)  # age need not wait for us

    worker = threading.Thread(target=copy, daemon=True)
    worker.start()
    try:
        yield
    finally:
        worker.join()
    if failed:
        raise failed[0]


# -- in the process of root ------------------------------------------------------------------------


@contextmanager
def actions(
    keys: ArchiveKeys, *, to: Path | None = None, source: int | None = None
) -> Iterator[Mapping[str, Action]]:
    """Yield what root does; what is not complete at the end of the context is removed.

    `to` is the folder or the new file that the operator has named, and `source` an open archive;
    without it, the process gets or sends the encrypted bytes as a stream.
    """
    root = _Root(keys, to, source)
    try:
        yield {
            "encrypt": root.encrypt,
            "decrypt": root.decrypt,
            "age_output": root.give_output,
            "end_age": root.end,
        }
    finally:
        root.abandon()


class _Unfinished(Exception):
    """Says that the process has not asked for the end."""


class _Root:
    """Root's part: one `age`, and what it writes to."""

    def __init__(self, keys: ArchiveKeys, to: Path | None, source: int | None) -> None:
        self._keys, self._to, self._source = keys, to, source
        self._target: Path | None = None
        self._streams: list[socket.socket] = []
        """Root's copies of the ends that the process has, so that root can end them."""
        self._running = ExitStack()

    def encrypt(self, id: str) -> OpenFile:
        """Start to encrypt a backup; return where to write its content."""
        if not isinstance(id, str) or not BACKUP.fullmatch(id):
            raise CouldNotLook("this is not the id of a backup")
        with self._started() as passed:
            content = self._stream(passed)
            if self._to is None:
                written = self._stream(passed)
            else:
                self._target = self._to / f"{id}{age.SUFFIX}" if self._to.is_dir() else self._to
                written = self._running.enter_context(age.new_archive(self._target))
            running = age.encrypting(self._keys, stdin=content, stdout=written)
            self._running.enter_context(running)
        return self._give(0)

    def decrypt(self) -> OpenFile:
        """Start to decrypt; return where to read the content, or where to write the archive."""
        with self._started() as passed:
            source = self._stream(passed) if self._source is None else self._source
            words = self._keys.decrypt_arguments()
            running = age.run(words, self._keys, stdin=source, stdout=self._stream(passed))
            self._running.enter_context(running)
        return self._give(0)

    @contextmanager
    def _started(self) -> Iterator[ExitStack]:
        """Start age; yield what is closed here once it has it."""
        self.abandon()
        try:
            with ExitStack() as passed:
                yield passed
        except BaseException:
            self.abandon()
            raise

    def _stream(self, passed: ExitStack) -> int:
        """Make a stream to or from the process; return the end for age."""
        ours, theirs = socket.socketpair()
        passed.enter_context(theirs)
        self._streams.append(ours)
        return theirs.fileno()

    def give_output(self) -> OpenFile:
        """Let the process read what age writes."""
        return self._give(1)

    def _give(self, number: int) -> OpenFile:
        return OpenFile(os.dup(self._streams[number].fileno()))

    def end(self) -> list[object]:
        """Wait for age, which must have succeeded; return the archive and its size."""
        self._end_streams()
        self._running.close()
        return [str(self._target), self._target.stat().st_size] if self._target else []

    def _end_streams(self) -> None:
        """End the streams, although the process may keep its ends."""
        for stream in self._streams:
            with stream, contextlib.suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)
        self._streams.clear()

    def abandon(self) -> None:
        """Kill age and remove what it has written, if it was not asked to end."""
        self._end_streams()
        running, self._running, self._target = self._running, ExitStack(), None
        with contextlib.suppress(_Unfinished):
            running.__exit__(_Unfinished, _Unfinished(), None)
