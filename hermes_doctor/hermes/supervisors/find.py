"""Find the supervisor that restarts the gateway of this home, if there is one.

For a running gateway the kernel decides: its control group and its parent processes. A name alone
proves nothing. If no gateway runs, the definition that would start one counts as its owner.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Gateway
from hermes_doctor.hermes.processes import process_stat
from hermes_doctor.hermes.processes.lineage import (
    Ancestor,
    ControlGroup,
    ancestors,
    control_group_of,
    in_container,
    name_of,
)
from hermes_doctor.hermes.supervisors import starters, systemd
from hermes_doctor.hermes.supervisors.units import (
    DOCKER,
    LAUNCHD,
    OTHER,
    S6,
    SYSTEMD_USER,
    Unit,
    runs_gateway,
)

_OTHERS = ("supervisord", "runsv", "circusd", "monit", "supervise-daemo", "dinit", "PM2")
_BY_HAND = ("sshd", "tmux", "screen", "login", "cron", "crond", "konsole", "gnome-terminal")
"""Parent processes that show that a person started the gateway, so no supervisor restarts it."""

CONTAINER_TRACES = (".container-mode", "logs/container-boot.log")
"""Files that Hermes writes into its home when it runs in a container."""


class Supervision(NamedTuple):
    """The supervisor of a home's gateway, and the evidence for it."""

    owner: Unit | None
    """The definition that runs the gateway, or that would start one; None if there is none."""
    units: tuple[Unit, ...]
    """Every definition for this home, including the owner."""
    revives: bool | None
    """Whether the gateway would be restarted if it ended by itself now; None: unknown."""
    why: str
    """One clause for people: "its unit has Restart=always"."""
    unsure: tuple[str, ...]
    """What could not be read, and why."""
    linger: bool | None
    """Whether the user's services outlive the login; None where it does not matter."""
    others: tuple[Unit, ...] = ()
    """Definitions of gateways for other homes."""
    usual: str = ""
    """The name that Hermes' installer would give to this home's unit; empty without `others`."""
    booted: bool = False
    """Whether systemd runs on this machine, so that it could supervise the gateway."""
    wsl: bool = False
    """Whether this is the Windows Subsystem for Linux."""
    keeper: starters.WatchKeeper | None = None
    """The watch of this tool that restarts a gateway without a supervisor; looked for only where
    systemd does not run."""


def find_supervisor(home: Home, gateways: Callable[[], list[Gateway]]) -> Supervision:
    """Find the supervisor of this home's gateway."""
    if home.is_example:
        return Supervision(None, (), False, "nothing runs it", (), None)
    unsure: list[str] = []
    try:
        running = gateways()
    except CouldNotLook as why:
        running, blind = [], True
        unsure.append(str(why))
    else:
        blind = False
    pid = running[0].pid if running else None
    found, owner = _by_system(home, pid, unsure)
    if owner is None and pid is not None and _has_ended(pid):  # as one that crashes again and again
        pid = None
        found, owner = _by_system(home, pid, unsure)
    if owner is not None and owner.home != home.path:
        owner = owner._replace(home=home.path)  # the running process counts, not the definition
    mine = [unit for unit in found if unit.home == home.path and not _same(unit, owner)]
    if owner is None and pid is None:
        owner = _likely(mine)
        mine = [unit for unit in mine if not _same(unit, owner)]
    units = (*([owner] if owner else []), *mine)
    unsure += [f"{unit.name}: {unit.silence}" for unit in units if unit.silence]
    others = tuple(unit for unit in found if unit.home != home.path and not _same(unit, owner))
    revives, why_so = _revival(home, owner, units, pid, blind)
    booted = os.path.isdir("/run/systemd/system")
    keeper = None
    if revives is False and owner is None and not booted and sys.platform == "linux":
        keeper = starters.find_keeper(home)
    if keeper is not None:
        revives, why_so = keeper.works, keeper.why
    return Supervision(
        owner=owner,
        units=units,
        revives=revives,
        why=why_so,
        unsure=tuple(dict.fromkeys(unsure)),
        linger=_linger(owner or _likely(mine)),
        others=others,
        usual=_usual(home) if others else "",
        booted=booted,
        wsl=_in_windows(),
        keeper=keeper,
    )


def _has_ended(pid: int) -> bool:
    seen = process_stat.stat(pid)
    return seen is None or seen.doing == "Z"


def _in_windows() -> bool:
    try:
        with open("/proc/sys/kernel/osrelease") as file:
            return "microsoft" in file.read(256).lower()
    except OSError:
        return False


def _by_system(home: Home, pid: int | None, unsure: list[str]) -> tuple[list[Unit], Unit | None]:
    """Return every definition on this machine, and the one that the process belongs to."""
    if sys.platform == "darwin":
        from hermes_doctor.hermes.supervisors import launchd

        jobs = launchd.jobs()
        return jobs, next((job for job in jobs if pid is not None and job.pid == pid), None)
    return _on_linux(home, pid, unsure)


def _on_linux(home: Home, pid: int | None, unsure: list[str]) -> tuple[list[Unit], Unit | None]:
    if name_of(1) == "s6-svscan":
        from hermes_doctor.hermes.supervisors import s6

        slots = s6.slots()
        line = {pid, *(ancestor.pid for ancestor in ancestors(pid))} if pid is not None else set()
        return slots, next((slot for slot in slots if slot.pid and slot.pid in line), None)
    place = control_group_of(pid) if pid is not None else ControlGroup()
    units = _units(home, pid, place, unsure)
    if pid is None:
        known = any(unit.home == home.path for unit in units)
        outside = None if in_container() else _container_of(home, unsure, known)
        return [*units, *([outside] if outside else [])], None
    if place.container and not in_container():
        from hermes_doctor.hermes.supervisors import docker

        held = docker.of_process(place.container, home.path)
        return [*units, held], held
    above_all = ancestors(pid)
    for unit in units:
        if place.unit == unit.name and place.manager == unit.manager and _runs(unit, pid, home):
            return units, unit
    if in_container():
        from hermes_doctor.hermes.supervisors import docker

        if docker.is_main(pid, above_all):
            held = docker.own_container(pid, home.path)
            return [*units, held], held
    return units, _other(above_all, home)


def _runs(unit: Unit, pid: int, home: Home) -> bool:
    """Whether a process in a unit's control group is the gateway that the unit keeps running."""
    if unit.pid == pid:
        return True
    if unit.pid is None:
        return runs_gateway(unit.program) and starters.is_for_home(unit, home.path)
    line = starters.processes_between(unit.pid, pid)
    if line is None or any(ancestor.name.startswith(_BY_HAND) for ancestor in line):
        return False
    return starters.is_for_home(unit, home.path) and starters.is_wrapper_of(
        unit.pid, pid, home.path
    )


def _units(home: Home, pid: int | None, place: ControlGroup, unsure: list[str]) -> list[Unit]:
    """Return the systemd units for any home; systemd is asked about those of this home."""
    found: list[Unit] = []
    for scope in systemd.scopes(_users(home, pid, place)):
        units = systemd.definitions(scope)
        here = place.unit if place.unit and place.manager == scope.uid else None
        names = [unit.name for unit in units if unit.home == home.path]
        asked = list(dict.fromkeys([*names, *([here] if here else [])]))
        if not asked:
            found += units
            continue
        try:
            said = systemd.ask_systemd(scope, asked)
        except CouldNotLook as why:
            found += [
                systemd.without_answer(scope, unit, str(why)) if unit.name in asked else unit
                for unit in units
            ]
            if here and here not in names:
                unsure.append(f"{here}: {why}")
            continue
        found += [systemd.with_properties(unit, said.get(unit.name, {})) for unit in units]
        if here and here not in [unit.name for unit in units]:
            extra = systemd.from_properties(scope, here, said.get(here, {}))
            found += [extra] if extra else []
    return found


def _users(home: Home, pid: int | None, place: ControlGroup) -> list[int]:
    """Return the uids whose user managers may run it: the home's, the process's, the service's."""
    uids = []
    for path in [str(home.path), *([f"/proc/{pid}"] if pid is not None else [])]:
        try:
            uids.append(os.stat(path).st_uid)
        except OSError:
            continue
    return [*uids, *([place.manager] if place.manager is not None else [])]


def _container_of(home: Home, unsure: list[str], has_unit: bool) -> Unit | None:
    """Return the container that has this home as a volume.

    One that fails at once leaves no traces in the home, so it is looked up without them, too. But
    the engine is slow: if the home has a unit of systemd, traces are needed.
    """
    if has_unit and not any(os.path.lexists(home / name) for name in CONTAINER_TRACES):
        return None
    from hermes_doctor.hermes.supervisors import docker

    try:
        return docker.of_home(home)
    except CouldNotLook as why:
        if any(os.path.lexists(home / name) for name in CONTAINER_TRACES):
            unsure.append(str(why))
        return None


def _other(above: Iterable[Ancestor], home: Home) -> Unit | None:
    """Return a supervisor that is known only by its name, unless a person started the process."""
    for ancestor in above:
        if ancestor.name.startswith(_BY_HAND):
            return None
        if ancestor.name.startswith(_OTHERS):
            return Unit(OTHER, ancestor.name, home=home.path, state="active")
    return None


def _same(unit: Unit, other: Unit | None) -> bool:
    return other is not None and unit[:3] == other[:3] and unit.manager == other.manager


def _likely(units: Sequence[Unit]) -> Unit | None:
    """Return the definition that would run a gateway: an active one, else an enabled one."""
    order = {"active": 0, "activating": 1, "deactivating": 1, "failed": 2}
    return min(
        units, key=lambda unit: (order.get(unit.state, 3), unit.enabled is not True), default=None
    )


def _linger(unit: Unit | None) -> bool | None:
    if unit is None or unit.kind != SYSTEMD_USER or unit.user is None:
        return None
    return systemd.lingers(unit.user)


def _usual(home: Home) -> str:
    try:
        scope = systemd.user_scope(os.stat(home.path).st_uid) if sys.platform == "linux" else None
    except OSError:
        scope = None
    return systemd.hermes_name(home.path, scope.user) if scope else ""


def _revival(
    home: Home, owner: Unit | None, units: Sequence[Unit], pid: int | None, blind: bool
) -> tuple[bool | None, str]:
    if owner is None:
        if blind:
            return None, "its process cannot be seen"
        beside = f"; {units[0].name} is there, but does not run it" if units else ""
        if pid is None:
            return False, f"nothing runs it{beside}"
        if script := starters.loop_above(home, pid):
            return None, f"process {script} has started it again before{beside}"
        return False, starters.describe_starter(home, pid) + beside
    if pid is None and owner.state in ("failed", "inactive"):
        return False, f"{owner.name} is {owner.state}"
    if owner.systemd:
        return systemd.will_restart(owner)
    if owner.kind == DOCKER:
        from hermes_doctor.hermes.supervisors import docker

        return docker.will_restart(owner)
    if owner.kind == LAUNCHD:
        from hermes_doctor.hermes.supervisors import launchd

        return launchd.will_restart(owner)
    return True, f"{'s6' if owner.kind == S6 else owner.name} looks after it"
