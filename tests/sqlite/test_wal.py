"""Logs that change while they are read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.sqlite import wal


@pytest.mark.parametrize("left", [0, 1, wal.LOG_HEAD - 1])
def test_emptied_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int) -> None:
    """A checkpoint that empties the log between two looks at it leaves an empty log, no crash."""
    log = tmp_path / "state.db-wal"
    log.write_bytes(b"\0" * 5000)
    real = os.fstat

    def fstat(fd: int) -> os.stat_result:
        found = real(fd)
        os.truncate(log, left)
        return found

    monkeypatch.setattr(os, "fstat", fstat)
    with log.open("rb", 0) as file:
        assert wal.read(file.fileno()) == wal.EMPTY
