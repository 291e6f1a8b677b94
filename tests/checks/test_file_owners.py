"""PERM-OWNER: files that the gateway may not read or write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.diagnosis.probes.file_permissions import OwnerScan
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from tests.helpers import fix_cycle, support
from tests.helpers.one_check import ask

USER = 4242
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")


@pytest.fixture
def theirs(home: Path) -> Path:
    """A home of another user."""
    support.put(home / "cron/jobs.json", "{}")
    for path in (home, *home.rglob("*")):
        os.chown(path, USER, USER)
    home.parent.chmod(0o755)
    return home


def test_healthy(home: Path) -> None:
    """One's own files, whatever their mode."""
    (home / "config.yaml").chmod(0o400)

    result, findings = ask("file-owners", home)

    assert (result.status, findings) == ("ok", [])


def test_too_many_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick check names the option with which it checks more; a deep one has no such advice."""
    monkeypatch.setattr(GatewayView, "file_owners", lambda _: OwnerScan((), 4001, whole=False))

    quick, deep = (ask("file-owners", home, deep=deep)[0].reason for deep in (False, True))

    assert quick == "checked only the first 4001 files; --deep checks more of them"
    assert deep == "checked only the first 4001 files"


@ROOT_ONLY
@pytest.mark.parametrize(
    ("name", "mode", "severity"),
    [
        ("auth.json", 0o600, "error"),
        ("config.yaml", 0o644, "error"),
        ("cron/jobs.json", 0o644, "error"),
        ("memories/MEMORY.md", 0o644, "warning"),
    ],
)
def test_left_by_root(theirs: Path, name: str, mode: int, severity: str) -> None:
    """What a command under sudo or docker exec left."""
    path = support.put(theirs / name, "x", mode)
    os.chown(path.parent, USER, USER)
    os.chown(path, 0, 0)

    result, [finding] = ask("file-owners", theirs)

    assert result.status == "problem"
    assert (finding.code, finding.severity, finding.subject) == ("PERM-OWNER", severity, name)
    assert ("read" in finding.title) is (mode == 0o600)


@ROOT_ONLY
def test_open_to_all(theirs: Path) -> None:
    """What everybody may write, the gateway may too; databases are told elsewhere."""
    os.chown(support.put(theirs / "note", "x", 0o666), 0, 0)
    os.chown(theirs / "state.db", 0, 0)

    assert ask("file-owners", theirs)[1] == []


@ROOT_ONLY
def test_given_back(theirs: Path) -> None:
    """The fix gives it to the home's owner; twice is once."""
    path = support.put(theirs / "auth.json", '{"providers": {}}\n')
    os.chown(path, 0, 0)

    fix_cycle.cure(theirs, "PERM-OWNER", "give-back-owner", "auth.json")

    assert path.stat().st_uid == USER


@ROOT_ONLY
def test_a_folder_is_left_to_the_operator(theirs: Path) -> None:
    """A folder of root's is named, without a fix."""
    folder = theirs / "sessions"
    folder.mkdir(mode=0o755)

    _, [finding] = ask("file-owners", theirs)

    assert (finding.subject, finding.fix) == ("sessions", None)
