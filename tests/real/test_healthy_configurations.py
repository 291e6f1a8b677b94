"""Configurations without a fault: no check has anything to say, and real Hermes resolves them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Finding, Gateway, Severity
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.hermes.knowledge.releases import load_knowledge
from tests.conftest import RELEASES, need_release
from tests.helpers import support
from tests.helpers.given_answers import GivenAnswers
from tests.helpers.one_check import PLUGINS
from tests.helpers.real import resolver_questions
from tests.helpers.real.healthy_homes import HEALTHY, Healthy
from tools import real_home, releases

pytestmark = pytest.mark.real
ELSEWHERE = {
    "databases": "these homes have none; tests/real/test_healthy.py has",
    "gateway": "no gateway runs, and what runs is no matter of configuration",
    "supervision": "no service is installed",
    "logs": "nothing has been logged",
}
"""Groups that ask about something that these homes do not have."""
PLATFORMS = load_knowledge("platforms")["platforms"]
EXCUSED: dict[str, str] = {}
"""Checks by their ids that may speak up, and why; best none."""


class Resting(GivenAnswers):
    """Probes of a home whose gateway does not run, with one release installed."""

    version: str
    place: Path

    def gateway_running(self) -> list[Gateway]:
        """None."""
        return []

    def hermes_installation(self) -> Installation:
        """That release."""
        return Installation(self.version, self.place, running=False)


LIBRARIES = {one["library"] for one in PLATFORMS.values() if "library" in one}


def installed(version: str, folder: Path) -> Path:
    """A release with the libraries of all platforms, as an operator's is who uses them.

    The ones that the tests use are installed without, so here they are the release's own files
    beside folders that only look like the libraries: nothing is imported.
    """
    real = next(releases.python_of(version).parent.parent.glob("lib/python3*/site-packages"))
    packages = folder / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    support.put(folder / "pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n")
    for path in real.iterdir():
        if path.name != "scripts":
            (packages / path.name).symlink_to(path)
    for name in sorted(LIBRARIES - {path.name for path in real.iterdir()}):
        (packages / name).mkdir()
    support.put(packages / "scripts" / "whatsapp-bridge" / "bridge.js", "// the bridge\n")
    return folder


def complaints(home: Path, version: str, place: Path) -> list[str]:
    """What the checks find at warning or above, or cannot tell."""
    checks = [one for one in PLUGINS.checks if one.group not in ELSEWHERE and one.id not in EXCUSED]
    probes = Resting(Home(home))
    probes.version, probes.place = version, place
    with contextlib.closing(probes):
        results, findings = examine(probes, checks)
    said = [_shown(one) for one in findings if one.severity.rank <= Severity.WARNING.rank]
    said += [f"{one.id}: {one.reason}" for one in results if one.status in ("crashed", "unknown")]
    return said


def _shown(finding: Finding) -> str:
    return f"{finding.check}: {finding.code}: {finding.title} {finding.evidence}"


def fitting(version: str) -> dict[str, Healthy]:
    """The configurations that a release knows all settings of."""
    return {name: one for name, one in HEALTHY.items() if one.fits(version)}


@pytest.mark.parametrize("version", releases.ALL)
def test_nothing_to_say(version: str, tmp_path: Path) -> None:
    """Not one finding of warning or above, nor a question without an answer."""
    need_release(version)
    place = installed(version, tmp_path / "hermes")
    said = {}
    for number, (name, one) in enumerate(fitting(version).items()):
        home = tmp_path / str(number) / "home"
        one.write(home, version)
        said[name] = complaints(home, version, place)
        for profile in Home(home).profiles():
            said[f"{name}: {profile.name}"] = complaints(profile, version, place)

    assert {name: found for name, found in said.items() if found} == {}


@pytest.mark.parametrize("version", releases.ALL)
def test_default_home(version: str, tmp_path: Path) -> None:
    """Nor about the home that a release makes for itself."""
    need_release(version)
    home = tmp_path / "home"
    real_home.make(version, home)

    assert complaints(home, version, installed(version, tmp_path / "hermes")) == []


@pytest.mark.wide
@pytest.mark.parametrize("version", RELEASES)
def test_they_are_healthy(version: str, tmp_path: Path) -> None:
    """Real Hermes resolves each of them, and our resolver gives the same answers."""
    need_release(version)
    homes = []
    for number, one in enumerate(fitting(version).values()):
        home = tmp_path / str(number) / "home"
        homes.append((home, one.write(home, version)))
    mine = [
        resolver_questions.ours(resolver_questions.world(home, made, version))
        for home, made in homes
    ]
    real = resolver_questions.theirs(version, tmp_path, homes)

    assert len(real) == len(homes)
    for name, ours, theirs in zip(fitting(version), mine, real, strict=True):
        assert "trouble" not in theirs["main"], f"{name}: {theirs['main']}"
        assert not [one for one in theirs["fallback"] if "trouble" in one], name
        assert resolver_questions.compare(ours, theirs)[1] == {}, name
