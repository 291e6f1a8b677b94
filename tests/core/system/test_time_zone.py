"""The name of a time zone, from the path that /etc/localtime leads to."""

from __future__ import annotations

import os

import pytest

from hermes_doctor.core.system import time_zone


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("/usr/share/zoneinfo/Asia/Shanghai", "Asia/Shanghai"),
        ("../usr/share/zoneinfo/posix/Europe/Berlin", "Europe/Berlin"),
        ("/var/db/timezone/zoneinfo/right/UTC", "UTC"),
        ("/etc/localtime", ""),
    ],
)
def test_the_zone_of_this_machine(monkeypatch: pytest.MonkeyPatch, target: str, name: str) -> None:
    """A copied file in place of a symlink names no zone."""
    monkeypatch.setattr(os.path, "realpath", lambda path: target)
    assert time_zone.own_time_zone() == name
