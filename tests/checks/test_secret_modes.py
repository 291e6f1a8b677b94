"""PERM-SECRETS: who can read the files that hold secrets."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CheckResult, Finding, Severity, Status
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import support


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A healthy home that other users can get to; pytest's own folders are private."""
    folder = Path(tempfile.mkdtemp(prefix="hermes-doctor-test-"))
    folder.chmod(0o755)
    home = support.healthy(folder / ".hermes")
    home.chmod(0o755)
    yield home
    shutil.rmtree(folder)


def look(home: Path) -> tuple[CheckResult, list[Finding]]:
    """What this one check says about a home."""
    checks = [check for check in load.load().checks if check.id == "secret-modes"]
    [result], findings = examine(Probes(Home(home)), checks)
    return result, findings


SECRETS = [
    ".env",
    "auth.json",
    "webhook_subscriptions.json",
    "response_store.db",
    "response_store.db-wal",
    "response_store.db-shm",
    "response_store.db-journal",
    "state-snapshots/s1/.env",
    "state-snapshots/s1/auth.json",
    "backups/pre-update.zip",
]


@pytest.mark.parametrize("name", SECRETS)
def test_open_to_all(reachable: Path, name: str) -> None:
    """Every file that holds secrets is an error when every user can read it."""
    path = support.put(reachable / name, b"canary", 0o644)
    for folder in path.relative_to(reachable).parents:
        (reachable / folder).chmod(0o755)

    result, [finding] = look(reachable)

    assert result.status is Status.PROBLEM
    assert (finding.code, finding.severity) == ("PERM-SECRETS", Severity.ERROR)
    assert (finding.subject, finding.fix) == (name, "tighten-modes")
    assert finding.evidence[0].what == "mode 0644"
    assert "canary" not in str(finding)


MODES = {
    0o600: None,
    0o400: None,
    0o700: None,
    0o604: Severity.ERROR,
    0o666: Severity.ERROR,
    0o640: Severity.WARNING,
    0o660: Severity.WARNING,
    0o620: Severity.WARNING,
    0o602: Severity.ERROR,
}


@pytest.mark.parametrize("mode", MODES, ids=oct)
def test_modes(reachable: Path, mode: int) -> None:
    """The severity follows who can read: everybody, the group, or nobody else in fact."""
    (reachable / ".env").chmod(mode)

    _, findings = look(reachable)

    assert [finding.severity for finding in findings] == [s for s in [MODES[mode]] if s]


def test_protected_by_the_folder(reachable: Path) -> None:
    """A folder that keeps others out makes it information; the fix is offered all the same."""
    (reachable / ".env").chmod(0o644)
    reachable.chmod(0o700)

    result, [finding] = look(reachable)

    assert result.status is Status.OK
    assert (finding.severity, finding.fix) == (Severity.INFO, "tighten-modes")


def test_folder_open_to_the_group(reachable: Path) -> None:
    """A folder that lets the group through and nobody else leaves a warning."""
    (reachable / ".env").chmod(0o644)
    reachable.chmod(0o750)

    _, [finding] = look(reachable)

    assert finding.severity is Severity.WARNING


def test_passable_but_not_listable(reachable: Path) -> None:
    """A folder that can be passed but not listed protects nothing: the name is known."""
    (reachable / ".env").chmod(0o644)
    reachable.chmod(0o711)

    _, [finding] = look(reachable)

    assert finding.severity is Severity.ERROR


def test_backup_beside_the_home(reachable: Path) -> None:
    """`hermes backup` writes its zip beside the home."""
    support.put(reachable.parent / "hermes-backup-2026-11-15.zip", b"PK", 0o644)

    _, [finding] = look(reachable)

    assert finding.severity is Severity.ERROR
    assert finding.subject.endswith("/hermes-backup-2026-11-15.zip")


def test_symlink(reachable: Path) -> None:
    """What counts is the file that a symlink leads to."""
    real = support.put(reachable.parent / "dotfiles" / "env", b"A=1\n", 0o644)
    real.parent.chmod(0o755)
    (reachable / ".env").unlink()
    (reachable / ".env").symlink_to(real)

    _, [finding] = look(reachable)

    assert finding.severity is Severity.ERROR
    assert finding.fix == "tighten-modes"


def test_symlinks_that_lead_nowhere(reachable: Path) -> None:
    """A dangling link and a loop hold no secret."""
    (reachable / ".env").unlink()
    (reachable / ".env").symlink_to("nowhere")
    (reachable / "auth.json").unlink()
    (reachable / "auth.json").symlink_to("auth.json")

    result, findings = look(reachable)

    assert (result.status, findings) == (Status.OK, [])


def test_other_files_are_not_secret(reachable: Path) -> None:
    """Files without secrets may be read, and a folder under the name of one is none."""
    (reachable / "config.yaml").chmod(0o644)
    (reachable / "webhook_subscriptions.json").mkdir()
    support.put(reachable / "backups" / "notes.txt", b"x", 0o644)

    result, findings = look(reachable)

    assert (result.status, findings) == (Status.OK, [])


def test_a_managed_home_lets_its_group_read(reachable: Path) -> None:
    """It is set up so; what everybody can read is wrong there as well."""
    support.put(reachable / ".managed", "")
    (reachable / ".env").chmod(0o640)

    _, [finding] = look(reachable)

    assert (finding.severity, finding.fix) == (Severity.INFO, None)
    (reachable / ".env").chmod(0o644)
    _, [finding] = look(reachable)
    assert finding.severity is Severity.ERROR
