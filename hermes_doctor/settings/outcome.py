"""The result of resolving a provider: what a request would use, or why it cannot be sent."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.redaction import redact_unless_variable
from hermes_doctor.settings.sourced_text import DEFAULT, Source, Text

NO_KEY = Text("no-key-required", Source(DEFAULT, "no key"))


def missing_key(variable: str) -> Text:
    """Return what Hermes sends to a provider whose `key_env` names a variable that is not set."""
    source = NO_KEY.source._replace(via=Source(DEFAULT, redact_unless_variable(variable)))
    return Text(NO_KEY, source)


class Unresolved(Exception):
    """No provider can be used for this request."""

    def __init__(self, kind: str, why: str, *, falls_back: bool = True) -> None:
        super().__init__(why)
        self.kind = kind
        """`unknown`, `none`, `key`, `login`, `disabled`, `address` or `malformed`."""
        self.falls_back = falls_back
        """Whether Hermes tries the fallback chain instead."""


class RequestSettings(NamedTuple):
    """The provider, address, protocol and secret key of a request."""

    provider: str
    base_url: Text
    api_mode: str
    key: Text
    urls: Sequence[Text] = ()
    """Addresses that are set but not used."""
    keys: Sequence[Text] = ()
    """Keys that are set but not used."""
