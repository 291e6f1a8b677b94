"""Skip tests if the machine lacks what they need; in CI, fail them."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

PACKAGES = {
    "age": "age",
    "age-keygen": "age",
    "dbus-daemon": "dbus",
    "docker": "docker.io",
    "dockerd": "docker.io",
    "fish": "fish",
    "git": "git",
    "ip": "iproute2",
    "man": "man-db",
    "mandoc": "mandoc",
    "nagios4": "nagios4-core",
    "negate": "monitoring-plugins-common",
    "prometheus-node-exporter": "prometheus-node-exporter",
    "promtool": "prometheus",
    "restic": "restic",
    "rsync": "rsync",
    "runc": "docker.io",
    "setfacl": "acl",
    "ssh-keygen": "openssh-client",
    "strace": "strace",
    "systemctl": "systemd",
    "systemd-analyze": "systemd",
    "zsh": "zsh",
}
"""The Debian package of each program."""


def missing(why: str) -> NoReturn:
    """Skip the test with the reason; in CI, where everything must be installed, fail it."""
    if os.environ.get("CI"):
        pytest.fail(f"{why}; CI does not skip for that", pytrace=False)
    pytest.skip(why)


def program(name: str) -> str | None:
    """Where a program is; the plugins of monitors are outside the path."""
    return shutil.which(name) or shutil.which(name, path="/usr/lib/nagios/plugins")


def programs(*names: str) -> None:
    """Make sure that these programs are installed. `@pytest.mark.needs("age")` does the same."""
    for name in names:
        if program(name) is None:
            missing(f"{name} is not installed: apt-get install {PACKAGES.get(name, name)}")
