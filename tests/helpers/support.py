"""Shared test support: homes, snapshots of every byte and time of a tree, and the command."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_doctor.hermes.knowledge import atlas
from hermes_doctor.operations.learning.lessons import schema_changes
from hermes_doctor.sqlite import completion
from hermes_doctor.sqlite.blueprint import Blueprint
from tests.helpers import warm_server
from tests.helpers.plain_words import understated

CONFIG_WITHOUT_FALLBACK = "model:\n  provider: openrouter\n  default: acme/test-model\n"
CONFIG = CONFIG_WITHOUT_FALLBACK + (
    "fallback_providers:\n- {provider: openrouter, model: acme/spare-model}\n"
)
ENV = "OPENROUTER_API_KEY=not-a-key\nSECOND=two\n"
RELEASE = "0.19.0"
"""The newest release whose search index keeps a copy of its text, as most tests assume.

`tests/scenarios/test_newer_search.py` and others cover later ones."""


def healthy(home: Path) -> Path:
    """Create a home without any problem, without Hermes; for unit tests only."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "logs").mkdir()
    put(home / "config.yaml", CONFIG)
    put(home / ".env", ENV)
    put(home / "auth.json", '{"providers": {}}\n')
    history(home / "state.db")
    board(home / "kanban.db")
    return home


def put(path: Path, text: str | bytes, mode: int = 0o600) -> Path:
    """Write a file with a mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)
    return path


def database(path: Path, *statements: str) -> Path:
    """Create a small database."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)
    path.chmod(0o600)
    return path


def remembered(path: Path, make: Callable[..., object], *args: Hashable) -> Path:
    """Write the file that `make(path, *args)` creates, calling it once for all tests."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return put(path, _made_once(make, *args))


@functools.cache
def _made_once(make: Callable[..., object], *args: Hashable) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made"
        make(path, *args)
        assert os.listdir(folder) == [path.name], "it is at rest"
        return path.read_bytes()


def history(path: Path, version: str | None = None) -> Path:
    """Create a state.db with fifty messages, as a release (by default RELEASE) does."""
    return remembered(path, _history, version)


def _history(path: Path, version: str | None) -> None:
    with contextlib.closing(made("state.db", path, version)) as db, db:
        db.execute("INSERT INTO sessions (id, source, started_at) VALUES ('s1', 'cli', 1)")
        say(db, *(f"m{n}" for n in range(50)))


def say(db: sqlite3.Connection, *texts: str) -> None:
    """Add messages to a history."""
    db.executemany(
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s1', 'user', ?, 1)",
        [(text,) for text in texts],
    )


def board(
    path: Path, without: tuple[tuple[str, str], ...] = (), version: str | None = None
) -> Path:
    """Create a kanban database with one task, without these columns."""
    return remembered(path, _board, without, version)


def _board(path: Path, without: tuple[tuple[str, str], ...], version: str | None) -> None:
    with contextlib.closing(made("kanban.db", path, version)) as db:
        db.execute(
            "INSERT INTO tasks (id, title, status, created_at) VALUES ('t1', 'a task', 'todo', 1)"
        )
        db.commit()
        for table, column in without:
            schema_changes.take_away(db, table, column)


def plan(name: str, version: str | None = None) -> Blueprint:
    """Return the schema of a database in a release."""
    found = atlas.blueprint(name, version or RELEASE)
    assert found, f"{version} has no {name}"
    return found


def made(name: str, path: Path, version: str | None = None) -> sqlite3.Connection:
    """Create an empty database as a release does, and return the connection."""
    path.parent.mkdir(parents=True, exist_ok=True)
    db = completion.create(path, plan(name, version))
    path.chmod(0o600)
    return db


def clobber(path: Path, data: bytes = b"\0" * 16, at: int = 0) -> None:
    """Overwrite some bytes of a file."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def tree(home: Path, *, times: bool = True, vault: bool = False) -> dict[str, tuple[Any, ...]]:
    """Return kind, content, mode, owner and times of every path of a home.

    The times are read first, because reading for the hash must not change the access time.
    """
    found: dict[str, tuple[Any, ...]] = {}
    for path in sorted([home, *home.rglob("*")]):
        name = str(path.relative_to(home))
        if not vault and (name == "backups" or name.startswith("backups/doctor")):
            continue
        st = path.lstat()
        if path.is_symlink():
            content: object = os.readlink(path)
        elif path.is_file():
            fd = os.open(path, os.O_RDONLY | (os.O_NOATIME if os.geteuid() == st.st_uid else 0))
            with open(fd, "rb") as file:
                content = hashlib.sha256(file.read()).hexdigest()
        else:
            content = None
        facts: tuple[Any, ...] = (st.st_mode, st.st_uid, st.st_gid, content)
        if times:
            facts += (st.st_mtime_ns, st.st_ctime_ns)
            if not path.is_dir():
                facts += (st.st_atime_ns,)
        found[name] = facts
    return found


def contents(home: Path) -> dict[str, tuple[Any, ...]]:
    """Return content, mode and owner of every file, which undo must restore."""
    return {name: facts for name, facts in tree(home, times=False).items() if name != "."}


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output, parsed as JSON."""
        return json.loads(self.out)

    @property
    def codes(self) -> list[str]:
        """The codes of the findings in its JSON output, without the note that no fallback is set.

        Many tests write settings without one; tests/checks/test_fallback_chain.py looks at it.
        """
        codes = [finding["code"] for finding in self.json["findings"]]
        return [code for code in codes if code != "CFG-FALLBACK-NONE"]


def doctor(
    *args: str | Path,
    env: Mapping[str, str | None] | None = None,
    cwd: Path | None = None,
    user: int | None = None,
    timeout: float = 60,
    terminal: str | None = None,
    settings: Mapping[str, object] = {},
) -> Done:
    """Run the command as an operator would, in a fork of a warm process.

    On a terminal, what it says is there only. `settings` are names in modules, such as limits.
    """
    assert not {name for name in env or () if name.startswith(("PYTHON", "LC_", "LANG"))}
    said = warm_server.shared().ask(
        *map(str, args),
        env=environ(env),
        cwd=cwd or Path.cwd(),
        timeout=timeout,
        user=user,
        terminal=terminal,
        settings=dict(settings),
    )
    return Done(said["code"], said["out"], said["err"])


def spawned(*args: str | Path, env: dict[str, str] | None = None, **options: Any) -> Done:
    """Run the command in a new Python, for tests of its start-up."""
    done = subprocess.run(
        [sys.executable, "-m", "hermes_doctor", *map(str, args)],
        env=environ(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=options.pop("timeout", 60),
        **options,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def open_files(folder: Path) -> list[str]:
    """Return the files in this folder that this process has open."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the descriptor of the listing itself
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return [path for path in found if path.startswith(f"{folder}/")]


def environ(more: Mapping[str, str | None] | None) -> dict[str, str]:
    """Return the environment of a command: no operator's home, no colours; None unsets a name.

    After a crash loop, a gateway need not stay up for a minute.
    """
    every = {**os.environ, "HERMES_HOME": None, "SUDO_USER": None, "HERMES_DOCTOR_STEADY": "1"}
    every |= {"NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"} | dict(more or {})
    return {name: value for name, value in every.items() if value is not None}


def check(home: Path, *args: str) -> Done:
    """Run `check --json` on a home; whatever silences a bot must be an error."""
    done = doctor("check", "--json", "--home", home, *args)
    for one in done.json["findings"] if done.out else ():
        said = f"{one['title']}. {one['detail']}"
        assert not understated(one["severity"], said), (one["code"], one["severity"], said)
    return done


def finding(done: Done, code: str) -> dict[str, Any]:
    """Return the only finding with this code."""
    found = [one for one in done.json["findings"] if one["code"] == code]
    assert len(found) == 1, f"{len(found)} findings of {code}"
    result: dict[str, Any] = found[0]
    return result


@contextlib.contextmanager
def reachable_folder() -> Iterator[Path]:
    """A folder that every user can reach; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="hd-reachable-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        subprocess.run(["/bin/chmod", "-R", "u+rwX", str(folder)], check=True)
        shutil.rmtree(folder)


def copy_home(source: Path, target: Path) -> Path:
    """Copy a home with modes and times."""
    shutil.copytree(source, target, symlinks=True)
    return target
