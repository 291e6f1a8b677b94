"""Execute one plan as a transaction: back up, stage, commit, verify; roll back on any failure.

New content is first written beside its target and flushed, so a full disk is noticed before
anything has changed. The commit then only renames and keeps the old file under a second name, so
a rollback needs no space and no copying.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hermes_doctor.backup.records import journal as journals
from hermes_doctor.backup.records.journal import Journal, PathRecord, State
from hermes_doctor.backup.vault.manifest import Backup, BackupSource
from hermes_doctor.backup.vault.vault import PARTIAL, Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.system import disk, progress as system_progress
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.core.system.signals import delay_signals, interruptible
from hermes_doctor.hermes.processes import gateway_processes
from hermes_doctor.repair.transaction import paths
from hermes_doctor.repair.transaction.gateway import ASKED, GatewayPause, remove_origin_file
from hermes_doctor.repair.transaction.outcomes import (
    as_trouble,
    error_reason,
    left_files_note,
    left_paths_note,
    mark_left_items,
    mark_refused,
)
from hermes_doctor.repair.transaction.preflight import Preflight
from hermes_doctor.repair.transaction.rollback import clean, roll_back
from hermes_doctor.repair.transaction.stage import commit, databases_of, stage
from hermes_doctor.repair.transaction.targets import (
    Item,
    MachineActions,
    Refused,
    Target,
    Verify,
    collect_notes,
    gateway_steps,
    leave_other_supervisors,
    refuse_step,
    targets_of,
)
from hermes_doctor.sqlite.exclusive import exclusive_access


@dataclass
class Run:
    """One execution of a plan, of an undo or of a restore.

    It owns the journal, which also a caller can read that is interrupted.
    """

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
    journal: Journal = field(init=False)
    items: Sequence[Item] = field(init=False, default=())
    targets: list[Target] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.id = self.id or self.vault.next_id()
        self.journal = Journal(
            id=self.id,
            kind=self.kind,
            home=str(self.home.path),
            vault="" if self.vault.root == self.home.vault else str(self.vault.root),
            started_at=datetime.now(UTC).isoformat(),
            of=self.of,
            command=self.command,
            opened_in=self.home,
        )
        self._preflight = Preflight(self.home, self.vault, self.kind)
        self._guards = contextlib.ExitStack()
        """The locks of the databases, and what the steps keep open."""
        self._is_locked = True
        self._results: dict[int, str | None] | None = None
        """What is still wrong with each item, or None; known early for an undo or a restore."""
        self._unconnected: dict[int, str] = {}

    def apply(self, items: Sequence[Item], verify: Verify) -> Journal:
        """Execute the items and return the receipt; the caller must hold the home's lock.

        A failure before the commit abandons the run: no file has changed. A later one rolls all
        changes back. A step that changes anything first saves in the journal that it will.
        """
        self._begin(items, verify)
        saves = any(item.saves_first for item in self.items)
        if not (self.targets or self._gateway or self._actions or saves):
            return self._end_unsaved("nothing to do")
        try:
            self._preflight.look(self.targets, self._gateway, self._actions)
            self._preflight.refuse_unsafe_start(self.items, self.targets)
        except Refused as error:
            return mark_refused(self._end_unsaved(f"nothing was changed: {error}"), error)
        with interruptible(), self._guards:
            try:
                self.journal.save()
                self._save_open_files()
                self._stop_gateway()
                self._back_up()
                stage(self.targets, self.journal)
                collect_notes(self.items)
                self._lock_databases()
            except BaseException as error:
                self._abandon(error)
                if isinstance(error, Refused):
                    return mark_refused(self.journal, error)
                raise as_trouble(error, self.journal) from error
            try:
                self._commit()
                self._actions.do()
                replaced = any(target.is_database for target in self.targets)
                self._gateway.start(keeps_changes=not replaced)
                collect_notes(self.items)
                self._unconnected = self._gateway.unconnected_items(self.items)
                failed = self._verify()
                with delay_signals():
                    self._settle(failed)
                    self._write_receipt()
            except BaseException as error:
                self._roll_back(error)
                if not self._is_told_by_receipt(error):
                    raise as_trouble(error, self.journal) from error
        return self.journal

    def _begin(self, items: Sequence[Item], verify: Verify) -> None:
        self.items, self._check = items, verify
        self.journal.items = [item.record for item in items]
        leave_other_supervisors(items)
        self.targets = targets_of(items)
        self._gateway = GatewayPause(gateway_steps(items), self.journal)
        self._actions = MachineActions(items, self.journal)

    def _end_unsaved(self, note: str) -> Journal:
        """End a run before its journal is written; it leaves no receipt."""
        self.journal.finish(journals.ABANDONED, note)
        self.journal.close()
        return self.journal

    def _save_open_files(self) -> None:
        """Save data that only a running process still has open, before that is stopped."""
        for item in self.items:
            for step in item.steps if item.record.outcome != "left" else ():
                self._guards.callback(step.release)
                try:
                    step.save_first(self.vault, self.journal)
                except CannotFix as why:
                    raise refuse_step(self.items, step, why) from why
        if self.journal.saved:
            self.journal.save()

    def _stop_gateway(self) -> None:
        for step in [step for item in self.items for step in item.steps]:
            self._guards.callback(step.release)
            step.prepare()
        if self._gateway.stop():
            self.targets = targets_of(self.items, gateway_stopped=True)

    def _back_up(self) -> None:
        sources = [
            BackupSource(
                self.home.name_of(target.path),
                str(target.path),
                target.change.expect,
                content=target.replaces,
            )
            for target in self.targets
        ]
        self._backup = self.vault.create(
            sources, reason=self.reason, hermes=self.hermes, id=self.id, progress=self.progress
        )
        targets = {self.home.name_of(target.path): target for target in self.targets}
        saved = 0
        for entry in self._backup.entries:  # entries of many files come in any order
            if entry.path in targets:
                targets[entry.path].before = paths.state_of(entry)
                saved += 1
        if saved != len(self.targets):
            raise Trouble("Backup {id} lacks a file that will be changed. Try again.", id=self.id)
        self.journal.paths = [
            PathRecord(name, before=target.before, after=State("unknown"), items=target.items)
            for name, target in targets.items()
        ]
        self.journal.enter(journals.STAGING)

    def _lock_databases(self) -> None:
        for database in databases_of(self.targets, self.id):
            if snapshot(database).kind == "file":  # late: a starting gateway has to wait
                self._guards.enter_context(exclusive_access(database))
        self._preflight.refuse_holders(self.targets, allowed_pids=[])
        self.journal.reserve_mark()

    def _abandon(self, error: BaseException) -> None:
        """End a run that changed nothing, and remove its temporary files."""
        with delay_signals():
            with contextlib.suppress(OSError):
                self.vault.discard(self.id + PARTIAL)
            self.journal.finish(journals.ABANDONED, f"nothing was changed: {error_reason(error)}")
            self._guards.close()
            self._gateway.start_after_rollback(changed=True)
            if self.journal.gateway == ASKED and self.journal.note:
                note = self.journal.note
                self.journal.note = note.replace("nothing was changed", "no file was changed", 1)
            self._end(None)

    def _commit(self) -> None:
        """Put every path in place; from here on an interrupted run is rolled back."""
        with delay_signals():
            self.journal.enter(journals.COMMITTING)
            commit(self.journal, self.targets)
            for folder in sorted({target.path.parent for target in self.targets}):
                disk.sync_folder(folder)
            # Fail if a process opened a database at the last moment: it would use the old file.
            old = [
                place(target.path, self.id)
                for target in self.targets
                if target.is_database
                for place in (paths.kept_path, paths.joined_old_path)
            ]
            for path, pids in gateway_processes.processes_using(old).items() if old else ():
                raise Trouble(
                    "process {pids} opened {path} at the last moment", pids=pids[0], path=path.name
                )
            self.journal.enter(journals.VERIFYING)
        if self.kind != "fix":  # a running gateway writes to restored files
            self._results = self._check_items()
        self._is_locked = False
        self._guards.close()

    def _check_items(self) -> dict[int, str | None]:
        """Ask for each item that is not left out whether its problem is gone."""
        pending = [n for n, item in enumerate(self.journal.items) if item.outcome == "planned"]
        results = self._check([self.journal.items[n] for n in pending])
        return dict(zip(pending, results, strict=True))

    def _verify(self) -> dict[int, str]:
        """The items whose fix did not help, and why; items that share a file fail together.

        If only the gateway was restarted for an item, there is nothing to roll back, and its
        platform may still connect.
        """
        system_progress.report("verifying")
        if self._results is None:
            self._results = self._check_items()
        failed = {
            n: why
            for n, why in self._results.items()
            if why is not None and not (n in self._unconnected and self._only_restarts(n))
        }
        for _ in self.journal.paths:
            for record in self.journal.paths:
                if failed.keys() & set(record.items):
                    for n in record.items:
                        why = (
                            self._results.get(n) or "it changes the same file as a fix that failed"
                        )
                        failed.setdefault(n, why)
        return failed

    def _only_restarts(self, item: int) -> bool:
        changes = any(item in record.items for record in self.journal.paths)
        return not changes and not self._actions.of([item])

    def _settle(self, failed: Mapping[int, str]) -> None:
        """Roll back the items whose fix did not help, and record the outcome of each item."""
        journal = self.journal
        left: list[str] = []
        records = [record for record in journal.paths if failed.keys() & set(record.items)]
        acts = self._actions.of(failed)
        if records or acts:
            self._gateway.stop_for_rollback()
            left = roll_back(journal, self._backup, records).left
            self._actions.revert(failed)
            self._gateway.start_after_rollback(changed=True)
        changed = {n for record in records for n in record.items}
        changed |= {n for act in acts for n in act.items}
        for n in self._results or ():
            item = journal.items[n]
            if n in failed:
                item.outcome = "rolled-back" if n in changed else "failed"
                item.reason = failed[n]
            else:
                item.outcome = journals.NOT_CONNECTED if n in self._unconnected else "verified"
                item.reason = self._unconnected.get(n)
        mark_left_items(journal, left, self._backup)
        if not failed:
            journal.finish(journals.DONE)
        elif left or any(item.is_applied for item in journal.items):
            journal.finish(journals.PARTLY, "some fixes did not help" + left_paths_note(left))
        elif changed:
            journal.finish(journals.ROLLED_BACK, "the fix did not help and was rolled back")
        else:
            journal.finish(journals.ABANDONED, "the fix was applied but did not help")

    def _write_receipt(self) -> None:
        self.journal.save()
        self._end(self._backup)

    def _roll_back(self, error: BaseException) -> None:
        """Roll everything back after a failure, and record how that went."""
        journal = self.journal
        with delay_signals():
            changed = bool(journal.paths or self._actions.begun())
            if changed:
                with contextlib.suppress(CannotFix, CouldNotLook, OSError):
                    self._gateway.stop_for_rollback()
            # Keep our locks: a process that waits for them must find the old files again.
            left = roll_back(journal, self._backup, journal.paths, locked=self._is_locked).left
            self._guards.close()
            self._actions.revert()
            for item in journal.items:
                if item.outcome != "left":
                    item.outcome = "rolled-back" if changed else "failed"
                    item.reason = error_reason(error)
            mark_left_items(journal, left, self._backup)
            journal.finish(
                journals.PARTLY if left else journals.ROLLED_BACK,
                f"{'rolled back' if changed else 'not done'}: {error_reason(error)}"
                f"{left_paths_note(left)}",
            )
            self._gateway.start_after_rollback(changed=changed)
            try:
                self._write_receipt()
            except OSError:
                complete = not left and all(act.reverted for act in self._actions.begun())
                if complete and journal.mark_rolled_back():
                    self._end(self._backup)
                else:  # the files beside the targets stay: they show how far the run came
                    journal.close()
        collect_notes(self.items)

    def _is_told_by_receipt(self, error: BaseException) -> bool:
        """Whether the receipt says enough about a run that was rolled back after this error."""
        partly = isinstance(error, OSError) and self.journal.end == journals.PARTLY
        return partly or isinstance(error, CannotFix | Trouble)

    def _end(self, backup: Backup | None) -> None:
        """Remove temporary files and close the journal; on a full disk the last save may fail."""
        journal = self.journal
        with contextlib.suppress(OSError):
            clean(journal, backup)
        if note := left_files_note(journal).strip().removesuffix("."):
            journal.note = f"{journal.note}. {note}" if journal.note else note
        if journal.gateway != ASKED:  # else the next command has to finish the run
            remove_origin_file(journal)
            journal.close()
        with contextlib.suppress(OSError):
            journal.save()
            journal.remove_marks()
