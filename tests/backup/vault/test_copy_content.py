"""Reading the content of copies: how long it may take."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.backup.vault import copy_content
from hermes_doctor.core.file_copies import DatabaseCopy


def test_many_large_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All together get a few seconds: those that are not read by then are kept, unread."""
    copies = [DatabaseCopy(tmp_path / str(number), 1, 10**9 * number) for number in range(12)]
    now = [0.0]

    def slow(_: str, copy: DatabaseCopy, seconds: float) -> DatabaseCopy:
        now[0] += min(seconds, 0.9)
        return copy._replace(rows=1)

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr(copy_content, "with_content", slow)

    found = copy_content.readable_copies("state.db", copies)

    assert {one.path for one in found} == {one.path for one in copies}
    assert now[0] <= copy_content.ALL_SECONDS == 4.0
    read = [one.path.name for one in found if one.rows]
    assert read == ["11", "10", "9", "8", "7"], "the newest are read first"
