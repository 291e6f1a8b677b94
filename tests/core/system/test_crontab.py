"""The crontab of a user: whose it is, and how long we wait for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import crontab
from tests.helpers import fake_crontab

NOBODY = 54321
"""A user id that has no account."""


def test_an_owner_without_an_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The crontab of this user is not taken for that of the owner."""
    fake_crontab.use(tmp_path / "managers", monkeypatch)
    assert len(crontab.read_lines(os.geteuid())) == 3
    with pytest.raises(CouldNotLook, match="The owner of the home has no account here"):
        crontab.read_lines(NOBODY)


def test_reading_is_shorter_than_a_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole `check` takes at most 15 seconds; a repair may wait longer for the program."""
    fake_crontab.use(tmp_path / "managers", monkeypatch)
    real, limits = subprocess.run, []

    def run(*words: Any, **options: Any) -> Any:
        limits.append(options["timeout"])
        return real(*words, **options)

    monkeypatch.setattr(subprocess, "run", run)
    crontab.write_lines(crontab.read_lines())
    assert limits == [5.0, 30.0]
