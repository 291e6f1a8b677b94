"""Hermes is called for one home and works on no other: sticky profiles and odd names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.diagnosis.probes.hermes_view import HermesView
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.hermes.supervisors.find import Supervision
from hermes_doctor.hermes.supervisors.systemd import Scope
from hermes_doctor.hermes.supervisors.units import SYSTEMD_USER, Unit, home_of
from hermes_doctor.repair.gateway import control
from hermes_doctor.repair.gateway.detached import Detached
from hermes_doctor.repair.gateway.hermes_command import profile_arguments, unit_name
from hermes_doctor.repair.schedule import choose
from hermes_doctor.repair.steps import machine
from hermes_doctor.repair.steps.machine import InstallService
from tests.helpers import support
from tests.helpers.fake_managers import Straw, command, straw
from tests.helpers.fake_supervision import Told, unit
from tests.helpers.given_answers import GivenAnswers
from tests.helpers.planned_steps import finding, owned, sentences
from tests.helpers.real.gateways import end

RELEASE = Installation("0.19.0", Path("/opt/hermes"), running=False)


@pytest.mark.parametrize(
    ("home", "words", "unit"),
    [
        ("user/.hermes", ["--profile", "default"], "hermes-gateway"),
        ("user/.hermes/profiles/coder", ["--profile", "coder"], "hermes-gateway-coder"),
        ("data", ["--profile", "default"], "hermes-gateway"),
        ("data/profiles/coder", ["--profile", "coder"], "hermes-gateway-coder"),
        ("data/profiles/Bob", [], None),
        ("data/profiles/default", [], None),
        ("data/profiles/" + "x" * 65, [], None),
        ("user/.hermes/inner", [], None),
        ("user/.hermes/inner/profiles/coder", [], None),
    ],
)
def test_words(home: str, words: list[str], unit: str | None, tmp_path: Path) -> None:
    """A root home by the name that each release has for it, a profile by one that it takes."""
    base = tmp_path.resolve()
    assert profile_arguments(Home(base / home), str(base / "user")) == words
    if unit:
        assert unit_name(Home(base / home), str(base / "user")) == f"{unit}.service"


def test_no_word_for_it(tmp_path: Path) -> None:
    """A home inside of the usual one has no name: nothing is called where that was switched."""
    base = tmp_path.resolve()
    support.put(base / ".hermes" / "active_profile", "coder\n")
    assert profile_arguments(Home(base / ".hermes"), str(base)) == ["--profile", "default"]
    with pytest.raises(CannotFix, match="would use the active profile coder"):
        profile_arguments(Home(base / ".hermes" / "inner"), str(base))


def test_background(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway in the background replaces nobody, and is not led to the sticky profile."""
    folder = home.parent / "bin"
    python = support.put(folder / "python", "#!/bin/sh\n", 0o755)
    monkeypatch.setattr("hermes_doctor.repair.gateway.detached.python_of", lambda *_: python)
    service = Detached(Home(home.resolve()), RELEASE)
    words = ["--profile", "default", "gateway", "run"]
    assert service._command() == [str(python), "-m", "hermes_cli.main", *words]
    support.put(home / "active_profile", "coder\n")
    with pytest.raises(CannotFix, match="would run the gateway of the active profile coder"):
        service._command()  # the module is loaded twice, and the second time without the words
    script = support.put(folder / "hermes", f"#!{python}\n", 0o755)
    assert service._command() == [str(python), str(script), *words]


def test_home_of_a_command() -> None:
    """The profile called default is the root home, in a unit as on a command line."""
    words = ["hermes", "--profile", "default", "gateway", "run"]
    for base in ("/data", "/data/profiles/coder"):
        assert home_of(words, {"HERMES_HOME": base}, Path("/user")) == Path("/data")


# -- units ----------------------------------------------------------------------------------------


def test_unit_of_a_switched_home(home: Path) -> None:
    """A unit without a profile would start that of another: it is not stopped for that."""
    plain = Unit(SYSTEMD_USER, "hermes.service", None, home, None, "active", {}, {}, None)
    mine = plain._replace(program=("hermes", "gateway", "run"), manager=os.geteuid())
    named = mine._replace(program=("hermes", "-p", "default", "gateway", "run"))
    twice = mine._replace(program=("python", "-m", "hermes_cli.main", *named.program[1:]))
    control.control_of_unit(Probes(Home(home)), mine)
    support.put(home / "active_profile", "coder\n")
    for one in (mine, twice):
        with pytest.raises(CannotFix, match="would run the gateway of the active profile coder"):
            control.control_of_unit(Probes(Home(home)), one)
    control.control_of_unit(Probes(Home(home)), named)


def test_no_unit_for_a_switched_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed that would run another gateway, or be written over another's unit."""
    monkeypatch.setattr(choose, "refuse_temporary_home", lambda home: None)
    owned(monkeypatch, Detached(Home(home), None))
    found = finding("GW-UNSUPERVISED", "install-service")
    other = unit(home.parent / "other")
    with pytest.raises(CannotFix, match=r"overwrite hermes-gateway\.service"):
        sentences(Told(home, [], True, booted=True, others=(other,)), found)
    support.put(home / "active_profile", "coder\n")
    with pytest.raises(CannotFix, match="would run the gateway of the active profile coder"):
        sentences(Told(home, [], True, booted=True), found)


@pytest.fixture
def units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of units, a manager that lets everything be done, and a release."""
    folder = tmp_path / "units"
    folder.mkdir()
    scope = Scope(os.geteuid(), "alice", tmp_path / "user", (folder,))
    monkeypatch.setattr(machine, "user_scope", lambda uid: scope)
    monkeypatch.setattr(HermesView, "installation", lambda self: RELEASE)
    command(tmp_path / "managers", "systemctl")
    monkeypatch.setenv("PATH", f"{tmp_path / 'managers'}:{os.environ['PATH']}")
    return folder


def installer(units: Path, name: str, home: Path) -> Path:
    """An installer that makes this unit for that home."""
    text = f"[Service]\\nExecStart=/usr/bin/hermes gateway run\\nEnvironment=HERMES_HOME={home}\\n"
    body = f"#!/bin/sh\nprintf '{text}' >{units / name}\n"
    return support.put(units.parent / "installer", body, 0o755)


@pytest.mark.parametrize("fault", ["", "name", "home"])
def test_installed(fault: str, home: Path, units: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit that is not for this home goes again; what was there before stays."""
    support.put(units / "hermes-gateway-old.service", "[Service]\nExecStart=hermes gateway run\n")
    other = support.healthy(home.parent / "other")
    made = "hermes-gateway-coder.service" if fault == "name" else "hermes-gateway.service"
    program = installer(units, made, other if fault == "home" else home)
    monkeypatch.setattr(machine, "python_of", lambda *_: program)
    act = InstallService(Home(home), "hermes-gateway.service")
    kept = ["hermes-gateway-old.service"]
    if fault:
        with pytest.raises(CannotFix, match="Install it yourself"):
            act.do()
    else:
        act.do()
        assert sorted(os.listdir(units)) == [*kept, made]
        act.revert()
    assert os.listdir(units) == kept


@pytest.fixture
def original(tmp_path: Path) -> Iterator[tuple[Straw, subprocess.Popen[bytes]]]:
    """A gateway that runs."""
    made = straw(tmp_path)
    process = made.start()
    yield made, process
    end(process)


def copied(made: Straw, tmp_path: Path) -> Home:
    """Its home, copied while it runs."""
    return Home(Path(shutil.copytree(made.home.path, tmp_path / "copy")).resolve())


class Seen(GivenAnswers):
    """Probes with a release and nobody who looks after it."""

    release = RELEASE

    def hermes_installation(self) -> Installation:
        return self.release

    def gateway_supervision(self) -> Supervision:
        return Supervision(None, (), False, "", (), None)


def test_copied_home(original: tuple[Straw, subprocess.Popen[bytes]], tmp_path: Path) -> None:
    """Hermes would take the original's gateway for its own: nothing is started beside it."""
    made, process = original
    home = copied(made, tmp_path)
    with pytest.raises(CannotFix, match=f"process {process.pid}, the gateway of another"):
        control.gateway_control(Seen(home))
    with pytest.raises(CannotFix, match="gateway of another home"):
        Detached(home, None).start(5)
    assert process.poll() is None
    said = json.loads((home / "gateway_state.json").read_text())
    for changes in ({"gateway_state": "stopped"}, {"start_time": 1}, {"pid": os.getpid()}):
        support.put(home / "gateway_state.json", json.dumps({**said, **changes}))
        with pytest.raises(CannotFix, match="no Python"):
            control.gateway_control(Seen(home))


def test_copied_home_of_an_old_release(
    original: tuple[Straw, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """One that believes only a lock starts beside it."""
    probes = Seen(copied(original[0], tmp_path))
    probes.release = RELEASE._replace(version="0.16.0")
    with pytest.raises(CannotFix, match="no Python"):
        control.gateway_control(probes)
