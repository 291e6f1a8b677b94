"""A check whose subject is absent is skipped, with the reason, and is never imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Status
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.plugins.declare import NEEDS, check, why_absent
from hermes_doctor.diagnosis.probes.probes import Probes


@pytest.fixture
def probes(tmp_path: Path) -> Probes:
    """The probes of a home with no more than a model."""
    (tmp_path / "config.yaml").write_text("model:\n  default: gpt-4o\n")
    return Probes(Home(tmp_path))


@pytest.mark.parametrize("need", [*NEEDS, "platform:telegram"])
def test_an_empty_home_has_none_of_them(probes: Probes, need: str) -> None:
    """Each has a reason."""
    assert why_absent(probes, need)


def test_no_need_is_always_met(probes: Probes) -> None:
    """Most checks need nothing."""
    assert why_absent(probes, "") is None


def test_a_platform_that_is_set_up(probes: Probes) -> None:
    """A token makes a platform, and a bot of its own."""
    (probes.home / ".env").write_text("TELEGRAM_BOT_TOKEN=123456:" + "A" * 35 + "\n")

    assert why_absent(probes, "platform:telegram") is None
    assert why_absent(probes, "bot") is None
    assert why_absent(probes, "env") is None
    assert why_absent(probes, "platform:whatsapp") == "the platform whatsapp is not set up"


def test_the_check_is_skipped_and_not_imported(probes: Probes) -> None:
    """On a home without any of these things."""
    for name in [one for one in sys.modules if one.startswith("hermes_doctor.checks.")]:
        del sys.modules[name]
    checks = [one for one in load.load().checks if one.needs]

    results, findings = examine(probes, checks)

    assert findings == []
    assert {one.status for one in results} == {Status.SKIPPED}
    assert all(one.reason for one in results)
    assert not [one for one in sys.modules if one.startswith("hermes_doctor.checks.")]


def test_an_unknown_need_is_refused() -> None:
    """When the check is declared, not when it runs."""
    with pytest.raises(ValueError, match="needs 'moon'"):
        check(id="x", group="x", codes=["X"], needs="moon")
