"""Who is let in: what we say, what our fixes do, and what real Hermes makes of it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import need_release
from tests.helpers import locked_out_users, requirements, support
from tests.helpers.gateway_home import Scene
from tests.helpers.real.admission import Hermes
from tests.helpers.real.release_homes import MakeHome, Patient
from tools import real_home

pytestmark = pytest.mark.real
VERSIONS = ["0.13.0", "0.16.0", "0.17.0", "0.18.0", "0.19.0"]
KELLY = ("telegram", "4242")
GENERATE = """
from gateway.pairing import PairingStore
print(PairingStore().generate_code("telegram", "4242", "Kelly"))
"""


@pytest.fixture(scope="module", params=VERSIONS)
def hermes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hermes]:
    """A release that answers."""
    need_release(request.param)
    asked = Hermes(request.param, tmp_path_factory.mktemp("people"))
    yield asked
    asked.close()


def let_in(hermes: Hermes, home: Path, code: str, subject: str = "telegram 4242") -> None:
    """Our fix, for one person."""
    patient = Patient(hermes.version, home)
    done = patient.doctor("fix", code, "--subject", subject, "--apply", "--yes", "--json")
    outcomes = [item["outcome"] for run in done.json["repair"]["runs"] for item in run["items"]]
    assert outcomes == ["verified"], done.json["repair"]


@pytest.mark.wide
def test_approve_pairing(hermes: Hermes, hermes_home: MakeHome) -> None:
    """A request that the release itself made; afterwards it is as if its code had been typed."""
    home = hermes_home(hermes.version)
    support.put(home / ".env", locked_out_users.TOKEN)
    code = real_home.run(hermes.version, home, GENERATE).strip()
    before = hermes.ask(home, KELLY)
    assert (before["authorised"], before["pending"]) == ([False], [[*KELLY]])
    typed = hermes.ask(home, KELLY, codes=[("telegram", code)])

    let_in(hermes, home, "PAIRING-WAITING")

    after = hermes.ask(home, KELLY)
    assert after == typed
    assert (after["authorised"], after["pending"]) == ([True], [])
    kept = json.loads((home / "platforms/pairing/telegram-approved.json").read_text())
    assert [*kept] == ["4242"]
    assert [*kept["4242"]] == ["user_name", "approved_at"]


LISTS = {
    "none": ("", "telegram:\n  unauthorized_dm_behavior: ignore\n"),
    "in .env": ("TELEGRAM_ALLOWED_USERS=7001\n", ""),
    "for all": ("GATEWAY_ALLOWED_USERS=7001\n", ""),
    "in config.yaml": ("", "telegram:\n  allow_from:\n    - 7001\n"),
    "in config.yaml as text": ("", "telegram:\n  allow_from: '7001'\n"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("case", LISTS)
def test_add_allowed_user(hermes: Hermes, hermes_home: MakeHome, case: str) -> None:
    """The one who was turned away is let in, whoever was in stays so, and nobody else is."""
    env, config = LISTS[case]
    home = hermes_home(hermes.version)
    support.put(home / ".env", locked_out_users.TOKEN + env)
    support.put(home / "config.yaml", support.CONFIG + config)
    locked_out_users.turned_away(home, "4242")
    people = (KELLY, ("telegram", "7001"), ("telegram", "666"))
    assert hermes.ask(home, *people)["authorised"] == [False, case != "none", False]

    let_in(hermes, home, "AUTHZ-UNAUTHORIZED")

    assert hermes.ask(home, *people)["authorised"] == [True, case != "none", False]


def test_lockout(hermes: Hermes, hermes_home: MakeHome) -> None:
    """Five wrong codes lock the platform; the right one is good again afterwards."""
    home = hermes_home(hermes.version)
    support.put(home / ".env", locked_out_users.TOKEN)
    code = real_home.run(hermes.version, home, GENERATE).strip()
    wrong = [("telegram", "WRONGONE")] * 5
    assert hermes.ask(home, KELLY, codes=wrong, copy=False)["locked"] == ["telegram"]
    refused = hermes.ask(home, KELLY, codes=[("telegram", code)])
    assert refused["authorised"] == [False]

    done = Patient(hermes.version, home).doctor(
        "fix", "PAIRING-LOCKOUT", "--apply", "--yes", "--json"
    )

    assert "PAIRING-LOCKOUT" not in done.codes
    assert hermes.ask(home, KELLY)["locked"] == []
    assert hermes.ask(home, KELLY, codes=[("telegram", code)])["authorised"] == [True]


@pytest.mark.sampled
@pytest.mark.parametrize("empty", [False, True])
def test_two_folders(hermes: Hermes, hermes_home: MakeHome, empty: bool) -> None:
    """Who is astray is a stranger to this release, and no longer after the fix."""
    home = hermes_home(hermes.version)
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.approved(home, "4242")
    if empty:
        (home / "pairing").mkdir()
    else:
        locked_out_users.approved(home, "7001", folder="pairing")
    patient = Patient(hermes.version, home)
    astray = "PAIRING-ASTRAY" in patient.check().codes

    assert hermes.ask(home, KELLY)["authorised"] == [not astray]
    words = ("--subject", "telegram 4242", "--apply", "--yes", "--json")
    patient.doctor("fix", "PAIRING-ASTRAY", *words)
    assert hermes.ask(home, KELLY)["authorised"] == [True]


WEIXIN = "WEIXIN_TOKEN=canary12345678\nWEIXIN_ACCOUNT_ID=wx1\n"
EMAIL = (
    "EMAIL_ADDRESS=bot@x.example\nEMAIL_PASSWORD=canary1234\nEMAIL_IMAP_HOST=imap.x.example\n"
    "EMAIL_SMTP_HOST=smtp.x.example\n"
)
HOMES: dict[str, tuple[str, str, str]] = {
    "nothing": ("telegram", "", ""),
    "a list": ("telegram", "TELEGRAM_ALLOWED_USERS=4242\n", ""),
    "another's list": ("telegram", "TELEGRAM_ALLOWED_USERS=7001\n", ""),
    "a list for all": ("telegram", "GATEWAY_ALLOWED_USERS=7001,4242\n", ""),
    "a star": ("telegram", "TELEGRAM_ALLOWED_USERS=*\n", ""),
    "everybody": ("telegram", "GATEWAY_ALLOW_ALL_USERS=true\n", ""),
    "everybody, with a list": (
        "telegram",
        "GATEWAY_ALLOW_ALL_USERS=true\nTELEGRAM_ALLOWED_USERS=7001\n",
        "",
    ),
    "groups": ("telegram", "TELEGRAM_GROUP_ALLOWED_CHATS=-1001\n", ""),
    "ignored": ("telegram", "", "unauthorized_dm_behavior: ignore\n"),
    "ignored on the platform": ("telegram", "", "telegram:\n  unauthorized_dm_behavior: ignore\n"),
    "paired on the platform": (
        "telegram",
        "TELEGRAM_ALLOWED_USERS=7001\n",
        "unauthorized_dm_behavior: ignore\ntelegram:\n  unauthorized_dm_behavior: pair\n",
    ),
    "in platforms": (
        "telegram",
        "",
        "platforms:\n  telegram:\n    unauthorized_dm_behavior: ignore\n",
    ),
    "in extra": (
        "telegram",
        "",
        "platforms:\n  telegram:\n    extra: {unauthorized_dm_behavior: ignore}\n",
    ),
    "in gateway": ("telegram", "", "gateway:\n  unauthorized_dm_behavior: ignore\n"),
    "weixin": ("weixin", WEIXIN, ""),
    "weixin pairing": ("weixin", WEIXIN + "WEIXIN_DM_POLICY=pairing\n", ""),
    "weixin disabled": ("weixin", WEIXIN + "WEIXIN_DM_POLICY=disabled\n", ""),
    "weixin allowlist": ("weixin", WEIXIN + "WEIXIN_DM_POLICY=allowlist\n", ""),
    "email": ("email", EMAIL, ""),
    "discord roles": (
        "discord",
        "DISCORD_BOT_TOKEN=canary.canary.12345678\nDISCORD_ALLOWED_ROLES=1\n",
        "",
    ),
}


@pytest.mark.parametrize("case", HOMES)
def test_what_strangers_are_told(hermes: Hermes, tmp_path: Path, case: str) -> None:
    """Whether they get a code, and who is let in, by our reading and by the release's own."""
    platform, env, config = HOMES[case]
    home = support.healthy(tmp_path / "home")
    support.put(home / ".env", locked_out_users.TOKEN + env)
    support.put(home / "config.yaml", support.CONFIG + config)

    real = hermes.ask(home, (platform, "4242"))
    scene = Scene(home, {}, running=False, version=hermes.version)
    [door] = [one for one in scene.settings.admissions() if one.name == platform]

    assert door.invites is (real["behaviour"][platform] == "pair")
    if not door.unasked and platform != "discord":  # adapters decide those, and none is here
        assert door.admits("4242") is real["authorised"][0]


KEYS = {
    "none": "",
    "short": "API_SERVER_KEY=can4\n",
    "eight": "API_SERVER_KEY=canary8x\n",
    "a placeholder": "API_SERVER_KEY=placeholder\n",
    "sixteen": "API_SERVER_KEY=canarycanary16xx\n",
}


@pytest.mark.parametrize("host", ["", "API_SERVER_HOST=0.0.0.0\n"])
@pytest.mark.parametrize("case", KEYS)
def test_api_server(hermes: Hermes, tmp_path: Path, case: str, host: str) -> None:
    """Whether a key is good enough to start with, by our rules and by the release's own."""
    home = support.healthy(tmp_path / "home")
    support.put(home / ".env", "API_SERVER_ENABLED=true\n" + host + KEYS[case])

    server = Scene(home, {}, running=False, version=hermes.version).settings.api_server()

    starts = hermes.starts_api(home)
    if starts is None:
        requirements.missing("the release has no aiohttp here")
    assert server
    assert server.refused is not starts


def test_run_out(hermes: Hermes, tmp_path: Path) -> None:
    """A request counts for as long as it does for Hermes."""
    home = support.healthy(tmp_path / "home")
    support.put(home / ".env", locked_out_users.TOKEN)
    path = locked_out_users.waiting(home, "4242", minutes=59)
    entries: dict[str, Any] = json.loads(path.read_text())
    old = {"user_id": "43", "user_name": "", "created_at": time.time() - 3660}
    support.put(path, json.dumps(entries | {"a2": old | {"hash": "00", "salt": "00"}}))

    scene = Scene(home, {}, running=False, version=hermes.version)

    assert [[one.platform, one.user] for one in scene.stores.pairing().requests] == [[*KELLY]]
    assert hermes.ask(home, KELLY)["pending"] == [[*KELLY]]
