"""`--network`: what cannot be reached, and how that is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.diagnosis.probes.network.reach import HostResult, NeededHost
from hermes_doctor.hermes.settings.urls import Endpoint, Proxy
from tests.helpers.gateway_home import QQ, TELEGRAM, Scene, ask

PROXY = Proxy("HTTPS_PROXY", "http", "10.0.0.5", 3128, "user:s3cr3t")


class Asked(Scene):
    """A network with made-up answers."""

    answers: list[HostResult]

    def health_reach(self) -> list[HostResult]:
        """What came back."""
        return self.answers


def answer(
    what: str, host: str, failed: str | None, why: str = "", proxy: Proxy | None = None
) -> HostResult:
    """How far a look at a host came."""
    return HostResult(
        NeededHost(what, Endpoint(host, 443), proxy, True), failed, why, frozenset(), 0.1
    )


def scene(home: Path, *answers: HostResult) -> Asked:
    """A home whose network answers so."""
    made = Asked(home, QQ | TELEGRAM, network=True)
    made.answers = list(answers)
    return made


@pytest.mark.parametrize(
    ("stage", "code"),
    [
        ("name", "NET-DNS"),
        ("connection", "NET-TCP"),
        ("certificate", "NET-TLS"),
        ("proxy", "NET-PROXY"),
    ],
)
def test_stages(home: Path, stage: str, code: str) -> None:
    """Each stage that fails has its code, with the reason and the way that was gone."""
    fine = answer("QQ", "api.sgroup.qq.com", None)
    broken = answer("Telegram", "api.telegram.org", stage, "no answer in time", PROXY)

    result, [finding] = ask("network-reach", scene(home, fine, broken))

    assert result.status == "problem"
    assert (finding.code, finding.severity, finding.subject) == (code, "error", "Telegram")
    assert "no answer in time" in finding.evidence[0].what
    assert "http://10.0.0.5:3128 (HTTPS_PROXY)" in finding.detail
    assert "s3cr3t" not in repr(finding)
    assert "api.telegram.org" in finding.evidence[0].where


def test_one_cause_is_one_finding(home: Path) -> None:
    """A machine without a name server has one problem, not one for each host."""
    answers = [answer(f"P{n}", f"h{n}.example", "name", "no such name") for n in range(12)]

    _, [finding] = ask("network-reach", scene(home, *answers))

    assert finding.title.startswith("no platform and no provider can be reached")
    assert len(finding.evidence) == 8


def test_reachable(home: Path) -> None:
    """Nothing failed."""
    assert ask("network-reach", scene(home, answer("a", "b", None)))[0].status == "ok"


def test_not_asked(home: Path) -> None:
    """Without the option the question is not asked."""
    result, _ = ask("network-reach", Scene(home, QQ))

    assert (result.status, "--network" in (result.reason or "")) == ("skipped", True)
