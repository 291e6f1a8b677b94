"""`backup`: make, list, verify, restore and prune backups."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
  hermes-doctor backup verify
  hermes-doctor backup restore ID config.yaml
  hermes-doctor backup prune --keep 10 --older-than 30d

\b
Exit codes:
  0  done
  1  something is wrong with a backup, or was left or not agreed to
  2  could not run; nothing was changed
""",
)
IdArgument = Annotated[str | None, typer.Argument(help="The backup; else the newest.")]


@app.command(
    epilog="""\b
Examples:
  hermes-doctor backup create
  hermes-doctor backup create --reason 'before the update' --vault /mnt/disk

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
    json: JsonOption = False,
) -> int:
    """Back up all that cannot be made anew, and verify it."""
    from hermes_doctor import home as homes, recovery, scope
    from hermes_doctor.cli import ending
    from hermes_doctor.cli.copying import bar
    from hermes_doctor.interrupts import interruptible
    from hermes_doctor.lock import locked
    from hermes_doctor.probes import Probes
    from hermes_doctor.vault import Vault, total

    where = homes.find(home)
    with locked(where), interruptible():
        store = Vault(where, vault)
        recovery.tidy(store)
        sources = scope.everything(where, store.root)
        found = Probes(where).installation()
        with bar("backing up", total(sources), quiet=json) as progress:
            made = store.create(
                sources,
                reason=reason,
                hermes=found.version if found else None,
                whole=True,
                full=full,
                progress=progress,
            )
    ending.changed()
    unsound = [entry for entry in made.entries if entry.integrity not in (None, "ok")]
    if json:
        _echo(
            "backup",
            _document(made) | {"entries": len(made.entries), "left_out": scope.left_out(where)},
        )
    else:
        from hermes_doctor.files import size
        from hermes_doctor.render.lines import row, show, tilde

        show(
            [
                row(
                    ("✓ ", "good"),
                    f"Backup {made.id}: {len(made.entries)} files, "
                    f"{size(made.size)}, verified. {tilde(made.folder)}",
                    hang=2,
                )
            ]
        )
        passed = ", ".join(scope.left_out(where))
        if passed:
            text = f"Left out (logs, caches, code, copies that Hermes made): {passed}"
            show([row((text, "faint"), indent=2)])
        for entry in unsound:
            text = f"{entry.path} is saved as it is, but it is damaged: {entry.integrity}"
            show([row(("! ", "warning"), text, hang=2)])
    return int(bool(unsound))


@app.command(
    "list",
    epilog="""\b
Examples:
  hermes-doctor backup list
  hermes-doctor backup list --json

\b
Exit codes:
  0  listed
  2  could not run
""",
)
def list_(home: HomeOption = None, vault: VaultOption = None, json: JsonOption = False) -> int:
    """List the backups, oldest first."""
    from hermes_doctor.cli.asked import named_home, repeated
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
                "backups": [_document(b) if b else {"id": id, "damaged": True} for id, b in known],
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
            hermes = f"Hermes {one.hermes}" if one.hermes else "Hermes unknown"
            text = f"  {len(one.entries)} files, {size(one.size)}  {hermes}  {one.reason}"
            if one.home != str(store.home.path):
                text += f"  (of {tilde(one.home)})"
            show([row((id, "strong"), text, hang=2)])
    return 0


@app.command(
    epilog="""\b
Examples:
  hermes-doctor backup verify
  hermes-doctor backup verify --all

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
    home: HomeOption = None,
    vault: VaultOption = None,
    json: JsonOption = False,
) -> int:
    """Read a backup back and compare every byte with its manifest."""
    from hermes_doctor.model import Trouble
    from hermes_doctor.render.lines import row, show

    store = _vault(home, vault)
    ids = store.ids() if every else [_chosen(store, id, home, vault)]
    results: list[tuple[str, list[str]]] = []
    for one in ids:
        try:
            results.append((one, store.verify(store.load(one))))
        except Trouble as trouble:
            results.append((one, [str(trouble)]))
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
                show([row(("✓ ", "good"), f"Backup {one} is whole.")])
            show([row(("✗ ", "error"), f"Backup {one}: {text}", hang=2) for text in wrong])
    return int(any(wrong for _, wrong in results))


@app.command(
    epilog="""\b
Examples:
  hermes-doctor backup restore ID
  hermes-doctor backup restore ID config.yaml state.db --yes

\b
Exit codes:
  0  restored and verified
  1  taken back, or not agreed to
  2  could not run; nothing was changed
"""
)
def restore(
    id: Annotated[str, typer.Argument(help="The backup.")],
    paths: Annotated[
        list[str] | None, typer.Argument(help="Only these files of it; else everything.")
    ] = None,
    yes: YesOption = False,
    home: HomeOption = None,
    vault: VaultOption = None,
    json: JsonOption = False,
) -> int:
    """Bring files back from a backup. What they replace is backed up; `undo` takes it back."""
    from dataclasses import replace

    from hermes_doctor import home as homes, plugins, restoring
    from hermes_doctor.cli.asked import named_home, repeated
    from hermes_doctor.cli.restoring import carry_out, recovered
    from hermes_doctor.lock import locked
    from hermes_doctor.model import Trouble
    from hermes_doctor.vault import Vault

    where = homes.find(home)
    with locked(where), recovered(where, plugins.load(), json=json) as ended:
        store = Vault(where, vault)
        backup = store.load(id)
        if not store.is_ours(id):
            raise Trouble(f"Backup {id} is one of {backup.home}. Nothing was changed.")
        unknown = [path for path in paths or () if backup.entry(path) is None]
        if unknown:
            raise Trouble(f"Backup {id} holds no {unknown[0]!r}. Nothing was changed.")
        wanted = [e for e in backup.entries if not paths or e.path in _with_sidecars(paths)]
        wrong = store.verify(replace(backup, entries=tuple(wanted)))
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
    yes: YesOption = False,
    home: HomeOption = None,
    vault: VaultOption = None,
    json: JsonOption = False,
) -> int:
    """Remove old backups. The newest that verifies stays, and the newest of the whole home."""
    from hermes_doctor import home as homes, recovery
    from hermes_doctor.cli import ending
    from hermes_doctor.cli.options import sure
    from hermes_doctor.interrupts import interruptible
    from hermes_doctor.lock import locked
    from hermes_doctor.model import Trouble
    from hermes_doctor.render.lines import row, show

    age = _age(older_than)
    where = homes.find(home)
    with locked(where), interruptible():
        store = _vault(home, vault)
        recovery.tidy(store)
        doomed = _doomed(store, keep, age)
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


def _doomed(store: Vault, keep: int, age: timedelta) -> list[str]:
    """The backups that go: beyond the newest `keep` and older than `age`.

    The newest that verifies always stays, and so does the newest of the whole home: what a run
    keeps of the one file that it changed is no replacement for it.
    """
    from hermes_doctor.journal import Journals
    from hermes_doctor.model import Trouble

    ids = [id for id in store.ids() if store.is_ours(id)]
    needed = {journal.id for journal in Journals(store.home).all() if not journal.final}
    limit = datetime.now(UTC) - age
    doomed = []
    for id in ids[: max(0, len(ids) - keep)]:
        try:
            old = store.load(id).created_at <= limit
        except Trouble:
            continue  # a damaged one may still hold what somebody needs
        if old and id not in needed:
            doomed.append(id)
    good = False
    for id in reversed(ids if doomed else []):
        try:
            backup = store.load(id)
            sound = backup.sound and not store.verify(backup)
        except Trouble:
            continue
        if sound and (backup.whole or not good):
            doomed = [one for one in doomed if one != id]
        good = good or sound
        if sound and backup.whole:
            break
    return doomed if good else []


def _age(text: str) -> timedelta:
    from hermes_doctor.model import Trouble

    units = {"h": "hours", "d": "days", "w": "weeks"}
    number, unit = text[:-1], text[-1:]
    if unit not in units or not number.isdigit() or len(number) > 5:
        raise Trouble(f"--older-than takes a number and h, d or w (30d, 12h, 4w), not {text!r}.")
    return timedelta(**{units[unit]: int(number)})


def _with_sidecars(paths: list[str]) -> set[str]:
    """A database comes with the sidecars that were saved with it."""
    from hermes_doctor.home import SIDECARS

    return {name for path in paths for name in (path, *(path + end for end in SIDECARS))}


def _vault(home: HomeOption, vault: VaultOption) -> Vault:
    from hermes_doctor import home as homes
    from hermes_doctor.vault import Vault

    return Vault(homes.find(home), vault)


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


def _document(backup: Backup) -> dict[str, Any]:
    return {
        "id": backup.id,
        "created_at": backup.created_at.isoformat(),
        "home": backup.home,
        "reason": backup.reason,
        "hermes": backup.hermes,
        "files": len(backup.entries),
        "bytes": backup.size,
        "whole": backup.whole,
        "shares": backup.shares,
        "folder": str(backup.folder),
    }


def _echo(kind: str, document: dict[str, Any]) -> None:
    from hermes_doctor.render.document import dump

    typer.echo(dump({"schema": f"hermes-doctor/{kind}/1", **document}))
