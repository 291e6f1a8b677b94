"""Checks run side by side, each isolated and timed; the report says everything that came out."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType

import pytest

from hermes_doctor.api import Check, check
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import EMPTY
from hermes_doctor.core.model import (
    CannotFix,
    CouldNotLook,
    Effect,
    Finding,
    Mark,
    Safety,
    Severity,
    Skip,
    Status,
)
from hermes_doctor.core.system import limits
from hermes_doctor.core.system.cached_calls import limited, once
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.diagnosis.examination import check_threads, report as report_module
from hermes_doctor.diagnosis.examination.report import examine, report
from hermes_doctor.diagnosis.plugins.declare import Fix
from hermes_doctor.diagnosis.plugins.log_rules.rule import Explanation
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.step import Step
from hermes_doctor.repair.steps.files import SetMode
from tests.helpers import support
from tests.helpers.given_answers import GivenAnswers

Look = Callable[[Probes], Iterator[Finding | CouldNotLook]]
CANARY = "canary-secret"


def ask(
    look: Look, id: str = "one", limit: float = 5.0, codes: tuple[str, ...] = ("A-B",)
) -> Check:
    """A check made of a function."""
    look.__doc__ = look.__doc__ or "Is it so?"
    return check(id=id, group="tests", codes=codes, limit=limit)(look)


def found(code: str = "A-B", severity: Severity = Severity.ERROR, subject: str = "x") -> Finding:
    """A finding."""
    return Finding(code=code, severity=severity, title="it is so", subject=subject)


@pytest.fixture
def probes(home: Path) -> Probes:
    """The probes of a healthy home."""
    return Probes(Home(home))


def test_side_by_side(probes: Probes) -> None:
    """Two checks that wait for each other both finish."""
    barrier = threading.Barrier(2, timeout=4)

    def wait(_: Probes) -> Iterator[Finding]:
        barrier.wait()
        yield found()

    results, findings = examine(probes, [ask(wait, "one"), ask(wait, "two")])

    assert [result.status for result in results] == [Status.PROBLEM] * 2
    assert [finding.check for finding in findings] == ["one", "two"]


def test_a_hundred_checks(probes: Probes) -> None:
    """More checks than run at once all get their turn, reported in their order."""

    def quick(_: Probes) -> Iterator[Finding]:
        time.sleep(0.002)
        yield from ()

    checks = [ask(quick, f"c{n}") for n in range(100)]

    results, _ = examine(probes, checks)

    assert [result.id for result in results] == [one.id for one in checks]
    assert {result.status for result in results} == {Status.OK}


def test_limit_each(probes: Probes) -> None:
    """A check past its limit is unknown; what it found before is kept and others are not hurt."""
    ended = threading.Event()

    def slow(_: Probes) -> Iterator[Finding]:
        yield found()
        ended.wait(200)
        yield found(subject="too late")

    def quick(_: Probes) -> Iterator[Finding]:
        yield from ()

    clock = time.monotonic()
    [late, fine], findings = examine(probes, [ask(slow, "slow", limit=0.2), ask(quick, "quick")])
    took = time.monotonic() - clock
    ended.set()

    assert took < limits.stretch(3)
    assert (late.status, late.reason) == (Status.UNKNOWN, "took longer than 0.2 s")
    assert late.seconds >= 0.2
    assert fine.status is Status.OK
    assert [finding.subject for finding in findings] == ["x"]


def test_each_call_is_made_in_the_thread_of_its_check(home: Path) -> None:
    """A probe is handed over to another thread only outside of checks."""
    thread_ids = []

    class Asked(GivenAnswers):
        @once(limit=5)
        def where(self) -> int:
            thread_ids.append(threading.get_ident())
            return 1

    def look(probes: Probes) -> Iterator[Finding]:
        thread_ids.append(threading.get_ident())
        probes.where()  # type: ignore[attr-defined]
        yield found()

    examine(Asked(Home(home)), [ask(look)])
    Asked(Home(home)).where()

    assert thread_ids[0] == thread_ids[1] and thread_ids[2] != threading.get_ident()


def test_limit_for_all(probes: Probes) -> None:
    """When the time for all is used up, checks that run and checks that wait are unknown."""
    ended = threading.Event()

    def slow(_: Probes) -> Iterator[Finding]:
        ended.wait(200)
        yield from ()

    checks = [ask(slow, f"c{n}", limit=10) for n in range(check_threads.AT_ONCE + 3)]
    clock = time.monotonic()
    results, _ = examine(probes, checks, limit=0.3)
    took = time.monotonic() - clock
    ended.set()

    assert took < limits.stretch(3)
    assert {result.status for result in results} == {Status.UNKNOWN}
    assert "used up while it ran" in (results[0].reason or "")
    assert "used up before it ran" in (results[-1].reason or "")


def test_deep_stretches_the_limits(home: Path) -> None:
    """--deep gives every check more time."""

    def slow(_: Probes) -> Iterator[Finding]:
        time.sleep(0.3)
        yield from ()

    [result], _ = examine(Probes(Home(home), deep=True), [ask(slow, limit=0.05)])

    assert result.status is Status.OK


def test_no_thread(probes: Probes, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is the reason which is given, and not that a check needs too much memory."""

    def never(_: Probes) -> Iterator[Finding]:
        yield found()

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    [unknown], findings = examine(probes, [ask(never)])

    assert unknown.status is Status.UNKNOWN
    assert unknown.reason == limits.NO_THREAD
    assert not findings


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("can't start new thread"), limits.NO_THREAD),
        (BlockingIOError(11, "Resource temporarily unavailable"), limits.NO_PROCESS),
    ],
)
def test_limits_that_a_check_meets(probes: Probes, error: Exception, reason: str) -> None:
    """A check for which no thread or process is left did not crash: it could not look."""

    def meets(_: Probes) -> Iterator[Finding]:
        raise error
        yield found()

    [unknown], _ = examine(probes, [ask(meets)])

    assert (unknown.status, unknown.reason) == (Status.UNKNOWN, reason)


def test_memory(probes: Probes) -> None:
    """A check that needs too much memory is unknown, and the others continue."""

    def greedy(_: Probes) -> Iterator[Finding]:
        held = [bytes(1_000_000)]
        while True:
            held.append(bytes(1_000_000))
        yield found()

    def quick(_: Probes) -> Iterator[Finding]:
        yield found(subject="other")

    before = resource.getrlimit(resource.RLIMIT_DATA)
    [unknown, fine], findings = examine(probes, [ask(greedy, "bad"), ask(quick, "good")])

    assert unknown.status is Status.UNKNOWN
    assert unknown.reason == "this check needs more than 300 MB of memory"
    assert fine.status is Status.PROBLEM
    assert [one.subject for one in findings] == ["other"]
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("call", ["take_next", "take_answer"])
def test_no_memory_to_end_a_check(
    probes: Probes, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A thread that ends where nothing can be said holds up nothing: the others continue."""
    real = getattr(check_threads.Run, call)
    failed: list[object] = []

    def fails_once(run: check_threads.Run, worker: object) -> object:
        if not failed:
            failed.append(worker)
            raise MemoryError
        return real(run, worker)

    monkeypatch.setattr(check_threads.Run, call, fails_once)

    [unknown, fine], _ = examine(
        probes, [ask(lambda _: iter(()), "bad"), ask(lambda _: iter(()), "good")]
    )

    assert unknown.status is Status.UNKNOWN
    assert unknown.reason == "this check needs more than 300 MB of memory"
    assert fine.status is Status.OK


def test_the_end_of_the_time(home: Path) -> None:
    """Checks that have not ended by then are unknown; nothing is waited for."""
    started = time.monotonic()

    def hangs(_: Probes) -> Iterator[Finding]:
        yield found()
        time.sleep(30)

    probes = Probes(Home(home), seconds=2.0)
    results, findings = examine(probes, [ask(hangs, f"c{n}", limit=20) for n in range(20)])

    assert time.monotonic() - started < 20
    assert {one.status for one in results} == {Status.UNKNOWN}
    assert {one.reason for one in results} <= {check_threads.CUT_OFF, check_threads.NOT_STARTED}
    assert findings != []
    with pytest.raises(CouldNotLook, match="the time for the whole check was over"):
        limited("slow", 20, lambda: time.sleep(30), probes.cache.end)


@pytest.mark.parametrize("error", [RuntimeError, KeyError, SystemExit, KeyboardInterrupt])
def test_raising(probes: Probes, error: type[BaseException]) -> None:
    """A check that raises anything is crashed: kind and place are shown, the message is not."""

    def raises(_: Probes) -> Iterator[Finding]:
        yield found()
        raise error(CANARY)

    def quick(_: Probes) -> Iterator[Finding]:
        yield found(subject="other")

    [crashed, fine], findings = examine(probes, [ask(raises, "bad"), ask(quick, "good")])

    assert crashed.status is Status.CRASHED
    assert (crashed.reason or "").startswith(f"{error.__name__} at test_report.py:")
    assert CANARY not in (crashed.reason or "")
    assert fine.status is Status.PROBLEM
    assert {finding.subject for finding in findings} == {"x", "other"}, "found before the crash"


def test_message_with_the_magic_words(probes: Probes) -> None:
    """A check cannot have its message shown by choosing the engine's own words."""

    def raises(_: Probes) -> Iterator[Finding]:
        yield from ()
        raise ValueError(f"the file does not declare {CANARY}")

    [result], _ = examine(probes, [ask(raises)])

    assert CANARY not in (result.reason or "")


def test_undeclared_code(probes: Probes) -> None:
    """A check that reports a code it does not declare is crashed, and the code is named."""

    def undeclared(_: Probes) -> Iterator[Finding]:
        yield found("X-Y")

    [result], findings = examine(probes, [ask(undeclared)])

    assert (result.status, findings) == (Status.CRASHED, [])
    assert "X-Y" in (result.reason or "")


@pytest.mark.parametrize("answer", [None, "text", 42, ["text"], [None]])
def test_nonsense(probes: Probes, answer: object) -> None:
    """A check that returns nonsense is crashed."""

    def nonsense(_: Probes) -> object:
        return answer

    [result], _ = examine(probes, [ask(nonsense)])  # type: ignore[arg-type]

    assert result.status is Status.CRASHED


def test_skip(probes: Probes) -> None:
    """What does not apply is skipped with the reason."""

    def skips(_: Probes) -> Iterator[Finding]:
        raise Skip("there is none")
        yield found()

    [result], findings = examine(probes, [ask(skips)])

    assert (result.status, result.reason, findings) == (Status.SKIPPED, "there is none", [])


def test_skip_without_a_reason(probes: Probes) -> None:
    """An empty reason is still skipped, not ok."""

    def skips(_: Probes) -> Iterator[Finding]:
        raise Skip
        yield found()

    assert examine(probes, [ask(skips)])[0][0].status is Status.SKIPPED


def test_could_not_look(probes: Probes) -> None:
    """Raised or yielded, what could not be looked at is unknown with every reason."""

    def raises(_: Probes) -> Iterator[Finding]:
        raise CouldNotLook("no right")
        yield found()

    def yields(_: Probes) -> Iterator[Finding | CouldNotLook]:
        yield CouldNotLook("first")
        yield CouldNotLook("second")

    def both(_: Probes) -> Iterator[Finding | CouldNotLook]:
        yield CouldNotLook("first")
        yield found()

    results, findings = examine(
        probes, [ask(raises, "raises"), ask(yields, "yields"), ask(both, "both")]
    )

    assert [(r.status, r.reason) for r in results] == [
        (Status.UNKNOWN, "no right"),
        (Status.UNKNOWN, "first; second"),
        (Status.PROBLEM, "first"),
    ]
    assert len(findings) == 1


def test_information_is_no_problem(probes: Probes) -> None:
    """A check that only informs ended well."""

    def informs(_: Probes) -> Iterator[Finding]:
        yield found(severity=Severity.INFO)

    [result], [finding] = examine(probes, [ask(informs)])

    assert (result.status, finding.severity) == (Status.OK, Severity.INFO)


def test_worst_first(probes: Probes) -> None:
    """Findings come by severity, then code, then subject, whatever check found them."""

    def many(_: Probes) -> Iterator[Finding]:
        yield found("B", Severity.INFO)
        yield found("B", Severity.CRITICAL, "z")
        yield found("A", Severity.WARNING)
        yield found("B", Severity.CRITICAL, "a")
        yield found("A", Severity.ERROR)
        yield found("A", Severity.CRITICAL)

    _, findings = examine(probes, [ask(many, codes=("A", "B"))])

    assert [(f.severity.value, f.code, f.subject) for f in findings] == [
        ("critical", "A", "x"),
        ("critical", "B", "a"),
        ("critical", "B", "z"),
        ("error", "A", "x"),
        ("warning", "A", "x"),
        ("info", "B", "x"),
    ]


def test_progress(probes: Probes) -> None:
    """Every check that ends is told of."""

    def quick(_: Probes) -> Iterator[Finding]:
        yield from ()

    told: list[str] = []
    examine(probes, [ask(quick, "a"), ask(quick, "b")], progress=told.append)

    assert sorted(told) == ["a", "b"]


def test_severities_of_the_operator(probes: Probes) -> None:
    """What is off is not reported, but is still the cause of what follows from it."""

    def many(_: Probes) -> Iterator[Finding]:
        yield found("A", Severity.ERROR)
        yield found("B", Severity.ERROR)
        yield found("C", Severity.WARNING)

    class Loaded:
        checks = (ask(many, codes=("A", "B", "C")),)
        explanations = (Explanation("A", ["B"], "because of A"),)
        fixes: tuple[()] = ()
        broken: tuple[()] = ()
        effects = EMPTY

    chosen = {"A": None, "C": Severity.CRITICAL}
    made = report(probes, Loaded(), Loaded.checks, severities=chosen)  # type: ignore[arg-type]

    assert [(f.code, f.severity.value, f.caused_by) for f in made.findings] == [
        ("C", "critical", None),
        ("B", "error", "A"),
    ]
    only_off = {"A": None, "B": None, "C": None}
    made = report(probes, Loaded(), Loaded.checks, severities=only_off)  # type: ignore[arg-type]
    assert made.findings == () and made.checks[0].status is Status.OK


def test_a_plugin_cannot_mute_itself(probes: Probes) -> None:
    """Only the operator can."""

    def sly(_: Probes) -> Iterator[Finding]:
        yield found()._replace(muted=True)

    _, [finding] = examine(probes, [ask(sly)])
    assert not finding.muted


# -- through the command ---------------------------------------------------------------------

PLUGIN = '''\
"""Checks that end in every way."""

import time

from hermes_doctor.api import CouldNotLook, Finding, Severity, Skip, check


@check(id="warns", group="odd", codes=["ODD-WARNS"])
def warns(probes):
    """Is there a warning?"""
    yield Finding(code="ODD-WARNS", severity=Severity.WARNING, title="a warning", subject="x")


@check(id="doubts", group="odd", codes=["ODD-DOUBTS"])
def doubts(probes):
    """Is there a doubt?"""
    yield CouldNotLook("it is dark")


@check(id="crashes", group="odd", codes=["ODD-CRASHES"])
def crashes(probes):
    """Is there a crash?"""
    raise RuntimeError("canary-secret")


@check(id="skips", group="odd", codes=["ODD-SKIPS", "ODD-OTHER"])
def skips(probes):
    """Does it apply?"""
    raise Skip("not here")


@check(id="hangs", group="slow", codes=["ODD-HANGS"], limit=0.5)
def hangs(probes):
    """Does it ever end?"""
    time.sleep(600)
    yield
'''


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A plugin folder with checks that end in every way."""
    support.put(tmp_path / "odd" / "checks" / "odd.py", PLUGIN)
    for folder in (tmp_path / "odd", tmp_path / "odd" / "checks"):
        folder.chmod(0o755)
    return tmp_path / "odd"


def test_every_ending_is_shown(home: Path, odd: Path) -> None:
    """The report counts and shows each ending; a hanging check does not hold up the command."""
    clock = time.monotonic()
    done = support.check(home, "--plugins", str(odd))
    took = time.monotonic() - clock

    assert took < limits.stretch(15)
    ended = {one["id"]: (one["status"], one["reason"]) for one in done.json["checks"]}
    assert ended["warns"] == ("problem", None)
    assert ended["doubts"] == ("unknown", "it is dark")
    assert ended["skips"] == ("skipped", "not here")
    assert ended["hangs"] == ("unknown", "took longer than 0.5 s")
    assert ended["crashes"][0] == "crashed"
    assert "RuntimeError at odd.py:" in ended["crashes"][1]
    assert "canary" not in done.out
    assert done.code == 1, "a check crashed, though a warning alone is below --fail-on error"
    assert done.json["summary"]["checks"]["crashed"] == 1
    text = support.doctor("check", "-v", "--home", home, "--plugins", odd).out
    for words in ("Could not check doubts: it is dark", "check crashes crashed: ", "check hangs: "):
        assert words in text
    assert "Skipped skips: not here" in text


FAIL_ON = [
    ("critical", "ODD-WARNS", 0),
    ("error", "ODD-WARNS", 0),
    ("warning", "ODD-WARNS", 1),
    ("info", "ODD-WARNS", 1),
    ("WARNING", "ODD-WARNS", 1),
    ("unknown", "ODD-DOUBTS", 2),
    ("unknown", "ODD-WARNS", 0),
    ("error", "ODD-DOUBTS", 2),
    ("crashed", "ODD-CRASHES", 2),
    ("critical", "ODD-CRASHES,ODD-WARNS", 1),
    ("critical, crashed", "ODD-CRASHES,ODD-WARNS", 1),
    ("error", "ODD-DOUBTS,ODD-WARNS", 0),
    ("crashed", "ODD-DOUBTS,ODD-WARNS", 0),
    ("error,unknown", "ODD-DOUBTS,ODD-WARNS", 1),
    ("error", "ODD-DOUBTS,ODD-SKIPS", 2),
    ("unknown", "ODD-SKIPS", 0),
    ("warning,unknown,crashed", "ODD-SKIPS", 0),
]


@pytest.mark.parametrize(("fail_on", "only", "code"), FAIL_ON)
def test_fail_on(home: Path, odd: Path, fail_on: str, only: str, code: int) -> None:
    """The exit code follows --fail-on, with unknown beside a severity; a crash is never 0, and
    where no check could look it is 2."""
    chosen = [word for code in only.split(",") for word in ("--only", code)]
    done = support.check(home, "--plugins", str(odd), "--fail-on", fail_on, *chosen)

    assert done.code == code


@pytest.mark.parametrize("text", ["", ",", "bad", "error;warning", "ok", "problem"])
def test_fail_on_nonsense(home: Path, text: str) -> None:
    """Anything else is a usage error."""
    done = support.doctor("check", "--home", home, "--fail-on", text)

    assert done.code == 2
    assert "Unknown --fail-on" in done.err


def ids(done: support.Done) -> set[str]:
    """The checks that ran."""
    return {one["id"] for one in done.json["checks"]}


def test_select(home: Path, odd: Path) -> None:
    """--only and --skip take a code, an id or a group, in any case, repeatedly."""

    def run(*args: str) -> set[str]:
        return ids(support.check(home, "--plugins", str(odd), *args))

    assert run("--only", "ODD-WARNS") == {"warns"}
    assert run("--only", "odd-warns") == {"warns"}
    assert run("--only", "doubts") == {"doubts"}
    assert run("--only", "odd") == {"warns", "doubts", "crashes", "skips"}
    assert run("--only", "doubts", "--only", "DB-GONE") == {"doubts", "database-gone"}
    assert run("--only", "odd", "--skip", "crashes", "--skip", "ODD-DOUBTS") == {"warns", "skips"}
    assert run("--only", "odd", "--skip", "ODD-OTHER") == {"warns", "doubts", "crashes", "skips"}
    every = run("--skip", "slow", "--skip", "odd")
    assert "config-yaml" in every
    assert not every & {"warns", "hangs"}


def test_skipped_code_is_not_reported(home: Path, odd: Path) -> None:
    """A check of several codes runs on for the others; the skipped code itself is not shown."""
    text = PLUGIN.replace('codes=["ODD-WARNS"]', 'codes=["ODD-WARNS", "ODD-MORE"]')
    support.put(odd / "checks" / "odd.py", text)

    done = support.check(home, "--plugins", str(odd), "--only", "warns", "--skip", "ODD-WARNS")
    assert (ids(done), done.codes) == ({"warns"}, [])

    done = support.check(home, "--plugins", str(odd), "--only", "ODD-MORE")
    assert (ids(done), done.codes) == ({"warns"}, [])


@pytest.mark.parametrize("option", ["--only", "--skip"])
@pytest.mark.parametrize(
    ("word", "near"),
    [("CFG-YML", "CFG-YAML"), ("config-yml", "config-yaml"), ("database", "databases")],
)
def test_unknown_selector(home: Path, option: str, word: str, near: str) -> None:
    """A word that chooses nothing is an error with the nearest name, never a clean bill."""
    done = support.doctor("check", "--home", home, option, word)

    assert (done.code, done.out) == (2, "")
    assert word in done.err
    assert f"Did you mean {near}?" in done.err


def test_nothing_selected(home: Path) -> None:
    """When nothing is left to ask, that is an error."""
    done = support.doctor("check", "--home", home, "--only", "DB-GONE", "--skip", "DB-GONE")

    assert done.code == 2
    assert "leave no check to run" in done.err


@pytest.mark.parametrize(
    ("group", "answers", "expected"),
    [
        ("databases", [CouldNotLook("no")], Mark.UNKNOWN),
        ("databases", [found("B")], Mark.GOOD),
        ("databases", [found("B"), CouldNotLook("no")], Mark.UNKNOWN),
        ("databases", [found("A"), CouldNotLook("no")], Mark.BAD),
        ("databases", ["not a finding"], Mark.UNKNOWN),
        ("databases", [], Mark.GOOD),
        ("tests", [CouldNotLook("no")], Mark.GOOD),
    ],
)
def test_the_mark_of_the_data(
    probes: Probes, group: str, answers: list[Finding | CouldNotLook], expected: Mark
) -> None:
    """Data has no tick if a check of its databases has no answer, or only a part of it."""

    def look(_: Probes) -> Iterator[Finding | CouldNotLook]:
        """Is it so?"""
        yield from answers

    class Loaded:
        checks = (check(id="one", group=group, codes=("A", "B"))(look),)
        explanations: tuple[()] = ()
        fixes: tuple[()] = ()
        broken: tuple[()] = ()
        effects = MappingProxyType({"A": Effect("data", "a database is damaged")})

    made = report(probes, Loaded(), Loaded.checks)  # type: ignore[arg-type]

    [parts] = [state.parts for state in made.states if state.name == "data"]
    assert parts[0].mark is expected


@pytest.mark.parametrize(
    ("selection", "mark"),
    [
        (["--only", "config-yaml"], "·"),
        (["--skip", "database-header"], "·"),
        (["--only", "databases"], "·"),
        (["--skip", "disk-space"], "·"),
        (["--skip", "config-yaml"], "✓"),
    ],
)
def test_the_mark_of_the_data_without_its_checks(
    home: Path, selection: list[str], mark: str
) -> None:
    """Data has no tick if the operator left out a check of it."""
    done = support.doctor("check", "--home", home, *selection)

    assert f"  data       {mark} history " in done.out


def test_checks_that_wait_run_side_by_side(probes: Probes) -> None:
    """Also if one of them ends in each moment in which the others are looked at."""
    at_once, most, enough = 0, 0, 4
    lock = threading.Lock()

    def wait(_: Probes) -> Iterator[Finding]:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        if most < enough:
            time.sleep(0.03)
        with lock:
            at_once -= 1
        yield from ()

    examine(probes, [ask(wait, f"c{n}") for n in range(600)])

    assert most >= enough


ONE = Finding("A", Severity.ERROR, "title", subject="x", fix="cure")


def fix(plan: Callable[[Probes, Finding], Iterator[Step]], id: str = "cure") -> Fix:
    """A fix with this plan."""
    return Fix(id, ("A",), Safety.SAFE, "Cure it", plan)


def refuse(probes: Probes, finding: Finding) -> Iterator[Step]:
    """A plan that declines."""
    raise CannotFix("systemd is not running.")
    yield


def crash(probes: Probes, finding: Finding) -> Iterator[Step]:
    """A plan with a bug."""
    raise ValueError("boom")
    yield


def test_a_refusal_is_kept_with_its_reason(tmp_path: Path) -> None:
    """It is found by code, subject and fix."""
    probes = Probes(Home(tmp_path))

    assert report_module.refusals(probes, [fix(refuse)], [ONE]) == {
        ("A", "x", "cure"): "systemd is not running."
    }


def test_other_findings_are_offered(tmp_path: Path) -> None:
    """A plan that works, one that crashes, a finding without a fix, and a fix that is missing."""
    probes = Probes(Home(tmp_path))
    works = fix(lambda probes, finding: iter(()))
    others = [ONE, ONE._replace(fix=None), ONE._replace(fix="missing")]

    assert report_module.refusals(probes, [works], others) == {}
    assert report_module.refusals(probes, [fix(crash)], others) == {}


def test_only_so_many_are_planned(tmp_path: Path) -> None:
    """A home with hundreds of findings is not planned for minutes."""
    probes = Probes(Home(tmp_path))
    many = [ONE._replace(subject=str(number)) for number in range(report_module.MAX_PLANS + 5)]

    assert len(report_module.refusals(probes, [fix(refuse)], many)) == report_module.MAX_PLANS


def test_a_plan_without_an_end_does_not_hold_up_a_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that yields for ever, and one that hangs; refusals found before are kept."""
    monkeypatch.setattr(report_module, "PLANS_LIMIT", 0.2)
    gate = threading.Event()

    def endless(probes: Probes, finding: Finding) -> Iterator[Step]:
        while True:
            yield Step()

    def hangs(probes: Probes, finding: Finding) -> Iterator[Step]:
        gate.wait(60)
        yield Step()

    probes = Probes(Home(tmp_path))
    fixes = [fix(refuse), fix(endless, "endless"), fix(hangs, "hangs")]
    findings = [ONE, ONE._replace(fix="endless"), ONE._replace(fix="hangs")]
    started = time.monotonic()
    try:
        found = report_module.refusals(probes, fixes, findings)
    finally:
        gate.set()

    assert time.monotonic() - started < 30
    assert found == {("A", "x", "cure"): "systemd is not running."}


def writes(probes: Probes, finding: Finding) -> Iterator[Step]:
    """A plan that changes the mode of a file of the home."""
    path = probes.home / ".env"
    yield SetMode(path, 0o600, why="close it", expect=snapshot(path))


@pytest.mark.parametrize(
    ("mine", "writable", "reason"),
    [
        (True, False, "cannot be written: the disk is read-only"),
        (False, True, "The home belongs to another user"),
        (True, True, ""),
    ],
)
def test_what_this_user_cannot_do_is_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine: bool, writable: bool, reason: str
) -> None:
    """Because `fix --apply` would refuse it."""
    (tmp_path / ".env").write_text("B=1\n")
    owner = tmp_path.stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner if mine else owner + 1)
    monkeypatch.setattr("os.access", lambda *_: writable)

    found = report_module.refusals(Probes(Home(tmp_path)), [fix(writes)], [ONE])

    assert [reason in said for said in found.values()] == ([True] if reason else [])


def test_a_file_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the user's own home, but belongs to somebody else."""
    (tmp_path / ".env").write_text("B=1\n")
    user = os.geteuid() or 1234
    os.chown(tmp_path, user, -1)
    monkeypatch.setattr("os.geteuid", lambda: user)

    def foreign(probes: Probes, finding: Finding) -> Iterator[Step]:
        path = probes.home / ".env"
        taken = snapshot(path)._replace(uid=user + 1)
        yield SetMode(path, 0o600, why="close it", expect=taken)

    [said] = report_module.refusals(Probes(Home(tmp_path)), [fix(foreign)], [ONE]).values()

    assert said == (
        f".env belongs to uid {user + 1}, so you may not change it. Run hermes-doctor with sudo."
    )
