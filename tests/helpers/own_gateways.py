"""Hide the gateways of other tests, which run at the same time and may use the same tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes import other_homes
from hermes_doctor.diagnosis.probes.other_homes import OtherGateway
from hermes_doctor.hermes.processes.gateway_processes import CommandLines

_real = other_homes.running_elsewhere
_OWN = re.compile(r".*/pytest-\d+/(?:popen-gw\d+/)?[^/]+|/tmp/hd-[^/]+")


def hide_those_of_other_tests() -> None:
    """Let checks see only gateways whose home is in the folder of the same test."""
    other_homes.running_elsewhere = _near


def _near(home: Home, lines: CommandLines) -> Iterator[OtherGateway]:
    folder = _folder(home.path)
    return (one for one in _real(home, lines) if folder is None or _folder(one.home) == folder)


def _folder(path: Path) -> str | None:
    found = _OWN.match(str(path))
    return found[0] if found else None
