"""Drop-ins for limits; with a real systemd in tests/real/test_steering_systemd.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.repair.gateway.detached import Detached
from hermes_doctor.repair.steps.files import ReplaceFile
from tests.helpers import support
from tests.helpers.fix_contract import ProvedBy
from tests.helpers.planned_steps import Steady, finding, owned, plan, sentences

FOUND = finding("GW-FD-LIMIT-LOW", "raise-limit")
DROP_IN = ".config/systemd/user/hermes-gateway.service.d/hermes-doctor.conf"


def limited(home: Path, pid: int | None, soft: str, hard: str) -> Steady:
    """A unit with these limits."""
    return Steady(home, pid, home.parent, LimitNOFILESoft=soft, LimitNOFILE=hard)


@pytest.mark.parametrize(
    ("hard", "said"), [("524288", "65536:524288"), ("20000", "20000"), ("infinity", "65536")]
)
def test_plan(home: Path, monkeypatch: pytest.MonkeyPatch, hard: str, said: str) -> None:
    """A file of its own, read by systemd, and a restart; as much as the manager may give."""
    owned(monkeypatch, limited(home, 7, "1024", hard))
    file, reload, restart = plan(Probes(Home(home)), FOUND)
    assert isinstance(file, ReplaceFile)
    assert file.path == home.parent / DROP_IN
    assert file.data.decode().endswith(f"[Service]\nLimitNOFILE={said}\n")
    assert "daemon-reload" in reload.sentence() and "restart" in restart.sentence()


def test_what_is_there_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other lines of the file are kept; a gateway that is down is not started for it."""
    support.put(home.parent / DROP_IN, "[Service]\nNice=5\nLimitNOFILE=9\nRestartSec=1")
    owned(monkeypatch, limited(home, None, "9", "524288"))
    file, _ = plan(Probes(Home(home)), FOUND)
    assert isinstance(file, ReplaceFile)
    assert file.data == b"[Service]\nNice=5\nRestartSec=1\nLimitNOFILE=65536:524288\n"


def test_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more to give; no unit to give it to."""
    owned(monkeypatch, limited(home, 7, "1024", "1024"))
    with pytest.raises(CannotFix, match="allows no more than 1024"):
        sentences(Probes(Home(home)), FOUND)
    owned(monkeypatch, Detached(Home(home), None))
    with pytest.raises(CannotFix, match="not as a systemd service"):
        sentences(Probes(Home(home)), FOUND)


PROVED_BY = ProvedBy(
    "real/test_steering_systemd.py::test_under_its_own_unit",
    why="It needs a real gateway under a real systemd.",
)
