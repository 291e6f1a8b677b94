"""Backups that share what did not change: each whole in itself, and none trusts what it cannot."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import time
from pathlib import Path

import pytest

from hermes_doctor.backup.vault import blocks, manifest, restore_files, unchanged
from hermes_doctor.backup.vault.manifest import Backup, BackupEntry
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import digests, disk
from hermes_doctor.core.system.files import snapshot
from tests.helpers import support
from tests.helpers.database_writer import ROWS, back_up, versions, writing

LARGE = 256 * 1024


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a test are large early, and have been left alone for long."""
    monkeypatch.setattr(blocks, "MIN_SIZE", LARGE)
    monkeypatch.setattr(unchanged, "SETTLED", 0)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a few files and one large one."""
    home = support.healthy(tmp_path / "home")
    support.put(home / "skills" / "one" / "SKILL.md", "a skill")
    support.put(home / "sessions" / "long.jsonl", random.Random(1).randbytes(2 * LARGE))
    return home


def entry(backup: Backup, name: str) -> BackupEntry:
    """One entry that must be there."""
    found = backup.entry(name)
    assert found is not None, name
    return found


def inode(backup: Backup, name: str) -> int:
    """The file that holds the copy."""
    return backup.copy_of(entry(backup, name)).stat().st_ino


def content(backup: Backup, name: str, place: Path) -> bytes:
    """What would be given back."""
    restore_files.rebuild(backup, entry(backup, name), place)
    data = place.read_bytes()
    place.unlink()
    return data


def whole(home: Path) -> None:
    """Insist that every backup verifies."""
    store = Vault(Home(home))
    for id in store.ids():
        assert store.verify(store.load(id)) == [], id


def test_what_did_not_change_is_shared(home: Path) -> None:
    """A second backup has second names for the first one's copies, and never for the home's own."""
    first = back_up(home)
    support.put(home / "config.yaml", "changed: true\n")

    second = back_up(home)

    assert second.shares == first.id
    assert first.shares is None
    for one in second.entries:
        if one.path == "config.yaml":
            assert inode(second, one.path) != inode(first, one.path)
        else:
            assert inode(second, one.path) == inode(first, one.path), one.path
        assert inode(second, one.path) != (home / one.path).stat().st_ino
    whole(home)


def test_ten_backups_take_little_more_than_one(home: Path) -> None:
    """Blocks on the disk, each file counted once."""

    def used() -> int:
        files = {f.stat().st_ino: f.stat().st_blocks for f in home.glob("backups/**/*")}
        return sum(files.values()) * 512

    back_up(home)
    one = used()
    for day in range(9):
        support.put(home / "memories" / "MEMORY.md", f"day {day}")
        with (home / "sessions" / "long.jsonl").open("ab") as log:
            log.write(b"a line\n")
        back_up(home)

    assert used() < 1.5 * one
    whole(home)


def test_pruning_one_harms_no_other(home: Path, tmp_path: Path) -> None:
    """Whichever of them goes, the others stay whole and give back what they held."""
    data = (home / "sessions" / "long.jsonl").read_bytes()
    made = [back_up(home)]
    for number in range(1, 4):
        data = data[: LARGE // 2] + b"%d" % number + data[LARGE // 2 + 1 :]
        (home / "sessions" / "long.jsonl").write_bytes(data)
        made.append(back_up(home))
    store = Vault(Home(home))
    held = [content(one, "sessions/long.jsonl", tmp_path / "out") for one in made]
    assert len(set(held)) == 4

    for gone in (0, 2, 3):
        store.discard(made[gone].id)
        whole(home)
        assert content(made[1], "sessions/long.jsonl", tmp_path / "out") == held[1]


@pytest.mark.sampled
@pytest.mark.parametrize("same_times", [True, False])
def test_changed_within_a_tick_of_the_clock(
    home: Path, monkeypatch: pytest.MonkeyPatch, same_times: bool
) -> None:
    """A file that was written just before it was read is read again, whatever its times say."""
    monkeypatch.undo()
    assert unchanged.SETTLED >= 10**10
    path = support.put(home / "auth.json", "one")
    first = back_up(home)
    before = path.stat()
    path.write_text("two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    if same_times:  # the second write came within the same tick: nothing tells of it
        found = entry(first, "auth.json")
        marks = unchanged.marks(snapshot(path))
        assert len(marks) == len(found.seen) - 1
        forged = tuple(
            one._replace(seen=(found.seen[0], *marks)) if one.path == "auth.json" else one
            for one in first.entries
        )
        seal = manifest.seal(first._replace(entries=forged))
        (first.folder / "manifest.json").write_bytes(seal)

    second = back_up(home)

    assert second.copy_of(entry(second, "auth.json")).read_text() == "two"


def test_read_again_and_found_the_same(home: Path) -> None:
    """New times, an old content: the copy is shared all the same."""
    first = back_up(home)
    os.utime(home / "auth.json")
    os.utime(home / "sessions" / "long.jsonl")

    second = back_up(home)

    for name in ("auth.json", "sessions/long.jsonl"):
        assert inode(second, name) == inode(first, name)
        assert entry(second, name).mtime_ns == (home / name).stat().st_mtime_ns
    assert not (second.folder / "blocks").exists() or not list(second.folder.glob("blocks/**/base"))


def test_read_again_in_blocks_and_found_the_same(home: Path) -> None:
    """The same of a file that is kept as what is different from an earlier one."""
    back_up(home)
    support.clobber(home / "sessions" / "long.jsonl")
    second = back_up(home)
    os.utime(home / "sessions" / "long.jsonl")

    third = back_up(home)

    for part in ("base", "changed"):
        inodes = [
            (one.copy_of(entry(one, "sessions/long.jsonl")) / part).stat().st_ino
            for one in (second, third)
        ]
        assert inodes[0] == inodes[1]
    assert Vault(Home(home)).verify(third) == []


def test_modes_and_owners_are_of_today(home: Path) -> None:
    """A shared copy is given back with the mode that the file has by now."""
    back_up(home)
    (home / "auth.json").chmod(0o640)

    second = back_up(home)

    assert entry(second, "auth.json").mode == 0o640


# -- damage ----------------------------------------------------------------------------------


def test_tampering_is_noticed_in_every_backup_that_shares(home: Path) -> None:
    """One file of the vault, two names: both backups are damaged, and the third does not share."""
    first, second = back_up(home), back_up(home)
    time.sleep(0.05)  # so that the changed copy has another time
    support.clobber(first.copy_of(entry(first, ".env")), b"X", 3)
    store = Vault(Home(home))

    assert store.verify(first)
    assert store.verify(second)
    third = back_up(home)

    assert store.verify(third) == []
    assert inode(third, ".env") != inode(first, ".env")


def test_damage_of_the_disk_does_not_spread(home: Path) -> None:
    """Bits that flip without a trace in any time are found when the copy has its turn."""
    first = back_up(home)
    store = Vault(Home(home))
    copy = first.copy_of(entry(first, "state.db"))
    before = copy.stat()
    support.clobber(copy, b"rot", 9000)
    os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))

    for _ in range(unchanged.SHARE):
        last = back_up(home)
        if store.verify(last) == []:
            break

    assert store.verify(last) == []
    assert store.verify(first)


def test_a_damaged_copy_takes_no_good_one_s_place(home: Path) -> None:
    """A file that was touched is read and found the same; its copy must be the same as well."""
    for name in range(40):
        support.put(home / "sessions" / f"{name:02}", os.urandom(20_000))
    first = back_up(home)
    copy = first.folder / "files" / "sessions" / "39"
    times = copy.stat()
    support.clobber(copy, b"damaged", 100)
    os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))
    os.utime(home / "sessions" / "39")

    second = back_up(home)

    assert second.shares == first.id
    assert Vault(Home(home)).verify(second) == []


def test_a_damaged_copy_is_nothing_to_build_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory may still have of a large copy what the disk has no more: then it is copied anew."""
    first = back_up(home)
    os.utime(home / "sessions" / "long.jsonl")
    monkeypatch.setattr(unchanged.PreviousBackup, "is_copy_intact", lambda earlier, entry: False)

    second = back_up(home)

    assert not entry(second, "sessions/long.jsonl").blocks
    assert inode(second, "sessions/long.jsonl") != inode(first, "sessions/long.jsonl")


def test_it_changes_while_it_is_copied_for_want_of_links(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found the same, but not to be shared: the second copy must be of one moment as well."""
    file = home / "sessions" / "long.jsonl"
    back_up(home)
    os.utime(file)
    refused: list[str] = []

    def link(old: str, new: str, **_: object) -> None:
        if str(new).endswith("long.jsonl"):
            refused.append(new)
        raise OSError(errno.EPERM, "no links here")

    def change(_: int) -> None:
        if refused:
            refused.clear()
            os.truncate(file, 5)

    monkeypatch.setattr(os, "link", link)

    second = back_up(home, change)

    assert entry(second, "sessions/long.jsonl").size == 5
    assert Vault(Home(home)).verify(second) == []


def test_every_copy_has_its_turn(home: Path) -> None:
    """After as many backups as there are shares, everything was read again."""
    back_up(home)
    begun = back_up(home).created_at.timestamp() * 1e9

    for _ in range(unchanged.SHARE + 1):
        last = back_up(home)

    # Each turn takes at least its share, so a few files may be read earlier than needed.
    unread = [one.path for one in last.entries if one.kind == "file" and one.read_at < begun]
    assert unread == []


def test_a_copy_that_is_gone_or_cannot_be_shared(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it is copied anew, on a drive without hard links all of it."""
    first = back_up(home)
    first.copy_of(entry(first, ".env")).unlink()
    second = back_up(home)
    assert second.copy_of(entry(second, ".env")).read_bytes() == (home / ".env").read_bytes()

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(disk, "link_into_folder", refused)
    third = back_up(home)

    assert third.shares is None
    assert all(inode(third, one.path) != inode(second, one.path) for one in third.entries)
    whole_store = Vault(Home(home))
    assert whole_store.verify(third) == []


@pytest.mark.sampled
@pytest.mark.parametrize("part", ["base", "changed"])
def test_damage_of_a_part(home: Path, part: str) -> None:
    """A flipped bit in either part shows, and so does one that is missing, cut or no such file."""
    back_up(home)
    support.clobber(home / "sessions" / "long.jsonl", b"changed", 5000)
    made = back_up(home)
    store = Vault(Home(home))
    assert entry(made, "sessions/long.jsonl").blocks
    assert store.verify(made) == []
    path = made.copy_of(entry(made, "sessions/long.jsonl")) / part
    data = path.read_bytes()
    path.unlink()

    assert store.verify(made) == ["sessions/long.jsonl: the copy is missing"]
    spoilt = [data[: len(data) // 2], b"", b"\xff" * len(data)]
    spoilt += [
        data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        for at in ([*range(60), len(data) - 1] if part == "changed" else [100, len(data) - 1])
    ]
    for bad in spoilt:
        path.write_bytes(bad)
        wrong = store.verify(made)
        assert len(wrong) == 1, bad[:60]
        assert wrong[0].startswith("sessions/long.jsonl: the copy")
        with pytest.raises(Trouble, match="damaged"):
            restore_files.rebuild(made, entry(made, "sessions/long.jsonl"), home.parent / "out")
        assert not (home.parent / "out").exists()


# -- blocks ----------------------------------------------------------------------------------


def test_any_change_of_a_large_file(home: Path, tmp_path: Path) -> None:
    """Longer, shorter, empty, changed at odd places: what comes back is what was there."""
    path = home / "sessions" / "long.jsonl"
    chance = random.Random(7)
    made: list[tuple[Backup, bytes]] = []
    data = path.read_bytes()
    for _ in range(25):
        made.append((back_up(home), path.read_bytes()))
        for _ in range(chance.randrange(4)):
            at, length = chance.randrange(len(data) + 1), chance.randrange(6000)
            data = data[:at] + chance.randbytes(length) + data[at + length :]
        if chance.random() < 0.2:
            data = data[: chance.randrange(len(data) // 2, len(data) + 1)]
        if chance.random() < 0.3:
            data += chance.randbytes(chance.randrange(100_000))
        path.write_bytes(data)
    for backup, held in made:
        assert content(backup, "sessions/long.jsonl", tmp_path / "out") == held
    assert any(entry(one, "sessions/long.jsonl").blocks for one, _ in made)
    whole(home)


def test_much_changed_is_copied_whole(home: Path) -> None:
    """More than a third is different: a new whole copy, and nothing of the attempt is left."""
    first = back_up(home)
    path = home / "sessions" / "long.jsonl"
    path.write_bytes(random.Random(2).randbytes(2 * LARGE))

    second = back_up(home)

    assert not entry(second, "sessions/long.jsonl").blocks
    assert inode(second, "sessions/long.jsonl") != inode(first, "sessions/long.jsonl")
    assert not [file for file in second.folder.glob("blocks/**/*") if file.is_file()]
    whole(home)


def test_a_base_that_can_no_longer_be_read(tmp_path: Path) -> None:
    """What the disk does not give is not taken from there."""
    data = random.Random(3).randbytes(3 * digests.CHUNK)
    real = os.pread
    pieces = [hashlib.sha256(data[i : i + 2**18]).digest() for i in range(0, len(data), 2**18)]
    (tmp_path / "base").write_bytes(data)
    base = os.open(tmp_path / "base", os.O_RDONLY)
    target = os.open(tmp_path / "changed", os.O_WRONLY | os.O_CREAT)

    def failing(fd: int, length: int, at: int) -> bytes:
        if fd == base and at == digests.CHUNK:
            raise OSError(5, "Input/output error")
        return real(fd, length, at)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pread", failing)
        made = blocks.write(
            [data[i : i + digests.CHUNK] for i in range(0, len(data), digests.CHUNK)],
            base,
            target,
            len(data),
            pieces,
        )
        unknown = blocks.write([data], base, target, len(data))
    os.close(base)
    os.close(target)

    assert made is not None
    assert made.sha256 == digests.combine(pieces)
    assert unknown is None
    assert (tmp_path / "changed").stat().st_size > digests.CHUNK
    assert b"".join(blocks.read(tmp_path)) == data


# -- databases in use --------------------------------------------------------------------------


def test_a_live_database_that_nobody_wrote_to(home: Path) -> None:
    """File and log are as they were: its copy is shared, though somebody has it open."""
    with writing(home / "live.db") as writer:
        writer.write(1)
        first = back_up(home)
        second = back_up(home)
        writer.tell("UPDATE entries SET version = 2 WHERE id = 5")
        third = back_up(home)

    assert entry(second, "live.db").method == "sqlite"
    assert inode(second, "live.db") == inode(first, "live.db")
    assert entry(third, "live.db").sha256 != entry(second, "live.db").sha256


@pytest.mark.sampled
@pytest.mark.parametrize("checkpoint", ["", "PASSIVE", "TRUNCATE"])
def test_a_live_database_that_changed_a_little(home: Path, tmp_path: Path, checkpoint: str) -> None:
    """Only its changed pages are kept; they give back one moment of it, and a sound one."""
    with writing(home / "live.db") as writer:
        writer.write(1)
        writer.checkpoint()
        first = back_up(home)
        writer.tell("UPDATE entries SET version = 2 WHERE id <= 10")
        if checkpoint:
            writer.checkpoint(checkpoint)

        second = back_up(home)

        writer.write(3)
    one = entry(second, "live.db")
    assert (one.method, one.integrity, one.blocks) == ("sqlite", "ok", True)
    parts = second.copy_of(one)
    assert (parts / "base").stat().st_ino == inode(first, "live.db")
    assert (parts / "changed").stat().st_size < one.size / 10
    (tmp_path / "files").mkdir()
    restore_files.rebuild(second, one, tmp_path / "files" / "live.db")
    given = second._replace(folder=tmp_path)
    assert versions(given, "live.db", tmp_path / "out") == [(1, ROWS - 10), (2, 10)]


def test_when_sqlite_examines_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at every backup of a day; and a damaged one is never called sound for that."""
    with writing(home / "live.db") as writer:
        writer.write(1)
        writer.tell("CREATE INDEX by_version ON entries (version)")
        writer.checkpoint("TRUNCATE")
        first = back_up(home)
        writer.tell("UPDATE entries SET filler = 'x' WHERE id = 7")
        second = back_up(home)
        assert entry(second, "live.db").blocks
        assert entry(second, "live.db").examined_at == entry(first, "live.db").examined_at
        monkeypatch.setattr(unchanged, "EXAMINED", 0)
        writer.tell("UPDATE entries SET filler = 'y' WHERE id = 7")
        third = back_up(home)
        assert entry(third, "live.db").examined_at > entry(first, "live.db").examined_at
        writer.tell("UPDATE entries SET filler = 'z' WHERE id = 7")
        writer.checkpoint("TRUNCATE")
        [[root]] = writer.tell("SELECT rootpage FROM sqlite_master WHERE type = 'index'")
        support.clobber(home / "live.db", b"\0" * 64, (root - 1) * 4096)
        fourth = back_up(home)

    assert entry(fourth, "live.db").integrity == "damaged"
    assert not fourth.sound


def test_a_full_backup_shares_nothing(home: Path) -> None:
    """`--full` copies everything anew."""
    first = support.doctor("backup", "create", "--json", "--home", home).json
    second = support.doctor("backup", "create", "--full", "--json", "--home", home).json

    assert second["shares"] is None
    for name in (".env", "state.db"):
        copies = [Path(one["folder"]) / "files" / name for one in (first, second)]
        assert copies[0].stat().st_ino != copies[1].stat().st_ino


def test_a_run_s_own_backup_shares_nothing(home: Path) -> None:
    """What a repair is about to change is copied, whatever lies in the vault."""
    back_up(home)
    (home / ".env").chmod(0o644)
    support.put(home / ".env", b"\xef\xbb\xbfA=1\n")

    assert support.doctor("fix", "--apply", "--home", home).code == 0

    store = Vault(Home(home))
    assert store.load(store.ids()[-1]).shares is None


def test_manifests_of_before_are_read(home: Path) -> None:
    """One that was written before entries had lines of their own, and fields for sharing."""
    made = back_up(home)
    document = json.loads((made.folder / "manifest.json").read_bytes())
    for one in document["entries"]:
        for name in ("blocks", "seen", "read_at", "examined_at"):
            one.pop(name, None)
    for name in ("seal", "shares", "left_out"):
        del document[name]

    def formerly(what: object) -> bytes:
        return json.dumps(what, sort_keys=True, ensure_ascii=True, indent=1).encode() + b"\n"

    document["seal"] = hashlib.sha256(formerly(document)).hexdigest()
    (made.folder / "manifest.json").write_bytes(formerly(document))

    store = Vault(Home(home))
    assert store.verify(store.load(made.id)) == []
    second = back_up(home)
    assert second.shares == made.id, "read again, and found the same"
