"""whatsapp-bridge: a login, a bridge and Node.js."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hermes_doctor.core.model import Finding
from hermes_doctor.hermes.installation.find import Installation
from tests.helpers import support
from tests.helpers.gateway_home import Scene, ask

PAIRED = json.dumps({"me": {"id": "15551234567:1@s.whatsapp.net"}})
SESSION = "platforms/whatsapp/session"


class Packaged(Scene):
    """With an installation in a folder of the test's own."""

    def hermes_installation(self) -> Installation:
        """It lies beside the home."""
        return Installation(self.version, self.home.path.parent / "hermes", running=True)


@pytest.fixture
def paired(home: Path) -> Path:
    """A home with WhatsApp in order, beside an installation with the bridge."""
    support.put(home / ".env", "WHATSAPP_ENABLED=true\n")
    creds(home, PAIRED)
    packages = home.parent / "hermes" / "lib" / "python3.11" / "site-packages"
    support.put(packages / "scripts" / "whatsapp-bridge" / "bridge.js", "//")
    support.put(packages / "gateway" / "run.py", "")
    support.put(home.parent / "bin" / "node", "", 0o755)
    return home


def creds(home: Path, text: str | bytes, folder: str = SESSION) -> Path:
    """A login that nobody is writing just now."""
    path = support.put(home / folder / "creds.json", text)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


def found(home: Path, path: str | None = None, version: str = "0.19.0") -> list[Finding]:
    """What the check finds."""
    where = {"PATH": path if path is not None else str(home.parent / "bin")}
    return ask("whatsapp-bridge", Packaged(home, where, version=version))[1]


def test_in_order(paired: Path) -> None:
    """Paired, with a bridge and Node.js; also in the old place."""
    assert found(paired) == []
    (paired / "whatsapp").mkdir()
    (paired / SESSION).rename(paired / "whatsapp" / "session")
    assert found(paired) == []


@pytest.mark.parametrize("text", [None, b"", b'{"me":', b"null", b"{}", b'{"noiseKey": {}}'])
def test_not_paired(paired: Path, text: bytes | None) -> None:
    """No login, an empty one, one that is cut off, and pairing that was not finished."""
    if text is None:
        (paired / SESSION / "creds.json").unlink()
    else:
        creds(paired, text)

    [finding] = found(paired)

    assert (finding.code, finding.severity) == ("WA-NOT-PAIRED", "error")
    assert finding.evidence[0].where == f"{SESSION}/creds.json"


def test_being_written(paired: Path) -> None:
    """What the bridge writes this very moment is not judged."""
    os.utime(creds(paired, b""))

    assert found(paired) == []


def test_no_bridge(paired: Path) -> None:
    """A package from PyPI; one that config.yaml names does as well, and from 0.18 on the home's."""
    script = paired.parent / "hermes/lib/python3.11/site-packages/scripts/whatsapp-bridge/bridge.js"
    script.rename(paired.parent / "bridge.js")

    [finding] = found(paired)

    assert (finding.code, finding.subject) == ("WA-NO-BRIDGE", "bridge.js")
    support.put(paired / "scripts" / "whatsapp-bridge" / "bridge.js", "//")
    assert found(paired) == []
    assert [one.subject for one in found(paired, version="0.16.0")] == ["bridge.js"]
    config = (
        f"platforms:\n  whatsapp:\n    extra:\n      bridge_script: {paired.parent}/bridge.js\n"
    )
    support.put(paired / "config.yaml", config)
    assert found(paired, version="0.16.0") == []


def test_a_checkout(paired: Path) -> None:
    """Where Hermes is not among the packages nobody knows what it has."""
    packages = paired.parent / "hermes/lib/python3.11/site-packages"
    (packages / "gateway").rename(packages / "other")
    (packages / "scripts").rename(packages / "others")

    assert found(paired) == []


def test_no_node(paired: Path) -> None:
    """Not on the gateway's PATH; the one that Hermes brings along does as well."""
    [finding] = found(paired, "/nowhere")

    assert (finding.code, finding.subject) == ("WA-NO-BRIDGE", "node")
    support.put(paired / "node" / "bin" / "node", "", 0o755)
    assert found(paired, "/nowhere") == []


def test_not_set_up(home: Path) -> None:
    """Nobody uses it."""
    assert ask("whatsapp-bridge", Packaged(home, {}))[0].status == "skipped"
