"""A repair that failed or is unproven never stands beside "working"."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.backup.records.journal import ItemRecord, Journal
from hermes_doctor.core.model import Verdict, VerdictKind
from hermes_doctor.diagnosis.examination.after_repair import judged
from hermes_doctor.render import document
from hermes_doctor.render.repair import result_lines
from tests.helpers.watch_parts import report

FINE = Verdict(VerdictKind.WORKING, "Only 2 checks ran and found no problem.")
NO_REASON = "the check still finds the problem"


def run(outcome: str, reason: str | None = None, *, number: int = 1) -> Journal:
    """A run with one item that ended like this."""
    item = ItemRecord("restart", "QQ-4009", "QQ", "looks", outcome=outcome, reason=reason)
    return Journal(f"run-{number}", "fix", "/home", "", "2026-01-02T03:04:05", items=[item])


def after(*runs: Journal, verdict: Verdict = FINE) -> tuple[str, str, str]:
    """The verdict and headline of the JSON document, and the screen."""
    found = judged(report()._replace(verdict=verdict), runs)
    summary = document.of_report(found)["summary"]
    screen = " ".join(str(line) for line in result_lines(found, runs, ""))
    assert summary["headline"] in screen
    return summary["verdict"], summary["headline"], screen


def test_a_platform_that_is_not_connected() -> None:
    """Neither the document nor the screen says that the bot works."""
    verdict, headline, screen = after(run("not-connected", "QQ: WebSocket closed: code=4009"))

    assert (verdict, headline) == ("unknown", "Not connected yet: QQ.")
    assert "found no problem" not in screen and "Repaired 0 of 1" in screen


def test_a_gateway_that_still_stops() -> None:
    """Its name is not taken for that of a platform."""
    verdict, headline, _ = after(run("not-connected", "the gateway still stops: false failed"))

    assert verdict == "not working"
    assert headline == "Your bot is not working: the gateway still stops."


@pytest.mark.parametrize("outcome", ["failed", "rolled-back", "refused", "not-enough", "planned"])
def test_a_repair_that_failed(outcome: str) -> None:
    """The code is named, although the checks find nothing."""
    assert after(run(outcome, NO_REASON))[:2] == ("unknown", "Not repaired: QQ-4009.")


def test_the_last_repair_decides() -> None:
    """A repair that another round completed leaves the verdict as it is."""
    assert after(run("not-enough"), run("verified", number=2))[0] == "working"
    assert after(run("left"), run("verified", number=2))[0] == "working"
    assert after(run("verified"), run("not-connected", "QQ: closed", number=2))[0] == "unknown"


def test_a_bad_verdict_stays() -> None:
    """What the checks found says more than that the repair failed."""
    bad = Verdict(VerdictKind.NOT_WORKING, "Your bot is not working: QQ rejects the login.")

    assert after(run("failed", NO_REASON), verdict=bad)[:2] == ("not working", bad.headline)


def test_the_gateway_says_it_in_these_words() -> None:
    """The reason of a gateway that still stops begins as expected."""
    from hermes_doctor.diagnosis.examination import after_repair
    from hermes_doctor.repair.transaction import gateway

    assert f'"{after_repair.STILL_STOPS}: ' in Path(gateway.__file__).read_text()
