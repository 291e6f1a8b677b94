"""Values pass between our processes unchanged, and nothing else passes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.message import Message, text
from hermes_doctor.core.model import Evidence, Finding, Gateway, Report, Severity
from hermes_doctor.core.system import transfer
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.operations.watch.child_process import MODULES
from hermes_doctor.operations.watch.events import EventKind, WatchEvent
from hermes_doctor.operations.watch.state import FailedRepair
from tests.helpers import support
from tests.helpers.watch_parts import AT, finding, report


def passed(value: object) -> object:
    return transfer.parse(transfer.dump(value, MODULES), MODULES)


@pytest.mark.parametrize(
    "value",
    [
        None,
        1.5,
        "words \udcff\n",
        ("a", [1, True], frozenset({"b"})),
        {("A", "b"): FailedRepair(1, 2.0), "x": {}},
        datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        timedelta(seconds=-0.25),
        Path("/home/a"),
        Severity.ERROR,
        Gateway(7, AT, "python", timedelta(1)),
        [WatchEvent(EventKind.HEALED, AT, "t", Severity.INFO, "A", "b", extra={"n": 1})],
    ],
)
def test_equal(value: object) -> None:
    """Each comes back with its type."""
    back = passed(value)
    assert back == value and type(back) is type(value)


def test_a_real_report(home: Path) -> None:
    """All that renderers and the watch read is the same."""
    from hermes_doctor.cli import option_values
    from hermes_doctor.diagnosis.examination import report as reports
    from hermes_doctor.render import document, prometheus

    support.clobber(home / "state.db")
    support.put(home / ".env", b"\xef\xbb\xbf" + support.ENV.encode())
    plugins = option_values.load_plugins(None)
    probes = Probes(Home(home))
    made = reports.report(probes, plugins, plugins.checks)
    probes.close()
    back = passed(made)
    assert isinstance(back, Report) and len(back.findings) >= 2
    assert document.of_report(back) == document.of_report(made)
    assert prometheus.of_reports([back]) == prometheus.of_reports([made])
    assert back._replace(findings=()) == made._replace(
        findings=(), verdict=back.verdict, turned_down=back.turned_down
    )


def test_a_text_keeps_its_template() -> None:
    """A text for people can still be translated; values that may not pass leave the words."""
    made = finding("A")._replace(title=text("{n} of {name}", n=3, name="x"))
    back = passed(made)
    assert back == made and isinstance(back, Finding) and isinstance(back.title, Message)
    assert back.title.template == "{n} of {name}"
    odd = text("{thing} is odd", thing=Odd())
    assert passed(odd) == "an odd thing is odd"


def test_a_template_of_another_process_is_not_filled() -> None:
    """It could ask for a text that fills the memory."""
    data = b'["text", "said", "{n:>99999999999}", ["mapping", ["n", 1]]]'
    assert transfer.parse(data) == "said"


def test_only_named_modules() -> None:
    """The values of others do not pass."""
    event = WatchEvent(EventKind.HEALED, AT, "t")
    with pytest.raises(TypeError, match="may not pass"):
        transfer.dump(event)
    with pytest.raises(ValueError, match="WatchEvent"):
        transfer.parse(transfer.dump(event, MODULES))


class Odd:
    def __str__(self) -> str:
        return "an odd thing"


def test_what_may_not_pass() -> None:
    """An object of any other class is refused, also inside a report."""
    for value in (object(), b"bytes", [Odd()]):
        with pytest.raises(TypeError, match="may not pass"):
            transfer.dump(value)
    with pytest.raises(TypeError, match="may not pass"):
        transfer.dump(report(finding("A")._replace(evidence=(Evidence("a", Odd()),))))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b'["os.system", "x"]',
        b'["Finding", 1]',
        b'["Severity", "awful"]',
        b'["time", "soon"]',
        b'["mapping", [["list"], 1]]',
        b'["text", "{x.__class__}", ["mapping"]]',
        b'["WatchEvent", "healed"]',
        b"[" * 100_000,
    ],
)
def test_bytes_that_nobody_made(data: bytes) -> None:
    """Damaged bytes are an error that the watch expects."""
    with pytest.raises(ValueError, match=r".+"):
        transfer.parse(data)
