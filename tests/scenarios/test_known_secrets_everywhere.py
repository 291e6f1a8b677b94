"""Every secret of a home appears in every free text that the tool reads, and in nothing it writes.

The secrets look like words that people choose, so only their being known can hide them.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hermes_doctor.cli import check_run
from tests.core.test_secret_forms import ENCODINGS
from tests.helpers import support
from tests.scenarios.test_planted_secrets import on_a_terminal

PLACES = (
    "env: EMAIL_PASSWORD",
    "env: TELEGRAM_BOT_TOKEN",
    "env: OPENROUTER_API_KEY",
    "env: quotes",
    "env: password in an address",
    "profile: QQ_SECRET",
    "config: model.api_key",
    "config: custom provider",
    "config: platform",
    "config: header",
    "auth.json: pool",
    "auth.json: login",
    "webhook_subscriptions.json",
    "own environment",
)
_SIGNS = "&'\"$ %é/"


def _secret(place: str) -> str:
    """A password that has no form of a key, with a sign that has to be escaped."""
    number = PLACES.index(place)
    sign = _SIGNS[number % len(_SIGNS)] if "quotes" in place or "json" in place else "-"
    return f"Wombat{sign}{chr(97 + number)}{chr(109 - number)}{number:02d}hill"


SECRETS = {place: _secret(place) for place in PLACES}


class Words:
    """Free texts that contain all secrets, each time in another encoding and another order."""

    def __init__(self, encodings: Sequence[str]) -> None:
        self._encodings = encodings
        self._next = 0

    def _encode(self, secret: str) -> str:
        return ENCODINGS[self._encodings[self._next % len(self._encodings)]](secret)

    def __call__(self, before: str = "refused") -> str:
        """One text; the first secrets in it are seldom cut off."""
        self._next += 3
        every = [*SECRETS.values()]
        turned = every[self._next % len(every) :] + every[: self._next % len(every)]
        return f"{before} " + " , ".join(map(self._encode, turned))

    def name(self) -> str:
        """The next secret alone, as a name."""
        self._next += 1
        return self._encode([*SECRETS.values()][self._next % len(SECRETS)])


def _settings(home: Path) -> None:
    """The secrets, in all places where Hermes keeps one."""
    s = SECRETS
    quoted = s["env: quotes"].replace("\\", "\\\\").replace('"', '\\"')
    support.put(
        home / ".env",
        f"EMAIL_ADDRESS=bot@example.org\nEMAIL_PASSWORD={s['env: EMAIL_PASSWORD']}\n"
        f"export TELEGRAM_BOT_TOKEN='{s['env: TELEGRAM_BOT_TOKEN']}'  # the bot\n"
        f"OPENROUTER_API_KEY={s['env: OPENROUTER_API_KEY']}\n"
        f'SMTP_PASS="{quoted}"\n'
        f"DATABASE_URL=postgres://bot:{s['env: password in an address']}@db.example.org/bot\n",
    )
    config = {
        "model": {"provider": "custom", "api_key": s["config: model.api_key"],
                  "base_url": "http://localhost:9/v1", "default": "acme/test-model"},
        "custom_providers": [{"name": "one", "api_key": s["config: custom provider"]}],
        "platforms": {"telegram": {"token": s["config: platform"]}},
        "mcp_servers": {"x": {"headers": {"Authorization": f"Bearer {s['config: header']}"}}},
    }  # fmt: skip
    support.put(home / "config.yaml", json.dumps(config, indent=1, ensure_ascii=False))
    pool = {"openrouter": [{"label": "a", "access_token": s["auth.json: pool"]}]}
    login = {"nous": {"refresh_token": s["auth.json: login"]}}
    support.put(home / "auth.json", json.dumps({"credential_pool": pool, "providers": login}))
    routes = {"routes": {"x": {"secret": s["webhook_subscriptions.json"]}}}
    support.put(home / "webhook_subscriptions.json", json.dumps(routes))
    support.put(home / "profiles" / "one" / ".env", f"QQ_SECRET={s['profile: QQ_SECRET']}\n")


def _free_texts(home: Path, words: Words) -> None:
    """The same secrets in what programs write about what went wrong."""
    at = "2026-11-18T03:00:00+00:00"
    state = {
        "pid": 1,
        "gateway_state": "startup_failed",
        "exit_reason": words(),
        "updated_at": at,
        "platforms": {
            "telegram": {"state": "fatal", "error_code": words(), "error_message": words()},
            "email": {"state": "fatal", "error_code": words.name(), "updated_at": at},
            words.name(): {"state": "fatal", "error_message": words()},
        },
    }
    support.put(home / "gateway_state.json", json.dumps(state))
    lines = [
        "ERROR gateway.run: Gateway failed to start: {}",
        "ERROR gateway.platforms.telegram: telegram login failed: {}",
        "WARNING agent.conversation_loop: Non-retryable client error: Error code: 401 - {}",
        "ERROR agent.conversation_loop: API call failed after 3 retries: {}",
        "WARNING gateway.run: Primary provider auth failed: {} — trying fallback",
        "ERROR cron.scheduler: Job 'x' failed: {}",
        "ERROR gateway.run: Traceback: ValueError: {}",
    ]
    for name in ("gateway.log", "errors.log", "agent.log"):
        text = "".join(
            f"2026-11-18 03:00:0{n},000 {line.format(words())}\n" for n, line in enumerate(lines)
        )
        support.put(home / "logs" / name, text)
    jobs = [{"id": "j1", "name": words("job"), "prompt": words(), "enabled": True,
             "schedule": {"kind": "interval", "minutes": 5}, "last_status": "error",
             "last_run_at": at, "last_error": words(), "deliver": words.name(),
             "last_delivery_error": words()}]  # fmt: skip
    support.put(home / "cron" / "jobs.json", json.dumps({"jobs": jobs, "updated_at": at}))
    with contextlib.closing(sqlite3.connect(home / "kanban.db")) as db, db:
        db.execute("UPDATE tasks SET title = ?, status = 'running'", (words("task"),))
    with contextlib.closing(sqlite3.connect(home / "state.db")) as db, db:
        db.execute("UPDATE messages SET content = ?", (words(),))
    support.put(home / "pairing" / "telegram-pending.json", json.dumps({words.name(): {
        "user_id": "1", "user_name": words("user"), "created_at": 1}}))  # fmt: skip
    receipt = {"schema": "hermes-doctor/run/1", "id": "20261115-030000-0001", "kind": "fix",
               "home": str(home), "vault": "", "started_at": "2026-11-15T03:00:00+00:00",
               "state": "done", "note": words("note"), "items": [], "paths": []}  # fmt: skip
    run = home / "backups" / "doctor" / "runs" / "20261115-030000-0001" / "run.json"
    support.put(run, json.dumps(receipt))


def _as_names(home: Path, words: Words) -> None:
    """A secret in the place of the name of a provider, a model and a setting."""
    config = json.loads((home / "config.yaml").read_text())
    config["model"] |= {"provider": words.name(), "default": words.name()}
    config["fallback_providers"] = [{"provider": words.name(), "model": words.name()}]
    config["auxiliary"] = {"vision": {"provider": words.name(), "model": words.name()}}
    config[words.name()] = True
    config["custom_providers"].append({"name": words.name(), "base_url": words.name()})
    support.put(home / "config.yaml", json.dumps(config, indent=1, ensure_ascii=False))


def _story(tmp_path: Path) -> Iterator[tuple[str | Path, ...]]:
    for name in check_run.FORMATS:
        yield ("check", "--format", name, "-v")
        yield ("check", "--format", name, "--output", tmp_path / "out" / name)
    yield ("check", "--record")
    yield ("check", "--all-homes", "--deep", "-v")
    yield ("watch", "--once", "--metrics", tmp_path / "out" / "metrics", "--notify-command",
           f"cat >> {shlex.quote(str(tmp_path / 'out' / 'notices'))}; env | grep ^HERMES_DOCTOR >> "
           f"{shlex.quote(str(tmp_path / 'out' / 'variables'))}")  # fmt: skip
    yield ("watch", "--once", "--json")
    for command in ("timeline", "config", "history", "settings", "mutes"):
        yield (command,)
        yield (command, "--json")
    yield ("fix",)
    yield ("fix", "--json")
    yield ("backup", "create", "--json")
    yield ("fix", "--apply", "--yes")
    yield ("fix", "--apply", "--yes", "--json")
    yield ("undo", "--yes", "--json")
    yield ("switch-provider", "openrouter", "--model", "acme/test-model")
    yield ("switch-provider", SECRETS["env: EMAIL_PASSWORD"], "--model", "x", "--json")
    yield ("explain", "GW-DOWN")
    yield ("mute", SECRETS["env: EMAIL_PASSWORD"])
    yield ("backup", "list")
    yield ("backup", "verify", "--all")
    yield ("hook", "status")
    yield ("rollback",)


def _leaks(text: str) -> list[str]:
    """The places whose secret is in a text, in any encoding."""
    bare = re.sub(r"\x1b\[[\d;?]*[A-Za-z]|[\s�]", "", text).lower()
    found = []
    for place, secret in SECRETS.items():
        for how, encode in ENCODINGS.items():
            if "cut" in how or "end of" in how or "lines" in how:
                continue
            if re.sub(r"\s", "", encode(secret)).lower() in bare:
                found.append(f"{place} ({how})")
    return found


def _written(folder: Path, home: Path) -> Iterator[tuple[Path, str]]:
    """All files that were written outside of the home, and the receipts in it."""
    for path in folder.rglob("*"):
        inside = path.is_relative_to(home)
        own = inside and path.name in ("run.json", "manifest.json") and "0001" not in str(path)
        if path.is_file() and (own or not inside):
            yield path, path.read_bytes().decode("utf-8", "replace")


def _environment(tmp_path: Path) -> dict[str, str]:
    return {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "settings"),
        "SOME_API_KEY": SECRETS["own environment"],
    }


def _home(tmp_path: Path, encodings: Sequence[str], *, names: bool) -> Path:
    home = support.healthy(tmp_path / "home")
    words = Words(encodings)
    _settings(home)
    if names:
        _as_names(home, words)
    _free_texts(home, words)
    (tmp_path / "out").mkdir()
    return home


@pytest.mark.wide
@pytest.mark.sampled(one_of=4)
@pytest.mark.parametrize("how", ENCODINGS)
def test_no_encoding_is_told(tmp_path: Path, how: str) -> None:
    """Each of them in all places."""
    test_no_command_tells(tmp_path, names=True, encodings=[how])


@pytest.mark.sampled
@pytest.mark.parametrize("names", [False, True], ids=["texts", "names"])
def test_no_command_tells(
    tmp_path: Path, names: bool, encodings: Sequence[str] = (*ENCODINGS,)
) -> None:
    """Neither on stdout and stderr, nor in a file that it writes."""
    home = _home(tmp_path, encodings, names=names)
    wrong = []
    for args in _story(tmp_path):
        done = support.doctor(*args, *_home_option(args, home), env=_environment(tmp_path))
        assert done.code in (0, 1, 2), done.err
        assert "bug in hermes-doctor" not in done.err and "Traceback" not in done.err, done.err
        told = _leaks(done.out) + _leaks(done.err)
        wrong += [f"{' '.join(map(str, args[:3]))}: {one}" for one in told]
    for path, text in _written(tmp_path, home):
        wrong += [f"{path.relative_to(tmp_path)}: {one}" for one in _leaks(text)]
    assert wrong == []
    assert {"notices", "metrics", "json"} <= {path.name for path in (tmp_path / "out").iterdir()}
    assert [*tmp_path.rglob("history.db")]


def _home_option(args: tuple[str | Path, ...], home: Path) -> tuple[str | Path, ...]:
    without = ("explain", "list", "settings", "mutes")
    return () if args[0] in without else ("--home", home)


def test_no_terminal_tells(tmp_path: Path) -> None:
    """Also where a line is wrapped."""
    home = _home(tmp_path, ["plain"], names=True)
    for args in (("check", "-v"), ("fix",), ("config",), ("watch", "--once"), ("timeline",)):
        shown = on_a_terminal(*args, "--home", home, env=_environment(tmp_path))
        assert _leaks(shown) == [], args


def test_what_is_said_instead(tmp_path: Path) -> None:
    """What hides a secret says what it was; the words and numbers around it stay."""
    home = _home(tmp_path, ["plain"], names=False)
    password = SECRETS["env: EMAIL_PASSWORD"]
    state = json.loads((home / "gateway_state.json").read_text())
    state["exit_reason"] = f"imap.example.org:993 error 100016 (LOGIN '{password}' refused)"
    support.put(home / "gateway_state.json", json.dumps(state))

    said = support.finding(support.check(home), "GW-DOWN")["evidence"][0]["what"]

    hidden = f"({len(password)}-character password)"
    assert said.endswith(f"imap.example.org:993 error 100016 (LOGIN '{hidden}' refused)")


@pytest.mark.parametrize("value", ["true", "1234", "openrouter", "Telegram", "100016"])
def test_a_password_that_is_a_usual_word(tmp_path: Path, value: str) -> None:
    """It is no reason to hide that word everywhere."""
    home = support.healthy(tmp_path / "home")
    before = support.check(home).json
    with (home / ".env").open("a") as file:
        file.write(f"EMAIL_PASSWORD={value}\n")
    after = support.check(home).json
    assert [one["text"] for one in before["states"]["model"]] == [
        one["text"] for one in after["states"]["model"]
    ]
    assert "character password" not in json.dumps(after)
