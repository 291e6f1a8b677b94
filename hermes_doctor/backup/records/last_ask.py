"""Store the result of the last `ask` of a home, so that `check` can use it as evidence.

The file is outside of the home. It has no key, no question and no answer: only who was asked, when,
and how it ended.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_doctor.core.home import Home, identity, state_folder
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.outgoing import masked
from hermes_doctor.core.redaction import clean
from hermes_doctor.core.system.files import read
from hermes_doctor.core.system.privileges import as_owner_of

SCHEMA = "hermes-doctor/last-ask/1"
GATEWAY, PROVIDER = "gateway", "provider"
OK = "ok"
LARGEST = 64 * 1024
_LONG = 200


class AskAttempt(NamedTuple):
    """One question to the gateway or to a provider, and how it ended. Contains no secret."""

    route: str
    """Where config.yaml sets the route: `model`, or an entry of the fallback chain."""
    name: str
    """The provider's name, for the user."""
    provider: str
    """The provider as Hermes names it in its logs, such as `custom`."""
    model: str
    host: str
    kind: str
    """`ok`, or what the answer means; see `diagnosis/probes/network/verdict.py`.

    Empty without an answer.
    """
    status: int | None = None
    """The HTTP status of the answer."""
    words: str = ""
    """The words of a refusal, or why there was no answer."""
    failed: str | None = None
    """The stage that failed before there was an answer, as in `Trial`."""
    seconds: float = 0.0

    @property
    def is_fine(self) -> bool:
        """Whether there was a proper answer."""
        return self.kind == OK

    @property
    def is_refused(self) -> bool:
        """Whether the answer is an HTTP error. A web page with status 200 is no refusal."""
        return not self.is_fine and self.status is not None and self.status >= 400


class AskRecord(NamedTuple):
    """The result of one `ask`: the last attempt decides."""

    at: datetime
    via: str
    """GATEWAY or PROVIDER."""
    attempts: tuple[AskAttempt, ...]

    @property
    def is_fine(self) -> bool:
        """Whether the question was answered."""
        return self.attempts[-1].is_fine


def file_of(home: Home) -> Path:
    """The file of this user for that home."""
    return state_folder() / f"ask-{identity(home)}.json"


def save(home: Home, record: AskRecord) -> str | None:
    """Store a result; return why that was not possible."""
    from hermes_doctor.core.system import root_parent

    if root_parent.is_separate():  # it is root's own record
        document = json.dumps(masked(_document(home, record)))
        why: str | None = root_parent.ask_root("keep_last_ask", document)
        return why
    from hermes_doctor.core.system import disk  # a check only reads

    path = file_of(home)
    try:
        if Path(os.path.realpath(path.parent)).is_relative_to(home.path):
            return text("{folder} is inside the Hermes home", folder=path.parent)
        disk.make_folder(path.parent)
        disk.save(path, json.dumps(masked(_document(home, record))).encode())
    except (OSError, Trouble, CouldNotLook) as error:
        return str(getattr(error, "strerror", None) or error).lower()
    return None


def load(home: Home) -> AskRecord | None:
    """Return the stored result; None if there is none that can be used."""
    from hermes_doctor.core.system import root_parent

    path = file_of(home)
    separate = root_parent.is_separate()
    if not separate and not os.path.lexists(path):
        return None
    unusable = (OSError, CouldNotLook, Trouble, ValueError, OverflowError, RecursionError)
    try:
        if separate:
            said = root_parent.ask_root("last_ask")
            return parse(json.loads(said), home) if said else None
        with as_owner_of(path) as here:
            return parse(json.loads(read(here, LARGEST)[0]), home)
    except (*unusable, KeyError, TypeError, AttributeError):
        return None


def _document(home: Home, record: AskRecord) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "home": str(home.path),
        "at": record.at.isoformat(),
        "via": record.via,
        "attempts": [attempt._asdict() for attempt in record.attempts],
    }


def parse(found: Any, home: Home) -> AskRecord | None:
    """Return the result that a document describes; None if it is not of this home."""
    if found["schema"] != SCHEMA or found["home"] != str(home.path):
        return None
    at = datetime.fromisoformat(found["at"])
    attempts = tuple(map(_attempt, found["attempts"]))
    if at.tzinfo is None or found["via"] not in (GATEWAY, PROVIDER) or not attempts:
        return None
    return AskRecord(at.astimezone(UTC), found["via"], attempts)


def _attempt(found: Any) -> AskAttempt:
    names = ("route", "name", "provider", "model", "host", "kind", "words")
    texts = {name: clean(str(found[name]))[:_LONG] for name in names}
    status, failed = found["status"], found["failed"]
    return AskAttempt(
        **texts,
        status=int(status) if status is not None else None,
        failed=clean(str(failed))[:_LONG] if failed is not None else None,
        seconds=float(found["seconds"]),
    )
