"""What became of the last message decides at once, without a waiting time."""

from __future__ import annotations

import pytest

from hermes_doctor.core.model import Finding, Severity
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_rules.findings import findings
from hermes_doctor.diagnosis.plugins.log_rules.folder import Folder
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.hermes.logs.entry import LogEntry
from tests.helpers.rule_lines import said

FOLDER = Folder(builtin("checks") / "signatures", ours=True)
NOW = 1_794_700_800.0
LOOP = "agent.conversation_loop"
ONE, TWO = "20261115_001248_df794ef7", "api-5c08aa4f460ead84"


def attempt(
    age: float, summary: str = "HTTP 401: no", session: str = ONE, provider: str = "custom"
) -> LogEntry:
    """A failed attempt so many seconds ago."""
    words = (
        f"API call failed (attempt 1/3) error_type=APIStatusError thread=asyncio_0:1 "
        f"provider={provider} base_url=https://llm.example.com/v1 model=m summary={summary}"
    )
    return said(NOW - age, words, "WARNING", LOOP, session)


def gave_up(age: float, error: str = "Error code: 401 - no", session: str = ONE) -> LogEntry:
    """The last line about a message that got no answer."""
    return said(NOW - age, f"Non-retryable client error: {error}", "ERROR", LOOP, session)


def answered(age: float, provider: str, session: str = ONE, model: str = "m") -> LogEntry:
    """A call that a provider answered."""
    words = f"API call #1: model={model} provider={provider} in=12 out=4 total=16 latency=2.1s"
    return said(NOW - age, words, "INFO", LOOP, session)


def done(age: float, model: str = "m", session: str = ONE) -> LogEntry:
    """The last line about an answered message; without figures of its use it is the only one."""
    words = f"Turn ended: reason=text_response(finish_reason=stop) model={model} api_calls=1/90 x"
    return said(NOW - age, words, "INFO", LOOP, session)


def found(*entries: LogEntry) -> list[Finding]:
    """The problems that these lines come to."""
    tracker = IncidentTracker(
        FOLDER.rule_set.rules, now=NOW, reader=FOLDER.reader, symptoms=FOLDER.symptoms
    )
    for entry in entries:
        tracker.add_entry(entry)
    told = findings(tracker.incidents(), lambda entry: entry.source)
    return [one for one in told if one.severity is not Severity.INFO]


@pytest.mark.parametrize(
    ("summary", "code"),
    [
        ("HTTP 401: bad key", "PROVIDER-401"),
        ("HTTP 403: no access", "PROVIDER-403"),
        ("HTTP 402: no credit", "PROVIDER-402-429"),
        ("HTTP 404: model_not_found", "CFG-MODEL"),
        ("HTTP 400: temperature must be 1", "PROVIDER-REJECTED"),
    ],
)
def test_a_refused_message_is_reported_at_once(summary: str, code: str) -> None:
    """Hermes gave up on the message a second ago: the bot does not work, and says so now."""
    error = f"Error code: {summary[5:8]} - {summary[10:]}"
    [one] = found(attempt(1.2, summary), gave_up(1.0, error))
    assert (one.code, one.severity) == (code, Severity.ERROR)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("HTTP 429: slow down", "PROVIDER-402-429"),
        ("HTTP 503: overloaded", "PROVIDER-DOWN"),
        ("Request timed out.", "PROVIDER-DOWN"),
    ],
)
def test_a_message_lost_after_all_retries_is_reported_at_once(text: str, code: str) -> None:
    """The last line says that all retries failed: there is nothing to wait for."""
    words = f"API call failed after 3 retries. {text} | provider=custom model=m msgs=2 tokens=~9"
    [one] = found(said(NOW - 1, words, "ERROR", LOOP, ONE))
    assert (one.code, one.severity) == (code, Severity.ERROR)


def test_an_attempt_may_still_be_retried() -> None:
    """While no line says how the message ended, a retry or a fallback may answer it."""
    assert found(attempt(3)) == []
    assert [one.code for one in found(attempt(60))] == ["PROVIDER-401"]


def test_a_success_ends_it_at_once() -> None:
    """A failure, then a success of the same provider, in any chat."""
    lost = (attempt(4), gave_up(3.9))
    assert found(*lost, answered(1, "custom", TWO)) == []
    [again] = found(*lost, answered(2, "custom", TWO), attempt(1.5), gave_up(1.4))
    assert again.code == "PROVIDER-401"


def test_a_success_without_figures_ends_it_at_once() -> None:
    """Some servers do not say how many tokens were used, so only the turn shows the success."""
    lost = (attempt(4), gave_up(3.9))
    assert found(*lost, done(1)) == []
    assert found(*lost, done(1, session=TWO)) == []
    assert [one.code for one in found(*lost, done(1, "other", TWO))] == ["PROVIDER-401"]
    words = (
        "API call failed after 3 retries. HTTP 503: x | provider=custom model=m msgs=2 tokens=~9"
    )
    down = said(NOW - 4, words, "ERROR", LOOP, ONE)
    assert found(down, done(1)) == []
    assert found(down, done(1, "other")) == [], "the next message was answered"


def test_a_fallback_without_figures() -> None:
    """The end of the turn shows that another model answered in place of the refused one."""
    [one] = found(attempt(40), done(38, "chat"))
    assert (one.severity, one.data["fallback"]) == (Severity.WARNING, "chat")


def test_a_fallback_with_the_same_model_does_not_end_it() -> None:
    """The same model at another provider answered: the end of that turn proves nothing else."""
    [one] = found(attempt(40), answered(38, "deepseek"), done(37))
    assert (one.severity, one.data["fallback"]) == (Severity.WARNING, "deepseek, m")
    assert found(attempt(40), answered(38, "deepseek"), done(37), done(30)) == []


def test_a_fallback_that_answers_is_a_warning() -> None:
    """The main model is refused, but the message was answered."""
    [one] = found(attempt(40), answered(38, "deepseek"))
    assert (one.code, one.severity) == ("PROVIDER-401", Severity.WARNING)
    assert one.title == "custom rejects the key or login"
    assert "answered by the fallback deepseek, m" in one.detail
    assert one.data["fallback"] == "deepseek, m"


def test_a_fallback_at_another_address_of_a_provider_with_the_same_name() -> None:
    """Every server of your own is called "custom": the model tells them apart."""
    [one] = found(attempt(40), answered(38, "custom", model="spare"), done(37, "spare"))
    assert (one.severity, one.data["fallback"]) == (Severity.WARNING, "custom, spare")
    assert found(attempt(40), answered(38, "custom")) == [], "a retry of the same model"


def test_the_fallback_fails_as_well() -> None:
    """The newest message decides, also after one that the fallback answered."""
    before = (attempt(40), answered(38, "deepseek"))
    now = (attempt(3), attempt(2, "HTTP 402: pay", provider="deepseek"), gave_up(1))
    assert {(one.code, one.severity) for one in found(*before, *now)} == {
        ("PROVIDER-401", Severity.ERROR),
        ("PROVIDER-402-429", Severity.ERROR),
    }


def test_another_chat_says_nothing_about_this_message() -> None:
    """A message that another provider answered in another chat is not the answer to this one."""
    [one] = found(attempt(40), gave_up(39), answered(1, "deepseek", TWO))
    assert (one.code, one.severity) == ("PROVIDER-401", Severity.ERROR)
    [other] = found(attempt(3), gave_up(2, session=TWO))
    assert (other.code, other.data["rule"]) == ("PROVIDER-401", "cause/model/login-refused")


def test_a_platform_refuses_the_answers() -> None:
    """Two answers that Discord refuses, also as plain text, are an error, not only a warning."""
    refused = "403 Forbidden (error code: 50013): Missing Permissions"
    lines = [
        line
        for ago in (1200, 600)
        for line in (
            said(
                NOW - ago,
                f"[Discord] Failed to send Discord message: {refused}",
                "ERROR",
                "hermes_plugins.discord_platform.adapter",
            ),
            said(
                NOW - ago,
                f"[Discord] Fallback send also failed: {refused}",
                "ERROR",
                "gateway.platforms.base",
            ),
        )
    ]
    assert [(one.code, one.severity.value) for one in found(*lines)] == [
        ("DC-PERMISSIONS", "warning"),
        ("REPLY-LOST", "error"),
    ]


@pytest.mark.parametrize("error", ["list index out of range", "'NoneType' object is not callable"])
def test_messages_that_end_in_an_error(error: str) -> None:
    """Whatever the error is, users get no answer; it is one finding."""
    words = f"[Telegram] Error handling message: {error}"
    lines = [said(NOW - ago, words, "ERROR", "gateway.platforms.base") for ago in (900, 600, 300)]
    assert [(one.code, one.severity.value) for one in found(*lines)] == [("REPLY-LOST", "error")]
