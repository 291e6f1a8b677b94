"""Where a logging call belongs, from its file alone."""

from __future__ import annotations

import re
from typing import NamedTuple


class Platform(NamedTuple):
    """A platform with the name that its adapter shows."""

    id: str
    name: str


class TruePlace(NamedTuple):
    """The platform of a call, or the parts of the bot that it may belong to."""

    platform: str
    parts: frozenset[str]


PLATFORMS = (
    Platform("telegram", "Telegram"),
    Platform("discord", "Discord"),
    Platform("slack", "Slack"),
    Platform("whatsapp", "WhatsApp"),
    Platform("signal", "Signal"),
    Platform("qqbot", "QQBot"),
    Platform("weixin", "Weixin"),
    Platform("wecom", "WeCom"),
    Platform("feishu", "Feishu"),
    Platform("dingtalk", "DingTalk"),
    Platform("matrix", "Matrix"),
    Platform("email", "Email"),
)
_ADAPTERS = (
    "telegram", "discord", "slack", "whatsapp_cloud", "whatsapp", "signal", "qqbot", "weixin",
    "wecom_callback", "wecom", "feishu", "dingtalk", "matrix", "yuanbao", "email", "sms",
    "homeassistant", "mattermost", "bluebubbles", "api_server", "webhook", "msgraph_webhook", "irc",
    "line", "teams", "google_chat", "ntfy", "simplex", "photon", "raft", "buzz", "a2a",
)  # fmt: skip
_ADAPTER = re.compile(r"(?:gateway|plugins)/platforms/(\w+?)(?:\.py|/.*)")
_PARTS = (
    # a prefix of the file's path, and the parts that a call there may belong to
    ("plugins/cron_providers", "cron"),
    ("plugins/kanban", "kanban"),
    ("plugins/memory", "memory"),
    ("plugins/dashboard_auth", "dashboard"),
    ("plugins/model-providers", "model"),
    ("plugins/context_engine", "model"),
    ("plugins/", "plugins tools"),
    ("cron/", "cron"),
    ("tools/cronjob", "cron tools"),
    ("tools/kanban", "kanban tools"),
    ("tools/memory", "memory tools"),
    ("tools/", "tools"),
    ("model_tools", "tools"),
    ("toolset", "tools"),
    ("agent/memory", "memory"),
    ("agent/session", "data"),
    ("agent/curator", "data tools model"),
    ("agent/", "model tools plugins"),
    ("run_agent", "model"),
    ("providers/", "model"),
    ("hermes_state", "data"),
    ("hermes_cli/kanban", "kanban"),
    ("hermes_cli/web_server", "dashboard"),
    ("hermes_cli/dashboard", "dashboard"),
    ("hermes_cli/web", "dashboard"),
    ("hermes_cli/proxy", "dashboard"),
    ("hermes_cli/plugins", "plugins"),
    ("hermes_cli/backup", "data"),
    ("hermes_cli/update", "update"),
    ("hermes_cli/main", "update gateway"),
    ("hermes_cli/managed_uv", "update"),
    ("hermes_cli/auth", "model"),
    ("hermes_cli/copilot", "model"),
    ("hermes_cli/models", "model tools"),
    ("hermes_cli/mcp", "tools"),
    ("hermes_cli/", "gateway update dashboard tools model"),
    ("tui_gateway/", "dashboard"),
    ("gateway/session", "data gateway"),
    ("gateway/kanban", "kanban"),
    ("gateway/hooks", "plugins gateway"),
    ("gateway/builtin_hooks", "plugins gateway"),
    ("gateway/", "gateway data"),
    ("", "gateway"),
)


_ABOUT = (
    # words of a message, and the part that such a line may belong to wherever it is written
    (re.compile(r"(?i)session ?(?:db|store)|state\.db|transcripts?\b"), "data"),
    (re.compile(r"(?i)kanban"), "kanban"),
    (re.compile(r"(?i)voice|\b(?:tts|stt|speech)\b|transcription|transcribe"), "tools"),
)


def true_place(file: str, named: Platform | str = "", template: str = "") -> TruePlace:
    """Return the place of a call in a file whose message names a platform, if it does.

    A line about something else, such as the message history, may belong to that, too.
    """
    if file.endswith("/wecom/callback_adapter.py"):
        return TruePlace("wecom_callback", frozenset(("platform",)))
    if match := _ADAPTER.fullmatch(file):
        for name in _ADAPTERS:
            if match[1] == name or match[1].startswith(f"{name}_"):
                return TruePlace(name, frozenset(("platform",)))
    if file.startswith("gateway/relay/"):
        return TruePlace("relay", frozenset(("platform",)))
    if isinstance(named, Platform) and file.startswith("gateway/"):
        return TruePlace(named.id, frozenset(("platform",)))
    parts = next(parts for prefix, parts in _PARTS if file.startswith(prefix))
    also = {part for words, part in _ABOUT if words.search(template)}
    return TruePlace("", frozenset(parts.split()) | also)
