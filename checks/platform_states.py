"""Check the platform states that the gateway reports, together with its log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.stores import redact_log_text
from hermes_doctor.api.tools import NamedTuple, clock, known_or, pattern, sentences, shorten

if TYPE_CHECKING:
    from hermes_doctor.api.gateway import Gateway, PlatformState
    from hermes_doctor.api.settings import Platform
    from hermes_doctor.api.stores import GatewayLogLine

_CODES = [
    "QQ-FATAL-CLOSE",
    "QQ-GIVEUP",
    "QQ-TOKEN",
    "QQ-4009",
    "TG-409",
    "TG-BAD-TOKEN",
    "TG-NETWORK",
    "DC-ZOMBIE",
    "FEISHU-WS-DEAD",
    "SLACK-ZOMBIE",
    "WX-SESSION-EXPIRED",
    "PLATFORM-DEPS",
    "PLATFORM-DOWN",
]
_BY_ERROR = {
    "telegram_polling_conflict": "TG-409",
    "telegram_network_error": "TG-NETWORK",
    "telegram_connect_error": "TG-NETWORK",
    "telegram_auth_error": "TG-BAD-TOKEN",
    "discord_gateway_task_exited": "DC-ZOMBIE",
    "discord_websocket_health_stale": "DC-ZOMBIE",
}
_BY_PLATFORM = {"feishu": "FEISHU-WS-DEAD", "slack": "SLACK-ZOMBIE"}
"""Platforms that never reconnect by themselves."""
_OWN_ERRORS = (
    (
        pattern(r"(?i).*(missing_(dep|sdk)|deps_missing).*"),
        "{platform} does not start: a library is missing",
        "Install what the error names into Hermes' environment, then restart the gateway.",
    ),
    (
        pattern(r"whatsapp_(node_missing|bridge_missing|npm_install_failed)|cli_missing"),
        "{platform} does not start: a program is missing",
        "Install what the error names, then restart the gateway.",
    ),
    (
        pattern(r".*_not_paired"),
        "{platform} is not paired with a phone",
        "Pair it as the error says, then restart the gateway.",
    ),
    (
        pattern(
            r"(?i).*(missing_(credentials|configuration|token|account|phone_number|webhook_url|"
            r"slack_\w+)|config_(missing|invalid)|unconfigured|key_invalid|"
            r"(topic|subscription)_not_found)"
        ),
        "{platform} does not start: a setting is missing or wrong",
        "Correct the setting that the error names, then restart the gateway.",
    ),
    (
        pattern(r"(?i).*(auth_error|auth_failed|unauthorized|pubsub_auth)"),
        "{platform} rejects the login of the bot",
        "Correct the token or password that the error names, then restart the gateway.",
    ),
    (
        pattern(r".*_permission|chat_forbidden"),
        "{platform} refuses the bot a permission",
        "Give the bot the permission that the error names, then restart the gateway.",
    ),
    (
        pattern(r"bind_failed"),
        "{platform} cannot listen on its port",
        "Free the address that the error names or set another one, then restart the gateway.",
    ),
    (
        pattern(r"(?i)sidecar_(crashed|failed)|whatsapp_bridge_exited"),
        "the helper program of {platform} does not run",
        "",
    ),
    (
        pattern(r"qq_quick_disconnect"),
        "{platform} closes every new connection",
        "Check the permissions of the bot on q.qq.com, then restart the gateway.",
    ),
)
"""What the code of an adapter's own error means: title, and next step."""
_ELSEWHERE = pattern(r".*(_lock|lock_conflict|port_in_use)")
"""Errors that two other checks report with more evidence."""
_GRACE = timedelta(minutes=2)
"""A disconnected platform has usually reconnected by then."""
_EXPIRED = timedelta(minutes=11)
_PLAIN = pattern(r"[a-z0-9_./ -]{1,60}", re.IGNORECASE)
_TOKEN = pattern(
    r"token response missing access_token|Failed to get QQ Bot access token: Client error '4"
)
"""QQ has answered and refused; other errors of the same request are those of the network."""
_ATTEMPT = pattern(r"QQ startup failed: |Reconnect failed: ")
_NO_NAME = pattern(
    r"Name or service not known|name resolution|nodename nor servname|getaddrinfo failed|"
    r"No address associated with hostname"
)
_ANSWER = pattern(r"'code': (\d{4,6})\b(?:.{0,60}?'message': '([\w ,.;:()-]{1,80})')?")
"""Code and message in QQ's answer to a request for a token."""
_WRONG_SECRET = "100016"
_CLOSED = pattern(r"\[QQBot:[^\]]*\] WebSocket closed: code=(\d{4})\b(?: reason=([\w ,.-]{2,60}))?")
_BACK = pattern(r"\[QQBot:[^\]]*\] (Ready,|Session resumed|Connected$)")
_LOOP = 10
"""Closings in a row without a session between them; QQ normally closes once in half an hour."""
_FAILURE = pattern(r"(?i)connect\w* .{0,60}(failed|error|timed out)|startup failed|closed: code")
_LONG = 200
"""Characters of an error message that are shown."""
_GAVE_UP = pattern(r"\[QQBot:[^\]]*\] Max reconnect attempts reached")


@check(id="platform-states", group="connections", codes=_CODES, needs="gateway")
def platform_states(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Is every platform connected, according to the gateway?"""
    if due := probes.health.next_start():
        raise Skip(due.what)
    gateways = probes.gateway.running()
    state = probes.gateway.runtime().state
    asked = False
    for gateway in gateways:
        claims = probes.gateway.claims(gateway)
        if claims is None:
            continue
        asked = True
        for platform in probes.settings.platforms():
            claim = claims.get(platform.name)
            if claim is not None:
                yield from _judge(probes, gateway, platform, claim)
            elif state == "running" and not _newer(probes, gateway, platform):
                yield _never_started(probes, platform)
    if not asked:
        raise CouldNotLook("gateway_state.json belongs to another gateway")
    for doubt in probes.settings.effective().unreadable:
        yield CouldNotLook(doubt)


def _judge(
    probes: Probes, gateway: Gateway, platform: Platform, claim: PlatformState
) -> Iterator[Finding]:
    words = [word for word in _all_words(probes, gateway) if platform.name in word.logger]
    if claim.state == "connected":
        yield from _silently_gone(platform, words)
        return
    if claim.state not in ("fatal", "disconnected", "retrying"):
        return
    if _ELSEWHERE.fullmatch(claim.error_code or ""):
        return
    age = datetime.now(UTC) - (claim.updated_at or gateway.started_at)
    if claim.state == "disconnected" and age < _GRACE:
        return
    diagnosis = _diagnosis(platform, claim, words)
    dead = claim.state != "retrying" and not platform.notifies
    where = f"gateway_state.json: {platform.name}"
    state = _state_words(claim)
    yield Finding(
        code=diagnosis.code,
        severity=Severity.ERROR,
        title=diagnosis.title,
        subject=platform.name,
        detail=sentences(
            text("Nobody on {platform} gets an answer.", platform=platform.label), diagnosis.cause
        ),
        evidence=(*diagnosis.evidence, Evidence(where, state)),
        since=_began(probes, gateway, platform, claim),
        fix="restart-gateway" if dead and diagnosis.restart else None,
        data={"pid": gateway.pid, "platform": platform.name},
        next=diagnosis.step,
    )


def _state_words(claim: PlatformState) -> str:
    """Return the state of a platform with its error, as the gateway wrote them."""
    message = " ".join((claim.error_message or "").split())
    if message:
        return f"{claim.state}: {shorten(redact_log_text(message[:2000]), _LONG)}"
    known = _PLAIN.fullmatch(claim.error_code or "")
    return f"{claim.state}, {claim.error_code}" if known else claim.state


def _began(
    probes: Probes, gateway: Gateway, platform: Platform, claim: PlatformState
) -> datetime | None:
    """Return when the outage began; the state file only has the time of the last retry."""
    began = None
    own = pattern(rf"(✗|Fatal|Reconnect|Reconnecting) {re.escape(platform.name)}\b")
    up = pattern(
        rf"(✓ {re.escape(platform.name)} (re)?connected|"
        rf"inbound message: platform={re.escape(platform.name)} )"
    )
    for word in _all_words(probes, gateway):
        if up.match(word.text) or (platform.name == "qqbot" and _BACK.match(word.text)):
            began = None
        elif began is None and (own.match(word.text) or _is_failure(platform, word)):
            began = word.at
    known = (began, claim.updated_at, claim.retrying_since)
    return min((one for one in known if one), default=None)


def _is_failure(platform: Platform, word: GatewayLogLine) -> bool:
    return platform.name in word.logger and bool(_FAILURE.search(word.text))


class _Diagnosis(NamedTuple):
    """Why a platform is down."""

    code: str
    title: str
    cause: str = ""
    evidence: tuple[Evidence, ...] = ()
    step: str = ""
    restart: bool = True
    """Whether a restart of the gateway alone may help."""


def _diagnosis(platform: Platform, claim: PlatformState, words: list[GatewayLogLine]) -> _Diagnosis:
    label, error = platform.label, claim.error_code or ""
    if own := _own_error(label, claim):
        return own
    if platform.name == "qqbot":
        return _qq(label, claim, words)
    code = _BY_ERROR.get(error)
    if code is None and claim.state != "retrying":
        code = _BY_PLATFORM.get(platform.name)
    title = _no_connection(label, claim)
    if code == "TG-409":
        return _Diagnosis(
            code,
            "another program fetches the messages of this Telegram bot",
            "The other program is a gateway with the same token, or a webhook.",
            step="Stop the other program, or create a new token with @BotFather.",
        )
    if code == "TG-NETWORK":
        return _Diagnosis(
            code,
            title,
            "The gateway cannot reach api.telegram.org and keeps trying.",
            step="Run `hermes-doctor check --network` to see where the connection fails.",
        )
    if claim.state == "retrying":
        keeps_trying = "The gateway keeps trying."
        return _Diagnosis(code or "PLATFORM-DOWN", title, keeps_trying, step=_network_step(claim))
    return _Diagnosis(
        code or "PLATFORM-DOWN",
        title,
        "The gateway retries."
        if platform.notifies and claim.state != "fatal"
        else "It does not reconnect by itself.",
    )


def _own_error(label: str, claim: PlatformState) -> _Diagnosis | None:
    """Explain an error to which the adapter itself has given a code."""
    error = claim.error_code or ""
    for means, title, step in _OWN_ERRORS:
        if means.fullmatch(error):
            return _Diagnosis(
                _BY_ERROR.get(error, "PLATFORM-DOWN"),
                text(title, platform=label),
                "The gateway keeps trying."
                if claim.state == "retrying"
                else "The gateway does not try again by itself.",
                step=step,
                restart=not step,
            )
    return None


def _qq(label: str, claim: PlatformState, words: list[GatewayLogLine]) -> _Diagnosis:
    error = claim.error_code or ""
    if error.startswith("qq_") and error != "qq_connect_error":
        why = error[3:] if _PLAIN.fullmatch(error) else "unknown reason"
        return _Diagnosis(
            "QQ-FATAL-CLOSE",
            text("QQ blocks the bot: {reason}", reason=why.replace("_", " ")),
            "QQ closed the connection permanently.",
            _closings(words),
            "Check the state of the bot on q.qq.com, then restart the gateway.",
        )
    attempts = [word for word in words if _ATTEMPT.search(word.text)][-1:]
    if error == "qq_connect_error" and attempts and _TOKEN.search(attempts[0].text):
        return _token(attempts[0])
    if any(_GAVE_UP.match(word.text) for word in words):
        return _Diagnosis(
            "QQ-GIVEUP",
            text("{platform} has stopped trying to connect", platform=label),
            "The gateway gave up after 100 attempts.",
            _closings(words),
        )
    last = [match[1] for word in words if (match := _CLOSED.match(word.text))][-1:]
    if claim.state == "disconnected" and last == ["4009"]:
        return _Diagnosis(
            "QQ-4009",
            text("{platform} did not reconnect after its session ended", platform=label),
            "QQ ends sessions regularly, but this time no new one started.",
            _closings(words),
        )
    if claim.state == "disconnected":
        title = text("{platform} is disconnected", platform=label)
        return _Diagnosis("QQ-GIVEUP", title, "It does not reconnect by itself.", _closings(words))
    return _Diagnosis(
        "PLATFORM-DOWN",
        _no_connection(label, claim),
        "The gateway keeps trying.",
        _closings(words),
        _network_step(claim),
    )


def _no_connection(label: str, claim: PlatformState) -> str:
    if _NO_NAME.search(claim.error_message or ""):
        return text("{platform}: the server name cannot be resolved", platform=label)
    return text("{platform} is not connected", platform=label)


def _network_step(claim: PlatformState) -> str:
    if not _NO_NAME.search(claim.error_message or ""):
        return ""
    return "Check the DNS of this machine: `hermes-doctor check --network` tries every name."


def _token(word: GatewayLogLine) -> _Diagnosis:
    """Explain why QQ gives no access token, with the words of its answer."""
    answer = _ANSWER.search(word.text)
    quote = "no access token"
    if answer:
        quote = f"code: {answer[1]}" + (f", {redact_log_text(answer[2])}" if answer[2] else "")
    wrong = answer is not None and answer[1] == _WRONG_SECRET
    return _Diagnosis(
        "QQ-TOKEN",
        "QQ rejects the app secret" if wrong else "QQ gives the bot no access token",
        "" if wrong else "AppID and AppSecret do not match, or QQ does not allow the bot.",
        (Evidence("logs/gateway.log", f"{clock(word.at)}  {quote}"),),
        "Copy AppID and AppSecret from q.qq.com into .env (QQ_APP_ID, QQ_CLIENT_SECRET), then "
        "restart the gateway.",
    )


def _closings(words: list[GatewayLogLine]) -> tuple[Evidence, ...]:
    """Return the latest closing in the log as evidence."""
    for word in reversed(words):
        if match := _CLOSED.match(word.text):
            reason = f", {redact_log_text(match[2])}" if match[2] else ""
            quote = f"{clock(word.at)}  closed: code {match[1]}{reason}"
            return (Evidence("logs/gateway.log", quote),)
    return ()


def _silently_gone(platform: Platform, words: list[GatewayLogLine]) -> Iterator[Finding]:
    """Report failures in the log of a platform whose state is connected."""
    if platform.name == "weixin":
        expired = [w for w in words if "Session expired; pausing" in w.text]
        if expired and datetime.now(UTC) - expired[-1].at < _EXPIRED:
            yield Finding(
                code="WX-SESSION-EXPIRED",
                severity=Severity.ERROR,
                title="the Weixin (WeChat) login has expired",
                subject=platform.name,
                detail=(
                    "Nobody on Weixin gets an answer. The gateway looks connected, but only "
                    "retries every 10 minutes."
                ),
                evidence=(
                    Evidence(
                        "logs/gateway.log",
                        f"{clock(expired[-1].at)}  Session expired ({len(expired)} ×)",
                    ),
                ),
                since=expired[0].at,
                next="Scan the QR code with `hermes gateway setup`, then restart the gateway.",
            )
    if platform.name == "qqbot":
        back = max((n for n, w in enumerate(words) if _BACK.match(w.text)), default=-1)
        closed = [w for w in words[back + 1 :] if _CLOSED.match(w.text)]
        if len(closed) >= _LOOP:
            yield Finding(
                code="QQ-4009",
                severity=Severity.ERROR,
                title="QQ closes every new connection at once",
                subject=platform.name,
                detail=(
                    "Nobody on QQ gets an answer. The bot keeps asking for a session that has "
                    "ended; a restart of the gateway fixes it."
                ),
                evidence=(
                    Evidence("logs/gateway.log", f"closed {len(closed)} times without a session"),
                    *_closings(words),
                ),
                since=closed[0].at,
                fix="restart-gateway",
                data={"platform": platform.name},
            )


def _never_started(probes: Probes, platform: Platform) -> Finding:
    library = platform.library
    missing = library is not None and probes.hermes.library_path(library) is None
    evidence = [
        Evidence(platform.because, f"sets up {platform.label}"),
        Evidence("gateway_state.json", f"no {platform.name}"),
    ]
    if missing:
        evidence.append(Evidence("the Python environment of Hermes", f"no {library}"))
    return Finding(
        code="PLATFORM-DEPS",
        severity=Severity.ERROR,
        title=text("the gateway has not started {platform}", platform=platform.label),
        subject=platform.name,
        detail=(
            text(
                "Nobody on {platform} gets an answer: the library {library} is missing.",
                platform=platform.label,
                library=library,
            )
            if missing
            else text(
                "Nobody on {platform} gets an answer. Most often a library is missing.",
                platform=platform.label,
            )
        ),
        evidence=tuple(evidence),
        next=(
            _install(probes, str(library))
            if missing
            else "Look in logs/gateway.log for `No adapter available` or `requirements not met`."
        ),
    )


def _install(probes: Probes, library: str) -> str:
    """Return how to install a library, with the whole command if the environment is known."""
    packages, installation = probes.hermes.packages(), probes.hermes.installation()
    if packages is None or installation is None:
        return text(
            "Install {library} into the Python environment of Hermes, then restart the gateway.",
            library=library,
        )
    command = packages.install_command(library, installation.version)
    return text("Run `{command}`, then restart the gateway.", command=command)


def _newer(probes: Probes, gateway: Gateway, platform: Platform) -> bool:
    """Return whether the setting changed after the gateway started, so it cannot know it."""
    place = platform.because.rpartition(" in ")[2]
    file = {".env": probes.settings.env, "config.yaml": probes.settings.config}.get(place)
    found = file() if file else None
    return found is not None and found.snapshot.mtime_ns / 1e9 >= gateway.started_at.timestamp()


def _all_words(probes: Probes, gateway: Gateway) -> list[GatewayLogLine]:
    return known_or([], lambda: probes.logs.last_lines(gateway))
