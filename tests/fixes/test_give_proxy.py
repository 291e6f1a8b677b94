"""Drop-ins for proxies."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.home import Home
from hermes_doctor.model import CannotFix
from hermes_doctor.probes.probes import Probes
from hermes_doctor.render import diff
from hermes_doctor.steps.files import ReplaceFile
from tests.helpers.fix_cycle import SECRET
from tests.helpers.planned_steps import Steady, finding, owned, plan, sentences

FOUND = finding("PROXY-SERVICE", "give-proxy", names=("HTTPS_PROXY",))


@pytest.fixture
def probes(home: Path, monkeypatch: pytest.MonkeyPatch) -> Probes:
    """A gateway under a unit, and a shell without a proxy."""
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    owned(monkeypatch, Steady(home, 7, home.parent))
    return Probes(Home(home))


def test_plan(probes: Probes, monkeypatch: pytest.MonkeyPatch) -> None:
    """As systemd reads it back, this machine excepted; the value is in the file and not shown."""
    monkeypatch.setenv("https_proxy", f'http://me:{SECRET}%40"@proxy:3128')
    monkeypatch.setenv("NO_PROXY", "intranet,localhost")
    file, *_ = steps = plan(probes, FOUND)
    assert isinstance(file, ReplaceFile)
    assert file.data.decode().splitlines()[2:] == [
        f'Environment="HTTPS_PROXY=http://me:{SECRET}%%40\\"@proxy:3128"',
        'Environment="NO_PROXY=intranet,localhost,127.0.0.1,::1"',
    ]
    texts = file.texts()
    assert texts is not None
    shown = [*diff.redacted_diff(*texts), *(step.sentence() for step in steps)]
    assert not [line for line in shown if SECRET in line]


def test_refused(probes: Probes, monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy in this shell, or one that would become a setting of its own."""
    with pytest.raises(CannotFix, match="This shell sets no proxy"):
        sentences(probes, FOUND)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy\nExecStartPre=/bin/false")
    with pytest.raises(CannotFix, match="characters that systemd does not allow"):
        sentences(probes, FOUND)
