"""The causes of errors that Hermes recorded in files, such as the last error of a job."""

from __future__ import annotations

import re
from functools import cache

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import Message
from hermes_doctor.diagnosis.plugins.built_in import SIGNATURES, builtin
from hermes_doctor.diagnosis.plugins.log_causes.reading import Place
from hermes_doctor.diagnosis.plugins.log_rules.blame import BASIC, SAYS_LITTLE, Blame
from hermes_doctor.diagnosis.plugins.log_rules.findings import shown
from hermes_doctor.diagnosis.plugins.log_rules.folder import Folder

PLATFORM = "platform"
"""The part whose own check says what the other side answers."""
_FIELD = re.compile(r"\{(\w+)\}")


class RecordedCause(NamedTuple):
    """A cause and its words for a finding."""

    code: str
    title: Message
    detail: str
    advice: str
    transient: bool
    """Whether it may have passed since."""


def recorded_cause(error: str, part: str, name: str, label: str) -> RecordedCause | None:
    """Return the cause that an error of a part names; None if that says only what fails.

    `part` is one of cron, kanban, platform and so on, `name` the platform's id or the words of the
    place, and `label` what people call it.
    """
    folder = _folder()
    reader = folder.reader
    cause, fields = reader.cause_of(error[:4000]) if reader and error.strip() else (None, {})
    if cause is None or cause.rank >= SAYS_LITTLE:
        return None
    if part == PLATFORM and cause.family not in BASIC:
        return None
    blame = Blame(cause, Place(part, name, label), fields)
    if cause.code_in(part) in folder.symptoms:
        return None
    values = {key: shown(fields[key]) for key in _FIELD.findall(blame.title)}
    return RecordedCause(
        blame.code, Message(blame.title, values), cause.detail, cause.advice, cause.transient
    )


def recorded_codes(*parts: str) -> set[str]:
    """Return the codes that recorded errors of these parts can have."""
    folder = _folder()
    causes = folder.reader.causes if folder.reader else ()
    codes = {
        code
        for cause in causes
        for part in parts
        if cause.rank < SAYS_LITTLE and (part != PLATFORM or cause.family in BASIC)
        for code in (cause.code_in(part), *(cause.by_platform.values() if part == PLATFORM else ()))
    }
    return codes - folder.symptoms


@cache
def _folder() -> Folder:
    """The built-in tables; those of an operator are about lines of a log."""
    return Folder(builtin("checks") / SIGNATURES, ours=True)
