"""What can be made of a damaged store out of its own bytes."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from hermes_doctor.stores import tearing
from hermes_doctor.stores.described import Store
from hermes_doctor.stores.entries import named
from hermes_doctor.stores.judging import (
    BARE,
    BINARY,
    BOM,
    CONTROL,
    ENTRY,
    PADDING,
    TAIL,
    TORN,
    inside,
    is_a,
    judge,
)
from hermes_doctor.values import NamedTuple


class Mended(NamedTuple):
    """A store made sound again."""

    data: bytes
    values: Any
    how: str
    lost: tuple[str, ...] = ()
    """The names of entries that could not be kept."""
    cut: bool = False
    """It broke off: what followed nobody knows."""

    @property
    def lossless(self) -> bool:
        """Whether everything that could be read before is still there, and was all there was."""
        return not self.lost and not self.cut


def mend(data: bytes, store: Store) -> Mended | None:
    """The same entries in a file that Hermes reads; None when that cannot be had."""
    values, flaw = judge(data, store)
    bench = _Bench(data, data.removeprefix(codecs.BOM_UTF8), values, store)
    way = _WAYS.get(flaw.kind) if flaw else None
    made = way(bench) if way else None
    if made is None:
        return None
    found = judge(made.data, store)
    sound = found.flaw is None and named(found.values, store)
    return made._replace(values=found.values) if sound else None


class _Bench(NamedTuple):
    """What there is to work with."""

    data: bytes
    bare: bytes
    """The same without a byte order mark."""
    values: Any
    store: Store

    def unmarked(self) -> Mended:
        """A byte order mark goes."""
        return Mended(self.bare, None, "without its byte order mark")

    def unpadded(self) -> Mended:
        """A crash left the end of the file's last block."""
        return Mended(self.bare.rstrip(b"\0"), None, "without the NUL bytes behind its end")

    def without_tail(self) -> Mended:
        """What follows the end of the document is the rest of a longer one."""
        text = self.bare.decode("utf-8").lstrip()
        end = json.JSONDecoder(strict=False).raw_decode(text)[1]
        return Mended(f"{text[:end]}\n".encode(), None, "without what follows its end")

    def escaped(self) -> Mended:
        """Control characters are written as JSON wants them."""
        how = "with its control characters written as such"
        return Mended(_written(self.values), None, how)

    def wrapped(self) -> Mended | None:
        """A bare list becomes the value that it was meant to be."""
        if not self.store.list_is or not isinstance(self.values, list):
            return None
        how = f"with the list as the {self.store.list_is} that it is"
        return Mended(_written({self.store.list_is: self.values}), None, how)

    def in_utf8(self) -> Mended | None:
        """An editor on Windows saved it as UTF-16."""
        try:
            return Mended(self.data.decode("utf-16").encode("utf-8"), None, "as UTF-8")
        except UnicodeError:
            return None

    def without_odd(self) -> Mended:
        """What is no entry goes; a note of Hermes' own is not missed."""
        kept = json.loads(json.dumps(self.values))
        lost: list[str] = []
        for path in self.store.entries:
            holder = inside(kept, path)
            if isinstance(holder, list):
                lost += [f"number {n + 1}" for n, one in enumerate(holder) if self._odd(one)]
                holder[:] = [one for one in holder if not self._odd(one)]
            elif holder is not None:
                odd = [key for key, one in holder.items() if self._odd(one)]
                lost += [key for key in odd if not key.startswith("_")]
                for key in odd:
                    del holder[key]
        return Mended(_written(kept), None, "without what is no entry", tuple(lost))

    def _odd(self, entry: object) -> bool:
        return not is_a(entry, self.store.entry)

    def closed(self) -> Mended | None:
        """What is whole of a file that breaks off."""
        text = self.bare.decode("utf-8").rstrip("\0")
        found = tearing.torn(text, self.store.entries)
        if found is None:
            return None
        lost = found.lost
        paths = self.store.entries
        deep = any(lost[: len(path)] == path and len(lost) > len(path) for path in paths)
        names = (_torn_name(found, self.store),) if deep else ()
        return Mended(found.text.encode(), None, "closed where it breaks off", names, cut=True)


def _written(values: Any) -> bytes:
    return f"{json.dumps(values, indent=2, ensure_ascii=False)}\n".encode()


def _torn_name(found: tearing.Torn, store: Store) -> str:
    """What the entry is called that is cut off, if as much of it is left."""
    last = found.lost[-1]
    if isinstance(last, str):
        return last if len(store.entries) == 1 else ".".join(map(str, found.lost))
    for field in store.names:
        said = re.search(rf'"{re.escape(field)}"\s*:\s*"([^"\\]{{1,80}})"', found.rest)
        if said:
            return said[1]
    return f"number {last + 1}"


_WAYS: Mapping[str, Callable[[_Bench], Mended | None]] = {
    BOM: _Bench.unmarked,
    PADDING: _Bench.unpadded,
    TAIL: _Bench.without_tail,
    CONTROL: _Bench.escaped,
    BARE: _Bench.wrapped,
    ENTRY: _Bench.without_odd,
    BINARY: _Bench.in_utf8,
    TORN: _Bench.closed,
}
