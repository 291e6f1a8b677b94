"""Random and hostile bytes in every place that the tool reads: an answer, soon, and no write."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import sqlite3
import struct
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from hermes_doctor.backup.records.journal import Journals
from hermes_doctor.backup.vault import manifest, vault
from hermes_doctor.core import redaction
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from hermes_doctor.hermes.settings import config_yaml
from hermes_doctor.render import diff
from tests.helpers import budget, support
from tests.scenarios.test_hostile_home import facts, full, look_here

MORE = int(os.environ.get("FUZZ", "1"))
"""How many times more examples than usual; for a hunt."""
SHARE = 8
"""Of so many examples of `make test-all`, `make test` tries one."""


def examples(count: int) -> settings:
    """The same examples every time."""
    return settings(
        derandomize=MORE == 1 and budget.seed is None,
        deadline=None,
        max_examples=budget.tries(-(-count // SHARE), count) * MORE,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        database=None,
        phases=[Phase.generate],  # shrinking an example that takes a second takes an hour
    )


RUN, BACKUP = "20261115-030000-0001", "20261115-030000-0002"
TEXTS = (
    "config.yaml",
    "config.yaml.bak",
    "state-snapshots/one/config.yaml",
    f"backups/doctor/{BACKUP}/files/config.yaml",
    ".env",
    "auth.json",
    "webhook_subscriptions.json",
    "gateway.lock",
    "gateway_state.json",
    f"backups/doctor/runs/{RUN}/run.json",
    f"backups/doctor/{BACKUP}/manifest.json",
    "hermes-agent/pyproject.toml",
)
DATABASES = (
    "state.db",
    "kanban.db",
    "kanban/boards/one/kanban.db",
    "response_store.db",
    "cron/executions.db",
)
SIDECARS = ("kanban.db-wal", "kanban.db-shm", "kanban.db-journal", "state.db-wal")

# -- what is fed ---------------------------------------------------------------------------

_word = st.text(st.characters(codec="utf-8"), max_size=20)
_scalar = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | _word
    | st.text("\0\ud800\x1b\u202e\n")
)
_json = st.recursive(
    _scalar,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_word, inner, max_size=5),
    max_leaves=25,
)


def _dump(value: object) -> bytes:
    return json.dumps(value).encode()


_HOSTILE = (
    b"[" * 200_000,
    b"{" * 200_000,
    b'{"a":' * 100_000,
    b"- " * 100_000,
    b"? " * 50_000,
    b"a: &a [*a, *a]\n",
    b"a: &a {b: *a}\n<<: *a\n",
    b"&a a: *a\n",
    b"a: " + b"9" * 10_000 + b"\n",
    b"a: -0x" + b"f" * 100_000 + b"\n",
    b"a: " + b"1:59" * 3_000 + b"\n",
    b"a: " + b":59" * 3 + b"1" + b":59" * 3_000 + b".5\n",
    b"a: 1e999999999\n",
    b"a: !!int ''\n",
    b"a: !!int _\n",
    b"a: !!int 0x\n",
    b"a: !!int 0b\n",
    b"a: !!int []\n",
    b"a: !!float ''\n",
    b"a: !!float '-'\n",
    b"a: !!bool maybe\n",
    b"a: !!null x\n",
    b"a: !!timestamp never\n",
    b"a: 2001-99-99\n",
    b"a: 0000-00-00\n",
    b"a: 2001-12-14t99:99:99Z\n",
    b"a: 2001-12-14 21:59:43.10 -99:99\n",
    b"a: 9999-12-31 23:59:59 -23:59\n",
    b"a: 0001-01-01 00:00:00 +23:59\n",
    b"a: !!binary '***'\n",
    b"a: !!python/object/apply:os.system ['exit 7']\n",
    b"a: !!python/name:os.system\n",
    b"a: !!set {b, [c]}\n",
    b"a: !!omap [1]\n",
    b"a: !!pairs [{b: 1, c: 2}]\n",
    b"{[a]: b}\n",
    b"{{a: b}: c}\n",
    b"<<: 5\n",
    b"<<: [5]\n",
    b"<<: [[]]\n",
    b"? !!null\n: x\n",
    b"a: \0b\n",
    b"\0",
    b"\xef\xbb\xbf",
    b"\xef\xbb\xbf\xef\xbb\xbfA=1\n",
    b"\xff\xfe",
    b"\xff\xfe\0",
    b"\xff\xfe\0\0",
    b"\xfe\xff\xd8\x00",
    b"\xed\xa0\x80",
    b"A\0=\x001\0",
    b"\0A\0=\0001",
    b'"\\ud800"',
    b'a: "\\uD800"\n',
    b"%YAML 9.9\n---\na: 1\n",
    b"%TAG ! x\n%TAG ! y\n---\na: !b c\n",
    b"--- a\n--- b\n",
    b"NaN",
    b"1" * 5000,
    b'{"a": 1' + b"0" * 5000 + b"}",
    b'{"state": {}}',
    b'{"state": []}',
    b'"text"',
    b"null",
    b"[[]]",
    b'[["schema", "hermes-doctor/run/1"]]',
    b"\xe2\x80\xa8" * 100,
    b" " * 100_000,
    b"\n" * 100_000,
    b"a" * 1_000_000,
    b'name = "hermes-agent"\nversion = "' + b"9" * 5_000 + b'"\n',
    'name = "hermes-agent"\nversion = "1.²"\n'.encode(),
    b'name = "hermes-agent"\nversion = "\x1b[31m\n"\n',
    b'name = "hermes-agent"\nversion = "..."\n',
    b'name = "hermes-agent"\nversion = "1' + b".1" * 100_000 + b'"\n',
)
"""What parsers are known to choke on."""

_PIECES = [*":-?|>&*!%@`'#,[]{}~ab.\n\t_", '"', "<<", "---", "...", "&a", "*a", "!!int", "!!str"]
_PIECES += [
    "!!map",
    "!!binary",
    "!!timestamp",
    "!!float",
    "!!bool",
    "!!null",
    "0x",
    "0b",
    "1_",
    "1e",
]
_PIECES += ["12:30", "2001-01-01", ".inf", ".nan", "\n  ", "\n- ", ": ", " ", "  "]

_yaml = st.builds(
    lambda parts: "".join(parts).encode("utf-8", "surrogatepass"),
    st.lists(
        st.sampled_from(_PIECES) | _word,
        max_size=40,
    ),
)
_text = (
    st.binary(max_size=3000)
    | st.builds(_dump, _json)
    | _yaml
    | st.sampled_from(_HOSTILE)
    | st.builds(
        lambda text, code: text.encode(code, "surrogatepass"),
        _word,
        st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le"]),
    )
)


def _made(folder: Path) -> list[tuple[bytes, bytes]]:
    """Real databases of several page sizes with their logs: kanban boards of many pages."""
    found = []
    for page_size in (512, 4096, 65536):
        path = folder / f"{page_size}.db"
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute(f"PRAGMA page_size = {page_size}")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA wal_autocheckpoint = 0")
            with contextlib.closing(sqlite3.connect(support.board(folder / "b.db"))) as board:
                for (sql,) in board.execute(
                    "SELECT sql FROM sqlite_master WHERE sql NOTNULL AND name NOT LIKE 'sqlite_%'"
                ).fetchall():
                    db.execute(sql)
            (folder / "b.db").unlink()
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            db.execute(f"CREATE TABLE more (a /*{'x' * 3000}*/)")
            db.execute("DROP TABLE more")
            db.execute("ALTER TABLE tasks ADD COLUMN another TEXT")
            found.append((path.read_bytes(), path.with_name(path.name + "-wal").read_bytes()))
    return found


@st.composite
def _harmed(draw: st.DrawFn, whole: bytes) -> bytes:
    """Real bytes with flips, garbage, zeroed or doubled pieces, cut short or grown."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(0, 6))):
        if not data:
            break
        focus = draw(st.sampled_from([len(data), min(len(data), 200), min(len(data), 4096)]))
        at = draw(st.integers(0, focus - 1))
        piece = draw(
            st.binary(min_size=1, max_size=8) | st.sampled_from([b"\0" * 512, b"\xff" * 64])
        )
        data[at : at + len(piece)] = piece
    if draw(st.booleans()):
        del data[draw(st.integers(0, len(data))) :]
    if draw(st.integers(0, 4)) == 0:
        data += draw(st.binary(max_size=600))
    return bytes(data)


@st.composite
def _fake(draw: st.DrawFn) -> bytes:
    """A head that claims anything, and one page whose cells point anywhere."""
    head = bytearray(100)
    head[:16] = b"SQLite format 3\0"
    head[16:18] = draw(st.sampled_from([b"\x02\0", b"\x10\0", b"\0\x01", b"\0\0", b"\xff\xff"]))
    head[18:24] = bytes([draw(st.integers(0, 3)), 1, draw(st.integers(0, 255)), 64, 32, 32])
    head[28:32] = struct.pack(">I", draw(st.sampled_from([0, 1, 2, 2**31, 2**32 - 1])))
    head[44:48] = struct.pack(">I", 4)
    head[56:60] = struct.pack(">I", draw(st.integers(0, 4)))
    cells = draw(st.lists(st.integers(0, 65535), max_size=8))
    kind = draw(st.sampled_from([5, 13, 2, 10, 0]))
    claimed = draw(st.sampled_from([len(cells), 0, 65535]))
    page = struct.pack(">BHHHB", kind, 0, claimed, 0, 0)
    page += struct.pack(">I", draw(st.sampled_from([0, 1, 2, 3, 2**32 - 1]))) if kind == 5 else b""
    page += b"".join(struct.pack(">H", cell) for cell in cells)
    size = draw(st.sampled_from([512, 4096, 65536]))
    rest = draw(st.binary(max_size=300))
    return bytes(head) + (page + rest).ljust(size - 100, draw(st.sampled_from([b"\0", b"\x81"])))


@st.composite
def _log(draw: st.DrawFn, page_size: int, whole: bytes) -> bytes:
    """A log with a head that fits and frames that say anything."""
    if draw(st.booleans()):
        return draw(_harmed(whole))
    salts = draw(st.binary(min_size=8, max_size=8))
    magic = draw(st.sampled_from([0x377F0682, 0x377F0683, 0]))
    data = struct.pack(">IIII", magic, 3007000, page_size, 0) + salts + b"\0" * 8
    for _ in range(draw(st.integers(0, 5))):
        number = draw(st.sampled_from([0, 1, 2, 3, 2**31, 2**32 - 1]))
        commit = draw(st.sampled_from([0, 1, 2**32 - 1]))
        data += struct.pack(">II", number, commit) + salts + b"\0" * 8
        data += draw(st.binary(max_size=200)).ljust(page_size, b"\x0d")
    return data


@st.composite
def _zip(draw: st.DrawFn) -> bytes:
    """A zip with a configuration in it, compressed in any way, harmed in any place."""
    made = io.BytesIO()
    way = draw(st.sampled_from([0, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]))
    with zipfile.ZipFile(made, "w", way) as archive:
        archive.writestr("config.yaml", draw(_text))
        archive.writestr("other", b"x" * 100)
    return draw(_harmed(made.getvalue()))


# -- the home ------------------------------------------------------------------------------


class Stage:
    """One home for all examples of a test; each example is put in and taken out again."""

    def __init__(self, base: Path) -> None:
        self.home = full(base / "home")
        support.put(self.home / "config.yaml", "model:\n  broken: [here\n")
        folder = self.home / "backups" / "doctor" / BACKUP
        support.put(folder / "files" / "config.yaml", support.CONFIG + "# vault\n")
        support.put(folder / "manifest.json", "{}")
        support.put(self.home / "hermes-agent" / "pyproject.toml", "")
        self.made = _made(base)

    def examine(self, files: dict[str, bytes]) -> dict[str, Any]:
        """The document that comes out with these files in the home; nothing may be written."""
        kept = {}
        for name, data in files.items():
            path = self.home / name
            kept[name] = path.read_bytes() if path.exists() else None
            support.put(path, data)
        try:
            before = facts(self.home)
            document = look_here(self.home)
            assert facts(self.home) == before
            return document
        finally:
            for name, old in kept.items():
                if old is None:
                    (self.home / name).unlink()
                else:
                    support.put(self.home / name, old)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The home, away from whatever Hermes the machine has."""
    base = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(base))
        yield Stage(base)


@pytest.mark.sampled
@pytest.mark.parametrize("name", TEXTS)
def test_random_text(stage: Stage, name: str) -> None:
    """Random bytes, JSON and YAML in the place of each settings file."""

    @examples(12)
    @given(data=_text)
    def feed(data: bytes) -> None:
        stage.examine({name: data})

    feed()


@pytest.mark.sampled
@pytest.mark.parametrize("data", _HOSTILE, ids=range(len(_HOSTILE)))
def test_hostile_text(stage: Stage, data: bytes) -> None:
    """What parsers are known to choke on, in all places at once and in each that matters alone."""
    alone = ({name: data} for name in ("config.yaml", f"backups/doctor/runs/{RUN}/run.json"))
    for fed in [dict.fromkeys(TEXTS, data), *alone][: budget.tries(1, 3)]:
        stage.examine(fed)


@pytest.mark.sampled
@pytest.mark.parametrize("name", DATABASES)
def test_random_databases(stage: Stage, name: str) -> None:
    """Harmed databases, fakes with absurd numbers in them, and plain noise."""

    @examples(20)
    @given(
        data=st.sampled_from(stage.made).flatmap(lambda one: _harmed(one[0]))
        | _fake()
        | st.binary(max_size=2000)
        | st.builds(lambda rest: b"SQLite format 3\0" + rest, st.binary(max_size=1000))
    )
    def feed(data: bytes) -> None:
        stage.examine({name: data})

    feed()


def test_random_logs(stage: Stage) -> None:
    """Harmed and invented write-ahead logs beside real and harmed databases."""

    @examples(40)
    @given(data=st.data(), number=st.integers(0, 2), noise=st.binary(max_size=600))
    def feed(data: st.DataObject, number: int, noise: bytes) -> None:
        db, log = stage.made[number]
        page_size = (512, 4096, 65536)[number]
        files = {"kanban.db": data.draw(st.just(db) | _harmed(db))}
        files["kanban.db-wal"] = data.draw(_log(page_size, log))
        stage.examine(files | {"kanban.db-shm": noise, "state.db-wal": noise})

    feed()


@pytest.mark.sampled
@pytest.mark.parametrize("name", SIDECARS)
def test_random_sidecars(stage: Stage, name: str) -> None:
    """Noise in the place of each sidecar."""

    @examples(8)
    @given(data=st.binary(max_size=2000) | st.sampled_from(_HOSTILE))
    def feed(data: bytes) -> None:
        stage.examine({name: data})

    feed()


def test_random_zips(stage: Stage) -> None:
    """Zips of Hermes' own backups, harmed in every way: the broken configuration is still told."""

    @examples(40)
    @given(data=_zip() | st.binary(max_size=300))
    def feed(data: bytes) -> None:
        document = stage.examine({"backups/z.zip": data})
        assert "CFG-YAML" in [finding["code"] for finding in document["findings"]]

    feed()


@pytest.mark.parametrize(
    "version", ["9" * 200, "1.²", "٣.٤", "1..2", "0x1", "1\n2", "1\udcff", "²"]
)
def test_odd_installations(stage: Stage, version: str) -> None:
    """A folder that looks like an installed Hermes of an impossible version."""
    place = stage.home / "hermes-agent" / "venv" / "lib" / "python3.11" / "site-packages"
    (place / f"hermes_agent-{version}.dist-info").mkdir(parents=True)
    board = support.board(stage.home / "x.db", without=(("tasks", "session_id"),))
    try:
        document = stage.examine({"kanban.db": board.read_bytes()})
    finally:
        board.unlink()
        shutil.rmtree(stage.home / "hermes-agent" / "venv")
    assert document["checks"]


# -- the parsers by themselves -------------------------------------------------------------


@examples(500)
@given(data=_text)
def test_configuration_is_settings_or_a_fault(data: bytes) -> None:
    """Either settings or a fault, for any bytes, within a second or two."""
    started = time.monotonic()
    values, fault = config_yaml.parse(data)
    assert (values is None) == (fault is not None)
    assert time.monotonic() - started < 5


@examples(400)
@given(before=_text, after=_text)
def test_diffs_are_harmless(before: bytes, after: bytes) -> None:
    """A diff of anything has bounded length and nothing in it that steers a terminal."""
    lines = list(diff.redacted_diff("config.yaml", before[:5000], after[:5000]))
    assert len(lines) <= diff.MOST_LINES + 1
    for line in lines:
        assert redaction.clean(line) == line


def _sealed(document: Any) -> bytes:
    """A manifest with a seal that fits, whatever it says."""
    body = json.dumps(document, sort_keys=True, indent=1).encode() + b"\n"
    seal = hashlib.sha256(body).hexdigest()
    return json.dumps(document | {"seal": seal}, sort_keys=True, indent=1).encode() + b"\n"


_ENTRY = {"path": "config.yaml", "kind": "file", "sha256": "0" * 64}
_MANIFEST = {
    "schema": "hermes-doctor/backup/1",
    "id": BACKUP,
    "created_at": "2026-11-15T03:00:00+00:00",
    "home": "/home",
    "reason": "by hand",
    "tool": "0.1.0",
    "hermes": None,
    "entries": [_ENTRY],
}
_JOURNAL = {
    "schema": "hermes-doctor/run/1",
    "id": RUN,
    "kind": "fix",
    "home": "/home",
    "vault": "/vault",
    "started_at": "2026-11-15T03:00:00+00:00",
    "state": "committing",
    "items": [{"fix": "f", "code": "C", "subject": "s", "check": "c"}],
    "paths": [{"path": "p", "before": {"kind": "absent"}, "after": {"kind": "absent"}}],
}


@st.composite
def _changed(draw: st.DrawFn, document: dict[str, Any]) -> dict[str, Any]:
    """A document of the right form with one or two values of the wrong kind."""
    made: dict[str, Any] = json.loads(json.dumps(document))
    for _ in range(draw(st.integers(1, 2))):
        place: Any = made
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = draw(st.sampled_from([*keys, "new"])) if isinstance(place, dict) else keys[0]
            inner = place.get(key) if isinstance(place, dict) else place[key]
            if isinstance(inner, dict | list) and inner and draw(st.booleans()):
                place = inner
                continue
            if draw(st.booleans()) or isinstance(place, list):
                place[key] = draw(_json)
            else:
                place.pop(key, None)
            break
    return made


@examples(300)
@given(data=_text | st.builds(_dump, _json) | _changed(_MANIFEST).map(_sealed))
def test_manifests(stage: Stage, data: bytes) -> None:
    """A manifest is a backup that can be listed and verified, or it is damaged."""
    folder = stage.home / "backups" / "doctor" / BACKUP
    try:
        backup = manifest.parse(folder, data)
    except Trouble:
        return
    assert isinstance(backup.size, int)
    assert isinstance(backup.created_at.isoformat(), str)
    assert isinstance(vault.Vault(Home(stage.home)).verify(backup), list)
    json.dumps([backup.id, backup.home, backup.reason, backup.hermes])
    for entry in backup.entries:
        assert backup.copy_of(entry).resolve().is_relative_to(folder.resolve())


@examples(100)
@given(data=_text | st.builds(_dump, _json) | _changed(_JOURNAL).map(_dump))
def test_journals(stage: Stage, data: bytes) -> None:
    """A receipt can be read, or it is damaged; either way the check says something of it."""
    document = stage.examine({f"backups/doctor/runs/{RUN}/run.json": data})
    assert any(check["id"] == "unfinished-runs" for check in document["checks"])
    run = support.put(stage.home / "backups" / "doctor" / "runs" / RUN / "run.json", data)
    try:
        journal = Journals(Home(stage.home)).load(RUN)
    except Trouble:
        return
    finally:
        support.put(run, json.dumps(_JOURNAL | {"state": "done"}))
    assert journal.final in (True, False)
    assert isinstance(Path(journal.vault) / journal.id, Path)
    for record in journal.paths:
        assert isinstance(stage.home / record.path, Path)


# -- the real command ----------------------------------------------------------------------


def test_the_command_on_random_homes(stage: Stage, tmp_path: Path) -> None:
    """Whole homes of noise through the command: exit 0, 1 or 2, one document, no write."""
    database = st.sampled_from(stage.made).flatmap(lambda one: _harmed(one[0])) | _fake()
    names = (*TEXTS, *DATABASES, *SIDECARS, "backups/z.zip")

    @examples(10)
    @given(data=st.data())
    def feed(data: st.DataObject) -> None:
        home = tmp_path / "home"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        for name in names:
            if data.draw(st.integers(0, 3)):
                fed = _text | _zip() | database if name in TEXTS else database | _text
                support.put(
                    home / name, data.draw(fed), mode=data.draw(st.sampled_from([0o600, 0o644]))
                )
        before = facts(home)
        for args in (
            ("check", "--json"),
            ("fix", "--json"),
            ("fix",),
            ("backup", "list", "--json"),
        ):
            done = support.doctor(*args, "--home", home, env={"HOME": str(tmp_path)}, timeout=30)
            assert done.code in (0, 1, 2), done.err
            assert "Traceback" not in done.err
            assert "bug in hermes-doctor" not in done.out + done.err, done.out[-400:] + done.err
            if "--json" in args:
                assert done.json["schema"].startswith("hermes-doctor/")
                crashed = [c for c in done.json.get("checks", ()) if c["status"] == "crashed"]
                assert crashed == []
            assert facts(home) == before, args

    feed()


def test_applying_to_random_homes_loses_nothing(stage: Stage, tmp_path: Path) -> None:
    """Whatever a repair makes of a home of noise: undo gives back every byte."""
    database = st.sampled_from(stage.made).flatmap(lambda one: _harmed(one[0])) | _fake()

    @examples(8)
    @given(data=st.data())
    def feed(data: st.DataObject) -> None:
        home = tmp_path / "home"
        shutil.rmtree(home, ignore_errors=True)
        support.healthy(home)
        support.put(home / "config.yaml.bak", support.CONFIG)
        for name in ("config.yaml", ".env", "kanban.db", "kanban.db-wal", "state.db"):
            if data.draw(st.booleans()):
                fed = _text if name in ("config.yaml", ".env") else database
                support.put(
                    home / name, data.draw(fed), mode=data.draw(st.sampled_from([0o600, 0o644]))
                )
        if data.draw(st.booleans()) and (home / "state.db").stat().st_size >= 16:
            support.clobber(home / "state.db")
        before = support.contents(home)
        done = support.doctor("fix", "--apply", "--yes", "--json", "--home", home)
        assert done.code in (0, 1, 2), done.err
        assert "bug in hermes-doctor" not in done.out, done.out[-500:]
        assert done.json["schema"] == "hermes-doctor/report/1"
        if support.contents(home) != before:
            undone = support.doctor("undo", "--yes", "--home", home)
            assert undone.code == 0, undone.out + undone.err
        assert support.contents(home) == before

    feed()
