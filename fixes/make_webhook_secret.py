"""Generate the secret that authenticates Telegram's webhook calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Assign, Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step

_NAME = "TELEGRAM_WEBHOOK_SECRET"


@fix(id="make-webhook-secret", codes=["WEBHOOK-SECRET"], safety=Safety.CONFIRM)
def make_webhook_secret(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Create a secret for the Telegram webhook in .env."""
    import secrets

    from hermes_doctor.api import edit_env, reload

    why = f"set {_NAME} to a new random secret"
    yield from edit_env(probes, why, Assign(_NAME, secrets.token_hex(32)))
    yield from reload(probes, "platform")
