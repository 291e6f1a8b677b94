"""Descriptors against their limit, leaks, and memory against the control group's."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.model import Severity, Status
from hermes_doctor.hermes.processes import lineage, process_stat
from hermes_doctor.hermes.processes.process_stat import Group
from tests.helpers import fake_gateway
from tests.helpers.one_check import ask

CHECK = "gateway-resources"


def test_healthy(home: Path) -> None:
    """Some files open are fine; without a gateway there is nothing to ask."""
    assert ask(CHECK, home)[0].status is Status.SKIPPED
    with fake_gateway.gateway(home, open=20):
        result, findings = ask(CHECK, home)
    assert (result.status, findings) == (Status.OK, [])


@pytest.mark.parametrize(
    ("limit", "severity"), [(62, Severity.WARNING), (44, Severity.CRITICAL), (200, None)]
)
def test_descriptors(home: Path, limit: int, severity: Severity | None) -> None:
    """A warning from 70 % on; critical only when hardly any is left."""
    with fake_gateway.gateway(home, open=40, limit=limit):
        findings = ask(CHECK, home)[1]

    assert [one.severity for one in findings] == ([severity] if severity else [])
    for finding in findings:
        assert finding.code == "GW-FD-EXHAUST"
        assert "40 state.db" in finding.evidence[0].what


def test_leak(home: Path) -> None:
    """More than sixty on one database, however far the limit is."""
    with fake_gateway.gateway(home, open=70):
        [finding] = ask(CHECK, home)[1]

    assert (finding.code, finding.severity) == ("GW-FD-EXHAUST", Severity.WARNING)
    assert "state.db" in finding.title


@pytest.mark.parametrize(
    ("used", "severity"), [(50, None), (88, Severity.WARNING), (97, Severity.ERROR)]
)
def test_memory(
    home: Path, used: int, severity: Severity | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against what the control group may use."""
    gigabyte = 1024**3
    group = Group(gigabyte, gigabyte * used // 100, 0)
    monkeypatch.setattr(process_stat, "group_of", lambda _: group)
    with fake_gateway.gateway(home):
        findings = ask(CHECK, home)[1]

    assert [(one.code, one.severity) for one in findings] == (
        [("GW-MEMORY", severity)] if severity else []
    )


def test_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both versions, as the kernel writes them; the tightest limit around counts."""
    monkeypatch.setattr(process_stat, "_ROOT", tmp_path)
    inner = tmp_path / "user.slice" / "gateway.service"
    inner.mkdir(parents=True)
    (inner / "memory.max").write_text("max\n")
    (inner / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
    (inner / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    (tmp_path / "user.slice" / "memory.max").write_text("1000\n")
    (tmp_path / "user.slice" / "memory.current").write_text("900\n")
    (tmp_path / "user.slice" / "memory.stat").write_text("anon 5\ninactive_file 100\n")

    assert process_stat.group_of("0::/user.slice/gateway.service\n") == Group(1000, 800, 2, True)

    old = tmp_path / "memory" / "docker" / "abc"
    old.mkdir(parents=True)
    (old / "memory.limit_in_bytes").write_text("2000\n")
    (old / "memory.usage_in_bytes").write_text("700\n")
    (old / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")

    assert process_stat.group_of("4:memory:/docker/abc\n0::/\n") == Group(2000, 700, 1, False)
    assert process_stat.group_of("nonsense") == Group()


def test_vitals_of_ourselves() -> None:
    """What the kernel says of this very process."""
    import os

    found = process_stat.read_vitals(os.getpid())

    assert (found.uid, found.doing) == (os.geteuid(), "R")
    assert lineage.ancestors(os.getpid())[0].pid == os.getppid()
    assert found.memory > 1024**2
    assert found.environment is not None
    assert not found.halted
