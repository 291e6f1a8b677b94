"""PERM-SECRETS and PERM-OWNER of the home itself."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.hermes.supervisors import docker
from hermes_doctor.hermes.supervisors.units import DOCKER, Unit
from tests.helpers import fake_supervision, support
from tests.helpers.gateway_home import Scene, ask


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A healthy home to which other users could get; pytest's own folders are private."""
    folder = Path(tempfile.mkdtemp(prefix="hermes-doctor-test-"))
    folder.chmod(0o755)
    yield support.healthy(folder / ".hermes")
    shutil.rmtree(folder)


def look(home: Path, **variables: str) -> list[tuple[str, str, str]]:
    """Code, severity and subject of what is found."""
    _, findings = ask("home-mode", Scene(home, variables))
    return [(one.code, one.severity, one.subject) for one in findings]


def test_closed(reachable: Path) -> None:
    """As Hermes makes it; what lies inside may be readable then."""
    (reachable / "state.db").chmod(0o644)

    assert look(reachable) == []


@pytest.mark.parametrize(
    ("mode", "severity"), [(0o755, "warning"), (0o711, "warning"), (0o750, "info")]
)
def test_open(reachable: Path, mode: int, severity: str) -> None:
    """Then conversations are open, too."""
    reachable.chmod(mode)
    (reachable / "state.db").chmod(0o644)

    assert look(reachable) == [("PERM-SECRETS", severity, "the home")]


def test_open_with_nothing_to_see(reachable: Path) -> None:
    """A home that can be entered, of closed files."""
    reachable.chmod(0o755)

    assert look(reachable) == []


def test_meant(reachable: Path) -> None:
    """An operator who has set the mode knows it."""
    reachable.chmod(0o755)
    (reachable / "state.db").chmod(0o644)

    assert look(reachable, HERMES_HOME_MODE="0755") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_runs_as_another(reachable: Path) -> None:
    """A gateway of root on the home of somebody else."""
    os.chown(reachable, 4242, 4242)

    class AsRoot(Scene):
        def gateway_user(self):  # type: ignore[no-untyped-def]
            """Root."""
            from hermes_doctor.core.system.mounts import FileUser

            return FileUser(0, frozenset({0}))

    _, findings = ask("home-mode", AsRoot(reachable, {}))

    assert [(one.code, one.severity) for one in findings] == [("PERM-OWNER", "info")]


def container(home: Path, user: str) -> Unit:
    """A container that fails again and again."""
    settings = {"Status": "restarting", "NRestarts": "7", "Id": "4f" * 32}
    return fake_supervision.unit(
        home, kind=DOCKER, name="bot", user=user, state="activating", settings=settings
    )


def test_volume_of_another_user(reachable: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state, the user and the output of the container show why it cannot start."""
    other = os.getuid() + 1
    output = "PermissionError: [Errno 13] Permission denied: '/opt/data/.env'"
    monkeypatch.setattr(docker, "last_output", lambda unit: output)

    _, [finding] = fake_supervision.ask(
        "home-mode", reachable, container(reachable, str(other)), running=False
    )

    assert (finding.code, finding.severity) == ("PERM-OWNER", "error")
    assert [one.what for one in finding.evidence] == [
        f"runs as {other}; restarting, restarted 7 times",
        f"owner {os.getuid()}, mode 0700",
        output,
    ]
    assert f"sudo chown -R {other} {reachable}" in finding.next


def test_volume_of_its_user(reachable: Path) -> None:
    """It fails for another reason; nor is anything known about an image that starts as root."""
    for user in (str(os.getuid()), "", "root"):
        found = fake_supervision.codes(
            "home-mode", reachable, container(reachable, user), running=False
        )
        assert found == []
