"""Plan what restarts a gateway that was started by hand: a systemd unit, cron, or a command."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.core.message import Message, text
from hermes_doctor.core.model import CannotFix, Trouble
from hermes_doctor.core.system import crontab
from hermes_doctor.core.system.crontab import process_names
from hermes_doctor.core.system.files import which
from hermes_doctor.hermes.processes.lineage import in_container
from hermes_doctor.hermes.supervisors import systemd

if TYPE_CHECKING:
    from hermes_doctor.core.home import Home
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.diagnosis.step import Step
    from hermes_doctor.hermes.supervisors.find import Supervision
    from hermes_doctor.repair.steps.gateway import GatewayStep
    from hermes_doctor.repair.steps.machine import InstallService


def install_service(probes: Probes, agreed: str) -> Iterator[Step]:
    """The steps that let systemd restart the gateway, or cron where systemd does not run.

    `agreed` is the code that a watch started by cron may repair without asking.
    """
    supervision = probes.gateway.supervision()
    if not supervision.booted and not supervision.units:
        # Asked before the imports below, which cost a report 40 ms: many gateways run in containers
        # and on servers without systemd, and each of their reports asks this.
        if sys.platform == "darwin":
            raise CannotFix("Run `hermes gateway install`, which installs a launchd job.")

        yield from restart_by_cron(probes, agreed)
        return
    yield from _install_unit(probes, supervision)


def _install_unit(probes: Probes, supervision: Supervision) -> Iterator[Step]:
    """The steps that install a user unit and move the gateway under it."""
    from hermes_doctor.repair.gateway import control
    from hermes_doctor.repair.gateway.detached import Detached
    from hermes_doctor.repair.gateway.hermes_command import refuse_other_profile, unit_name
    from hermes_doctor.repair.gateway.manager_commands import owner_of
    from hermes_doctor.repair.gateway.service_managers import Handoff, SystemdUnit, manager_of
    from hermes_doctor.repair.schedule import choose
    from hermes_doctor.repair.steps.gateway import GatewayStep
    from hermes_doctor.repair.steps.machine import NO_ACCOUNT, InstallService

    alone = control.gateway_control(probes)
    if not isinstance(alone, Detached) or supervision.units:
        raise CannotFix(
            "The gateway runs {control} already. Nothing to do.", control=alone.describe()
        )
    scope = systemd.user_scope(owner_of(probes.home).uid)
    if scope is None:
        raise CannotFix(NO_ACCOUNT)
    choose.refuse_temporary_home(probes.home.path)
    folder = str(scope.user)
    refuse_other_profile(probes.home, folder, "The service that Hermes installs")
    name = unit_name(probes.home, folder)
    other = next((one for one in supervision.others if one.name == name), None)
    if other is not None:
        raise CannotFix(
            "Hermes would overwrite {unit}, the service of {home}. Install a service yourself.",
            unit=name,
            home=other.home,
        )
    act = InstallService(probes.home, name)
    act.refuse()
    act.require_installer()
    unit = SystemdUnit(probes.home, name, manager_of(probes.home, system=False))
    yield act
    why = "from now on systemd restarts it; variables of a shell no longer apply"
    yield GatewayStep(Handoff(alone, unit, act.path), restart=True, why=why, expected=True)


def restart_without_unit(probes: Probes, action: InstallService) -> GatewayStep:
    """The gateway step for removing the unit: the gateway is moved to a background process."""
    from hermes_doctor.repair.gateway.detached import Detached
    from hermes_doctor.repair.gateway.service_managers import Handoff, SystemdUnit
    from hermes_doctor.repair.steps.gateway import GatewayStep

    alone = Detached(probes.home, probes.hermes.installation())
    unit = SystemdUnit(probes.home, action.unit, action.manager)
    why = "its service is removed"
    return GatewayStep(Handoff(alone, unit, action.path), restart=True, why=why)


_SUPERVISORS = {
    "runsvdir": "runit",
    "s6-svscan": "s6",
    "supervisord": "supervisord",
    "monit": "Monit",
    "dinit": "dinit",
}
"""By the name of its process: a supervisor that can keep a command running."""
_INSTALLERS = {
    "apt-get": "apt-get install cron",
    "apk": "apk add dcron",
    "dnf": "dnf install cronie",
    "yum": "yum install cronie",
    "pacman": "pacman -S cronie",
    "zypper": "zypper install cronie",
}
_STARTERS = (
    ("/etc/init.d/cron", "service cron start"),
    ("/etc/init.d/crond", "service crond start"),
    ("/etc/init.d/dcron", "rc-service dcron start"),
)


def restart_by_cron(probes: Probes, agreed: str) -> Iterator[Step]:
    """The step that lets cron start the gateway again; CannotFix says what works instead."""
    if not crontab.is_installed():
        raise CannotFix(_without_cron(probes.home))
    if not crontab.is_running():
        named = next((command for file, command in _STARTERS if os.path.exists(file)), None)
        raise CannotFix(
            "cron is installed but does not run, so it cannot start the gateway again. Start "
            "cron with `{command}` first.",
            command=named or ("crond" if which("crond") else "cron"),
        )
    from hermes_doctor.core.system.own_environment import refuse_cached
    from hermes_doctor.repair.gateway import control
    from hermes_doctor.repair.gateway.detached import Detached
    from hermes_doctor.repair.schedule import choose
    from hermes_doctor.repair.steps.restart_actions import InstallCrontabLine

    alone = control.gateway_control(probes)
    if not isinstance(alone, Detached):
        raise CannotFix(
            "The gateway runs {control} already. Nothing to do.", control=alone.describe()
        )
    choose.refuse_temporary_home(probes.home.path)
    try:
        refuse_cached()
    except Trouble as why:
        raise CannotFix(str(why).removesuffix(" Nothing was changed.")) from None
    act = InstallCrontabLine(probes.home, agreed)
    act.refuse()
    yield act


def _without_cron(home: Home) -> Message:
    """What to do where neither systemd nor cron is installed."""
    watch = f"hermes-doctor watch --heal --home {shlex.quote(str(home.path))}"
    if in_container():
        return _in_container(watch)
    names = process_names()
    found = next((word for name, word in _SUPERVISORS.items() if name in names), None)
    if found is None and os.path.isdir("/run/openrc"):
        found = "OpenRC"
    if found is not None:
        return text(
            "Neither systemd nor cron is installed, but {supervisor} runs. Let it run `{command}`, "
            "which starts the gateway again.",
            supervisor=found,
            command=watch,
        )
    installer = next((line for name, line in _INSTALLERS.items() if which(name)), None)
    if installer is not None:
        return text(
            "Neither systemd nor cron is installed. Install cron with `{installer}` and plan again "
            "with `{fix}`. Or run `{command}`, which starts the gateway again while it runs.",
            installer=installer,
            fix=f"hermes-doctor fix --home {shlex.quote(str(home.path))}",
            command=_in_background(watch),
        )
    return text(
        "Neither systemd nor cron is installed. Run `{command}`, which starts the gateway again "
        "while it runs.",
        command=_in_background(watch),
    )


def _in_background(command: str) -> str:
    """The command line that keeps a command running after the terminal is closed."""
    if which("tmux"):
        return f"tmux new -d -s hermes-watch {shlex.quote(command)}"
    if which("screen"):
        return f"screen -dmS hermes-watch {command}"
    return f"nohup {command} >/dev/null 2>&1 &"


def _in_container(watch: str) -> Message:
    """What to do in a container, whose engine can restart only its main process."""
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return text(
            "Neither systemd nor cron is installed in this container. Make `hermes gateway run` "
            "the command of the container: Kubernetes then restarts it (restartPolicy). Until then "
            "run `{command}`.",
            command=_in_background(watch),
        )
    return text(
        "Neither systemd nor cron is installed in this container. Make `hermes gateway run` its "
        "command and run `docker update --restart unless-stopped {name}` on the host. Until then "
        "run `{command}`.",
        name=os.uname().nodename,
        command=_in_background(watch),
    )
