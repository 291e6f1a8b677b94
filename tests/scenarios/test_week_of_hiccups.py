"""A week of a real gateway whose network and model had short hiccups gives no open problem.

The lines are those of a real gateway, recorded by tests/helpers/real/hiccups.py; whole hiccups are
dated again.
"""

from __future__ import annotations

import itertools
import re
import tarfile
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest

from tests.helpers import one_check, support

RECORDED = Path(__file__).parents[1] / "data" / "logs" / "hiccups-0.19.0.tar.xz"
FORM = "%Y-%m-%d %H:%M:%S"
STAMP = re.compile(rb"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?=,\d{3} )", re.MULTILINE)
HOUR, DAY = 3600.0, 86_400.0
APP = re.compile(rb"\[QQBot:(\d+)\]")


@cache
def segments() -> dict[str, dict[str, bytes]]:
    """Return the lines of each hiccup, by the file that has them."""
    found: dict[str, dict[str, bytes]] = defaultdict(dict)
    with tarfile.open(RECORDED) as archive:
        for member in archive.getmembers():
            segment, _, file = member.name.partition("/")
            content = archive.extractfile(member)
            assert content is not None
            found[segment][file] = content.read()
    return found


def dated(segment: str, end: float) -> Iterator[tuple[str, bytes]]:
    """Yield the lines of a hiccup for each file, moved so that the last one is written then."""
    files = segments()[segment]
    last = max(moment(one) for lines in files.values() for one in STAMP.findall(lines))
    shift = timedelta(seconds=round(end - last))

    def moved(match: re.Match[bytes]) -> bytes:
        at = datetime.strptime(match[1].decode(), FORM).replace(tzinfo=UTC) + shift
        return at.strftime(FORM).encode()

    for file, lines in files.items():
        yield file, STAMP.sub(moved, lines)


def moment(stamp: bytes) -> float:
    """Return the time that a line begins with."""
    return datetime.strptime(stamp.decode(), FORM).replace(tzinfo=UTC).timestamp()


def week(home: Path, *, every: float, last: str = "none") -> None:
    """Write a week of hiccups into the logs of a home; the last one ended some minutes ago."""
    now = time.time()
    logs: dict[str, bytes] = defaultdict(bytes)
    for file, lines in dated("start", now - 7 * DAY):
        logs[file] += lines
    names = itertools.cycle(one for one in sorted(segments()) if one != "start")
    count = int(7 * DAY / every)
    for ago in (every * number + 600.0 for number in range(count - 1, -1, -1)):
        for file, lines in dated(next(names) if ago > every else last, now - ago):
            logs[file] += lines
    for file, lines in logs.items():
        support.put(home / "logs" / file, lines)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose QQ bot is the recorded one, on a machine in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    made = support.healthy(tmp_path / "home")
    app = APP.search(segments()["start"]["agent.log"])
    assert app is not None
    env = made / ".env"
    support.put(env, f"{env.read_text()}QQ_APP_ID={app[1].decode()}\nQQ_CLIENT_SECRET=abc\n")
    yield made
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("every", [12 * HOUR, 4 * HOUR, HOUR])
@pytest.mark.parametrize("last", ["none", "no-dns", "model-timeout"])
def test_no_open_problem(home: Path, every: float, last: str) -> None:
    """However often they come, hiccups that pass are nothing to do something about."""
    week(home, every=every, last=last)
    result, findings = one_check.ask("log-rules", home)

    assert result.status in ("ok", "problem"), result
    serious = [one for one in findings if one.severity.value != "info"]
    assert [(one.code, str(one.title), one.detail) for one in serious] == []


def test_the_last_one_lasts(home: Path) -> None:
    """If the connection does not come back, it is a problem: the lines are understood."""
    week(home, every=4 * HOUR)
    failed = [
        f"{datetime.fromtimestamp(time.time() - ago, UTC):{FORM}},000 WARNING "
        "gateway.platforms.qqbot.adapter: [QQBot:1] Reconnect failed: Failed to get QQ Bot "
        "gateway URL: [Errno -3] Temporary failure in name resolution\n"
        for ago in (590, 400, 200, 100, 20)
    ]
    for file in ("agent.log", "errors.log", "gateway.log"):
        path = home / "logs" / file
        support.put(path, path.read_bytes() + "".join(failed).encode())
    _, findings = one_check.ask("log-rules", home)

    assert {"NET-DNS", "PLATFORM-DOWN"} & {
        one.code for one in findings if one.severity.value == "error"
    }
