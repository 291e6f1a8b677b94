"""`hermes-doctor ask` with a real gateway: through its API server, and without it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.fake_provider import Asked, Provider, error, serving
from tests.helpers.real.gateways import gateway
from tests.helpers.real.release_homes import MakeHome, Patient
from tests.helpers.support import Done

pytestmark = [pytest.mark.real, pytest.mark.wide]  # one start and three answers: 30 s
VERSION = "0.19.0"
KEY = "sk-relay-0123456789abcdef"
ENV = f"RELAY_KEY={KEY}\n"
CONFIG = """\
model:
  provider: relay
  default: small
  context_length: 131072
  default_headers: {{X-Mine: one}}
  extra_headers: {{X-Mine: two, X-Also: three}}
providers:
  relay:
    base_url: {url}
    key_env: RELAY_KEY
    extra_headers: {{X-Team: blue}}
"""
READY = {"choices": [{"message": {"role": "assistant", "content": "ready"}}]}
TRANSPORT = {"accept-encoding", "connection", "content-length", "host"}
"""Headers that depend on the connection or on the length of the message."""


def ask(patient: Patient, *args: str) -> Done:
    """Run the command; it never shows the key."""
    done = patient.doctor("ask", *args)
    assert KEY not in done.out + done.err
    return done


def what_counts(asked: Asked) -> tuple[str, str, dict[str, str]]:
    """The address, the model and the headers, without what the SDK says about its Python."""
    headers = {
        name: value
        for name, value in asked.headers.items()
        if name.lower() not in TRANSPORT and not name.lower().startswith("x-stainless")
    }
    return asked.path, asked.body["model"], headers


def questions(provider: Provider) -> list[Asked]:
    """The messages to the model; Hermes also looks for other things at its address."""
    return [one for one in provider.asked if one.path == "/v1/chat/completions"]


def test_through_the_gateway_and_without_it(hermes_home: MakeHome) -> None:
    """Both paths send the same to the model; each says which it is and what it proves."""
    patient = Patient(VERSION, hermes_home(VERSION))
    with serving(200, READY) as provider:
        support.put(patient.home / "config.yaml", CONFIG.format(url=provider.url))
        support.put(patient.home / ".env", ENV)
        with gateway(VERSION, patient.home):
            through = _answered_by_the_gateway(patient, provider)
            _refused_by_the_model(patient, provider)
            _refused_at_the_door(patient)
        direct = _answered_by_the_model(patient, provider)

    assert what_counts(direct) == what_counts(through)
    assert what_counts(direct)[2]["Authorization"] == f"Bearer {KEY}"
    assert [direct.headers[name] for name in ("X-Mine", "X-Also", "X-Team")] == [
        "two", "three", "blue",
    ]  # fmt: skip


def _answered_by_the_gateway(patient: Patient, provider: Provider) -> Asked:
    """The question is a conversation of the agent, and `check` knows that the bot was tried."""
    done = ask(patient)
    assert (done.code, "✓ The gateway answered in " in done.out) == (0, True), done
    assert "appears in the message history" in done.out
    assert _sources(patient.home) == {"api_server"}

    report = patient.check().json
    rungs = {one["name"]: one for one in report["liveness"]["rungs"]}
    assert rungs["answers out"]["status"] == "ok"  # the log of the gateway says so, too
    part = report["states"]["model"][-1]
    assert (part["mark"], part["text"].startswith("asked ")) == ("good", True)
    return questions(provider)[0]


def _sources(home: Path) -> set[str]:
    """Where the sessions of the message history come from."""
    with contextlib.closing(sqlite3.connect(f"file:{home}/state.db?mode=ro", uri=True)) as db:
        return {source for (source,) in db.execute("SELECT source FROM sessions")} - {"one", "cli"}


def _refused_by_the_model(patient: Patient, provider: Provider) -> None:
    provider.status = 401
    provider.answer = error("invalid_api_key", f"Incorrect API key provided: {KEY}")
    done = ask(patient, "--json")

    assert (done.code, done.json["path"], done.json["refusal"]["status"]) == (1, "gateway", 401)
    assert done.json["advice"]["code"] == "PROVIDER-401"
    found = support.finding(patient.check(), "PROVIDER-401")
    assert "small through the gateway: HTTP 401" in found["evidence"][0]["what"]

    provider.status, provider.answer = 200, READY
    assert ask(patient).code == 0
    codes = {one["code"] for one in patient.check().json["findings"]}
    assert "PROVIDER-401" not in codes


def _refused_at_the_door(patient: Patient) -> None:
    """The key in .env is newer than the gateway: a restart helps, and the provider is fine."""
    support.put(patient.home / ".env", ENV + "API_SERVER_KEY=another-key-that-is-long-enough\n")
    done = ask(patient)
    support.put(patient.home / ".env", ENV)

    assert (done.code, "rejects the key" in done.out) == (1, True)
    assert done.out.endswith("Next: restart the gateway, then ask again\n")
    assert "PROVIDER-401" not in done.out
    assert not [one for one in patient.check().json["states"]["model"] if "401" in one["text"]]


def _answered_by_the_model(patient: Patient, provider: Provider) -> Asked:
    done = ask(patient)

    assert (done.code, "✓ relay answered in " in done.out) == (0, True), done
    assert "Only the model is asked, because no gateway is running." in done.out
    return questions(provider)[-1]
