"""Execute one plan as a transaction: back up, stage, commit, verify; roll back on any failure.

New content is first written beside its target and flushed, so a full disk is noticed before
anything has changed. The commit then only renames and keeps the old file under a second name, so
a rollback needs no space and no copying.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from hermes_doctor.backup.manifest import Backup, BackupSource
from hermes_doctor.backup.vault import PARTIAL, Vault
from hermes_doctor.home import Home
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.records import journal as journals
from hermes_doctor.records.journal import Journal, Journals, PathRecord, State
from hermes_doctor.repair import actions, paths
from hermes_doctor.repair.cleanup import clean
from hermes_doctor.repair.commit import commit, databases_of
from hermes_doctor.repair.early_saves import has_early_save, save_first
from hermes_doctor.repair.gateway import ASKED, GatewayPause, remove_origin_file
from hermes_doctor.repair.outcomes import (
    as_trouble,
    error_reason,
    left_files_note,
    left_paths_note,
    mark_left_items,
    mark_refused,
)
from hermes_doctor.repair.preflight import Preflight
from hermes_doctor.repair.rollback import roll_back
from hermes_doctor.repair.stage import stage
from hermes_doctor.repair.targets import (
    Item,
    Refused,
    Target,
    Verify,
    gateway_steps,
    leave_other_supervisors,
    targets_of,
)
from hermes_doctor.sqlite.exclusive import exclusive_access
from hermes_doctor.steps.gateway import GatewayStep
from hermes_doctor.system import disk, progress as system_progress
from hermes_doctor.system.files import snapshot
from hermes_doctor.system.signals import delay_signals, interruptible


@dataclass
class Run:
    """One execution of a plan, of an undo or of a restore."""

    home: Home
    vault: Vault
    kind: str
    reason: str
    hermes: str | None = None
    of: str | None = None
    command: str | None = None
    """The first run of the same command, if that was another run."""
    progress: Callable[[int], None] | None = None
    id: str = ""
    journal: Journal | None = None
    """Set once the run has begun, also for a caller that is interrupted."""

    def __post_init__(self) -> None:
        self.id = self.id or self.vault.next_id()

    def apply(self, items: Sequence[Item], verify: Verify) -> Journal:
        """Execute the items and return the receipt; the caller must hold the home's lock."""
        book = Journals(self.home)
        log = Journal(
            id=self.id,
            kind=self.kind,
            home=str(self.home.path),
            vault="" if self.vault.root == self.home.vault else str(self.vault.root),
            started_at=datetime.now(UTC).isoformat(),
            of=self.of,
            command=self.command,
            items=[item.record for item in items],
        )
        self.journal = log
        preflight = Preflight(self.home, self.vault, self.kind)
        leave_other_supervisors(items)
        targets = targets_of(items)
        gateway = GatewayPause(gateway_steps(items), log, book)
        acts = actions.MachineActions(items, log, book)
        if not targets and not gateway and not acts and not any(map(has_early_save, items)):
            log.finish(journals.ABANDONED, "nothing to do")
            log.close()
            return log
        try:
            preflight.look(targets, gateway, acts)
            preflight.refuse_unsafe_start(items, targets)
        except Refused as error:
            log.finish(journals.ABANDONED, f"nothing was changed: {error}")
            log.close()
            return mark_refused(log, error)
        with interruptible(), contextlib.ExitStack() as guards:
            try:
                book.save(log)
                save_first(items, self.vault, log, guards)
                if log.saved:
                    book.save(log)
                for step in [step for item in items for step in item.steps]:
                    guards.callback(step.release)
                    step.prepare()
                if gateway.stop():
                    targets = targets_of(items, gateway_stopped=True)
                backup = self._back_up(targets, log, book)
                stage(self.home, self.id, targets, log, book)
                _note(items)
                for database in databases_of(targets, self.id):
                    if snapshot(database).kind == "file":  # late: a starting gateway has to wait
                        guards.enter_context(exclusive_access(database))
                preflight.refuse_holders(targets, allowed_pids=[])
                book.reserve_mark(log)
            except BaseException as error:
                with delay_signals():
                    self._abandon(log, book, gateway, guards, error)
                if isinstance(error, Refused):
                    return mark_refused(log, error)
                raise as_trouble(error, log) from error
            locked = True
            try:
                with delay_signals():
                    self._commit(targets, log, book)
                if self.kind != "fix":  # a running gateway writes to restored files
                    verify = _beforehand(log, verify)
                locked = False
                guards.close()
                acts.do()
                gateway.start(keeps_changes=not any(target.is_database for target in targets))
                _note(items)
                late = _unconnected(items, gateway)
                self._settle(log, book, backup, verify, gateway, acts, late)
            except BaseException as error:
                with delay_signals():
                    # Keep our locks: a process that waits for them must find the old files again.
                    self._give_back(log, book, backup, gateway, acts, error, guards, locked=locked)
                _note(items)
                partly = isinstance(error, OSError) and log.end == journals.PARTLY
                if partly or isinstance(error, CannotFix | Trouble):
                    return log
                raise as_trouble(error, log) from error
        return log

    # -- before anything changes -----------------------------------------------------------

    def _back_up(self, targets: Sequence[Target], log: Journal, all_journals: Journals) -> Backup:
        sources = [
            BackupSource(
                self.home.name_of(target.path),
                str(target.path),
                target.change.expect,
                content=target.replaces,
            )
            for target in targets
        ]
        backup = self.vault.create(
            sources, reason=self.reason, hermes=self.hermes, id=self.id, progress=self.progress
        )
        mine = {self.home.name_of(target.path): target for target in targets}
        saved = 0
        for entry in backup.entries:  # entries of many files come in any order
            if entry.path in mine:
                mine[entry.path].before = paths.state_of(entry)
                saved += 1
        if saved != len(targets):
            raise Trouble(
                text("Backup {id} lacks a file that will be changed. Try again.", id=backup.id)
            )
        log.state = journals.STAGING
        log.paths = [
            PathRecord(
                self.home.name_of(target.path),
                before=target.before,
                after=State("unknown"),
                items=target.items,
            )
            for target in targets
        ]
        all_journals.save(log)
        return backup

    def _abandon(
        self,
        log: Journal,
        all_journals: Journals,
        gateway: GatewayPause,
        guards: contextlib.ExitStack,
        error: BaseException,
    ) -> None:
        """End a run that changed nothing, and remove its temporary files."""
        with contextlib.suppress(OSError):
            self.vault.discard(self.id + PARTIAL)
        log.finish(journals.ABANDONED, f"nothing was changed: {error_reason(error)}")
        guards.close()
        gateway.start_after_rollback(changed=True)
        if log.gateway == ASKED and log.note:
            log.note = log.note.replace("nothing was changed", "no file was changed", 1)
        self._end(log, all_journals)

    # -- the change, and after -------------------------------------------------------------

    def _commit(self, targets: Sequence[Target], log: Journal, all_journals: Journals) -> None:
        """Put every path in place; from here on an interrupted run is rolled back."""
        from hermes_doctor.processes import gateway_processes

        log.state = journals.COMMITTING
        all_journals.save(log)
        commit(self.home, log, targets)
        for folder in sorted({target.path.parent for target in targets}):
            disk.sync_folder(folder)
        old = [
            place(target.path, self.id)
            for target in targets
            if target.is_database
            for place in (paths.kept_path, paths.joined_old_path)
        ]
        for path, pids in gateway_processes.processes_using(old).items() if old else ():
            # A process that opened it at the last moment would go on writing into the old file.
            raise Trouble(
                text(
                    "process {pids} opened {path} at the last moment", pids=pids[0], path=path.name
                )
            )
        log.state = journals.VERIFYING
        all_journals.save(log)

    def _settle(
        self,
        log: Journal,
        all_journals: Journals,
        backup: Backup,
        verify: Verify,
        gateway: GatewayPause,
        acts: actions.MachineActions,
        late: Mapping[int, str],
    ) -> None:
        """Verify the items, roll back those whose fix did not hold, and close the run.

        `late` has the items whose platform is not connected yet. If only the gateway was restarted
        for them, there is nothing to roll back.
        """
        system_progress.report("verifying")
        pending = [n for n, item in enumerate(log.items) if item.outcome == "planned"]
        wrong = dict(zip(pending, verify([log.items[n] for n in pending]), strict=True))
        kept = {n for n in late if not acts.of([n]) and not any(n in p.items for p in log.paths)}
        failed = {n for n, why in wrong.items() if why is not None and n not in kept}
        with delay_signals():
            for _ in log.paths:  # items that share a file with a failed item fail, too
                for record in log.paths:
                    if failed & set(record.items):
                        failed |= set(record.items)
            for n in failed:
                wrong[n] = wrong.get(n) or "it changes the same file as a fix that failed"
            left: list[str] = []
            back = [record for record in log.paths if failed & set(record.items)]
            if back or acts.of(failed):
                gateway.stop_for_rollback()
                left = roll_back(self.home, log, backup, back).left
                acts.revert(failed)
                gateway.start_after_rollback(changed=True)
            changed = {n for record in back for n in record.items}
            changed |= {n for record in acts.of(failed) for n in record.items}
            for n in pending:
                lost = "rolled-back" if n in changed else "failed"
                good = journals.NOT_CONNECTED if n in late else "verified"
                log.items[n].outcome = lost if n in failed else good
                log.items[n].reason = wrong[n] if n in failed else late.get(n)
            mark_left_items(log, left, backup)
            held = any(item.is_applied for item in log.items)
            if not failed:
                log.finish(journals.DONE)
            elif held or left:
                log.finish(journals.PARTLY, "some fixes did not help" + left_paths_note(left))
            elif changed:
                log.finish(journals.ROLLED_BACK, "the fix did not help and was rolled back")
            else:
                log.finish(journals.ABANDONED, "the fix was applied but did not help")
            all_journals.save(log)
            self._end(log, all_journals, backup)

    def _give_back(
        self,
        log: Journal,
        all_journals: Journals,
        backup: Backup,
        gateway: GatewayPause,
        acts: actions.MachineActions,
        error: BaseException,
        guards: contextlib.ExitStack,
        *,
        locked: bool,
    ) -> None:
        """Roll everything back after a failure, and record how that went."""
        changed = bool(log.paths or acts.begun())
        if changed:
            with contextlib.suppress(CannotFix, CouldNotLook, OSError):
                gateway.stop_for_rollback()
        left = roll_back(self.home, log, backup, log.paths, locked=locked).left
        guards.close()
        acts.revert()
        state = journals.PARTLY if left else journals.ROLLED_BACK
        for item in log.items:
            if item.outcome != "left":
                item.outcome = "rolled-back" if changed else "failed"
                item.reason = error_reason(error)
        mark_left_items(log, left, backup)
        told = "rolled back" if changed else "not done"
        log.finish(state, f"{told}: {error_reason(error)}" + left_paths_note(left))
        gateway.start_after_rollback(changed=changed)
        try:
            all_journals.save(log)
        except OSError:
            complete = not left and all(act.reverted for act in acts.begun())
            if not complete or not all_journals.mark_rolled_back(log):
                log.close()  # the files beside the targets stay: they show how far the run came
                return
        self._end(log, all_journals, backup)

    def _end(self, log: Journal, all_journals: Journals, backup: Backup | None = None) -> None:
        """Remove temporary files and close the journal; on a full disk the last save may fail."""
        with contextlib.suppress(OSError):
            clean(self.home, log, backup)
        if text := left_files_note(self.home, log).strip().removesuffix("."):
            log.note = f"{log.note}. {text}" if log.note else text
        if log.gateway != ASKED:  # else the next command has to finish the run
            remove_origin_file(all_journals, log)
            log.close()
        with contextlib.suppress(OSError):
            all_journals.save(log)
            all_journals.remove_marks(log)


def _beforehand(log: Journal, verify: Verify) -> Verify:
    """Verify now, and return a function that gives these results later."""
    pending = [item for item in log.items if item.outcome == "planned"]
    said = dict(zip(map(id, pending), verify(pending), strict=True))
    return lambda records: [said[id(record)] for record in records]


def _note(items: Sequence[Item]) -> None:
    """Collect the notes of all steps, those of the gateway once: several items may restart it."""
    told = False
    for item in items:
        item.record.notes = []
        for step in item.steps:
            if not (isinstance(step, GatewayStep) and told):
                item.record.notes += step.notes()
            told = told or isinstance(step, GatewayStep)


def _unconnected(items: Sequence[Item], gateway: GatewayPause) -> dict[int, str]:
    """The items whose platforms are not connected since the start of the gateway, and why."""
    missing = gateway.unconnected()
    found: dict[int, str] = {}
    for number, item in enumerate(items):
        steps = [step for step in item.steps if isinstance(step, GatewayStep)]
        reasons = [missing[name] for step in steps for name in step.platforms if name in missing]
        if steps and gateway.still_fails:
            reasons = [gateway.still_fails]
        if reasons and item.record.outcome == "planned":
            found[number] = "; ".join(dict.fromkeys(reasons))
    return found
