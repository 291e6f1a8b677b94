"""Drop-ins for proxies."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.render import diff
from hermes_doctor.repair.steps.files import ReplaceFile
from tests.helpers.fake_managers import asked, on_path
from tests.helpers.fix_contract import ProvedBy
from tests.helpers.fix_cycle import SECRET
from tests.helpers.planned_steps import Steady, finding, owned, plan, sentences
from tests.scenarios.test_steps import apply, item, undo

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


def test_cures_and_undoes(
    home: Path, probes: Probes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is there, a second time it stays as it is, and undo removes it."""
    managers = on_path(tmp_path / "managers", monkeypatch)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    owned(monkeypatch, Steady(home, None, home.parent))
    user = home.parent / ".config"
    assert not user.exists()

    done = apply(home, item(*plan(probes, FOUND)))

    assert done.state == "done", done.note
    [file] = user.rglob("hermes-doctor.conf")
    made = file.read_bytes()
    assert b"HTTPS_PROXY=http://proxy:3128" in made
    with pytest.raises(CannotFix, match="contains this already"):
        plan(probes, FOUND)
    assert file.read_bytes() == made
    assert undo(home, done).state == "done"
    assert not file.exists()
    assert asked(managers) == ["systemctl --user daemon-reload"] * 2


PROVED_BY = ProvedBy(
    "fixes/test_give_proxy.py::test_cures_and_undoes",
    why="It needs a service manager.",
)
