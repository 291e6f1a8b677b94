"""drop-blank: the line that erases a variable goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import config_homes, fake_gateway, support
from tests.helpers.fix_contract import Planted

NAME = "OPENROUTER_API_KEY"
"""The sham gateway is started with it."""


def test_cures_and_undoes(home: Path) -> None:
    """Beside a gateway that has the variable; without one there is nothing to see."""
    config_homes.write(home, env=f"A=1\r\n{NAME}=\r\nB=2\r\n")
    with fake_gateway.gateway(home):
        finding = support.finding(support.check(home), "ENV-BLANK")
        assert (finding["subject"], finding["fix"]["id"]) == (NAME, "drop-blank")

        done = support.doctor("fix", "ENV-BLANK", "--apply", "--json", "--home", home)

        assert "ENV-BLANK" not in done.codes, done.out
        assert (home / ".env").read_bytes() == b"A=1\r\nB=2\r\n"
        again = support.doctor("fix", "ENV-BLANK", "--apply", "--json", "--home", home)
        assert again.json["repair"]["runs"] == []
        assert fake_gateway.SECRET not in done.out + again.out
        assert support.doctor("undo", "--yes", "--home", home).code == 0
        assert (home / ".env").read_bytes() == f"A=1\r\n{NAME}=\r\nB=2\r\n".encode()


def test_more_than_one_line(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the value above it or the one of the gateway is meant, a person says."""
    config_homes.Scene(monkeypatch).started_with({NAME: "x"})
    config_homes.write(home, env=f"{NAME}=other\n{NAME}=\n")
    _, [finding] = config_homes.look(home, "env-blanks")
    fix = load.load().fix("drop-blank")
    assert fix is not None

    with pytest.raises(CannotFix, match="more than once"):
        list(fix.plan(Probes(Home(home)), finding))


PLANTED = Planted(
    "ENV-BLANK",
    lambda home: config_homes.write(home, env=f"A=1\r\n{NAME}=\r\nB=2\r\n"),
    files=(".env",),
    beside=fake_gateway.gateway,
)
