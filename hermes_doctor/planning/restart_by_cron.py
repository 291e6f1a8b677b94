"""Plan what restarts a gateway where systemd does not run: a crontab line, or a command to type."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.message import Message, text
from hermes_doctor.model import CannotFix, Trouble
from hermes_doctor.processes.lineage import in_container
from hermes_doctor.system import crontab
from hermes_doctor.system.files import which
from hermes_doctor.system.process_names import process_names

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.steps.base import Step

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
        raise CannotFix(
            text(
                "cron is installed but does not run, so it cannot start the gateway again. Start "
                "cron with `{command}` first.",
                command=_starter(),
            )
        )
    from hermes_doctor.gateway import control
    from hermes_doctor.gateway.detached import Detached
    from hermes_doctor.schedule import temporary_home
    from hermes_doctor.steps.crontab_line import InstallCrontabLine
    from hermes_doctor.system.own_environment import refuse_cached

    alone = control.gateway_control(probes)
    if not isinstance(alone, Detached):
        raise CannotFix(
            text("The gateway runs {control} already. Nothing to do.", control=alone.describe())
        )
    temporary_home.refuse_temporary_home(probes.home.path)
    try:
        refuse_cached()
    except Trouble as why:
        raise CannotFix(str(why).removesuffix(" Nothing was changed.")) from None
    act = InstallCrontabLine(probes.home, agreed)
    act.refuse()
    yield act


def _starter() -> str:
    """The command that starts cron here."""
    named = next((command for file, command in _STARTERS if os.path.exists(file)), None)
    return named or ("crond" if which("crond") else "cron")


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
