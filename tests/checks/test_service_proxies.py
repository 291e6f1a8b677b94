"""PROXY-SERVICE, PROXY-SOCKS and PROXY-LOCALHOST."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.fake_supervision import ask, codes, unit
from tests.helpers.one_check import ask as look

SECRET = "http://me:zQcanaryKx9pLm2Tw@proxy.example:3128"


@pytest.fixture(autouse=True)
def plain_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell without proxies."""
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def test_healthy(home: Path) -> None:
    """No proxy anywhere."""
    assert look("service-proxies", home)[0].status == "skipped"
    assert codes("service-proxies", home, unit(home)) == []


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "all_proxy"])
def test_only_the_shell(home: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Worth a word; a warning as soon as a platform cannot be reached."""
    monkeypatch.setenv(name, SECRET)
    _, [finding] = ask("service-proxies", home, unit(home))
    assert (finding.code, finding.severity, finding.fix) == ("PROXY-SERVICE", "info", "give-proxy")
    assert "zQcanary" not in str(finding)

    soon = datetime.now(UTC) + timedelta(minutes=1)  # after the start of the gateway
    state = {"state": "retrying", "updated_at": soon.isoformat()}
    support.put(home / "gateway_state.json", json.dumps({"platforms": {"telegram": state}}))
    assert codes("service-proxies", home, unit(home)) == [("PROXY-SERVICE", "warning")]
    assert codes("service-proxies", home, unit(home), running=False) == [("PROXY-SERVICE", "info")]


def test_it_has_them(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the unit or in .env, which the gateway loads: both will do."""
    monkeypatch.setenv("HTTPS_PROXY", SECRET)
    assert codes("service-proxies", home, unit(home, environment={"https_proxy": SECRET})) == []

    support.put(home / ".env", f"HTTPS_PROXY={SECRET}\n")
    assert codes("service-proxies", home, unit(home)) == []


def test_nobody_looks_after_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway started from a shell has the variables of a shell."""
    monkeypatch.setenv("HTTPS_PROXY", SECRET)

    assert codes("service-proxies", home) == []


def test_scheme(home: Path) -> None:
    """socks:// is no scheme that Hermes knows; socks5:// is."""
    support.put(home / ".env", "ALL_PROXY=socks://127.0.0.1:1080\n")
    assert codes("service-proxies", home) == [("PROXY-SOCKS", "error")]

    support.put(home / ".env", "ALL_PROXY=socks5://127.0.0.1:1080\n")
    assert codes("service-proxies", home) == []


def test_this_machine(home: Path) -> None:
    """A server on this machine is behind the proxy only where NO_PROXY does not except it."""
    support.put(home / ".env", f"HTTPS_PROXY={SECRET}\n")
    assert codes("service-proxies", home) == []

    local = "model:\n  base_url: http://localhost:11434/v1\n"
    support.put(home / "config.yaml", local)
    assert codes("service-proxies", home) == [("PROXY-LOCALHOST", "warning")]

    support.put(home / ".env", f"HTTPS_PROXY={SECRET}\nNO_PROXY=localhost,127.0.0.1\n")
    assert codes("service-proxies", home) == []
