"""When a mute ends, and what it mutes until then."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.model import (
    CheckResult,
    Finding,
    Report,
    Severity,
    Status,
    Trouble,
    VerdictKind,
)
from hermes_doctor.core.preferences import mutes, places
from hermes_doctor.core.preferences.mutes import Mute
from tests.helpers.example_reports import NOW, found, report

LOOKED = (CheckResult("look", "data", Status.OK),)


def seen(*findings: Finding, checks: tuple[CheckResult, ...] = LOOKED) -> Report:
    """A report of these findings, all of one check."""
    return report(*(one._replace(check="look") for one in findings), checks=checks)


def muting(first: Report, subject: str | None = None, **more: object) -> Mute:
    """A mute of code A, made while this was the report."""
    values: dict[str, object] = {"until": None, "sticky": False, "because": ""}
    meant = [f for f in first.findings if f.code == "A" and subject in (None, f.subject)]
    return mutes.made_for(meant, "/srv/hermes", "A", subject, at=NOW, **values | more)  # type: ignore[arg-type]


def muted(one: Report) -> list[tuple[str, str]]:
    """The keys of the muted findings."""
    return [f.key for f in one.findings if f.muted]


SICK = seen(found("A"), found("B"))


def test_only_what_was_meant_is_muted() -> None:
    """The code in its home, or one subject of it."""
    both = seen(found("A"), found("A", subject="y"), found("B"))
    assert muted(mutes.apply(both, [muting(both)], NOW)) == [("A", "x"), ("A", "y")]
    assert muted(mutes.apply(both, [muting(both, "y")], NOW)) == [("A", "y")]
    elsewhere = muting(both)._replace(home="/srv/other")
    assert mutes.apply(both, [elsewhere], NOW) is both


def test_it_ends_when_the_problem_gets_worse() -> None:
    """A milder one stays muted."""
    mute = muting(SICK)
    worse = seen(found("A", severity=Severity.CRITICAL))
    milder = seen(found("A", severity=Severity.WARNING))
    assert mute.why_ended(worse, NOW) == "the problem got worse"
    assert mute.why_ended(milder, NOW) is None
    assert muted(mutes.apply(worse, [mute], NOW)) == []


def test_it_ends_when_there_is_another_subject() -> None:
    """Of a mute of one subject, others are not its concern."""
    more = seen(found("A"), found("A", subject="y"))
    assert muting(SICK).why_ended(more, NOW) == "there is another subject, y"
    assert muted(mutes.apply(more, [muting(SICK)], NOW)) == []
    assert muting(SICK, "x").why_ended(more, NOW) is None
    fewer = muting(more)
    assert fewer.why_ended(SICK, NOW) is None


def test_it_ends_when_the_problem_is_gone() -> None:
    """Unless it is sticky."""
    assert muting(SICK).why_ended(seen(found("B")), NOW) == "the problem is gone"
    assert muting(SICK, sticky=True).why_ended(seen(), NOW) is None


@pytest.mark.parametrize(
    "checks",
    [
        (),
        (CheckResult("look", "data", Status.UNKNOWN, reason="no answer"),),
        (CheckResult("look", "data", Status.CRASHED, reason="a bug"),),
        (CheckResult("look", "data", Status.SKIPPED, reason="no gateway"),),
        (CheckResult("look", "data", Status.PROBLEM, reason="one file could not be read"),),
        (CheckResult("look", "data", Status.OK, reason="the first 40 MB"),),
    ],
)
def test_what_was_not_looked_for_is_not_gone(checks: tuple[CheckResult, ...]) -> None:
    """The check did not run, or could not look at everything."""
    assert muting(SICK).why_ended(seen(checks=checks), NOW) is None


def test_its_time() -> None:
    """It ends then, sticky or not."""
    for sticky in (False, True):
        mute = muting(SICK, until=NOW + timedelta(hours=1), sticky=sticky)
        assert mute.why_ended(SICK, NOW) is None
        assert mute.why_ended(SICK, NOW + timedelta(hours=1)) == "its time is over"


def test_made_before_the_problem_is_there() -> None:
    """Any subject counts then; a critical problem only if the mute has an end."""
    mute = muting(seen(), sticky=True)
    critical = seen(found("A", severity=Severity.CRITICAL))
    assert muted(mutes.apply(SICK, [mute], NOW)) == [("A", "x")]
    assert muted(mutes.apply(critical, [mute], NOW)) == []
    ending = muting(seen(), sticky=True, until=NOW + timedelta(hours=1))
    assert muted(mutes.apply(critical, [ending], NOW)) == [("A", "x")]


def test_all_that_have_ended() -> None:
    """With the reason; those of other homes are left alone."""
    known = [muting(SICK), muting(SICK)._replace(home="/srv/other")]
    assert mutes.ended(seen(), known, NOW) == [(known[0], "the problem is gone")]


def test_a_problem_that_only_a_close_look_finds() -> None:
    """A quick check cannot tell that it is gone."""
    mute = muting(SICK, options=("--deep",))
    assert mute.why_ended(seen(), NOW) is None
    assert mute.why_ended(seen()._replace(options=" --deep"), NOW) == "the problem is gone"


def test_a_clock_that_was_set_back() -> None:
    """A mute of the future would last too long."""
    mute = muting(SICK, until=NOW + timedelta(hours=1))
    assert mute.why_ended(SICK, NOW - timedelta(minutes=1)) is None
    assert "the clock was set back" in (mute.why_ended(SICK, NOW - timedelta(days=1)) or "")


def test_names() -> None:
    """As the operator types them."""
    assert muting(SICK).name == "A"
    assert muting(seen(found("A", subject="a/b")), "a/b").name == "A/a/b"


def test_the_verdict_of_a_bot_whose_silence_is_muted() -> None:
    """It says so: nobody gets an answer, whether that is muted or not."""
    from hermes_doctor.diagnosis.examination.verdict import judge

    silent = seen(found("SILENT"), found("B"))
    verdict = judge(silent._replace(findings=(silent.findings[0]._replace(muted=True),)))
    assert verdict.kind is VerdictKind.NOT_WORKING and verdict.muted
    assert verdict.headline == (
        "Your bot is not working, and the reason is muted: title of SILENT."
    )


def test_two_findings_with_one_subject() -> None:
    """The worse one counts, whichever comes first."""
    mild, worse = found("A", severity=Severity.WARNING), found("A")
    for both in (seen(mild, worse), seen(worse, mild)):
        assert muting(both).why_ended(both, NOW) is None


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two folders for the files."""
    monkeypatch.setattr(places, "SYSTEM", tmp_path / "etc")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def mute(code: str = "A", subject: str | None = None, home: str = "/srv/hermes") -> Mute:
    """Some mute."""
    return Mute(
        home,
        code,
        subject,
        {"x": Severity.ERROR},
        Severity.ERROR,
        ("look",),
        NOW,
        NOW + timedelta(days=7),
        because="we know",
    )


def test_there_and_back(tmp_path: Path) -> None:
    """All fields are kept, in a private file; one with the same name is replaced."""
    assert mutes.load() == []
    rest = mute("B", "some/thing")._replace(severities=None, until=None, sticky=True)
    path = mutes.add(mute())
    mutes.add(rest)
    mutes.add(mute()._replace(because="better reason"))

    assert path == tmp_path / "config" / "hermes-doctor" / "mutes.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert mutes.load() == [rest, mute()._replace(because="better reason")]


def test_removing(tmp_path: Path) -> None:
    """Only those that are named; without any, the file is gone."""
    mutes.add(mute())
    mutes.add(mute("B"))
    mutes.remove([mute(), mute("C")])
    assert mutes.load() == [mute("B")]
    mutes.remove([mute("B")])
    assert not (tmp_path / "config" / "hermes-doctor" / "mutes.json").exists()


def test_those_for_all_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch of any user must be able to read them, whatever root's umask is."""
    monkeypatch.setattr(places, "writing_folder", lambda: places.SYSTEM)
    before = os.umask(0o077)
    try:
        path = mutes.add(mute())
    finally:
        os.umask(before)
    assert path.parent == tmp_path / "etc"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755
    monkeypatch.undo()


def test_both_files_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a mute is removed from the one it is in."""
    with monkeypatch.context() as root:
        root.setattr(places, "writing_folder", lambda: places.SYSTEM)
        mutes.add(mute("ROOT"))
    mutes.add(mute("OWN"))
    assert [one.code for one in mutes.load()] == ["ROOT", "OWN"]
    mutes.remove([mute("ROOT")])
    assert [one.code for one in mutes.load()] == ["OWN"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff\xfe",
        b'{"schema": "hermes-doctor/mutes/2", "mutes": []}',
        b'{"schema": "hermes-doctor/mutes/1", "mutes": [{}]}',
        b'{"schema": "hermes-doctor/mutes/1", "mutes": 3}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_file(tmp_path: Path, content: bytes) -> None:
    """One line says which; it is not overwritten."""
    path = tmp_path / "config" / "hermes-doctor" / "mutes.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    for act in (mutes.load, lambda: mutes.add(mute())):
        with pytest.raises(Trouble, match=r"mutes\.json is damaged\. Delete it"):
            act()
    assert path.read_bytes() == content


def test_a_time_without_zone_is_damage(tmp_path: Path) -> None:
    """It could not be compared with the clock."""
    path = mutes.add(mute())
    data = json.loads(path.read_text())
    data["mutes"][0]["until"] = "2026-11-15T03:15:00"
    path.write_text(json.dumps(data))
    with pytest.raises(Trouble, match="damaged"):
        mutes.load()


def test_a_folder_that_others_can_write(tmp_path: Path) -> None:
    """What is stored there would be refused."""
    folder = tmp_path / "config" / "hermes-doctor"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.raises(Trouble, match="Refused to write"):
        mutes.add(mute())
    assert not list(folder.iterdir())


def test_another_process_keeps_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for ever; the folder itself can be locked by anybody, so it does not count."""
    path = mutes.add(mute())
    monkeypatch.setattr(mutes, "PATIENCE", 0.2)
    folder = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    mutes.add(mute("B"))
    own = os.open(path.parent / mutes.LOCK, os.O_RDWR)
    fcntl.flock(own, fcntl.LOCK_EX)
    try:
        with pytest.raises(Trouble, match="Another process is changing the mutes"):
            mutes.add(mute("C"))
    finally:
        os.close(own)
        os.close(folder)
    assert stat.S_IMODE((path.parent / mutes.LOCK).stat().st_mode) == 0o600


def test_a_file_that_disappears_while_it_is_read() -> None:
    """It then has no mutes."""
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            mutes.add(mute())
            mutes.remove([mute()])

    thread = threading.Thread(target=change)
    thread.start()
    try:
        found = [mutes.load() for _ in range(300)]
    finally:
        stop.set()
        thread.join()
    assert all(one in ([], [mute()]) for one in found)


def test_one_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutes in the other one are removed."""
    with monkeypatch.context() as root:
        root.setattr(places, "writing_folder", lambda: places.SYSTEM)
        mutes.add(mute("ROOT"))
    mutes.add(mute("OWN"))
    write = mutes._write

    def refuse(path: Path, new: object) -> None:
        if path.parent == places.SYSTEM:
            raise PermissionError(13, "Permission denied")
        write(path, new)  # type: ignore[arg-type]

    monkeypatch.setattr(mutes, "_write", refuse)
    with pytest.raises(Trouble, match=r"Could not write .*permission denied\. Run this with sudo"):
        mutes.remove([mute("ROOT"), mute("OWN")])
    assert [one.code for one in mutes.load()] == ["ROOT"]


def test_many_at_once() -> None:
    """No mute is lost."""
    threads = [threading.Thread(target=mutes.add, args=(mute(f"C{n}"),)) for n in range(12)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert {one.code for one in mutes.load()} == {f"C{n}" for n in range(12)}


def test_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with the reason."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    with pytest.raises(Trouble, match=r"Could not write .*: not a directory\."):
        mutes.add(mute())
