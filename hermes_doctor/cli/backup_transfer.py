"""The commands `backup export|push|pull`, and backups made by Hermes, age, restic or rsync."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hermes_doctor.cli import separate_work
from hermes_doctor.cli.option_declarations import HomeOption, JsonOption, VaultOption
from hermes_doctor.cli.option_values import absolute
from hermes_doctor.cli.other_backups import exclusive_vault
from hermes_doctor.cli.progress_bars import LARGE, transfer_progress
from hermes_doctor.cli.vault_option import print_schema_document
from hermes_doctor.core import home as homes
from hermes_doctor.core.lazy import EMPTY
from hermes_doctor.core.message import count
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import root_parent
from hermes_doctor.core.system.signals import interruptible
from hermes_doctor.core.terminal.lines import row, tilde
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.backup.vault.age import ArchiveKeys
    from hermes_doctor.backup.vault.engines import Restic
    from hermes_doctor.backup.vault.manifest import Backup
    from hermes_doctor.core.home import Home
    from hermes_doctor.core.system.separate_process import Action

PASSPHRASE = "passphrase"
ToOption = Annotated[
    Path | None, typer.Option(help="Write the encrypted archive to this folder or file.")
]
EncryptOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Encrypt to this age or ssh public key, to the keys in @FILE, or with a "
        "`passphrase`. Repeatable."
    ),
]
PassphraseOption = Annotated[
    Path | None, typer.Option(help="Read the passphrase of an archive from this file.")
]
IdentityOption = Annotated[
    Path | None, typer.Option(help="Decrypt an archive with this private key file.")
]
ResticOption = Annotated[
    str | None, typer.Option(help="Use this restic repository: a folder, sftp:…, s3:…, rest:…")
]
NewestArgument = Annotated[str | None, typer.Argument(help="A backup id; without it, the newest.")]


def add_to(app: typer.Typer) -> None:
    """Add these commands to `backup`."""
    app.command("export", epilog=EXPORT)(export)
    app.command("push", epilog=PUSH)(push)
    app.command("pull", epilog=PULL)(pull)


EXPORT = """\b
Examples:
  hermes-doctor backup export --to /mnt/usb --encrypt-to age1…
  hermes-doctor backup export ID --to h.age --encrypt-to @~/.ssh/id.pub
  hermes-doctor backup export --to /mnt/usb --encrypt-to passphrase

\b
Exit codes:
  0  the backup was verified, and the archive is written
  2  could not run; nothing was written
"""
PUSH = """\b
Examples:
  export RESTIC_PASSWORD_FILE=~/.restic
  hermes-doctor backup push --restic sftp:me@host:/backups
  hermes-doctor backup push --restic s3:https://host/bucket --init
  hermes-doctor backup push --rsync me@host:/backups/hermes

\b
Exit codes:
  0  sent, and verified at the destination
  2  could not be sent
"""
PULL = """\b
Examples:
  hermes-doctor backup pull --restic sftp:me@host:/backups

\b
Exit codes:
  0  fetched and verified
  2  could not be fetched
"""


def export(
    id: NewestArgument = None,
    to: ToOption = None,
    encrypt_to: EncryptOption = None,
    passphrase_file: PassphraseOption = None,
    home: HomeOption = None,
    vault: VaultOption = None,
    json: JsonOption = False,
) -> int:
    """Write a backup into one encrypted file."""
    if not encrypt_to:
        raise Trouble(
            "No recipient given. Add --encrypt-to KEY, --encrypt-to @FILE or "
            "--encrypt-to passphrase."
        )
    where, place = homes.find(home), absolute(vault)
    target = absolute(to) or Path.cwd()
    refuse_place(target, where)

    def work() -> int:
        with interruptible():
            backup = _chosen(where, place, id)
            with transfer_progress(backup.size, quiet=json):
                path, size = export_to(backup, target, encrypt_to, passphrase_file)
        if json:
            print_schema_document("archive", {"id": backup.id, "archive": str(path), "bytes": size})
        else:
            text = f"Backup {backup.id} encrypted and written to {tilde(path)}"
            show([row(("✓ ", "good"), text, hang=2)])
        return 0

    with root_exports(target, encrypt_to, passphrase_file) as actions:
        return separate_work.run(where, work, writes=False, vault=place, actions=actions)


def push(
    id: NewestArgument = None,
    restic: ResticOption = None,
    rsync: str | None = typer.Option(
        None, help="Send all backups to this folder or host with rsync."
    ),
    init: bool = typer.Option(False, "--init", help="Create the restic repository first."),
    home: HomeOption = None,
    vault: VaultOption = None,
    json: JsonOption = False,
) -> int:
    """Send backups to restic or to another machine (rsync)."""
    from hermes_doctor.backup.vault import engines

    if (restic is None) == (rsync is None):
        raise Trouble("No destination given. Add --restic REPOSITORY or --rsync PLACE.")
    where = homes.find(home)
    _refuse_own_place(restic or rsync or "", where)
    separate_work.watch_as_root(where)
    with interruptible():
        backup = _chosen(where, vault, id)
        repository = engines.Restic(restic) if restic is not None else None
        if repository and init:
            repository.make()
        with transfer_progress(backup.size, quiet=json):
            if repository is not None:
                text = (
                    f"Backup {backup.id} sent as restic snapshot {repository.push(backup)} "
                    f"and checked by restic."
                )
            else:
                from hermes_doctor.backup.vault.vault import Vault

                engines.rsync(Vault(where, vault), rsync or "")
                text = "All backups sent and compared byte by byte."
    _say_unlocked(repository)
    if json:
        print_schema_document("push", {"id": backup.id, "said": text})
    else:
        show([row(("✓ ", "good"), text, hang=2)])
    return 0


def _say_unlocked(repository: Restic | None) -> None:
    """Print how many locks were removed, so that nobody wonders where they are."""
    if repository is None or not repository.removed_locks:
        return
    import sys

    locks = count(repository.removed_locks, "lock")
    left = f"Removed {locks} of restic, left by processes that no longer run."
    print(f"hermes-doctor: {left}", file=sys.stderr)  # noqa: T201


def pull(
    id: NewestArgument = None,
    restic: ResticOption = None,
    home: HomeOption = None,
    vault: VaultOption = None,
    json: JsonOption = False,
) -> int:
    """Fetch a backup from a restic repository.

    It is stored among the backups of the home; a missing home folder is created.
    """
    from hermes_doctor.backup.vault import engines
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.cli import vault_option

    if restic is None:
        raise Trouble("No repository given. Add --restic REPOSITORY.")
    where = vault_option.find_home(home, elsewhere=True)
    separate_work.watch_as_root(where)
    repository = engines.Restic(restic)
    with vault_option.recreated_folder(where):
        store = Vault(where, vault)
        with (
            exclusive_vault(store),
            transfer_progress(LARGE, quiet=json),
        ):  # only restic knows the size
            backup = repository.pull(store, id)
    _say_unlocked(repository)
    if json:
        print_schema_document(
            "pull", {"id": backup.id, "files": len(backup.entries), "folder": str(backup.folder)}
        )
    else:
        show([row(("✓ ", "good"), f"Fetched and verified as backup {backup.id}.", hang=2)])
    return 0


# -- shared with `create`, `list`, `verify` and `restore` -------------------------------------


def refuse_incomplete_options(
    to: Path | None, encrypt_to: list[str] | None, passphrase: Path | None
) -> None:
    """Raise Trouble for options that are useless alone."""
    from hermes_doctor.backup.vault import engines

    if (to or passphrase) and not encrypt_to:
        raise Trouble(
            "--to writes an encrypted archive, so it needs --encrypt-to. Nothing was done."
        )
    if to and not to.expanduser().is_dir() and to.expanduser().exists():
        raise Trouble("{file} already exists. Nothing was done. Choose another file.", file=to)
    if encrypt_to:
        engines.find_program("age")


def refuse_place(to: Path, home: Home) -> None:
    """Raise Trouble if no archive may be written there, for example inside a home."""
    from hermes_doctor.cli import output_file

    place = to.expanduser()
    file = place / "archive" if place.is_dir() else place
    output_file.find(file, output_file.rules_for([home]))


def _refuse_own_place(target: str, home: Home) -> None:
    """Raise Trouble if a destination is a folder of this machine inside a home."""
    place = Path(target)
    if ":" not in target.partition("/")[0] and (place.is_dir() or place.parent.is_dir()):
        refuse_place(place, home)


def export_to(
    backup: Backup, to: Path | None, encrypt_to: list[str], passphrase_file: Path | None
) -> tuple[Path, int]:
    """Write the encrypted archive; return its path and size."""
    from hermes_doctor.backup.vault import age, archive

    if root_parent.is_separate():
        return archive.write_by_root(backup, None if to else backup.folder.parent)
    place = absolute(to) or backup.folder.parent
    if place.is_dir():
        place = place / f"{backup.id}{age.SUFFIX}"
    archive.write(backup, place, _keys(encrypt_to, passphrase_file))
    return place, place.stat().st_size


def root_exports(
    to: Path | None, encrypt_to: list[str] | None, passphrase_file: Path | None
) -> AbstractContextManager[Mapping[str, Action]]:
    """What root does for an export of its separate process; nothing without an export."""
    if not encrypt_to:
        return nullcontext(EMPTY)
    from hermes_doctor.backup.vault import age_of_root

    return age_of_root.actions(_keys(encrypt_to, passphrase_file), to=absolute(to))


def _keys(encrypt_to: list[str], passphrase_file: Path | None) -> ArchiveKeys:
    from hermes_doctor.backup.vault.age import ArchiveKeys

    keys = tuple(_expanded(word) for word in encrypt_to if word != PASSPHRASE)
    return ArchiveKeys(keys, PASSPHRASE in encrypt_to, passphrase_file)


def _expanded(word: str) -> str:
    return f"@{Path(word[1:]).expanduser()}" if word.startswith("@") else word


def _chosen(home: Home, vault: Path | None, id: str | None) -> Backup:
    from hermes_doctor.backup.vault.vault import Vault

    store = Vault(home, vault)
    backup = store.load(id) if id else store.newest()
    if backup is None:
        raise Trouble(
            "{vault} contains no backup of this home. Create one: hermes-doctor backup create",
            vault=store.root,
        )
    if wrong := store.verify(backup):
        raise Trouble(
            "Backup {id} is damaged: {reason}. Nothing was sent.", id=backup.id, reason=wrong[0]
        )
    return backup
