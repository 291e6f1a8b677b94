"""memory-plugin: a plugin in config.yaml that is not installed, which Hermes does not log."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.model import Finding
from hermes_doctor.diagnosis.probes.hermes_view import HermesView
from hermes_doctor.hermes.installation.packages import Packages
from tests.helpers import support
from tests.helpers.check_home import look

ID = "memory-plugin"
SET = "memory:\n  provider: my-memory\n"


def found(home: Path, config: str = SET) -> list[Finding]:
    """Return the findings on a home with these settings."""
    return look(home, ID, "", config)[1]


def test_missing(home: Path) -> None:
    """The title names it."""
    [finding] = found(home)
    assert (finding.code, finding.severity) == ("MEM-PROVIDER", "warning")
    assert finding.title == 'the memory plugin "my-memory" is not installed'
    assert finding.evidence[0].where == "config.yaml:2"


def test_a_long_name(home: Path) -> None:
    """The title stays short."""
    [finding] = found(home, f"memory:\n  provider: {'m' * 60}\n")
    assert len(finding.title) <= 60


@pytest.mark.parametrize("provider", ["", "honcho", "none", "''", "[a]", "'a b'"])
def test_nothing_to_say(home: Path, provider: str) -> None:
    """It is in every release, switched off, or no name."""
    assert found(home, f"memory:\n  provider: {provider}\n") == []
    assert found(home, "memory: x\n") == []


def test_in_the_home(home: Path) -> None:
    """Hermes loads plugins from the folder plugins."""
    support.put(home / "plugins/my-memory/__init__.py", "class M(MemoryProvider): ...\n")
    assert found(home) == []


def test_as_a_package(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newer releases also load it from an installed Python package."""
    info = tmp_path / "my_memory-1.0.dist-info"
    support.put(info / "entry_points.txt", "[x]\na = b\n")
    packages = Packages(tmp_path, frozenset({info.name}), alone=True)
    monkeypatch.setattr(HermesView, "packages", lambda _: packages)
    assert len(look(home, ID, "", SET, version="0.20.5")[1]) == 1
    support.put(
        info / "entry_points.txt", "[hermes_agent.memory_providers]\nmy-memory = my_memory:M\n"
    )
    assert look(home, ID, "", SET, version="0.20.5")[1] == []
    monkeypatch.setattr(HermesView, "packages", lambda _: None)
    support.put(info / "entry_points.txt", "")
    assert look(home, ID, "", SET, version="0.20.5")[1] == [], "it cannot be known"
