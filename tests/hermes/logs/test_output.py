"""Output that others took down: journald and container engines, in their own words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.hermes.processes import lineage
from hermes_doctor.hermes.supervisors import docker
from hermes_doctor.hermes.supervisors.units import DOCKER, SYSTEMD_SYSTEM, Unit
from tests.helpers import support
from tests.helpers.fake_supervision import unit
from tests.helpers.log_lines import NOON, entries, reading, unread

BEGIN = int(NOON * 1e6)
TRACEBACK = ["Traceback (most recent call last):", '  File "a", line 1', "    x()", "OSError: y"]


@pytest.fixture
def says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put a command on the PATH that answers as recorded, and notes what it was asked."""
    folder = tmp_path / "bin"
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def make(name: str, out: str = "", err: str = "", code: int = 0) -> Path:
        for stream, text in (("out", out), ("err", err)):
            support.put(folder / f"{name}.{stream}", text)
        script = f'#!/bin/sh\necho "$@" >{folder}/asked\ncat {folder}/{name}.out\n'
        support.put(folder / name, f"{script}cat {folder}/{name}.err >&2\nexit {code}\n", 0o755)
        return folder / "asked"

    return make


def record(text: Any, after: float = 0, **more: Any) -> str:
    """A record as `journalctl --output=json` prints it."""
    plain = {
        "__CURSOR": "s=1;i=2",
        "__REALTIME_TIMESTAMP": str(BEGIN + int(after * 1e6)),
        "_BOOT_ID": "0" * 32,
        "_TRANSPORT": "stdout",
        "PRIORITY": "6",
        "SYSLOG_IDENTIFIER": "python",
        "MESSAGE": text,
    }
    return json.dumps(plain | more)


def test_journal(home: Path, says: Callable[..., Path]) -> None:
    """Lines of the log without their time, a traceback in one piece, and what systemd says."""
    systemd = {"_TRANSPORT": "journal", "SYSLOG_IDENTIFIER": "systemd", "PRIORITY": "5"}
    exited = "hermes-gateway.service: Main process exited, code=exited, status=1/FAILURE"
    records = [
        record("[hooks] Loaded hook"),
        record("WARNING [20261115_1] gateway.run: trouble", 1),
        *[record(text, 1.01) for text in TRACEBACK],
        record([72, 255, 105], 2),
        record(None, 3),
        *[record(text, 4) for text in TRACEBACK],
        record(exited, 5, **systemd),
        record("  indented, but not its own", 5.1),
        "garbage",
        "[]",
        '{"__REALTIME_TIMESTAMP": "x"}',
    ]
    asked = says("journalctl", "\n".join(records) + "\n")

    found = entries(home, NOON - 60, until=NOON + 60, units=[unit(home, manager=1000)])

    assert [(one.level, one.logger, one.text, len(one.more)) for one in found] == [
        ("INFO", "", "[hooks] Loaded hook", 0),
        ("WARNING", "gateway.run", "trouble", 4),
        ("INFO", "", "H\ufffdi", 1),
        ("ERROR", "", TRACEBACK[0], 3),
        ("INFO", "systemd", exited, 0),
        ("INFO", "", "  indented, but not its own", 0),
    ]
    assert found[1].session == "20261115_1"
    assert {(one.kind, one.source) for one in found} == {("journal", "journal")}
    words = asked.read_text()
    assert "_SYSTEMD_USER_UNIT=hermes-gateway.service _UID=1000" in words
    assert f"--since=@{NOON - 60:.0f}" in words


def test_journal_of_the_machine(home: Path, says: Callable[..., Path]) -> None:
    """A unit of the machine is asked for by its name."""
    asked = says("journalctl")

    entries(home, units=[unit(home, kind=SYSTEMD_SYSTEM, manager=None)])

    assert "--unit=hermes-gateway.service" in asked.read_text()


@pytest.mark.parametrize(
    ("err", "code", "why"),
    [
        ("No journal files were opened due to insufficient permissions.", 1, "may not be read"),
        (
            "Hint: You are currently not seeing messages from other users and the system.",
            0,
            "may not",
        ),
        ("No journal files were found.", 0, "keeps no records"),
        ("Failed to add match", 1, "failed with 1"),
    ],
)
def test_silent_journal(
    home: Path, says: Callable[..., Path], err: str, code: int, why: str
) -> None:
    """No records for want of rights is not the same as none."""
    says("journalctl", err=err, code=code)

    [gap] = unread(home, units=[unit(home)])

    assert gap.source == "journal of hermes-gateway.service"
    assert why in gap.why


def test_no_command(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its command a source is unread, and it is not asked unless wanted."""
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "could not be run" in unread(home, units=[unit(home)])[0].why
    assert unread(home) == []


def container(home: Path, **changes: Any) -> Unit:
    """A container that runs the gateway."""
    settings = {"Id": "abc123", "Project": "hermes", "Service": "gateway"}
    plain = Unit(DOCKER, "hermes-gateway-1", None, home, 1, "active", settings, {}, None)
    return plain._replace(**changes)


def test_container(home: Path, says: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Both streams of a container in the order of time."""
    out = "2026-11-15T12:00:00.500000001Z banner\n2026-11-15T12:00:09Z bye\nodd\n"
    err = "".join(f"2026-11-15T13:00:02.25+01:00 {text}\n" for text in TRACEBACK)
    asked = says("docker", out, err + "2026-99-15T13:00:02Z odd\n")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")

    found = entries(home, NOON, units=[container(home)])

    assert [(round(one.at - NOON, 3), one.text) for one in found] == [
        *((0.5, "banner"), (2.25, TRACEBACK[0]), (9, "bye"))
    ]
    assert found[1].more == tuple(TRACEBACK[1:])
    assert {one.kind for one in found} == {"stderr"}
    assert asked.read_text().startswith(f"logs --timestamps --since={NOON:.0f} --tail=")
    assert asked.read_text().endswith("abc123\n")


def test_silent_container(
    home: Path, says: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that refuses, none at all, and a container seen from inside."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    says("docker", err="configured logging driver does not support reading", code=1)
    assert "does not give out" in unread(home, units=[container(home)])[0].why
    inside = container(home, settings={}, silence="the restart policy cannot be seen")
    monkeypatch.setattr(lineage, "in_container", lambda: True)
    assert "only be read from outside" in unread(home, units=[inside])[0].why
    monkeypatch.setattr(docker, "engine", lambda: None)
    assert unread(home, units=[container(home, silence="no engine")])[0].why == "no engine"


def test_bounds(home: Path, says: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick look that got as much as it asked for may have missed the oldest."""
    monkeypatch.setattr("hermes_doctor.hermes.logs.supervisor_output.MOST_RECORDS", 3)
    says("journalctl", "".join(record("x", n) + "\n" for n in range(3)))

    found = reading(home, max_bytes=1, units=[unit(home)])

    assert len(list(found)) == 3
    assert [gap.partly for gap in found.unread] == [True]
