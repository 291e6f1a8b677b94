"""Checks whether an update may start now, and makes a verified backup before it.

Rows, jobs and bytes are counted before, to notice data that the update has lost.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from hermes_doctor.backup.records.home_lock import lock_home
from hermes_doctor.backup.records.updates import Update, UpdateRecords, now, process_identity
from hermes_doctor.backup.vault import unreadable_files, whole_backup
from hermes_doctor.backup.vault.free_space import total_size
from hermes_doctor.backup.vault.vault import Progress, Vault
from hermes_doctor.core.home import Home, all_homes
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import ago, duration
from hermes_doctor.core.model import CannotFix, CouldNotLook, Finding, Severity, Status, Trouble
from hermes_doctor.core.system.files import MEGABYTE, size
from hermes_doctor.diagnosis.examination import report
from hermes_doctor.diagnosis.examination.liveness import is_answering
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.load import Plugins
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.installation import details, find
from hermes_doctor.hermes.installation.details import InstallationDetails
from hermes_doctor.operations.updates import git_rollback, images
from hermes_doctor.repair.gateway.manager_commands import owner_of

ROOM = 512 * MEGABYTE
"""Free bytes that an update may need where Hermes is installed."""
PATIENCE = 120.0
"""Seconds to wait for an answer that is being written."""
_STOPPING = {
    "databases": (Severity.CRITICAL,),
    "doctor": (Severity.CRITICAL, Severity.ERROR),
    "storage": (Severity.CRITICAL, Severity.ERROR),
}
"""By group of checks: the severities that stop an update.

Damage does, because an update would make it worse; a column that the next release adds does not.
"""


class UpdatePreflight(NamedTuple):
    """What stops an update now, and the findings before it."""

    obstacles: tuple[str, ...]
    findings: tuple[Finding, ...]


def preflight(
    probes: Probes,
    plugins: Plugins,
    *,
    timeout: float | None = PATIENCE,
    report_progress: Callable[[str], None] = lambda _: None,
) -> UpdatePreflight:
    """Find what stops an update; change nothing. `timeout=None` does not wait for answers."""
    results, findings = report.examine(probes, plugins.checks)
    groups = {check.id: check.group for check in plugins.checks}
    unseen = [
        f"the check {result.id} crashed: {result.reason}"
        for result in results
        if result.group in _STOPPING and result.status is Status.CRASHED
    ]
    unseen += [
        f"could not load the check {plugin.path.name} ({plugin.why}); reinstall hermes-doctor"
        for plugin in plugins.broken
        if plugin.path.is_relative_to(builtin("checks"))
    ]
    wrong = [
        f"{finding.title} ({finding.code}, {finding.subject})"
        for finding in findings
        if finding.severity in _STOPPING.get(groups.get(finding.check, ""), ())
    ]
    obstacles = [*wrong, *unseen, *_open(probes.home), *_half_done(probes), *_room(probes)]
    if not obstacles and timeout is not None:
        obstacles += _busy(probes, timeout, report_progress)
    return UpdatePreflight(tuple(obstacles), (*findings, *profile_findings(probes.home, plugins)))


def profile_findings(home: Home, plugins: Plugins) -> list[Finding]:
    """The findings in the profiles of a home; each subject begins with the profile's name."""
    findings = []
    for profile in profiles(home):
        with closing(Probes(profile)) as probes:
            for finding in report.examine(probes, plugins.checks)[1]:
                subject = f"{profile.profile}: {finding.subject}".rstrip(": ")
                findings.append(finding._replace(subject=subject))
    return findings


def profiles(home: Home) -> list[Home]:
    """The homes of the profiles of a home."""
    return [
        other_home
        for other_home in all_homes(home, [])
        if other_home.path.parent.parent == home.path
    ]


def _open(home: Home) -> Iterator[str]:
    """Why a previous update, which is still unexamined, stops this one."""
    last = UpdateRecords(home).last()
    if last is None or not last.open:
        return
    who = last.running_process()
    if who is not None and last.guard != process_identity(os.getpid()):
        yield f"another update is running (process {who})"
    elif last.is_cut_off(Probes(home).hermes.installation()):
        import shlex

        named = f" --home {shlex.quote(str(home.path))}"
        yield (
            f"the update of {ago(last.began)} was interrupted. To check its result: "
            f"hermes-doctor hook run post-update{named}. To return to the previous Hermes: "
            f"hermes-doctor rollback{named}"
        )


def _half_done(probes: Probes) -> Iterator[str]:
    """What an earlier update left half-done; the next one would build on it."""
    try:
        environments = probes.hermes.environments()
    except CouldNotLook:
        return
    if environments.unfinished:
        yield f"an earlier update is unfinished ({environments.unfinished})"
    yield from (f"a git merge is unfinished in {path}" for path in environments.conflicts)
    for environment in environments.found:
        yield from (f"{where}: {what}" for where, what in environment.faults)


def _room(probes: Probes) -> Iterator[str]:
    installed = probes.hermes.installation()
    if installed is None:
        return
    try:
        free = shutil.disk_usage(installed.where).free
    except OSError:
        return
    if free < ROOM:
        yield f"only {size(free)} free on the disk of Hermes; an update may need more"


def _busy(probes: Probes, timeout: float, report_progress: Callable[[str], None]) -> Iterator[str]:
    """Wait until no answer is being written, because the update would cut it off."""
    until = time.monotonic() + timeout
    told = False
    while is_answering(Probes(probes.home)):
        if time.monotonic() >= until:
            yield f"the gateway has been writing an answer for more than {duration(timeout)}"
            return
        if not told:
            report_progress("waiting for the gateway to finish its answer")
            told = True
        time.sleep(min(1.0, timeout))


def back_up(
    home: Home,
    checked: UpdatePreflight,
    *,
    vault: Path | None = None,
    command: Sequence[str] = (),
    progress: Callable[[int], Progress | None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> Update:
    """Make a verified backup of what cannot be rebuilt, and record the state before the update.

    The update is refused if a database, a setting or a secret is not in the backup; for other
    unreadable files there is a warning.
    """
    with lock_home(home):
        store = Vault(home, vault)
        store.remove_leftovers()
        omitted = whole_backup.OmittedPaths()
        sources = whole_backup.list_sources(home, store.root, omitted=omitted)
        installed = (find.of_command_line(command) if command else None) or Probes(
            home
        ).hermes.installation()
        backup = store.create(
            sources,
            reason="before an update of Hermes",
            hermes=installed.version if installed else None,
            whole=True,
            missing=omitted.missing,
            progress=progress(total_size(sources)),
        )
    if lacking := unreadable_files.needed_for_update(backup.missing):
        raise Trouble(
            "Backup {id} is incomplete, and a rollback needs these files: {files}. "
            "Make them readable for the owner of the home, then try again.",
            id=backup.id,
            files=unreadable_files.list_missing(lacking),
        )
    if backup.missing:
        absent = unreadable_files.list_missing(backup.missing)
        warn(f"Backup {backup.id} is incomplete; these could not be read: {absent}")
    if not backup.sound:
        damaged = ", ".join(e.path for e in backup.entries if e.integrity not in (None, "ok"))
        raise Trouble(
            "Backup {id} was created, but {file} is damaged. Repair it before the "
            "update: hermes-doctor fix",
            id=backup.id,
            file=damaged,
        )
    return record_state(home, backup.id, vault, checked, command)


def record_state(
    home: Home,
    backup: str | None,
    vault: Path | None,
    checked: UpdatePreflight,
    command: Sequence[str] = (),
) -> Update:
    """Record the state before the update, to compare with it later and to roll back to it."""
    probes = Probes(home)
    seen, doubt = _concerned(home, command)
    if seen is not None and seen.kind == details.GIT and seen.checkout is not None:
        owner = owner_of(home)
        revision = seen.revision or git_rollback.commit_of(seen.checkout, owner)
        seen = replace(seen, clean=git_rollback.is_clean(seen.checkout, owner), revision=revision)
    records = UpdateRecords(home)
    older, store = records.ids(), Vault(home, vault)
    pids = {
        other_home: _gateway(Probes(other_home))
        for other_home in all_homes(home, [])
        if other_home.path != home.path
    }
    update = Update(
        id=store.next_id(older),
        backup=backup,
        vault="" if store.root == home.vault else str(store.root),
        before=seen,
        doubt=doubt,
        started_at=now(),
        known=[[finding.code, finding.subject] for finding in checked.findings],
        gateway=_gateway(probes),
        beside={str(other.path): pid for other, pid in pids.items() if pid is not None},
        others=other_installations(home, seen),
        sizes=measure(home),
    )
    if seen is not None and images.is_container_image(seen):
        try:
            images.tag_previous_image(seen, update.id, older)
        except CannotFix as why:
            update.doubt = str(why)
    records.save(update)
    return update


def _concerned(home: Home, command: Sequence[str]) -> tuple[InstallationDetails | None, str]:
    """The Hermes that will be updated; None and the reason if it is unknown."""
    named = find.of_command_line(command) if command else None
    if named is not None:
        return details.read_details(named), ""
    beside = Probes(home).hermes.installation()
    meant = beside is None or images.is_container_command(command)
    try:
        image = images.of_home(home, required=meant)
    except CouldNotLook as why:
        if beside and not meant:
            return details.read_details(beside), ""
        none = "could not find out which Hermes uses this home"
        return None, str(why) if images.is_container_command(command) else none
    return image or (details.read_details(beside) if beside else None), ""


def other_installations(home: Home, own: InstallationDetails | None) -> dict[str, str]:
    """The versions of all other installations of Hermes on this machine, by path."""
    mine = (
        {os.path.realpath(place) for place in (own.where, own.checkout) if place} if own else set()
    )
    versions = {
        os.path.realpath(installation.where): installation.version
        for installation in find.all_installations(home)
    }
    return {place: version for place, version in versions.items() if place not in mine}


def _gateway(probes: Probes) -> int | None:
    try:
        return next((gateway.pid for gateway in probes.gateway.running()), None)
    except CouldNotLook:
        return None


_TABLES = ("sessions", "messages")
_FILES = ("config.yaml", ".env", "auth.json")


def measure(home: Home) -> dict[str, int]:
    """Count rows of the message history, scheduled jobs, and bytes of the settings, if readable."""
    with contextlib.closing(Probes(home)) as probes:
        counts = {}
        for table in _TABLES:
            try:
                rows = probes.databases.query(
                    probes.home / "state.db", f"SELECT count(*) FROM {table}"
                ).rows
                counts[table] = int(str(rows[0][0]))
            except (CouldNotLook, OSError, ValueError, IndexError):
                continue
        with contextlib.suppress(CouldNotLook, OSError):
            # One-time jobs may end.
            counts["jobs"] = sum(job.kind != "once" for job in probes.stores.jobs())
        for name in _FILES:
            with contextlib.suppress(OSError):
                counts[name] = os.path.getsize(probes.home / name)
        return counts


def lost_data(before: Mapping[str, int], home: Home) -> tuple[str, ...]:
    """What has become less, as sentences."""
    return tuple(_lost(before, measure(home), home)) if before else ()


def _lost(before: Mapping[str, int], now: Mapping[str, int], home: Home) -> Iterator[str]:
    for name, amount in before.items():
        if name in _FILES:
            if amount and not now.get(name):
                there = os.path.lexists(home / name)
                yield f"the file {name} is now {'empty' if there else 'missing'}"
        elif now.get(name, amount) < amount:
            yield f"only {now[name]:,} of {amount:,} {name} are left"
        elif name == "messages" and amount and not os.path.exists(home / "state.db"):
            yield "the file state.db is now missing"
