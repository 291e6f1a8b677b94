"""The base class of gateway control: safe stopping and proven starting, for every supervisor."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.message import duration, listed
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system import disk, limits, progress
from hermes_doctor.diagnosis.probes.next_start import fails_repeatedly
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.probes.pulse import OLD, Pulse
from hermes_doctor.hermes.processes.home_of import holds_lock_in
from hermes_doctor.hermes.processes.process_stat import pid_in_namespace
from hermes_doctor.repair.gateway import process_handle
from hermes_doctor.repair.gateway.hermes_command import refuse_copied_home
from hermes_doctor.repair.gateway.process_handle import (
    Origin,
    ProcessHandle,
    open_process,
    read_origin,
)
from hermes_doctor.repair.gateway.startup_proof import StoppedAgain, wait_for_proof

STARTS = "gateway-starts.log"
"""The latest starts, which Hermes counts."""
LOOK_EVERY = 2.0
GRACE, WAKING = 5.0, 20.0
"""Seconds that an event loop must stay frozen before its process is killed; the second value is
for a process that was suspended."""
SILENCE = OLD
"""The same for an event loop without a heartbeat, which we have to watch ourselves."""
DOUBT = 5.0
"""Seconds within which a process that was asked to stop reports that it drains."""
DEATH = 10.0
"""Seconds within which a killed process must be gone."""


class GatewayControl:
    """Gateway control for one home; each subclass works through one kind of supervisor.

    The contract: `stop` returns only when the process is gone, and `start` only when a new one
    has stayed up and works on this home; otherwise both raise `CannotFix` within `limit` seconds.
    Neither ever acts by process name or on the process of another home.
    """

    keeps = True
    """Whether the supervisor starts the gateway, and not a process of ours."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._place = _place(home.path)
        self.origin: Origin | None = None
        """How the gateway that we stopped had been started."""
        self._said: list[str] = []
        self._asked: int | None = None
        """The process that was asked to stop."""
        self._missing: dict[str, str] = {}
        self.looped: bool | None = None
        """Whether the gateway was in a crash loop when it was stopped or started."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.describe() == self.describe()

    def __hash__(self) -> int:
        return hash(self.describe())

    def describe(self) -> str:
        """Say how the gateway is started, such as `in the background`; for the plan."""
        raise NotImplementedError

    def command(self, *, restart: bool) -> str:  # noqa: ARG002 (many have no command for it)
        """The command by which a person would do the same; empty if there is none."""
        return ""

    def ask_to_stop(self, process: ProcessHandle) -> None:
        """Ask the supervisor to stop the gateway; return at once."""
        raise NotImplementedError

    def ask_to_start(self) -> None:
        """Ask the supervisor to start a gateway; return at once."""
        raise NotImplementedError

    def trouble(self) -> str | None:
        """Why the start has failed for good, if the supervisor knows; else None."""
        return None

    def restless(self) -> bool:
        """Whether the supervisor will start a gateway by itself although none runs now."""
        return False

    def comes_back(self) -> bool:
        """Whether something else starts the gateway again that `stop` has stopped."""
        return False

    def is_restart_looping(self) -> bool:
        """Whether the supervisor restarts the gateway again and again, and none stays up."""
        return False

    def also_stops(self, pid: int) -> bool:  # noqa: ARG002 (most supervisors stop only the gateway)
        """Whether stopping the gateway also stops this process."""
        return False

    def was_stopped_on_purpose(self) -> bool:
        """Whether the gateway was stopped through its supervisor and not started since."""
        return False

    def refuse(self) -> None:
        """Raise CannotFix if we cannot control the supervisor, before anything is done."""

    def notes(self) -> Sequence[str]:
        """Notes from stopping and starting, for the receipt."""
        return tuple(self._said)

    def unconnected(self) -> Mapping[str, str]:
        """The platforms that did not connect after the last start, with their reasons."""
        return self._missing

    def running(self) -> int | None:
        """The process id of this home's gateway, or None; raise CannotFix if there are several."""
        try:
            found = [gateway.pid for gateway in self.probes().gateway.running()]
        except CouldNotLook as why:
            raise CannotFix(str(why)) from None
        if len(found) > 1:
            raise CannotFix(
                "{number} gateways run on this home (processes {pids}). Stop all but one first.",
                number=len(found),
                pids=listed([*map(str, found)]),
            )
        return found[0] if found else None

    def stop(self, limit: float) -> None:
        """Drain and stop the gateway; it is killed only if its event loop is proven frozen."""
        self.note_loop()
        pid = self.running()
        if pid is None or (self.waits(pid) and not self.keeps):
            return
        number = pid_in_namespace(pid)
        with contextlib.suppress(ProcessLookupError), open_process(pid) as process:
            if self.running() != pid:  # it ended, and its id may be reused by now
                raise CannotFix("Process {pid} has just stopped by itself. Try again.", pid=pid)
            self.origin = read_origin(pid)
            frozen = self._stuck(pid)
            told = datetime.now(UTC)
            self.ask_to_stop(process)
            self._asked = pid
            self._wait(process, frozen, told, limit)
        process_handle.clear_announcement(self.home, number)

    def waits(self, pid: int) -> bool:
        """Whether a process has started but does not work yet: it does not hold the lock."""
        return holds_lock_in(pid, self.home.path) is False

    def note_loop(self) -> None:
        """Note whether the gateway is in a crash loop, as long as that can be seen."""
        probes = self.probes()
        with contextlib.suppress(CouldNotLook):
            fails = probes.health.next_start() is not None or fails_repeatedly(
                probes.gateway.diary()
            )
            self.looped = self.looped or fails

    def settled(self, limit: float) -> int | None:
        """Wait for a process that was asked to stop; return the one that runs then, or None.

        That includes a process that an earlier command asked: it reports itself that it drains.
        """
        until = time.monotonic() + limit
        doubt = time.monotonic() + limits.stretch(DOUBT)
        while (pid := self.running()) is not None:
            ending = pid == self._asked or self.probes().gateway.runtime().state == "draining"
            if time.monotonic() >= (until if ending else doubt):
                return pid
            time.sleep(LOOK_EVERY / 4)
        return None

    def asked(self) -> int | None:
        """The process that was asked to stop, even if it has not stopped yet."""
        return self._asked

    def remember(self, file: Path) -> None:
        """Save what a later command needs to start the gateway; a supervisor needs nothing."""

    def recall(self, file: Path) -> None:
        """Load what an earlier command saved with `remember`."""

    def start(self, limit: float) -> None:
        """Start a gateway and check that one stays up, ours or one that something else started.

        The proof requires a new process that works on this home.
        """
        os.close(self.open_home_folder())
        self.note_loop()
        changed_at = datetime.now(UTC)
        if not self.comes_by_itself():
            refuse_copied_home(self.probes())
            self.forget_starts()
            self.ask_to_start()
        old = self._asked
        while True:
            try:
                until = time.monotonic() + limit
                self._said += list(wait_for_proof(self, until, old, self._missing))
                return
            except StoppedAgain as why:
                if why.gateway.started_at >= changed_at:
                    raise
                old = why.gateway.pid  # it had read the old files; its successor counts
            except CouldNotLook as why:
                raise CannotFix(
                    "Could not check whether the gateway started: {reason}.", reason=why
                ) from None

    def comes_by_itself(self) -> bool:
        """Whether a gateway runs or is started by something else, so that we start none."""
        return self.running() is not None

    def forget_starts(self) -> None:
        """Remove the list of starts after a crash loop, as Hermes may wait 5 minutes for it."""
        if self.looped:
            with contextlib.suppress(OSError):
                disk.remove(self.home / STARTS)

    def probes(self) -> Probes:
        """Fresh probes without cached answers."""
        return Probes(self.home)

    def open_home_folder(self) -> int:
        """Open the home's folder; raise CannotFix if another folder has replaced it."""
        try:
            fd = os.open(self.home.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            why = os.strerror(error.errno or 0).lower()
            raise CannotFix(
                "Could not open the home: {reason}. Run the check again.", reason=why
            ) from None
        if _place(fd) == self._place:
            return fd
        os.close(fd)
        raise CannotFix("Another folder has replaced the home. Run the check again.")

    def _stuck(self, pid: int) -> Pulse | None:
        """The pulse of a process if its event loop is frozen now, or may be; else None."""
        try:
            pulse = self.probes().health.pulse()
        except CouldNotLook:
            return None
        if pulse is None or pulse.pid != pid or pulse.running is not False:
            return None
        return pulse if pulse.certain or pulse.mute else None

    def _drains(self, pid: int, told: datetime) -> bool:
        """Whether it reported draining after it was asked to stop: then its loop runs again."""
        runtime = self.probes().gateway.runtime()
        mine = runtime.state_owner is not None and runtime.state_owner.pid == pid
        updated_at = runtime.updated_at
        return (
            mine and runtime.state == "draining" and updated_at is not None and updated_at >= told
        )

    def _wait(
        self, process: ProcessHandle, frozen: Pulse | None, told: datetime, limit: float
    ) -> None:
        """Wait for the process to end; kill it only if its event loop stays frozen throughout.

        A process that was suspended or stuck and runs again may finish its answer.
        """
        asked = since = time.monotonic()
        held = frozen is not None and frozen.halted
        while not process.wait_for_end(LOOK_EVERY):
            frozen = self._stuck(process.pid)
            if frozen is None or self._drains(process.pid, told):
                since = time.monotonic()
            else:
                held = held or frozen.halted
                spent = time.monotonic() - since
                needed = WAKING if held else GRACE if frozen.certain else SILENCE
                if spent >= needed:
                    more = "" if frozen.certain else f", again and again for {spent:.0f} s"
                    proof = frozen.what + more
                    process.send(signal.SIGKILL)
                    if not process.wait_for_end(limits.stretch(DEATH)):
                        raise CannotFix(
                            "Process {pid} cannot be killed. Restart the machine.", pid=process.pid
                        )
                    self._said.append(f"process {process.pid} was frozen and was killed: {proof}")
                    return
                progress.report(f"watching whether process {process.pid} is stuck", spent / needed)
            if time.monotonic() - asked >= limit:
                raise CannotFix(
                    "Process {pid} did not stop within {time}. It may still be answering, so "
                    "it was not killed. Try again later.",
                    pid=process.pid,
                    time=duration(limit),
                )


def _place(folder: Path | int) -> tuple[int, int, int] | None:
    """The identity of a folder: device, inode and owner; None if it does not exist."""
    try:
        st = os.stat(folder)
    except OSError:
        return None
    return st.st_dev, st.st_ino, st.st_uid
