"""Check who may read and write the home, its files, and the keys and tokens in them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    snapshot,
    text,
)
from hermes_doctor.api.stores import redact_log_text
from hermes_doctor.api.tools import Snapshot, count, known_or, shorten

_INSIDE = ("state.db", "logs/gateway.log", "logs/agent.log", "kanban.db")
_MEANT = ("HERMES_HOME_MODE", "HERMES_SKIP_CHMOD", "HERMES_CONTAINER")


@check(id="home-mode", group="secrets", codes=["PERM-SECRETS", "PERM-OWNER"])
def home_mode(probes: Probes) -> Iterator[Finding]:
    """Can only the gateway's user enter the home?"""
    home = snapshot(probes.home.path)
    if home.kind != "directory":
        raise Skip("the home is not a real folder")
    yield from _mode(probes, home.mode)
    user = probes.gateway.user()
    if probes.gateway.is_home_closed():
        yield _closed(probes, home, user.uid)
    elif probes.gateway.running() and user.uid != home.uid:
        yield Finding(
            code="PERM-OWNER",
            severity=Severity.INFO,
            title="the gateway does not run as the owner of its home",
            subject="the home",
            detail=(
                "New files belong to the user of the gateway, so the owner of the home cannot "
                "read them."
            ),
            evidence=(
                Evidence(str(probes.home.path), f"owner {home.uid}"),
                Evidence(f"process {probes.gateway.running()[0].pid}", f"runs as {user.uid}"),
            ),
            next="Run the gateway as the owner of the home: set `User=` in its unit.",
        )


def _closed(probes: Probes, home: Snapshot, uid: int) -> Finding:
    """Report that the user of a container may not enter or change the home."""
    owner = probes.gateway.supervision().owner
    assert owner is not None
    state = owner.settings.get("Status", owner.state)
    output = probes.gateway.container_output()
    return Finding(
        code="PERM-OWNER",
        severity=Severity.ERROR,
        title="the user of the container may not write to the home",
        subject="the home",
        detail=text(
            "Nobody gets an answer. The gateway in the container {name} cannot start, because its "
            "volume belongs to another user.",
            name=owner.name,
        ),
        evidence=(
            Evidence(
                owner.name,
                text(
                    "runs as {uid}; {state}, restarted {times}",
                    uid=uid,
                    state=state,
                    times=count(owner.number("NRestarts"), "time"),
                ),
            ),
            Evidence(str(probes.home.path), f"owner {home.uid}, mode {home.mode:04o}"),
            *(
                (Evidence(f"docker logs {owner.name}", shorten(redact_log_text(output), 160)),)
                if output
                else ()
            ),
        ),
        next=text(
            "Run `sudo chown -R {uid} {folder}`; the container then starts by itself.",
            uid=uid,
            folder=shlex.quote(str(probes.home.path)),
        ),
        data={"uid": uid},
    )


def _mode(probes: Probes, mode: int) -> Iterator[Finding]:
    others, group = probes.files.who_can_enter()
    bit = 0o004 if others else 0o040
    if not others and not group:
        return
    files = [name for name in _INSIDE if snapshot(probes.home / name).mode & bit]
    if not files or any(probes.settings.effective().value(name) for name in _MEANT):
        return
    yield Finding(
        code="PERM-SECRETS",
        severity=Severity.WARNING if others else Severity.INFO,
        title=(
            "every user of this machine can read conversations and logs"
            if others
            else "the group of the home can read conversations and logs"
        ),
        subject="the home",
        detail="Hermes relies on a home folder that only its owner can enter.",
        evidence=(
            Evidence(str(probes.home.path), f"mode {mode:04o}"),
            Evidence(files[0], "readable by every user" if others else "readable by the group"),
        ),
        next=text("Run `chmod 700 {folder}`.", folder=probes.home.path),
    )


_VITAL = (".env", "config.yaml", "auth.json", "gateway", "logs", "cron", "sessions", "platforms")
_SHOWN = 100


@check(id="file-owners", group="storage", codes=["PERM-OWNER"])
def file_owners(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Can the gateway read and write the files of its home?"""
    if probes.gateway.is_home_closed():
        raise Skip("the gateway may not write to the home itself")
    user = probes.gateway.user()
    owner_scan = probes.gateway.file_owners()
    if not owner_scan.whole:
        yield CouldNotLook(
            text("checked only the first {seen} files", seen=owner_scan.seen)
            if probes.deep
            else text(
                "checked only the first {seen} files; --deep checks more of them",
                seen=owner_scan.seen,
            )
        )
    if not owner_scan.closed:
        return
    for closed_file in owner_scan.closed[:_SHOWN]:
        name = probes.home.name_of(closed_file.path)
        vital = not closed_file.readable or name.startswith(_VITAL)
        plain = closed_file.snapshot.kind == "file"
        yield Finding(
            code="PERM-OWNER",
            severity=Severity.ERROR if vital else Severity.WARNING,
            title=(
                text("the gateway cannot write {name}", name=name)
                if closed_file.readable
                else text("the gateway cannot read {name}", name=name)
            ),
            subject=name,
            detail=(
                "Everything that needs this file fails with `Permission denied`. Usually a command "
                "that ran as root (sudo, docker exec) created it."
            ),
            evidence=(
                Evidence(
                    name,
                    f"owner {closed_file.snapshot.uid}, mode {closed_file.snapshot.mode:04o}; "
                    f"the gateway runs as {user.uid}",
                ),
            ),
            fix="give-back-owner" if plain else None,
            data={"path": closed_file.path, "snapshot": closed_file.snapshot, "uid": user.uid},
            next="" if plain else text("Give {name} to the gateway's user with chown.", name=name),
        )
    more = len(owner_scan.closed) - _SHOWN
    if more > 0:
        yield Finding(
            code="PERM-OWNER",
            severity=Severity.WARNING,
            title=text("the gateway cannot use {files}", files=count(more, "more file")),
            subject="the home",
            detail=text("Only the first {shown} are listed.", shown=_SHOWN),
            evidence=(
                Evidence("the home", f"{len(owner_scan.closed)} of {owner_scan.seen} files"),
            ),
            next="Repair the listed files, then check again.",
        )


@check(id="secret-modes", group="secrets", codes=["PERM-SECRETS"])
def secret_modes(probes: Probes) -> Iterator[Finding]:
    """Can only the owner read the files with secrets?"""
    files = probes.files.secret_files()
    config = probes.settings.exposed_config()
    for file in [*files, *([config] if config else [])]:
        if not file.wide:
            continue
        meant = not file.by_others and file.by_group and _managed(probes)
        name = probes.home.name_of(file.path)
        if file.by_others:
            severity = Severity.ERROR
            title = text("every user of this machine can read {file}", file=name)
        elif meant:
            severity = Severity.INFO
            title = text("the group of this managed home can read {file}", file=name)
        elif file.by_group:
            severity = Severity.WARNING
            title = text("every user in its group can read {file}", file=name)
        else:
            severity = Severity.INFO
            title = text("only its folder protects {file} from other users", file=name)
        yield Finding(
            code="PERM-SECRETS",
            severity=severity,
            title=title,
            subject=name,
            detail=(
                "It contains tokens, keys or conversations."
                if severity is not Severity.INFO
                else "The package manager that manages this home set it up this way."
                if meant
                else "Every user could read a copy of this file in another folder."
            ),
            evidence=(Evidence(name, f"mode {file.snapshot.mode:04o}"),),
            next="If other people use this machine, replace these keys after the repair."
            if severity is not Severity.INFO
            else "Make sure that only you are in this group."
            if meant
            else "",
            fix=None if meant else "tighten-modes",
            data={"path": file.path, "snapshot": file.snapshot},
        )


def _managed(probes: Probes) -> bool:
    return known_or(False, lambda: probes.settings.is_managed())


@check(id="leaked-secrets", group="secrets", codes=["CRED-IN-LOGS"])
def leaked_secrets(probes: Probes) -> Iterator[Finding]:
    """Are the logs free of keys and tokens?"""
    if not (probes.home / "logs").is_dir():
        raise Skip("no log yet")
    found: dict[str, list[Evidence]] = {}
    for secret in probes.logs.secrets():
        place = f"{secret.log}:{secret.line}" if secret.line else secret.log
        found.setdefault(secret.name, []).append(
            Evidence(place, f"contains the value of {secret.name}")
        )
    redacts = probes.settings.effective().value("HERMES_REDACT_SECRETS").lower() not in (
        "false",
        "0",
        "no",
    )
    for name, evidence in found.items():
        yield Finding(
            code="CRED-IN-LOGS",
            severity=Severity.WARNING,
            title=text("the logs contain {name} in plain text", name=name),
            subject=name,
            detail=(
                "Everyone who sees the logs can use it."
                if redacts
                else "Everyone who sees the logs can use it. HERMES_REDACT_SECRETS is off, so "
                "Hermes does not mask secrets."
            ),
            evidence=tuple(evidence),
            next="Renew it, and delete these logs before you show them to anyone.",
        )


_MOST = 6


@check(id="clear-secrets", group="secrets", codes=["CRED-IN-CONFIG", "CRED-IN-GIT"])
def clear_secrets(probes: Probes) -> Iterator[Finding]:
    """Are keys and tokens only in files that Hermes keeps private?"""
    plain_secrets = probes.settings.plain_secrets()
    tracked = probes.files.tracked_secrets()
    if plain_secrets:
        yield Finding(
            code="CRED-IN-CONFIG",
            severity=Severity.INFO,
            title=text(
                "{keys} in plain text in config.yaml", keys=count(len(plain_secrets), "key")
            ),
            subject="config.yaml",
            detail="Nothing is broken, but everyone who sees the file sees its keys.",
            next=_step([plain_secret.path for plain_secret in plain_secrets]),
            evidence=tuple(
                Evidence(one.source.place, f"{one.path} is a key") for one in plain_secrets[:_MOST]
            ),
        )
    for name in tracked:
        if name != "config.yaml" or plain_secrets:
            yield Finding(
                code="CRED-IN-GIT",
                severity=Severity.WARNING,
                title=text("git tracks {file} with its keys", file=name),
                subject=name,
                detail="Every copy of the repository has the keys, also in its history.",
                next=text(
                    "Run `git rm --cached {file}`, add {file} to .gitignore, and replace the keys "
                    "if the repository has left this machine.",
                    file=name,
                ),
                evidence=(Evidence(".git/index", text("lists {file}", file=name)),),
            )


def _step(paths: list[str]) -> str:
    """Return where the keys at these paths belong, so that Hermes still reads them."""
    kinds = {_kind(path) for path in paths}
    if kinds == {"provider"}:
        return (
            "Move each key into .env as NAME=KEY, and write `api_key: ${NAME}` in its place. Then "
            "restart the gateway."
        )
    if kinds == {"fallback"}:
        return (
            "Move each key into .env as NAME=KEY, and write `key_env: NAME` in place of the line. "
            "Then restart the gateway."
        )
    if kinds == {"other"}:
        return "Set the variable of the platform in .env, and delete the line in config.yaml."
    return (
        "Move each key into .env. Run `hermes-doctor explain CRED-IN-CONFIG` to see what to write "
        "in its place."
    )


def _kind(path: str) -> str:
    section = path.replace("[", ".").split(".")[0]
    if section in ("model", "providers", "custom_providers", "auxiliary"):
        return "provider"
    return "fallback" if section in ("fallback_providers", "fallback_model") else "other"
