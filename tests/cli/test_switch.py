"""`hermes-doctor switch-provider`: the plan, the proof, and the way back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import support
from tests.helpers.fake_provider import PAGE, error, serving
from tests.helpers.provider_scenes import ENV, KEY, ROUTER, write
from tests.helpers.support import Done

RELAY = ("relay", "--key-env", "RELAY_API_KEY", "--model", "gpt-4o-mini", "--base-url")


def files(home: Path) -> dict[str, bytes]:
    """The home without what the tool keeps for itself."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and "backups" not in path.parts and ".hermes-doctor" not in path.parts
    }


def switch(home: Path, *args: str, key: str | None = KEY) -> Done:
    """The command, with a key through a pipe."""
    done = subprocess.run(
        [sys.executable, "-m", "hermes_doctor", "switch-provider", *args, "--home", str(home)],
        env=support.environ({}),
        input=f"{key}\n" if key else "",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert KEY not in done.stdout + done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home at OpenRouter."""
    made = support.healthy(tmp_path / "home")
    return write(made, ROUTER, ENV)


def test_the_plan_changes_and_sends_nothing(home: Path) -> None:
    """It names both ways, shows the diff with the key hidden, and says what to type."""
    before = files(home)
    with serving() as provider:
        done = switch(home, *RELAY, provider.url, key=None)

    assert (done.code, provider.asked, files(home)) == (0, [], before)
    assert "+  provider: relay" in done.out
    assert "RELAY_API_KEY is not set; --apply asks for it." in done.out
    assert "+RELAY_API_KEY=(the key you type)" in done.out
    assert (
        f"--base-url {provider.url} --key-env RELAY_API_KEY --model gpt-4o-mini --apply --home"
        in done.out
    )


def test_switched_and_proved(home: Path) -> None:
    """One request with the new key and the bare model; undo brings every byte back."""
    before = files(home)
    with serving() as provider:
        done = switch(home, *RELAY, provider.url, "--apply", "--yes")
        [asked] = provider.asked

    assert done.code == 0, done
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert asked.body["model"] == "gpt-4o-mini"
    assert "it answers" in done.out
    assert f"RELAY_API_KEY={KEY}\n" in (home / ".env").read_text()
    found = support.doctor("config", "--json", "--home", home).json
    assert found["next"]["base_url"]["value"] == provider.url
    assert [one["provider"]["value"] for one in found["fallback"]] == ["openrouter"]

    run = json.loads(next((home / "backups" / "doctor").rglob("manifest.json")).read_text())
    assert "before the switch to relay" in json.dumps(run)
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert files(home) == before


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (401, error("invalid_api_key", f"Incorrect API key: {KEY}"), "rejects the key"),
        (403, error("insufficient_user_quota"), "no credit"),
        (404, error("model_not_found"), "does not serve the model"),
        (200, PAGE, "/v1"),
        (500, b"", "provider fails"),
        (200, {}, "could not check"),
        (400, error("invalid_request_error"), "--no-test"),
    ],
)
def test_a_failing_provider_changes_nothing(
    home: Path, status: int, answer: Any, words: str
) -> None:
    """The test request fails: the bytes are what they were, and it is said why."""
    before = files(home)
    with serving(status, answer) as provider:
        done = switch(home, *RELAY, provider.url, "--apply", "--yes")

    assert (done.code, files(home)) == (1, before)
    assert words in done.out
    assert len(provider.asked) == 1


def test_nobody_there(home: Path) -> None:
    """Refused is failed; with --no-test it is done all the same, and nothing is sent."""
    before = files(home)
    with serving() as provider:
        gone = provider.url
    done = switch(home, *RELAY, gone, "--apply", "--yes")
    assert (done.code, files(home), "refused" in done.out) == (1, before, True)

    done = switch(home, *RELAY, gone, "--apply", "--yes", "--no-test")
    assert (done.code, "not tested" in done.out) == (0, True)


def test_document(home: Path) -> None:
    """One document, with and without --apply."""
    with serving() as provider:
        args = (*RELAY, provider.url, "--json")
        plan = switch(home, *args, key=None).json
        unsure = switch(home, *args, "--apply")
        done = switch(home, *args, "--apply", "--yes").json
        again = switch(home, *args, "--apply", "--yes", key=None)

    assert (plan["schema"], plan["applied"]) == ("hermes-doctor/switch/1", False)
    assert (plan["from"]["provider"], plan["to"]["model"]) == ("openrouter", "gpt-4o-mini")
    assert (unsure.code, "--yes" in unsure.json["error"]["message"]) == (2, True)
    assert (done["applied"], done["run"]["state"]) == (True, "done")
    assert (again.code, again.json["steps"]) == (0, [])


def test_keys_that_are_none(home: Path) -> None:
    """Without a key, with a placeholder or with a sentence, nothing is changed."""
    before = files(home)
    args = (*RELAY, "https://relay.example/v1", "--apply", "--yes")
    for typed, words in (
        (None, "No key was given"),
        ("changeme", "placeholder"),
        ("a b", "spaces"),
    ):
        done = switch(home, *args, key=typed)
        assert (done.code, words in done.err) == (2, True), done
    assert files(home) == before


def test_managed(home: Path) -> None:
    """What a package manager writes is changed there."""
    support.put(home / ".managed", "nix\n")
    before = files(home)
    done = switch(home, *RELAY, "https://relay.example/v1", "--apply", "--yes")

    assert (done.code, files(home), "managed" in done.err) == (2, before, True)
