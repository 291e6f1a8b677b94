"""Compare a home with what the runs of a command left: what would an undo lose?

The edit of a person is a reason to refuse. What a gateway writes while it works is not: its rows
are counted, and they stay in the backup that an undo makes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hermes_doctor.backup.restored_rows import removed
from hermes_doctor.backup.selection import is_gateway_file
from hermes_doctor.backup.unique_rows import LastRows
from hermes_doctor.backup.vault import Vault
from hermes_doctor.home import Home, database_of, is_database
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook, Trouble
from hermes_doctor.probes.probes import Probes
from hermes_doctor.records.journal import Journal, PathRecord
from hermes_doctor.repair import logs_without_database, paths
from hermes_doctor.repair.gateway import STARTED
from hermes_doctor.repair.hint_marks import digest_without_marks
from hermes_doctor.repair.joined_runs import JoinedRuns, SavedPath
from hermes_doctor.settings import config_file


def gateway_runs(home: Home) -> bool:
    """Whether a gateway works in the home now."""
    try:
        return bool(Probes(home).gateways())
    except CouldNotLook:
        return False


def refuse_edits(
    home: Home,
    joined: JoinedRuns,
    records: Sequence[PathRecord],
    changed: Sequence[str],
    *,
    gateway_wrote: bool,
) -> None:
    """Raise Trouble if an undo would lose what a person wrote after the runs or between them."""
    if reason := logs_without_database.reason_to_refuse_undo(home, joined, records):
        raise Trouble(reason)
    edited = [
        name
        for name in changed
        if not (gateway_wrote and (is_database(name) or is_gateway_file(name)))
    ]
    if gateway_wrote and config_file.NAME in edited and _has_only_marks(home, records):
        edited.remove(config_file.NAME)
    if edited:
        raise Trouble(
            text(
                "{changed} changed since run {id}, and an undo would lose that "
                "change. Nothing was changed. To undo anyway: add --force. The current "
                "version is backed up first.",
                changed=", ".join(edited),
                id=joined.first_run_with(edited[0]).id,
            )
        )


def _has_only_marks(home: Home, records: Sequence[PathRecord]) -> bool:
    """Whether config.yaml still has the settings that the runs left."""
    left = next((one.settings for one in records if one.path == config_file.NAME), None)
    return left is not None and digest_without_marks(home.path / config_file.NAME) == left


def gateway_started(runs: Sequence[Journal]) -> bool:
    """Whether one of these runs started a gateway, which has worked since."""
    return any(run.gateway == STARTED for run in runs)


def lost_rows(
    home: Home, joined: JoinedRuns, saved: Sequence[SavedPath], changed: Sequence[str]
) -> Iterator[str]:
    """Say how many rows an undo removes from each of the changed databases."""
    databases = {database_of(home.path / name) for name in changed if is_database(name)}
    since = paths.start_time_ns(joined.runs[0]) / 1e9
    rows = LastRows(Vault(home), ())
    for backup, entry in saved:
        mine = home.path / entry.path in databases
        if mine and (said := removed(rows, backup, entry, since)):
            yield said


def changed_paths(home: Home, joined: JoinedRuns, records: Sequence[PathRecord]) -> list[str]:
    """The paths that are not as the runs left them."""
    changed = joined.changed_between()
    changed += [
        record.path
        for record in records
        if record.path not in changed
        and not paths.matches(
            paths.read_state(home.path / record.path, content=record.after.sha256 is not None),
            record.after,
        )
    ]
    changed += [
        record.path
        for record in records
        if record.path not in changed
        and not paths.changes_only_mode(record)  # its content is not changed
        and paths.was_used_since(
            home, joined.journal_about(home.path / record.path), home.path / record.path
        )
    ]
    return changed
