"""The gateway out of the way while what it runs on is exchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hermes_doctor import services
from hermes_doctor.handover import START_LIMIT, STOP_LIMIT
from hermes_doctor.home import Home
from hermes_doctor.model import CannotFix
from hermes_doctor.probes import Probes
from hermes_doctor.updating.records import Records, Update


@contextmanager
def down(home: Home, update: Update, tell: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """Stop it if it runs; whoever comes to the end calls what is given, to start it again.

    A block that is left in another way starts it, too: better the old one than none. The record
    says that it was stopped, so that the next run starts it where this one is killed.
    """
    records = Records(home)
    probes = Probes(home)
    if probes.gateways():
        service = services.of(probes)
        tell("stopping the gateway")
        update.down = True
        records.save(update)
        service.stop(STOP_LIMIT)
    elif not update.down:
        yield lambda: None
        return
    else:
        service = services.of(probes)

    def start() -> None:
        if update.down:
            tell("starting the gateway")
            if not Probes(home).gateways():
                service.start(START_LIMIT)
            update.down = False
            records.save(update)

    try:
        yield start
    except BaseException:
        try:
            start()
        except CannotFix as why:
            tell(f"the gateway could not be started again: {why}")
        raise
    start()
