"""Programs of others that bring backups elsewhere: restic to any store that it knows, and rsync.

They have their own protocols, keys and ways to check what arrived; we call them. What they need to
know to get in, they take from the environment, so that no secret stands in an argument.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from hermes_doctor import blocks, durable, rights
from hermes_doctor.adopting import arriving, keep
from hermes_doctor.files import MEGABYTE, read, which
from hermes_doctor.manifest import MANIFEST, Backup, parse, place_of
from hermes_doctor.masking import clean
from hermes_doctor.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.vault import Vault

TAG = "hermes-doctor"
_PASSWORDS = ("RESTIC_PASSWORD", "RESTIC_PASSWORD_FILE", "RESTIC_PASSWORD_COMMAND")


def program(name: str) -> str:
    """Where a program lies; one line when it is not there, or when root must not run it."""
    from hermes_doctor.services.commands import refuse_untrusted

    found = which(name)
    if found is None:
        raise Trouble(f"{name} is not installed, and this needs it: apt install {name}")
    try:
        refuse_untrusted(Path(found), None)
    except CannotFix as why:
        raise Trouble(f"{why}.") from None
    return found


def _run(
    words: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> str:
    """What a program prints; Trouble with its last words when it fails."""
    done = subprocess.run(
        [program(words[0]), *words[1:]],
        env={**os.environ, **(env or {})},
        cwd=cwd,
        stdin=None if sys.stdin and sys.stdin.isatty() else subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
        said = clean(lines[-1])[:300]
        raise Trouble(f"{words[0]} {words[1]} failed with {done.returncode}: {said}")
    return done.stdout.decode("utf-8", "replace")


class Restic:
    """A repository of restic's, wherever it lies."""

    def __init__(self, repository: str) -> None:
        program("restic")
        if not any(os.environ.get(name) for name in _PASSWORDS) and not sys.stdin.isatty():
            raise Trouble(
                "restic needs the password of its repository: name a file with it in the variable "
                "RESTIC_PASSWORD_FILE. Nothing was sent."
            )
        self._env = {"RESTIC_REPOSITORY": repository}  # its address may hold a password

    def _ask(self, *words: str, cwd: Path | None = None) -> str:
        return _run(["restic", *words], self._env, cwd)

    def make(self) -> None:
        """Make the repository, where there is none yet."""
        self._ask("init")

    def push(self, backup: Backup) -> str:
        """Send a backup; the name that restic has for it. Then its repository is checked."""
        words = ("backup", "--json", "--tag", TAG, "--tag", backup.id, "--", backup.id)
        said = self._ask(*words, cwd=backup.folder.parent)
        summary = json.loads(said.strip().splitlines()[-1])
        self._ask("check")
        return str(summary["snapshot_id"])

    def known(self) -> list[tuple[str, str, str]]:
        """The backups there, oldest first: each its id, restic's name for it, and when."""
        found = json.loads(self._ask("snapshots", "--json", "--tag", TAG)) or []
        return [
            (id, str(one["short_id"]), str(one["time"]))
            for one in found
            for id in one.get("tags") or ()
            if id != TAG
        ]

    def pull(self, vault: Vault, id: str | None) -> Backup:
        """Bring a backup back into the vault, verified against its manifest."""
        known = [one for one in self.known() if id in (None, one[0], one[1])]
        if not known:
            raise Trouble(
                f"There is no backup {id!r} in that repository." if id else "It is empty."
            )
        real, name, _ = known[-1]
        with ExitStack() as stack:
            room = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=_room(vault))))
            self._ask("restore", name, "--target", str(room))
            folder = next((path.parent for path in room.glob(f"**/{real}/{MANIFEST}")), None)
            if folder is None:
                raise Trouble(f"What restic has as {name} is no backup of hermes-doctor.")
            data, _ = read(folder / MANIFEST, 256 * MEGABYTE)
            partial = stack.enter_context(arriving(vault))
            return keep(vault, _carried(parse(folder, data), partial))


def _room(vault: Vault) -> Path | None:
    """Where restic, run by root, may write: not where another user could lead it elsewhere."""
    vault.prepare()
    return vault.root if rights.of(vault.root / "any") is None else None


def _carried(backup: Backup, partial: Path) -> Backup:
    """Every copy as one whole file in the folder of a new backup."""
    entries = []
    for entry in backup.entries:
        if entry.kind != "file":
            entries.append(entry)
            continue
        place, copy = place_of(partial, entry.path), backup.copy_of(entry)
        durable.make_folder(place.parent)
        try:
            with durable.fresh(place, lasting=False) as fd:
                found = blocks.copy(copy, fd) if entry.blocks else durable.copy(copy, fd)[0]
        except (FileNotFoundError, CouldNotLook):
            found = None
        if found != entry.sha256:
            raise Trouble(f"What came back of {entry.path} is not what was saved.")
        entries.append(entry._replace(blocks=False, seen=()))
    return replace(backup, folder=partial, entries=tuple(entries))


def rsync(vault: Vault, target: str) -> None:
    """Bring all backups of a vault to another place, which is then a vault; and compare there.

    Copies that backups share are shared there too. Nothing there is removed.
    """
    if target.startswith("-"):
        raise Trouble(f"{target} is no place to send backups to.")
    words = ["-aH", "--exclude=*.partial", "--exclude=/runs", "--exclude=.*.new"]
    way = ["--", f"{vault.root}/", target]
    _run(["rsync", *words, *way])
    different = _run(["rsync", *words, "--dry-run", "--checksum", "--itemize-changes", *way])
    files = [line for line in different.splitlines() if line[:2] in ("<f", ">f", "*d")]
    if files:
        raise Trouble(f"{len(files)} files are different there, though rsync sent them.")
