"""Files with certificates to trust."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.gateway_home import Scene, ask

PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "HERMES_CA_BUNDLE"])
@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "does not exist"), ("", "an empty file"), ("<html>", "without certificates")],
)
def test_unusable(home: Path, tmp_path: Path, name: str, content: str | None, words: str) -> None:
    """Gone, empty, or something else."""
    path = tmp_path / "bundle.pem"
    if content is not None:
        support.put(path, content)

    _, [finding] = ask("certificates", Scene(home, {name: str(path)}, running=True))

    assert (finding.code, finding.severity, finding.subject) == ("SSL-CA", "error", name)
    assert words in finding.title


def test_usable(home: Path, tmp_path: Path) -> None:
    """A file with a certificate, or a folder with something in it."""
    path = support.put(tmp_path / "folder" / "bundle.pem", PEM)
    for named in (path, path.parent):
        assert ask("certificates", Scene(home, {"SSL_CERT_FILE": str(named)}))[0].status == "ok"


def test_unknown(home: Path, tmp_path: Path) -> None:
    """A relative path depends on where the gateway was started."""
    result, findings = ask("certificates", Scene(home, {"SSL_CERT_FILE": "certs/ca.pem"}))

    assert (result.status, findings) == ("unknown", [])


def test_not_set(home: Path) -> None:
    """Most machines need no such variable."""
    assert ask("certificates", Scene(home, {}))[0].status == "skipped"


def test_from_the_file(home: Path) -> None:
    """.env counts, also while no gateway runs."""
    support.put(home / ".env", "SSL_CERT_FILE=/nowhere/ca.pem\n")

    _, [finding] = ask("certificates", Scene(home, {}, running=False))

    assert finding.evidence[0].where == ".env"
