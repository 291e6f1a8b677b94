"""Find the name of a time zone from the symlink /etc/localtime."""

from __future__ import annotations

import os


def own_time_zone() -> str:
    """The name of this machine's time zone; empty if it is unknown."""
    try:
        return zone_of_link(os.path.realpath("/etc/localtime"))
    except OSError:
        return ""


def zone_of_link(target: str) -> str:
    """The zone in a path such as /usr/share/zoneinfo/Asia/Shanghai; empty if there is none."""
    name = target.partition("/zoneinfo/")[2]
    return name.removeprefix("posix/").removeprefix("right/")
