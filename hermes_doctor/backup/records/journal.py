"""Keep the journal of a run, written before each change; the closed journal is the receipt."""

from __future__ import annotations

import contextlib
import json
import os
import re
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_doctor import __version__
from hermes_doctor.backup.records.receipts import FINAL_STATES, RUN_FILE
from hermes_doctor.backup.records.typed_documents import to_record
from hermes_doctor.core.home import Home
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.outgoing import masked
from hermes_doctor.core.system import disk, root_parent
from hermes_doctor.core.system.files import MEGABYTE, list_folder, read

SCHEMA = "hermes-doctor/run/1"

BACKING_UP = "backing-up"
STAGING = "staging"
COMMITTING = "committing"
VERIFYING = "verifying"
ENDING = "ending"
"""The outcome is decided and saved; only temporary files are still being removed."""
DONE = "done"
PARTLY = "partly"
ROLLED_BACK = "rolled-back"
ABANDONED = "abandoned"
UNDONE = "undone"
assert {DONE, PARTLY, ROLLED_BACK, ABANDONED, UNDONE} == FINAL_STATES
NOT_CONNECTED = "not-connected"
"""Outcome of an item that was done, but whose platform has not connected since."""
_SWITCHING, _TAKEN_BACK = "switching", "taken-back"
"""Two names of an empty file in the run's folder: while it replaces files, and once rolled back."""


@dataclass()
class State:
    """The state of a path, as far as a run needs it to tell before from after."""

    kind: str
    sha256: str | None = None
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    target: str | None = None


@dataclass()
class PathRecord:
    """One path that the run changes."""

    path: str
    before: State
    after: State
    items: list[int] = field(default_factory=list)
    """The indexes of the run's items that change it."""
    reverted: bool = False
    joined_before: State | None = None
    """For a database: one file with the old content of the database and its write-ahead log or
    journal."""
    joined_after: State | None = None
    """The same for the new content."""
    database: State | None = None
    """For a write-ahead log or journal that is changed without its database: the state of the
    database at that time."""
    settings: str | None = None
    """For config.yaml: a digest of the new settings without the marks that Hermes writes."""


@dataclass()
class ItemRecord:
    """One item of a run: a finding to repair, or a path to restore."""

    fix: str
    code: str
    subject: str
    check: str
    steps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What the repair found out, such as the numbers of saved and lost rows."""
    outcome: str = "planned"
    """planned, verified, not-connected (done, but a platform is not connected yet), rolled-back,
    failed (done without effect), refused, not-enough or left."""
    reason: str | None = None
    then: str | None = None
    """The fix to continue with if this one is not enough."""
    done: str = ""
    """What a fix that controls the gateway has done, if that alone proves nothing: `restarted`,
    `started` or `applied`."""
    down: str = ""
    """Why the gateway that it starts was down: `on-purpose`, or `not-wanted` if somebody else told
    it to end. Empty if it failed, or if nothing is started."""

    @property
    def is_applied(self) -> bool:
        """Whether its changes are in place."""
        return self.outcome in ("verified", NOT_CONNECTED)


@dataclass()
class MachineActionRecord:
    """One machine action of a run, such as a command to the service manager."""

    kind: str
    words: dict[str, str] = field(default_factory=dict)
    items: list[int] = field(default_factory=list)
    begun: bool = False
    reverted: bool = False


@dataclass()
class Journal:
    """The journal of one run: its items, the paths and machine actions, and how it ended."""

    id: str
    kind: str
    """fix, undo or restore."""
    home: str
    vault: str
    """The vault of its backup; empty for the home's own vault, which moves with the home."""
    started_at: str
    state: str = BACKING_UP
    of: str | None = None
    """The run that is undone, or the backup that is restored."""
    undone_by: str | None = None
    command: str | None = None
    """The first run of the same command; None for that run itself, and in receipts of earlier
    versions. `undo` undoes all runs of a command together."""
    ended_at: str | None = None
    tool: str = __version__
    uid: int = field(default_factory=root_parent.operator)
    gateway: str | None = None
    """`asked` after the gateway was told to end and before it has ended, `stopped` while it is down
    because of this run, `started` once it runs again, `left-stopped` if an undo stopped it because
    no gateway ran before the repair, `comes-back` if something else then starts it again."""
    was_running: bool | None = None
    """Whether a gateway ran before the run; None if the run did not control the gateway."""
    asked: int | None = None
    """The process that was told to end and has not ended yet."""
    items: list[ItemRecord] = field(default_factory=list)
    paths: list[PathRecord] = field(default_factory=list)
    acts: list[MachineActionRecord] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    """Folders that the run created; outside the home with their full path. Undo removes them."""
    saved: list[str] = field(default_factory=list)
    """Backups of deleted files that a process had open, made before the gateway was stopped."""
    settled: list[str] = field(default_factory=list)
    """Such backups, of this run or an earlier one, whose rows are in the database if this run is
    done: it compared them after the stop, or added them."""
    note: str | None = None
    end: str | None = None
    """While ending: the final state of the run."""
    kept: list[str] = field(default_factory=list)
    """Replaced files that were not removed because they differ from the backup."""
    unremoved: list[str] = field(default_factory=list)
    """Files of the run that could not be removed."""
    opened_in: Home | None = field(default=None, repr=False, compare=False)
    """The home that the journal was loaded from, which may have moved since. It is not stored."""

    @property
    def current_home(self) -> Home:
        """The home of the run, at its present path."""
        return self.opened_in or Home(Path(self.home))

    @property
    def folder(self) -> Path:
        """The folder of all files of the run, except its backup."""
        return self.current_home.runs / self.id

    @property
    def vault_folder(self) -> Path:
        """The vault that contains its backup."""
        return Path(self.vault) if self.vault else self.current_home.vault

    def path_of(self, record: PathRecord) -> Path:
        """The full path that a record is about."""
        return self.current_home.path / record.path

    @property
    def outside_folders(self) -> list[str]:
        """The created folders that are outside the home."""
        return [name for name in self.folders if os.path.isabs(name)]

    @property
    def group(self) -> str:
        """What all runs of one command have in common: the id of the first of them."""
        return self.command or self.id

    @property
    def in_place(self) -> bool:
        """Whether its changes were kept and not undone since."""
        return self.state in (DONE, PARTLY) and self.undoable

    @property
    def final(self) -> bool:
        """Whether the run has ended."""
        return self.state in FINAL_STATES

    @property
    def undoable(self) -> bool:
        """Whether it changed anything that can be undone."""
        return bool(self.paths or [act for act in self.acts if act.begun and not act.reverted])

    @property
    def leaves_files(self) -> bool:
        """Whether the run left files next to their targets that the operator must examine."""
        return bool(self.kept or self.unremoved)

    def finish(self, state: str, note: str | None = None) -> None:
        """Decide how the run ends; `close` ends it once its temporary files are removed."""
        self.state, self.end = ENDING, state
        self.note = note or self.note
        self.ended_at = datetime.now(UTC).isoformat()

    def close(self) -> None:
        """Set the final state."""
        self.state = self.end or self.state

    @property
    def backup(self) -> Path:
        """The folder of its backup."""
        return self.vault_folder / self.id

    # -- on the disk -----------------------------------------------------------------------

    def save(self) -> None:
        """Write the journal to the disk, before a file or the machine is changed."""
        disk.make_folder(self.folder)
        document = {"schema": SCHEMA, **asdict(self)}  # paths are kept: undo needs them
        del document["opened_in"]
        document |= {"items": masked(document["items"]), "note": masked(self.note)}
        data = json.dumps(document, indent=1, ensure_ascii=True).encode("ascii") + b"\n"
        disk.save(self.folder / RUN_FILE, data, alone=True)

    def enter(self, state: str) -> None:
        """Record that the run begins its next part."""
        self.state = state
        self.save()

    def reserve_mark(self) -> None:
        """Create the file that `mark_rolled_back` renames, while the disk still has space."""
        with disk.new_file(self.folder / _SWITCHING):
            pass
        disk.sync_folder(self.folder)

    def mark_rolled_back(self) -> bool:
        """Record that the run was rolled back although the journal cannot be saved.

        A rename works on a full disk. Return False if even that fails.
        """
        try:
            disk.rename(self.folder / _SWITCHING, self.folder / _TAKEN_BACK)
            disk.sync_folder(self.folder)
        except OSError:
            return False
        return True

    def was_rolled_back(self) -> bool:
        """Whether the run was rolled back and could not save the journal."""
        switching = self.state in (COMMITTING, VERIFYING)
        return switching and os.path.lexists(self.folder / _TAKEN_BACK)

    def remove_marks(self) -> None:
        """Remove the marker files; the saved journal must already say how the run ended."""
        for name in (_SWITCHING, _TAKEN_BACK):
            with contextlib.suppress(OSError):
                disk.remove(self.folder / name)


class Journals:
    """The journals of all runs of one home."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def load(self, id: str) -> Journal:
        """Load the journal of a run; Trouble if it is missing or damaged."""
        path = self.home.runs / id / RUN_FILE
        try:
            data, _ = read(path, 32 * MEGABYTE)
            journal = _parse(json.loads(data))
            if journal.id != id:
                raise ValueError("another run's receipt")
            journal.opened_in = self.home
            return journal
        except FileNotFoundError:
            known = self.ids()
            raise Trouble(
                text(
                    "No run {id!r} in {home}. The newest is {newest}.",
                    id=id,
                    home=self.home.path,
                    newest=known[-1],
                )
                if known
                else text(
                    "No run {id!r} in {home}. No run was made here yet.", id=id, home=self.home.path
                )
            ) from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Trouble(
                "The receipt of run {id} is damaged ({path}).", id=id, path=path
            ) from None
        except CouldNotLook as why:
            raise Trouble(
                "Could not read the receipt of run {id}: {reason}.", id=id, reason=why
            ) from None

    def ids(self) -> list[str]:
        """Return the ids of all runs, oldest first."""
        return [
            n for n in list_folder(self.home.runs) if os.path.isfile(self.home.runs / n / RUN_FILE)
        ]

    def all(self) -> list[Journal]:
        """Return all journals that can be read, oldest first."""
        journals = []
        for id in self.ids():
            try:
                journals.append(self.load(id))
            except Trouble:
                continue
        return journals

    def of_command(self, journal: Journal) -> list[Journal]:
        """Return all runs of the command that made a run, oldest first."""
        return [one for one in self.all() if one.group == journal.group]


def _parse(document: dict[str, Any]) -> Journal:
    fields = dict(document)
    if fields.pop("schema") != SCHEMA:
        raise ValueError("another schema")
    if "opened_in" in fields:
        raise ValueError("a field that is never stored")
    if not fields.keys() >= {"items", "paths"}:
        raise ValueError("no record of a run")
    journal = to_record(Journal, fields)
    _insist(journal)
    return journal


_STATES = FINAL_STATES | {BACKING_UP, STAGING, COMMITTING, VERIFYING, ENDING}
_MOST = 2**32 - 1
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]*")


def _insist(journal: Journal) -> None:
    """Raise ValueError for names and numbers that this tool never writes."""
    for path in journal.paths:
        states = (path.before, path.after, path.joined_before, path.joined_after, path.database)
        for state in filter(None, states):  # no system call accepts other numbers
            owner = (state.uid or 0, state.gid or 0)
            if not 0 <= (state.mode or 0) <= 0o177777 or not -1 <= min(owner) <= max(owner) < _MOST:
                raise ValueError("a number is out of its range")
    if journal.end is not None and journal.end not in FINAL_STATES:
        raise ValueError("an unknown end")
    if journal.state not in _STATES or journal.kind not in ("fix", "undo", "restore"):
        raise ValueError("an unknown state or kind")
    if journal.command is not None and not _ID.fullmatch(journal.command):
        raise ValueError("a name is a path")
    if not _ID.fullmatch(journal.id) or (
        journal.vault
        and (not os.path.isabs(journal.vault) or os.path.normpath(journal.vault) != journal.vault)
    ):
        raise ValueError("a name is a path, or a path is not valid")
    named = [*(record.path for record in journal.paths), *journal.folders, *journal.unremoved]
    if any(".." in Path(name).parts for name in named):
        raise ValueError("a path leads out of the home")
