"""Check that every platform that receives webhooks has the secret that authenticates callers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hermes_doctor.api import (
    Block,
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    read_json,
    text,
)

_LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]", "ip6-localhost", "ip6-loopback")
_OPEN_TO_ALL = "INSECURE_NO_AUTH"
_ADDED = "webhook_subscriptions.json"


@check(
    id="webhook-secrets",
    group="platforms",
    codes=["WEBHOOK-SECRET", "WA-CLOUD-SETUP"],
    by_release=True,
)
def webhook_secrets(probes: Probes) -> Iterator[Finding]:
    """Has every platform that others call the secret by which it knows them?"""
    found = probes.resolved()
    asked = [(one, _QUESTIONS[one.name]) for one in found.platforms if one.name in _QUESTIONS]
    if not asked:
        raise Skip("no platform is set up that others call")
    for platform, question in asked:
        yield from question(probes, Block(found.world, platform.name))


def _webhook(probes: Probes, block: Block) -> Iterator[Finding]:
    shared = block.value("secret", "WEBHOOK_SECRET")
    local = block.value("host").lower() in _LOOPBACK
    path, routes = block.mapping("routes")
    for name, route in routes.items():
        if not isinstance(route, dict):
            continue
        secret = route.get("secret", shared)
        place = block.world.document.source(*path, str(name)).place
        yield from _route(str(name), str(secret or ""), place, local=local)
    for name, route in _added(probes):
        secret = route.get("secret", shared)
        if name not in routes and not secret:
            refuses = not block.world.release.since(0, 15)
            yield _finding(
                f"the webhook {_plain(name)} that was added later has no secret",
                f"webhook {name}",
                "Hermes does not start webhooks at all with it."
                if refuses
                else "Hermes leaves this one out.",
                "Remove it (`hermes webhook remove`) and add it anew, or set WEBHOOK_SECRET in "
                ".env, and restart the gateway.",
                Evidence(_ADDED, f"{_plain(name)}: no secret"),
                Severity.ERROR if refuses else Severity.WARNING,
            )


def _route(name: str, secret: str, place: str, *, local: bool) -> Iterator[Finding]:
    said, subject = _plain(name), f"webhook {name}"
    if not secret:
        yield _finding(
            f"the webhook {said} has no secret, so no webhook is served",
            subject,
            "Hermes refuses to listen for any of them.",
            f"Set `secret` of the route to what the sender signs with, or WEBHOOK_SECRET in .env "
            f"for all (`openssl rand -hex 32` makes one), {_RESTART}",
            Evidence(place, f"{said}: no secret"),
        )
    elif secret == _OPEN_TO_ALL and not local:
        yield _finding(
            f"the webhook {said} is open to everybody, so no webhook is served",
            subject,
            f"{_OPEN_TO_ALL} is for this machine alone; Hermes refuses to listen for others so.",
            f"Set a secret, or `host: 127.0.0.1` beside the routes, {_RESTART}",
            Evidence(place, f"{said}: {_OPEN_TO_ALL}, and not on 127.0.0.1 only"),
        )
    elif secret.startswith("${"):
        yield _finding(
            f"the secret of the webhook {said} is not filled in",
            subject,
            "Hermes expands no ${NAME} there: the text itself is the secret, and calls fail.",
            f"Write the secret itself, or leave it out and set WEBHOOK_SECRET in .env, {_RESTART}",
            Evidence(place, f"{said}: refers to a variable"),
            Severity.WARNING,
        )


def _added(probes: Probes) -> list[tuple[str, dict[str, object]]]:
    """Return the routes that were added at run time."""
    try:
        said = read_json(probes.home / _ADDED)
    except (FileNotFoundError, ValueError, CouldNotLook):
        return []
    pairs = said.items() if isinstance(said, dict) else ()
    return [(str(name), route) for name, route in pairs if isinstance(route, dict)]


def _telegram(probes: Probes, block: Block) -> Iterator[Finding]:
    url = block.world.getenv("TELEGRAM_WEBHOOK_URL")
    if url and not block.world.getenv("TELEGRAM_WEBHOOK_SECRET"):
        yield _finding(
            "Telegram is to call in, and there is no secret for it",
            "telegram",
            "Without TELEGRAM_WEBHOOK_SECRET Hermes refuses to connect Telegram.",
            "Set it in .env, `openssl rand -hex 32` makes one (Hermes tells Telegram), or take "
            f"TELEGRAM_WEBHOOK_URL out to fetch messages instead, {_RESTART}",
            Evidence(url.source.place, "TELEGRAM_WEBHOOK_URL is set"),
            fix="make-webhook-secret",
        )


def _sms(probes: Probes, block: Block) -> Iterator[Finding]:
    world = block.world
    unsigned = world.getenv("SMS_INSECURE_NO_SIGNATURE").lower() == "true"
    host = world.getenv("SMS_WEBHOOK_HOST") or "127.0.0.1"
    place = world.getenv("TWILIO_ACCOUNT_SID").source.place
    if world.getenv("SMS_WEBHOOK_URL"):
        return
    if not unsigned:
        yield _finding(
            "SMS is set up without SMS_WEBHOOK_URL",
            "sms",
            "Hermes cannot check who calls without it, and refuses to start SMS.",
            f"Set it in .env to the address that Twilio's console has for the number, {_RESTART}",
            Evidence(place, "Twilio is set up, without SMS_WEBHOOK_URL"),
            Severity.WARNING,  # Twilio may be configured for something else
        )
    elif host not in _LOOPBACK:
        yield _finding(
            "anybody can send made-up SMS to the gateway",
            "sms",
            "SMS_INSECURE_NO_SIGNATURE=true takes calls without asking who it is.",
            f"Set SMS_WEBHOOK_URL and take SMS_INSECURE_NO_SIGNATURE out of .env, {_RESTART}",
            Evidence(
                world.getenv("SMS_INSECURE_NO_SIGNATURE").source.place,
                "SMS_INSECURE_NO_SIGNATURE=true, and not on 127.0.0.1 only",
            ),
            Severity.WARNING,
        )


def _msgraph(probes: Probes, block: Block) -> Iterator[Finding]:
    refuses = block.world.release.since(0, 15)
    severity = Severity.ERROR if refuses else Severity.WARNING
    what = "Hermes refuses to start it." if refuses else "Whoever knows the address is believed."
    state = block.value("client_state", "MSGRAPH_WEBHOOK_CLIENT_STATE")
    ranges = block.value("allowed_source_cidrs", "MSGRAPH_WEBHOOK_ALLOWED_SOURCE_CIDRS")
    local = block.value("host").lower() in _LOOPBACK
    place = block.value("enabled", "MSGRAPH_WEBHOOK_ENABLED").source.place
    if not state:
        yield _finding(
            "Microsoft Graph has no client state to know its caller by",
            "msgraph_webhook",
            what,
            f"Set MSGRAPH_WEBHOOK_CLIENT_STATE in .env to that of the subscription, {_RESTART}",
            Evidence(place, "switched on, without MSGRAPH_WEBHOOK_CLIENT_STATE"),
            severity,
        )
    elif not ranges and not local and not block.path("allowed_source_cidrs"):
        yield _finding(
            "Microsoft Graph listens to the whole network",
            "msgraph_webhook",
            what,
            "Set MSGRAPH_WEBHOOK_ALLOWED_SOURCE_CIDRS in .env to Microsoft's ranges, or "
            f"platforms.msgraph_webhook.extra.host to 127.0.0.1 behind a proxy, {_RESTART}",
            Evidence(place, "switched on, without MSGRAPH_WEBHOOK_ALLOWED_SOURCE_CIDRS"),
            severity if refuses else Severity.INFO,
        )


def _feishu(probes: Probes, block: Block) -> Iterator[Finding]:
    mode = block.value("connection_mode", "FEISHU_CONNECTION_MODE")
    token = block.value("verification_token", "FEISHU_VERIFICATION_TOKEN")
    if mode.lower() != "webhook" or token or block.value("encrypt_key", "FEISHU_ENCRYPT_KEY"):
        return
    refuses = block.world.release.since(0, 15)
    yield _finding(
        "Feishu is to call in, and nothing proves that it does",
        "feishu",
        "Hermes refuses to start it." if refuses else "Whoever knows the address is believed.",
        "Set FEISHU_ENCRYPT_KEY and FEISHU_VERIFICATION_TOKEN in .env as in Feishu's console, or "
        f"FEISHU_CONNECTION_MODE=websocket, {_RESTART}",
        Evidence(mode.source.place, "webhook, without a token and without a key"),
        Severity.ERROR if refuses else Severity.WARNING,
    )


def _whatsapp_cloud(probes: Probes, block: Block) -> Iterator[Finding]:
    place = block.value("phone_number_id", "WHATSAPP_CLOUD_PHONE_NUMBER_ID").source.place
    for key, variable, severity, what in (
        ("app_secret", "WHATSAPP_CLOUD_APP_SECRET", Severity.ERROR, "every call is refused"),
        ("verify_token", "WHATSAPP_CLOUD_VERIFY_TOKEN", Severity.INFO, "Meta cannot set it up"),
    ):
        if not block.value(key, variable):
            yield Finding(
                code="WA-CLOUD-SETUP",
                severity=severity,
                title=text("{variable} is not set, so {what}", variable=variable, what=what),
                subject=f"whatsapp_cloud {variable}",
                detail=text("Set it in .env as in Meta's console, {RESTART}", RESTART=_RESTART),
                evidence=(Evidence(place, f"set up, without {variable}"),),
            )


_RESTART = "and restart the gateway."
_QUESTIONS: dict[str, Callable[[Probes, Block], Iterator[Finding]]] = {
    "webhook": _webhook,
    "telegram": _telegram,
    "sms": _sms,
    "msgraph_webhook": _msgraph,
    "feishu": _feishu,
    "whatsapp_cloud": _whatsapp_cloud,
}


def _finding(
    title: str,
    subject: str,
    what: str,
    todo: str,
    evidence: Evidence,
    severity: Severity = Severity.ERROR,
    fix: str | None = None,
) -> Finding:
    return Finding(
        code="WEBHOOK-SECRET",
        severity=severity,
        title=title,
        subject=subject,
        detail=text("{what} {todo}", what=what, todo=todo),
        evidence=(evidence,),
        fix=fix,
    )


def _plain(name: str) -> str:
    """Return the name of a route, or a substitute if it does not look like one."""
    return name if len(name) <= 40 and name.replace("-", "_").isidentifier() else "(odd name)"
