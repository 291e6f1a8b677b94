"""A secret is planted in every file that the tool reads, and must never come out of it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pty
import re
import sqlite3
import stat
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from hermes_doctor.core import setting_lines
from hermes_doctor.core.lazy import EMPTY
from tests.helpers import support

MARK = "zQcanary"
_SGR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")


class Canaries:
    """Hands out secrets that are told apart, shaped like the tokens of providers."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}

    def __call__(self, place: str) -> str:
        """A new secret for one place."""
        secret = f"{MARK}{len(self.places):03d}Kx9pLm2Tw"
        self.places[secret] = place
        return secret

    def leaks(self, text: str) -> list[str]:
        """The places whose secret shows in a text, however it is wrapped, coloured or cut."""
        bare = re.sub(r"[\s�\0]", "", _SGR.sub("", text)).lower()
        found = [place for secret, place in self.places.items() if secret.lower() in bare]
        cut = re.findall(MARK.lower() + r"\w*", bare)
        hidden = [
            p for s, p in self.places.items() if base64.b64encode(s.encode()).decode() in text
        ]
        return found + hidden + [f"a part of one: {part}" for part in cut if not found]


def _config(secret: Canaries) -> str:
    """A configuration with a secret at every kind of place that YAML has."""

    def c(place: str) -> str:
        return secret(f"config: {place}")

    return f"""\
# {c("comment at the top")}
model:
  provider: openrouter
  default: sk-{c("a key whose value is shown when it is harmless")}
  api_key: {c("api_key")}
  base_url: https://user:{c("password in a URL")}@example.org/{c("path of a URL")}
  context_length: 1000  # {c("comment behind a value")}
mode: {c("another key that is shown when harmless")}
custom_providers:
  - name: one
    api_key: "{c("double quotes")}"
  - {{name: two, api_key: '{c("flow mapping")}'}}
  - {c("plain item of a list")}
  - "{c("quoted item of a list")}"
headers: {{Authorization: "Bearer {c("header")}"}}
? {c("complex key")}
: {c("complex value")}
private_key: |
  -----BEGIN PRIVATE KEY-----
  {c("block scalar")}
  {c("block scalar that ends as base64 does")}=
  {c("block scalar that ends as base64 does, twice")}==
  {c("block scalar that looks like a name")}: rest
  export {c("block scalar that looks like a variable")}=rest
  -----END PRIVATE KEY-----
folded: >-
  {c("folded scalar")}
  password: {c("folded scalar with a name")}
many: "first
  {c("quoted scalar over several lines")}
  {c("quoted scalar that ends as base64 does")}=
  last"
"single": '{c("single quotes")}'
tagged: !!str {c("tagged")}
bytes: !!binary {c("binary")}
anchored: &anchor {c("anchored")}
again: *anchor
<<: {{token: {c("merged")}}}
"""


_BREAKS: dict[str, Callable[[str], str]] = {
    "tab": lambda c: f"model:\n\tapi_key: {c}\n",
    "undefined alias": lambda c: f"a: *{c}\n",
    "duplicate anchor": lambda c: f"a: &{c} 1\nb: &{c} 2\nc: *{c}\nd: [\n",
    "unknown tag": lambda c: f"a: !{c} b\n",
    "unknown tag with both quotes": lambda c: f"a: !x'{c}%22y b\n",
    "unknown python tag": lambda c: f"a: !!python/object/apply:{c} [b]\n",
    "verbatim tag": lambda c: f"a: !<{c}> b\n",
    "tag handle": lambda c: f"a: !{c}!b c\n",
    "tag prefix": lambda c: f"%TAG !e! {c}\n---\na: !e!b c\n",
    "directive": lambda c: f"%{c} 1.0\n---\na: [\n",
    "version": lambda c: f"%YAML {c}\n---\na: 1\n",
    "escape": lambda c: f'a: "{c}\\q{c}"\n',
    "open quote": lambda c: f'a: "{c}\nb: 1\n',
    "open bracket": lambda c: f"a: [{c}\nb: 1\n",
    "unhashable key": lambda c: f"? [{c}]\n: {c}\n? {{{c}: 1}}\n: 2\n",
    "two documents": lambda c: f"a: {c}\n---\nb: {c}\n",
    "a list at the top": lambda c: f"- {c}\n",
    "text at the top": lambda c: f"{c}\n",
    "mapping in a value": lambda c: f"a: {c}: {c}\n",
    "bad indentation": lambda c: f"a:\n   b: {c}\n  {c}: 1\n",
    "at sign": lambda c: f"a: @{c}\n",
    "backtick": lambda c: f"a: `{c}\n",
    "int that is none": lambda c: f"a: !!int {c}\n",
    "float that is none": lambda c: f"a: !!float {c}\n",
    "bool that is none": lambda c: f"a: !!bool {c}\n",
    "timestamp that is none": lambda c: f"a: !!timestamp {c}\n",
    "set that is none": lambda c: f"a: !!set {c}\n",
    "pairs that are none": lambda c: f"a: !!omap [{c}]\n",
    "binary that is none": lambda c: f"a: !!binary '{c}é'\n",
    "merge of a scalar": lambda c: f"<<: {c}\n",
    "merge of a list of scalars": lambda c: f"<<: [{c}]\n",
    "anchor that is too odd": lambda c: f"a: &{c}'{c} b\n",
    "control character": lambda c: f"a: {c}\x01{c}\n",
    "comment without a space": lambda c: f'a: "b"{c}\n',
    "block scalar header": lambda c: f"a: |{c}\n  b\n",
}
"""Ways to break config.yaml so that the parser's own words are likely to quote the file."""


def _env(secret: Canaries) -> str:
    return (
        f"TELEGRAM_BOT_TOKEN=123456:{secret('env: first line')}\n"
        f"# {secret('env: comment')}\n"
        f'export OPENROUTER_API_KEY="{secret("env: export")}"\n'
        f"{secret('env: bare line')}\n"
        f"{secret('env: line that ends as base64 does')}=\n"
        f"KEY='several\n{secret('env: second line of a value')}\n'\n"
        f"default=sk-{secret('env: a name that is shown when harmless')}\n"
    )


def _plant(home: Path, secret: Canaries, encoding: str = "utf-8-sig") -> Path:
    """A home with all faults, and a secret in every file of it."""
    home.mkdir(mode=0o755)
    config = _config(secret)
    support.put(home / "config.yaml", config.replace("model:\n  provider", "model:\n\tprovider"))
    for number, name in enumerate(("config.yaml.bak", "state-snapshots/one/config.yaml")):
        support.put(home / name, _config(secret))
        os.utime(home / name, (1_700_000_000 + number, 1_700_000_000 + number))
    (home / "backups").mkdir()
    with zipfile.ZipFile(home / "backups" / "old.zip", "w") as archive:
        archive.writestr("config.yaml", _config(secret))
        archive.writestr(".env", _env(secret))
    (home / "backups" / "old.zip").chmod(0o644)
    support.put(home / ".env", _env(secret).encode(encoding), mode=0o644)
    support.put(home / "state-snapshots" / "one" / ".env", _env(secret), mode=0o644)
    for name in (
        "auth.json",
        "auth.json.corrupt",
        "webhook_subscriptions.json",
        "gateway_state.json",
        "gateway.lock",
        "cron/jobs.json",
    ):
        support.put(home / name, f'{{"token": "{secret(name)}", "{secret(name)}": ', mode=0o644)
    support.put(home / "logs" / "gateway.log", f"ERROR key {secret('log')} refused\n")
    support.put(home / "SOUL.md", secret("SOUL.md"))
    for name in ("state.db", "response_store.db", "cron/executions.db", "projects.db"):
        support.database(
            home / name,
            f"CREATE TABLE {secret(f'{name}: table')} ({secret(f'{name}: column')} TEXT)",
            f"CREATE TABLE messages (a TEXT DEFAULT '{secret(f'{name}: default')}')",
            f"INSERT INTO messages VALUES ('{secret(f'{name}: row')}')",
        )
    support.clobber(home / "state.db")
    support.put(home / "projects.db", secret("a database that is text") * 40)
    support.board(home / "kanban.db", without=(("tasks", "session_id"),))
    with contextlib.closing(sqlite3.connect(home / "kanban.db")) as db, db:
        db.execute("UPDATE tasks SET title = ?", (secret("kanban: row"),))
        db.execute(f"CREATE TABLE {secret('kanban: table')} (a)")
    return home


def _damaged_board(home: Path, secret: Canaries) -> None:
    """A board whose schema SQLite refuses, and says why with the names in it."""
    path = support.board(home / "kanban" / "boards" / "bad" / "kanban.db")
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute(f"CREATE TABLE {secret('board: table')} (a)")
        db.execute("PRAGMA writable_schema = ON")
        db.execute(
            "UPDATE sqlite_master SET sql = ? WHERE name LIKE ?",
            (f"CREATE TABLE {secret('board: declaration')} (a, ,)", f"{MARK}%"),
        )


def on_a_terminal(*args: str | Path, env: Mapping[str, str] = EMPTY) -> str:
    """Everything that a command writes to a terminal of 100 columns."""
    leader, follower = pty.openpty()
    told = bytearray()

    def listen() -> None:
        with contextlib.suppress(OSError):  # the other side is closed
            while chunk := os.read(leader, 65536):
                told.extend(chunk)

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        os.write(leader, b"n\n" * 50)  # the answers, should it ask
        done = support.doctor(
            *args,
            env={"NO_COLOR": None, "TERM": "xterm-256color", "COLUMNS": "100", **env},
            terminal=os.ttyname(follower),
        )
    finally:
        os.close(follower)
        listener.join()
        os.close(leader)
    assert done.code in (0, 1, 2)
    assert told and not done.out and b"Traceback" not in told
    return told.decode("utf-8", "replace")


def _in_a_pipe(*args: str | Path) -> str:
    done = support.doctor(*args)
    assert done.code in (0, 1, 2), done.err
    assert "Traceback" not in done.err
    if "--json" in args:
        assert done.json["schema"].startswith("hermes-doctor/")
    return done.out + done.err


LOOKS: tuple[tuple[str, ...], ...] = (
    ("check",),
    ("check", "--json"),
    ("check", "--deep", "--all-homes"),
    ("fix",),
    ("fix", "--json"),
    ("config",),
    ("config", "--json"),
)


def _story(home: Path) -> Iterator[tuple[str | Path, ...]]:
    """Every command in an order in which each has something to do."""
    yield from LOOKS
    yield ("backup", "create", "--reason", "by hand")
    yield ("backup", "create", "--json")
    yield ("fix", "--apply")
    yield ("fix", "--apply", "--yes")
    yield from LOOKS
    yield ("undo",)
    yield ("undo", "--yes")
    yield ("fix", "--apply", "--yes", "--json")
    yield ("undo", "--yes", "--json")
    first = min(path.parent.name for path in home.glob("backups/doctor/*/manifest.json"))
    yield ("backup", "restore", first)
    yield ("backup", "restore", first, "--yes")
    yield ("backup", "restore", first, "config.yaml", "--yes", "--json")
    yield ("backup", "list")
    yield ("backup", "list", "--json")
    yield ("backup", "verify", "--all")
    copy = home / "backups" / "doctor" / first / "files" / ".env"
    copy.write_bytes(copy.read_bytes() + b"x")
    yield ("backup", "verify", first)
    yield ("backup", "verify", first, "--json")
    yield ("backup", "restore", first, "--yes")
    yield ("backup", "prune", "--keep", "1", "--yes")
    yield ("backup", "prune", "--keep", "1", "--yes", "--json")


def _written(home: Path, secret: Canaries) -> list[str]:
    """Secrets in what the tool wrote of its own, and copies that others may read."""
    wrong = []
    copies = 0
    for path in (home / "backups" / "doctor").rglob("*"):
        mode = stat.S_IMODE(path.lstat().st_mode)
        parts = path.relative_to(home / "backups" / "doctor").parts
        if path.is_dir():
            wrong += [f"{path}: mode {mode:o}"] if mode != 0o700 else []
            continue
        wrong += [f"{path}: mode {mode:o}"] if mode != 0o600 else []
        if parts[1:2] == ("files",):
            copies += 1
        else:
            wrong += [f"{path}: {place}" for place in secret.leaks(path.read_text())]
    assert copies, "nothing was backed up"
    return wrong


@pytest.mark.sampled
@pytest.mark.parametrize("way", ["pipe", "terminal"])
def test_no_command_tells(tmp_path: Path, way: str) -> None:
    """All commands on a home with all faults and a secret in every file: not one comes out."""
    secret = Canaries()
    home = _plant(tmp_path / "home", secret)
    run = on_a_terminal if way == "terminal" else _in_a_pipe
    wrong = []
    for args in _story(home):
        told = run(*args, "--home", home)
        assert "bug in hermes-doctor" not in told, told
        wrong += [f"{' '.join(map(str, args))}: {place}" for place in secret.leaks(told)]
    for args in (("list",), ("list", "codes"), ("explain", "CFG-YAML"), ("list", "--json")):
        wrong += secret.leaks(run(*args))
    assert wrong + _written(home, secret) == []


@pytest.mark.sampled
@pytest.mark.parametrize("how", _BREAKS)
def test_no_parser_tells(tmp_path: Path, how: str) -> None:
    """However config.yaml is broken: the parser's words are shown without the file's own."""
    secret, break_ = Canaries(), _BREAKS[how]
    home = support.healthy(tmp_path / "home")
    support.put(home / "config.yaml", break_(secret("config.yaml")))
    support.put(home / "config.yaml.bak", break_(secret("the copy")))
    support.put(home / "config.yaml.good", support.CONFIG)
    for args in (("check",), ("fix", "--json")):
        told = _in_a_pipe(*args, "--home", home)
        assert secret.leaks(told) == []
        assert "crashed" not in told.replace('"crashed": 0', ""), told


@pytest.mark.sampled
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_no_encoding_tells(tmp_path: Path, encoding: str) -> None:
    """The whole of .env is in the diff when its encoding changes; every value stays hidden."""
    secret = Canaries()
    home = support.healthy(tmp_path / "home")
    support.put(home / ".env", _env(secret).encode(encoding))
    for args in (("check", "--json"), ("fix",), ("fix", "--json"), ("fix", "--apply", "--yes")):
        assert secret.leaks(_in_a_pipe(*args, "--home", home)) == []
    assert _written(home, secret) == []


def test_no_schema_tells(tmp_path: Path) -> None:
    """A database that SQLite refuses is named, and nothing of what is in it."""
    secret = Canaries()
    home = support.healthy(tmp_path / "home")
    _damaged_board(home, secret)
    for args in (("check",), ("check", "--json"), ("fix",), ("backup", "create")):
        assert secret.leaks(_in_a_pipe(*args, "--home", home)) == []


def test_no_error_of_sqlite_tells(tmp_path: Path) -> None:
    """A repair that SQLite refuses says why without the names that SQLite puts into its errors."""
    secret = Canaries()
    home = support.healthy(tmp_path / "home")
    (home / "kanban.db").unlink()
    path = support.board(home / "kanban.db", without=(("tasks", "session_id"),))
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        name = '"' + secret("kanban: view") + ' !"'  # a plain name may be told: it is lost
        db.execute(f"CREATE VIEW {name} AS SELECT 1 AS a")
        db.execute("PRAGMA writable_schema = ON")
        db.execute(
            "UPDATE sqlite_master SET sql = ? WHERE name = ?",
            (
                f"CREATE VIEW {name} AS SELECT {secret('kanban: declaration')} FROM (",
                name.strip('"'),
            ),
        )
    for args in (("check", "--json"), ("fix",), ("fix", "--apply", "--yes"), ("backup", "create")):
        assert secret.leaks(_in_a_pipe(*args, "--home", home)) == []
    assert _written(home, secret) == []


def test_no_journal_tells(tmp_path: Path) -> None:
    """What a damaged or forged receipt says is not repeated."""
    secret = Canaries()
    home = support.healthy(tmp_path / "home")
    run = home / "backups" / "doctor" / "runs"

    def journal(name: str, **said: object) -> None:
        values: dict[str, object] = {
            "schema": "hermes-doctor/run/1",
            "id": name,
            "kind": "fix",
            "home": str(home),
            "vault": str(home / "backups" / "doctor"),
            "started_at": "2026-11-15T03:00:00+00:00",
            "state": "verifying",
            "items": [],
            "paths": [],
        }
        support.put(run / name / "run.json", json.dumps(values | said))

    journal("20261115-030000-0001", state=secret("journal: state"))
    journal("20261115-030000-0002", kind=secret("journal: kind"))
    journal("20261115-030000-0003", note=secret("journal: note"), state="done")
    journal("20261115-030000-0004", started_at=secret("journal: time"))
    journal("20261115-030000-0005", **{secret("journal: field"): 1})
    support.put(run / "20261115-030000-0006" / "run.json", secret("journal: no JSON"))
    support.put(
        home / "backups" / "doctor" / "20261115-030000-0007" / "manifest.json",
        json.dumps({"reason": secret("manifest")}),
    )
    for args in (
        ("check",),
        ("check", "--json"),
        ("fix",),
        ("fix", "--json"),
        ("backup", "list"),
        ("backup", "verify", "--all"),
        ("undo", "20261115-030000-0005", "--yes"),
        ("fix", "--apply", "--yes"),
    ):
        assert secret.leaks(_in_a_pipe(*args, "--home", home)) == [], args


_CHECK = """
from hermes_doctor.api import Finding, Severity, check

SECRET = {secret!r}

@check(id="boom-look", group="own", codes=["OWN-BOOM"])
def boom_look(probes):
    \"\"\"Does this check crash?\"\"\"
    yield Finding(code="OWN-BOOM", severity=Severity.ERROR, title="own", fix="boom-plan")
    raise RuntimeError(f"could not use {{SECRET}}")

@check(id="boom-keys", group="own", codes=["OWN-KEYS"])
def boom_keys(probes):
    \"\"\"Does this one crash with the secret as a key?\"\"\"
    return [dict()[SECRET]]

@check(id="boom-words", group="own", codes=["OWN-WORDS"])
def boom_words(probes):
    \"\"\"Does this one crash in words like the engine's?\"\"\"
    raise ValueError(f"reports {{SECRET}}, which it does not declare")

@check(id="boom-apply", group="own", codes=["OWN-APPLY"])
def boom_apply(probes):
    \"\"\"Is there something whose fix crashes in the middle?\"\"\"
    yield Finding(code="OWN-APPLY", severity=Severity.ERROR, title="own", fix="boom-step")
"""

_FIX = """
from dataclasses import dataclass
from hermes_doctor.api import MoveAside, ReplaceDatabase, Safety, fix

SECRET = {secret!r}

@fix(id="boom-plan", codes=["OWN-BOOM"], safety=Safety.SAFE)
def boom_plan(probes, finding):
    \"\"\"Crash while planning.\"\"\"
    raise LookupError(SECRET)

def crash(copy):
    raise RuntimeError(SECRET)

@fix(id="boom-step", codes=["OWN-APPLY"], safety=Safety.SAFE)
def boom_step(probes, finding):
    \"\"\"Crash while applying.\"\"\"
    path = probes.home / "state.db"
    expected = probes.databases.header(path).snapshot
    yield ReplaceDatabase(path, crash, why="to crash", expect=expected)
"""


def _plugins(folder: Path, secret: Canaries) -> Path:
    support.put(folder / "checks" / "boom.py", _CHECK.format(secret=secret("check")))
    support.put(folder / "fixes" / "boom.py", _FIX.format(secret=secret("fix")))
    return folder


@pytest.mark.sampled
@pytest.mark.parametrize("way", ["pipe", "terminal"])
def test_no_crash_tells(tmp_path: Path, way: str) -> None:
    """A plugin that crashes with a secret in its error is named; the secret is not."""
    secret = Canaries()
    home = support.healthy(tmp_path / "home")
    own = _plugins(tmp_path / "own", secret)
    run = on_a_terminal if way == "terminal" else _in_a_pipe
    for args in (
        ("check",),
        ("check", "--json"),
        ("fix",),
        ("fix", "--json"),
        ("fix", "--apply", "--yes"),
        ("fix", "--apply", "--yes", "--json"),
    ):
        told = run(*args, "--home", home, "--plugins", own)
        assert secret.leaks(told) == [], args
        assert "boom" in told or "bug" in told, told
    assert secret.leaks(run("list", "--plugins", own)) == []
    for path in home.rglob("backups/doctor/**/*.json"):
        assert secret.leaks(path.read_text()) == []


@pytest.mark.sampled
@pytest.mark.parametrize(
    "code",
    [
        "raise RuntimeError(SECRET)",
        "raise KeyError(SECRET)",
        "import json; json.loads(SECRET)",
        "open('/no/such/' + SECRET)",
        "int(SECRET)",
        "raise SystemExit(SECRET)",
        "getattr(object, SECRET)",
    ],
)
def test_no_import_tells(tmp_path: Path, code: str) -> None:
    """A plugin that crashes while it is loaded is named; what it was about to do is not shown."""
    secret = Canaries()
    home = support.healthy(tmp_path / "home")
    text = f"SECRET = {secret('import')!r}\n{code}\n"
    support.put(tmp_path / "own" / "checks" / "boom.py", text)
    for args in (("check", "--home", home), ("check", "--json", "--home", home), ("list",)):
        told = _in_a_pipe(*args, "--plugins", tmp_path / "own")
        assert "boom.py" in told
        assert secret.leaks(told) == []


@pytest.mark.parametrize(
    "line",
    [
        "EMAIL_PASSWORD=4829137",
        "pin: 4829137",
        "  - verification_code: '4829137'",
        "export API_ID=4829137",
        "4829137",
        "# 4829137",
        "password: 48291.37",
    ],
)
def test_a_secret_may_be_a_number(line: str) -> None:
    """A short number is shown only where it cannot be a password."""
    shown = setting_lines.redact_line(line)
    assert "4829137" not in shown.replace(".", "")


def test_what_may_be_shown_is_shown() -> None:
    """Masking everything would be safe and useless: harmless settings stay readable."""
    for line in ("model:", "  provider: openrouter", "context_length: 131072", "enabled: true"):
        assert setting_lines.redact_line(line) == line
