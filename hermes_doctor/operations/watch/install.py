"""Installs, inspects and removes the watch of a home as a service or cron job."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from hermes_doctor.core.home import (
    SYSTEM_STATE,
    Home,
    state_folder,
    system_state_folder,
)
from hermes_doctor.core.message import ago, count
from hermes_doctor.core.model import CannotFix, CouldNotLook, Severity, Trouble
from hermes_doctor.core.preferences import mutes, places
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.accounts import refuse_untrusted
from hermes_doctor.core.system.own_environment import refuse_cached
from hermes_doctor.diagnosis.plugins.load import Plugins
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.supervisors.units import SYSTEMD_USER
from hermes_doctor.operations.watch import assembly, heartbeat, secret_options
from hermes_doctor.operations.watch.clocks import MachineClock
from hermes_doctor.operations.watch.consent import Lease
from hermes_doctor.operations.watch.store import WatchStateFiles
from hermes_doctor.repair.gateway.manager_commands import owner_of
from hermes_doctor.repair.schedule import managers
from hermes_doctor.repair.schedule.choose import choose, refuse_temporary_home
from hermes_doctor.repair.schedule.jobs import Job, JobManager, format_duration


def find_job(home: Home, *, system: bool, cron: bool) -> tuple[JobManager, Job]:
    """The manager and the home's job without its options, for status and removal."""
    return choose(home, system=system, cron=cron), Job(home, (), False, 0.0, _folder(home, system))


def prepare(
    home: Home,
    plugins: Plugins,
    chosen: assembly.WatchOptions,
    *,
    system: bool,
    cron: bool,
    folders: Sequence[Path] = (),
) -> tuple[JobManager, Job]:
    """Choose the manager and build the job from the options."""
    refuse_cached()
    refuse_temporary_home(home.path)
    assembly.validate(chosen, home, plugins)
    manager = choose(home, system=system, cron=cron)
    folder = _folder(home, system)
    user = _user(home, chosen) if system else None
    if system and user is None:
        for place in (Path(sys.executable), Path(__file__)):
            refuse_untrusted(place, None)
    return manager, Job(
        home,
        tuple(_options(chosen, WatchStateFiles(home, folder), folders)),
        heal=chosen.healing is not None,
        interval=assembly.interval_seconds(chosen),
        folder=folder,
        vault=chosen.healing.vault if chosen.healing else None,
        metrics=chosen.metrics.expanduser().absolute() if chosen.metrics else None,
        user=user,
    )


def install(manager: JobManager, job: Job, chosen: assembly.WatchOptions) -> bool:
    """Install the job and store its secrets in private files; return whether anything changed."""
    ways, store = chosen.notify, store_of(job)
    secrets = (
        (store.webhook, ways.webhook, "--notify-webhook"),
        (store.command, ways.command, "--notify-command"),
        (store.heartbeat, chosen.heartbeat, heartbeat.OPTION),
        (store.heartbeat_fail, chosen.heartbeat_fail, heartbeat.FAIL_OPTION),
    )
    before = {path: _kept(store, path) for path in store.secrets if os.path.lexists(path)}
    folders = [*_missing(store.folder), *_missing(places.SYSTEM)]
    try:
        changed = [
            _keep(store, path, secret_options.option_value(given, option) if given else "")
            for path, given, option in secrets
        ]
        renewed = any(changed)
        if job.folder.is_relative_to(SYSTEM_STATE) and not job.user:
            mutes.make_system_folder()
        installed = manager.install(job)
        if renewed and not installed:  # it reads its secrets only when it starts
            manager.remove(job)
            manager.install(job)
        return installed or renewed
    except BaseException:
        for path in store.secrets:
            if path not in before or before[path]:  # one that could not be read is left alone
                _keep(store, path, before.get(path, ""))
        for folder in folders:
            with contextlib.suppress(OSError):  # something else is in it by now
                disk.remove_folder(folder)
        raise


def _missing(folder: Path) -> list[Path]:
    """A folder and those above it that do not exist, the deepest first."""
    return [path for path in (folder, *folder.parents) if not os.path.lexists(path)]


def secret_file_lines(job: Job) -> Iterator[str]:
    """Lines that name the files with secrets, which units and crontabs must not contain."""
    store = store_of(job)
    for path in store.secrets:
        if os.path.lexists(path):
            yield f"This file may contain a secret and is readable by its user only: {path}"


def overdue_reason(job: Job, *, scheduled: bool) -> str | None:
    """Why the last round is too old; None if it is not, or if there was none yet."""
    clock = MachineClock()
    store = store_of(job)
    memory = store.load(clock.boot)
    if memory is None:
        return None
    try:
        age = clock.read().wall - os.stat(store.file).st_mtime
    except OSError:
        return None
    usual = (
        max(memory.interval, managers.shortest(heal=memory.heals)) if scheduled else memory.interval
    )
    if age <= 3 * usual + 60:
        return None
    return f"The last check is too old: one was due every {format_duration(usual)}."


def state_lines(job: Job) -> Iterator[str]:
    """Lines on the stored state of the watch: last round, problems, repairs."""
    clock = MachineClock()
    store = store_of(job)
    memory = store.load(clock.boot)
    try:
        last = os.stat(store.file).st_mtime
    except OSError:
        memory = None
    if memory is None:
        yield "No check was made yet, or you may not read the state of the watch."
        return
    at = ago(datetime.fromtimestamp(last, UTC), clock.now())
    yield f"Last check: {at}, repeated every {format_duration(memory.interval)}."
    bad = [item for item in memory.standing.items() if item[1].severity is not Severity.INFO]
    yield f"Open: {count(len(bad), 'problem')}."
    for (code, subject), standing in sorted(bad, key=lambda one: one[1].severity.rank)[:10]:
        yield f"  {standing.severity.value}  {code}  {subject}: {standing.title}"
    if memory.heals:
        done = len(memory.deeds)
        yield f"Repairs: {done}; the latest:" if done else "Repairs: none so far."
    for deed in memory.deeds[-5:]:
        moment = str(deed.get("at", ""))
        try:
            when = ago(datetime.fromisoformat(moment))
        except (ValueError, TypeError, OverflowError):
            when = moment[:19]
        yield f"  {when}  {deed.get('what', '')}"


def remove_state(job: Job) -> list[Path]:
    """Delete the stored state of the watch and its lease; return the deleted files."""
    store = store_of(job)
    with contextlib.suppress(OSError, Trouble):
        Lease(job.home, MachineClock(), store.file).give_up()
    there = store.remove()
    if job.folder.is_relative_to(SYSTEM_STATE):
        for folder in (job.folder.parent, places.SYSTEM):
            with contextlib.suppress(OSError):  # there are other files in it
                disk.remove_folder(folder)
    return there


def store_of(job: Job) -> WatchStateFiles:
    return WatchStateFiles(job.home, job.folder)


def _folder(home: Home, system: bool) -> Path:
    return system_state_folder(home) if system else state_folder()


def _kept(store: WatchStateFiles, path: Path) -> str:
    try:
        return store.read(path).decode("utf-8", "replace")
    except (OSError, CouldNotLook):
        return ""


def _keep(store: WatchStateFiles, path: Path, secret: str) -> bool:
    """Store a secret in a private file, or delete the file if empty; return whether it changed."""
    if _kept(store, path) == secret and (secret or not os.path.lexists(path)):
        return False
    disk.remove(path)
    if secret:
        disk.make_folder(store.folder)
        disk.save(path, secret.encode())
    return True


def _options(
    chosen: assembly.WatchOptions, store: WatchStateFiles, folders: Sequence[Path]
) -> Iterator[str]:
    healing, ways = chosen.healing, chosen.notify
    notifies = ways.command or ways.webhook or ways.hermes
    options: list[tuple[str, object]] = [("--interval", chosen.interval)]
    if healing:
        yield "--heal"
        options += [("--after", healing.min_rounds), ("--budget", healing.budget)]
        options += [("--patience", healing.timeout), ("--vault", healing.vault)]
        options += [("--also", word) for word in healing.confirmed]
    options += [
        ("--notify-on", notifies and ways.min_severity),
        ("--notify-command", ways.command and f"@{store.command}"),
        ("--notify-webhook", ways.webhook and f"@{store.webhook}"),
        ("--notify-hermes", ways.hermes),
        (heartbeat.OPTION, chosen.heartbeat and f"@{store.heartbeat}"),
        (heartbeat.FAIL_OPTION, chosen.heartbeat_fail and f"@{store.heartbeat_fail}"),
        ("--fail-on", chosen.fail_on),
        ("--metrics", chosen.metrics),
        *(("--plugins", folder) for folder in folders),
    ]
    for option, value in options:
        if value:
            path = value.expanduser().absolute() if isinstance(value, Path) else value
            yield from (option, str(path))
    yield from chosen.declined
    if chosen.network:
        yield "--network"


def _user(home: Home, chosen: assembly.WatchOptions) -> str | None:
    """The user to run as: the home's owner, or root (None) if only root can control the gateway."""
    owner = owner_of(home)
    if owner.uid == 0:
        return None
    if owner.name is None:
        raise CannotFix(
            "The owner of the home (uid {uid}) has no account on this machine. "
            "Correct the owner first.",
            uid=owner.uid,
        )
    if chosen.healing is None:
        return owner.name
    try:
        unit = Probes(home).gateway.supervision().owner
    except CouldNotLook as why:
        raise CannotFix(
            "Could not find out what restarts the gateway: {reason}.", reason=why
        ) from None
    return owner.name if unit is None or unit.kind == SYSTEMD_USER else None
