"""webhook-secrets: whoever calls in must prove who they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.check_home import CANARY, TELEGRAM, look, said

ID = "webhook-secrets"
ON = "platforms:\n  webhook:\n    enabled: true\n    extra:\n"
URL = "TELEGRAM_WEBHOOK_URL=https://bot.example/telegram\n"
CLOUD = "WHATSAPP_CLOUD_PHONE_NUMBER_ID=1\nWHATSAPP_CLOUD_ACCESS_TOKEN=abcdef\n"


def routes(*lines: str, host: str = "") -> str:
    """config.yaml with these webhooks."""
    first = f"      host: {host}\n" if host else ""
    return f"{ON}{first}      routes:\n" + "".join(f"        {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("push: {prompt: x}", "error"),
        ("push: {secret: ''}", "error"),
        ("push: {secret: INSECURE_NO_AUTH}", "error"),
        ("push: {secret: '${HOOK}'}", "warning"),
    ],
)
def test_routes(home: Path, line: str, severity: str) -> None:
    """A webhook without a secret stops all of them; one that is not filled in rejects all calls."""
    _, [finding] = look(home, ID, config=routes("good: {secret: abc}", line))

    assert (finding.code, finding.severity) == ("WEBHOOK-SECRET", severity)
    assert (finding.subject, finding.evidence[0].where) == ("webhook push", "config.yaml:7")


def test_the_only_route(home: Path) -> None:
    """If the only webhook rejects all calls, nothing gets through: an error."""
    _, [finding] = look(home, ID, config=routes("push: {secret: '${HOOK}'}"))

    assert (finding.code, finding.severity) == ("WEBHOOK-SECRET", "error")


def test_routes_in_order(home: Path) -> None:
    """A secret of its own, one for all, and none on this machine alone."""
    for env, config in (
        ("", routes(f"push: {{secret: {CANARY}}}")),
        (f"WEBHOOK_ENABLED=true\nWEBHOOK_SECRET={CANARY}\n", routes("push: {prompt: x}")),
        ("", routes("push: {secret: INSECURE_NO_AUTH}", host="127.0.0.1")),
        ("", f"{ON}      port: 8644\n"),
    ):
        assert look(home, ID, env, config)[1] == []


@pytest.mark.parametrize(("version", "severity"), [("0.14.0", "error"), ("0.19.0", "warning")])
def test_added_later(home: Path, version: str, severity: str) -> None:
    """One that was added while it ran is left out; before 0.15 it stopped all."""
    known = {"a b": {}, "good": {"secret": CANARY}, "odd": 3}
    support.put(home / "webhook_subscriptions.json", json.dumps(known))

    _, [finding] = look(home, ID, "WEBHOOK_ENABLED=true\n", version=version)

    assert (finding.severity, finding.evidence[0].where) == (severity, "webhook_subscriptions.json")


def test_telegram(home: Path) -> None:
    """In webhook mode Telegram needs one; else it needs none."""
    _, [finding] = look(home, ID, TELEGRAM + URL)

    assert (finding.severity, finding.fix) == ("error", "make-webhook-secret")
    assert finding.evidence[0].where == ".env:2"
    assert look(home, ID, TELEGRAM)[1] == []
    assert look(home, ID, f"{TELEGRAM}{URL}TELEGRAM_WEBHOOK_SECRET={CANARY}\n")[1] == []


FOUND = {
    "TWILIO_ACCOUNT_SID=AC1\n": [("warning", ".env:1")],
    "TWILIO_ACCOUNT_SID=AC1\nSMS_INSECURE_NO_SIGNATURE=true\n": [],
    "TWILIO_ACCOUNT_SID=AC1\nSMS_INSECURE_NO_SIGNATURE=true\nSMS_WEBHOOK_HOST=0.0.0.0\n": [
        ("warning", ".env:2")
    ],
    "TWILIO_ACCOUNT_SID=AC1\nSMS_WEBHOOK_URL=https://a.example\n": [],
    "MSGRAPH_WEBHOOK_ENABLED=true\n": [("error", ".env:1")],
    f"MSGRAPH_WEBHOOK_ENABLED=true\nMSGRAPH_WEBHOOK_CLIENT_STATE={CANARY}\n": [("error", ".env:1")],
    f"MSGRAPH_WEBHOOK_ENABLED=true\nMSGRAPH_WEBHOOK_CLIENT_STATE={CANARY}\n"
    "MSGRAPH_WEBHOOK_ALLOWED_SOURCE_CIDRS=10.0.0.0/8\n": [],
    "FEISHU_APP_ID=cli_a\nFEISHU_APP_SECRET=abcd\nFEISHU_CONNECTION_MODE=webhook\n": [
        ("error", ".env:3")
    ],
    "FEISHU_APP_ID=cli_a\nFEISHU_APP_SECRET=abcd\n": [],
    CLOUD: [("error", ".env:1"), ("info", ".env:1")],
    f"{CLOUD}WHATSAPP_CLOUD_APP_SECRET={CANARY}\nWHATSAPP_CLOUD_VERIFY_TOKEN=abcd\n": [],
}


@pytest.mark.parametrize("env", FOUND)
def test_others(home: Path, env: str) -> None:
    """SMS, Microsoft Graph, Feishu and WhatsApp Cloud."""
    assert said(look(home, ID, env)[1]) == FOUND[env]


@pytest.mark.parametrize("version", ["0.13.0", "0.14.0"])
def test_older_ones_believed_everybody(home: Path, version: str) -> None:
    """They start, so it is a warning."""
    assert said(look(home, ID, "MSGRAPH_WEBHOOK_ENABLED=true\n", version=version)[1]) == [
        ("warning", ".env:1")
    ]


def test_nobody_calls(home: Path) -> None:
    """Platforms that fetch for themselves need no secret."""
    assert look(home, ID, "QQ_APP_ID=1\nQQ_CLIENT_SECRET=abcd\n")[0].status == "skipped"
