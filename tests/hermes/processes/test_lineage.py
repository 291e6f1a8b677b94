"""Does this process run in a container?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.hermes.processes import lineage

HOST = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n22 27 0:21 / /proc rw - proc proc rw\n"
INSIDE = (
    "1 0 0:1 / / rw - overlay overlay rw\n"
    "9 1 254:0 /var/lib/docker/containers/0/hostname /etc/hostname rw - ext4 /dev/vda rw\n"
)


@pytest.mark.parametrize(
    ("mark", "mounts", "inside"),
    [
        (True, INSIDE, True),
        (True, "", True),  # the mounts cannot be read
        (True, HOST, False),  # a machine whose disk was made from an image
        (False, INSIDE, False),
    ],
)
def test_in_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: bool, mounts: str, inside: bool
) -> None:
    """The mark of an image alone must not hide the containers of a host."""
    monkeypatch.setattr(lineage, "_MARKS", (str(tmp_path) if mark else "/nowhere",))
    monkeypatch.setattr(lineage, "file_text", lambda pid, name: mounts)

    assert lineage.in_container() is inside


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
    assert lineage.own_time_zone() == name
