"""The examples in docs/history.md are what the command prints."""

from __future__ import annotations

import re
import time
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.operations.history import layout, prune, reading
from hermes_doctor.operations.history.layout import COLUMNS
from hermes_doctor.render import history
from tests.helpers import example_history, support

PAGE = (Path(__file__).parents[2] / "docs" / "history.md").read_text()
NOW = datetime(2026, 11, 17, 16, 0, tzinfo=UTC)
FIRST = date(2026, 10, 19)


def screen(folder: Path, code: str = "") -> str:
    """The screen of the example at a fixed time, with the path of a usual home."""
    home = support.healthy(folder / "home")
    file = folder / "history.db"
    example_history.record(home, file, NOW)
    now, since = int(NOW.timestamp()), int(datetime(2026, 10, 19, tzinfo=UTC).timestamp())
    with reading.opened(file, 1.0) as db:
        rows = reading.rows_of_home(db, file, Home(home), since, now)
    assert rows is not None
    view = history.View(Path("~/.hermes"), rows, since, now, FIRST, code)
    return "\n".join(line.text for line in history.lines(view))


@pytest.mark.sampled
@pytest.mark.parametrize("code", ["", "QQ-TOKEN"])
def test_the_screens(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As printed into a pipe, in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    try:
        shown = screen(tmp_path, code)
    finally:
        monkeypatch.undo()
        time.tzset()
    command = f"$ hermes-doctor history {code}".rstrip()
    [example] = re.findall(rf"^```console\n{re.escape(command)}\n(.*?)\n```", PAGE, re.M | re.S)
    assert shown == example


def test_the_query(tmp_path: Path) -> None:
    """It can be pasted."""
    home, file = support.healthy(tmp_path / "home"), tmp_path / "history.db"
    example_history.record(home, file, datetime.now(UTC))
    [query] = re.findall(r"^```sql\n(.*?)```", PAGE, re.M | re.S)
    with reading.opened(file, 1.0) as db:
        found = {row["code"]: row["times"] for row in db.execute(query)}

    assert found["QQ-TOKEN"] == 3 and found["DB-SCHEMA"] == 1


def test_every_column_is_named() -> None:
    """The table describes each table with all columns that a reader may use."""
    for table, columns in COLUMNS.items():
        [row] = re.findall(rf"^\| `{table}` \| (.*) \|$", PAGE, re.M)
        named = set(re.findall(r"`(\w+)`", row))
        assert named <= {*columns}, table
        if table != "homes":
            assert named | {"id", "home", "check"} >= {*columns}, table


def test_the_numbers() -> None:
    """The limits on the page are those of the code."""
    assert f"{prune.KEEP // 86400} days" in PAGE
    assert layout.longest_gap(100) == 3 * 100 + 60 and "three intervals and a minute" in PAGE
    assert layout.LONGEST_SPACING == 7200 and "no more than two hours" in PAGE
    most = f"{prune.MOST['episodes']:,} episodes and {prune.MOST['marks']:,} marks"
    assert most in PAGE.replace("\n", " ")
    assert f"every {layout.EVERY // 60} minutes" in PAGE
