"""Shows a question to the bot, the answer or the refusal, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes_doctor import __version__
from hermes_doctor.backup.records.last_ask import GATEWAY, AskAttempt
from hermes_doctor.core.message import listed, sentences, shorten, text
from hermes_doctor.core.model import Finding
from hermes_doctor.core.redaction import redact_words
from hermes_doctor.core.terminal.lines import BLANK, Line, row
from hermes_doctor.hermes.settings import urls
from hermes_doctor.operations.asking.ask import DOOR, AskResult
from hermes_doctor.operations.asking.plan import AskPlan

SCHEMA = "hermes-doctor/ask/1"
_QUOTED = 60
_STAGES = ("name", "connection", "certificate", "proxy")


def plan_lines(plan: AskPlan) -> Iterator[Line]:
    """What is sent to whom, and what it costs; shown before anything is sent."""
    question = shorten(redact_words(plan.words), _QUOTED)
    if plan.door:
        first = text(
            'Asking the gateway (process {pid}, API server {place}): "{question}"',
            pid=plan.door.pid,
            place=plan.door.place,
            question=question,
        )
        yield row(first)
        yield row(("It may cost a little and appears in the message history.", "faint"))
        return
    first = text(
        'Asking {provider} ({host}, model {model}): "{question}"',
        provider=plan.name,
        host=urls.host(plan.requests[0].url),
        model=plan.model,
        question=question,
    )
    yield row(first)
    note = text("Only the model is asked, because {reason}.", reason=plan.why_direct)
    following = ""
    if len(plan.fallbacks) == 1:
        following = text("If it refuses, {name} is asked next.", name=plan.fallbacks[0])
    elif plan.fallbacks:
        names = listed(plan.fallbacks)
        following = text("If it refuses, {names} are asked next.", names=names)
    yield row((sentences("It may cost a little.", note, following), "faint"))


def result_lines(
    result: AskResult, advice: Finding | None, options: str, not_kept: str | None
) -> Iterator[Line]:
    """How it ended, and what to do next."""
    yield BLANK
    record = result.record
    for attempt in record.attempts:
        if attempt.is_fine:
            form = "{who} answered in {seconds:.1f} s: {answer}"
            if not result.answer:
                form = "{who} answered in {seconds:.1f} s, without text."
            who, seconds = _who(attempt, through=record.via == GATEWAY), max(attempt.seconds, 0.1)
            said = text(form, who=who, seconds=seconds, answer=result.answer)
            yield row(("✓ ", "good"), said, hang=2)
        else:
            yield row(("✗ ", "error"), _failed(attempt, through=record.via == GATEWAY), hang=2)
    if not_kept:
        message = text("The result is not kept for `check`: {reason}.", reason=not_kept)
        yield row(("! ", "warning"), message, hang=2)
    if record.is_fine:
        return
    if record.attempts[-1].kind == DOOR:
        yield row("Next: restart the gateway, then ask again", indent=2)
        return
    if advice and advice.next:
        yield row(advice.next, indent=2)
    command = f"hermes-doctor explain {advice.code}" if advice else f"hermes-doctor check{options}"
    yield row("Next: ", (command, "command"))


def _failed(attempt: AskAttempt, *, through: bool) -> str:
    if attempt.failed in _STAGES:
        form = "{who} cannot be reached: {stage}: {words}"
    elif attempt.status is None:
        form = "{who}: {words}"
    elif attempt.kind == DOOR:
        form = "{who} refused the question: {words}"
    elif not attempt.is_refused:
        form = "{who} gave no usable answer after {seconds:.1f} s: {words}"
    elif through:
        form = "{who} gave no answer, but an error after {seconds:.1f} s: {words}"
    else:
        form = "{who} refused after {seconds:.1f} s (HTTP {status}): {words}"
    return text(
        form,
        who=_who(attempt, through=through),
        stage=attempt.failed,
        seconds=max(attempt.seconds, 0.1),
        status=attempt.status,
        words=attempt.words or "no reason given",
    )


def _who(attempt: AskAttempt, *, through: bool) -> str:
    return "The gateway" if through else attempt.name


def document(
    home: Path, plan: AskPlan, result: AskResult, advice: Finding | None, not_kept: str | None
) -> dict[str, Any]:
    """The question and its result as JSON data."""
    record = result.record
    last = record.attempts[-1]
    return {
        "schema": SCHEMA,
        "version": __version__,
        "home": str(home),
        "asked_at": record.at.isoformat(),
        "path": record.via,
        "why_direct": plan.why_direct or None,
        **_attempt(last),
        "ok": record.is_fine,
        "answer": result.answer if record.is_fine else None,
        "advice": (
            {"code": advice.code, "title": advice.title, "next": advice.next} if advice else None
        ),
        "attempts": [_attempt(attempt) for attempt in record.attempts],
        "kept": not_kept is None,
    }


def _attempt(attempt: AskAttempt) -> dict[str, Any]:
    kind = attempt.kind or attempt.failed or "answer"
    refusal = {"status": attempt.status, "kind": kind, "words": attempt.words}
    return {
        "host": attempt.host,
        "provider": attempt.name,
        "model": attempt.model,
        "seconds": attempt.seconds,
        "ok": attempt.is_fine,
        "refusal": None if attempt.is_fine else refusal,
    }
