"""Runs restores for `undo` and `backup restore`: show, ask, apply, report."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.cli import exits
from hermes_doctor.cli.progress_bars import print_schema_document
from hermes_doctor.core.lazy import EMPTY
from hermes_doctor.core.message import count, sentences, text
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.terminal.lines import row
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.backup.records.journal import Journal
    from hermes_doctor.core.home import Home
    from hermes_doctor.diagnosis.plugins.load import Plugins
    from hermes_doctor.repair.transaction.recovery import RecoveredRun
    from hermes_doctor.repair.transaction.run import Run
    from hermes_doctor.repair.transaction.targets import Item, Verify


@contextmanager
def say_if_interrupted(run: Run) -> Iterator[None]:
    """Let the text for Ctrl-C say what an interrupted run leaves behind."""
    try:
        yield
    except KeyboardInterrupt:
        exits.add_interrupt_text(describe_interrupted(run.journal))
        raise


def describe_interrupted(journal: Journal | None) -> str:
    """What an interrupted run has changed: nothing, or what could not be rolled back."""
    from hermes_doctor.backup.records import journal as journals
    from hermes_doctor.cli.exits import NOTHING

    if journal is None:
        return NOTHING
    state = journal.end or journal.state
    if state == journals.DONE:
        return f"Run {journal.id} was already complete."
    if state == journals.PARTLY:
        return f"Run {journal.id} was rolled back only in part: {journal.note}."
    if state == journals.ROLLED_BACK:
        return f"Run {journal.id} was rolled back, so every file is as before."
    if journal.gateway == "asked":
        return f"Run {journal.id}: {journal.note}."
    return NOTHING


@contextmanager
def recover_first(home: Home, plugins: Plugins, *, json: bool) -> Iterator[list[RecoveredRun]]:
    """Finish cut-off runs first, and report them whatever happens afterwards."""
    from hermes_doctor.cli.progress_bars import waiting
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.repair.transaction import recovery
    from hermes_doctor.repair.transaction.plan import verifier

    exits.set_interrupt_text(exits.WHOLE)
    with waiting("finishing an interrupted run", quiet=json):
        ended = recovery.recover(home, verifier(lambda: Probes(home), plugins))
    if any(run.partial for run in ended):
        exits.note_partial()
    if not json:
        show([row(("! ", "warning"), recovered_run.text, hang=2) for recovered_run in ended])
    if not ended:
        exits.set_interrupt_text(exits.NOTHING)
    try:
        yield ended
    except Trouble as trouble:
        if json and ended:
            raise Trouble(sentences(*(one.text for one in ended), str(trouble))) from None
        raise


def exit_code(done: Journal | None, ended: Sequence[RecoveredRun]) -> int:
    """0 if everything was done and no run left files for the operator to examine."""
    whole = done is not None and done.state == "done" and not done.leaves_files
    return int(not whole or any(run.partial for run in ended))


def _question(items: Sequence[Item], kind: str, of: str, undone: Sequence[str]) -> str:
    """What `undo` or a restore would do, and that the current files are kept."""
    paths = {change.path for item in items for step in item.steps for change in step.changes()}
    files = count(len(paths), "file")
    question = "Restore {files} from backup {id}? The current files are backed up first."
    if kind == "undo":
        question = "Undo run {id} and restore {files}? The current files are backed up first."
    if len(undone) > 1:
        question = (
            "Undo {runs} of one command ({id}) and restore {files}? The current files are backed "
            "up first."
        )
        of = ", ".join(undone)
    return text(question, runs=count(len(undone), "run"), id=of, files=files)


def _agreed(items: Sequence[Item], question: str, *, json: bool) -> bool:
    """Show the steps and ask; raise Trouble if nobody can answer."""
    from hermes_doctor.cli.option_declarations import confirm
    from hermes_doctor.render import repair

    if not json:
        show(repair.step_lines([step for item in items for step in item.steps]))
    if json or not sys.stdin.isatty():
        raise Trouble(
            "A restore replaces files and asks first. Nothing was changed. To confirm: add --yes"
        )
    if confirm(question):
        return True
    show([row("Nothing was changed.")])
    return False


def restore_items(
    home: Home,
    items: Sequence[Item],
    verify: Verify,
    *,
    kind: str,
    of: str,
    hermes: str | None,
    ended: Sequence[RecoveredRun],
    yes: bool,
    json: bool,
    vault: Path | None,
    repeat: str,
    report: bool = True,
    undone: Sequence[str] = (),
    was_running: bool | None = None,
    stores: bool = True,
    losses: Sequence[str] = (),
    more: Mapping[str, object] = EMPTY,
) -> Journal | None:
    """Restore from backups in an ordinary run; None if the operator did not agree.

    Without `report`, the caller reports the result. `undone` are the runs that it undoes,
    `was_running` and `stores` are those of `add_restarts_for_restore`, `losses` says what is
    removed, and `more` is added to the JSON document.
    """
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.cli.progress_bars import repair_bar, waiting
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.render import repair
    from hermes_doctor.repair.transaction.gateway_steps import add_restarts_for_restore
    from hermes_doctor.repair.transaction.run import Run

    with waiting("looking for running gateways", quiet=json):
        add_restarts_for_restore(Probes(home), items, stores=stores, was_running=was_running)
    if not json:
        show([row(("! ", "warning"), (loss, "warning"), hang=2) for loss in losses])
    if not yes and not _agreed(items, _question(items, kind, of, undone), json=json):
        return None
    reason = f"before the {kind} of {of}"
    run = Run(home, Vault(home, vault), kind=kind, reason=reason, of=of, hermes=hermes)
    total = sum(
        change.expect.size for item in items for step in item.steps for change in step.changes()
    )
    label = "restoring" if kind == "restore" else "undoing"
    with say_if_interrupted(run), repair_bar(label, total, quiet=json) as run.progress:
        done = run.apply(items, verify)
    exits.note_change()
    if not report:
        return done
    if json:
        made = {"home": str(home.path), **repair.run_document(done)}
        made["recovered"] = [recovered_run.text for recovered_run in ended]
        made |= {"losses": list(losses), **more} if losses else more
        print_schema_document("run-report", made)
    else:
        show(repair.receipt_lines(done, repeat, undone=undone))
    return done
