"""Learn from the installed Hermes what its databases and settings are like, and store it."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CannotFix, Trouble
from hermes_doctor.core.system import disk, privileges, progress
from hermes_doctor.core.system.accounts import why_untrusted
from hermes_doctor.core.system.foreign_code import why_foreign
from hermes_doctor.core.system.privileges import Privileges
from hermes_doctor.core.system.workers import start_worker
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.hermes.knowledge import atlas, merging, releases
from hermes_doctor.hermes.knowledge.releases import Learned
from hermes_doctor.operations.learning import isolation, questions
from hermes_doctor.operations.learning.isolation import DoesNotStart
from hermes_doctor.sqlite.schema import declares_only

_MEMORY = 400 * 1024 * 1024
_PAUSE = 0.02


class Lecture(NamedTuple):
    """What was learned, where it is stored, and how long it took."""

    learned: Learned
    path: Path
    databases: int
    settings: int
    seconds: float


def learn(
    home: Home, installed: Installation, commit: str | None, until: float, seconds: float
) -> Lecture:
    """Ask the installed Hermes and store its answers; `until` is when the `seconds` are over.

    Raises DoesNotStart if it gives none, Trouble if it cannot be asked.
    """
    began = time.monotonic()
    version = ".".join(map(str, installed.release))
    owner = os.stat(home.path).st_uid
    path = releases.learned_path(installed.version, commit, owner)
    if path is None:
        raise Trouble("Hermes has the unusual version {name!r}.", name=installed.version)
    user = privileges.of(home.path / "config.yaml")
    python = _interpreter(installed, user)
    wanted = questions.lessons(version)
    done: list[str] = []

    def heard(name: str) -> None:
        done.append(name)
        progress.report(f"asking Hermes {installed.version}", len(done) / len(wanted))

    answers = isolation.ask_all(
        python, wanted, seconds=seconds, until=until, user=user, heard=heard
    )
    document = _in_time(lambda: _document(version, commit or "", answers), until, seconds)
    learned = releases.parse_learned(json.loads(document))
    if learned is None:
        raise DoesNotStart("its answers are not what was expected")
    disk.make_folder(path.parent)
    why = why_untrusted(path.parent)
    if why:
        raise Trouble("{path} cannot be used, because {reason}.", path=path.parent, reason=why)
    disk.save(path, document.encode())
    databases = sum(name.startswith("schemas/") for name in learned.answers)
    settings = len(learned.answers["keys"]["keys"])
    return Lecture(learned, path, databases, settings, time.monotonic() - began)


def _in_time(work: Callable[[], str], until: float, seconds: float) -> str:
    """Do it in a process that is killed when the time is over: answers can be made to be slow."""

    def limited() -> str:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
        return base64.b64encode(work().encode()).decode()

    with start_worker(None, lambda _: limited()) as worker:
        while not worker.has_output:
            if time.monotonic() > until:
                raise DoesNotStart(isolation.too_slow(seconds))
            time.sleep(_PAUSE)
        try:
            return base64.b64decode(worker.receive()[1]).decode()
        except CannotFix:
            raise DoesNotStart("its answers are not what was expected") from None


def _interpreter(installed: Installation, user: Privileges | None) -> Path:
    """Return the Python of the installed Hermes; root runs only what nobody else can change."""
    if installed.where.is_relative_to("/proc"):
        raise Trouble(
            "Hermes runs in a container, so it cannot be asked from outside. Run hermes-doctor in "
            "the container."
        )
    for folder in ("", "venv", ".venv"):
        python = installed.where / folder / "bin" / "python"
        if python.exists():
            break
    else:
        raise Trouble("Hermes in {where} has no Python environment to ask.", where=installed.where)
    if os.geteuid() == 0:
        why = why_untrusted(python, trusted_uids=[user.uid]) if user else why_foreign(python)
        if why:
            raise Trouble("root does not run the code of this Hermes: {reason}.", reason=why)
    return python


def _document(version: str, commit: str, answered: dict[str, Any]) -> str:
    """Return what is stored, after trying each answer; CannotFix if one cannot be used."""
    try:
        answers = questions.answers(version, answered)
        learned = Learned(
            *(version, commit),
            max(map(int, answers["resolution"]["config_version"])),
            answers["schemas/state"]["version"],
            answers,
        )
        known = releases.shipped_releases()
        for name, answer in answers.items():
            content = merging.add(name, releases.load_knowledge(name), known, version, answer)
            if name.startswith("schemas/"):
                _try(content, version)
        if releases.parse_learned(releases.learned_document(learned)) != learned:
            raise ValueError("not the expected types")
    except (LookupError, TypeError, ValueError, AttributeError, sqlite3.Error) as error:
        raise CannotFix(type(error).__name__) from error
    return json.dumps(releases.learned_document(learned), separators=(",", ":"))


def _try(content: dict[str, Any], version: str) -> None:
    """Make an empty database as declared; nothing but declarations is executed."""
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
