"""Which values of a home are secrets, and which of them can be hidden everywhere."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hermes_doctor.core import known_secrets, outgoing
from hermes_doctor.core.home import Home, all_homes, find
from tests.helpers import support

S = "Kx9pLm2Tw#canary"


def _values(home: Path) -> set[str]:
    return {one.value for secrets in known_secrets.HomeSecrets(home)() for one in secrets}


@pytest.mark.parametrize(
    "line",
    [
        f"EMAIL_PASSWORD={S}",
        f"export EMAIL_PASSWORD = '{S}'",
        f'SMTP_PASS="{S}"  # a comment',
        f"API_KEY={S} # a comment",
        f"  APP_SECRET: {S}",
        f"DATABASE_URL=postgres://bot:{S}@db.example.org/x",
        "\ufeffTOKEN=" + S,
        f"A=1\r\nTOKEN={S}\r\n",
        f"HEADER_AUTH=Bearer {S}",
        f"# export FORMER_TOKEN={S}",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32"])
def test_env(tmp_path: Path, line: str, encoding: str) -> None:
    """However the line is written, and in any encoding that editors write."""
    support.put(tmp_path / ".env", line.encode(encoding))
    assert S in _values(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        f"model:\n  api_key: {S}\n",
        f'model: {{api_key: "{S}", x: 1}}\n',
        f"custom_providers:\n- name: a\n  api_key: '{S}'\n",
        f"api_keys:\n- {S}\n- other\n",
        f"api_keys:\n  openai: {S}\n",
        f"token:\n  {S}\n",
        f"private_key: |\n  -----BEGIN-----\n  {S}\n",
        f'"token": {S}\n\tbroken:\n',
        f"headers:\n  Authorization: Bearer {S}\n",
        f"model:\n  base_url: https://me:{S}@example.org/v1\n",
    ],
)
def test_config(tmp_path: Path, text: str) -> None:
    """Also in a file that YAML refuses."""
    support.put(tmp_path / "config.yaml", text)
    assert S in _values(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"providers": {"x": {"access_token": S + '"\\é'}}}),
        '{"access_token": "' + S + '", "broken": ',
    ],
)
def test_json(tmp_path: Path, text: str) -> None:
    """Also in a file that JSON refuses."""
    support.put(tmp_path / "auth.json", text)
    assert any(value.startswith(S) for value in _values(tmp_path))


KEY = "sk-or-v1-0123456789abcdef0123xyz"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".env", f"# {KEY}\n"),
        (".env", f"{KEY}\n"),
        ("config.yaml", f"model:\n  default: {KEY}\n"),
        ("config.yaml", f"a: !!str {KEY}\nb: &x {KEY}\n? {KEY}\n"),
        ("auth.json", f'["{KEY}"]'),
    ],
)
def test_a_key_in_the_wrong_place(tmp_path: Path, name: str, text: str) -> None:
    """What has the form of a key is one."""
    support.put(tmp_path / name, text)
    assert KEY in _values(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".env", "API_KEY=true\nTOKEN=1234\nPASSWORD=100016\nSECRET=none\n"),
        (".env", "OPENROUTER_API_KEY=ollama\nLM_API_KEY=lm-studio\nX_API_KEY=openrouter\n"),
        (".env", "API_KEY=Telegram\nTOKEN=gateway\nSECRET=connection\nPASSWORD=timeout\n"),
        (".env", "GOOGLE_KEY_PATH=keys/google.json\nSSH_KEY=/home/bot/.ssh/id_ed25519\n"),
        (".env", "MAX_TOKENS=131072000\nTOKEN_LIMIT=999999999\n"),
        (".env", "API_KEY=${OTHER_VARIABLE}\nB_KEY=your-api-key-here\nC_KEY=***********\n"),
        (".env", "X_ALLOWED_USERS=1234567890\nQQ_CHAT_ID=0123456789ABCDEF0123456789ABCDEF\n"),
        ("config.yaml", "model:\n  default: anthropic/claude-sonnet-4.5\n  provider: openrouter\n"),
        ("config.yaml", "model:\n  key_env: OPENROUTER_API_KEY\n  max_tokens: 100000000\n"),
        ("config.yaml", "model:\n  base_url: https://api.openrouter.ai/v1\n"),
        ("config.yaml", "platforms:\n  webhook:\n    enabled: true\n    host: 0.0.0.0\n"),
        ("config.yaml", "auth:\n- provider: my-own-relay\n  mode: oauth_device_code\n"),
        ("config.yaml", "credential_pool_strategies:\n  openrouter: round_robin\n"),
        ("config.yaml", "image: sha256:0123456789abcdef0123456789abcdef0123456789abcdef\n"),
        ("auth.json", '{"auth_mode": "device_code2", "last_auth_error": "invalid_grant: expired"}'),
        ("auth.json", '{"token_endpoint": "https://a.example.org", "token_type": "Xyz12"}'),
        (".env", "LANGUAGE_CODE=zh-Hans-CN\nTOKENIZER=cl100k_base\nAUTH_TYPE=oauth2\n"),
        ("auth.json", '{"secret_fingerprint": "x", "updated_at": "2026-11-15T03:00:00+00:00"}'),
    ],
)  # fmt: skip
def test_what_is_no_secret(tmp_path: Path, name: str, text: str) -> None:
    """Words that Hermes uses, numbers, places, names of models and variables, ids of chats."""
    support.put(tmp_path / name, text)
    assert _values(tmp_path) == set()


def test_the_name_of_the_home(tmp_path: Path) -> None:
    """It is in every path of the report, so a password that equals it cannot be hidden."""
    home = tmp_path / "wombat77" / ".hermes"
    support.put(home / ".env", "EMAIL_PASSWORD=wombat77\nSMTP_PASSWORD=wombat78\n")
    assert _values(home) == {"wombat78"}


def test_it_is_read_again(tmp_path: Path) -> None:
    """Only a file that has changed."""
    source = known_secrets.HomeSecrets(tmp_path)
    support.put(tmp_path / ".env", "TOKEN=first-Kx9pLm2Tw\n")
    assert [[one.value for one in secrets] for secrets in source()] == [["first-Kx9pLm2Tw"]]
    assert [*source()] == []
    support.put(tmp_path / ".env", "TOKEN=second-Kx9pLm2Tw\n")
    assert [[one.value for one in secrets] for secrets in source()] == [["second-Kx9pLm2Tw"]]
    (tmp_path / ".env").unlink()
    assert [*source()] == [[]]


@pytest.mark.parametrize("kind", ["folder", "fifo", "loop", "closed", "huge"])
def test_a_file_that_cannot_be_read(tmp_path: Path, kind: str) -> None:
    """It has no secrets that anyone could have read."""
    path = tmp_path / ".env"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path.name)
    else:
        support.put(path, b"TOKEN=\n" * (10 if kind == "closed" else 1_000_000), mode=0)
    assert _values(tmp_path) == set()


def test_a_profile_uses_the_keys_of_its_root(tmp_path: Path) -> None:
    """So these are hidden, too."""
    support.put(tmp_path / ".env", f"TOKEN={S}\n")
    support.put(tmp_path / "profiles" / "one" / ".env", "TOKEN=other-Kx9pLm2Tw\n")
    assert _values(tmp_path / "profiles" / "one") == {S, "other-Kx9pLm2Tw"}


def test_every_command_knows_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds a home registers it; the environment of this process counts as well."""
    monkeypatch.setattr(outgoing, "known", outgoing.KnownSecrets())
    monkeypatch.setenv("SOME_API_KEY", "environment-Kx9pLm2Tw")
    one, other = tmp_path / "one", tmp_path / "other"
    for number, home in enumerate((one, other)):
        support.put(home / ".env", f"TOKEN={number}-{S}\n")
    find(one)
    all_homes(Home(other), [])
    known_secrets.add_environment({"GATEWAY_TOKEN": "gateway-Kx9pLm2Tw", "PWD": "/a/b/c"})

    shown = outgoing.clean(f"0-{S} 1-{S} environment-Kx9pLm2Tw gateway-Kx9pLm2Tw /a/b/c")

    assert shown == (
        "(18-character token) (18-character token) (21-character key) (17-character token) /a/b/c"
    )
