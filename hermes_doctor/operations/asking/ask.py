"""Send the question and judge the answer, within a time limit."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from datetime import UTC, datetime
from typing import Any

from hermes_doctor.backup.records.last_ask import GATEWAY, AskAttempt, AskRecord
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import text
from hermes_doctor.core.redaction import clean, redact_words
from hermes_doctor.diagnosis.probes.network import provider_trial, verdict
from hermes_doctor.diagnosis.probes.network.provider_trial import Reply, name_of
from hermes_doctor.diagnosis.probes.network.request import Request
from hermes_doctor.hermes.settings import urls
from hermes_doctor.operations.asking.plan import AskPlan, first_words

LARGEST = 1024 * 1024
"""Bytes that are read of an answer."""
DOOR = "door"
"""The API server itself rejects the key."""
_STATUS = re.compile(r"\b(?:HTTP|Error code:) (\d{3})\b")


class AskResult(NamedTuple):
    """How the question ended; no secrets."""

    record: AskRecord
    answer: str
    """The first words of the answer; empty if there was none, or none with words."""

    @property
    def says_something(self) -> bool:
        """Whether it says something about the bot: a wrong key of the API server does not."""
        return self.record.attempts[-1].kind != DOOR


class _Judged(NamedTuple):
    kind: str
    status: int | None
    words: str
    answer: str = ""


def carry_out(plan: AskPlan, patience: float) -> AskResult:
    """Ask the gateway, or one provider after the other until one answers, as Hermes does."""
    attempts, answer = [], ""
    for request in plan.requests:
        began = time.monotonic()
        reply = _within(patience, request, plan)
        if reply.failed:
            judged = _Judged("", None, reply.why)
        else:
            judge = _of_gateway if plan.via == GATEWAY else _of_provider
            judged = judge(reply, request)
            judged = judged._replace(
                words=first_words(judged.words, plan.secrets),
                answer=first_words(judged.answer, plan.secrets),
            )
        attempts.append(_attempt(request, plan, reply, judged, time.monotonic() - began))
        if judged.kind == verdict.OK:
            answer = judged.answer
            break
    return AskResult(AskRecord(datetime.now(UTC), plan.via, tuple(attempts)), answer)


def _within(patience: float, request: Request, plan: AskPlan) -> Reply:
    """Send in a thread, so that neither a name server nor a slow sender exceeds the limit."""
    replies: list[Reply] = []
    links: list[socket.socket] = []

    def work() -> None:
        replies.append(provider_trial.send(request, plan.settings, links.append, patience, LARGEST))

    thread = threading.Thread(target=work, name="ask", daemon=True)
    thread.start()
    thread.join(patience)
    if replies:
        reply = replies[0]
        late = reply.failed == "answer" and reply.why == provider_trial.LATE
        return reply._replace(why=_late(patience)) if late else reply
    for link in links:
        with contextlib.suppress(OSError):
            link.shutdown(socket.SHUT_RDWR)
    return Reply(None, "answer", _late(patience))


def _late(patience: float) -> str:
    return text("no answer within {seconds:g} s", seconds=patience)


def _of_provider(reply: Reply, request: Request) -> _Judged:
    if len(reply.body) >= LARGEST:
        return _Judged(verdict.UNSURE, reply.status, "the answer is longer than 1 MB")
    judged = verdict.judge(reply.status, reply.body, request.place)
    if judged.kind == verdict.OK:
        answer = verdict.answer_text(reply.body, request.place)
        return _Judged(verdict.OK, reply.status, "", answer)
    words = verdict.error_text(reply.body) or judged.message
    return _Judged(judged.kind, judged.status, words)


def _of_gateway(reply: Reply, request: Request) -> _Judged:
    """Judge an answer of the API server, which reports a failed model call in several ways."""
    if reply.status in (401, 403):
        words = "its API server rejects the key, probably because it was changed after the start"
        return _Judged(DOOR, reply.status, words)
    error = _error_of_gateway(reply)
    if error is None and reply.status == 200:
        answer = verdict.answer_text(reply.body, verdict.CHOICES)
        if answer.strip():
            return _Judged(verdict.OK, 200, "", answer)
        return _Judged(verdict.UNSURE, 200, "an empty answer")
    message = error or verdict.error_text(reply.body) or "an answer without text"
    stated = _STATUS.search(message)
    if stated is None:
        return _Judged(verdict.UNSURE, reply.status, message)
    status = int(stated[1])
    body = json.dumps({"error": {"message": message}}).encode()
    return _Judged(verdict.judge(status, body, request.place).kind, status, message)


def _error_of_gateway(reply: Reply) -> str | None:
    """Return the words of a failed turn; None if the turn did not fail."""
    try:
        answer: Any = json.loads(reply.body)
        turn, choice = answer.get("hermes") or {}, (answer.get("choices") or [{}])[0]
        if not turn.get("failed") and choice.get("finish_reason") != "error":
            return None
        return str(turn.get("error") or choice["message"]["content"])
    except (ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError):
        return None


def _attempt(
    request: Request, plan: AskPlan, reply: Reply, judged: _Judged, seconds: float
) -> AskAttempt:
    route = request.route
    resolved = route.provider.value if route.provider else ""
    return AskAttempt(
        route=route.path,
        name=redact_words(name_of(route)),
        provider=redact_words(resolved or ""),
        model=redact_words(route.model.value or ""),
        host=plan.door.place if plan.door else clean(urls.host(request.url)),
        kind=judged.kind,
        status=judged.status,
        words=judged.words,
        failed=reply.failed,
        seconds=round(seconds, 3),
    )
