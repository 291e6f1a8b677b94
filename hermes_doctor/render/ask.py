"""Shows a question to the bot, the answer or the refusal, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes_doctor import __version__
from hermes_doctor.asking.ask import DOOR, AskResult
from hermes_doctor.asking.plan import AskPlan
from hermes_doctor.message import listed, sentences, shorten, text
from hermes_doctor.model import Finding
from hermes_doctor.records.last_ask import GATEWAY, Attempt
from hermes_doctor.redaction import redact_words
from hermes_doctor.settings import urls
from hermes_doctor.terminal.lines import BLANK, Line, row

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
    yield row((sentences("It may cost a little.", note, _next_asked(plan)), "faint"))


def _next_asked(plan: AskPlan) -> str:
    if not plan.fallbacks:
        return ""
    if len(plan.fallbacks) == 1:
        return text("If it refuses, {name} is asked next.", name=plan.fallbacks[0])
    return text("If it refuses, {names} are asked next.", names=listed(plan.fallbacks))


def result_lines(
    result: AskResult, advice: Finding | None, options: str, not_kept: str | None
) -> Iterator[Line]:
    """How it ended, and what to do next."""
    yield BLANK
    record = result.record
    for one in record.attempts:
        if one.is_fine:
            yield row(("✓ ", "good"), _answered(result, one), hang=2)
        else:
            yield row(("✗ ", "error"), _failed(one, through=record.via == GATEWAY), hang=2)
    if not_kept:
        said = text("The result is not kept for `check`: {reason}.", reason=not_kept)
        yield row(("! ", "warning"), said, hang=2)
    if record.is_fine:
        return
    if record.attempts[-1].kind == DOOR:
        yield row("Next: restart the gateway, then ask again", indent=2)
        return
    if advice and advice.next:
        yield row(advice.next, indent=2)
    command = f"hermes-doctor explain {advice.code}" if advice else f"hermes-doctor check{options}"
    yield row("Next: ", (command, "command"))


def _answered(result: AskResult, one: Attempt) -> str:
    form = "{who} answered in {seconds:.1f} s: {answer}"
    if not result.answer:
        form = "{who} answered in {seconds:.1f} s, without text."
    who = _who(one, through=result.record.via == GATEWAY)
    return text(form, who=who, seconds=max(one.seconds, 0.1), answer=result.answer)


def _failed(one: Attempt, *, through: bool) -> str:
    if one.failed in _STAGES:
        form = "{who} cannot be reached: {stage}: {words}"
    elif one.status is None:
        form = "{who}: {words}"
    elif one.kind == DOOR:
        form = "{who} refused the question: {words}"
    elif not one.is_refused:
        form = "{who} gave no usable answer after {seconds:.1f} s: {words}"
    elif through:
        form = "{who} gave no answer, but an error after {seconds:.1f} s: {words}"
    else:
        form = "{who} refused after {seconds:.1f} s (HTTP {status}): {words}"
    return text(
        form,
        who=_who(one, through=through),
        stage=one.failed,
        seconds=max(one.seconds, 0.1),
        status=one.status,
        words=one.words or "no reason given",
    )


def _who(one: Attempt, *, through: bool) -> str:
    return "The gateway" if through else one.name


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
        "attempts": [_attempt(one) for one in record.attempts],
        "kept": not_kept is None,
    }


def _attempt(one: Attempt) -> dict[str, Any]:
    return {
        "host": one.host,
        "provider": one.name,
        "model": one.model,
        "seconds": one.seconds,
        "ok": one.is_fine,
        "refusal": (
            None if one.is_fine else {"status": one.status, "kind": _kind(one), "words": one.words}
        ),
    }


def _kind(one: Attempt) -> str:
    return one.kind or one.failed or "answer"
