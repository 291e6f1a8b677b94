"""Examines the result of an update, for the commands and hooks that start one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from hermes_doctor.cli import separate_look
from hermes_doctor.cli.option_values import load_plugins, repeat_options
from hermes_doctor.cli.progress_bars import print_document, tell
from hermes_doctor.cli.restore_common import recover_first
from hermes_doctor.core import home as homes
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.backup.records.updates import Update
    from hermes_doctor.core.home import Home


def home_with_records(home: Home) -> Home:
    """The home with the update records: for a profile it may be the home that contains it."""
    from hermes_doctor.backup.records.updates import UpdateRecords

    known = separate_look.look(home.path, lambda: UpdateRecords(home).ids())
    return home if known else homes.root_home(home)


def examine_last(home: Home, *, json: bool, from_chat: bool) -> int:
    """Examine the result of the last update."""
    from hermes_doctor.backup.records.home_lock import lock_home
    from hermes_doctor.backup.records.updates import BACK, GOING_BACK, UpdateRecords

    records = UpdateRecords(home)
    update = records.last() if from_chat else records.newest()
    if from_chat and not _is_of_chat(home, update):
        return 0  # an ordinary start
    if update is None:
        raise Trouble(
            "No guarded update was started here. Start one: hermes-doctor hook run pre-update"
        )
    if update.stage == BACK:
        raise Trouble(
            "Update {id} was rolled back, so it has no result to check. See: hermes-doctor check",
            id=update.id,
        )
    if from_chat:
        update = records.wait_for_end(update)
    if from_chat and update.is_running():
        return 0  # another gateway of this update examines it already
    refuse_running(update)
    with records.lock():
        if update.stage == GOING_BACK:  # cut off while restoring: before any gateway starts
            with lock_home(home), recover_first(home, load_plugins(None), json=json):
                pass
        return int(not examine_and_report(home, update, json=json, restart=not from_chat))


def _is_of_chat(home: Home, update: Update | None) -> bool:
    """Whether this gateway was started by an update that no guard process waits for."""
    from hermes_doctor.backup.records.updates import BACKED_UP, UPDATING
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.hermes.installation.details import has_changed

    if update is None or update.stage not in (BACKED_UP, UPDATING):
        return False
    if update.stage == UPDATING and not update.chat:
        return False
    return has_changed(Probes(home).hermes.installation(), update.before)


def refuse_running(update: Update) -> None:
    """Raise Trouble if another process is working on this update."""
    who = update.running_process()
    if who is not None and who != os.getpid():
        raise Trouble(
            "Update {id} is still running (process {pid}). Nothing was changed. Try "
            "again when it has finished.",
            id=update.id,
            pid=who,
        )


def examine_and_report(
    home: Home,
    update: Update,
    *,
    json: bool = False,
    restart: bool = True,
    to: TextIO | None = None,
) -> bool:
    """Examine everything and report what is broken; return whether all is well."""
    from hermes_doctor.operations.updates import after_update
    from hermes_doctor.render import update as render_update

    outcome = after_update.examine(
        home,
        update,
        load_plugins(None),
        settle_seconds=_settle(),
        restart=restart,
        report_progress=tell,
    )
    if json:
        print_document(render_update.document(outcome))
    else:
        show(render_update.lines(outcome, home.path, repeat_options), to)
    return outcome.good


def _settle() -> float:
    from hermes_doctor.operations.updates.after_update import SETTLE

    try:
        return float(os.environ["HERMES_DOCTOR_SETTLE"])
    except (KeyError, ValueError):
        return SETTLE
