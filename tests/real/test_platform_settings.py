"""What we say of platforms' settings is what real Hermes makes of them, before a fix and after."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.hermes.knowledge import parse_release as numbers
from tests.conftest import RELEASES, need_release
from tests.helpers import support
from tests.helpers.real.healthy_homes import job
from tests.helpers.real.release_homes import Patient
from tools import real_home

pytestmark = pytest.mark.real
TELEGRAM = "TELEGRAM_BOT_TOKEN=7123456789:AAHfakefakefakefakefakefakefakefak1\n"
WEIXIN = "WEIXIN_ACCOUNT_ID=abc\nWEIXIN_TOKEN=abcdef\n"
CALLS = (
    "WECOM_CALLBACK_CORP_ID=ww1\nWECOM_CALLBACK_CORP_SECRET=abcd\n"
    "BLUEBUBBLES_SERVER_URL=http://mac:1234\nBLUEBUBBLES_PASSWORD=abcd\n"
)
SCRIPT = """
import json, logging, os, sys
logging.disable(logging.CRITICAL)
import gateway.run as run
from cron import scheduler
from gateway.config import load_gateway_config
from hermes_cli.env_loader import load_hermes_dotenv

def answers(home):
    os.environ["HERMES_HOME"] = home
    load_hermes_dotenv(hermes_home=home)
    found = {}
    path = os.path.join(home, "cron", "jobs.json")
    if os.path.exists(path):
        [job] = json.load(open(path))["jobs"]
        target = scheduler._resolve_delivery_target(job)
        found["target"] = target and target["chat_id"]
    try:
        config = load_gateway_config()
    except TypeError:
        return {"crash": "TypeError"}
    policy = config.default_reset_policy
    found["reset"] = [policy.mode, policy.at_hour, policy.idle_minutes]
    found["on"] = sorted(p.value for p, s in config.platforms.items() if s.enabled)
    found["connected"] = sorted(p.value for p in config.get_connected_platforms())
    found["tokens"] = {p.value: s.token for p, s in config.platforms.items() if s.enabled}
    found["ports"] = len({
        int(s.extra.get("webhook_port") or s.extra.get("port") or 8645)
        for p, s in config.platforms.items() if p.value in ("bluebubbles", "wecom_callback")
    })
    for p, s in config.platforms.items():
        if p.value == "whatsapp":
            found["bridge"] = s.extra.get("bridge_port", 3000) != 3000
    asked = getattr(run, "_own_policy_open_startup_violation", None)
    found["refuses"] = bool(asked and asked(config))
    weixin = next((s for p, s in config.platforms.items() if p.value == "weixin"), None)
    if weixin is not None:
        from gateway.platforms.weixin import WeixinAdapter
        one = object.__new__(WeixinAdapter)
        said = weixin.extra.get("dm_policy") or os.getenv("WEIXIN_DM_POLICY", "pairing")
        one._dm_policy, one._allow_from = str(said).strip().lower(), ["friend"]
        let = getattr(one, "_is_dm_intake_allowed", one._is_dm_allowed)
        found["lets in"] = [let("friend"), let("stranger")]
    return found

load_gateway_config()  # imports what every answer needs, once for all of them
for home in HOMES:
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            said = answers(home)
        except BaseException as error:
            said = {"crash": repr(error)}
        os.write(writer, json.dumps(said).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as came:
        print("answer " + came.read(), flush=True)
    os.wait()
"""


@dataclass(frozen=True)
class Case:
    """A fault, and what Hermes makes of it before and after its fix."""

    code: str
    env: str = ""
    config: str = ""
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] | None = None
    """None: there is no fix."""
    files: dict[str, str] = field(default_factory=dict)
    since: str = "0.13.0"
    until: str = "9"


RESET = "CFG-SESSION-RESET"
CASES = {
    "hours, minutes and a mode that are none": Case(
        RESET,
        config="session_reset:\n  mode: dayly\n  at_hour: 25\n  idle_minutes: 0\n",
        before={"reset": ["dayly", 4, 1440]},
        after={"reset": ["daily", 4, 1440]},
    ),
    "an hour in quotes": Case(
        RESET,
        config="session_reset:\n  mode: daily\n  at_hour: '7'\n",
        before={"crash": "TypeError"},
        after={"reset": ["daily", 7, 1440]},
    ),
    "open": Case(
        "AUTHZ-OPEN-REFUSE",
        WEIXIN + "WEIXIN_DM_POLICY=open\n",
        before={"refuses": True},
        after={"refuses": False, "lets in": [True, True]},  # who then is asked for a code
        since="0.18.0",
    ),
    "open, before it was refused": Case(
        "AUTHZ-OPEN-REFUSE",
        WEIXIN + "WEIXIN_DM_POLICY=open\n",
        before={"refuses": False, "lets in": [True, True]},
        until="0.18",
    ),
    "open, with a list": Case(
        "AUTHZ-OPEN-REFUSE",
        "QQ_APP_ID=102081123\nQQ_CLIENT_SECRET=abcdef\n",
        "platforms:\n  qqbot:\n    extra:\n      dm_policy: open\n      allow_from: [A1]\n",
        before={"refuses": True},
        after={"refuses": False},
        since="0.18.0",
    ),
    "a word that is none": Case(
        "PLATFORM-POLICY",
        WEIXIN + "WEIXIN_DM_POLICY=whitelist\n",
        before={"lets in": [False, False]},
        after={"lets in": [True, False]},
        since="0.18.0",
    ),
    "a word that is none, when that was open": Case(
        "PLATFORM-POLICY",
        WEIXIN + "WEIXIN_DM_POLICY=whitelist\n",
        before={"lets in": [True, True]},
        after={"lets in": [True, False]},
        until="0.18",
    ),
    "two on one port": Case(
        "PLATFORM-PORT-CLASH",
        CALLS,
        before={"ports": 1},
        after={"ports": 2},
    ),
    "two bridges on one port": Case(
        "PLATFORM-PORT-CLASH",
        "WHATSAPP_ENABLED=true\n",
        before={"on": ["whatsapp"], "bridge": False},
        after={"on": ["whatsapp"], "bridge": True},
        files={"profiles/shop/.env": "WHATSAPP_ENABLED=true\n"},
    ),
    "a job without a chat": Case(
        "CRON-DELIVERY",
        TELEGRAM + "TELEGRAM_ALLOWED_USERS=42\n",
        before={"target": None},
        after={"target": "42"},
        files={"cron/jobs.json": job("telegram")},
    ),
    "a token by reference": Case(
        "PLATFORM-CREDENTIALS",
        "TG=7123456789:AAHfakefakefakefakefakefakefakefak1\n",
        "platforms:\n  telegram:\n    enabled: true\n    token: ${TG}\n",
        before={"tokens": {"telegram": "${TG}"}},
        after={"tokens": {"telegram": "7123456789:AAHfakefakefakefakefakefakefakefak1"}},
    ),
    "half of QQ": Case(
        "PLATFORM-CREDENTIALS", "QQ_APP_ID=102081123\n", before={"on": ["qqbot"], "connected": []}
    ),
    "half of Feishu": Case(
        "PLATFORM-CREDENTIALS", "FEISHU_APP_ID=cli_a\n", before={"on": [], "connected": []}
    ),
    "half of Matrix": Case(
        "PLATFORM-CREDENTIALS", "MATRIX_ACCESS_TOKEN=syt_abcdef\n", before={"on": ["matrix"]}
    ),
    "an example that Hermes knows": Case(
        "PLATFORM-CREDENTIALS", "TELEGRAM_BOT_TOKEN=changeme\n", before={"on": []}
    ),
    "an example that Hermes does not know": Case(
        "PLATFORM-CREDENTIALS",
        "TELEGRAM_BOT_TOKEN=your_bot_token_here\n",
        before={"connected": ["telegram"]},
    ),
}


def copies(folder: Path, homes: list[Path]) -> list[Path]:
    """Copies of homes, where a release may write."""
    return [
        support.copy_home(home, folder / str(number) / "home") for number, home in enumerate(homes)
    ]


def ask(version: str, folder: Path, copies: list[Path]) -> list[dict[str, Any]]:
    """What a release says of each home."""
    script = f"HOMES = {[str(one) for one in copies]!r}\n{SCRIPT}"
    said = real_home.run(version, support.healthy(folder / "scratch"), script)
    lines = [line for line in said.splitlines() if line.startswith("answer ")]
    return [json.loads(line.removeprefix("answer ")) for line in lines]


@pytest.mark.wide
@pytest.mark.parametrize("version", RELEASES)
def test_before_and_after(version: str, tmp_path: Path) -> None:
    """The fault does what its page says, and after the fix Hermes loads what we said."""
    need_release(version)
    cases = {
        name: one
        for name, one in CASES.items()
        if numbers(one.since) <= numbers(version) < numbers(one.until)
    }
    homes = []
    for number, one in enumerate(cases.values()):
        home = tmp_path / "homes" / str(number) / "home"
        for name, text in {".env": one.env, "config.yaml": one.config, **one.files}.items():
            support.put(home / name, text)
        home.chmod(0o700)
        homes.append(home)

    before = copies(tmp_path / "before", homes)
    for home, one in zip(homes, cases.values(), strict=True):
        patient = Patient(version, home)
        if one.after is None:
            assert patient.check("--only", one.code).codes == [one.code], one
        else:
            done = patient.doctor("fix", one.code, "--apply", "--yes", "--json")
            assert done.code == 0, (one, done.out)
            assert done.json["repair"]["runs"], one
    answers = ask(version, tmp_path, before + copies(tmp_path / "after", homes))

    for name, was, now in zip(cases, answers[: len(homes)], answers[len(homes) :], strict=True):
        one = cases[name]
        assert {key: was.get(key) for key in one.before} == one.before, (name, was)
        if one.after is not None:
            assert {key: now.get(key) for key in one.after} == one.after, (name, now)
