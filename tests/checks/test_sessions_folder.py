"""sessions-folder: the folder that a gateway keeps the conversations of the chats in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checks.test_no_platform import talked
from tests.helpers.check_home import TELEGRAM, look

ID = "sessions-folder"


@pytest.mark.parametrize(
    ("version", "running", "severity"),
    [("0.17.0", False, "warning"), ("0.17.0", True, "info"), ("0.19.0", False, "info")],
)
def test_missing(home: Path, version: str, running: bool, severity: str) -> None:
    """Up to 0.17 a start then forgets which chat has which conversation."""
    talked(home, "telegram")

    _, [finding] = look(home, ID, TELEGRAM, version=version, running=running)

    assert (finding.code, finding.severity) == ("SESSION-ROUTE-STALE", severity)
    assert finding.subject == "sessions/"
    assert ("new conversation" in finding.detail) == (severity == "warning")


def test_healthy(home: Path) -> None:
    """The folder is there, or no chat has ever written."""
    assert look(home, ID, TELEGRAM)[0].status == "skipped"
    (home / "sessions").mkdir()
    talked(home, "telegram")

    assert look(home, ID, TELEGRAM)[1] == []
