"""How the providers answer `--network` and `ask`, and how that is told."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.backup.records.last_ask import AskAttempt, AskRecord
from hermes_doctor.core.model import CheckResult, Finding
from tests.helpers.check_home import CANARY
from tests.helpers.fake_provider import PAGE, error, serving
from tests.helpers.gateway_home import Scene, ask
from tests.helpers.support import put

KEY = "sk-relay-0123456789abcdef"


def scene(home: Path, url: str, fallback: str | None = None) -> Scene:
    """A home whose relay is there, and one to fall back to."""
    more = f"  other: {{base_url: {fallback}, api_key: sk-other-123456}}\n" if fallback else ""
    chain = "fallback_providers: [{provider: other, model: big}]\n" if fallback else ""
    put(
        home / "config.yaml",
        "model:\n  provider: relay\n  default: small\nproviders:\n"
        f"  relay:\n    base_url: {url}\n    key_env: RELAY_KEY\n{more}{chain}",
    )
    put(home / ".env", f"RELAY_KEY={KEY}\n")
    return Scene(home, {}, network=True)


@pytest.mark.parametrize(
    ("status", "answer", "code", "severity", "word"),
    [
        (401, error("invalid_api_key", f"Incorrect: {KEY}"), "PROVIDER-401", "error", "key"),
        (402, error("payment_required"), "PROVIDER-402-429", "error", "credit"),
        (403, error("insufficient_user_quota"), "PROVIDER-402-429", "error",
         "insufficient_user_quota"),
        (403, error("forbidden"), "PROVIDER-403", "error", "refuses"),
        (404, error("model_not_found"), "CFG-MODEL", "error", "model"),
        (200, PAGE, "CFG-MODEL", "error", "address"),
        (429, error("rate_limit_exceeded"), "PROVIDER-402-429", "warning", "requests"),
        (503, b"", "PROVIDER-DOWN", "error", "fails"),
    ],
)  # fmt: skip
def test_codes(home: Path, status: int, answer: Any, code: str, severity: str, word: str) -> None:
    """Each answer has its code, with the place of what to change and never the key."""
    with serving(status, answer) as provider:
        result, [finding] = ask("provider-answers", scene(home, provider.url))

    assert (result.status, finding.code, finding.severity) == ("problem", code, severity)
    assert word in f"{finding.title} {finding.evidence[0].what}"
    assert [one.where for one in finding.evidence] == ["config.yaml:6", "config.yaml:3", ".env:1"]
    assert KEY not in repr((result, finding))


def test_healthy(home: Path) -> None:
    """A provider that serves is nothing to talk about."""
    with serving() as provider:
        assert ask("provider-answers", scene(home, provider.url))[0].status == "ok"
        assert ask("network-reach", scene(home, provider.url))[0].status == "ok"


def test_bridged_by_a_fallback(home: Path) -> None:
    """It is milder where another provider serves instead; a dead fallback is told as one."""
    with serving(401) as dead, serving() as fine:
        _, [main] = ask("provider-answers", scene(home, dead.url, fine.url))
        _, [other] = ask("provider-answers", scene(home, fine.url, dead.url))

    assert (main.severity, main.subject) == ("warning", "model")
    assert (other.severity, other.subject) == ("warning", "fallback_providers[0]")
    assert "fallback" in (other.detail or "")


def test_a_provider_that_cannot_be_reached(home: Path) -> None:
    """The host's problem is the cause; that every message fails is said of the main model only."""
    with serving() as provider:
        gone = provider.url
    with serving() as fine:
        [finding] = ask("provider-answers", scene(home, gone))[1]
        [host] = ask("network-reach", scene(home, gone))[1]
        bridged = ask("provider-answers", scene(home, gone, fine.url))[1]
        fallback = ask("provider-answers", scene(home, fine.url, gone))[1]

    assert (finding.code, finding.severity, finding.subject) == ("PROVIDER-DOWN", "error", "model")
    assert (host.code, host.subject) == ("NET-TCP", "relay")
    assert (bridged, fallback) == ([], [])


def test_not_asked(home: Path) -> None:
    """Nothing is sent without the option."""
    with serving() as provider:
        made = scene(home, provider.url)
        made.network = False
        result, _ = ask("provider-answers", made)

    assert (result.status, "--network" in (result.reason or "")) == ("skipped", True)
    assert provider.asked == []


def test_a_login_is_not_asked(home: Path) -> None:
    """There is no key to send, and nothing to say."""
    put(home / "config.yaml", "model: {provider: copilot, default: gpt}\n")
    put(home / ".env", "GITHUB_TOKEN=gho_123456789\n")

    assert ask("provider-answers", Scene(home, {}, network=True))[0].status == "skipped"


def test_a_watch_spends_nothing(home: Path) -> None:
    """A look that is taken over and over asks no provider."""
    with serving() as provider:
        made = scene(home, provider.url)
        made.paid_requests = False
        result, _ = ask("provider-answers", made)

    assert (result.status, provider.asked) == ("skipped", [])


@pytest.mark.parametrize(
    "end", ["?api-key=CANARY", "/CANARY", "#CANARY", "/abcdefghijklmnopqrstuv"]
)
def test_secrets_in_an_address(home: Path, end: str) -> None:
    """What an address hands over is shown nowhere."""
    secret = end.replace("CANARY", CANARY)
    with serving(401, error("invalid_api_key")) as provider:
        result, [finding] = ask("provider-answers", scene(home, provider.url + secret))

    assert provider.url in finding.evidence[0].what
    assert secret.lstrip("?/#").removeprefix("api-key=") not in repr((result, finding))


def test_no_message(home: Path) -> None:
    """An answer that is none is neither a fault nor a proof."""
    with serving(200, {}) as provider:
        result, found = ask("provider-answers", scene(home, provider.url))

    assert (result.status, found) == ("unknown", [])
    assert "could not read the answer of relay: HTTP 200" in (result.reason or "")


def attempt(kind: str, status: int | None = None, failed: str | None = None) -> AskAttempt:
    """One question to the relay, and how it ended."""
    words = "no words" if kind != "ok" else ""
    return AskAttempt(
        *("model", "relay", "custom", "small", "relay.example"), kind, status, words, failed
    )


def asked(home: Path, via: str, *attempts: AskAttempt) -> tuple[CheckResult, list[Finding]]:
    """What the check makes of a question."""
    made = scene(home, "https://relay.example/v1")
    made.network = False
    made.health.asked = AskRecord(datetime.now(UTC), via, attempts)
    return ask("provider-asked", made)


@pytest.mark.parametrize("via", ["gateway", "provider"])
@pytest.mark.parametrize(
    ("kind", "status", "code", "severity"),
    [
        ("key", 401, "PROVIDER-401", "error"),
        ("money", 402, "PROVIDER-402-429", "error"),
        ("limit", 429, "PROVIDER-402-429", "warning"),
        ("refused", 403, "PROVIDER-403", "error"),
        ("model", 404, "CFG-MODEL", "error"),
        ("address", 404, "CFG-MODEL", "error"),
        ("down", 503, "PROVIDER-DOWN", "error"),
    ],
)
def test_refused_question(
    home: Path, via: str, kind: str, status: int, code: str, severity: str
) -> None:
    """A refusal has the code of the same line in a log, and the question as its evidence."""
    result, [finding] = asked(home, via, attempt(kind, status))

    assert (result.status, finding.code, finding.severity) == ("problem", code, severity)
    assert (finding.subject, finding.evidence[0].where) == ("model custom", "hermes-doctor ask")
    assert f"HTTP {status}: no words" in finding.evidence[0].what


@pytest.mark.parametrize("failed", ["name", "connection", "certificate", "proxy", "answer"])
def test_question_without_an_answer(home: Path, failed: str) -> None:
    """A provider that cannot be reached is down; a gateway that is late says nothing about it."""
    _, [finding] = asked(home, "provider", attempt("", failed=failed))
    through = asked(home, "gateway", attempt("", failed=failed))

    assert (finding.code, finding.severity) == ("PROVIDER-DOWN", "error")
    assert through[1] == []


def test_question_that_names_no_problem(home: Path) -> None:
    """An answer, and a refusal that says nothing about the provider."""
    for one in (attempt("ok", 200), attempt("unsure", 400), attempt("door", 401)):
        assert asked(home, "gateway", one)[1] == []
    assert asked(home, "provider", attempt("unsure", 400))[1] == []


def test_question_that_the_fallback_answers(home: Path) -> None:
    """Then it is a warning, as with --network."""
    _, [finding] = asked(home, "provider", attempt("key", 401), attempt("ok", 200))

    assert (finding.severity, finding.detail) == ("warning", "A fallback answers instead.")


def test_no_question(home: Path) -> None:
    """Without a question the check is skipped."""
    made = scene(home, "https://relay.example/v1")
    made.network = False
    result, _ = ask("provider-asked", made)

    assert (result.status, result.reason) == ("skipped", "no recent `hermes-doctor ask`")
