"""The gate through which every text passes that leaves this process.

It does two things. It hides the secrets of the home, wherever a text got them from, and it makes a
text harmless for the program that shows it: a terminal, GitHub Actions, a monitor.

- `clean` is for one line: a title, a name, a line of a log. What prints a line uses it.
- `masked` is for values: a report, or a document before it is stored.
- `guard_output` puts the gate in front of stdout and stderr, so that nothing passes beside it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TextIO, TypeVar, cast

from hermes_doctor.core.lazy import pattern
from hermes_doctor.core.message import Message
from hermes_doctor.core.model import Finding
from hermes_doctor.core.secret_forms import Secret, SecretForms

T = TypeVar("T")
Source = Callable[[], Iterable[Iterable[Secret]]]
"""Returns the secrets that may be new, in portions; each is hidden before the next one is read."""

PAUSE = 1.0
"""Seconds after which the sources are asked again, because a watch runs for weeks."""
_LONGEST_WAIT = 2.0
"""Seconds that a text waits for the sources: a disk may hang."""
_COMMAND = pattern(r"^(\s*):(?=:[A-Za-z][\w-]*[^\n]*::)")
"""The start of a command for GitHub Actions, which reads them from any output of a job."""
_STYLE = pattern(r"(\n|\t|\x1b\[[\d;]*m)")


class KnownSecrets:
    """The secrets of the homes that this process works on."""

    def __init__(self) -> None:
        self._sources: dict[object, Source] = {}
        self._secrets: dict[str, Secret] = {}
        self._forms = SecretForms(())
        self._lock = threading.Lock()
        self._reader: threading.Thread | None = None
        self._asked = 0.0
        self._error: BaseException | None = None
        self._stuck = False

    def add_source(self, key: object, source: Source) -> None:
        """Ask this source, at the latest when the next text leaves; one for each key."""
        if key not in self._sources:
            self._sources[key] = source
            self._asked = 0.0

    def add(self, secrets: Iterable[Secret]) -> None:
        """Hide these from now on."""
        new = {secret.value: secret for secret in secrets if secret.value not in self._secrets}
        if new:
            self._secrets = {**self._secrets, **new}
            self._forms = SecretForms(self._secrets.values())

    def remove_source(self, key: object) -> None:
        """Do not ask this source any more, because another process does."""
        self._sources.pop(key, None)

    def all(self) -> list[Secret]:
        """Every secret that is known by now."""
        if self._sources:
            self._ask()
        return [*self._secrets.values()]

    def clear(self) -> None:
        """Forget all; for tests that work on many homes."""
        self.__init__()  # type: ignore[misc]

    def mask(self, text: str) -> str:
        """The text with a description in the place of each secret."""
        if self._sources and time.monotonic() - self._asked >= PAUSE:
            self._ask()
        return self._forms.mask(text)

    def _ask(self) -> None:
        """Let a thread ask the sources, and wait for it, but not for a disk that hangs."""
        if self._stuck or self._reader is threading.current_thread():
            return  # a source that itself makes a text does not wait for itself
        if not self._lock.acquire(timeout=_LONGEST_WAIT):
            self._stuck = True  # in a copy of the process, nobody will release it
            return
        try:
            is_late = self._reader is not None and self._reader.is_alive()
            if is_late or time.monotonic() - self._asked < PAUSE:
                return
            self._error = None
            self._start_reader()
            if self._error is not None:
                raise self._error
        finally:
            self._lock.release()

    def _start_reader(self) -> None:
        self._reader = threading.Thread(target=self._read, name="secrets", daemon=True)
        try:
            self._reader.start()
        except RuntimeError:  # no memory for its stack
            self._reader = threading.current_thread()
            self._read()
            self._reader = None
        else:
            self._reader.join(_LONGEST_WAIT)

    def _read(self) -> None:
        try:
            for source in [*self._sources.values()]:
                for secrets in source():
                    self.add(secrets)
            self._asked = time.monotonic()
        except BaseException as error:  # noqa: BLE001 (raised in the thread that waits)
            self._error = error


known = KnownSecrets()
"""One for the process: a secret of one home is one in the report on another home, too."""


def clean(text: str) -> str:
    """Make one line of text fit to leave: hide secrets, replace what is not harmless."""
    shown = known.mask(text)
    plain = harmless(shown)
    return plain if plain is shown else known.mask(plain)


def harmless(text: str) -> str:
    """Replace line breaks, control characters, and what changes the order or hides characters.

    A command of GitHub Actions at the start is broken, because a log line could contain one.
    """
    text = _visible(text)
    if "::" in text:
        text = _COMMAND.sub(r"\1�", text)
    return text.replace("##[", "##�") if "##[" in text else text


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    import unicodedata

    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join("�" if unicodedata.category(one) in kinds else one for one in text)


def clean_lines(text: str) -> str:
    """Make a text of several lines fit to leave; its line breaks, tabs and colours are kept.

    So are commands for GitHub Actions, because it may consist of them.
    """
    shown = known.mask(text)
    if shown.replace("\n", "").isprintable():
        return shown
    parts = _STYLE.split(shown)
    parts[::2] = map(_visible, parts[::2])
    return "".join(parts)


def masked(value: T) -> T:
    """The value with all secrets in it hidden, however deep: a report, or a document.

    Only what a fix needs to know (`Finding.data`) is kept as it is; it is never shown.
    """
    if known.mask(whole := "\0".join(_texts(value))) == whole:
        return value
    return cast(T, _masked(value))


_PLAIN = frozenset({int, float, bool, type(None)})


def _texts(value: object) -> list[str]:
    """All texts in a value; a report has thousands of values, and is looked at in each round."""
    found: list[str] = []
    left: list[Any] = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            found.append(one)
            if isinstance(one, Message):
                left.append(one.values)
        elif isinstance(one, Finding):
            left += one._replace(data={})
        elif isinstance(one, (tuple, list, frozenset, set)):
            left += one
        elif type(one) not in _PLAIN and isinstance(one, Mapping):
            left += one.keys()
            left += one.values()
    return found


def _masked(value: Any) -> Any:
    if isinstance(value, Message):
        message = Message(
            value.template, {name: _masked(one) for name, one in value.values.items()}
        )
        return message if known.mask(message) == message else known.mask(value)
    if isinstance(value, str):
        shown = known.mask(value)
        return value if shown == value else shown
    if isinstance(value, Finding):
        return Finding(*map(_masked, value._replace(data={})))._replace(data=value.data)
    if isinstance(value, Mapping):
        return {_masked(key): _masked(one) for key, one in value.items()}
    if isinstance(value, tuple):
        made_of = map(_masked, value)
        return type(value)(*made_of) if hasattr(value, "_fields") else tuple(made_of)
    if isinstance(value, list | set | frozenset):
        return type(value)(map(_masked, value))
    return value


class _Gate:
    """Stdout or stderr with the gate in front."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.buffer = _BytesGate(stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stream)

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError("write() argument must be str")
        self._stream.write(known.mask(text) if self._stream.isatty() else clean_lines(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)


class _BytesGate:
    """The binary buffer of stdout or stderr with the gate in front."""

    def __init__(self, stream: TextIO) -> None:
        self._buffer = stream.buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._buffer, name)

    def write(self, data: bytes) -> int:
        text = bytes(data).decode("utf-8", "surrogateescape")
        self._buffer.write(known.mask(text).encode("utf-8", "surrogateescape"))
        return len(data)


def guard_output() -> None:
    """Let everything that is printed from now on pass the gate."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, _Gate) and hasattr(stream, "buffer"):
            setattr(sys, name, _Gate(stream))
