"""Unit files as systemd reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.hermes.supervisors import units
from hermes_doctor.repair.gateway.service_managers import SystemdManager, SystemdUnit
from tests.helpers import support
from tests.helpers.unit_ends import CRASHED, NEVER, STOPPED, WAITED

UNIT = """
# a comment
[Unit]
Description = Hermes Agent Gateway
[Service]
Environment="HERMES_HOME=/home/alice/my home" PLAIN=1
Environment=EMPTY=
ExecStart=-/opt/hermes/bin/python -m \\
  ; a comment between
  hermes_cli.main gateway run
WorkingDirectory=%h/work
TimeoutStopSec=1min 30s
[X-Other]
Restart=never read
"""


def test_reads(tmp_path: Path) -> None:
    """Sections, comments, lines that go on, quotes, prefixes and specifiers."""
    path = support.put(tmp_path / "x.service", UNIT)

    found = units.load(path, [tmp_path])

    say = {"h": "/home/alice"}
    assert found.program(say) == [
        *("/opt/hermes/bin/python", "-m", "hermes_cli.main", "gateway", "run")
    ]
    assert found.environment(say) == {
        "HERMES_HOME": "/home/alice/my home",
        "PLAIN": "1",
        "EMPTY": "",
    }
    assert units.expand_specifiers(found.last("WorkingDirectory"), say) == "/home/alice/work"
    assert found.last("Restart") == ""
    assert found.files == (path,)


def test_drop_ins(tmp_path: Path) -> None:
    """In the order of their names, the stronger folder first, empty ones taking away."""
    strong, weak = tmp_path / "etc", tmp_path / "lib"
    path = support.put(weak / "hermes-gateway.service", UNIT)
    support.put(weak / "hermes-gateway.service.d/10.conf", "[Service]\nRestart=no\n")
    support.put(strong / "hermes-gateway.service.d/10.conf", "[Service]\nRestart=always\n")
    support.put(strong / "hermes-.service.d/20.conf", "[Service]\nEnvironment=\nEnvironment=A=b\n")
    support.put(strong / "hermes-gateway.service.d/note.txt", "[Service]\nRestart=no\n")
    (strong / "hermes-gateway.service.d/30.conf").symlink_to("/dev/null")

    found = units.load(path, [strong, weak])

    assert found.last("Restart") == "always"
    assert found.environment({}) == {"A": "b"}
    assert [file.name for file in found.files] == ["hermes-gateway.service", "10.conf", "20.conf"]


def test_variables_of_a_file(tmp_path: Path) -> None:
    """What a file of variables says comes last; a missing one says nothing."""
    env = support.put(tmp_path / "vars", "# no\nHERMES_HOME='/srv/hermes'\n; no\nbroken\n")
    text = f"[Service]\nEnvironmentFile=-{env}\nEnvironmentFile=/gone\nEnvironment=HERMES_HOME=/x\n"
    found = units.load(support.put(tmp_path / "x.service", text), [])

    assert found.environment({}) == {"HERMES_HOME": "/srv/hermes"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("1min 30s", 90.0),
        ("1min30s", 90.0),
        ("3min 30s", 210.0),
        ("2h", 7200.0),
        ("500ms", 0.5),
        ("infinity", None),
        ("", None),
        ("soon", None),
        ("5 parsecs", None),
    ],
)
def test_spans(text: str, seconds: float | None) -> None:
    """Times as systemd writes them."""
    assert units.parse_time_span(text) == seconds


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300))
def test_any_text(text: str) -> None:
    """Nothing in a file makes the reader stumble."""
    found: units.Settings = {}
    units.parse(f"[Service]\n{text}", found)
    definition = units.Definition((), found)
    definition.program({})
    units.parse_time_span(text)
    assert all(isinstance(value, str) for values in found.values() for value in values)


def test_not_a_file(tmp_path: Path) -> None:
    """A folder in its place is said to be one; an absent file is absent."""
    (tmp_path / "x.service").mkdir()

    with pytest.raises(CouldNotLook):
        units.load(tmp_path / "x.service", [])
    with pytest.raises(FileNotFoundError):
        units.load(tmp_path / "y.service", [])


@pytest.mark.parametrize("restart", ["always", "on-failure", "no"])
@pytest.mark.parametrize(
    ("changes", "stopped"),
    [
        ({}, True),
        ({"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"}, True),
        ({"Result": "timeout"}, True),
        ({"ActiveState": "deactivating"}, True),
        ({"ActiveState": "active"}, False),
        ({"ActiveState": "activating"}, False),
        ({"Result": "watchdog"}, False),
        (CRASHED, False),
        ({"InactiveExitTimestampMonotonic": "647000000"}, False),  # a later start failed
        (WAITED, True),
        (WAITED | {"ActiveState": "failed"}, False),  # systemd gave it up
        (WAITED | {"StateChangeTimestampMonotonic": "660000000"}, False),  # `reset-failed`
        (NEVER, False),
    ],
)
def test_stopped_on_purpose(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, str],
    stopped: bool,
    restart: str,
) -> None:
    """The order of the ends decides, whatever the restart setting and the exit status are."""
    told = STOPPED | {"Restart": restart} | changes
    monkeypatch.setattr(SystemdManager, "property_of", lambda _, unit, name: told[name])

    unit = SystemdUnit(Home(home), "x.service", SystemdManager(None))

    assert unit.was_stopped_on_purpose() is stopped
