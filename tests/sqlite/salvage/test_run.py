"""The salvage on a small history: what must come back, and what must not."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
import struct
from pathlib import Path

import pytest

from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.sqlite.salvage.account import (
    FROM_FULLTEXT_COPIES,
    FROM_TRANSCRIPTS,
    SalvageResult,
    TableResult,
)
from hermes_doctor.sqlite.salvage.older_copies import OlderFile
from hermes_doctor.sqlite.salvage.run import salvage
from tests.helpers import salvage_history
from tests.helpers.salvage_history import (
    blueprint_of,
    copy,
    history,
    on_leaf,
    page_of,
    rows,
    saved,
    zero,
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound history."""
    return history(tmp_path_factory.mktemp("sound") / "state.db", 600)


@pytest.fixture
def sick(sound: Path, tmp_path: Path) -> Path:
    """A copy of it to be damaged."""
    return copy(sound, tmp_path / "state.db")


def same(one: Path, other: Path, *tables: str) -> None:
    """Every row of these tables is what it was."""
    for table in tables or ("sessions", "messages", "state_meta", "schema_version"):
        assert rows(one, table) == rows(other, table), table


def sql(path: Path, *statements: str) -> None:
    """Change a database at rest."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA writable_schema=ON")
        for statement in statements:
            database.execute(statement)


def test_a_sound_database_comes_through_whole(sound: Path, sick: Path, tmp_path: Path) -> None:
    """Every row, the last number given, the settings of full text, and an account of it."""
    target, account = saved(sick, tmp_path)
    same(sound, target)
    assert account.complete
    messages = account.table("messages")
    assert messages and messages.saved == messages.there == len(rows(sound, "messages"))
    count = messages.there
    assert f"messages: {count} saved of {count} rows." in account.sentences
    with contextlib.closing(sqlite3.connect(target)) as database:
        assert database.execute("SELECT seq FROM sqlite_sequence").fetchall() == [(600,)]
        found = database.execute("SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'a*'")
        assert found.fetchone()[0] > 0


@pytest.mark.sampled
@pytest.mark.parametrize("page_size", [512, 1024, 8192, 65536])
def test_other_page_sizes(tmp_path: Path, page_size: int) -> None:
    """Also when the header lies about it."""
    original = history(tmp_path / "original.db", 400, page_size=page_size)
    sick = copy(original, tmp_path / "state.db")
    with sick.open("r+b") as file:
        file.write(bytes(100))
    target, _ = saved(sick, tmp_path)
    same(original, target)


def test_a_wrong_page_size_over_few_trees(tmp_path: Path) -> None:
    """A store of a few long rows has hardly a page that could vote."""
    for name in ("fresh-store.db", "store.db"):
        sql(tmp_path / name, "CREATE TABLE responses (id TEXT PRIMARY KEY, data TEXT NOT NULL)")
    sql(
        tmp_path / "store.db",
        "INSERT INTO responses VALUES ('a', hex(randomblob(90000))), ('b', hex(randomblob(70000)))",
    )
    sick = copy(tmp_path / "store.db", tmp_path / "state.db")
    with sick.open("r+b") as file:
        file.seek(16)
        file.write(struct.pack(">H", 8192))
    target, _ = saved(sick, tmp_path, blueprint_of(tmp_path / "fresh-store.db"))
    same(tmp_path / "store.db", target, "responses")


def test_text_behind_a_zero_byte(sound: Path, sick: Path, tmp_path: Path) -> None:
    """Multimodal rows keep what every text dump cuts off, also when they are healed."""
    zero(sick, *page_of(sound, "messages", "internal"))
    target, _ = saved(sick, tmp_path)
    texts = {
        key: row for key, row in rows(sound, "messages").items() if any(
            isinstance(value, bytes) and value.startswith(b"\0json:") for value in row
        )
    }  # fmt: skip
    assert len(texts) > 10
    found = rows(target, "messages")
    assert all(found[key] == row for key, row in texts.items())


@pytest.mark.sampled
@pytest.mark.parametrize("header", [16, 100, 4096])
def test_the_beginning_is_lost(sound: Path, sick: Path, tmp_path: Path, header: int) -> None:
    """Without magic, header or first page nothing is lost."""
    with sick.open("r+b") as file:
        file.write(bytes(header))
    target, account = saved(sick, tmp_path)
    same(sound, target, "messages", "sessions", "schema_version")
    assert account.complete or header == 4096


def test_most_of_a_tree_is_cut_off(sound: Path, sick: Path, tmp_path: Path) -> None:
    """The pages that a parent still has are its own, also where most of them are gone; the
    indexes, which could have named their rows, are gone with them."""
    leaves = page_of(sound, "messages", "leaf")
    kept = leaves[len(leaves) // 3]
    here = {number for leaf in leaves if leaf <= kept for number in _rows_of(sound, leaf)}
    os.truncate(sick, kept * 4096)
    for name in ("idx_messages_session", "sqlite_autoindex_sessions_1"):
        zero(sick, *(page for page in page_of(sound, name, "leaf") if page <= kept))
    zero(sick, *(page for page in page_of(sound, "messages_fts_content", "leaf") if page <= kept))

    target, _ = saved(sick, tmp_path)

    there, got = rows(sound, "messages"), rows(target, "messages")
    short = {number for number in here if len(there[number][1] or b"") < 1000}
    assert short and all(got.get(number) == there[number] for number in short)


def test_a_lost_leaf_is_rebuilt_in_part(sound: Path, sick: Path, tmp_path: Path) -> None:
    """Text from full text, session and time from an index; counted as what it is."""
    gone = on_leaf(sound, "messages", 5)
    zero(sick, _leaf(sound, "messages", 5))
    target, account = saved(sick, tmp_path)
    before, after = rows(sound, "messages"), rows(target, "messages")
    assert set(after) == set(before)
    assert all(after[key] == before[key] for key in before if key not in gone)
    told = account.table("messages")
    assert told is not None
    assert (told.partial, told.lost, told.there) == (len(gone), 0, len(before))


def test_a_flipped_bit_is_outvoted(sound: Path, sick: Path, tmp_path: Path) -> None:
    """Two copies in full text agree against the row."""
    words = "words that are said only once in this history"
    sql(
        sick,
        "INSERT INTO messages (session_id, role, content, timestamp) "
        f"VALUES ('s0000', 'user', '{words}', 1.77e9)",
    )
    original = copy(sick, tmp_path / "original.db")
    data = bytearray(sick.read_bytes())
    places = _all(data, words.encode())
    assert len(places) == 3
    data[_row_of(original, places) + 7] ^= 4
    sick.write_bytes(data)
    target, account = saved(sick, tmp_path)
    same(original, target)
    told = account.table("messages")
    assert told and told.restored == {FROM_FULLTEXT_COPIES: 1}


def test_an_edited_message_is_not_turned_back(sound: Path, sick: Path, tmp_path: Path) -> None:
    """Copies that are older than the row, because its triggers were gone, do not count."""
    sql(
        sick,
        "DROP TRIGGER messages_fts_update",
        "DROP TRIGGER messages_fts_trigram_update",
        "UPDATE messages SET content = 'something shorter' WHERE id = 200",
    )
    target, _ = saved(sick, tmp_path)
    same(sick, target)


def test_a_chain_that_breaks_is_completed(sound: Path, sick: Path, tmp_path: Path) -> None:
    """The record still tells how long each of its values was."""
    pages = page_of(sound, "messages", "overflow")
    zero(sick, *pages[:6])
    target, account = saved(sick, tmp_path)
    told = account.table("messages")
    assert told is not None and sum(told.restored.values()) > 0
    before, after = rows(sound, "messages"), rows(target, "messages")
    assert sum(after[key] == row for key, row in before.items()) == told.kept - told.partial


@pytest.mark.sampled
@pytest.mark.parametrize("spoil", ["nothing", "freelist", "header"])
@pytest.mark.parametrize("lost", ["root", "interior", "leaves"])
def test_deleted_rows_stay_deleted(
    sound: Path, sick: Path, tmp_path: Path, lost: str, spoil: str
) -> None:
    """Free pages still hold them, and nothing may take those pages for lost ones."""
    assert struct.unpack(">I", sick.read_bytes()[36:40])[0] > 3, "there are free pages"
    if spoil == "freelist":
        with sick.open("r+b") as file:
            file.seek(32)
            file.write(struct.pack(">I", 0xFFFFFF))
    elif spoil == "header":
        with sick.open("r+b") as file:
            file.write(bytes(100))
    if lost == "root":
        zero(sick, _root(sound, "messages"))
    elif lost == "interior":
        zero(sick, *page_of(sound, "messages", "internal"), _root(sound, "sessions"))
    else:
        zero(sick, *(_leaf(sound, "messages", n) for n in (0, 2, 4)))
    target, _ = saved(sick, tmp_path)
    assert set(rows(target, "messages")) <= set(rows(sound, "messages"))
    assert set(rows(target, "sessions", "id")) <= set(rows(sound, "sessions", "id"))
    if lost != "leaves":
        same(sound, target, "messages")


@pytest.fixture(scope="module")
def thinned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of which much was deleted here and there, so that pages were merged and freed."""
    path = history(tmp_path_factory.mktemp("thinned") / "state.db", 3000)
    chance = random.Random(3)
    gone = chance.sample(range(2, 150), 45)
    sql(
        path,
        "PRAGMA secure_delete=OFF",
        *(f"DELETE FROM messages WHERE session_id = 's{number:04d}'" for number in gone),
        *(f"DELETE FROM sessions WHERE id = 's{number:04d}'" for number in gone),
        *(f"DELETE FROM messages WHERE id = {one}" for one in chance.sample(range(1, 3000), 700)),
    )
    return path


@pytest.mark.sampled
@pytest.mark.parametrize("spoil", ["cut to 30 %", "cut to 50 %", "cut to 80 %", "list emptied"])
def test_deleted_rows_stay_deleted_without_a_list(
    thinned: Path, tmp_path: Path, spoil: str
) -> None:
    """Pages that were given back are not taken for lost ones where nothing lists them."""
    sick = copy(thinned, tmp_path / "state.db")
    if spoil == "list emptied":
        zero(sick, *page_of(thinned, "messages", "internal"))
        with sick.open("r+b") as file:
            file.seek(32)
            file.write(bytes(8))
    else:
        os.truncate(sick, sick.stat().st_size // 4096 * int(spoil.split()[2]) // 100 * 4096)
    target, _ = saved(sick, tmp_path)
    assert set(rows(target, "messages")) <= set(rows(thinned, "messages"))
    assert set(rows(target, "sessions", "id")) <= set(rows(thinned, "sessions", "id"))
    if spoil == "list emptied":
        same(thinned, target, "messages")


class TestOtherSources:
    """Snapshots and transcripts give back what the damage took, and nothing else."""

    @pytest.fixture
    def snapshot(self, sound: Path, tmp_path: Path) -> OlderFile:
        """An older copy, with rows that were deleted since."""
        path = copy(sound, tmp_path / "snapshot.db")
        return OlderFile(path, "state-snapshots/one/state.db", 1.0)

    def test_rows_come_from_the_snapshot(
        self, sound: Path, sick: Path, snapshot: OlderFile, tmp_path: Path
    ) -> None:
        """Exactly those of the lost leaf."""
        zero(sick, _leaf(sound, "messages", 5))
        gone = on_leaf(sound, "messages", 5)
        target, account = saved(sick, tmp_path, others=(snapshot,))
        same(sound, target)
        told = account.table("messages")
        assert told and told.restored == {snapshot.name: len(gone)}
        assert account.complete

    @pytest.mark.sampled
    @pytest.mark.parametrize("spoil", ["nothing", "index", "index and one copy"])
    def test_a_row_deleted_since_stays_deleted(
        self, sound: Path, sick: Path, snapshot: OlderFile, tmp_path: Path, spoil: str
    ) -> None:
        """Although its page is lost and the snapshot has it."""
        gone = sorted(on_leaf(sound, "messages", 5))
        deleted = set(gone[1:3])
        sql(sick, f"DELETE FROM messages WHERE id IN ({gone[1]}, {gone[2]})")
        now = set(rows(sick, "messages"))
        zero(sick, _leaf(sick, "messages", 5))
        if spoil != "nothing":
            zero(sick, _root(sick, "idx_messages_session"))
        if spoil == "index and one copy":
            zero(sick, _root(sick, "messages_fts_content"))
        target, account = saved(sick, tmp_path, others=(snapshot,))
        found = set(rows(target, "messages"))
        assert not found & deleted
        assert found == now
        told = account.table("messages")
        assert told and sum(told.restored.values()) == len(gone) - 2

    def test_a_deleted_session_takes_its_messages_along(
        self, sound: Path, sick: Path, snapshot: OlderFile, tmp_path: Path
    ) -> None:
        """Also where no index and no copy is left to say which messages were there."""
        gone = on_leaf(sound, "messages", 5)
        session = rows(sound, "messages")[min(gone)]
        name = next(v.decode() for v in session if isinstance(v, bytes) and v[:1] == b"s")
        sql(sick, f"DELETE FROM messages WHERE session_id = '{name}'")
        sql(sick, f"DELETE FROM sessions WHERE id = '{name}'")
        place = _leaf_of(sick, "messages", sorted(gone)[1])
        zero(
            sick,
            place,
            *(
                _root(sick, root)
                for root in (
                    "idx_messages_session", "messages_fts_content", "messages_fts_trigram_content",
                    "messages_fts_docsize", "messages_fts_trigram_docsize",
                )
            ),
        )  # fmt: skip
        target, account = saved(sick, tmp_path, others=(snapshot,))
        assert name not in rows(target, "sessions", "id")
        assert min(gone) not in rows(target, "messages")
        told = account.table("messages")
        assert told and told.added == {snapshot.name: len(gone & set(rows(target, "messages")))}
        assert told.there + sum(told.added.values()) == told.kept + told.lost
        assert "They may have been deleted earlier" in told.sentence

    def test_the_newest_sound_one_is_asked(
        self, sound: Path, sick: Path, snapshot: OlderFile, tmp_path: Path
    ) -> None:
        """A damaged backup is named and not used."""
        older = OlderFile(copy(sound, tmp_path / "older.db"), "older", 0.5)
        sql(older.path, "UPDATE messages SET finish_reason = 'older'")
        broken = OlderFile(copy(sound, tmp_path / "broken.db"), "broken", 2.0)
        zero(broken.path, _leaf(sound, "messages", 5), _leaf(sound, "messages", 6))
        zero(sick, _leaf(sound, "messages", 5))
        target, account = saved(sick, tmp_path, others=(older, broken, snapshot))
        same(sound, target)
        assert "broken is damaged itself and was not used." in account.notes

    def test_a_lost_session_comes_whole(
        self, sound: Path, sick: Path, snapshot: OlderFile, tmp_path: Path
    ) -> None:
        """By its key, since an index still names it."""
        zero(sick, _root(sound, "sessions"))
        target, _ = saved(sick, tmp_path, others=(snapshot,))
        same(sound, target, "messages", "sessions")

    def test_transcripts(self, sound: Path, sick: Path, tmp_path: Path) -> None:
        """A message without any copy of its text is found between its neighbours."""
        gone = on_leaf(sound, "messages", 5)
        with contextlib.closing(sqlite3.connect(sound)) as database:
            talks: dict[str, list[tuple[str, str, str]]] = {}
            for session, role, content, tool in database.execute(
                "SELECT session_id, role, content, tool_name FROM messages ORDER BY id"
            ):
                talks.setdefault(session, []).append((role, content, tool))
        sources = []
        for number, (session, talk) in enumerate(talks.items()):
            messages = [
                {
                    "role": role,
                    "content": json.loads(content[6:]) if content[:1] == "\0" else content,
                    **({"tool_name": tool} if tool else {}),
                }
                for role, content, tool in talk
            ]
            path = tmp_path / f"{session}.jsonl"
            path.write_text("\n".join(json.dumps(one) for one in messages) + "\n{torn")
            if number % 2:
                path.unlink()
                path = tmp_path / f"session_{session}.json"
                path.write_text(json.dumps({"session_id": session, "messages": messages}))
            sources.append(OlderFile(path, f"sessions/{path.name}"))
        zero(
            sick,
            _leaf(sound, "messages", 5),
            _root(sound, "messages_fts_content"),
            _root(sound, "messages_fts_trigram_content"),
            *page_of(sound, "messages_fts_content", "leaf"),
            *page_of(sound, "messages_fts_trigram_content", "leaf"),
        )
        target, account = saved(sick, tmp_path, others=tuple(sources))
        told = account.table("messages")
        assert told and told.partial + told.restored[FROM_TRANSCRIPTS] == len(gone)
        found, wanted = _texts(target), _texts(sound)
        assert found.keys() == wanted.keys()
        for number, text in found.items():
            if text != wanted[number]:  # of a message in parts the words are kept, as by an agent
                assert number in gone
                assert json.loads(wanted[number][6:])[0]["text"] == text.decode()


def test_a_foreign_log_is_not_followed(sound: Path, sick: Path, tmp_path: Path) -> None:
    """The file alone is sound, the pair is not."""
    other = history(tmp_path / "other.db", 60)
    with contextlib.closing(sqlite3.connect(other)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("UPDATE messages SET content = content || 'x'")
        writer.commit()
        shutil.copyfile(f"{other}-wal", f"{sick}-wal")
    target, account = saved(sick, tmp_path)
    same(sound, target)
    assert any("log does not belong to this file" in note for note in account.notes)


def test_what_the_log_has_belongs_to_it(sound: Path, sick: Path, tmp_path: Path) -> None:
    """Commits that were never checkpointed, also behind a damaged frame."""
    with contextlib.closing(sqlite3.connect(sick)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("PRAGMA wal_autocheckpoint=0")
        for number in range(1000, 1030):
            writer.execute(
                "INSERT INTO messages (id, session_id, role, content, timestamp) "
                "VALUES (?, 's0000', 'user', 'late words', 1.77e9)",
                (number,),
            )
            writer.commit()
        (tmp_path / "crashed").mkdir()
        crashed = copy(sick, tmp_path / "crashed" / "state.db")
        log = bytearray(Path(f"{sick}-wal").read_bytes())
        expected = rows_live(sick)
    frame = 32 + (len(log) - 32) // 4120 // 3 * 4120
    log[frame + 500] ^= 255
    Path(f"{crashed}-wal").write_bytes(log)
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "saved.db"
    account = salvage(crashed, target, salvage_history.blueprint(tmp_path))
    assert set(rows(target, "messages")) == expected
    assert any("write-ahead log is damaged" in note for note in account.notes)


def rows_live(path: Path) -> set[int]:
    """The numbers of the messages as SQLite sees them, its log included."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        return {row[0] for row in database.execute("SELECT id FROM messages")}


def test_a_transaction_cut_off_is_taken_back(sound: Path, sick: Path, tmp_path: Path) -> None:
    """A hot journal of this very file."""
    with contextlib.closing(sqlite3.connect(sick, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size=5")
        writer.execute("BEGIN")
        writer.execute("UPDATE sessions SET message_count = 77")
        writer.execute("UPDATE messages SET finish_reason = 'half'")
        (tmp_path / "crashed").mkdir()
        crashed = copy(sick, tmp_path / "crashed" / "state.db")
        shutil.copyfile(f"{sick}-journal", f"{crashed}-journal")
        writer.execute("ROLLBACK")
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "saved.db"
    account = salvage(crashed, target, salvage_history.blueprint(tmp_path))
    same(sound, target)
    assert any("undone with its journal" in note for note in account.notes)


def test_tables_and_columns_of_others_are_kept(sound: Path, sick: Path, tmp_path: Path) -> None:
    """What the release does not know is still the operator's."""
    sql(
        sick,
        "CREATE TABLE notes_of_mine (a TEXT, b INTEGER NOT NULL)",
        "INSERT INTO notes_of_mine VALUES ('kept', 1), ('too', 2)",
        "CREATE INDEX idx_notes ON notes_of_mine(b)",
        "ALTER TABLE sessions ADD COLUMN mine TEXT DEFAULT 'x'",
        "UPDATE sessions SET mine = 'y' WHERE id = 's0002'",
    )
    zero(sick, _leaf(sound, "messages", 5))
    target, _ = saved(sick, tmp_path)
    same(sick, target, "notes_of_mine", "sessions")


def test_full_text_over_the_table_itself(tmp_path: Path) -> None:
    """A full-text table that keeps no copy is rebuilt from the rows."""
    schema = [
        "CREATE TABLE facts (fact_id INTEGER PRIMARY KEY, content TEXT NOT NULL, tags TEXT)",
        "CREATE VIRTUAL TABLE facts_fts USING fts5(content, tags, content=facts, "
        "content_rowid=fact_id)",
        "CREATE TRIGGER facts_ai AFTER INSERT ON facts BEGIN INSERT INTO "
        "facts_fts(rowid, content, tags) VALUES (new.fact_id, new.content, new.tags); END",
    ]
    for name in ("fresh-facts.db", "facts.db"):
        sql(tmp_path / name, *schema)
    sql(
        tmp_path / "facts.db",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300) "
        "INSERT INTO facts SELECT x, 'fact number ' || x, 'tag' FROM n",
    )
    sick = copy(tmp_path / "facts.db", tmp_path / "state.db")
    zero(sick, _root(sick, "facts"), _root(sick, "facts_fts_data"))
    target, _ = saved(sick, tmp_path, blueprint_of(tmp_path / "fresh-facts.db"))
    same(tmp_path / "facts.db", target, "facts")
    with contextlib.closing(sqlite3.connect(target)) as database:
        found = database.execute("SELECT rowid FROM facts_fts WHERE facts_fts MATCH '217'")
        assert found.fetchall() == [(217,)]


def test_a_hostile_declaration(sick: Path, sound: Path, tmp_path: Path) -> None:
    """What a table out of the file demands is not done to us, and the rest is saved."""
    sql(
        sick,
        "CREATE TABLE trap (a CHECK (length(randomblob(900000000)) > 0))",
        "CREATE TABLE bait (a DEFAULT (randomblob(900000000)))",
        "PRAGMA ignore_check_constraints=ON",
        "INSERT INTO trap VALUES (1)",
        "INSERT INTO bait VALUES (1)",
    )
    target, account = saved(sick, tmp_path)
    same(sound, target)
    assert account.lost == ("the rows of trap",)
    assert not account.complete


def test_references_hold(sound: Path, sick: Path, tmp_path: Path) -> None:
    """Messages of sessions that are gone for good get a bare one to hang on."""
    sql(sick, "PRAGMA foreign_keys=OFF", "DELETE FROM sessions WHERE id = 's0003'")
    target, account = saved(sick, tmp_path)
    same(sound, target, "messages")
    assert b"s0003" in rows(target, "sessions", "id")
    assert any("without content" in note for note in account.notes)
    told = account.table("sessions")
    assert told and told.kept == len(rows(target, "sessions")) and told.partial == 1


@pytest.mark.parametrize("content", [b"", b"<html>502</html>" * 500, bytes(50_000)])
def test_nothing_to_save(tmp_path: Path, content: bytes) -> None:
    """An empty database of the release, and the account says so."""
    sick = tmp_path / "state.db"
    sick.write_bytes(content)
    target, account = saved(sick, tmp_path)
    assert not rows(target, "messages")
    assert not any(table.there for table in account.tables if table.name != "schema_version")


def test_a_target_that_exists_is_left_alone(sick: Path, tmp_path: Path) -> None:
    """Nothing is ever written over."""
    target = tmp_path / "target.db"
    target.write_text("mine")
    with pytest.raises(CannotFix):
        salvage(sick, target, salvage_history.blueprint(tmp_path))
    assert target.read_text() == "mine"


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    """Is said, not crashed over."""
    with pytest.raises((CannotFix, CouldNotLook)):
        salvage(tmp_path / "none.db", tmp_path / "target.db", salvage_history.blueprint(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises((CannotFix, CouldNotLook)):
        salvage(tmp_path / "pipe", tmp_path / "target.db", salvage_history.blueprint(tmp_path))
    assert not (tmp_path / "target.db").exists()


def test_progress_goes_up_to_the_end(sick: Path, tmp_path: Path) -> None:
    """For a bar."""
    seen: list[tuple[int, int]] = []
    salvage(
        sick,
        tmp_path / "target.db",
        salvage_history.blueprint(tmp_path),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]


def test_many_random_damages(sound: Path, tmp_path: Path) -> None:
    """No row appears that there was not, and the account never claims more than is true."""
    before = rows(sound, "messages")
    pages = sound.stat().st_size // 4096
    for seed in range(12):
        chance = random.Random(seed)
        sick = copy(sound, tmp_path / f"sick{seed}.db")
        zero(sick, *chance.sample(range(2, pages + 1), pages // 8))
        target, account = saved(sick, tmp_path)
        after = rows(target, "messages")
        assert set(after) <= set(before)
        for table in account.tables:
            assert table.kept == len(rows(target, table.name)), table.name
        told = account.table("messages")
        exact = sum(after.get(key) == row for key, row in before.items())
        assert told and told.kept == len(after)
        assert told.there <= len(before)
        assert told.saved + sum(told.restored.values()) <= exact


def _root(path: Path, name: str) -> int:
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
        (root,) = db.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)
        ).fetchone()
    return int(root)


def _leaf(path: Path, table: str, place: int) -> int:
    """The page of the leaf at that place in the order of rowids."""
    wanted = on_leaf(path, table, place)
    return _leaf_of(path, table, min(wanted))


def _leaf_of(path: Path, table: str, rowid: int) -> int:
    from hermes_doctor.sqlite.salvage import image, layouts, survey, trees

    with image.open_image(path) as pages:
        seen = survey.Survey(pages)
        tree = trees.walk_table(seen, layouts.read_catalog(seen).root(table))
        return next(leaf.page for leaf in tree.leaves if leaf.low < rowid <= leaf.high)


def _rows_of(path: Path, leaf: int) -> list[int]:
    """The rowids on a page."""
    from hermes_doctor.sqlite.salvage import image, survey

    with image.open_image(path) as pages:
        return survey.Survey(pages).rowids(leaf)


def _texts(path: Path) -> dict[int, bytes]:
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
        db.text_factory = bytes
        return dict(db.execute("SELECT id, content FROM messages").fetchall())


def _all(data: bytes | bytearray, wanted: bytes) -> list[int]:
    found, at = [], data.find(wanted)
    while at >= 0:
        found.append(at)
        at = data.find(wanted, at + 1)
    return found


def _row_of(path: Path, places: list[int]) -> int:
    """Which of these offsets lies in a page of messages."""
    own = {*page_of(path, "messages", "leaf"), *page_of(path, "messages", "overflow")}
    return next(at for at in places if at // 4096 + 1 in own)


def test_the_forecast_names_the_losses_of_every_table() -> None:
    """Complete messages do not hide sessions in part, nor a table that is gone."""
    messages = TableResult("messages", 7)
    sessions = TableResult("sessions", 3, partial=2)
    sound = TableResult("state_meta", 2)

    assert SalvageResult((messages, sessions, sound), lost=("table notes",)).forecast == (
        "Saves 7 of 7 messages; 0 in part; 0 lost. sessions: 2 in part; 0 lost. "
        "Lost completely: 1 part. The damaged file is kept."
    )
