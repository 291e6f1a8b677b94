"""working-folder: where commands run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.helpers.check_home import look

ID = "working-folder"


def test_not_there(home: Path, tmp_path: Path) -> None:
    """A folder that is gone, or a file."""
    (tmp_path / "file").touch()
    for name, what in (("gone", "does not exist"), ("file", "is not a folder")):
        config = f"terminal:\n  cwd: {tmp_path / name}\n"

        _, [finding] = look(home, ID, config=config, running=True)

        assert (finding.code, finding.severity) == ("CFG-CWD", "warning")
        assert what in finding.title
        assert finding.evidence[0].where == "config.yaml:2"


def test_without_a_gateway(home: Path, tmp_path: Path) -> None:
    """In a container the folder may be there: nobody knows."""
    _, [finding] = look(home, ID, config=f"terminal:\n  cwd: {tmp_path}/gone\n")

    assert finding.severity == "info"


def test_by_a_variable(home: Path, tmp_path: Path) -> None:
    """MESSAGING_CWD of older set-ups, unless config.yaml says more than that it is open."""
    env = f"MESSAGING_CWD={tmp_path}/gone\n"

    _, [finding] = look(home, ID, env, "terminal:\n  cwd: .\n", running=True)

    assert finding.evidence[0].where == ".env:1"
    assert look(home, ID, env, f"terminal:\n  cwd: {tmp_path}\n", running=True)[1] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a home to somebody else")
def test_closed(home: Path, tmp_path: Path) -> None:
    """A folder that the gateway's user may not enter."""
    closed = tmp_path / "closed"
    (closed / "inside").mkdir(parents=True)
    closed.chmod(0o700)
    os.chown(home, 12345, 12345)

    _, found = look(home, ID, config=f"terminal:\n  cwd: {closed}/inside\n", running=True)

    assert [one.title for one in found] == [
        "the gateway may not enter the working folder of the bot"
    ]


@pytest.mark.parametrize(
    "config",
    [
        "",
        "terminal:\n  cwd: .\n",
        "terminal:\n  cwd: work\n",
        "terminal:\n  cwd: ~nobody/x\n",
        "terminal:\n  cwd: [a]\n",
        "terminal:\n  backend: docker\n  cwd: /workspace\n",
        "terminal: /gone\n",
    ],
)
def test_in_order(home: Path, config: str) -> None:
    """Nothing set, what only the gateway knows, and folders on other machines."""
    assert look(home, ID, config=config, running=True)[1] == []
