"""Read the place and the cause of an entry from the code of the log rule that matches it.

This is what `check` says without tables of causes and places: codes name what is wrong, and most of
them stand for a platform or a part, some for a cause.
"""

from __future__ import annotations

from functools import cache

from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_rules import folder
from hermes_doctor.diagnosis.plugins.log_rules.matcher import MATCH, Matcher
from hermes_doctor.hermes.logs.entry import LogEntry

CAUSES = {
    "NET-DNS": "name-not-resolved",
    "NET-TCP": "connection-refused|connection-timed-out|network-unreachable|connection-reset",
    "NET-TLS": "tls-broken|certificate-untrusted|certificate-expired|certificate-for-another-host",
    "SSL-CA": "certificate-untrusted|certificate-expired",
    "NET-PROXY": "proxy-refuses|proxy-unreachable|proxy-needs-login|proxy-scheme",
    "PROXY-SOCKS": "socks-library-missing|proxy-scheme",
    "TG-NETWORK": "connection-failed|connection-refused|name-not-resolved|timed-out"
    "|answer-timed-out|connection-timed-out|connection-reset",
    "TG-POOL-EXHAUST": "connections-used-up",
    "TG-409": "used-by-two",
    "TG-BAD-TOKEN": "login-refused",
    "TG-FLOOD": "rate-limited",
    "DC-BAD-TOKEN": "login-refused",
    "SLACK-TOKEN": "login-refused|login-expired",
    "SLACK-SCOPES": "scope-missing",
    "QQ-TOKEN": "login-refused",
    "WECOM-CREDENTIALS": "login-refused",
    "YUANBAO-AUTH": "login-refused",
    "EMAIL-IMAP": "login-refused|connection-refused|name-not-resolved",
    "PLATFORM-CREDENTIALS": "login-refused|login-expired",
    "PLATFORM-DEPS": "module-missing",
    "PLATFORM-TIMEOUT": "timed-out|connection-timed-out",
    "DING-DEPS": "module-missing|attribute-missing|argument-unknown",
    "WECOM-WS-DEAD": "websocket-closed",
    "FEISHU-WS-DEAD": "websocket-closed",
    "PROVIDER-401": "login-refused|login-expired",
    "PROVIDER-403": "access-forbidden",
    "PROVIDER-402-429": "no-credit|rate-limited",
    "PROVIDER-DOWN": "server-error|overloaded|connection-refused|connection-failed"
    "|connection-reset|answer-timed-out|timed-out",
    "PROVIDER-REJECTED": "request-refused|content-refused|request-conflict",
    "PROVIDER-KEY": "login-refused",
    "CFG-MODEL": "model-unknown|address-not-found",
    "CFG-BASE-URL": "address-not-found|address-invalid",
    "CFG-YAML": "settings-not-yaml",
    "CFG-TYPE": "value-invalid",
    "CTX-OVERFLOW": "context-too-long|request-too-large",
    "DISK-FULL": "disk-full",
    "DB-LOCKED": "database-locked",
    "DB-MALFORMED": "database-malformed",
    "DB-NOTADB": "not-a-database",
    "DB-SCHEMA": "database-lacks-column",
    "DB-DISKIO": "disk-fails",
    "DB-OWNER": "database-read-only|database-cannot-open|permission-denied",
    "DB-FTS-CORRUPT": "database-malformed",
    "KANBAN-CORRUPT": "database-malformed|not-a-database",
    "KANBAN-SCHEMA": "database-lacks-column",
    "PERM-OWNER": "permission-denied|disk-read-only",
    "GW-PORT-IN-USE": "port-in-use",
    "GW-FD-EXHAUST": "too-many-files",
    "GW-MEMORY": "memory-used-up",
    "GW-OOM": "memory-used-up",
    "MEM-FULL": "disk-full",
    "GW-CODE-SKEW": "argument-unknown|attribute-missing|name-missing|module-missing",
    "UPD-VENV-BROKEN": "module-missing|name-missing",
    "CRON-JOBS-CORRUPT": "text-not-json",
    "AUTHJSON": "text-not-json",
    "HERMES-DEFECT": "argument-unknown|attribute-missing|name-missing|program-fault",
}  # fmt: skip
"""What a code blames; a code that is not named here blames nothing."""
PLACES = {
    "TG": "platform:telegram", "DC": "platform:discord", "SLACK": "platform:slack",
    "WA": "platform:whatsapp", "SIGNAL": "platform:signal", "QQ": "platform:qqbot",
    "WX": "platform:weixin", "WECOM": "platform:wecom", "FEISHU": "platform:feishu",
    "DING": "platform:dingtalk", "MATRIX": "platform:matrix", "YUANBAO": "platform:yuanbao",
    "EMAIL": "platform:email", "PROVIDER": "model:", "CTX": "model:", "CRON": "cron:",
    "KANBAN": "kanban:", "DB": "data:", "SESSION": "data:", "TOOL": "tools:", "MCP": "tools:",
    "BROWSER": "tools:", "MEM": "memory:", "PLUGIN": "plugins:", "DASH": "dashboard:",
    "UPD": "update:", "GW": "gateway:", "CFG": "gateway:", "AGENT": "model:",
}  # fmt: skip
"""Where a code is, by its first word."""


@cache
def _matcher() -> Matcher:
    return Matcher(folder.read_source(builtin("checks") / "signatures").rules)


def read(entry: LogEntry) -> tuple[str, str, str, str]:
    """Return place, operation, cause and outcome; empty where the rules say nothing."""
    found = [one for one in _matcher().ask(entry) if one.role == MATCH]
    if not found:
        return "", "", "", ""
    causes = [cause for one in found if (cause := CAUSES.get(one.rule.code))]
    places = []
    for one in found:
        platform = one.rule.platform or one.fields.get("platform", "").lower()
        place = f"platform:{platform}" if platform else PLACES.get(one.rule.code.partition("-")[0])
        if place:
            places.append(place)
    return places[0] if places else "", "", "|".join(causes), ""
