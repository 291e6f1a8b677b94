"""Check the JSON files of Hermes for damage that it cannot read, ignores or would overwrite."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    check,
    snapshot,
    text,
)
from hermes_doctor.api.stores import StoreFile, redact_name
from hermes_doctor.api.tools import NamedTuple, count, sentences

_CODES = {
    "jobs": "CRON-JOBS-CORRUPT",
    "auth": "AUTHJSON",
    "sessions": "SESSION-ROUTE-STALE",
    "approved": "PAIRING-CORRUPT",
    "pending": "PAIRING-CORRUPT",
    "limits": "PAIRING-CORRUPT",
}
_OTHER = "STORE-CORRUPT"
_INVALID = frozenset({"padding", "torn", "tail", "binary"})
"""Flaws of files that are not valid JSON; the effect of other flaws depends on the release."""
_UNKNOWN = "This release of Hermes is newer than hermes-doctor, so the effect is unknown."
_TITLES = {
    "fails": "Hermes cannot read {file}",
    "none": "Hermes treats the damaged {file} as empty",
    "part": "{file} has damaged entries",
    "again": "{file} has two jobs with the same id",
}
_NO_REPAIR = "Restore the file from your own backup: no intact copy was found here."


@check(id="store-files", group="stores", codes=[*sorted({*_CODES.values(), _OTHER})])
def store_files(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Are the files with jobs, logins, users and chats intact?"""
    known = probes.stores.files()
    for doubt in known.unreadable:
        yield CouldNotLook(doubt)
    if probes.newer():
        yield from map(
            _invalid, (store_file for store_file in known.found if _is_proven(store_file))
        )
        return
    for file in known.found:
        if file.flaw is not None and file.outcome != "whole":
            yield _damaged(probes, file)
        elif file.store.kind == "auth" and file.flaw is None:
            yield from _put_aside(probes, file)
        if file.store.kind == "sessions":
            yield from _unknown(probes, file)
    yield from _transcripts(probes)


def _is_proven(file: StoreFile) -> bool:
    """Return whether a file is damaged for every release of Hermes."""
    return file.flaw is not None and file.flaw.kind in _INVALID


def _invalid(file: StoreFile) -> Finding:
    """Report damage under a release whose handling of the file is unknown."""
    assert file.flaw is not None
    return Finding(
        code=_CODES.get(file.store.kind, _OTHER),
        severity=Severity(file.store.severity),
        title=text("{file} is damaged", file=file.name),
        subject=file.name,
        detail=_UNKNOWN,
        evidence=(Evidence(file.name, file.flaw.what),),
        since=_moment(file.snapshot.mtime_ns),
        data=_about(file),
        next=(
            "Copy the file before you restart Hermes. `hermes-doctor backup list` shows older "
            "copies."
        ),
    )


class _Weight(NamedTuple):
    """Severity of the damage, and the texts that explain it."""

    severity: Severity
    title: str
    detail: str
    warning: str = ""
    """What the operator must not do until it is repaired."""
    settled: bool = False
    """Hermes repairs it itself, so no fix is offered."""


def _damaged(probes: Probes, file: StoreFile) -> Finding:
    assert file.flaw is not None
    weight = _weighed(probes, file)
    fix, step = (None, "") if weight.settled else _way_out(probes, file)
    if file.flaw.kind == "empty" and file.outcome == "none" and fix is None:
        title = text("{file} is empty", file=file.name)
        weight = _Weight(Severity.INFO, title, "Hermes fills it again. Nothing to do.")
        step = ""
    elif file.outcome == "part" and file.store.mirror_since and fix is None and not weight.settled:
        detail = "Hermes ignores only these entries, and they cannot be repaired."
        weight, step = _Weight(Severity.INFO, weight.title, detail), ""
    return Finding(
        code=_CODES.get(file.store.kind, _OTHER),
        severity=weight.severity,
        title=weight.title,
        subject=file.name,
        detail=weight.detail,
        evidence=(Evidence(file.name, file.flaw.what),),
        since=_moment(file.snapshot.mtime_ns),
        fix=fix,
        next=sentences(weight.warning, step),
        data=_about(file),
    )


def _about(file: StoreFile) -> dict[str, str]:
    """Return the platform whose approved users the file has; empty for other files."""
    name = file.path.name
    return (
        {"platform": name.removesuffix("-approved.json")} if name.endswith("-approved.json") else {}
    )


def _weighed(probes: Probes, file: StoreFile) -> _Weight:
    store, outcome, name = file.store, file.outcome, file.name
    severity = Severity(store.worse.get(outcome, store.severity))
    detail, title = store.says.get(outcome, ""), text(_TITLES[outcome], file=name)
    if store.unless_set and probes.settings.effective().is_set(store.unless_set):
        detail = text("Hermes does not need it while {name} is set.", name=store.unless_set)
        return _Weight(Severity.INFO, text("{file} is damaged", file=name), detail)
    if _mirrored(probes, file):
        title = text("{file} is damaged, but state.db has the same data", file=name)
        detail = "Hermes uses state.db and writes the file again. Nothing to do."
        return _Weight(Severity.INFO, title, detail, settled=True)
    if _in_memory(probes, file):
        title = text("only the running gateway still has the data of {file}", file=name)
        detail = "The file is damaged. The gateway writes it again with its next message."
        warning = "Do not restart the gateway before it has written the file."
        return _Weight(Severity.WARNING, title, detail, warning, settled=True)
    if outcome == "part":
        warning = store.spare if store.mirror_since else ""
        return _Weight(Severity.WARNING, title, detail, warning)
    if outcome == "none" and file.flaw and file.flaw.behind < file.flaw.sound:
        detail = store.says.get("stops", detail)
    if outcome in store.overwritten:
        title = text("{file} is damaged, and Hermes will overwrite it", file=name)
        return _Weight(severity, title, detail, store.spare)
    return _Weight(severity, title, detail)


def _way_out(probes: Probes, file: StoreFile) -> tuple[str | None, str]:
    """Return the fix, or what the operator can do instead."""
    if file.store.cache:
        return ("mend-store" if file.outcome == "fails" else None), ""
    repair = probes.stores.repair(file)
    if repair is None:
        return None, _NO_REPAIR
    if file.outcome == "part" and file.flaw and repair.entries <= file.flaw.sound:
        return None, ""
    return ("mend-store" if repair.lossless else "restore-store"), ""


def _mirrored(probes: Probes, file: StoreFile) -> bool:
    """Return whether state.db contains the data that this file is a copy of."""
    since = file.store.mirror_since
    installed = probes.hermes.installation()
    if since is None or (installed and installed.release < since):
        return False
    try:
        answer = probes.databases.query(
            probes.home / "state.db", "SELECT 1 FROM gateway_routing LIMIT 1"
        )
    except (CouldNotLook, FileNotFoundError):
        return False
    return bool(answer.rows)


def _in_memory(probes: Probes, file: StoreFile) -> bool:
    """Return whether a running gateway has read the file before it was damaged."""
    if file.store.kind != "sessions":
        return False
    try:
        gateways = probes.gateway.running()
    except CouldNotLook:
        return False
    damaged = _moment(file.snapshot.mtime_ns)
    return bool(gateways and damaged and gateways[0].started_at < damaged)


def _unknown(probes: Probes, file: StoreFile) -> Iterator[Finding]:
    """Report chats of unknown platforms, which Hermes drops when it next saves the file."""
    unknown_chat_platforms = probes.stores.unknown_platforms()
    if unknown_chat_platforms and (_mirrored(probes, file) or _in_memory(probes, file)):
        return
    for unknown_chat_platform in unknown_chat_platforms:
        yield Finding(
            code="SESSION-ROUTE-STALE",
            severity=Severity.WARNING if unknown_chat_platform.since else Severity.INFO,
            title=text(
                "the installed Hermes does not know the platform of {chats}",
                chats=count(unknown_chat_platform.chats, "chat"),
            ),
            subject=redact_name(unknown_chat_platform.name),
            detail=(
                "After the next start Hermes drops these chats. They begin a new conversation when "
                "the platform is back."
            ),
            evidence=(
                Evidence(file.name, f"origin.platform: {redact_name(unknown_chat_platform.name)}"),
            ),
            next=(
                text(
                    "Before you restart the gateway, update Hermes to {release} or newer, or copy "
                    "the file.",
                    release=unknown_chat_platform.since,
                )
                if unknown_chat_platform.since
                else "To keep these chats, copy the file before you restart the gateway."
            ),
        )


def _put_aside(probes: Probes, file: StoreFile) -> Iterator[Finding]:
    """Report logins in a damaged file that Hermes moved aside before it created an empty one."""
    aside = f"{file.name}.corrupt"
    if snapshot(probes.home / aside).kind != "file":
        return
    repair = probes.stores.repair(file)
    if repair is None:
        return
    lost = sum(line.startswith("+") for line in repair.lines)
    yield Finding(
        code="AUTHJSON",
        severity=Severity.WARNING,
        title=text(
            "{logins} exist only in {aside}" if lost != 1 else "{logins} exists only in {aside}",
            logins=count(lost, "login"),
            aside=aside,
        ),
        subject=file.name,
        detail=text(
            "Hermes could not read {file}, moved it there and created an empty file. If this "
            "happens again, the logins are lost.",
            file=file.name,
        ),
        evidence=(Evidence(aside, f"{count(lost, 'login')} not in {file.name}"),),
        fix="mend-store",
        next=text("If you do not need these logins, remove {aside}.", aside=aside),
    )


def _transcripts(probes: Probes) -> Iterator[Finding]:
    """Report damaged lines in transcripts, which gateways up to 0.14 read messages from."""
    torn = probes.stores.torn_transcripts()
    if torn:
        yield Finding(
            code=_OTHER,
            severity=Severity.INFO,
            title="transcripts have lines that Hermes cannot read",
            subject="sessions",
            detail="Hermes ignores these messages in conversations. state.db has them, too.",
            evidence=tuple(
                Evidence(name, f"{count(lines, 'line')} without valid JSON")
                for name, lines in torn[:6]
            ),
        )


def _moment(ns: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(ns / 1e9, UTC)
    except (OverflowError, ValueError, OSError):
        return None
