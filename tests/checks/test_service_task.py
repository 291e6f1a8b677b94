"""GW-WIN-SCHTASK, on what schtasks prints."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.supervisors import windows
from hermes_doctor.supervisors.unit import TASK, Unit
from tests.helpers.fake_supervision import ask, codes, unit
from tests.helpers.one_check import ask as look

GOOD = """<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.4" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <Settings>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>999</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author"><Exec><Command>wscript.exe</Command></Exec></Actions>
</Task>"""
OLD = """<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <Settings>
    <ExecutionTimeLimit>PT72H</ExecutionTimeLimit>
    <StopIfGoingOnBatteries>true</StopIfGoingOnBatteries>
  </Settings>
  <Actions><Exec><Command>C:\\Windows\\System32\\cmd.exe</Command></Exec></Actions>
</Task>"""


def task(home: Path, text: str) -> Unit:
    """A task that Windows describes so."""
    plain = unit(home)._replace(kind=TASK, name="Hermes_Gateway", settings={}, manager=None)
    return windows.with_status(plain, text)


def test_healthy(home: Path) -> None:
    """No task, or the one that a present Hermes writes."""
    assert look("service-task", home)[0].status == "skipped"
    assert codes("service-task", home, task(home, GOOD)) == []


def test_defaults(home: Path) -> None:
    """The defaults of Windows are wrong for a service, written out or not."""
    _, [finding] = ask("service-task", home, task(home, OLD))

    assert (finding.code, finding.severity) == ("GW-WIN-SCHTASK", "warning")
    assert len(finding.evidence) == 4
    assert "72H" in finding.evidence[0].what
    assert codes("service-task", home, task(home, "<Task/>")) == [("GW-WIN-SCHTASK", "warning")]


def test_not_registered(home: Path) -> None:
    """Its launcher lies in the home, the task is gone."""
    gone = task(home, GOOD)._replace(settings={"Registered": "no"})

    assert codes("service-task", home, gone) == [("GW-WIN-SCHTASK", "warning")]
