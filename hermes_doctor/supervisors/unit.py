"""One definition that runs a gateway, whoever its manager is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.supervisors.unit_file import seconds

SYSTEMD_USER, SYSTEMD_SYSTEM = "systemd-user", "systemd-system"
LAUNCHD, S6, DOCKER, TASK = "launchd", "s6", "docker", "windows-task"
OTHER = "other"
"""A supervisor that this tool knows by name only: supervisord, runit, pm2."""
NOBODY = "nobody"


class Unit(NamedTuple):
    """One definition that runs a gateway of this home: a unit, a plist, a slot, a container."""

    kind: str
    """One of the constants above."""
    name: str
    """How its manager calls it: `hermes-gateway.service`, `ai.hermes.gateway`, `gateway-x`."""
    path: Path | None
    """The file that defines it."""
    home: Path | None
    """The home that it would run on."""
    pid: int | None
    """Its main process by the word of its manager."""
    state: str
    """`active`, `activating`, `inactive`, `failed`; `unknown` when its manager cannot be asked."""
    settings: Mapping[str, str]
    """What its manager says of it: Restart, Result, NRestarts, ExecMainStatus and the like."""
    environment: Mapping[str, str]
    """The variables that it gives to the gateway. Holds secrets: never shown, only names are."""
    user: str | None
    """As whom it runs, where it says so."""
    program: tuple[str, ...] = ()
    """What it starts, word by word."""
    folder: Path | None = None
    """Where it starts it, where it must be there."""
    files: tuple[Path, ...] = ()
    """Every file that has a say in the definition, the strongest last."""
    declared: Mapping[str, str] = {}
    """What those files say, each setting with its last value; known without the manager."""
    manager: int | None = None
    """The user whose manager it is; None for the machine's."""
    silence: str = ""
    """Why its manager cannot be asked."""

    @property
    def systemd(self) -> bool:
        """Whether it is a unit of systemd."""
        return self.kind in (SYSTEMD_USER, SYSTEMD_SYSTEM)

    @property
    def enabled(self) -> bool | None:
        """Whether it starts by itself with the machine or the login; None: no telling."""
        said = self.settings.get("UnitFileState", "")
        if said in ("enabled", "enabled-runtime", "linked", "alias", "generated", "transient"):
            return True
        return False if said in ("disabled", "masked", "static", "indirect") else None

    @property
    def was_stopped(self) -> bool:
        """Whether somebody told systemd to stop it, so that systemd does not start it again."""
        return self.systemd and was_stopped(lambda name: self.settings.get(name, ""), self.state)

    @property
    def command(self) -> str:
        """What a person types before a verb to reach its manager: `systemctl --user`."""
        return {SYSTEMD_USER: "systemctl --user", SYSTEMD_SYSTEM: "sudo systemctl"}.get(
            self.kind, ""
        )

    def number(self, name: str) -> int:
        """A setting that counts something; 0 when there is none."""
        text = self.settings.get(name, "")
        return int(text) if text.isascii() and text.isdigit() else 0


def was_stopped(say: Callable[[str], str], state: str) -> bool:
    """Whether a unit of systemd rests because it was told to, by the properties that it has.

    One with Restart=always waits a while after its process has ended and is started again. It
    rests at once only if somebody stopped it, whatever the exit code of its process was.
    """
    if state not in ("inactive", "failed") or say("Restart") != "always":
        return False
    if say("ExecMainStatus") in say("RestartPreventExitStatus").split():
        return False
    ended, rested = say("ExecMainExitTimestampMonotonic"), say("StateChangeTimestampMonotonic")
    pause = seconds(say("RestartUSec"))
    if not (ended.isdecimal() and rested.isdecimal() and int(ended) and pause):
        return state == "inactive"
    return (int(rested) - int(ended)) / 1e6 < pause * 0.9


def home_of(program: Sequence[str], environment: Mapping[str, str], user: Path) -> Path:
    """The home that a command works on, given what is set for it and its user's folder."""
    from hermes_doctor.processes import gateway_processes

    base = Path(environment.get("HERMES_HOME") or user / ".hermes")
    profile = gateway_processes.profile(flat(program))
    if profile == "default" and base.parent.name == "profiles":
        base = base.parent.parent
    elif profile not in (None, "", "default") and base.parent.name != "profiles":
        base = base / "profiles" / str(profile)
    try:
        return base.resolve()
    except (OSError, RuntimeError):
        return base


def runs_gateway(program: Sequence[str]) -> bool:
    """Whether a command runs a gateway, directly or through a shell, sudo or uv."""
    from hermes_doctor.processes import gateway_processes

    found = flat(program)
    return any(gateway_processes.is_gateway(found[n:]) for n in range(len(found)))


def flat(program: Sequence[str]) -> list[str]:
    """The words of a command with the script of a shell's -c taken apart."""
    found: list[str] = []
    for word in program:
        found += word.split() if " " in word and "gateway" in word else [word]
    return found
