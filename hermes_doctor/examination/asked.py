"""Use the last `hermes-doctor ask` in a report: in the line about the model, and in the ladder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hermes_doctor.message import duration, text
from hermes_doctor.model import ANSWERS_OUT, CouldNotLook, Mark, Part, Rung, RungState

if TYPE_CHECKING:
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.records.last_ask import AskRecord

ANSWERED = "it answered `hermes-doctor ask`"
_FORMS = {
    (True, "ok"): "asked {age} ago: answered in {seconds:.1f} s",
    (True, True): "refused ({status}) {age} ago",
    (True, False): "asked {age} ago: {reason}",
    (False, "ok"): "provider asked {age} ago: answered in {seconds:.1f} s",
    (False, True): "provider refused ({status}) {age} ago",
    (False, False): "provider asked {age} ago: {reason}",
}
"""By whether the gateway was asked, and how it ended: answered, refused, or otherwise."""


def parts(probes: Probes) -> Iterable[Part]:
    """The remark about the last question: who was asked, when, and how it ended."""
    from hermes_doctor.records.last_ask import GATEWAY

    found = _last(probes)
    if found is None:
        return
    last = found.attempts[-1]
    form = _FORMS[found.via == GATEWAY, "ok" if last.is_fine else last.is_refused]
    said = text(
        form,
        age=duration((datetime.now(UTC) - found.at).total_seconds()),
        seconds=max(last.seconds, 0.1),
        status=last.status,
        reason=last.words,
    )
    yield Part(Mark.GOOD if last.is_fine else Mark.BAD, said)


def with_answer(probes: Probes, rungs: Sequence[Rung]) -> tuple[Rung, ...]:
    """The ladder, whose last rung also holds if the gateway itself answered a question."""
    from hermes_doctor.records.last_ask import GATEWAY

    found = _last(probes)
    if found is None or found.via != GATEWAY or not found.is_fine:
        return tuple(rungs)
    return tuple(
        Rung(ANSWERS_OUT, RungState.OK, ANSWERED, found.at)
        if one.name == ANSWERS_OUT and one.hold is RungState.UNKNOWN
        else one
        for one in rungs
    )


def _last(probes: Probes) -> AskRecord | None:
    try:
        return probes.last_ask()
    except CouldNotLook:
        return None
