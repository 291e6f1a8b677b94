"""Check the JSON files of Hermes for damage that it cannot read, ignores or would overwrite."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    NamedTuple,
    Probes,
    Severity,
    StoreFile,
    check,
    masked_name,
    snapshot,
    text,
)

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
_UNKNOWN = (
    "What this Hermes does with it is not known. Copy the file before you start or restart Hermes; "
    "`hermes-doctor backup list` shows older copies."
)
_TITLES = {
    "fails": "{name} is damaged, and Hermes fails on it",
    "none": "{name} is damaged, and Hermes takes it for empty",
    "part": "entries of {name} are damaged",
    "again": "two jobs of {name} share an id, and one of them runs every minute once it is due",
}


@check(id="store-files", group="stores", codes=[*sorted({*_CODES.values(), _OTHER})])
def store_files(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Can Hermes read every file in which it keeps jobs, logins, users and chats?"""
    known = probes.stores()
    for doubt in known.unreadable:
        yield CouldNotLook(doubt)
    if probes.newer():
        yield from map(_invalid, (one for one in known.found if _is_proven(one)))
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
        title=text("{file} is damaged: it is not valid JSON", file=file.name),
        subject=file.name,
        detail=_UNKNOWN,
        evidence=(Evidence(file.name, file.flaw.what),),
        since=_moment(file.snapshot.mtime_ns),
    )


class _Weight(NamedTuple):
    """Severity of the damage, and the texts that explain it."""

    severity: Severity
    title: str
    says: str
    spare: str = ""
    """What the operator must not do until it is repaired."""
    settled: bool = False
    """Hermes repairs it itself, so no fix is offered."""


def _damaged(probes: Probes, file: StoreFile) -> Finding:
    assert file.flaw is not None
    weight = _weighed(probes, file)
    fix, found = (None, "") if weight.settled else _way_out(probes, file)
    if file.flaw.kind == "empty" and file.outcome == "none" and fix is None:
        weight = _Weight(Severity.INFO, f"{file.name} is empty", "Hermes begins it anew.")
        found = ""
    elif file.outcome == "part" and file.store.mirror_since and fix is None and not weight.settled:
        says = "Hermes leaves out just these entries, and nothing can be made of them."
        weight, found = _Weight(Severity.INFO, weight.title, says), ""
    return Finding(
        code=_CODES.get(file.store.kind, _OTHER),
        severity=weight.severity,
        title=weight.title,
        subject=file.name,
        detail=" ".join(part for part in (weight.spare, weight.says, found) if part),
        evidence=(Evidence(file.name, file.flaw.what),),
        since=_moment(file.snapshot.mtime_ns),
        fix=fix,
    )


def _weighed(probes: Probes, file: StoreFile) -> _Weight:
    store, outcome, name = file.store, file.outcome, file.name
    severity = Severity(store.worse.get(outcome, store.severity))
    says, title = store.says.get(outcome, ""), _TITLES[outcome].format(name=name)
    if store.unless_set and probes.settings().is_set(store.unless_set):
        return _Weight(Severity.INFO, title, f"It is not needed while {store.unless_set} is set.")
    if _mirrored(probes, file):
        title = f"{name} is damaged; state.db has the same, and counts"
        return _Weight(Severity.INFO, title, "Hermes writes it anew.", settled=True)
    if _in_memory(probes, file):
        title = f"{name} is damaged, and only the running gateway still knows what was in it"
        says = "Do not restart it yet: it writes the file anew with its next message."
        return _Weight(Severity.WARNING, title, says, settled=True)
    if outcome == "part":
        return _Weight(Severity.WARNING, title, says, store.spare if store.mirror_since else "")
    if outcome == "none" and file.flaw and file.flaw.behind < file.flaw.sound:
        says = store.says.get("stops", says)
    if outcome in store.overwritten:
        title = f"{name} is damaged, and Hermes will write over it"
        return _Weight(severity, title, says, store.spare)
    return _Weight(severity, title, says)


def _way_out(probes: Probes, file: StoreFile) -> tuple[str | None, str]:
    """Return the fix and a sentence about it."""
    if file.store.cache:
        return ("mend-store" if file.outcome == "fails" else None), ""
    repair = probes.store_repair(file)
    if repair is None:
        return None, "No sound copy of it was found, and what is left cannot be put together."
    if file.outcome == "part" and file.flaw and repair.entries <= file.flaw.sound:
        return None, ""
    if repair.lossless:
        return "mend-store", "Nothing that is in it is lost: a repair mends it."
    return "restore-store", f"A repair replaces it {repair.why}."


def _mirrored(probes: Probes, file: StoreFile) -> bool:
    """Return whether state.db contains the data that this file is a copy of."""
    since = file.store.mirror_since
    installed = probes.installation()
    if since is None or (installed and installed.release < since):
        return False
    try:
        answer = probes.ask(probes.home / "state.db", "SELECT 1 FROM gateway_routing LIMIT 1")
    except (CouldNotLook, FileNotFoundError):
        return False
    return bool(answer.rows)


def _in_memory(probes: Probes, file: StoreFile) -> bool:
    """Return whether a running gateway has read the file before it was damaged."""
    if file.store.kind != "sessions":
        return False
    try:
        gateways = probes.gateways()
    except CouldNotLook:
        return False
    damaged = _moment(file.snapshot.mtime_ns)
    return bool(gateways and damaged and gateways[0].started_at < damaged)


def _unknown(probes: Probes, file: StoreFile) -> Iterator[Finding]:
    """Report chats of unknown platforms, which Hermes drops when it next saves the file."""
    found = probes.strangers()
    if found and (_mirrored(probes, file) or _in_memory(probes, file)):
        return
    for one in found:
        count = "1 chat is" if one.chats == 1 else f"{one.chats} chats are"
        brought = f"Hermes {one.since} brought it." if one.since else "No release has it."
        yield Finding(
            code="SESSION-ROUTE-STALE",
            severity=Severity.WARNING if one.since else Severity.INFO,
            title=text(
                "{count} of a platform that the installed Hermes does not know", count=count
            ),
            subject=masked_name(one.name),
            detail=(
                text(
                    "{brought} A gateway that starts without it leaves these chats "
                    "out, and its next save writes the file without them: they begin a "
                    "new conversation when the platform is back. Do not restart the "
                    "gateway before it is, or copy the file.",
                    brought=brought,
                )
            ),
            evidence=(Evidence(file.name, f"origin.platform: {masked_name(one.name)}"),),
        )


def _put_aside(probes: Probes, file: StoreFile) -> Iterator[Finding]:
    """Report logins in a damaged file that Hermes set aside before it started an empty one."""
    aside = f"{file.name}.corrupt"
    if snapshot(probes.home / aside).kind != "file":
        return
    repair = probes.store_repair(file)
    if repair is None:
        return
    lost = sum(line.startswith("+") for line in repair.lines)
    yield Finding(
        code="AUTHJSON",
        severity=Severity.WARNING,
        title=text(
            "Hermes began {file} anew, and {lost} of its logins are only in {aside}",
            file=file.name,
            lost=lost,
            aside=aside,
        ),
        subject=file.name,
        detail=(
            text(
                "It could not read the file and put it aside. The next time that "
                "happens, {aside} is overwritten. Remove it if nothing of it is "
                "wanted.",
                aside=aside,
            )
        ),
        evidence=(Evidence(aside, f"{lost} logins that {file.name} has not"),),
        fix="mend-store",
    )


def _transcripts(probes: Probes) -> Iterator[Finding]:
    """Report damaged lines in transcripts, which gateways up to 0.14 read messages from."""
    torn = probes.torn_transcripts()
    if torn:
        yield Finding(
            code=_OTHER,
            severity=Severity.INFO,
            title="transcripts hold lines that Hermes cannot read and passes over",
            subject="sessions",
            detail="These messages are missing in the conversation; state.db has them too.",
            evidence=tuple(
                Evidence(name, f"{count} lines are no JSON") for name, count in torn[:6]
            ),
        )


def _moment(ns: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(ns / 1e9, UTC)
    except (OverflowError, ValueError, OSError):
        return None
