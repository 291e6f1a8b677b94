"""The commands `backup export|push|pull`, and backups made by Hermes, age, restic or rsync."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hermes_doctor.cli import backup_common, separate_look, separate_work
from hermes_doctor.cli.backup_common import exclusive_vault
from hermes_doctor.cli.option_declarations import HomeOption, JsonOption, VaultOption
from hermes_doctor.cli.option_values import absolute
from hermes_doctor.cli.progress_bars import LARGE, print_schema_document, transfer_progress
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
    where, place = homes.find(home), absolute(vault)
    _refuse_own_place(restic or rsync or "", where)

    def choose() -> tuple[str, int]:
        backup = _chosen(where, place, id)
        return backup.id, backup.size

    with interruptible():
        chosen = separate_work.do(where, choose, otherwise=choose, writes=False, vault=place)
        name, size = str(chosen[0]), int(chosen[1])
        repository = engines.Restic(restic) if restic is not None else None
        if repository and init:
            repository.make()
        with (
            _vault_to_send(where, place, restic or rsync or "") as (root, shown),
            transfer_progress(size, quiet=json),
        ):
            if repository is not None:
                refuse_no_id(name)
                text = (
                    f"Backup {name} sent as restic snapshot {repository.push(root, name, shown)} "
                    f"and checked by restic."
                )
            else:
                engines.rsync(root, rsync or "", shown)
                text = "All backups sent and compared byte by byte."
    _say_unlocked(repository)
    if json:
        print_schema_document("push", {"id": name, "said": text})
    else:
        show([row(("✓ ", "good"), text, hang=2)])
    return 0


@contextmanager
def _vault_to_send(
    home: Home, place: Path | None, target: str
) -> Iterator[tuple[Path, Callable[[], None] | None]]:
    """Yield the folder of the vault; if it is another user's, also what shows it to a program."""
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.cli import separate_look
    from hermes_doctor.core.system import closed_folders, privileges

    root = Vault(home, place).root
    user = privileges.of(root / "_") if separate_look.owner_of(home.path) else None
    if user is None:
        yield root, None
        return
    if _is_local(target) and (real := Path(target).resolve()).is_relative_to(user.folder):
        raise Trouble(
            "{path} is in a folder of another user (uid {uid}), into which root does not send "
            "backups. Nothing was sent. Name a folder of root's.",
            path=real,
            uid=user.uid,
        )
    with closed_folders.shown_to_program(root, user) as show:
        yield root, show


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

    if restic is None:
        raise Trouble("No repository given. Add --restic REPOSITORY.")
    where = backup_common.find_home(home, elsewhere=True)
    repository, place = engines.Restic(restic), absolute(vault)
    with backup_common.recreated_folder(where):
        if separate_look.owner_of(where.path):
            fetched = _pull_apart(where, place, repository, id, quiet=json)
        else:
            store = Vault(where, place)
            with (
                exclusive_vault(store),
                transfer_progress(LARGE, quiet=json),
            ):  # only restic knows the size
                fetched = _told(repository.pull(store, id))
    _say_unlocked(repository)
    if json:
        print_schema_document("pull", fetched)
    else:
        text = f"Fetched and verified as backup {fetched['id']}."
        show([row(("✓ ", "good"), text, hang=2)])
    return 0


def _told(backup: Backup) -> dict[str, object]:
    return {"id": backup.id, "files": len(backup.entries), "folder": str(backup.folder)}


def _pull_apart(
    home: Home, vault: Path | None, repository: Restic, id: str | None, *, quiet: bool
) -> dict[str, object]:
    """Let restic of root's fetch a backup, and the process of the home's owner import it."""
    from hermes_doctor.backup.vault import engines
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.core.system.closed_folders import LentFolder

    separate_look.know_secrets(home.path)
    with interruptible(), engines.room_of_root() as room:
        with transfer_progress(LARGE, quiet=quiet):  # only restic knows the size
            real, name = repository.find(id)
            repository.fetch(name, room)
        engines.give_to_root(room)

        def work() -> dict[str, object]:
            store = Vault(home, vault)
            with exclusive_vault(store), transfer_progress(LARGE, quiet=quiet):
                return _told(engines.import_fetched(store, room, real, name))

        lent = [LentFolder(room, read_only=True)]
        return dict(separate_work.do(home, work, otherwise=work, vault=vault, lent=lent))


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


def refuse_no_id(word: str) -> None:
    """Raise Trouble if a process of the home's owner has sent something else than a backup's id."""
    from hermes_doctor.backup.vault.whole_backup import BACKUP

    if not BACKUP.fullmatch(word):
        raise Trouble("{id!r} is not the id of a backup. Nothing was sent.", id=word)


def refuse_place(to: Path, home: Home) -> None:
    """Raise Trouble if no archive may be written there, for example inside a home."""
    from hermes_doctor.cli import output_file

    place = to.expanduser()
    file = place / "archive" if place.is_dir() else place
    output_file.find(file, output_file.rules_for([home]))


def _refuse_own_place(target: str, home: Home) -> None:
    """Raise Trouble if a destination is a folder of this machine inside a home."""
    place = Path(target)
    if _is_local(target) and (place.is_dir() or place.parent.is_dir()):
        refuse_place(place, home)


def _is_local(target: str) -> bool:
    """Whether a destination is a folder of this machine."""
    return ":" not in target.partition("/")[0]


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

    keys = tuple(
        f"@{Path(word[1:]).expanduser()}" if word.startswith("@") else word
        for word in encrypt_to
        if word != PASSPHRASE
    )
    return ArchiveKeys(keys, PASSPHRASE in encrypt_to, passphrase_file)


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
