"""Configurations that nothing is wrong with, as operators write them: data, one entry each.

Every check is held against them on every release that they are valid for, and real Hermes resolves
each of them. Whoever adds a rule adds the ordinary ways to be fine with it here.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

from hermes_doctor.hermes.knowledge import parse_release as numbers
from tests.helpers.real.made_homes import Made

NO_QQ = ("0.18.0", "0.18.1", "0.18.2")
"""Their adapter of QQ cannot be started; on these a home with QQ is not healthy."""
NO_PLUGINS = ("0.15.0", "0.15.1")
"""Their packages lack the manifests of plugins, and Discord is one there."""
VERSIONS = {
    **dict.fromkeys(("0.13.0", "0.14.0"), 23),
    **dict.fromkeys(("0.15.0", "0.15.1", "0.15.2"), 24),
    "0.16.0": 27,
    "0.17.0": 30,
    "0.18.0": 32,
    **dict.fromkeys(("0.18.1", "0.18.2", "0.19.0"), 33),
}
"""What `_config_version` is in a file that each release has written."""


def letters(seed: str, count: int) -> str:
    """Made-up letters and digits, always the same, that look like part of a key."""
    found = "".join(hashlib.sha256(f"{seed} {n}".encode()).hexdigest() for n in range(3))
    return found[:count]


OPENROUTER = f"OPENROUTER_API_KEY=sk-or-v1-{letters('openrouter', 64)}\n"
ANTHROPIC = f"ANTHROPIC_API_KEY=sk-ant-api03-{letters('anthropic', 90)}AA\n"
DEEPSEEK = f"DEEPSEEK_API_KEY=sk-{letters('deepseek', 32)}\n"
RELAY = f"OPENKEY_API_KEY=sk-{letters('relay', 48)}\n"
TELEGRAM = f"TELEGRAM_BOT_TOKEN=7123456789:AAH{letters('telegram', 32)}\n"
DISCORD = f"DISCORD_BOT_TOKEN=MTE{letters('a', 23)}.G{letters('b', 5)}.{letters('c', 38)}\n"
SLACK = (
    f"SLACK_BOT_TOKEN=xoxb-4821093475612-4821093475613-{letters('slack', 24)}\n"
    f"SLACK_APP_TOKEN=xapp-1-A04ABCDEF12-4821093475614-{letters('app', 64)}\n"
)
QQ = f"QQ_APP_ID=102081123\nQQ_CLIENT_SECRET={letters('qq', 32)}\n"
WEIXIN = (
    f"WEIXIN_ACCOUNT_ID=b1946ac92492@im.bot\nWEIXIN_TOKEN=b1946ac92492@im.bot:{letters('w', 48)}\n"
)
FEISHU = f"FEISHU_APP_ID=cli_{letters('feishu', 16)}\nFEISHU_APP_SECRET={letters('fs', 32)}\n"
MAIN = "model:\n  default: anthropic/claude-sonnet-4.6\n  provider: openrouter\n"
RELAYS = (
    "model:\n  default: gpt-4o-mini\n  provider: openkey\n"
    "providers:\n  openkey:\n    base_url: https://openkey.cloud/v1\n    key_env: OPENKEY_API_KEY\n"
)


@dataclass(frozen=True)
class Healthy:
    """One configuration, and the releases that know all that is in it."""

    config: str
    env: str
    files: dict[str, str] = field(default_factory=dict)
    """What else lies in the home."""
    since: tuple[int, ...] = (0, 13)
    never: tuple[str, ...] = ()
    """Releases whose package from PyPI is too broken for it."""
    marked: bool = True
    """Whether config.yaml says which version it is of, as every file does that Hermes wrote."""

    def fits(self, version: str) -> bool:
        """Whether a release can do all that it asks for."""
        return self.since <= numbers(version) and version not in self.never

    def made(self, version: str) -> Made:
        """Its files for a release, whose number stands at the end."""
        end = "\r\n" if "\r\n" in self.config else "\n"
        mark = f"_config_version: {VERSIONS[version]}{end}" if self.marked else ""
        return Made(self.config + mark, self.env, '{"version": 1, "providers": {}}\n')

    def write(self, home: Path, version: str) -> Made:
        """Write it as a home that its owner alone can read."""
        made = self.made(version)
        made.write(home)
        for name, text in self.files.items():
            place = home / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        for path in (home, *home.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)
        return made


def approved(*users: str) -> str:
    """Pairings that were approved."""
    return json.dumps({one: {"user_name": "Ann", "approved_at": 1780000000.0} for one in users})


def job(deliver: str, origin: dict[str, str] | None = None) -> str:
    """A job that runs every morning."""
    one = {
        "id": "a1b2c3d4e5f6",
        "name": "news",
        "prompt": "What is new?",
        "skills": [],
        "schedule": {"kind": "cron", "expr": "0 8 * * *", "display": "0 8 * * *"},
        "schedule_display": "0 8 * * *",
        "repeat": {"times": None, "completed": 0},
        "enabled": True,
        "state": "scheduled",
        "created_at": "2026-05-01T08:00:00+00:00",
        "next_run_at": "2100-05-02T08:00:00+00:00",
        "last_run_at": None,
        "last_status": None,
        "last_error": None,
        "deliver": deliver,
        "origin": origin,
    }
    return json.dumps({"jobs": [one], "updated_at": "2026-05-01T08:00:00+00:00"})


HEALTHY: dict[str, Healthy] = {
    "openrouter and telegram": Healthy(
        MAIN, OPENROUTER + TELEGRAM + "TELEGRAM_ALLOWED_USERS=123456789\n"
    ),
    "anthropic and discord, lists in config.yaml": Healthy(
        "model:\n  default: claude-sonnet-4-6\n  provider: anthropic\n"
        "discord:\n  allow_from:\n    - '284102345871466496'\n  require_mention: true\n",
        ANTHROPIC + DISCORD,
        never=NO_PLUGINS,
    ),
    "deepseek and slack": Healthy(
        "model:\n  default: deepseek-chat\n  provider: deepseek\n",
        DEEPSEEK + SLACK + "SLACK_ALLOWED_USERS=U04ABCDEF12,U04ABCDEF13\n",
    ),
    "a relay by name, and QQ by list": Healthy(
        RELAYS
        + "qqbot:\n  dm_policy: allowlist\n  allow_from:\n    - 0A1B2C3D4E5F60718293A4B5C6D7E8F9\n",
        RELAY + QQ + "QQ_ALLOWED_USERS=0A1B2C3D4E5F60718293A4B5C6D7E8F9\n",
        never=NO_QQ,
    ),
    "a relay with its key in config.yaml by variable": Healthy(
        RELAYS.replace("key_env: OPENKEY_API_KEY", "api_key: ${OPENKEY_API_KEY}"), RELAY
    ),
    "a list of custom providers": Healthy(
        "model:\n  default: gpt-4o-mini\n  provider: custom:openkey\n"
        "custom_providers:\n  - name: openkey\n    base_url: https://openkey.cloud/v1\n"
        "    key_env: OPENKEY_API_KEY\n    model: gpt-4o-mini\n",
        RELAY,
    ),
    "a custom address": Healthy(
        "model:\n  default: qwen3-coder\n  provider: custom\n"
        "  base_url: https://llm.example.net/v1\n  api_key: ${OPENKEY_API_KEY}\n",
        RELAY,
    ),
    "ollama on this machine": Healthy(
        "model:\n  default: qwen3:32b\n  provider: custom\n"
        "  base_url: http://127.0.0.1:11434/v1\n  context_length: 131072\n",
        "",
    ),
    "fallbacks and side models": Healthy(
        MAIN + "fallback_providers:\n  - provider: deepseek\n    model: deepseek-chat\n"
        "  - provider: anthropic\n    model: claude-sonnet-4-6\n"
        "auxiliary:\n  vision:\n    provider: openrouter\n    model: google/gemini-2.5-flash\n"
        "  compression:\n    provider: auto\n",
        OPENROUTER + ANTHROPIC + DEEPSEEK,
    ),
    "the old form of a fallback": Healthy(
        MAIN + "fallback_model:\n  provider: deepseek\n  model: deepseek-chat\n",
        OPENROUTER + DEEPSEEK,
    ),
    "CRLF and a mark of UTF-8": Healthy(
        "\ufeff" + (MAIN + "telegram:\n  require_mention: true\n").replace("\n", "\r\n"),
        (OPENROUTER + TELEGRAM + "TELEGRAM_ALLOWED_USERS=123456789\n").replace("\n", "\r\n"),
    ),
    "comments everywhere, some in Chinese": Healthy(
        "# 主模型\nmodel:\n  default: anthropic/claude-sonnet-4.6  # 默认\n\n"
        "  # 提供商\n  provider: openrouter\n\n# provider: openai\n"
        "display:\n  personality: ''\n",
        "# 密钥，不要分享\n"
        + OPENROUTER
        + "\n# TELEGRAM_BOT_TOKEN=your_token_here\n# DISCORD_BOT_TOKEN=\n",
    ),
    "the model as one word": Healthy("model: anthropic/claude-sonnet-4.6\n", OPENROUTER),
    "values in quotes, export before names": Healthy(
        "model:\n  default: 'anthropic/claude-sonnet-4.6'\n  provider: \"openrouter\"\n",
        "export "
        + OPENROUTER.replace("=", '="').replace("\n", '"\n')
        + "export "
        + TELEGRAM.replace("=", "='").replace("\n", "'\n")
        + 'TELEGRAM_ALLOWED_USERS="123456789, 987654321"\n',
    ),
    "weixin by list": Healthy(
        MAIN,
        OPENROUTER + WEIXIN + "WEIXIN_DM_POLICY=allowlist\nWEIXIN_GROUP_POLICY=disabled\n"
        "WEIXIN_ALLOWED_USERS=o9cq80abc@im.wechat\n",
    ),
    "feishu and dingtalk": Healthy(
        MAIN,
        OPENROUTER + FEISHU + "FEISHU_DOMAIN=feishu\nFEISHU_CONNECTION_MODE=websocket\n"
        "FEISHU_ALLOWED_USERS=ou_7d8a6e6df7621556ce0d21922b676706\n"
        f"DINGTALK_CLIENT_ID=ding{letters('ding', 16)}\n"
        f"DINGTALK_CLIENT_SECRET={letters('dt', 64)}\n"
        "DINGTALK_ALLOWED_USERS=manager4220\n",
    ),
    "wecom": Healthy(
        MAIN,
        OPENROUTER + f"WECOM_BOT_ID=aib{letters('wecom', 29)}\nWECOM_SECRET={letters('ws', 43)}\n"
        "WECOM_ALLOWED_USERS=zhangsan\nWECOM_DM_POLICY=allowlist\n",
    ),
    "matrix by token": Healthy(
        MAIN + "matrix:\n  require_mention: true\n",
        OPENROUTER + "MATRIX_HOMESERVER=https://matrix.example.org\n"
        f"MATRIX_ACCESS_TOKEN=syt_{letters('matrix', 40)}\nMATRIX_USER_ID=@hermes:example.org\n"
        "MATRIX_ALLOWED_USERS=@ann:example.org\n",
    ),
    "email": Healthy(
        MAIN,
        OPENROUTER + "EMAIL_ADDRESS=hermes@example.org\nEMAIL_PASSWORD=abcd efgh ijkl mnop\n"
        "EMAIL_IMAP_HOST=imap.example.org\nEMAIL_SMTP_HOST=smtp.example.org\n"
        "EMAIL_ALLOWED_USERS=ann@example.org\n",
    ),
    "whatsapp that is paired": Healthy(
        MAIN,
        OPENROUTER
        + "WHATSAPP_ENABLED=true\nWHATSAPP_MODE=bot\nWHATSAPP_ALLOWED_USERS=15551234567\n",
        {
            "platforms/whatsapp/session/creds.json": json.dumps(
                {"noiseKey": {}, "me": {"id": "15557654321:7@s.whatsapp.net"}, "registered": True}
            )
        },
    ),
    "an API server with a strong key": Healthy(
        MAIN,
        OPENROUTER + f"API_SERVER_ENABLED=true\nAPI_SERVER_KEY={letters('api', 48)}\n"
        "API_SERVER_PORT=18642\n",
    ),
    "webhooks with secrets": Healthy(
        MAIN + "platforms:\n  webhook:\n    enabled: true\n    extra:\n      host: 127.0.0.1\n"
        "      port: 18644\n      routes:\n        github:\n"
        f"          secret: {letters('hook', 40)}\n"
        "          events: [push]\n          prompt: 'A push: {repository.full_name}'\n"
        "          deliver: log\n",
        OPENROUTER,
    ),
    "pairing instead of lists": Healthy(
        MAIN,
        OPENROUTER + TELEGRAM,
        {"platforms/pairing/telegram-approved.json": approved("123456789")},
    ),
    "a list for all platforms, and resets": Healthy(
        MAIN + "session_reset:\n  mode: both\n  idle_minutes: 1440\n  at_hour: 4\n"
        "group_sessions_per_user: true\n",
        OPENROUTER + TELEGRAM + DISCORD + "GATEWAY_ALLOWED_USERS=123456789\n",
        never=NO_PLUGINS,
    ),
    "jobs with a home channel": Healthy(
        MAIN,
        OPENROUTER
        + TELEGRAM
        + "TELEGRAM_ALLOWED_USERS=123456789\nTELEGRAM_HOME_CHANNEL=123456789\n",
        {"cron/jobs.json": job("telegram")},
    ),
    "jobs that answer where they were made": Healthy(
        MAIN,
        OPENROUTER + TELEGRAM + "TELEGRAM_ALLOWED_USERS=123456789\n",
        {
            "cron/jobs.json": job(
                "origin", {"platform": "telegram", "chat_id": "123456789", "chat_name": "Ann"}
            )
        },
    ),
    "with a profile": Healthy(
        MAIN,
        OPENROUTER + TELEGRAM + "TELEGRAM_ALLOWED_USERS=123456789\n",
        {
            "profiles/shop/config.yaml": "model:\n  default: deepseek-chat\n  provider: deepseek\n",
            "profiles/shop/.env": DEEPSEEK + DISCORD + "DISCORD_ALLOWED_USERS=284102345871466496\n",
        },
        never=NO_PLUGINS,
    ),
    "without a version": Healthy(MAIN, OPENROUTER, marked=False),
    "a terminal of its own and tools": Healthy(
        MAIN + "terminal:\n  backend: local\n  cwd: .\n  timeout: 180\nagent:\n  max_turns: 90\n"
        "memory:\n  memory_enabled: true\ncompression:\n  enabled: true\n  threshold: 0.5\n"
        "timezone: Europe/Berlin\napprovals:\n  mode: manual\n",
        OPENROUTER + "FIRECRAWL_API_KEY=fc-" + letters("fire", 32) + "\n",
    ),
}
