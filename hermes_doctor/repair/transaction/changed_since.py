"""Compare a home with what the runs of a command left: what would an undo lose?

The edit of a person is a reason to refuse. What a gateway writes while it works is not: its rows
are counted, and they stay in the backup that an undo makes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hermes_doctor.backup.records.journal import Journal, PathRecord
from hermes_doctor.backup.vault.backup_rows import LastRows, removed
from hermes_doctor.backup.vault.selection import is_gateway_file
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home, database_of, is_database
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.settings import config_yaml
from hermes_doctor.repair.transaction import paths, restore_of_lone_logs
from hermes_doctor.repair.transaction.gateway import STARTED
from hermes_doctor.repair.transaction.joined_runs import JoinedRuns, SavedPath
from hermes_doctor.repair.transaction.stage import digest_without_marks


def gateway_runs(home: Home) -> bool:
    """Whether a gateway works in the home now."""
    try:
        return bool(Probes(home).gateway.running())
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
    if reason := restore_of_lone_logs.reason_to_refuse_undo(home, joined, records):
        raise Trouble(reason)
    edited = [
        name
        for name in changed
        if not (gateway_wrote and (is_database(name) or is_gateway_file(name)))
    ]
    if gateway_wrote and config_yaml.NAME in edited and _has_only_marks(home, records):
        edited.remove(config_yaml.NAME)
    if edited:
        raise Trouble(
            "{changed} changed since run {id}, and an undo would lose that "
            "change. Nothing was changed. To undo anyway: add --force. The current "
            "version is backed up first.",
            changed=", ".join(edited),
            id=joined.first_run_with(edited[0]).id,
        )


def _has_only_marks(home: Home, records: Sequence[PathRecord]) -> bool:
    """Whether config.yaml still has the settings that the runs left."""
    left = next((record.settings for record in records if record.path == config_yaml.NAME), None)
    return left is not None and digest_without_marks(home.path / config_yaml.NAME) == left


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
            joined.journal_about(home.path / record.path), home.path / record.path
        )
    ]
    return changed
