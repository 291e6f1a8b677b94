"""Check that every platform that receives webhooks has the secret that authenticates callers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.settings import PlatformBlock
from hermes_doctor.api.tools import read_json

_LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]", "ip6-localhost", "ip6-loopback")
_OPEN_TO_ALL = "INSECURE_NO_AUTH"
_ADDED = "webhook_subscriptions.json"
_REFUSED = "Hermes does not start this platform, so nobody there gets an answer."
_BELIEVED = "Everyone who knows the address can send false messages to the bot."


@check(
    id="webhook-secrets",
    group="platforms",
    codes=["WEBHOOK-SECRET", "WA-CLOUD-SETUP"],
    by_release=True,
)
def webhook_secrets(probes: Probes) -> Iterator[Finding]:
    """Does every webhook have its secret?"""
    resolved = probes.settings.resolved()
    asked = [
        (access, _QUESTIONS[access.name])
        for access in resolved.platforms
        if access.name in _QUESTIONS
    ]
    if not asked:
        raise Skip("no configured platform receives webhooks")
    for platform, question in asked:
        yield from question(probes, PlatformBlock(resolved.world, platform.name))


def _webhook(probes: Probes, block: PlatformBlock) -> Iterator[Finding]:
    shared = block.value("secret", "WEBHOOK_SECRET")
    local = block.value("host").lower() in _LOOPBACK
    path, routes = block.mapping("routes")
    for name, route in routes.items():
        if not isinstance(route, dict):
            continue
        secret = route.get("secret", shared)
        place = block.world.document.source(*path, str(name)).place
        yield from _route(str(name), str(secret or ""), place, local=local, only=len(routes) == 1)
    for name, route in _added(probes):
        secret = route.get("secret", shared)
        if name not in routes and not secret:
            refuses = not block.world.release.since(0, 15)
            yield _finding(
                text("the webhook {name} has no secret", name=_plain(name)),
                f"webhook {name}",
                "Because of it Hermes accepts no webhook, so no sender gets an answer."
                if refuses
                else "Hermes ignores the calls of its sender.",
                "Run `hermes webhook remove` and add it again, then restart the gateway.",
                Evidence(_ADDED, text("{name}: no secret", name=_plain(name))),
                Severity.ERROR if refuses else Severity.WARNING,
            )


def _route(name: str, secret: str, place: str, *, local: bool, only: bool) -> Iterator[Finding]:
    label, subject = _plain(name), f"webhook {name}"
    if not secret:
        yield _finding(
            text("the webhook {name} has no secret", name=label),
            subject,
            "Because of it Hermes accepts no webhook, so no sender gets an answer.",
            "Set `secret` of this route to the secret of the sender, then restart the gateway.",
            Evidence(place, text("{name}: no secret", name=label)),
        )
    elif secret == _OPEN_TO_ALL and not local:
        yield _finding(
            text("the webhook {name} accepts calls from everyone", name=label),
            subject,
            "Because of it Hermes accepts no webhook, so no sender gets an answer. Hermes allows "
            "this "
            "only on 127.0.0.1.",
            "Set `secret` of this route, or `host: 127.0.0.1` above `routes`, then restart the "
            "gateway.",
            Evidence(place, text("{name}: {secret}", name=label, secret=_OPEN_TO_ALL)),
        )
    elif secret.startswith("${"):
        yield _finding(
            text("the secret of the webhook {name} is not filled in", name=label),
            subject,
            "Hermes rejects every call to this webhook, because it does not replace ${NAME} in "
            "secrets.",
            "Write the secret itself, or remove it and set WEBHOOK_SECRET in .env, then restart "
            "the gateway.",
            Evidence(place, text("{name}: a reference to a variable", name=label)),
            Severity.ERROR if only else Severity.WARNING,
        )


def _added(probes: Probes) -> list[tuple[str, dict[str, object]]]:
    """Return the routes that were added at run time."""
    try:
        json = read_json(probes.home / _ADDED)
    except (FileNotFoundError, ValueError, CouldNotLook):
        return []
    pairs = json.items() if isinstance(json, dict) else ()
    return [(str(name), route) for name, route in pairs if isinstance(route, dict)]


def _telegram(probes: Probes, block: PlatformBlock) -> Iterator[Finding]:
    url = block.world.getenv("TELEGRAM_WEBHOOK_URL")
    if url and not block.world.getenv("TELEGRAM_WEBHOOK_SECRET"):
        yield _finding(
            "the Telegram webhook has no secret",
            "telegram",
            "Nobody on Telegram gets an answer: Hermes does not connect without a webhook secret.",
            "To do without a webhook, remove TELEGRAM_WEBHOOK_URL and restart the gateway.",
            Evidence(url.source.place, "TELEGRAM_WEBHOOK_URL is set"),
            fix="make-webhook-secret",
        )


def _sms(probes: Probes, block: PlatformBlock) -> Iterator[Finding]:
    world = block.world
    unsigned = world.getenv("SMS_INSECURE_NO_SIGNATURE").lower() == "true"
    host = world.getenv("SMS_WEBHOOK_HOST") or "127.0.0.1"
    place = world.getenv("TWILIO_ACCOUNT_SID").source.place
    if world.getenv("SMS_WEBHOOK_URL"):
        return
    if not unsigned:
        yield _finding(
            "SMS does not start without SMS_WEBHOOK_URL",
            "sms",
            "If the Twilio account is meant for SMS to the bot, nobody there gets an answer.",
            "Set SMS_WEBHOOK_URL in .env to the address in Twilio's console, then restart the "
            "gateway.",
            Evidence(place, "TWILIO_ACCOUNT_SID is set"),
            Severity.WARNING,  # Twilio may be configured for something else
        )
    elif host not in _LOOPBACK:
        yield _finding(
            "everyone in the network can send false SMS to the bot",
            "sms",
            "Hermes does not verify that calls come from Twilio.",
            "Set SMS_WEBHOOK_URL in .env and remove SMS_INSECURE_NO_SIGNATURE, then restart the "
            "gateway.",
            Evidence(
                world.getenv("SMS_INSECURE_NO_SIGNATURE").source.place,
                text("SMS_INSECURE_NO_SIGNATURE=true, listening on {host}", host=host),
            ),
            Severity.WARNING,
        )


def _msgraph(probes: Probes, block: PlatformBlock) -> Iterator[Finding]:
    refuses = block.world.release.since(0, 15)
    severity = Severity.ERROR if refuses else Severity.WARNING
    state = block.value("client_state", "MSGRAPH_WEBHOOK_CLIENT_STATE")
    ranges = block.value("allowed_source_cidrs", "MSGRAPH_WEBHOOK_ALLOWED_SOURCE_CIDRS")
    local = block.value("host").lower() in _LOOPBACK
    place = block.value("enabled", "MSGRAPH_WEBHOOK_ENABLED").source.place
    if not state:
        yield _finding(
            "the Microsoft Graph webhook has no client state",
            "msgraph_webhook",
            _REFUSED if refuses else _BELIEVED,
            "Set MSGRAPH_WEBHOOK_CLIENT_STATE in .env to the one of the subscription, then restart "
            "the gateway.",
            Evidence(place, "enabled without MSGRAPH_WEBHOOK_CLIENT_STATE"),
            severity,
        )
    elif not ranges and not local and not block.path("allowed_source_cidrs"):
        yield _finding(
            "the Microsoft Graph webhook accepts calls from everywhere",
            "msgraph_webhook",
            _REFUSED if refuses else _BELIEVED,
            "Set MSGRAPH_WEBHOOK_ALLOWED_SOURCE_CIDRS in .env to Microsoft's address ranges, then "
            "restart the gateway.",
            Evidence(place, "enabled without MSGRAPH_WEBHOOK_ALLOWED_SOURCE_CIDRS"),
            severity if refuses else Severity.INFO,
        )


def _feishu(probes: Probes, block: PlatformBlock) -> Iterator[Finding]:
    mode = block.value("connection_mode", "FEISHU_CONNECTION_MODE")
    token = block.value("verification_token", "FEISHU_VERIFICATION_TOKEN")
    if mode.lower() != "webhook" or token or block.value("encrypt_key", "FEISHU_ENCRYPT_KEY"):
        return
    refuses = block.world.release.since(0, 15)
    yield _finding(
        "the Feishu webhook has no token and no key",
        "feishu",
        _REFUSED if refuses else _BELIEVED,
        "Set FEISHU_CONNECTION_MODE=websocket in .env, or copy FEISHU_ENCRYPT_KEY and "
        "FEISHU_VERIFICATION_TOKEN from Feishu's console.",
        Evidence(mode.source.place, "connection mode: webhook"),
        Severity.ERROR if refuses else Severity.WARNING,
    )


def _whatsapp_cloud(probes: Probes, block: PlatformBlock) -> Iterator[Finding]:
    place = block.value("phone_number_id", "WHATSAPP_CLOUD_PHONE_NUMBER_ID").source.place
    for key, variable, severity, detail in (
        (
            "app_secret",
            "WHATSAPP_CLOUD_APP_SECRET",
            Severity.ERROR,
            "Hermes rejects every call from Meta, so nobody on WhatsApp gets an answer.",
        ),
        (
            "verify_token",
            "WHATSAPP_CLOUD_VERIFY_TOKEN",
            Severity.INFO,
            "Meta needs it only to set up or change the webhook.",
        ),
    ):
        if not block.value(key, variable):
            yield Finding(
                code="WA-CLOUD-SETUP",
                severity=severity,
                title=text("{name} is not set", name=variable),
                subject=f"whatsapp_cloud {variable}",
                detail=detail,
                evidence=(Evidence(place, "WHATSAPP_CLOUD_PHONE_NUMBER_ID is set"),),
                next=text(
                    "Copy {name} from Meta's console into .env, then restart the gateway.",
                    name=variable,
                ),
            )


_QUESTIONS: dict[str, Callable[[Probes, PlatformBlock], Iterator[Finding]]] = {
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
    detail: str,
    step: str,
    evidence: Evidence,
    severity: Severity = Severity.ERROR,
    fix: str | None = None,
) -> Finding:
    return Finding(
        code="WEBHOOK-SECRET",
        severity=severity,
        title=title,
        subject=subject,
        detail=detail,
        evidence=(evidence,),
        fix=fix,
        next=step,
    )


def _plain(name: str) -> str:
    """Return the name of a route, or a substitute if it does not look like one."""
    return name if len(name) <= 40 and name.replace("-", "_").isidentifier() else "(unusual name)"
