"""Check that the variables for CA certificates name usable files."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text

_NAMES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "HERMES_CA_BUNDLE")


@check(id="certificates", group="connections", codes=["SSL-CA"])
def certificates(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Do the variables that name a file with certificates name one?"""
    settings = probes.settings()
    named = [name for name in _NAMES if settings.value(name)]
    if not named:
        raise Skip("no variable names a file with certificates")
    for name in named:
        try:
            fault = probes.bundle_fault(settings.value(name))
        except CouldNotLook as doubt:
            yield CouldNotLook(text("{name}: {doubt}", name=name, doubt=doubt))
            continue
        if fault:
            yield Finding(
                code="SSL-CA",
                severity=Severity.ERROR,
                title=text("{name} names a file that {fault}", name=name, fault=fault),
                subject=name,
                detail=(
                    "No encrypted connection can be checked, so none comes up: neither to a "
                    "platform nor to a model. Take the variable out, or let it name the file "
                    "with the certificates to trust, and restart the gateway."
                ),
                evidence=(Evidence(settings.source(name), f"{name}: {fault}"),),
            )
