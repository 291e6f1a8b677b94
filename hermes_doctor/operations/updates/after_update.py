"""Examines a home after an update: what changed, what is missing, and what it broke."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing

from hermes_doctor.backup.records.home_lock import lock_home
from hermes_doctor.backup.records.journal import ItemRecord
from hermes_doctor.backup.records.updates import (
    CHECKED,
    UPDATED,
    Update,
    UpdateRecords,
    process_identity,
)
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import listed
from hermes_doctor.core.model import (
    CannotFix,
    CouldNotLook,
    Finding,
    Report,
    Severity,
    Status,
    Trouble,
)
from hermes_doctor.core.system.accounts import Account
from hermes_doctor.diagnosis.examination import report as reports
from hermes_doctor.diagnosis.plugins.load import Plugins
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.installation import details
from hermes_doctor.hermes.installation.details import InstallationDetails
from hermes_doctor.operations.updates import (
    before_update,
    downtime,
    git_rollback,
    images,
    requirements,
)
from hermes_doctor.operations.updates.before_update import (
    other_installations,
    profile_findings,
    profiles,
)
from hermes_doctor.operations.updates.downtime import gateway_name
from hermes_doctor.repair.gateway import control, startup_proof
from hermes_doctor.repair.gateway.base import GatewayControl
from hermes_doctor.repair.gateway.manager_commands import owner_of
from hermes_doctor.repair.steps.gateway import GatewayStep
from hermes_doctor.repair.transaction.gateway import START_LIMIT
from hermes_doctor.repair.transaction.gateway_steps import add_gateway_restart
from hermes_doctor.repair.transaction.run import Run
from hermes_doctor.repair.transaction.targets import Item

SETTLE = 20.0
"""Seconds to wait for log lines of the new gateway before they are examined."""

Tell = Callable[[str], None]


class Outcome(NamedTuple):
    """The result of an update."""

    update: Update
    report: Report
    broke: tuple[Finding, ...]
    """New findings: those of the home, then those of its profiles, the worst first."""
    broken: tuple[Home, ...]
    """The homes with new findings."""
    missing: tuple[str, ...]
    """Packages that the new Hermes needs and does not have."""
    lost: tuple[str, ...]
    """Data that was there before and is gone now."""
    elsewhere: tuple[str, ...]
    """Other installations of Hermes whose version changed."""
    gateway: str
    """The state of the gateway, as a sentence."""
    gateway_up: bool

    @property
    def good(self) -> bool:
        """Whether nothing that matters was broken."""
        return self.gateway_up and not self._is_worse and not self.report.why_blind

    @property
    def crashed(self) -> tuple[str, ...]:
        """The checks that crashed after the update, so that they may have missed something."""
        crashed = [check for check in self.report.checks if check.status is Status.CRASHED]
        return tuple(f"{result.id} crashed: {result.reason}" for result in crashed)

    @property
    def as_before(self) -> bool:
        """Whether the only problem is a gateway that was not running before the update, either."""
        worse = self._is_worse or bool(self.report.why_blind)
        return not self.gateway_up and not self.update.had_gateway and not worse

    @property
    def _is_worse(self) -> bool:
        bad = any(finding.severity in (Severity.CRITICAL, Severity.ERROR) for finding in self.broke)
        return bad or bool(self.missing) or bool(self.lost)


def examine(
    home: Home,
    update: Update,
    plugins: Plugins,
    *,
    settle_seconds: float = SETTLE,
    restart: bool = True,
    report_progress: Tell = lambda _: None,
) -> Outcome:
    """Compare with the state before the update, and get the gateways to run on the new code."""
    records = UpdateRecords(home)
    probes = Probes(home)
    lost = before_update.lost_data(update.sizes, home)
    unseen = ""
    try:
        update.after = _now(update, probes)
    except CouldNotLook as why:
        unseen = f"could not find out which Hermes is installed now: {why}"
    update.stage = UPDATED
    update.guard = process_identity(os.getpid()) or []
    records.save(update)
    missing: tuple[str, ...] = ()
    if update.after is None and update.before is not None:
        missing = (unseen or f"it is no longer in {update.before.where}",)
    elif update.after is not None and not images.is_container_image(update.after):
        report_progress("checking the packages of the new Hermes")
        missing = _lacking(home, update.after)
    sentence, up = _gateways(home, update, report_progress, restart=restart and not missing)
    if up and Probes(home).gateway.running():
        report_progress(f"waiting {settle_seconds:.0f} s for the gateway, then reading its logs")
        time.sleep(settle_seconds)
        sentence, up = _settled(home, sentence)
    with closing(Probes(home)) as seen:
        report = reports.report(seen, plugins, plugins.checks)
    names = {profile.profile for profile in profiles(home)}
    before = {(code, _nameless(subject, names)) for code, subject in update.known}

    def is_new(finding: Finding) -> bool:
        known = (finding.code, _nameless(finding.subject, names)) in before
        return not known and finding.severity is not Severity.INFO

    here, beside = (
        tuple(filter(is_new, f)) for f in (report.findings, profile_findings(home, plugins))
    )
    broke = (*here, *reports.sort(beside))
    broken = [*([home] * bool(here)), *_homes_of(beside, home)]
    update.stage = CHECKED
    update.guard = []
    records.save(update)
    elsewhere = _elsewhere(home, update)
    return Outcome(update, report, broke, tuple(broken), missing, lost, elsewhere, sentence, up)


def _homes_of(findings: Sequence[Finding], home: Home) -> list[Home]:
    names = {finding.subject.partition(":")[0] for finding in findings}
    return [profile for profile in profiles(home) if profile.profile in names]


def _now(update: Update, probes: Probes) -> InstallationDetails | None:
    """The Hermes after the update: in the old place, or in one that had none before."""
    there = images.hermes_in_place_of(update.before, probes.home) if update.before else None
    if there is not None:
        return there
    installed = probes.hermes.installation()
    if installed is None or os.path.realpath(installed.where) in update.others:
        return None
    return details.read_details(installed)


def _lacking(home: Home, after: InstallationDetails) -> tuple[str, ...]:
    """What the new Hermes needs and does not have, or why that is unknown."""
    try:
        owner = owner_of(home)
    except CannotFix as why:
        return (str(why),)
    return (*requirements.unmet_requirements(after, owner), *_unmerged(after, owner))


def _unmerged(after: InstallationDetails, owner: Account) -> list[str]:
    if after.kind != details.GIT or after.checkout is None:
        return []
    try:
        names = git_rollback.unmerged_files(after.checkout, owner)
    except CannotFix:
        return []
    return [f"a git merge is unfinished in {after.checkout}: {listed(names, 1)}"] if names else []


def _nameless(subject: str, profiles: Collection[str | None]) -> str:
    """The subject without process ids, which change at a restart.

    The name of the profile stays, because a number in it may be all that distinguishes it from
    another.
    """
    head, colon, rest = subject.partition(":")
    if head not in profiles:
        head, colon, rest = "", "", subject
    return head + colon + re.sub(r"[0-9]+", "", rest)


def _elsewhere(home: Home, update: Update) -> tuple[str, ...]:
    now = other_installations(home, update.before)
    return tuple(
        f"Hermes in {place} was {then} before and is {now.get(place, 'gone')} now"
        for place, then in update.others.items()
        if now.get(place) != then
    )


def _gateways(
    home: Home, update: Update, report_progress: Tell, *, restart: bool
) -> tuple[str, bool]:
    """Bring up all gateways of this Hermes, the home's first; return a text and if all run."""
    outcomes = []
    if restart:
        try:
            downtime.start_stopped(home, update, report_progress)
        except (CannotFix, CouldNotLook) as why:
            report_progress(f"could not start a gateway again: {why}")
    for member in downtime.affected_homes(home, update):
        before = update.gateway if member is home else update.beside.get(str(member.path))
        try:
            running = Probes(member).gateway.running()
        except CouldNotLook as why:
            outcomes.append((f"Could not check whether {gateway_name(member)} runs: {why}.", False))
            continue
        if member is home or running or before is not None:
            look = _gateway(member, before, report_progress) if restart else _left(member, before)
            outcomes.append(look)
    return " ".join(text for text, _ in outcomes), all(up for _, up in outcomes)


def _settled(home: Home, sentence: str) -> tuple[str, bool]:
    """The same after a while: a gateway that stopped again is not up."""
    now = Probes(home).gateway.running()
    if not now:
        return f"{sentence} It stopped again soon after.", False
    if f"(process {now[0].pid})" not in sentence:
        return f"{sentence} Soon after, it was restarted (process {now[0].pid}).", True
    return sentence, True


def _left(home: Home, before: int | None) -> tuple[str, bool]:
    """Report the gateway as it is, if it is not to be restarted."""
    name = gateway_name(home)
    running = Probes(home).gateway.running()
    if running:
        return f"T{name[1:]} is running (process {running[0].pid}); it was not restarted.", True
    return f"T{name[1:]} is not running.", before is None


def _gateway(home: Home, before: int | None, report_progress: Tell) -> tuple[str, bool]:
    """Get one gateway to run on the new code: restart or start it unless the update did."""
    probes = Probes(home)
    name = gateway_name(home)
    running = probes.gateway.running()
    change = probes.hermes.code_change()
    is_new = bool(running) and (change is None or change.at <= running[0].started_at)
    if is_new and running[0].pid == before:
        return f"T{name[1:]} (process {before}) runs the same code as before.", True
    if not running and before is None and not _loops(probes):
        return "No gateway was running before the update, and none is running now.", True
    try:
        service = None if is_new else control.gateway_control(probes)
        if service is None or (not running and service.restless()):
            report_progress(f"waiting for {name} to start")
            new, _ = startup_proof.wait_until_running(
                service or GatewayControl(home), time.monotonic() + START_LIMIT, before
            )
            done = "was restarted by the update" if before else "is running now; it was not before"
            return f"T{name[1:]} (process {new.pid}) {done}.", True
        report_progress(
            f"restarting {name} on the new code" if running else f"starting {name} again"
        )
        step = GatewayStep(service, restart=bool(running), why="Hermes was updated")
        steps = add_gateway_restart(probes, [step])
        sentences = [step.sentence() for step in steps]
        record = ItemRecord("update", "UPDATE", "gateway", "update", steps=sentences)
        with lock_home(home):
            run = Run(home, Vault(home), kind="fix", reason="after an update of Hermes")
            # There is nothing more to verify: the step succeeds only if the gateway stays up.
            applied = run.apply([Item(record, steps)], lambda items: [None] * len(items))
        if applied.state != "done":
            raise CannotFix(applied.note or "the start failed and was rolled back")
    except (CannotFix, CouldNotLook, Trouble) as why:
        return f"T{name[1:]} could not be started on the new code: {why}", False
    now = Probes(home).gateway.running()
    if not now:
        return f"T{name[1:]} stopped again on the new code.", False
    return f"T{name[1:]} is running on the new code (process {now[0].pid}).", True


def _loops(probes: Probes) -> bool:
    """Whether the supervisor restarts the gateway again and again, so that it should run."""
    try:
        return control.gateway_control(probes).is_restart_looping()
    except (CannotFix, CouldNotLook):
        return False
