"""Plugins that hang, never stop or talk nonsense: shown, counted, and the rest goes on, soon."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from hermes_doctor.core.system import limits
from tests.diagnosis.plugins.test_load import installed, plugin
from tests.helpers import support
from tests.helpers.support import Done

SECONDS = 15.0
"""More than the limits of loading and asking together, less than a hang; of an idle machine."""
CHECK = '''\
import time
from hermes_doctor.api import Evidence, Finding, Severity, check


@check(id="rude", group="test", codes=["RUDE"], limit=1.0)
def rude(probes):
    """Is it rude?"""
{body}
'''


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A plugin folder with a check that behaves, and has something to say."""
    return plugin(tmp_path / "mine")


def add(mine: Path, body: str) -> None:
    """A check that misbehaves, beside the one that does not."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    support.put(mine / "checks" / "rude.py", CHECK.format(body=lines), 0o644)


def look(home: Path, mine: Path, *args: str, settings: Mapping[str, object] = {}) -> Done:
    """`check`, which must answer soon and must not call itself broken."""
    support.put(home / "greeting.txt", "go away")
    started = time.monotonic()
    done = support.doctor(
        "check", *args, "--home", home, "--plugins", mine, timeout=240, settings=settings
    )
    assert time.monotonic() - started < limits.stretch(SECONDS)
    assert "Traceback" not in done.err
    assert "bug in" not in done.out + done.err, done.out + done.err
    return done


def others(done: Done) -> None:
    """Insist that the behaved check and the built-in ones were asked."""
    assert done.code == 1
    assert "MY-GREETING" in done.codes
    ended = {one["id"]: one["status"] for one in done.json["checks"]}
    assert ended["config-yaml"] == "ok"


def ended(done: Done, id: str) -> tuple[str, str]:
    """How a check ended, and why."""
    [one] = [one for one in done.json["checks"] if one["id"] == id]
    return one["status"], one["reason"]


# -- that hang -----------------------------------------------------------------------------

HANGS = {
    "sleeps": "import time\ntime.sleep(600)\n",
    "spins": "while True:\n    pass\n",
    "waits for a lock": "import threading\nthreading.Event().wait()\n",
}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("how", "folder"), [("sleeps", "checks"), ("spins", "checks"), ("sleeps", "fixes")]
)
def test_hangs_at_import(home: Path, mine: Path, how: str, folder: str) -> None:
    """A file that never ends loading is left behind, and named."""
    support.put(mine / folder / "hanging.py", HANGS[how], 0o644)

    done = look(
        home, mine, "--json", settings={"hermes_doctor.diagnosis.plugins.mount.IMPORT_LIMIT": 1.0}
    )

    others(done)
    status, why = ended(done, "plugin:hanging.py")
    assert status == "crashed"
    assert "TimeoutError" in why


@pytest.mark.sampled
@pytest.mark.parametrize("how", HANGS)
def test_hangs_in_a_check(home: Path, mine: Path, how: str) -> None:
    """A check that never answers is unknown after its time, and what it said until then counts."""
    finding = 'yield Finding("RUDE", Severity.WARNING, "said before")\n'
    add(mine, finding + HANGS[how])

    done = look(home, mine, "--json")

    others(done)
    assert ended(done, "rude") == ("unknown", "took longer than 1 s")
    assert "RUDE" in done.codes


def test_swallows_everything(home: Path, mine: Path) -> None:
    """A check that cannot be stopped by any exception holds nobody up."""
    add(
        mine, "while True:\n    try:\n        time.sleep(600)\n    except BaseException:\n        0"
    )

    done = look(home, mine, "--json")

    others(done)
    assert ended(done, "rude")[0] == "unknown"


def test_an_installed_package_that_hangs(tmp_path: Path) -> None:
    """An installed package has no more time than a folder."""
    site = tmp_path / "site"
    installed(site, "acme", module=HANGS["sleeps"])
    installed(site, "good")

    done = support.spawned("list", "--json", env={"PYTHONPATH": str(site)}, timeout=240)

    assert done.code == 0
    assert "good-check" in [one["id"] for one in done.json["items"]]
    assert "TimeoutError" in done.json["broken"][0]["why"]


def test_fail_on_counts_them(home: Path, mine: Path) -> None:
    """--fail-on can include what was not answered in time."""
    add(mine, HANGS["sleeps"])

    assert look(home, mine, "--skip", "greetings").code == 0
    assert look(home, mine, "--skip", "greetings", "--fail-on", "unknown").code == 1


# -- that never stop -----------------------------------------------------------------------


def test_never_stops_finding(home: Path, mine: Path) -> None:
    """A check that finds without end is cut off, and what is shown of it stays short."""
    add(
        mine,
        "n = 0\nwhile True:\n    n += 1\n    time.sleep(0.05)\n    yield Finding(\n"
        '        "RUDE", Severity.WARNING, f"number {n}", subject=str(n))',
    )

    done = look(home, mine, "--json")

    others(done)
    assert ended(done, "rude")[0] == "unknown"


ENDLESS = 'while True:\n    yield Finding("RUDE", Severity.WARNING, "again", subject="x")'


@pytest.mark.sampled
@pytest.mark.parametrize("form", ["--json", ""])
def test_never_stops_finding_at_full_speed(home: Path, mine: Path, form: str) -> None:
    """The same as fast as it can: neither the report nor the memory grows without end."""
    add(mine, ENDLESS)

    done = look(home, mine, *filter(None, [form]))

    if form:
        others(done)
    assert len(done.out) < 1_000_000


@pytest.mark.sampled
@pytest.mark.parametrize("what", ['CouldNotLook("dark")', '"text"', "None"])
def test_never_stops_talking(home: Path, mine: Path, what: str) -> None:
    """Doubts and nonsense without end are no better."""
    add(mine, f"from hermes_doctor.api import CouldNotLook\nwhile True:\n    yield {what}")

    done = look(home, mine, "--json")

    others(done)
    assert ended(done, "rude")[0] in ("unknown", "crashed")
    assert len(done.out) < 1_000_000


# -- that talk nonsense --------------------------------------------------------------------

NONSENSE = {
    "no finding": "yield 42",
    "a dictionary": 'yield {"code": "RUDE", "severity": "error"}',
    "nothing": "return None",
    "a class": "yield Finding",
    "a code that it does not declare": 'yield Finding("OTHER", Severity.ERROR, "x")',
    "a code that is none": 'yield Finding(None, Severity.ERROR, "x")',
    "a severity that is a text": 'yield Finding("RUDE", "error", "x")',
    "a severity that is none": 'yield Finding("RUDE", None, "x")',
    "a title that is none": 'yield Finding("RUDE", Severity.ERROR, None)',
    "a title that is a number": 'yield Finding("RUDE", Severity.ERROR, 7)',
    "a title of bytes": 'yield Finding("RUDE", Severity.ERROR, b"x")',
    "a subject that is a number": 'yield Finding("RUDE", Severity.ERROR, "x", subject=7)',
    "a subject that is a path": (
        'yield Finding("RUDE", Severity.ERROR, "x", subject=probes.home.path)'
    ),
    "a subject that is a list": 'yield Finding("RUDE", Severity.ERROR, "x", subject=["a"])',
    "a detail that is none": 'yield Finding("RUDE", Severity.ERROR, "x", detail=None)',
    "a detail that is a list": 'yield Finding("RUDE", Severity.ERROR, "x", detail=["a"])',
    "evidence that is a text": 'yield Finding("RUDE", Severity.ERROR, "x", evidence="seen")',
    "evidence of texts": 'yield Finding("RUDE", Severity.ERROR, "x", evidence=("seen",))',
    "evidence that is none": 'yield Finding("RUDE", Severity.ERROR, "x", evidence=None)',
    "evidence of numbers": (
        'yield Finding("RUDE", Severity.ERROR, "x", evidence=(Evidence(1, 2),))'
    ),
    "a time that is a text": 'yield Finding("RUDE", Severity.ERROR, "x", since="yesterday")',
    "a time that is a number": 'yield Finding("RUDE", Severity.ERROR, "x", since=time.time())',
    "a cause that is a list": 'yield Finding("RUDE", Severity.ERROR, "x", caused_by=["A"])',
    "a fix that is a number": 'yield Finding("RUDE", Severity.ERROR, "x", fix=7)',
    "a fix that is a list": 'yield Finding("RUDE", Severity.ERROR, "x", fix=["a"])',
    "data that is none": 'yield Finding("RUDE", Severity.ERROR, "x", data=None)',
    "a surrogate": 'yield Finding("RUDE", Severity.ERROR, "\\ud800", subject="\\udcff")',
}


def test_all_nonsense_at_once(home: Path, mine: Path) -> None:
    """Findings that are none, each of another check: each has its own end, and the rest goes on."""
    for number, body in enumerate(NONSENSE.values()):
        source = CHECK.format(body=f"    {body}")
        for name in ("rude", "RUDE"):  # no two checks have the same id or code
            source = source.replace(f'"{name}"', f'"{name}-{number}"')
        support.put(mine / "checks" / f"rude_{number}.py", source, 0o644)

    done = look(home, mine, "--json")

    others(done)
    for number, what in enumerate(NONSENSE):
        assert ended(done, f"rude-{number}")[0] in ("crashed", "problem"), what
    text = look(home, mine)
    assert text.code == 1
    assert "MY-GREETING" in text.out
    planned = support.doctor("fix", "--home", home, "--plugins", mine)
    assert planned.code == 1
    assert "bug in" not in planned.out + planned.err, planned.err
    assert "MY-GREETING" in planned.out


@pytest.mark.wide
@pytest.mark.parametrize(
    "what",
    list(NONSENSE),
)
def test_nonsense(home: Path, mine: Path, what: str) -> None:
    """A finding that is none is the check's crash, or shown as well as it can be; nobody else's."""
    add(mine, NONSENSE[what])

    done = look(home, mine, "--json")

    others(done)
    assert ended(done, "rude")[0] in ("crashed", "problem")
    text = look(home, mine)
    assert text.code == 1
    assert "MY-GREETING" in text.out
    planned = support.doctor("fix", "--home", home, "--plugins", mine)
    assert planned.code == int(ended(done, "rude")[0] == "crashed")
    assert "bug in" not in planned.out + planned.err, planned.err
    assert "MY-GREETING" in planned.out


def test_nonsense_does_not_hold_up_a_repair(home: Path, mine: Path) -> None:
    """The fault of the behaved check is repaired all the same; the exit code tells of the rest."""
    add(mine, 'yield Finding("RUDE", Severity.ERROR, "x", fix="unheard-of")\nyield 42')
    support.put(home / "greeting.txt", "go away")

    done = support.doctor("fix", "--apply", "--yes", "--home", home, "--plugins", mine)

    assert (home / "greeting.txt").read_text() == "welcome"
    assert done.code == 1
    assert "rude crashed" in done.out
