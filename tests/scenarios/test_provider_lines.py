"""What a failed model call writes: one finding each, and none after a call that succeeded."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hermes_doctor.core.model import Finding
from hermes_doctor.diagnosis.examination.causes import add_causes
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_rules.findings import findings
from hermes_doctor.diagnosis.plugins.log_rules.folder import Folder
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.hermes.logs.entry import LogEntry
from tests.helpers.rule_lines import said

FOLDER = Folder(builtin("checks") / "signatures", ours=True)
RULES = FOLDER.rule_set.rules
IDS = {rule.id for rule in RULES}
NOW = 1_794_700_800.0
SESSION = "20261115_001248_df794ef7"
LOOP = "agent.conversation_loop"
AUXILIARY = "agent.auxiliary_client"


def attempt(summary: str, provider: str = "custom", model: str = "m", n: int = 1) -> LogEntry:
    """One attempt that failed."""
    text = (
        f"API call failed (attempt {n}/3) error_type=APIStatusError "
        f"thread=Thread-134 (run):6420688896 provider={provider} "
        f"base_url=https://llm.example.com/v1 model={model} summary={summary}"
    )
    return said(NOW - 600 + n, text, "WARNING", LOOP, SESSION)


def rejected(error: str) -> LogEntry:
    """The last line of a call that is not tried again."""
    return said(NOW - 590, f"Non-retryable client error: {error}", "ERROR", LOOP, SESSION)


def lost(summary: str, provider: str = "custom", model: str = "m") -> LogEntry:
    """The last line of a call after all retries."""
    text = (
        f"API call failed after 3 retries. {summary} | provider={provider} model={model} "
        "msgs=12 tokens=~4,200"
    )
    return said(NOW - 590, text, "ERROR", LOOP, SESSION)


def success(provider: str = "custom", model: str = "m", session: str = SESSION) -> LogEntry:
    """A call that succeeded later."""
    text = f"API call #3: model={model} provider={provider} in=1200 out=40 total=1240 latency=2.1s"
    return said(NOW - 300, text, "INFO", LOOP, session)


def failed(exception: str, *, session: str = "agent:main:telegram:dm:7001") -> LogEntry:
    """A turn that ended with an exception."""
    more = (
        "Traceback (most recent call last):",
        '  File "/home/u/.hermes/hermes-agent/gateway/run.py", line 7702, in _handle_message',
        "    agent_result = await self._run_agent(",
        '  File "/home/u/.hermes/hermes-agent/agent/agent_init.py", line 1940, in init_agent',
        "    raise ValueError(",
        '  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode',
        "    raise",
        exception,
    )
    line = said(NOW - 600, f"Agent error in session {session}", "ERROR", "gateway.run")
    return line._replace(more=more)


def auxiliary(text: str) -> LogEntry:
    """A line about small tasks."""
    return said(NOW - 580, text, "WARNING", AUXILIARY, SESSION)


def found(*entries: LogEntry, now: float = NOW) -> list[Finding]:
    """What all built-in rules and causes report."""
    ledger = IncidentTracker(RULES, now=now, reader=FOLDER.reader, symptoms=FOLDER.symptoms)
    for one in sorted(entries, key=lambda entry: entry.at):
        ledger.add_entry(one)
    return list(findings(ledger.incidents(), lambda entry: entry.source))


def code_of(status: str) -> str:
    """The same error as the SDK prints it."""
    number, _, words = status.removeprefix("HTTP ").partition(": ")
    return f"Error code: {number} - {{'error': {{'message': '{words}', 'type': 'x'}}}}"


REJECTED = [
    ("HTTP 400: reasoning_effort 'none' unsupported; use minimal|low", "PROVIDER-REJECTED"),
    ("HTTP 400: Unsupported parameter: 'max_tokens'", "PROVIDER-REJECTED"),
    ("HTTP 422: messages.0.content: field required", "PROVIDER-REJECTED"),
    ("HTTP 400: `temperature` is deprecated for this model.", "PROVIDER-REJECTED"),
    ("HTTP 400: The `reasoning_content` must be passed back to the API.", "PROVIDER-REJECTED"),
    ("HTTP 400: messages.4.content.0: Invalid `signature` in thinking block", "PROVIDER-REJECTED"),
    ("HTTP 400: m does not support tools", "PROVIDER-REJECTED"),
    ("HTTP 400: tools[3].function.parameters: schema too complex", "PROVIDER-REJECTED"),
    ("HTTP 400: This model does not support image input", "PROVIDER-REJECTED"),
    ("HTTP 404: No endpoints found that support tool use", "PROVIDER-REJECTED"),
    ("HTTP 401: invalid key", "PROVIDER-401"),
    ("HTTP 400: API key not valid. Please pass a valid API key.", "PROVIDER-401"),
    ("HTTP 403: Country, region, or territory not supported", "PROVIDER-403"),
    ("HTTP 402: Payment required", "PROVIDER-402-429"),
    ("HTTP 404: Insufficient credits for this model", "PROVIDER-402-429"),
    ("HTTP 400: Your credit balance is too low to access the API.", "PROVIDER-402-429"),
    ("HTTP 404: The model `m` does not exist.", "CFG-MODEL"),
    ('HTTP 404: model "m" not found, try pulling it first', "CFG-MODEL"),
    ("HTTP 400: m is not a valid model ID", "CFG-MODEL"),
    ("HTTP 400: Unknown model: m", "CFG-MODEL"),
    ("HTTP 404: 404 page not found", "CFG-MODEL"),
]


NOT_FOUND = {
    "HTTP 404: 404 page not found": "CFG-BASE-URL",
    "HTTP 404: Couldn't find that, sorry.": "CFG-BASE-URL",
}
"""What the last line alone says, which does not show the model."""


@pytest.mark.parametrize(("summary", "code"), REJECTED, ids=lambda value: value[:24])
def test_rejected(summary: str, code: str) -> None:
    """A rejected request is one finding, with both lines or one; an attempt has the reason."""
    both = attempt(summary), rejected(code_of(summary))
    words = summary.partition(": ")[2][:20]

    for entries in (both, both[:1]):
        [finding] = found(*entries)
        assert (finding.code, finding.severity) == (code, "error")
        assert any(words in one.what for one in finding.evidence)
    [finding] = found(*both[1:])
    assert (finding.code, finding.severity) == (NOT_FOUND.get(summary, code), "error")
    assert found(*both, success()) == []


@pytest.mark.parametrize(("summary", "code"), REJECTED, ids=lambda value: value[:24])
def test_rejected_without_names(summary: str, code: str) -> None:
    """Hermes may log an empty provider and model."""
    [finding] = found(attempt(summary, "", ""))

    assert finding.code == code
    assert "?" not in f"{finding.title} {finding.detail}"


@pytest.mark.parametrize(
    ("summary", "code"),
    [
        ("HTTP 500: boom", "PROVIDER-DOWN"),
        ("HTTP 529: overloaded", "PROVIDER-DOWN"),
        ("HTTP 502 — Bad Gateway", "PROVIDER-DOWN"),
        ("Connection error.", "PROVIDER-DOWN"),
        ("Request timed out.", "PROVIDER-DOWN"),
        ("upstream idle for 60000ms without data", "PROVIDER-DOWN"),
        ("peer closed connection without sending complete message body", "PROVIDER-DOWN"),
        ("HTTP 400: bad request", "PROVIDER-REJECTED"),
        ("HTTP 404: Couldn't find that, sorry.", "CFG-MODEL"),
    ],
    ids=lambda value: value[:24],
)
def test_lost(summary: str, code: str) -> None:
    """A call without success after all retries is one finding, a minute later."""
    tries = [attempt(summary, n=n) for n in (1, 2, 3)]

    for entries in ([*tries, lost(summary)], [lost(summary)]):
        said = code if len(entries) > 1 else NOT_FOUND.get(summary, code)
        [finding] = found(*entries)
        assert (finding.code, finding.severity) == (said, "error")
        assert [one.code for one in found(*entries, now=NOW - 530)] == [said]
    assert found(*tries, lost(summary), success()) == []


@pytest.mark.parametrize(
    ("summary", "code"),
    [
        ("[Errno -3] Temporary failure in name resolution", "NET-DNS"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "SSL-CA"),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1000)", "NET-TLS"),
    ],
)
def test_network(summary: str, code: str) -> None:
    """What fails on the way to a provider is to blame, whatever the line says around it."""
    tries = [attempt(summary, n=n) for n in (1, 2, 3)]

    for last in (lost(summary), rejected(summary)):
        causes = {one.code: one.severity for one in found(*tries, last)}
        assert causes.pop(code) == "error"
        assert set(causes) <= {"PROVIDER-DOWN"}
        assert code in [one.code for one in found(last)]
        assert found(*tries, last, success()) == []


def test_too_long_is_not_rejected() -> None:
    """Hermes shortens the conversation itself."""
    for words in (
        "This model's maximum context length is 32768 tokens",
        "prompt is too long: 210000 tokens > 200000 maximum",
    ):
        assert {one.severity for one in found(attempt(f"HTTP 400: {words}"))} <= {"info"}


def test_history_of_one_chat() -> None:
    """A chat whose history is rejected stays broken while other chats work."""
    broken = attempt("HTTP 400: The `reasoning_content` must be passed back to the API.")

    [finding] = found(broken, success(session="20261115_001300_aaaaaaaa"))

    assert (finding.code, finding.title) == (
        "PROVIDER-REJECTED",
        "custom rejects the history of a conversation",
    )
    assert found(broken, success()) == []


def test_two_providers() -> None:
    """Each provider has its own finding, and a call of the one does not clear the other."""
    one, other = attempt("HTTP 400: x", "first"), attempt("HTTP 400: x", "second")

    assert sorted(one.subject for one in found(one, other)) == ["first m", "second m"]
    assert [one.subject for one in found(one, other, success("first"))] == ["second m"]


@pytest.mark.parametrize(
    ("exception", "code", "words"),
    [
        ("KeyError: 'soul'", "AGENT-ERROR", "KeyError"),
        ("agent.errors.OddError: boom", "AGENT-ERROR", "OddError"),
        ("AttributeError: 'NoneType' object has no attribute 'get'", "AGENT-ERROR", "Attribute"),
        ("json.decoder.JSONDecodeError: Expecting value: line 1", "AGENT-ERROR", "JSON file"),
        (
            "ValueError: Model m has a context window of 8,192 tokens, which is below the minimum",
            "CFG-CONTEXT-LENGTH",
            "8,192",
        ),
        ("RuntimeError: No LLM provider configured. Run `hermes model`", "PROVIDER-KEY", "key"),
        ("OSError: [Errno 28] No space left on device", "DISK-FULL", "disk"),
    ],
)
def test_exception(exception: str, code: str, words: str) -> None:
    """A turn that fails is one finding with its exception and the place in Hermes' code."""
    finding, *symptoms = sorted(found(failed(exception)), key=lambda one: one.caused_by is not None)

    assert {one.caused_by for one in symptoms} <= {code}
    assert (finding.code, finding.severity in ("error", "critical")) == (code, True)
    assert words in finding.title
    if code == "AGENT-ERROR":
        assert "agent/agent_init.py:1940" in finding.detail


def test_exception_is_over() -> None:
    """A later answer shows that not every message fails."""
    answer = "response ready: platform=telegram chat=7002 time=2.1s api_calls=1 response=42 chars"
    ready = said(NOW - 300, answer, "INFO", "gateway.run")

    assert found(failed("KeyError: 'soul'"), ready) == []


def test_exception_in_one_chat() -> None:
    """A chat that fails each time is reported although another one works."""
    answer = "response ready: platform=telegram chat=7002 time=2.1s api_calls=1 response=42 chars"
    ready = [said(NOW - 590 + n, answer, "INFO", "gateway.run") for n in (0.5, 1.5, 2.5)]
    errors = [failed("KeyError: 'soul'")._replace(at=NOW - 590 + n) for n in range(3)]

    [finding] = found(*errors, *ready)

    assert (finding.code, finding.title) == (
        "AGENT-ERROR",
        "messages of one chat fail with KeyError",
    )


def test_small_tasks_with_a_rejected_key() -> None:
    """The rejected key of the main provider is not reported a second time for small tasks."""
    main = attempt("HTTP 401: invalid key", "openrouter")
    stale = "fallback candidate {} has a stale/unrefreshable credential (Error code: 401)"
    credit = "Auxiliary: marking {} unhealthy for 600s (payment / credit error). Subsequent"
    same = [
        auxiliary("Auxiliary compression: " + stale.format("openrouter")),
        auxiliary("Auxiliary title (async): " + stale.format("fallback_chain[0](openrouter)")),
        auxiliary(credit.format("auto")),
        auxiliary(credit.format("openrouter")),
    ]

    assert [one.subject for one in found(main, *same)] == ["openrouter"]
    alone = found(*same[:3])
    assert {one.severity for one in alone} == {"warning"}
    assert not [one.title for one in alone if "fallback" in one.title or "auto" in one.title]


def test_other_login_for_small_tasks() -> None:
    """A login at another provider is reported beside it."""
    main = attempt("HTTP 401: invalid key", "openrouter")
    other = auxiliary(
        "Auxiliary compression: fallback candidate anthropic has a stale/unrefreshable credential"
    )

    assert sorted(one.subject for one in found(main, other)) == ["anthropic", "openrouter"]


def test_better_rules_exist() -> None:
    """Every rule that is named in `yields_to` exists."""
    named = {id for rule in RULES for id in rule.yields_to}

    assert named
    assert named <= IDS


BIG = "HTTP 400: messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 7 > 5"
USED_UP = "You're out of extra usage. Add more at claude.ai/settings/usage and keep going."


def test_a_large_image() -> None:
    """Once is a warning; the same image with each message is an error."""
    again = [attempt(BIG)._replace(at=NOW - ago) for ago in (600, 500, 400)]
    for number, severity in ((1, "warning"), (2, "warning"), (3, "error")):
        [finding] = found(*again[:number], rejected(code_of(BIG)))
        assert (finding.code, finding.severity) == ("PROVIDER-REJECTED", severity)
    assert found(*again, success()) == []


def test_a_used_up_subscription() -> None:
    """It is about the account, not about a setting."""
    [finding] = found(attempt(f"HTTP 400: {USED_UP}"), rejected(f"Error code: 400 - {USED_UP}"))
    assert (finding.code, finding.data["rule"]) == ("PROVIDER-402-429", "provider-subscription")
    [finding] = found(rejected(f"Error code: 400 - {USED_UP}"))
    assert finding.code == "PROVIDER-402-429"


def test_azure() -> None:
    """Its addresses are special, so the general hint would be wrong."""
    line = attempt("HTTP 404: Resource not found", "azure-foundry")
    azure = "https://me.openai.azure.com/openai/v1"
    line = line._replace(text=line.text.replace("https://llm.example.com/v1", azure))
    [finding] = found(line, rejected("Error code: 404 - {'message': 'Resource not found'}"))
    assert finding.data["rule"] == "provider-azure"
    assert "deployment" in finding.detail


@pytest.mark.parametrize("end", [lost, rejected])
def test_an_exception_in_hermes(end: Callable[[str], LogEntry]) -> None:
    """The provider can be reached; the code of Hermes fails."""
    text = "'NoneType' object has no attribute 'choices'"
    tries = [attempt(text, n=n) for n in (1, 2, 3)]
    tries = [
        one._replace(text=one.text.replace("APIStatusError", "AttributeError")) for one in tries
    ]
    [finding] = found(*tries, end(text))
    assert (finding.code, finding.data["name"]) == ("AGENT-ERROR", "AttributeError")
    [finding] = found(end(text))
    assert (finding.code, finding.severity) == ("HERMES-DEFECT", "error")


def test_a_long_reason_ends_with_a_word() -> None:
    """The decisive end is shown if it fits, else an ellipsis."""
    long = "HTTP 400: " + "this is not allowed " * 9 + "by your plan"
    [finding] = found(attempt(long))
    assert finding.evidence[0].what.endswith("by your plan")
    [finding] = found(attempt(long + " and so on" * 20))
    assert finding.evidence[0].what.endswith((" so…", " and…", " on…"))


def test_an_empty_cache() -> None:
    """The file is named that breaks every message."""
    line = failed("AttributeError: 'NoneType' object has no attribute 'get'")
    path = line.more[3].replace("agent_init.py", "model_metadata.py")
    [finding] = found(line._replace(more=(*line.more[:3], path, *line.more[4:5], line.more[-1])))
    assert finding.data["rule"] == "agent-context-cache"


def test_whatsapp_without_a_phone() -> None:
    """The bridge stops because there is no login."""
    adapter = "hermes_plugins.whatsapp_platform.adapter"
    pair = "[Whatsapp] WhatsApp is enabled but not paired (no creds.json at /x)."
    died = "[Whatsapp] WhatsApp bridge process exited unexpectedly (code 1)."
    bridge, paired = add_causes(
        found(said(NOW - 1600, pair, "WARNING", adapter), said(NOW - 1500, died, "ERROR", adapter)),
        Folder(builtin("checks") / "signatures", ours=True).rule_set.explanations,
    )
    assert (bridge.code, bridge.caused_by) == ("WA-BRIDGE", "WA-NOT-PAIRED")
    assert paired.caused_by is None
    assert paired.evidence[0].what.endswith("enabled but not paired")
