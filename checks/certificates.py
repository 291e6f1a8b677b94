"""Check that the variables for CA certificates name usable files."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    said,
    text,
)

_TITLES = {
    "does not exist": "{variable} names a file that does not exist",
    "is empty": "{variable} names an empty file",
    "is an empty folder": "{variable} names an empty folder",
    "holds no certificate": "{variable} names a file without certificates",
}
_NAMES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "HERMES_CA_BUNDLE")


@check(id="certificates", group="connections", codes=["SSL-CA"])
def certificates(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Do the variables for certificates name usable files?"""
    settings = probes.settings()
    named = [name for name in _NAMES if settings.value(name)]
    if not named:
        raise Skip("no variable names a file with certificates")
    for name in named:
        try:
            fault = probes.bundle_fault(settings.value(name))
        except CouldNotLook as doubt:
            yield CouldNotLook(text("{variable}: {reason}", variable=name, reason=doubt))
            continue
        if fault:
            yield Finding(
                code="SSL-CA",
                severity=Severity.ERROR,
                title=text(_TITLES.get(fault, "{variable} names an unusable file"), variable=name),
                subject=name,
                detail=(
                    "Encrypted connections fail, so the bot reaches neither its platforms nor its "
                    "model."
                ),
                next=text(
                    "Remove {variable}, or set it to a file with certificates. Then restart the "
                    "gateway.",
                    variable=name,
                ),
                evidence=(Evidence(settings.source(name), f"{name}={said(settings.value(name))}"),),
            )
