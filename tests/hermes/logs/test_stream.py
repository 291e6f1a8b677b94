"""All that is written down about a gateway, as one stream."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.hermes.logs import stream
from hermes_doctor.hermes.logs.entry import LogEntry
from tests.helpers import support
from tests.helpers.log_lines import NOON, entries, line, reading, texts, unread, write

EAST = timezone(timedelta(hours=8))


def iso(at: float) -> str:
    """A time as the JSON files write it."""
    return datetime.fromtimestamp(at, UTC).isoformat()


def test_told_once(home: Path) -> None:
    """What stands in two logs is told once; what was written twice is told twice."""
    twice = [line(NOON - 1, "again", "WARNING")] * 2
    other = line(NOON - 2, "other", "ERROR", "tools.x")
    gateway = [line(NOON - 3, "info"), *twice, line(NOON, "last", "ERROR"), "  more"]
    write(home / "logs" / "gateway.log", gateway, NOON)
    write(home / "logs" / "errors.log", [other, *twice, *gateway[-2:]], NOON)
    write(home / "logs" / "agent.log", [line(NOON - 4, "talk", logger="x"), other, *gateway], NOON)

    found = entries(home)

    assert [one.text for one in found] == ["talk", "info", "other", "again", "again", "last"]
    assert found[-1].more == ("  more",)
    assert texts(home, whole=True) == ["talk", "info", "other", "again", "again", "last"]


def test_told_once_over_a_rotation(home: Path) -> None:
    """One log is rotated earlier than the other."""
    warnings = [line(NOON - 9 + n, f"{n}", "WARNING") for n in range(10)]
    write(home / "logs" / "errors.log", warnings, NOON)
    write(home / "logs" / "gateway.log.1", warnings[:5], NOON - 5)
    write(home / "logs" / "gateway.log", warnings[5:], NOON)

    assert texts(home) == [f"{n}" for n in range(10)]


def test_diary(home: Path) -> None:
    """Of the diary of ends only the tag, the code and the error's name."""
    records = [
        {"ts": iso(NOON - 3), "tag": "gateway.start", "pid": 7, "argv": ["secret"]},
        {"ts": iso(NOON - 2), "tag": "asyncio.run.SystemExit", "code": 75, "traceback": "secret"},
        {
            "ts": iso(NOON - 1),
            "tag": "asyncio.run.exception",
            "exc_type": "ValueError",
            "exc": "secret",
        },
        {"ts": iso(NOON), "tag": "gateway.exit_nonzero", "exc_type": "not a word"},
        {"ts": "never", "tag": "gateway.start"},
        {"ts": iso(NOON), "tag": ["gateway.start"]},
    ]
    lines = [*map(json.dumps, records), "{", "[]", '{"ts": "' + iso(NOON) + '"']
    write(home / "logs" / "gateway-exit-diag.log", lines, NOON)

    found = entries(home)

    assert [one.text for one in found] == [
        "gateway.start",
        "asyncio.run.SystemExit code=75",
        "asyncio.run.exception ValueError",
        "gateway.exit_nonzero",
    ]
    assert [one.level for one in found] == ["INFO", "INFO", "ERROR", "ERROR"]
    assert {one.kind for one in found} == {"exit-diary"}
    assert [one.at for one in found] == [NOON - 3, NOON - 2, NOON - 1, NOON]
    assert "secret" not in repr(found)


def test_other_diaries(home: Path) -> None:
    """Which signal, whether the watchdog fired, and every start."""
    ending = ["=== shutdown diagnostic @ SIGTERM ===", "--- date ---", "2026-11-15T11:59:00Z"]
    write(home / "logs" / "gateway-shutdown-diag.log", [*ending, "root 1 --token=secret"], NOON)
    fired = {"event": "shutdown_watchdog_fired", "fired_at": iso(NOON - 30), "pid": 7}
    lines = [json.dumps(fired), "Thread 0x1 (most recent call first):", '  File "secret"']
    write(home / "logs" / "gateway-shutdown-watchdog.log", lines, NOON)
    write(home / "gateway-starts.log", [f"{NOON - 90000:.6f}", f"{NOON - 10:.6f}", "x"], NOON)

    found = entries(home, NOON - 3600)

    assert [(one.at, one.text) for one in found] == [
        (NOON - 60, "shutdown diagnostic @ SIGTERM"),
        (NOON - 30, "shutdown_watchdog_fired"),
        (NOON - 10, "gateway.start"),
    ]
    assert "secret" not in repr(found)


def test_updates(home: Path) -> None:
    """Every line of an update has the time of its beginning, in the zone of the one who ran it."""
    began = datetime.fromtimestamp(NOON - 30, EAST).replace(tzinfo=None).isoformat()
    lines = ["", "=== hermes update started 2026-01-01T00:00:00 ===", "old", ""]
    lines += [f"=== hermes update started {began} ===", "→ Fetching", "error: no"]
    write(home / "logs" / "update.log", lines, NOON)

    found = entries(home, NOON - 3600)

    assert [one.text for one in found][1:] == ["→ Fetching", "error: no"]
    assert {(one.at, one.kind) for one in found} == {(NOON - 30, "update")}


def test_output_of_s6(home: Path) -> None:
    """What s6-log keeps, with both of its times, rotated; only of this home's own gateway."""
    stamp = f"{datetime.fromtimestamp(NOON - 5, EAST):%Y-%m-%d %H:%M:%S}.250000000  "
    first = [f"{stamp}Traceback (most recent call last):", f'{stamp}  File "a"', f"{stamp}E: x"]
    end = (
        f"{datetime.fromtimestamp(NOON, EAST):%Y-%m-%d %H:%M:%S}.000000000  WARNING gateway.run: y"
    )
    atom = f"@4{int(NOON - 60) + 37:015x}1dcd6500 plain"
    slots = home / "logs" / "gateways"
    write(slots / "default" / "current", [*first, end], NOON)
    write(slots / "default" / f"@{'4' + '0' * 23}.s", [atom], NOON - 50)
    write(slots / "work" / "current", [f"{stamp}of the other"], NOON)
    (home / "profiles" / "work").mkdir(parents=True)

    found = entries(home)

    assert [(one.at, one.level, one.logger, one.text) for one in found] == [
        (NOON - 59.5, "INFO", "", "plain"),
        (NOON - 4.75, "ERROR", "", "Traceback (most recent call last):"),
        (NOON, "WARNING", "gateway.run", "y"),
    ]
    assert found[1].more == ('  File "a"', "E: x")
    assert {one.kind for one in found} == {"stderr"}
    assert texts(home / "profiles" / "work") == ["of the other"]


def test_output_without_times(home: Path) -> None:
    """Of it only the last words count: they are as old as the file."""
    lines = ["old crash", "WARNING gateway.run: known from elsewhere", *_crash(), "Killed"]
    write(home / "logs" / "gateway.error.log", lines, NOON)

    crash, last = entries(home)

    assert (crash.level, crash.at, crash.more[-1]) == ("ERROR", NOON, "ModuleNotFoundError: x")
    assert (last.text, last.kind) == ("Killed", "stderr")
    assert reading(home).where(last) == "logs/gateway.error.log"
    assert entries(home, NOON + 1) == []


def _crash() -> list[str]:
    return ["Traceback (most recent call last):", '  File "a"', "ModuleNotFoundError: x"]


def test_where(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of the line; far behind, that of the byte."""
    lines = [text for n in range(500) for text in (line(NOON - 500 + n, f"{n}"), "more")]
    path = write(home / "logs" / "gateway.log", lines, NOON)
    found = reading(home)
    got = list(found)

    for one in (got[400], got[3], got[0], got[499]):
        number = int(found.where(one).removeprefix("logs/gateway.log:"))
        assert lines[number - 1].endswith(f": {one.text}")
    monkeypatch.setattr(stream, "FAR", 100)
    assert found.where(got[499]) == f"logs/gateway.log@{got[499].offset}"
    assert found.where(LogEntry(NOON, "INFO", "", "x", source="journal")) == "journal"
    monkeypatch.undo()
    path.unlink()
    assert found.where(got[7]) == f"logs/gateway.log@{got[7].offset}"


def test_no_rights(home: Path) -> None:
    """What may not be read is named, with the reason; the rest is read."""
    write(home / "logs" / "gateway.log", [line(NOON, "one")], NOON)
    os.mkfifo(home / "logs" / "errors.log")
    (home / "logs" / "gateway-exit-diag.log").mkdir()
    (home / "logs" / "gateway-stdio.log").mkdir()

    found = reading(home)

    assert [one.text for one in found] == ["one"]
    assert {one.source for one in found.unread} == {
        *("logs/errors.log", "logs/gateway-exit-diag.log", "logs/gateway-stdio.log")
    }
    assert all(one.why and not one.partly for one in found.unread)


@pytest.mark.parametrize("name", ["dashboard.error.log", "dashboard-restart.log"])
def test_output_of_the_dashboard(home: Path, name: str) -> None:
    """What the dashboard wrote without times is read too, as old as its file."""
    text = "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 9119)"
    write(home / "logs" / name, [text], NOON)

    got = list(reading(home))

    assert [(one.text, one.source, one.at) for one in got] == [(text, f"logs/{name}", NOON)]


@pytest.mark.parametrize("what", ["logs", "logs/gateway.log"])
def test_closed_to_us(home: Path, what: str) -> None:
    """A folder that may not be listed, a file that may not be opened."""
    write(home / "logs" / "gateway.log", [line(NOON, "one")], NOON)
    (home / what).chmod(0)
    try:
        if os.access(home / what, os.R_OK):
            pytest.skip("root may read everything")
        gaps = unread(home)
    finally:
        (home / what).chmod(0o700)
    assert gaps[0].source == what
    assert "permission denied" in gaps[0].why


def test_a_folder_that_cannot_be_listed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files are read under their usual names, also those without times."""
    write(home / "logs" / "gateway.log", [line(NOON - 1, "one")], NOON)
    write(home / "logs" / "gateway.error.log", ["ERROR: two"], NOON)

    def refuse(_: Path) -> list[str]:
        raise CouldNotLook("permission denied")

    monkeypatch.setattr(stream, "list_folder", refuse)
    found = reading(home)

    assert [one.text for one in found] == ["one", "ERROR: two"]
    assert [one.source for one in found.unread] == ["logs"]


def test_broken_disk(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that breaks off in the middle is not taken for a short one."""
    write(home / "logs" / "gateway.log", [line(NOON, "x" * 100)] * 9000, NOON)
    real = os.pread

    def fail(fd: int, length: int, start: int) -> bytes:
        if start > 500_000:
            raise OSError(5, "Input/output error")
        return real(fd, length, start)

    monkeypatch.setattr(os, "pread", fail)

    [gap] = unread(home)

    assert gap.partly and "input/output error" in gap.why


def test_nothing_there(tmp_path: Path) -> None:
    """A home without logs has nothing to tell and nothing that could not be read."""
    (tmp_path / "config.yaml").touch()

    assert entries(tmp_path) == []


def test_nothing_is_touched(home: Path) -> None:
    """Reading leaves every byte and every time as it was, and no file of the home open."""
    write(home / "logs" / "gateway.log", [line(NOON, f"{n}") for n in range(3000)], NOON)
    write(home / "gateway-starts.log", [f"{NOON}"], NOON)
    before = support.tree(home)

    found = reading(home)
    for entry in found:
        found.where(entry)
    list(stream.read(Home(home), since=0))
    next(iter(reading(home)))  # left in the middle

    assert support.tree(home) == before
    assert support.open_files(home) == []
