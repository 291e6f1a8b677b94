"""Copy backups to another place with restic or rsync, and bring them back with restic.

These programs have their own protocols, keys and checks; we only call them. They take their
credentials from the environment, so no secret is in an argument.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from getpass import getpass
from pathlib import Path

from hermes_doctor.backup.vault import restore_files
from hermes_doctor.backup.vault.intake import finish_import, refuse_invalid_entries
from hermes_doctor.backup.vault.manifest import MANIFEST, Backup, parse, place_of
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.message import count, text
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.redaction import clean
from hermes_doctor.core.system import disk, limits, privileges, progress as system_progress
from hermes_doctor.core.system.accounts import refuse_untrusted
from hermes_doctor.core.system.files import MEGABYTE, read, which

Show = Callable[[], None]
"""Shows a vault to a program, in its process."""
TAG = "hermes-doctor"
PATIENCE = 10.0
"""Seconds that a program has to release its lock when we are interrupted."""
_LOCKED = "already locked"
"""What restic says if a lock hinders it."""
_PASSWORDS = ("RESTIC_PASSWORD", "RESTIC_PASSWORD_FILE", "RESTIC_PASSWORD_COMMAND")


def find_program(name: str) -> str:
    """The path of a program; raise Trouble if it is missing, or if root must not run it."""
    program = which(name)
    if program is None:
        raise Trouble(
            "{name} is needed but not installed. Install it: apt install {name}", name=name
        )
    try:
        refuse_untrusted(Path(program), None)
    except CannotFix as why:
        raise Trouble(str(why)) from None
    return program


def _run(
    words: Sequence[str],
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    heard: Callable[[str], None] = lambda _: None,
    show: Show | None = None,
) -> str:
    """Run a program and return its output; `heard` gets each line at once.

    `show` is called in its process before it starts, and shows it a vault.

    Raises Trouble with the reason if it fails. If we are interrupted, it is asked to end first.
    """
    with tempfile.TemporaryFile() as errors:
        with limits.lifted():
            try:
                process = subprocess.Popen(
                    [find_program(words[0]), *words[1:]],
                    env={**os.environ, **(env or {})},
                    cwd=None if show else cwd,
                    stdin=None if sys.stdin and sys.stdin.isatty() else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    preexec_fn=partial(_show, show, cwd) if show else None,
                )
            except subprocess.SubprocessError:
                raise Trouble(
                    "The system does not let root show the backups to {program} so that their "
                    "owner cannot lead it elsewhere. Nothing was sent. Run the command as the "
                    "owner, or with the right to mount",
                    program=words[0],
                ) from None
        assert process.stdout is not None
        printed = []
        try:
            with io.TextIOWrapper(process.stdout, "utf-8", "replace", newline=None) as output:
                for line in output:  # \r also ends a line
                    heard(line)
                    printed.append(line)
            process.wait()
        except BaseException:
            _end(process)
            raise
        errors.seek(0)
        error_lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    if process.returncode:
        message = clean(_telling(error_lines or ["no message"]))[:300]
        what = "{program} {command} failed with exit code {code}: {message}"
        code, (program, command, *_) = process.returncode, words
        raise Trouble(what, program=program, command=command, code=code, message=message)
    return "".join(printed)


def _show(show: Show, folder: Path | None) -> None:
    """Show a vault to a program, in its process, and let it work in a folder there."""
    show()
    if folder is not None:
        os.chdir(folder)


def _telling(lines: Sequence[str]) -> str:
    """The line that gives the reason: the last one often says only that the program ended."""
    for mark in ("ssh: ", "Permission denied", _LOCKED, "Fatal: "):
        if telling := next((line for line in lines if mark in line), ""):
            return telling
    return lines[-1]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask a program to end, and kill it if it does not."""
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Restic:
    """A restic repository, local or remote."""

    def __init__(self, repository: str) -> None:
        find_program("restic")
        self.removed_locks = 0
        """How many locks of dead processes were removed."""
        self._env = {"RESTIC_REPOSITORY": repository}  # its address may contain a password
        self._asked = not any(os.environ.get(name) for name in _PASSWORDS)
        if self._asked and not (sys.stdin and sys.stdin.isatty()):
            raise Trouble(
                "restic needs the password of its repository. Store it in a file and set "
                "RESTIC_PASSWORD_FILE to its path. Nothing was sent."
            )
        if self._asked:  # once, not for each time that restic is called
            self._env["RESTIC_PASSWORD"] = getpass("Password of the restic repository: ")

    def _ask(self, *words: str, cwd: Path | None = None, show: Show | None = None) -> str:
        """Run restic; if a lock hinders it, remove those of dead processes and try again.

        In a folder, for a backup, its progress is reported.
        """
        try:
            return self._ask_once(*words, cwd=cwd, show=show)
        except Trouble as why:
            if _LOCKED not in str(why) or not self._unlock():
                raise
        return self._ask_once(*words, cwd=cwd, show=show)

    def _unlock(self) -> int:
        """Remove the locks that restic itself calls stale; return how many there were.

        They are those of processes of this machine that no longer run, and those that their
        process has not renewed for half an hour.
        """
        before = self._ask_once("list", "locks", "--no-lock").split()
        self._ask_once("unlock")
        removed = len({*before} - {*self._ask_once("list", "locks", "--no-lock").split()})
        self.removed_locks += removed
        return removed

    def _ask_once(self, *words: str, cwd: Path | None = None, show: Show | None = None) -> str:
        if cwd is None:
            return _run(["restic", *words], self._env)
        env = {**self._env, "RESTIC_PROGRESS_FPS": "2"}
        return _run(["restic", *words], env, cwd, _hear_restic, show)

    def make(self) -> None:
        """Create the repository."""
        if self._asked and getpass("Repeat the password: ") != self._env["RESTIC_PASSWORD"]:
            raise Trouble("The two passwords differ. Nothing was sent.")
        self._ask("init")

    def push(self, folder: Path, id: str, show: Show | None = None) -> str:
        """Send a backup in a vault, check the repository, and return restic's id of the snapshot.

        `show` shows the vault to restic, if this process does not trust its path.
        """
        words = ("backup", "--json", "--tag", TAG, "--tag", id, "--", id)
        try:
            output = self._ask(*words, cwd=folder, show=show)
        except Trouble as why:
            if "config file" in str(why):
                what = "{reason}. If the repository is new: add --init"
                raise Trouble(what, reason=str(why).rstrip(".")) from None
            raise
        summary = json.loads(output.strip().splitlines()[-1])
        system_progress.report("restic is checking the repository")
        self._ask("check")
        return str(summary["snapshot_id"])

    def list_backups(self) -> list[tuple[str, str, str]]:
        """The backups in the repository, oldest first: backup id, restic's short id, time."""
        snapshots = json.loads(self._ask("snapshots", "--json", "--tag", TAG)) or []
        return [
            (id, str(snapshot["short_id"]), str(snapshot["time"]))
            for snapshot in snapshots
            for id in snapshot.get("tags") or ()
            if id != TAG
        ]

    def pull(self, vault: Vault, id: str | None) -> Backup:
        """Import a backup from the repository into the vault, verified against its manifest."""
        with ExitStack() as stack:
            real, name = self.find(id)
            room = stack.enter_context(_room(vault))
            self.fetch(name, room)
            return import_fetched(vault, room, real, name)

    def find(self, id: str | None) -> tuple[str, str]:
        """Return the id of the newest or the named backup, and restic's id of its snapshot."""
        known = [stored for stored in self.list_backups() if id in (None, stored[0], stored[1])]
        if not known:
            raise Trouble(
                text("The repository has no backup {id!r}.", id=id)
                if id
                else "The repository is empty. Send a backup first: hermes-doctor backup push"
            )
        return known[-1][:2]

    def fetch(self, name: str, room: Path) -> None:
        """Let restic write a snapshot into a folder."""
        system_progress.report("restic is fetching the backup")
        self._ask("restore", name, "--target", str(room))


def import_fetched(vault: Vault, room: Path, id: str, name: str) -> Backup:
    """Import what restic has written into a folder."""
    folder = next((path.parent for path in room.glob(f"**/{id}/{MANIFEST}")), None)
    if folder is None:
        raise Trouble("The restic snapshot {name} is not a backup of hermes-doctor.", name=name)
    data, _ = read(folder / MANIFEST, 256 * MEGABYTE)
    backup = parse(folder, data)
    refuse_invalid_entries(backup, f"The restic snapshot {name}")
    with vault.unfinished() as partial:
        return finish_import(vault, _carried(backup, partial))


@contextmanager
def room_of_root() -> Iterator[Path]:
    """A temporary folder of root's, for what a process of another user is to import."""
    with tempfile.TemporaryDirectory() as room:
        yield Path(room)


def give_to_root(room: Path) -> None:
    """Make all that restic has restored root's, so that it can be lent as root's."""
    for base, folders, names in os.walk(room):
        for name in (*folders, *names):
            os.lchown(os.path.join(base, name), 0, 0)


def _hear_restic(line: str) -> None:
    """Report the progress in one line of restic's JSON output."""
    try:
        share = json.loads(line).get("percent_done")
    except (ValueError, AttributeError):
        return
    if isinstance(share, int | float):
        system_progress.report("restic is sending the backup", min(1.0, max(0.0, float(share))))


@contextmanager
def _room(vault: Vault) -> Iterator[Path]:
    """A temporary folder in which restic may write as root: no other user can redirect it.

    In the vault it counts as an unfinished backup, which the next command removes if we are killed.
    """
    vault.prepare()
    if privileges.of(vault.root / "any") is None:
        with vault.unfinished() as partial:
            yield partial
        return
    with tempfile.TemporaryDirectory() as room:
        yield Path(room)


def _carried(backup: Backup, partial: Path) -> Backup:
    """Copy every file, as one whole file, into the folder of a new backup."""
    entries, done = [], 0
    for entry in backup.entries:
        system_progress.report("importing the backup", done / backup.size if backup.size else None)
        done += entry.size
        if entry.kind != "file":
            entries.append(entry)
            continue
        place = place_of(partial, entry.path)
        disk.make_folder(place.parent)
        try:
            with disk.new_file(place, durable=False) as fd:
                digest = restore_files.write_content(backup, entry, fd)
        except (FileNotFoundError, CouldNotLook):
            digest = ""
        if digest != entry.sha256:
            what = "The fetched {file} is damaged. Try again, or fetch another backup."
            raise Trouble(what, file=entry.path)
        entries.append(entry.alone())
    return backup._replace(folder=partial, entries=tuple(entries))


def rsync(vault: Path, target: str, show: Show | None = None) -> None:
    """Copy all backups of a vault to another place, which becomes a vault, and compare them there.

    Copies that backups share are shared there, too. Nothing there is removed. `show` shows the
    vault to rsync, if this process does not trust its path.
    """
    if target.startswith("-"):
        raise Trouble(
            "{target!r} is not a valid destination. Use a folder or host:folder.", target=target
        )
    words = ["-aHS", "--exclude=*.partial", "--exclude=/runs", "--exclude=.*.new"]
    way = ["--", f"{vault}/", target]
    progress = ["--info=progress2"] if _tells(_run(["rsync", "--version"])) else []
    _run(["rsync", *words, *progress, *way], heard=_hear_rsync, show=show)
    system_progress.report("rsync is comparing the files")
    compare = ["rsync", *words, "--dry-run", "--checksum", "--itemize-changes", *way]
    different = _run(compare, show=show)
    files = [line for line in different.splitlines() if line[:2] in ("<f", ">f", "*d")]
    if files:
        what = "rsync sent the backups, but {files} differ there. Run the command again."
        raise Trouble(what, files=count(len(files), "file"))


def _tells(version: str) -> bool:
    """Whether this rsync version can report its progress; the one of macOS cannot."""
    match = re.match(r"rsync\s+version v?(\d+)\.(\d+)", version)
    return match is not None and (int(match[1]), int(match[2])) >= (3, 1)


def _hear_rsync(line: str) -> None:
    """Report the progress in one line of rsync's output."""
    if match := re.match(r"\s*[\d.,]+\s+(\d+)%", line):
        system_progress.report("rsync is sending the backups", min(1.0, int(match[1]) / 100))
