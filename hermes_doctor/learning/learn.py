"""Learn from the installed Hermes what its databases and settings are like, and store it."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.knowledge import atlas, data, learned as stored, merging
from hermes_doctor.knowledge.data import Learned
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.learning import isolation, questions
from hermes_doctor.learning.isolation import DoesNotStart
from hermes_doctor.message import text
from hermes_doctor.model import Trouble
from hermes_doctor.system import disk, privileges, progress
from hermes_doctor.system.trust import why_untrusted

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.installation.find import Installation


class Lecture(NamedTuple):
    """What was learned, where it is stored, and how long it took."""

    learned: Learned
    path: Path
    databases: int
    settings: int
    seconds: float


def learn(home: Home, installed: Installation, commit: str | None, seconds: float) -> Lecture:
    """Ask the installed Hermes and store its answers.

    Raises DoesNotStart if it gives none, Trouble if it cannot be asked.
    """
    began = time.monotonic()
    version = ".".join(map(str, installed.release))
    owner = os.stat(home.path).st_uid
    path = stored.path_of(installed.version, commit, owner)
    if path is None:
        raise Trouble(text("Hermes has the unusual version {name!r}.", name=installed.version))
    user = privileges.of(home.path / "config.yaml")
    python = _interpreter(installed, owner)
    wanted = questions.lessons(version)
    done: list[str] = []

    def heard(name: str) -> None:
        done.append(name)
        progress.report(f"asking Hermes {installed.version}", len(done) / len(wanted))

    said = isolation.ask_all(python, wanted, seconds=seconds, user=user, heard=heard)
    found, databases, settings = _understood(version, commit or "", said)
    _save(path, found)
    return Lecture(found, path, databases, settings, time.monotonic() - began)


def _interpreter(installed: Installation, owner: int) -> Path:
    """Return the Python of the installed Hermes; root runs only what nobody else can change."""
    for folder in ("", "venv", ".venv"):
        python = installed.where / folder / "bin" / "python"
        if python.exists():
            break
    else:
        raise Trouble(
            text("Hermes in {where} has no Python environment to ask.", where=installed.where)
        )
    why = why_untrusted(python, trusted_uids=[owner]) if os.geteuid() == 0 else None
    if why:
        raise Trouble(text("root does not run the code of this Hermes: {reason}.", reason=why))
    return python


def _understood(version: str, commit: str, said: dict[str, Any]) -> tuple[Learned, int, int]:
    """Return the answers after trying each of them; DoesNotStart if one cannot be used."""
    try:
        answers = questions.answers(version, said)
        found = Learned(
            *(version, commit),
            max(map(int, answers["resolution"]["config_version"])),
            answers["schemas/state"]["version"],
            answers,
        )
        known = data.shipped_releases()
        for name, answer in answers.items():
            content = merging.add(name, data.load_knowledge(name), known, version, answer)
            if name.startswith("schemas/"):
                _try(content, version)
        if stored.parse(stored.document(found)) != found:
            raise ValueError("not the expected types")
    except (LookupError, TypeError, ValueError, AttributeError, sqlite3.Error) as error:
        raise DoesNotStart(
            text("its answers are not what was expected ({kind})", kind=type(error).__name__)
        ) from error
    databases = sum(name.startswith("schemas/") for name in answers)
    return found, databases, len(answers["keys"]["keys"])


def _try(content: dict[str, Any], version: str) -> None:
    """Make an empty database as declared; nothing but declarations is executed."""
    from hermes_doctor.sqlite.schema import declares_only

    plan = atlas.blueprint_from(content, content["database"], version)
    parts = (plan.indexes, plan.views, plan.virtual, plan.triggers)
    memory = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for sql in (
            *(table.sql for table in plan.tables.values()),
            *(sql for part in parts for sql in part.values()),
        ):
            if not sql.upper().startswith("CREATE "):
                raise ValueError("not a declaration")
            view = sql.upper().startswith(("CREATE VIEW", "CREATE VIRTUAL", "CREATE TRIGGER"))
            memory.set_authorizer(None if view else declares_only)
            memory.execute(sql)
    finally:
        memory.close()


def _save(path: Path, found: Learned) -> None:
    disk.make_folder(path.parent)
    why = why_untrusted(path.parent)
    if why:
        raise Trouble(
            text("{path} cannot be used, because {reason}.", path=path.parent, reason=why)
        )
    content = json.dumps(stored.document(found), separators=(",", ":"))
    disk.save(path, content.encode())
