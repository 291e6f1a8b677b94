"""CRON-TICKER-DEAD from the marks that the ticker leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import stored, support
from tests.ticking import findings, jobs, running, ticked


@pytest.mark.parametrize(
    ("gateway", "beat", "success", "found"),
    [
        (60, 1, 1, False),
        (60, 30, 30, True),
        (60, 1, 30, True),
        (2, 30, 30, False),
        (None, 9, 9, False),
    ],
)
def test_ticker(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    gateway: float | None,
    beat: float,
    success: float,
    found: bool,
) -> None:
    """Dead, failing, alive, too young to tell, and no gateway at all."""
    running(monkeypatch, gateway)
    ticked(home, beat, success)
    jobs(home, stored.job("a"))

    said = findings("cron-ticker", home)

    assert [one.code for one in said] == (["CRON-TICKER-DEAD"] if found else [])
    for one in said:
        assert one.severity == "error"
        assert (one.fix == "restart-gateway") is (beat > 5)


def test_no_sign(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases before 0.18 leave no marks, and another provider begins jobs in its own way."""
    running(monkeypatch, 60)
    assert findings("cron-ticker", home) == []
    ticked(home, 30, 30)
    support.put(home / "config.yaml", "cron: {provider: chronos}\n")
    assert findings("cron-ticker", home) == []
