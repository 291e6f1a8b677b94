"""The gateway out of the way while what it runs on is exchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hermes_doctor import services
from hermes_doctor.handover import START_LIMIT, STOP_LIMIT
from hermes_doctor.home import Home
from hermes_doctor.model import CannotFix
from hermes_doctor.probes import Probes


@contextmanager
def down(home: Home, tell: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """Stop it if it runs; whoever comes to the end calls what is given, to start it again.

    A block that is left in another way starts it, too: better the old one than none.
    """
    probes = Probes(home)
    if not probes.gateways():
        yield lambda: None
        return
    service = services.of(probes)
    tell("stopping the gateway")
    service.stop(STOP_LIMIT)
    started = False

    def start() -> None:
        nonlocal started
        if not started:
            started = True
            tell("starting the gateway")
            service.start(START_LIMIT)

    try:
        yield start
    except BaseException:
        try:
            start()
        except CannotFix as why:
            tell(f"the gateway could not be started again: {why}")
        raise
    start()
