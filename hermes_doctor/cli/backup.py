"""`backup`: make, list, verify, restore and prune backups."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hermes_doctor.cli import backup_away as away, backup_schedule as schedule
from hermes_doctor.cli.options import HomeOption, JsonOption, VaultOption, YesOption

if TYPE_CHECKING:
    from hermes_doctor.vault import Backup, Vault

app = typer.Typer(
    help="Backups of a home: verified, listed, restorable.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog="""\b
Examples:
  hermes-doctor backup create --reason 'before the update'
  hermes-doctor backup verify --deep
  hermes-doctor backup restore ID config.yaml
  hermes-doctor backup schedule install --at 03:30 --daily 7 --weekly 4
  hermes-doctor backup prune --keep 10 --older-than 30d

\b
Exit codes:
  0  done
  1  something is wrong with a backup, or was left or not agreed to
  2  could not run; nothing was changed
""",
)
away.add_to(app)
app.add_typer(schedule.app, name="schedule")
IdArgument = Annotated[
    str | None,
    typer.Argument(
        help="The backup, an archive, or a zip or snapshot of Hermes'; else the newest."
    ),
]


@app.command(
    epilog="""\b
Examples:
  hermes-doctor backup create
  hermes-doctor backup create --reason 'before the update' --vault /mnt/disk
  hermes-doctor backup create --exclude sessions --include logs
  hermes-doctor backup create --to /mnt/usb --encrypt-to age1…

\b
Exit codes:
  0  made and verified
  1  made, but a database in it was damaged already
  2  no backup was made
"""
)
def create(
    home: HomeOption = None,
    vault: VaultOption = None,
    reason: Annotated[str, typer.Option("--reason", help="Why, for the list.")] = "by hand",
    full: Annotated[
        bool, typer.Option("--full", help="Share nothing with the backup before.")
    ] = False,
    include: Annotated[
        list[str] | None,
        typer.Option(
            "--include", help="Also this, though it can be made anew. A glob. Repeatable."
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", help="Not this. A glob. Repeatable.")
    ] = None,
    to: away.ToOption = None,
    encrypt_to: away.EncryptOption = None,
    passphrase_file: away.PassphraseOption = None,
    daily: schedule.DailyOption = 0,
    weekly: schedule.WeeklyOption = 0,
    monthly: schedule.MonthlyOption = 0,
    json: JsonOption = False,
) -> int:
    """Back up all that cannot be made anew, and verify it. Then old ones may go."""
    from hermes_doctor.cli.creating import run
    from hermes_doctor.retention import Retention

    return run(
        home=home,
        vault=vault,
        reason=reason,
        full=full,
        include=include,
        exclude=exclude,
        to=to,
        encrypt_to=encrypt_to,
        passphrase_file=passphrase_file,
        rule=Retention(daily, weekly, monthly),
        json=json,
    )


@app.command(
    "list",
    epilog="""\b
Examples:
  hermes-doctor backup list
  hermes-doctor backup list --hermes

\b
Exit codes:
  0  listed
  2  could not run
""",
)
def list_(
    hermes: Annotated[
        bool, typer.Option("--hermes", help="The zips and snapshots that Hermes made.")
    ] = False,
    restic: away.ResticOption = None,
    home: HomeOption = None,
    vault: VaultOption = None,
    json: JsonOption = False,
) -> int:
    """List the backups, oldest first."""
    if hermes or restic:
        from hermes_doctor import home as homes

        return away.list_others(homes.find(home), restic, json=json)
    from hermes_doctor.cli.asked import named_home, repeated
    from hermes_doctor.cli.creating import described
    from hermes_doctor.files import size
    from hermes_doctor.model import Trouble
    from hermes_doctor.render.lines import row, show, tilde

    store = _vault(home, vault)
    known: list[tuple[str, Backup | None]] = []
    for id in store.ids():
        try:
            known.append((id, store.load(id)))
        except Trouble:
            known.append((id, None))
    if json:
        _echo(
            "backups",
            {
                "vault": str(store.root),
                "backups": [described(b) if b else {"id": id, "damaged": True} for id, b in known],
            },
        )
        return 0
    if not known:
        make = f"hermes-doctor backup create{repeated(named_home(home), vault=vault)}"
        show([row("There is no backup yet. Make one: ", (make, "command"))])
    for id, one in known:
        if one is None:
            show([row((id, "strong"), "  ", ("its manifest is damaged", "error"))])
        else:
            version = f"Hermes {one.hermes}" if one.hermes else "Hermes unknown"
            text = f"  {len(one.entries)} files, {size(one.size)}  {version}  {one.reason}"
            if one.home != str(store.home.path):
                text += f"  (of {tilde(one.home)})"
            show([row((id, "strong"), text, hang=2)])
    return 0


@app.command(
    epilog="""\b
Examples:
  hermes-doctor backup verify --all
  hermes-doctor backup verify --deep
  hermes-doctor backup verify --hermes
  hermes-doctor backup verify /mnt/usb/ID.tar.age --identity key.txt

\b
Exit codes:
  0  whole
  1  damaged
  2  could not run
"""
)
def verify(
    id: IdArgument = None,
    every: Annotated[bool, typer.Option("--all", help="All backups.")] = False,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Restore it into a scratch folder, and have SQLite examine every row."
        ),
    ] = False,
    hermes: Annotated[
        bool, typer.Option("--hermes", help="The zips and snapshots that Hermes made.")
    ] = False,
    identity: away.IdentityOption = None,
    passphrase_file: away.PassphraseOption = None,
    home: HomeOption = None,
    vault: VaultOption = None,
    json: JsonOption = False,
) -> int:
    """Read a backup back and compare every byte with its manifest."""
    from hermes_doctor.archive import Lock
    from hermes_doctor.render.lines import row, show

    store = _vault(home, vault)
    lock = Lock(passphrase_file=passphrase_file, identity=identity)
    results = away.verified_others(store, id, lock, every=hermes)
    if results is None:
        ids = store.ids() if every else [_chosen(store, id, home, vault)]
        results = _verified(store, ids, deep=deep, quiet=json)
    if json:
        _echo(
            "verification",
            {
                "backups": [
                    {"id": one, "whole": not wrong, "wrong": wrong} for one, wrong in results
                ]
            },
        )
    else:
        for one, wrong in results:
            if not wrong:
                tried = ", and everything in it can be had back" if deep else ""
                show([row(("✓ ", "good"), f"Backup {one} is whole{tried}.", hang=2)])
            show([row(("✗ ", "error"), f"Backup {one}: {text}", hang=2) for text in wrong])
        if not results:
            show([row("There is none.")])
    return int(any(wrong for _, wrong in results))


def _verified(
    store: Vault, ids: Sequence[str], *, deep: bool, quiet: bool
) -> list[tuple[str, list[str]]]:
    """What is wrong with each backup; what they share is read once."""
    from hermes_doctor.cli.copying import bar
    from hermes_doctor.interrupts import interruptible
    from hermes_doctor.model import Trouble
    from hermes_doctor.trial import tried

    results: list[tuple[str, list[str]]] = []
    known: dict[tuple[object, ...], str] = {}
    with away.at_work(store) if deep else interruptible():
        for one in ids:
            try:
                backup = store.load(one)
                with bar(f"verifying {one}", backup.size, quiet=quiet) as progress:
                    wrong = (
                        tried(store, backup, progress)
                        if deep
                        else store.verify(backup, progress, known)
                    )
            except Trouble as trouble:
                wrong = [str(trouble)]
            results.append((one, wrong))
    return results


@app.command(
    epilog="""\b
Examples:
  hermes-doctor backup restore ID
  hermes-doctor backup restore ID config.yaml state.db --yes
  hermes-doctor backup restore ID cron pairing 'profiles/coder/*'
  hermes-doctor backup restore ~/hermes-backup-2026-01-31.zip auth

\b
Exit codes:
  0  restored and verified
  1  taken back, or not agreed to
  2  could not run; nothing was changed
"""
)
def restore(
    id: Annotated[
        str, typer.Argument(help="The backup, an archive, or a zip or snapshot of Hermes'.")
    ],
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Only these: files, folders, globs, or stores (config, env, auth, history, "
            "sessions, kanban, cron, pairing, webhooks, channels, memories, skills, whatsapp, "
            "weixin, matrix). Else everything."
        ),
    ] = None,
    identity: away.IdentityOption = None,
    passphrase_file: away.PassphraseOption = None,
    other_home: Annotated[
        bool,
        typer.Option("--other-home", help="Though it is one of another home, or of another place."),
    ] = False,
    yes: YesOption = False,
    home: HomeOption = None,
    vault: VaultOption = None,
    json: JsonOption = False,
) -> int:
    """Bring files back from a backup. What they replace is backed up; `undo` takes it back.

    A home that is gone is made anew, where the backup lies elsewhere.
    """

    from hermes_doctor import adopting, belongings, outside, plugins, restoring
    from hermes_doctor.archive import Lock
    from hermes_doctor.cli import lost
    from hermes_doctor.cli.asked import named_home, repeated
    from hermes_doctor.cli.restoring import carry_out, recovered
    from hermes_doctor.lock import locked
    from hermes_doctor.model import Trouble
    from hermes_doctor.render.lines import row, show
    from hermes_doctor.vault import Vault

    where = lost.found(home, elsewhere=vault is not None or Path(id).is_file())
    with (
        lost.again(where),
        locked(where),
        recovered(where, plugins.load(), json=json) as ended,
    ):
        store = Vault(where, vault)
        lock = Lock(passphrase_file=passphrase_file, identity=identity)
        id = away.taken_in(store, id, lock, sure=yes, quiet=json)
        backup = store.load(id)
        if not store.is_ours(id) and not other_home:
            raise Trouble(
                f"Backup {id} is one of {backup.home}. Nothing was changed. If that is right: "
                f"--other-home"
            )
        backup = adopting.mine(where, backup) if other_home else backup
        names = [entry.path for entry in backup.entries]
        chosen, unknown = belongings.chosen(paths or (), names)
        if unknown:
            raise Trouble(f"Backup {id} holds no {unknown[0]!r}. Nothing was changed.")
        wanted = [
            entry
            for entry in backup.entries
            if (entry.path in chosen if paths else not belongings.passing(entry.path))
        ]
        named = belongings.chosen([one for one in paths or () if one.startswith("/")], names)[0]
        wanted, left = outside.coming_back(where, wanted, backup.entries, named)
        if left and not json:
            text = f"Left as it is, since it lies outside of the home: {', '.join(left)}"
            show([row(("! ", "warning"), f"{text}. Name it to have it too.", hang=2)])
        if not wanted:
            raise Trouble(f"Backup {id} holds nothing to bring back. Nothing was changed.")
        wrong = store.verify(backup._replace(entries=tuple(wanted)))
        if wrong:
            raise Trouble(f"Backup {id} is damaged: {wrong[0]}. Nothing was changed.")
        done = carry_out(
            where,
            backup,
            restoring.items_for(where, backup, wanted, "restore"),
            kind="restore",
            of=id,
            ended=ended,
            yes=yes,
            json=json,
            vault=vault,
            repeat=repeated(named_home(home)),
            left=left,
        )
    return int(done is None or done.state != "done")


@app.command(
    epilog="""\b
Examples:
  hermes-doctor backup prune --keep 10
  hermes-doctor backup prune --older-than 30d --yes

\b
Exit codes:
  0  done
  2  could not run, or not agreed to; nothing was removed
"""
)
def prune(
    keep: Annotated[int, typer.Option("--keep", min=1, help="Keep this many of the newest.")] = 10,
    older_than: Annotated[
        str, typer.Option("--older-than", help="Only those older than this: 30d, 12h, 4w.")
    ] = "0d",
    daily: schedule.DailyOption = 0,
    weekly: schedule.WeeklyOption = 0,
    monthly: schedule.MonthlyOption = 0,
    yes: YesOption = False,
    home: HomeOption = None,
    vault: VaultOption = None,
    json: JsonOption = False,
) -> int:
    """Remove old backups. The newest that verifies stays, and the newest of the whole home."""
    from hermes_doctor import home as homes, leftovers
    from hermes_doctor.cli import ending
    from hermes_doctor.cli.options import sure
    from hermes_doctor.interrupts import interruptible
    from hermes_doctor.lock import locked
    from hermes_doctor.model import Trouble
    from hermes_doctor.outliving import beyond, outlived
    from hermes_doctor.render.lines import row, show
    from hermes_doctor.retention import Retention

    age = _age(older_than)
    where = homes.find(home)
    with locked(where), interruptible():
        store = _vault(home, vault)
        leftovers.tidy(store)
        rule = Retention(daily, weekly, monthly)
        doomed = outlived(store, rule) if rule else beyond(store, keep, age)
        if not json:
            show([row(("→ ", "faint"), f"remove backup {one}") for one in doomed])
            if not doomed:
                show([row("No backup is old enough to go.")])
        if doomed and not yes and (json or not sure(f"Remove {len(doomed)} for good?")):
            raise Trouble("Removing backups is for good. Nothing was removed. Say --yes.")
        for one in doomed:
            ending.changed()
            store.discard(one)
    if json:
        _echo("prune", {"removed": doomed, "kept": store.ids()})
    return 0


def _age(text: str) -> timedelta:
    from hermes_doctor.model import Trouble

    units = {"h": "hours", "d": "days", "w": "weeks"}
    number, unit = text[:-1], text[-1:]
    if unit not in units or not number.isdecimal() or len(number) > 5:
        raise Trouble(f"--older-than takes a number and h, d or w (30d, 12h, 4w), not {text!r}.")
    return timedelta(**{units[unit]: int(number)})


def _vault(home: HomeOption, vault: VaultOption) -> Vault:
    from hermes_doctor.cli import lost
    from hermes_doctor.vault import Vault

    return Vault(lost.found(home, elsewhere=vault is not None), vault)


def _chosen(store: Vault, id: str | None, home: HomeOption, vault: VaultOption) -> str:
    from hermes_doctor.cli.asked import named_home, repeated
    from hermes_doctor.model import Trouble

    ids = [one for one in store.ids() if id or store.is_ours(one)]
    if id and id not in ids:
        raise Trouble(
            f"There is no backup {id!r} in {store.root}. "
            f"See: hermes-doctor backup list{repeated(named_home(home), vault=vault)}"
        )
    if not ids:
        make = f"hermes-doctor backup create{repeated(named_home(home), vault=vault)}"
        raise Trouble(f"There is no backup in {store.root}. Make one: {make}")
    return id or ids[-1]


def _echo(kind: str, document: dict[str, Any]) -> None:
    from hermes_doctor.render.document import dump

    typer.echo(dump({"schema": f"hermes-doctor/{kind}/1", **document}))
