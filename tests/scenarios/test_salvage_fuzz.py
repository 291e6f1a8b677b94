"""Hostile files: an answer in time, never another exception, and no half-made database."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.sqlite.salvage.run import salvage
from tests.helpers import budget, salvage_history

MORE = int(os.environ.get("FUZZ", "1"))
SECONDS = 20


def examples(count: int) -> settings:
    """The same examples every time."""
    return settings(
        derandomize=MORE == 1 and budget.seed is None,
        deadline=None,
        max_examples=budget.tries(count // 8, count) * MORE,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        database=None,
        phases=[Phase.generate],
    )


@pytest.fixture(scope="module")
def ward(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small sound history to be damaged."""
    folder = tmp_path_factory.mktemp("ward")
    salvage_history.history(folder / "sound.db", 120, page_size=1024)
    salvage_history.blueprint(folder)
    return folder


def attempt(folder: Path, data: bytes, wal: bytes = b"", journal: bytes = b"") -> None:
    """Salvage these bytes: a proved database, or a refusal and nothing left behind."""
    sick, target = folder / "sick.db", folder / "out.db"
    for path, content in ((sick, data), (folder / "sick.db-wal", wal)):
        path.write_bytes(content)
    (folder / "sick.db-journal").write_bytes(journal)
    target.unlink(missing_ok=True)
    start = time.monotonic()
    try:
        account = salvage(sick, target, salvage_history.blueprint(folder))
    except (CannotFix, CouldNotLook):
        assert not list(folder.glob("out.db*"))
    else:
        assert account.proofs
        assert [path.name for path in folder.glob("out.db*")] == ["out.db"]
    assert time.monotonic() - start < SECONDS
    assert sick.read_bytes() == data


@examples(60)
@given(data=st.binary(max_size=20_000))
def test_random_bytes(ward: Path, data: bytes) -> None:
    """Nothing of a database in it."""
    attempt(ward, data)


@examples(40)
@given(data=st.binary(max_size=8000), wal=st.binary(max_size=8000))
def test_random_bytes_behind_a_true_header(ward: Path, data: bytes, wal: bytes) -> None:
    """A header that promises one."""
    attempt(ward, (ward / "sound.db").read_bytes()[:1024] + data, wal)


Change = tuple[int, bytes]


@examples(150)
@given(
    changes=st.lists(
        st.tuples(st.integers(0, 2**20), st.binary(min_size=1, max_size=40)), max_size=25
    ),
    cut=st.integers(0, 2**20) | st.none(),
)
def test_mutations(ward: Path, changes: list[Change], cut: int | None) -> None:
    """Bytes overwritten anywhere, and the end cut off."""
    data = bytearray((ward / "sound.db").read_bytes())
    size = len(data)
    for at, new in changes:
        at %= size
        data[at : at + len(new)] = new[: size - at]
    if cut is not None:
        del data[cut % size :]
    attempt(ward, bytes(data))


@examples(80)
@given(pages=st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999)), min_size=1, max_size=30))
def test_pages_moved(ward: Path, pages: list[tuple[int, int]]) -> None:
    """Whole pages in the place of others: circles, wrong tables, shared chains."""
    data = bytearray((ward / "sound.db").read_bytes())
    count = len(data) // 1024
    for source, place in pages:
        a, b = source % count * 1024, place % count * 1024
        data[b : b + 1024] = data[a : a + 1024]
    attempt(ward, bytes(data))


@examples(60)
@given(
    links=st.lists(
        st.tuples(st.integers(1, 999), st.integers(0, 4), st.integers(0, 999)), max_size=40
    )
)
def test_links_rewired(ward: Path, links: list[tuple[int, int, int]]) -> None:
    """Page numbers at the places where pages name each other."""
    data = bytearray((ward / "sound.db").read_bytes())
    count = len(data) // 1024
    for page, place, target in links:
        at = page % count * 1024 + (0, 8, 12, 100, 1000)[place]
        data[at : at + 4] = struct.pack(">I", target % (count + 2))
    attempt(ward, bytes(data))


@examples(40)
@given(
    changes=st.lists(
        st.tuples(st.integers(0, 2**20), st.binary(min_size=1, max_size=40)), max_size=10
    ),
    journal=st.binary(max_size=3000),
)
def test_sidecars(ward: Path, changes: list[Change], journal: bytes) -> None:
    """A log made of the file's own pages, damaged, and a journal of nothing."""
    sound = (ward / "sound.db").read_bytes()
    wal = bytearray(struct.pack(">4I", 0x377F0682, 3007000, 1024, 1) + bytes(16))
    for number in range(1, 12):
        wal += struct.pack(">6I", number, number, 0, 0, 0, 0) + sound[:1024]
    for at, new in changes:
        at %= len(wal)
        wal[at : at + len(new)] = new
    attempt(ward, sound, bytes(wal), bytes.fromhex("d9d505f920a163d7") + journal)


def test_a_chain_that_all_rows_share(ward: Path) -> None:
    """Rows that claim to be huge and all run through the same pages end soon."""
    data = bytearray((ward / "sound.db").read_bytes())
    count = len(data) // 1024
    for number in range(1, count):
        at = number * 1024
        if data[at] == 0:
            data[at : at + 4] = struct.pack(">I", (number * 7) % count + 1)
    attempt(ward, bytes(data) * 4)
