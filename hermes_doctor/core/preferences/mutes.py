"""Mutes: problems that the operator knows and does not want to hear of for a while.

As in ceph, a mute ends when the problem disappears (unless it is sticky), gets worse or gains a
subject, and when its time is over.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hermes_doctor.core.lazy import EMPTY, NamedTuple
from hermes_doctor.core.model import CannotFix, Finding, Report, Severity, Trouble
from hermes_doctor.core.preferences import effective, places
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.accounts import why_untrusted

SLACK = timedelta(minutes=5)
"""By how much the clocks of those who make and read a mute may differ."""


class Mute(NamedTuple):
    """One mute of one home."""

    home: str
    code: str
    subject: str | None
    """None mutes all subjects that the code had."""
    severities: Mapping[str, Severity] | None
    """How severe each subject was; None if the problem was not there, so any subject counts."""
    worst: Severity
    """The worst severity that is muted."""
    checks: tuple[str, ...]
    """The checks that found the problem."""
    at: datetime
    until: datetime | None = None
    sticky: bool = False
    because: str = ""
    options: tuple[str, ...] = ()
    """--deep or --network, if the problem was found with them."""

    @property
    def id(self) -> str:
        """What identifies it, also if another one has the same name later."""
        return f"{self.home} {self.name} {self.at.isoformat()}"

    @property
    def name(self) -> str:
        """How the operator names it: CODE or CODE/SUBJECT."""
        return self.code if self.subject is None else f"{self.code}/{self.subject}"

    def concerns(self, finding: Finding) -> bool:
        """Whether it was made for findings like this one."""
        return finding.code == self.code and self.subject in (None, finding.subject)

    def is_over(self, now: datetime) -> bool:
        """Whether its time is over."""
        return self.until is not None and now >= self.until

    def why_ended(self, report: Report, now: datetime) -> str | None:
        """Why it mutes nothing any more; None if it is valid."""
        if self.is_over(now):
            return "its time is over"
        if self.at - now > SLACK:
            return "it is dated in the future: the clock was set back"
        findings = [one for one in report.findings if self.concerns(one)]
        for finding in findings:
            before = self.worst if self.severities is None else self.severities.get(finding.subject)
            if before is None:
                return f"there is another subject, {finding.subject or 'none'}"
            if finding.severity.rank < before.rank:
                return "the problem got worse"
        if not findings and not self.sticky and self._was_looked_for(report):
            return "the problem is gone"
        return None

    def _was_looked_for(self, report: Report) -> bool:
        """Whether all checks that had found it looked again, as closely, at everything."""
        ended = {check.id: check for check in report.checks}
        return set(self.options) <= set(report.options.split()) and all(
            id in ended and ended[id].has_looked for id in self.checks
        )

    def updated(self, report: Report) -> Mute:
        """Forget subjects that are gone: if one returns, it counts as new and ends the mute.

        A mute that was made before the problem was there learns the subjects of the problem.
        """
        found = _by_subject([finding for finding in report.findings if self.concerns(finding)])
        if self.severities is None:
            return self._replace(severities=found) if found else self
        if self.sticky or not found or not self._was_looked_for(report):
            return self
        left = {name: one for name, one in self.severities.items() if name in found}
        return self._replace(severities=left)


def made_for(
    findings: Sequence[Finding],
    home: str,
    code: str,
    subject: str | None,
    *,
    at: datetime,
    until: datetime | None,
    sticky: bool,
    because: str,
    options: tuple[str, ...] = (),
) -> Mute:
    """A mute of these findings; without any, it is for whatever is found later."""
    worst = min((finding.severity for finding in findings), key=lambda one: one.rank, default=None)
    if worst is None:
        worst = Severity.ERROR if until is None else Severity.CRITICAL
    return Mute(
        home,
        code,
        subject,
        _by_subject(findings) if findings else None,
        worst,
        tuple(sorted({one.check for one in findings})),
        at,
        until,
        sticky,
        because,
        options,
    )


def _by_subject(findings: Sequence[Finding]) -> dict[str, Severity]:
    """The worst severity of each subject."""
    milder_first = sorted(findings, key=lambda one: -one.severity.rank)
    return {finding.subject: finding.severity for finding in milder_first}


def apply(
    report: Report,
    mutes: Iterable[Mute],
    now: datetime | None = None,
    changes: Mapping[str, datetime] = EMPTY,
) -> Report:
    """Mark the findings that are muted, and say since when.

    `changes` are the times at which the files of the mutes last changed, by the ids of the mutes.
    """
    now = now or datetime.now(UTC)
    own = [mute for mute in mutes if mute.home == str(report.home)]
    valid = [one for one in own if one.why_ended(report, now) is None]
    if not valid:
        return report
    marked = tuple(
        finding._replace(muted=any(one.concerns(finding) for one in valid))
        for finding in report.findings
    )
    since = {
        finding.key: max(max(one.at, changes.get(one.id, one.at)) for one in found)
        for finding in marked
        if (found := [one for one in valid if one.concerns(finding)])
    }
    return report._replace(findings=marked, muted_since=since)


def ended(report: Report, mutes: Iterable[Mute], now: datetime) -> list[tuple[Mute, str]]:
    """The mutes of this home that have ended, and why."""
    own = [mute for mute in mutes if mute.home == str(report.home)]
    return [(one, why) for one in own if (why := one.why_ended(report, now))]


SCHEMA = "hermes-doctor/mutes/1"
LOCK = "mutes.lock"
PATIENCE = 5.0
"""Seconds to wait for another process."""
FILE_MODE, FOLDER_MODE = 0o644, 0o755
"""For all users: their watches must be able to read it."""


def load() -> list[Mute]:
    """The mutes that count; raise Trouble if a file is damaged or others could have written it."""
    return [mute for mute, _ in load_with_times()]


def load_with_times() -> list[tuple[Mute, datetime]]:
    """The mutes that count, each with the last change of its file.

    Who writes a file may put any time into it, but the disk knows when it was changed.
    """
    found = []
    for path in _files():
        mutes = read(path)
        with contextlib.suppress(OSError):
            changed = datetime.fromtimestamp(places.changed_at(path), UTC)
            found += [(mute, changed) for mute in mutes]
    return found


def _files() -> list[Path]:
    """The files that count."""
    known = effective.load()
    return [path for path in places.existing(places.MUTES) if known.may_mute(path)]


def ignored_files() -> list[Path]:
    """The files that do not count, because only root may mute."""
    known = effective.load()
    return [path for path in places.existing(places.MUTES) if not known.may_mute(path)]


def writing_file() -> Path:
    """The file for new mutes; raise Trouble if this user may not mute anything."""
    path = places.writing_folder() / places.MUTES
    if not effective.load().may_mute(path):
        raise Trouble(
            "Only root may mute problems here: {path} says so. Run this with sudo.",
            path=places.SYSTEM / places.CONFIG,
        )
    return path


def read(path: Path) -> list[Mute]:
    """The mutes of one file."""
    data = places.read_trusted(path)
    if data is None:
        return []
    import json

    try:
        said: Any = json.loads(data)
        if said["schema"] != SCHEMA:
            raise ValueError
        return [_parse(one) for one in said["mutes"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Trouble(
            "{path} is damaged. Delete it and mute again what you need.", path=path
        ) from None


def add(mute: Mute) -> Path:
    """Store a mute, in place of one with the same name; return the file."""
    path = writing_file()
    _change(path, lambda before: [*(one for one in before if not _same(one, mute)), mute])
    return path


def remove(gone: Sequence[Mute]) -> None:
    """Remove these mutes from all files; raise Trouble at the end if that failed for one."""
    replace({mute.id: None for mute in gone})


def replace(new: Mapping[str, Mute | None]) -> None:
    """Replace or remove mutes, by their ids; raise Trouble at the end if that failed for one."""
    failed: list[Trouble] = []
    for path in _files():
        try:
            if any(mute.id in new for mute in read(path)):
                _change(path, lambda before: _replaced(before, new))
        except Trouble as trouble:
            failed.append(trouble)
    if failed:
        raise failed[0]


def _replaced(before: Sequence[Mute], new: Mapping[str, Mute | None]) -> list[Mute]:
    mutes = [new.get(mute.id, mute) for mute in before]
    return [one for one in mutes if one is not None]


def _same(mute: Mute, other: Mute) -> bool:
    return (mute.home, mute.name) == (other.home, other.name)


def _change(path: Path, edit: Callable[[list[Mute]], list[Mute]]) -> None:
    """Replace the contents of a file, while no other process does."""
    try:
        _make_folder(path.parent)
        if why := why_untrusted(path.parent):
            raise Trouble("Refused to write {path}: {reason}.", path=path, reason=why)
        with _locked(path.parent):
            _write(path, edit(read(path)))
    except OSError as error:
        raise Trouble(
            "Could not write {path}: {reason}.{hint}",
            path=path,
            reason=(error.strerror or type(error).__name__).lower(),
            hint=" Run this with sudo." if isinstance(error, PermissionError) else "",
        ) from None


def make_system_folder() -> None:
    """Create the folder for all users, so that a service without access to /etc may write there."""
    try:
        _make_folder(places.SYSTEM)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CannotFix(
            "Could not create {path}: {reason}.", path=places.SYSTEM, reason=reason.lower()
        ) from None


def _make_folder(folder: Path) -> None:
    disk.make_folder(folder)
    if folder == places.SYSTEM and not any(folder.iterdir()):  # new, or left by a killed process
        disk.set_mode(folder, FOLDER_MODE)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    # A private file: anybody could lock the folder for ever, or a file that everybody can read.
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    fd = os.open(folder / LOCK, flags, disk.FILE_MODE)
    try:
        end = time.monotonic() + PATIENCE
        while not _lock(fd):
            if time.monotonic() > end:
                busy = "Another process is changing the mutes in {folder}. Try again."
                raise Trouble(busy, folder=folder)
            time.sleep(0.05)
        yield
    finally:
        os.close(fd)


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(path: Path, mutes: Sequence[Mute]) -> None:
    if not mutes:
        disk.remove(path)
        return
    import json

    data = {"schema": SCHEMA, "mutes": [document(mute) for mute in mutes]}
    mode = FILE_MODE if path.parent == places.SYSTEM else disk.FILE_MODE
    disk.save(path, json.dumps(data, indent=2).encode() + b"\n", mode)


def document(mute: Mute) -> dict[str, Any]:
    """A mute as JSON data."""
    severities = mute.severities
    return {
        "home": mute.home,
        "code": mute.code,
        "subject": mute.subject,
        "severities": None
        if severities is None
        else {subject: severity.value for subject, severity in severities.items()},
        "worst": mute.worst.value,
        "checks": list(mute.checks),
        "at": mute.at.isoformat(timespec="seconds"),
        "until": mute.until.isoformat(timespec="seconds") if mute.until else None,
        "sticky": mute.sticky,
        "because": mute.because,
        "options": list(mute.options),
    }


def _parse(data: Any) -> Mute:
    severities, until = data["severities"], data["until"]
    return Mute(
        str(data["home"]),
        str(data["code"]),
        None if data["subject"] is None else str(data["subject"]),
        None
        if severities is None
        else {str(subject): Severity(one) for subject, one in severities.items()},
        Severity(data["worst"]),
        tuple(str(one) for one in data["checks"]),
        _moment(data["at"]),
        None if until is None else _moment(until),
        bool(data["sticky"]),
        str(data["because"]),
        tuple(str(one) for one in data["options"]),
    )


def _moment(given: Any) -> datetime:
    found = datetime.fromisoformat(given)
    if found.tzinfo is None:
        raise ValueError("a time without its zone")
    return found
