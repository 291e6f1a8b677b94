"""Checks whether an update may start now, and makes a verified backup before it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.backup import leftovers, unreadable_files, whole_backup
from hermes_doctor.backup.free_space import total_size
from hermes_doctor.backup.vault import Progress, Vault
from hermes_doctor.examination import runner
from hermes_doctor.examination.answer_in_progress import is_answering
from hermes_doctor.gateway.manager_commands import owner_of
from hermes_doctor.home import Home, all_homes
from hermes_doctor.installation import details, find
from hermes_doctor.installation.details import InstallationDetails
from hermes_doctor.installation.find import Installation
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import ago, duration, text
from hermes_doctor.model import CannotFix, CouldNotLook, Finding, Severity, Status, Trouble
from hermes_doctor.plugins.load import builtin
from hermes_doctor.probes.probes import Probes
from hermes_doctor.records.home_lock import lock_home
from hermes_doctor.records.updates import Update, UpdateRecords, now, process_identity
from hermes_doctor.system.files import MEGABYTE, size
from hermes_doctor.updates import git_rollback, images, row_counts

if TYPE_CHECKING:
    from hermes_doctor.plugins.load import Plugins

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
    results, findings = runner.examine(probes, plugins.checks)
    groups = {check.id: check.group for check in plugins.checks}
    unseen = [
        f"the check {one.id} crashed: {one.reason}"
        for one in results
        if one.group in _STOPPING and one.status is Status.CRASHED
    ]
    unseen += [
        f"could not load the check {one.path.name} ({one.why}); reinstall hermes-doctor"
        for one in plugins.broken
        if one.path.is_relative_to(builtin("checks"))
    ]
    wrong = [
        f"{one.title} ({one.code}, {one.subject})"
        for one in findings
        if one.severity in _STOPPING.get(groups.get(one.check, ""), ())
    ]
    obstacles = [*wrong, *unseen, *_open(probes.home), *_half_done(probes), *_room(probes)]
    if not obstacles and timeout is not None:
        obstacles += _busy(probes, timeout, report_progress)
    return UpdatePreflight(tuple(obstacles), (*findings, *profile_findings(probes.home, plugins)))


def profile_findings(home: Home, plugins: Plugins) -> list[Finding]:
    """The findings in the profiles of a home; each subject begins with the profile's name."""
    found = []
    for profile in profiles(home):
        with closing(Probes(profile)) as probes:
            for one in runner.examine(probes, plugins.checks)[1]:
                subject = f"{profile.profile}: {one.subject}".rstrip(": ")
                found.append(one._replace(subject=subject))
    return found


def profiles(home: Home) -> list[Home]:
    """The homes of the profiles of a home."""
    return [one for one in all_homes(home, []) if one.path.parent.parent == home.path]


def _open(home: Home) -> Iterator[str]:
    """Why a previous update, which is still unexamined, stops this one."""
    last = UpdateRecords(home).last()
    if last is None or not last.open:
        return
    who = last.running_process()
    if who is not None and last.guard != process_identity(os.getpid()):
        yield f"another update is running (process {who})"
    elif last.is_cut_off(Probes(home).installation()):
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
        found = probes.environments()
    except CouldNotLook:
        return
    if found.unfinished:
        yield f"an earlier update is unfinished ({found.unfinished})"
    yield from (f"a git merge is unfinished in {path}" for path in found.conflicts)
    for one in found.found:
        yield from (f"{where}: {what}" for where, what in one.faults)


def _room(probes: Probes) -> Iterator[str]:
    found = probes.installation()
    if found is None:
        return
    try:
        free = shutil.disk_usage(found.where).free
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
        leftovers.remove_leftovers(store)
        omitted = whole_backup.OmittedPaths()
        sources = whole_backup.list_sources(home, store.root, omitted=omitted)
        found = hermes_to_update(home, command)
        made = store.create(
            sources,
            reason="before an update of Hermes",
            hermes=found.version if found else None,
            whole=True,
            missing=omitted.missing,
            progress=progress(total_size(sources)),
        )
    if lacking := unreadable_files.needed_for_update(made.missing):
        raise Trouble(
            text(
                "Backup {id} is incomplete, and a rollback needs these files: {files}. "
                "Make them readable for the owner of the home, then try again.",
                id=made.id,
                files=unreadable_files.list_missing(lacking),
            )
        )
    if made.missing:
        absent = unreadable_files.list_missing(made.missing)
        warn(f"Backup {made.id} is incomplete; these could not be read: {absent}")
    if not made.sound:
        damaged = ", ".join(e.path for e in made.entries if e.integrity not in (None, "ok"))
        raise Trouble(
            text(
                "Backup {id} was created, but {file} is damaged. Repair it before the "
                "update: hermes-doctor fix",
                id=made.id,
                file=damaged,
            )
        )
    return record_state(home, made.id, vault, checked, command)


def hermes_to_update(home: Home, command: Sequence[str]) -> Installation | None:
    """The Hermes that a command will update: the one that it names, else that of the home."""
    return (find.of_command_line(command) if command else None) or Probes(home).installation()


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
    update = Update(
        id=store.next_id(older),
        backup=backup,
        vault="" if store.root == home.vault else str(store.root),
        before=seen,
        doubt=doubt,
        started_at=now(),
        known=[[one.code, one.subject] for one in checked.findings],
        gateway=_gateway(probes),
        beside=_beside(home),
        others=other_installations(home, seen),
        sizes=row_counts.measure(home),
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
    found = find.of_command_line(command) if command else None
    if found is not None:
        return details.read_details(found), ""
    beside = Probes(home).installation()
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
    mine = {os.path.realpath(one) for one in (own.where, own.checkout) if one} if own else set()
    found = {os.path.realpath(one.where): one.version for one in find.all_installations(home)}
    return {place: version for place, version in found.items() if place not in mine}


def _gateway(probes: Probes) -> int | None:
    try:
        return next((gateway.pid for gateway in probes.gateways()), None)
    except CouldNotLook:
        return None


def _beside(home: Home) -> dict[str, int]:
    """Process ids of the gateways of other homes, such as profiles, by path."""
    found = {one: _gateway(Probes(one)) for one in all_homes(home, []) if one.path != home.path}
    return {str(one.path): pid for one, pid in found.items() if pid is not None}
