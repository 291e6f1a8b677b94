"""A file compared with its base in place gives the same blocks as one that is read."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_doctor.backup.vault import blocks, unchanged
from hermes_doctor.backup.vault.blocks import MappedBase
from hermes_doctor.backup.vault.manifest import Backup, BackupEntry
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.system import digests
from hermes_doctor.core.system.digests import CHUNK
from tests.helpers import support
from tests.helpers.database_writer import back_up, writing
from tests.helpers.wrong_backups import entry, forge, unseen

SIZE = 3 * CHUNK + 5000


def in_place(fd: int, mapped: MappedBase) -> Iterator[bytes | range]:
    """The content of a file, where it differs from the base as bytes, else as where it lies."""
    size = os.fstat(fd).st_size
    for start in range(0, size, CHUNK):
        end = min(start + CHUNK, size)
        same = mapped.holds(fd, start, end)
        yield range(start, end) if same else os.pread(fd, end - start, start)


@pytest.mark.parametrize("seed", range(12))
def test_the_same_blocks(tmp_path: Path, seed: int) -> None:
    """Whatever has changed: bytes anywhere, a shorter file, a longer one, or nothing."""
    chance = random.Random(seed)
    base = chance.randbytes(SIZE)
    now = bytearray(base)
    for _ in range(seed % 4):
        now[chance.randrange(SIZE)] ^= 1 + chance.randrange(255)
    now = now[: SIZE - chance.randrange(2 * CHUNK)] if seed % 3 == 1 else now
    now += chance.randbytes(chance.randrange(CHUNK)) if seed % 3 == 2 else b""
    (tmp_path / "base").write_bytes(base)
    (tmp_path / "now").write_bytes(now)
    each = [hashlib.sha256(now[at : at + CHUNK]).digest() for at in range(0, len(now), CHUNK)]
    targets = [tmp_path / "read", tmp_path / "in place"]
    with (
        blocks.open_as_owner(tmp_path / "base") as then,
        blocks.open_as_owner(tmp_path / "now") as fd,
        targets[0].open("wb", 0) as read,
        targets[1].open("wb", 0) as compared,
    ):
        plain = blocks.write(blocks.chunks(fd), then, read.fileno(), SIZE)
        assert plain is not None
        mapped = MappedBase(then)
        content = in_place(fd, mapped)
        known = digests.from_text(plain.pieces, SIZE) or ()
        made = blocks.write(content, then, compared.fileno(), SIZE, known, mapped)

    assert made == plain
    assert made.sha256 == digests.combine(each)
    assert made.same == (now == base)
    assert targets[0].read_bytes() == targets[1].read_bytes()


def test_no_map_of_nothing(tmp_path: Path) -> None:
    """An empty base cannot be mapped, which is said as an error that callers know."""
    (tmp_path / "base").touch()
    with blocks.open_as_owner(tmp_path / "base") as fd, pytest.raises(ValueError, match="empty"):
        MappedBase(fd)


def test_beyond_its_end(tmp_path: Path) -> None:
    """What is longer than the base is never as in the base."""
    (tmp_path / "base").write_bytes(b"x" * 100)
    (tmp_path / "now").write_bytes(b"x" * 101)
    with (
        blocks.open_as_owner(tmp_path / "base") as base,
        blocks.open_as_owner(tmp_path / "now") as fd,
    ):
        mapped = MappedBase(base)
        assert mapped.holds(fd, 0, 100)
        assert not mapped.holds(fd, 0, 101)
        assert not mapped.holds(fd, 99, 102)
        assert mapped.has(b"x" * 7, 93)
        assert not mapped.has(b"x" * 7, 94)
        assert not mapped.has(b"xxy", 5)


LARGE = 4 * CHUNK
LONG = "sessions/long.jsonl"


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a test are large early, and have been left alone for long."""
    monkeypatch.setattr(blocks, "MIN_SIZE", LARGE)
    monkeypatch.setattr(unchanged, "SETTLED", 0)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one large file."""
    home = support.healthy(tmp_path / "home")
    support.put(home / LONG, random.Random(1).randbytes(2 * LARGE))
    return home


def verified(home: Path, backup: Backup) -> None:
    """Insist that a backup is whole."""
    assert Vault(Home(home)).verify(backup) == []


def one_piece(entry: BackupEntry) -> BackupEntry:
    """The sum of one piece is wrong."""
    return entry._replace(pieces=entry.pieces[:-64] + "5" * 64)


def first_piece(entry: BackupEntry) -> BackupEntry:
    """The same of another."""
    return entry._replace(pieces="5" * 64 + entry.pieces[64:])


def exchanged(entry: BackupEntry) -> BackupEntry:
    """Two pieces have each other's sum."""
    first, second = entry.pieces[:64], entry.pieces[64:128]
    return entry._replace(pieces=second + first + entry.pieces[128:])


def the_whole(entry: BackupEntry) -> BackupEntry:
    """The sum of the whole is wrong."""
    return entry._replace(sha256=digests.PREFIX + "5" * 64)


def malformed(entry: BackupEntry) -> BackupEntry:
    """What cannot be sums."""
    return entry._replace(pieces="no sums")


WRONG = (one_piece, first_piece, exchanged, the_whole, malformed)
wrongly = pytest.mark.parametrize("wrong", WRONG, ids=[one.__name__ for one in WRONG])


@pytest.mark.sampled
@wrongly
@pytest.mark.parametrize("changed", [True, False])
@pytest.mark.parametrize("in_blocks", [True, False])
def test_of_a_database_in_use(
    home: Path, wrong: Callable[[BackupEntry], BackupEntry], changed: bool, in_blocks: bool
) -> None:
    """Whole or in blocks before; a little different by now or not at all."""
    with writing(home / "live.db") as writer:
        writer.write(1)
        writer.checkpoint()
        before = back_up(home)
        if in_blocks:
            writer.tell("UPDATE entries SET version = 2 WHERE id <= 3")
            before = back_up(home)
        assert entry(before, "live.db").blocks == in_blocks
        forge(home, "live.db", wrong)
        if changed:
            writer.tell("UPDATE entries SET version = 3 WHERE id = 500")

        made = back_up(home)
        verified(home, made)
        writer.tell("UPDATE entries SET version = 4 WHERE id = 500")
        after = back_up(home)

    assert entry(after, "live.db").blocks
    verified(home, after)


@pytest.mark.sampled
@wrongly
def test_of_a_file_at_rest(home: Path, wrong: Callable[[BackupEntry], BackupEntry]) -> None:
    """One that is kept in blocks, and becomes what it was at first: pieces are its base's again."""
    data = (home / LONG).read_bytes()
    back_up(home)
    support.clobber(home / LONG, at=CHUNK)
    before = back_up(home)
    assert entry(before, LONG).blocks
    forge(home, LONG, wrong)
    (home / LONG).write_bytes(data[:-5] + b"again")

    made = back_up(home)

    assert entry(made, LONG).blocks
    verified(home, made)


@pytest.mark.sampled
@pytest.mark.parametrize("json", [True, False])
@pytest.mark.parametrize("name", [LONG, "config.yaml"])
def test_a_damaged_one_is_told(home: Path, name: str, json: bool) -> None:
    """Which backup, and of what its copy is not what was saved; in the new one it is."""
    before = back_up(home)
    copy = before.copy_of(entry(before, name))
    unseen(copy, b"damaged")
    os.utime(home / name)

    made = support.doctor("backup", "create", *(["--json"] if json else []), "--home", home)
    store = Vault(Home(home))

    if json:
        assert made.json["damaged_before"] == [{"backup": before.id, "path": name}]
    else:
        said = f"Saved again: {name}. The copy in the earlier backup {before.id} is damaged"
        assert said in " ".join(made.out.split())
    assert store.verify(store.load(store.ids()[-1])) == []


def test_all_sums_are_wrong(home: Path) -> None:
    """They fit each other, but not the bytes, a few of which are compared each time."""

    def wrong(entry: BackupEntry) -> BackupEntry:
        each = [bytes([5]) * 32] * (len(entry.pieces) // 64)
        return entry._replace(pieces=digests.to_text(each), sha256=digests.combine(each))

    with writing(home / "live.db") as writer:
        writer.write(1)
        writer.checkpoint()
        back_up(home)
        forge(home, "live.db", wrong)
        writer.tell("UPDATE entries SET version = 3 WHERE id = 500")

        made = back_up(home)

    assert entry(made, "live.db").blocks
    verified(home, made)


@pytest.mark.parametrize("seed", range(40))
def test_any_change(tmp_path: Path, seed: int) -> None:
    """What is said to be known of a base is right, whatever was changed, cut off or added."""
    chance = random.Random(seed)
    base = chance.randbytes(4 * CHUNK + chance.choice([0, 1, 5000]))
    now = bytearray(base)
    for _ in range(chance.randrange(3)):
        now[chance.randrange(len(now))] ^= 1
    if seed % 3 == 1:
        del now[-chance.choice([1, 4096, 5000, CHUNK, CHUNK + 7]) :]
    if seed % 3 == 2:
        now += chance.randbytes(chance.choice([1, 4096, CHUNK, CHUNK + 7]))
    (tmp_path / "base").write_bytes(base)
    (tmp_path / "now").write_bytes(now)
    with (
        blocks.open_as_owner(tmp_path / "base") as then,
        blocks.open_as_owner(tmp_path / "now") as fd,
        (tmp_path / "changed").open("wb", 0) as target,
    ):
        made = blocks.write(blocks.chunks(fd), then, target.fileno(), len(now))
        right = digests.chunks_of_file(then)
    assert made is not None
    one = BackupEntry(
        "f", "file", size=made.size, sha256=made.sha256, pieces=made.pieces, blocks=True
    )

    known = blocks.chunk_digests(tmp_path, one)

    assert len(known) == len(right)
    assert all(mine in (None, its) for mine, its in zip(known, right, strict=True))
    assert not blocks.contradicts(tmp_path, one)
    if seed % 3 == 0:
        assert known.count(None) <= 3


@pytest.mark.parametrize(
    "damage",
    [b"", b"no changes", blocks._MAGIC, blocks._MAGIC + b"\xff" * 16, blocks._MAGIC + bytes(16)],
)
def test_parts_that_are_none(tmp_path: Path, damage: bytes) -> None:
    """Nothing is known of a base by changes that are damaged."""
    data = random.Random(2).randbytes(2 * CHUNK)
    (tmp_path / "base").write_bytes(data)
    (tmp_path / "changed").write_bytes(damage)
    each = [digests.of(data[:CHUNK]), digests.of(data[CHUNK:])]
    one = BackupEntry("f", "file", blocks=True, sha256=digests.combine(each))
    for size in (len(data), 2**60):
        one = one._replace(size=size, pieces=digests.to_text(each))
        assert blocks.chunk_digests(tmp_path, one) == ()
        assert blocks.contradicts(tmp_path, one)
    assert blocks.chunk_digests(tmp_path / "gone", one) == ()
