"""What every way of owning a gateway shares: whom to stop, when to kill, what proves a start."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.gateway import planned_stop
from hermes_doctor.gateway.copied_home import refuse_namesake
from hermes_doctor.gateway.process_handle import Held, Origin, held, origin
from hermes_doctor.gateway.startup_proof import proven
from hermes_doctor.home import Home
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.probes.pulse import OLD
from hermes_doctor.processes.home_of import works_on
from hermes_doctor.processes.process_stat import own_number
from hermes_doctor.system import progress, time_limits

if TYPE_CHECKING:
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.probes.pulse import Pulse

LOOK_EVERY = 2.0
GRACE, WAKING = 5.0, 20.0
"""Seconds that a loop must stay frozen before it is killed, and that of one held still before."""
SILENCE = OLD
"""The same for a loop without a heartbeat, whose silence we have to watch ourselves."""
DOUBT = 5.0
"""Seconds within which a process that was asked to end says so."""
DEATH = 10.0
"""Seconds within which a killed process must be gone."""


class Owned:
    """The gateway of one home, and whoever owns it. One attempt to stop and to start it a run."""

    keeps = True
    """Whether a gateway is started by a process of the owner's own, and not by one of ours."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._place = _place(home.path)
        self.origin: Origin | None = None
        """How the gateway that we stopped had been started."""
        self._said: list[str] = []
        self._asked: int | None = None
        """The process that was asked to stop."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.describe() == self.describe()

    def __hash__(self) -> int:
        return hash(self.describe())

    # -- what each owner says for itself ---------------------------------------------------

    def describe(self) -> str:
        """What owns the gateway, for the plan."""
        raise NotImplementedError

    def ask_to_stop(self, process: Held) -> None:
        """Let the owner begin to stop it; returns at once."""
        raise NotImplementedError

    def ask_to_start(self) -> None:
        """Let the owner begin to start one; returns at once."""
        raise NotImplementedError

    def trouble(self) -> str | None:
        """Why no gateway will come up any more, once the owner knows."""
        return None

    def restless(self) -> bool:
        """Whether the owner will start a gateway by itself although none runs now."""
        return False

    def loops(self) -> bool:
        """Whether the owner starts a gateway over and over, and none stays."""
        return False

    def ends(self, pid: int) -> bool:  # noqa: ARG002 (most owners end the gateway alone)
        """Whether stopping the gateway ends this process, too."""
        return False

    def laid_down(self) -> bool:
        """Whether somebody told the owner to stop it, and nobody has told it otherwise since."""
        return False

    def refuse(self) -> None:
        """Raise CannotFix where the owner cannot be asked, before anything is done."""

    # -- the contract ----------------------------------------------------------------------

    def notes(self) -> Sequence[str]:
        """What came to light while it was stopped and started."""
        return tuple(self._said)

    def running(self) -> int | None:
        """The gateway of this home; CannotFix when that is not one process."""
        try:
            found = [gateway.pid for gateway in self.probes().gateways()]
        except CouldNotLook as why:
            raise CannotFix(str(why)) from None
        if len(found) > 1:
            listed = " and ".join(map(str, found))
            raise CannotFix(f"{len(found)} gateways run on this home (processes {listed})")
        return found[0] if found else None

    def stop(self, limit: float) -> None:
        """Drain and end the gateway; it is killed only when its loop is proven frozen."""
        pid = self.running()
        if pid is None:
            return
        number = own_number(pid)
        with contextlib.suppress(ProcessLookupError), held(pid) as process:
            if self.running() != pid:  # it ended, and its number may be another's by now
                raise CannotFix(f"process {pid} ended by itself just now; try again")
            if works_on(pid, self.home.path) is False:
                raise CannotFix(
                    f"process {pid} does not hold the lock of this home: it is only starting, or "
                    f"not its gateway; look again in a few minutes"
                )
            self.origin = origin(pid)
            frozen = self._stuck(pid)
            told = datetime.now(UTC)
            self.ask_to_stop(process)
            self._asked = pid
            self._wait(process, frozen, told, limit)
        planned_stop.clear(self.home, number)

    def settled(self, limit: float) -> int | None:
        """Wait for the end of a process that was asked to stop; the one that runs then.

        Also one that an earlier command asked: it says itself that it drains.
        """
        until = time.monotonic() + limit
        doubt = time.monotonic() + time_limits.stretched(DOUBT)
        while (pid := self.running()) is not None:
            ending = pid == self._asked or self.probes().runtime().state == "draining"
            if time.monotonic() >= (until if ending else doubt):
                return pid
            time.sleep(LOOK_EVERY / 4)
        return None

    def asked(self) -> int | None:
        """The process that was asked to stop, whether it has ended or not."""
        return self._asked

    def remember(self, file: Path) -> None:
        """Keep what a later command needs to start it as it was; an owner knows that itself."""

    def recall(self, file: Path) -> None:
        """Know again what an earlier command kept."""

    def start(self, limit: float) -> None:
        """Bring a gateway up and see that it stays; one that somebody else has brought up will do.

        The proof asks for a new process on this very home.
        """
        until = time.monotonic() + limit
        os.close(self.hold())
        if self.running() is None:
            refuse_namesake(self.probes())
            self.ask_to_start()
        try:
            self._said += proven(self, until, old=self._asked)
        except CouldNotLook as why:
            raise CannotFix(f"whether it came up cannot be told: {why}") from None

    def probes(self) -> Probes:
        """Eyes that have seen nothing yet."""
        from hermes_doctor.probes.probes import Probes

        return Probes(self.home)

    def hold(self) -> int:
        """The home by a descriptor; CannotFix when it is not the one that we were made for."""
        try:
            fd = os.open(self.home.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            why = os.strerror(error.errno or 0).lower()
            raise CannotFix(f"the home cannot be opened any more ({why})") from None
        if _place(fd) == self._place:
            return fd
        os.close(fd)
        raise CannotFix("another folder was put in the place of the home meanwhile")

    # -- stopping --------------------------------------------------------------------------

    def _stuck(self, pid: int) -> Pulse | None:
        """What says that the loop of a process is frozen now, or may be."""
        try:
            pulse = self.probes().pulse()
        except CouldNotLook:
            return None
        if pulse is None or pulse.pid != pid or pulse.turns is not False:
            return None
        return pulse if pulse.certain or pulse.mute else None

    def _drains(self, pid: int, told: datetime) -> bool:
        """Whether it said, since it was told to end, that it is about to: so it turned again."""
        runtime = self.probes().runtime()
        mine = runtime.state_owner is not None and runtime.state_owner.pid == pid
        said = runtime.updated_at
        return mine and runtime.state == "draining" and said is not None and said >= told

    def _wait(self, process: Held, frozen: Pulse | None, told: datetime, limit: float) -> None:
        """Wait for the end; only a loop that is frozen still, at every look, is not waited for.

        One that was held or stuck and goes on now finishes its answer: it is a busy one again.
        """
        asked = since = time.monotonic()
        held = frozen is not None and frozen.halted
        while not process.ended(LOOK_EVERY):
            frozen = self._stuck(process.pid)
            if frozen is None or self._drains(process.pid, told):
                since = time.monotonic()
            else:
                held = held or frozen.halted
                spent = time.monotonic() - since
                needed = WAKING if held else GRACE if frozen.certain else SILENCE
                if spent >= needed:
                    more = "" if frozen.certain else f", again and again for {spent:.0f} s"
                    self._kill(process, frozen.what + more)
                    return
                progress.tell(f"watching whether process {process.pid} is stuck", spent / needed)
            if time.monotonic() - asked >= limit:
                raise CannotFix(
                    f"process {process.pid} was asked to end and still works after {limit:g} s; "
                    f"its loop is not proven frozen, so it was not killed"
                )

    def _kill(self, process: Held, proof: str) -> None:
        process.send(signal.SIGKILL)
        if not process.ended(time_limits.stretched(DEATH)):
            raise CannotFix(f"process {process.pid} does not even end when it is killed")
        self._said.append(f"process {process.pid} was killed, since its loop was frozen: {proof}")


def _place(folder: Path | int) -> tuple[int, int, int] | None:
    """What tells one folder from another that bears its name; None when there is none."""
    try:
        st = os.stat(folder)
    except OSError:
        return None
    return st.st_dev, st.st_ino, st.st_uid
