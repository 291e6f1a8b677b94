"""`hermes-doctor ask`: one question to a provider, and what is shown of the answer."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import support
from tests.helpers.fake_gateway import gateway
from tests.helpers.fake_provider import PAGE, Provider, error, serving
from tests.helpers.provider_scenes import write
from tests.helpers.support import Done, put

KEY = "sk-relay-0123456789abcdef"
READY = {"choices": [{"message": {"role": "assistant", "content": "ready"}}]}


def relay(home: Path, url: str, more: str = "") -> Path:
    """Write the settings of a home whose model is at a relay."""
    config = (
        "model:\n  provider: relay\n  default: small\nproviders:\n"
        f"  relay:\n    base_url: {url}\n    key_env: RELAY_KEY\n{more}"
    )
    return write(home, config, f"RELAY_KEY={KEY}\n")


def ask(home: Path, *args: str, **options: Any) -> Done:
    """Run the command, with the state of this tool next to the home; the key is never shown."""
    env = {"XDG_STATE_HOME": str(home.parent / "state")}
    done = support.doctor("ask", *args, "--home", home, env=env, **options)
    assert KEY not in done.out + done.err
    kept = [one.read_text() for one in (home.parent / "state").rglob("*.json")]
    assert KEY not in "".join(kept)
    return done


def check(home: Path) -> Done:
    """Run `check --json` with the same state."""
    env = {"XDG_STATE_HOME": str(home.parent / "state")}
    return support.doctor("check", "--json", "--home", home, env=env)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A healthy home whose files are not newer than what is asked."""
    return support.healthy(tmp_path / "home")


def old(home: Path) -> None:
    """Let the settings be older than any question."""
    for name in ("config.yaml", ".env", "auth.json"):
        os.utime(home / name, (time.time() - 7200,) * 2)


def test_answered_by_the_provider(home: Path) -> None:
    """It says who is asked and why not the gateway; nothing in the home changes."""
    with serving(200, READY) as provider:
        relay(home, provider.url)
        before = support.tree(home)
        done = ask(home)
        [asked] = provider.asked

    assert (done.code, support.tree(home)) == (0, before)
    first, cost, _, result, *_ = done.out.splitlines()
    assert first == 'Asking relay (127.0.0.1, model small): "Reply with the one word: ready."'
    assert cost == ("It may cost a little. Only the model is asked, because no gateway is running.")
    assert result.startswith("✓ relay answered in ")
    assert result.endswith(" s: ready")
    assert (asked.path, asked.headers["Authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert asked.body["messages"] == [
        {"role": "user", "content": "Reply with the one word: ready."}
    ]


def test_own_question_and_document(home: Path) -> None:
    """The words are the operator's; the document has every field."""
    with serving(200, READY) as provider:
        relay(home, provider.url)
        found = ask(home, "What is 1+1?", "--json").json

    assert provider.asked[0].body["messages"][0]["content"] == "What is 1+1?"
    assert found["schema"] == "hermes-doctor/ask/1"
    assert {name: found[name] for name in ("path", "host", "provider", "model", "ok")} == {
        "path": "provider",
        "host": "127.0.0.1",
        "provider": "relay",
        "model": "small",
        "ok": True,
    }
    assert (found["answer"], found["refusal"], found["advice"]) == ("ready", None, None)
    assert (found["kept"], found["why_direct"]) == (True, "no gateway is running")


@pytest.mark.sampled(one_of=4)
@pytest.mark.parametrize(
    ("status", "answer", "code", "words"),
    [
        (401, error("invalid_api_key", f"Incorrect API key: {KEY}"), "PROVIDER-401",
         "Incorrect API key: (25-character key)"),
        (402, error("payment_required", "Add credit"), "PROVIDER-402-429", "Add credit"),
        (429, error("rate_limit_exceeded", "Slow down"), "PROVIDER-402-429", "Slow down"),
        (403, error("forbidden", "Not in your region"), "PROVIDER-403", "Not in your region"),
        (404, error("model_not_found", "small does not exist"), "CFG-MODEL",
         "small does not exist"),
        (503, error("", "overloaded"), "PROVIDER-DOWN", "overloaded"),
        (200, PAGE, "CFG-MODEL", "a web page instead of an answer"),
        (200, b"{", "CFG-MODEL", "something that is not JSON"),
        (400, error("invalid_request_error", "bad"), None, "bad"),
        (200, {}, None, "no message in it"),
        (200, b"[" * 5_000_000, None, "the answer is longer than 1 MB"),
    ],
)  # fmt: skip
def test_refused(home: Path, status: int, answer: Any, code: str | None, words: str) -> None:
    """The status and the first words of the provider, and the code that explains it."""
    with serving(status, answer) as provider:
        relay(home, provider.url)
        done = ask(home, "--json")

    refusal = done.json["refusal"]
    assert (done.code, done.json["ok"], done.json["answer"]) == (1, False, None)
    assert (refusal["status"], refusal["words"]) == (status, words)
    assert (done.json["advice"] or {}).get("code") == code


def test_screen_of_a_refusal(home: Path) -> None:
    """The reason, one thing to do, and where to read more; the key is described, not shown."""
    with serving(401, error("invalid_api_key", f"Bad key \x1b[31m{KEY}\x1b[0m\nnow")) as provider:
        relay(home, provider.url)
        done = ask(home)

    assert done.code == 1
    assert "(HTTP 401): Bad key (25-character key) now\n" in done.out
    assert done.out.endswith("  Set a valid key.\nNext: hermes-doctor explain PROVIDER-401\n")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (PAGE, "a web page instead of an answer"),
        ({}, "no message in it"),
        (b"x" * 2_000_000, "the answer is longer than 1 MB"),
    ],
)
def test_an_unusable_answer_is_not_called_a_refusal(home: Path, answer: Any, words: str) -> None:
    """The status 200 refuses nothing; `ask` and `check` say what is wrong with the answer."""
    with serving(200, answer) as provider:
        old(relay(home, provider.url))
        done = ask(home)

    [result] = [line for line in done.out.splitlines() if line.startswith("✗")]
    assert result.startswith("✗ relay gave no usable answer after ")
    assert result.endswith(f" s: {words}")
    mark, said = model_line(check(home))[-1]
    assert (mark, said.startswith("provider asked "), said.endswith(f" ago: {words}")) == (
        "bad", True, True,
    )  # fmt: skip


def test_redirect_is_not_followed(home: Path) -> None:
    """The key goes only to the configured address."""
    with serving(200, READY) as other:
        with serving(302, b"", Location=f"{other.url}/chat/completions") as provider:
            relay(home, provider.url)
            done = ask(home, "--json")
        assert other.asked == []

    assert (done.code, done.json["refusal"]["status"]) == (1, 302)
    assert done.json["refusal"]["words"] == "a redirect, which is not followed"


def test_answer_without_secrets_and_escape_sequences(home: Path) -> None:
    """Of a long answer the first words, on one line."""
    said = f"\x1b]0;title\x07\x1b[1mYour key\nis {KEY}\x1b[0m \x00 " + "word " * 10_000
    with serving(200, {"choices": [{"message": {"content": said}}]}) as provider:
        relay(home, provider.url)
        done = ask(home)

    [result] = [line for line in done.out.splitlines() if line.startswith("✓")]
    assert "s: Your key is (25-character key) � word word" in result
    assert result.endswith("word…")
    assert (len(result) < 220, "\x1b" in done.out) == (True, False)


def test_public_headers_are_not_hidden_as_keys(home: Path) -> None:
    """The version of a protocol may be shown; a header from config.yaml can be a key."""
    said = f"Version 2023-06-01 of claude-code/0.1.0, key {KEY}, team team-4711-secret, sk-other-99"
    with serving(400, error("invalid_request_error", said)) as provider:
        more = (
            "    api_mode: anthropic_messages\n"
            "    extra_headers: {X-Team: team-4711-secret, X-Login: Token sk-other-99}\n"
        )
        done = ask(relay(home, provider.url, more), "--json")
        [asked] = provider.asked

    assert asked.headers["anthropic-version"] == "2023-06-01"
    assert asked.headers["X-Team"] == "team-4711-secret"
    assert done.json["refusal"]["words"] == (
        "Version 2023-06-01 of claude-code/0.1.0, key (25-character key), "
        "team (16-character key), (11-character key)"
    )


@pytest.mark.parametrize("command", ["ask", "learn"])
def test_a_time_limit_that_is_not_a_number(home: Path, command: str) -> None:
    """One line about the option, and nothing is sent."""
    done = support.doctor(command, "--timeout", "nan", "--home", home)

    assert (done.code, done.out) == (2, "")
    assert "Invalid value for '--timeout': nan is not a number of seconds." in done.err


def test_time_limit(home: Path) -> None:
    """A provider that does not answer costs the time limit and no more."""
    with serving(hold=threading.Event()) as provider:
        relay(home, provider.url)
        began = time.monotonic()
        done = ask(home, "--timeout", "1")

    assert (done.code, time.monotonic() - began < 8) == (1, True)
    assert "✗ relay: no answer within 1 s" in done.out


@pytest.mark.parametrize(
    ("url", "stage"),
    [("http://127.0.0.1:9/v1", "connection"), ("http://no-such-host.invalid/v1", "name")],
)
def test_unreachable(home: Path, url: str, stage: str) -> None:
    """A refused connection and an unknown name say so, and count as a provider that is down."""
    done = ask(relay(home, url), "--json")

    refusal = done.json["refusal"]
    assert (done.code, refusal["kind"], refusal["status"]) == (1, stage, None)
    assert done.json["advice"]["code"] == "PROVIDER-DOWN"


def test_fallback_is_asked_next(home: Path) -> None:
    """As in Hermes: the fallback answers, and both attempts are shown."""
    with serving(401, error("invalid_api_key")) as main, serving(200, READY) as other:
        chain = (
            f"  other: {{base_url: {other.url}, api_key: sk-other-123456}}\n"
            "fallback_providers: [{provider: other, model: big}]\n"
        )
        done = ask(relay(home, main.url, chain))
        asked = (len(main.asked), other.asked[0].body["model"])

    assert (done.code, asked) == (0, (1, "big"))
    assert "If it refuses, other is asked next." in " ".join(done.out.split())
    shown = [line for line in done.out.splitlines() if line[:1] in "✓✗" and line]
    assert [line[:12] for line in shown] == ["✗ relay refu", "✓ other answ"]


def test_several_fallbacks_are_announced(home: Path) -> None:
    """In the order in which they are asked, before anything is sent."""
    with serving(200, READY) as main:
        chain = (
            "  b: {base_url: http://127.0.0.1:9/b, api_key: sk-other-123456}\n"
            "  c: {base_url: http://127.0.0.1:9/c, api_key: sk-other-123456}\n"
            "fallback_providers: [{provider: b, model: x}, {provider: c, model: y}]\n"
        )
        done = ask(relay(home, main.url, chain))

    assert "If it refuses, b and c are asked next." in " ".join(done.out.split())
    assert done.out.index("If it refuses") < done.out.index("✓ relay answered")


def test_help_of_the_time_limit() -> None:
    """The limit holds for each answer, because fallbacks are asked one after the other."""
    said = " ".join(support.doctor("ask", "--help").out.replace("│", " ").split())
    assert "Wait at most this many seconds for each answer." in said


@pytest.mark.parametrize(
    ("config", "env", "words"),
    [
        ("model: {provider: relay, default: m}\n", "", "no provider is called relay"),
        ("model: {provider: deepseek, default: m}\n", "", "no usable key for deepseek"),
        ("model: [\n", "", "config.yaml cannot be read"),
    ],
)
def test_nobody_to_ask(home: Path, config: str, env: str, words: str) -> None:
    """Without a provider or a key nothing is sent, and the exit code is 2."""
    done = ask(write(home, config, env))

    assert (done.code, done.out) == (2, "")
    assert words in " ".join(done.err.split())
    assert "Nothing was sent." in " ".join(done.err.split())


def test_no_home(tmp_path: Path) -> None:
    """A folder that does not exist is an error of the call."""
    assert ask(tmp_path / "none").code == 2


def test_empty_question(home: Path) -> None:
    """An empty question is not sent."""
    done = ask(home, " ")
    assert (done.code, "The question must have 1 to 4,000 characters" in done.err) == (2, True)


def test_a_result_that_cannot_be_stored_is_not_an_error(home: Path) -> None:
    """If the result cannot be kept, that is said, and the answer counts."""
    put(home.parent / "state", "a file in the way")
    with serving(200, READY) as provider:
        done = ask(relay(home, provider.url))

    assert done.code == 0
    assert "! The result is not kept for `check`: not a directory." in done.out


def test_nothing_is_kept_inside_the_home(home: Path) -> None:
    """In a container the user's folder can be the home itself."""
    with serving(200, READY) as provider:
        relay(home, provider.url)
        before = support.tree(home)
        done = support.doctor("ask", "--home", home, env={"XDG_STATE_HOME": str(home / "state")})

    assert (done.code, support.tree(home)) == (0, before)
    assert "is inside the Hermes home" in " ".join(done.out.split())


def model_line(done: Done) -> list[tuple[str, str]]:
    """The marks and words of the line about the model."""
    return [(one["mark"], one["text"]) for one in done.json["states"]["model"]]


def codes(done: Done) -> list[str]:
    """The codes that concern providers."""
    return [one["code"] for one in done.json["findings"] if one["code"].startswith("PROVIDER")]


def test_check_shows_the_answer(home: Path) -> None:
    """While it is fresh; `check` itself sends nothing."""
    with serving(200, READY) as provider:
        old(relay(home, provider.url))
        ask(home)
        mark, words = model_line(check(home))[-1]
        assert len(provider.asked) == 1

        assert (mark, words.startswith("provider asked ")) == ("good", True)
        assert words.endswith(": answered in 0.1 s")
        put(home / ".env", f"RELAY_KEY={KEY}\n")  # changed after the question
        assert len(model_line(check(home))) == 1


def test_check_reports_the_refusal_until_something_newer(home: Path) -> None:
    """A refusal is a finding; a later success in the log ends it."""
    with serving(401, error("invalid_api_key", f"Incorrect: {KEY}")) as provider:
        old(relay(home, provider.url))
        ask(home)

    done = check(home)
    found = support.finding(done, "PROVIDER-401")
    assert (found["severity"], found["subject"], found["title"]) == (
        "error", "model custom", "relay rejects the key",
    )  # fmt: skip
    assert found["evidence"][0]["where"] == "hermes-doctor ask"
    assert (
        "small at 127.0.0.1: HTTP 401: Incorrect: (25-character key)"
        in (found["evidence"][0]["what"])
    )
    mark, words = model_line(done)[-1]
    assert (mark, words.startswith("provider refused (401) ")) == ("bad", True)

    time.sleep(0.01)
    now = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() + 1))
    for name, model in (("other", "big"), ("same", "small")):
        line = (
            f"{now},999 INFO [s1] agent.conversation_loop: API call #1: model={model} "
            "provider=custom in=1 out=1 total=2 latency=0.1s\n"
        )
        put(home / "logs" / "agent.log", line)
        assert codes(check(home)) == ([] if name == "same" else ["PROVIDER-401"]), name


def test_network_check_replaces_the_question(home: Path) -> None:
    """With --network the providers are asked again, so the older refusal says nothing."""
    with serving(401, error("invalid_api_key")) as provider:
        old(relay(home, provider.url))
        ask(home)
        provider.status, provider.answer = 200, READY
        done = support.doctor(
            *("check", "--json", "--network", "--only", "PROVIDER-401", "--home", home),
            env={"XDG_STATE_HOME": str(home.parent / "state")},
        )

    assert codes(done) == []


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b'{"schema": "x"}', b"[" * 100_000])
def test_damaged_result_is_ignored(home: Path, data: bytes) -> None:
    """A file that is no result of ours is as good as none."""
    with serving(200, READY) as provider:
        old(relay(home, provider.url))
        ask(home)
    [file] = (home.parent / "state" / "hermes-doctor").glob("ask-*.json")
    file.write_bytes(data)

    assert len(model_line(check(home))) == 1


@pytest.mark.parametrize("age", [-600, 4000])
def test_outdated_result_is_ignored(home: Path, age: float) -> None:
    """After an hour, or if the clock was set back, the result is not used."""
    with serving(200, READY) as provider:
        old(relay(home, provider.url))
        ask(home)
    [file] = (home.parent / "state" / "hermes-doctor").glob("ask-*.json")
    found = json.loads(file.read_text())
    from datetime import UTC, datetime

    found["at"] = datetime.fromtimestamp(time.time() - age, UTC).isoformat()
    file.write_text(json.dumps(found))

    assert len(model_line(check(home))) == 1


def test_new_start_of_the_gateway_outdates_it(home: Path) -> None:
    """What was asked before the gateway started says nothing about it."""
    with serving(200, READY) as provider:
        old(relay(home, provider.url))
        ask(home)
        with gateway(home):
            assert len(model_line(check(home))) == 1


def test_the_gateway_without_api_server(home: Path) -> None:
    """It runs, but cannot be asked: only the model is."""
    with serving(200, READY) as provider:
        relay(home, provider.url)
        with gateway(home):
            done = ask(home)

    assert done.code == 0
    assert "because the API server of the gateway is off." in " ".join(done.out.split())


def _fix(home: Path, *args: str) -> Done:
    env = {"XDG_STATE_HOME": str(home.parent / "state")}
    return support.doctor("fix", *args, "--home", home, env=env)


def test_fix_ends_with_the_question(home: Path) -> None:
    """The repair counts, and the exit code says whether the bot could answer."""
    with serving(200, READY) as provider:
        relay(home, provider.url)
        put(home / ".env", f"\ufeffRELAY_KEY={KEY}\n")
        assert _fix(home, "ENV-BOM", "--ask").code == 2
        assert provider.asked == []

        done = _fix(home, "ENV-BOM", "--apply", "--ask")
        assert (done.code, len(provider.asked)) == (0, 1), done
        assert done.out.index("Repaired 1 of 1") < done.out.index("✓ relay answered")

        provider.status, provider.answer = 401, error("invalid_api_key")
        put(home / ".env", f"\ufeffRELAY_KEY={KEY}\n")
        done = _fix(home, "ENV-BOM", "--apply", "--ask", "--json")

    assert (done.code, done.json["ask"]["ok"]) == (1, False)
    assert done.json["ask"]["advice"]["code"] == "PROVIDER-401"
    assert [run["state"] for run in done.json["repair"]["runs"]] == ["done"]


def test_without_the_option_nobody_asks(home: Path) -> None:
    """`fix --apply` sends nothing by itself."""
    with serving(200, READY) as provider:
        relay(home, provider.url)
        put(home / ".env", f"\ufeffRELAY_KEY={KEY}\n")
        done = _fix(home, "ENV-BOM", "--apply", "--json")

    assert (done.code, provider.asked, "ask" in done.json) == (0, [], False)


def test_fix_without_anybody_to_ask(home: Path) -> None:
    """The repair stays; that nothing could be asked is said, and the exit code is 1."""
    write(home, "model: {provider: deepseek, default: m}\n", None)
    put(home / ".env", "\ufeffSECOND=two\n")
    done = _fix(home, "ENV-BOM", "--apply", "--ask")

    assert (done.code, "✗ Could not ask: " in done.out) == (1, True)
    assert "Repaired 1 of 1" in done.out


def test_switch_ends_with_the_question(home: Path) -> None:
    """The test request is one thing, the question another; both go to the new provider."""
    env = {"XDG_STATE_HOME": str(home.parent / "state")}

    def switch(provider: Provider, *more: str) -> Done:
        words = ("relay", "--base-url", provider.url, "--model", "small", "--key-env", "MINE_KEY")
        options = ("--apply", "--yes", "--ask", *more, "--home", str(home))
        return support.doctor("switch-provider", *words, *options, env=env)

    put(home / ".env", f"OPENROUTER_API_KEY=sk-router-12345678\nMINE_KEY={KEY}\n")
    with serving(200, READY) as provider:
        done = switch(provider)
        assert (done.code, len(provider.asked)) == (0, 2), done
        assert "✓ relay answered in " in done.out
        again = switch(provider, "--json")  # it is in use already
        assert (again.code, again.json["ask"]["answer"]) == (0, "ready")
        provider.status, provider.answer = 500, b""
        assert switch(provider).code == 1


@pytest.mark.parametrize(
    "words",
    [
        ("fix", "ENV-BOM"),
        ("switch-provider", "other", "--base-url", "URL", "--model", "big", "--key-env",
         "OTHER_KEY", "--no-test"),
    ],
)  # fmt: skip
def test_the_home_is_not_locked_during_the_question(home: Path, words: tuple[str, ...]) -> None:
    """Another hermes-doctor can work on the home while this one waits for the answer."""
    from hermes_doctor.backup.records.home_lock import lock_home
    from hermes_doctor.core.home import Home

    hold = threading.Event()
    done: list[Done] = []
    env = {"XDG_STATE_HOME": str(home.parent / "state")}
    with serving(200, READY, hold=hold) as provider:
        relay(home, provider.url)
        put(home / ".env", f"\ufeffRELAY_KEY={KEY}\nOTHER_KEY={KEY}\n")
        call = [provider.url if word == "URL" else word for word in words]
        call += ["--apply", "--yes", "--ask", "--json", "--home", str(home)]
        thread = threading.Thread(target=lambda: done.append(support.doctor(*call, env=env)))
        thread.start()
        until = time.monotonic() + 30
        while not provider.asked and thread.is_alive() and time.monotonic() < until:
            time.sleep(0.05)
        try:
            with lock_home(Home(home)):
                pass
        finally:
            hold.set()
            thread.join()

    assert (done[0].code, len(provider.asked), done[0].json["ask"]["ok"]) == (0, 1, True), done


_CHECK = """\
from hermes_doctor.api import Finding, Severity, check


@check(id="odd", group="odd", codes=["ODD-FILE"])
def odd(probes):
    \"\"\"Is it odd?\"\"\"
    yield Finding(
        code="ODD-FILE", severity=Severity.ERROR, title="x", subject="SOUL.md", fix="odd"
    )
"""
_FIX = """\
from hermes_doctor.api import Safety, SetMode, fix, snapshot


@fix(id="odd", codes=["ODD-FILE"], safety=Safety.SAFE)
def odd(probes, finding):
    \"\"\"Change the mode, which does not help.\"\"\"
    path = probes.home / "config.yaml"
    yield SetMode(path, 0o640, why="x", expect=snapshot(path))
"""


def test_nothing_is_asked_after_a_repair_that_was_rolled_back(home: Path, tmp_path: Path) -> None:
    """The question is the proof of a change; this one did not stay. The reason is shown."""
    for name, made in (("checks", _CHECK), ("fixes", _FIX)):
        put(tmp_path / "odd" / name / "odd.py", made)
    with serving(200, READY) as provider:
        relay(home, provider.url)
        words = ("ODD-FILE", "--apply", "--ask", "--plugins", str(tmp_path / "odd"))
        done = _fix(home, *words)
        document = _fix(home, *words, "--json")

    assert (done.code, document.code, provider.asked) == (1, 1, []), done
    assert [run["state"] for run in document.json["repair"]["runs"]] == ["rolled-back"]
    assert "ask" not in document.json
    assert "No question was asked, because the change was not made." in done.out


def test_a_repair_with_nothing_to_do_still_asks(home: Path) -> None:
    """The operator wants the proof that the bot can answer."""
    with serving(200, READY) as provider:
        relay(home, provider.url)
        done = _fix(home, "ENV-BOM", "--apply", "--ask")

    assert (done.code, len(provider.asked)) == (0, 1), done


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users' rights")
def test_root_asks_with_the_rights_of_the_owner(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request is sent, and its certificates are read, as the home's owner."""
    from hermes_doctor.cli import ask as command
    from hermes_doctor.core.home import Home
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.operations.asking import ask as asking, plan

    users: list[int] = []
    real = asking.carry_out

    def watched(made: plan.AskPlan, patience: float) -> asking.AskResult:
        users.append(os.geteuid())
        return real(made, patience)

    monkeypatch.setattr(asking, "carry_out", watched)
    monkeypatch.setenv("XDG_STATE_HOME", str(home.parent / "state"))
    with serving(200, READY) as provider:
        relay(home, provider.url)
        for path in (home, *home.rglob("*")):
            os.chown(path, 12345, 12345)
        made = plan.make(Probes(Home(home)), "Hi")
        assert KEY not in repr(made)
        found = command.ask_once(Home(home), None, json=True)

    assert (users, found["answer"], os.geteuid()) == ([12345], "ready", 0)
    [file] = (home.parent / "state" / "hermes-doctor").glob("ask-*.json")
    assert (file.stat().st_uid, file.stat().st_mode & 0o777) == (0, 0o600)
