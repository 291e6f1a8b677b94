"""Save write-ahead logs that were deleted while a process goes on writing into them.

What happens to the rows in such a log depends on how the process ends: it may write them into the
database, drop them, or write old pages over newer ones. So the log is saved, together with the
database, before anything is stopped; afterwards the database is compared with the saved state.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakKeyDictionary

from hermes_doctor.backup.records.journal import Journal
from hermes_doctor.backup.vault.manifest import BackupEntry, place_of
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.message import listed, text
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.system import disk, progress
from hermes_doctor.core.system.open_files import open_file_of_process
from hermes_doctor.diagnosis.probes.database_users import LostFile, OpenFile, identity
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.step import Change, Step
from hermes_doctor.repair.planning.lost_rows import OpenDatabase, SavedDatabase, SavedFiles
from hermes_doctor.sqlite import deleted_log

SUFFIXES = ("", "-wal", "-shm")


def find(probes: Probes) -> tuple[OpenDatabase, ...]:
    """Find every open database that was deleted or whose log was deleted.

    A renamed database counts if there is none at its path: it is put back.
    """
    found: dict[tuple[object, ...], OpenDatabase] = {}
    for lost in probes.databases.lost_files():
        if lost.cause == "renamed" and identity(lost.database) is not None:
            continue
        for files in _opened(probes, lost):
            key = (
                lost.database,
                *(files[s].identity if s in files else None for s in ("", "-wal")),
            )
            known = found.get(key)
            pids = {*(known.pids if known else ()), lost.pid}
            replaced = files[""].identity != identity(lost.database)
            listed = tuple(files.items())
            found[key] = OpenDatabase(lost.database, tuple(sorted(pids)), listed, replaced)
    return tuple(found.values())


def _opened(probes: Probes, lost: LostFile) -> Iterator[dict[str, OpenFile]]:
    """The files of a database that one process has open, for each of its logs.

    A process that opened the database again after the log was deleted has two of them. If the
    database was deleted more than once, each deleted file has a log of its own.
    """
    real = Path(os.path.realpath(lost.database))
    mine = [open_file for open_file in probes.databases.users().open if open_file.pid == lost.pid]
    places = {suffix: {beside(real, suffix)} for suffix in SUFFIXES}
    if lost.cause == "renamed":
        places[""] |= {lost.path}
    mains, logs, indexes = ([one for one in mine if one.path in places[s]] for s in SUFFIXES)
    main_of, log_of = _owners(mains, logs), _owners(logs, indexes)
    used = {one.identity for one in main_of.values()}
    for log in _each(logs) if mains else ():
        if not log.deleted and _is_empty(log):
            continue  # created when the process opened the database again; empty
        others = sorted(mains, key=lambda one: (one.identity in used, one.deleted != log.deleted))
        shared = sorted(
            indexes,
            key=lambda one: (not _same(log_of.get(one.identity), log), one.deleted != log.deleted),
        )
        files = {"": main_of.get(log.identity, others[0]), "-wal": log}
        yield files | ({"-shm": shared[0]} if shared else {})
    if all(log.deleted for log in logs):
        alone = [one for one in _each(mains) if one.deleted and one.identity not in used]
        for main in alone if alone or logs else mains[:1]:
            yield {"": main}


def _same(open_file: OpenFile | None, other: OpenFile) -> bool:
    return open_file is not None and open_file.identity == other.identity


def _each(files: Sequence[OpenFile]) -> list[OpenFile]:
    """The files, each with one of its descriptors."""
    return list({file.identity: file for file in reversed(files)}.values())[::-1]


def _owners(
    files: Sequence[OpenFile], beside: Sequence[OpenFile]
) -> dict[tuple[int, int], OpenFile]:
    """Which of several files each file beside them belongs to, by the identity of the latter.

    SQLite opens a database, then its log, then the index of the log, so their descriptors are
    close to each other. Both are deleted, or none is.
    """
    gaps = sorted(
        (int(second.fd) - int(first.fd), first, second)
        for first in files
        for second in beside
        if first.deleted == second.deleted and int(second.fd) > int(first.fd)
    )
    found: dict[tuple[int, int], OpenFile] = {}
    for _, first, second in gaps:
        taken = {open_file.identity for open_file in found.values()}
        if second.identity not in found and first.identity not in taken:
            found[second.identity] = first
    return found


def beside(path: Path, suffix: str) -> Path:
    """The path of a file that SQLite keeps next to a database."""
    return path.with_name(path.name + suffix)


def _is_empty(file: OpenFile) -> bool:
    with contextlib.suppress(OSError):
        return os.stat(f"/proc/{file.pid}/fd/{file.fd}").st_size == 0
    return False


LOG = "write-ahead log (-wal)"


def refuse_deleted_logs(home: Home) -> None:
    """Raise CannotFix if a process of this home writes into a deleted log."""
    for pair in find(Probes(home)):
        raise CannotFix(
            "Process {pid} writes to a deleted {log} of {database}. Its rows may be lost when "
            "it stops: run `hermes-doctor fix --apply` first.",
            pid=pair.pids[0],
            log=LOG,
            database=pair.database.name,
        )


@dataclass(frozen=True)
class SaveDeletedLogs(Step):
    """Step that saves deleted logs with their databases, and restores lost rows after the stop.

    `stops` is the gateway process that the run stops. Without it the run only saves the files, and
    tells the operator what to do next.
    """

    home: Home
    names: tuple[str, ...]
    pids: tuple[int, ...]
    stops: int | None
    compares: bool = True
    """False if the databases are replaced by others anyway."""
    missing: bool = False
    """One of the databases is not at its path any more."""
    files: SavedFiles = field(default_factory=SavedFiles, compare=False)
    planned: dict[str, Sequence[Change]] = field(default_factory=dict, compare=False)
    """The changes to make after the gateway has stopped; determined only once."""

    def sentence(self) -> str:
        template = "{names}: save what process {pids} has open, with the {log}; nothing is stopped"
        if self.stops is not None:
            template = (
                "{names}: save what process {pids} has open, with the {log}, before anything is "
                "stopped, then add lost rows"
            )
        if self.stops is not None and self.missing:
            template = (
                "{names}: save what process {pids} has open, with the {log}, before anything is "
                "stopped, then put it back with all rows"
            )
        pids = listed([*map(str, self.pids)])
        return text(template, names=listed(self.names), log=LOG, pids=pids)

    def notes(self) -> Sequence[str]:
        return tuple(self.files.messages)

    def save_first(self, vault: Vault, receipt: Journal) -> None:
        if self.files.databases:
            return
        self.files.vault, self.files.receipt = vault, receipt
        probes = Probes(self.home)
        open_databases = find(probes)
        if not open_databases:
            raise CannotFix("The process with the deleted file has stopped. Run the check again.")
        layers: list[list[OpenDatabase]] = []
        for pair in open_databases:  # two logs of one database need a backup each
            known = sum(
                open_database.database == pair.database
                for layer in layers
                for open_database in layer
            )
            if known == len(layers):
                layers.append([])
            layers[known].append(pair)
        for layer in layers:
            self._save(layer, vault, receipt)
        others = {
            pid: pair.database.name
            for pair in open_databases
            for pid in (*probes.databases.users().holders(pair.database), *pair.pids)
            if pid != self.stops
        }
        if others:
            raise CannotFix(self._next(probes, others, vault))

    def _next(self, probes: Probes, others: Mapping[int, str], vault: Vault) -> str:
        """Tell the operator what to do about other processes that have the databases open."""
        pid, name = min(others.items())
        ids = listed(
            [*dict.fromkeys(saved_database.backup.id for saved_database in self.files.databases)]
        )
        if self.stops is not None:  # the gateway still holds the log when this is run again
            return text(
                "{process} has {file} open. It is saved as backup {ids}; nothing was stopped. Stop "
                "that process, then run this again.",
                process=_who(probes, pid),
                file=name,
                ids=ids,
            )
        who = listed([_who(probes, other) for other in sorted(others)])
        options = f"--home {shlex.quote(str(self.home.path))}"
        if vault.root != self.home.vault:
            options += f" --vault {shlex.quote(str(vault.root))}"
        names: dict[str, list[str]] = {}
        for database in self.files.databases:
            names.setdefault(database.backup.id, []).append(database.name)
        commands = [
            f"`hermes-doctor backup restore {id} {shlex.join(files)} {options}`"
            for id, files in names.items()
        ]
        return text(
            "Saved as backup {ids}: {files}. Nothing was stopped. Stop what still uses the old "
            "files ({processes}), then run {commands}; it asks before it restores anything.",
            ids=ids,
            files=listed([*dict.fromkeys(one.name for one in self.files.databases)]),
            processes=who,
            commands=listed(commands),
        )

    def _save(self, layer: Sequence[OpenDatabase], vault: Vault, receipt: Journal) -> None:
        names = ", ".join(pair.database.name for pair in layer)
        progress.report(f"saving {names} with its deleted log")
        opened: list[tuple[OpenDatabase, dict[str, int]]] = []
        kept = False
        try:
            for pair in layer:
                opened.append((pair, {}))
                for suffix, file in pair.files:
                    opened[-1][1][suffix] = _open(file, pair.database)
            sizes = [os.fstat(fd).st_size for _, fds in opened for fd in fds.values()]
            vault.room(sum(sizes))
            backup = vault.keep(
                reason=f"{names} with a deleted {LOG}, saved before anything was stopped",
                hermes=None,
                write=lambda folder: [
                    entry for pair, fds in opened for entry in self._copy(folder, pair, fds)
                ],
            )
            kept = True  # an open log that is deleted takes up disk space until it is closed
        except OSError as error:
            why = os.strerror(error.errno or 0).lower()
            raise CannotFix(
                "Could not save the deleted {log} of {names}: {reason}.",
                log=LOG,
                names=names,
                reason=str(why).rstrip("."),
            ) from None
        except Trouble as why:
            raise CannotFix(
                "Could not save the deleted {log} of {names}. {reason}",
                log=LOG,
                names=names,
                reason=why,
            ) from None
        finally:
            for _, fds in opened:
                for suffix in [suffix for suffix in fds if not kept or suffix == "-shm"]:
                    os.close(fds.pop(suffix))
        receipt.saved.append(backup.id)
        self.files.messages.append(f"kept as backup {backup.id}: {names} with the {LOG}")
        for pair, fds in opened:
            name = self.home.name_of(pair.database)
            self.files.databases.append(SavedDatabase(pair, backup, name, fds.get("-wal"), fds[""]))

    def _copy(self, folder: Path, pair: OpenDatabase, fds: dict[str, int]) -> Iterator[BackupEntry]:
        name = self.home.name_of(pair.database)
        target = place_of(folder, name)
        disk.make_folder(target.parent)
        made = deleted_log.copy(fds[""], fds.get("-wal"), fds.get("-shm"), target)
        for suffix in SUFFIXES:
            path = beside(target, suffix)
            if path in made:
                st = os.fstat(fds[suffix])
                yield BackupEntry(
                    name + suffix,
                    "file",
                    size=path.stat().st_size,
                    mode=st.st_mode & 0o777,
                    uid=st.st_uid,
                    gid=st.st_gid,
                    mtime_ns=st.st_mtime_ns,
                    sha256=made[path],
                )

    def release(self) -> None:
        from hermes_doctor.repair.planning.lost_rows import remove_scratch_folder

        while self.files.databases:
            saved = self.files.databases.pop()
            os.close(saved.main)
            if saved.log is not None:
                os.close(saved.log)
        while self.files.scratch_folders:
            remove_scratch_folder(self.files.scratch_folders.pop())

    def changes(self) -> Sequence[Change]:
        if not self.files.databases or self.stops is None or not self.compares:
            return []
        if "found" not in self.planned:
            from hermes_doctor.repair.planning.lost_rows import restoring_changes

            self.planned["found"] = restoring_changes(self.files)
            saved = {
                saved_database.backup.id for saved_database in self.files.databases
            } - self.files.incomplete
            saved -= {
                database.backup.id
                for database in self.files.databases
                if database.open_database.replaced
                and database.open_database.database not in self.files.put_back
            }
            if self.files.receipt:  # none of their rows is missing after the run
                self.files.receipt.settled[:] = sorted(saved)
        return self.planned["found"]


def _open(file: OpenFile, database: Path) -> int:
    """Open a file that another process has open."""
    name = file.path.name
    try:
        fd = open_file_of_process(file.pid, file.fd, database)
    except OSError as error:
        why = os.strerror(error.errno or 0).lower()
        raise CannotFix(
            "Could not read {file} of process {pid}: {reason}.", file=name, pid=file.pid, reason=why
        ) from None
    st = os.fstat(fd)
    if (st.st_dev, st.st_ino) != file.identity:
        os.close(fd)
        raise CannotFix(
            "Process {pid} has closed {file}. Run the check again.", pid=file.pid, file=name
        )
    return fd


def _who(probes: Probes, pid: int) -> str:
    command = f" ({probes.machine.command(pid)})" if pid and probes.machine.command(pid) else ""
    return f"process {pid}{command}" if pid else "a process in another container"


_steps: WeakKeyDictionary[Probes, dict[tuple[object, ...], SaveDeletedLogs | None]] = (
    WeakKeyDictionary()
)
"""Several fixes of one plan share the step, so that the files are saved once."""


def save_deleted_logs(
    probes: Probes, stops: int | None, *, compares: bool = True
) -> SaveDeletedLogs | None:
    """The step to run before the gateway process `stops` is stopped; None if no log is deleted."""
    known = _steps.setdefault(probes, {})
    if (stops, compares) not in known:
        known[stops, compares] = _step(probes, stops, compares=compares)
    return known[stops, compares]


def _step(probes: Probes, stops: int | None, *, compares: bool) -> SaveDeletedLogs | None:
    with contextlib.suppress(CouldNotLook):
        if open_databases := find(probes):
            names = dict.fromkeys(probes.home.name_of(pair.database) for pair in open_databases)
            pids = sorted({pid for pair in open_databases for pid in pair.pids})
            missing = any(identity(pair.database) is None for pair in open_databases)
            return SaveDeletedLogs(
                probes.home, tuple(names), tuple(pids), stops, compares, missing=missing
            )
    return None
