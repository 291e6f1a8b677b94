"""`check --format` and `--output`: the formats as the command gives them, and the file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tracemalloc
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from hermes_doctor.cli import check_run, output_file
from hermes_doctor.core import outgoing
from hermes_doctor.core.model import CheckResult, Status
from hermes_doctor.core.secret_forms import Secret
from hermes_doctor.core.system.files import MEGABYTE
from hermes_doctor.render import document
from tests.helpers import example_reports, support


@pytest.fixture
def sick(home: Path) -> Path:
    """A home with a warning and an error."""
    with (home / ".env").open("a") as file:
        file.write("A=1\nA=2\n")
    with (home / "state.db").open("r+b") as file:
        file.write(bytes(16))
    return home


def test_text_in_a_file_is_what_a_pipe_gets(sick: Path, tmp_path: Path) -> None:
    """Only the time that it took differs."""
    printed = support.doctor("check", "--home", sick)
    support.doctor("check", "--home", sick, "--output", tmp_path / "out")

    def lines(text: str) -> list[str]:
        return [line for line in text.splitlines() if " checks passed in " not in line]

    assert lines((tmp_path / "out").read_text()) == lines(printed.out)


@pytest.mark.parametrize("words", [["--json"], ["--format", "json"], ["--format=JSON", "--json"]])
def test_json(home: Path, words: list[str]) -> None:
    """`--json` is short for `--format json`."""
    assert support.doctor("check", "--home", home, *words).json["findings"] == []


def test_prometheus(sick: Path, tmp_path: Path) -> None:
    """The metrics have the problems of the home; nothing is printed."""
    target = tmp_path / "hermes.prom"
    done = support.doctor("check", "--home", sick, "--format", "prometheus", "--output", target)

    assert (done.code, done.out, done.err) == (1, "", "")
    assert 'code="DB-NOTADB",severity="critical",muted="false"} 1\n' in target.read_text()


@pytest.mark.parametrize(("state", "code"), [("healthy", 1), ("sick", 2)])
def test_nagios(home: Path, request: pytest.FixtureRequest, state: str, code: int) -> None:
    """The exit code is the state; a home without a platform is a warning."""
    if state == "sick":
        request.getfixturevalue("sick")

    done = support.doctor("check", "--home", home, "--format", "nagios")

    assert done.code == code
    assert done.out.startswith("HERMES WARNING - " if code == 1 else "HERMES CRITICAL - ")


@pytest.mark.parametrize(
    "words", [["--home", "/nowhere"], ["--bogus"], ["--fail-on", "x"], ["--only", "NOTHING"]]
)
def test_nagios_gets_its_own_code_for_what_cannot_run(words: list[str]) -> None:
    """2 would be a problem of the bot."""
    for option in (
        ["--format", "nagios"],
        ["--format=NAGIOS"],
        ["--format=text", "--format=nagios"],
    ):
        done = support.doctor("check", *option, *words)

        assert done.code == 3
        assert done.out.startswith("HERMES UNKNOWN - ")
        assert done.err == ""


def test_nagios_on_a_full_disk(home: Path) -> None:
    """If the output cannot be written, the exit code is 3, for unknown."""
    words = ["-m", "hermes_doctor", "check", "--format", "nagios", "--home", str(home)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, *words],
            stdout=full,
            stderr=subprocess.DEVNULL,
            env=support.environ({}),
        )

    assert done.returncode == 3


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["junit", "prometheus", "github", "nagios"])
def test_always_utf_8(tmp_path: Path, name: str) -> None:
    """Whatever the terminal has: a monitor expects it."""
    home = support.healthy(tmp_path / "höme…")
    support.clobber(home / "state.db")
    env = support.environ({}) | {"PYTHONIOENCODING": "latin-1"}

    done = subprocess.run(
        [sys.executable, "-m", "hermes_doctor", "check", "--format", name, "--home", str(home)],
        capture_output=True,
        env=env,
    )

    assert done.stderr == b""
    assert name in ("github", "nagios") or "höme…" in done.stdout.decode()
    assert done.stdout.decode()


def test_to_the_output(home: Path) -> None:
    """`--output -` prints the report and writes no file."""
    assert '"findings"' in support.doctor("check", "--json", "--home", home, "--output", "-").out


def test_junit(sick: Path) -> None:
    """Every check is a case, and what fails is what --fail-on asks for."""
    suites = {}
    for threshold in ("error", "warning"):
        done = support.doctor("check", "--home", sick, "--format", "junit", "--fail-on", threshold)
        assert done.code == 1
        suites[threshold] = ElementTree.fromstring(done.out.encode())[0]

    checks = support.check(sick).json["checks"]
    assert len(suites["error"]) == len(checks)
    failing = {name: int(suite.attrib["failures"]) for name, suite in suites.items()}
    assert 1 <= failing["error"] < failing["warning"]


def test_github(sick: Path) -> None:
    """One annotation for each problem."""
    lines = support.doctor("check", "--home", sick, "--format", "github").out.splitlines()

    assert len(lines) == len(support.check(sick).codes)
    assert any(line.startswith("::error ") and "title=DB-NOTADB" in line for line in lines)


def test_github_shows_what_cannot_run() -> None:
    """The log of a job shows it like a problem."""
    done = support.doctor("check", "--format", "github", "--home", "/nowhere")

    assert done.code == 2
    assert done.out.startswith("::error title=hermes-doctor::--home names /nowhere")


@pytest.mark.sampled
@pytest.mark.parametrize("name", check_run.FORMATS)
def test_all_homes(home: Path, name: str) -> None:
    """Every format can tell of several homes."""
    support.healthy(home / "profiles" / "second")

    out = support.doctor("check", "--home", home, "--all-homes", "--format", name).out

    second = str(home / "profiles" / "second")
    if name == "json":  # gateways of other tests may run at the same time
        assert {str(home), second} <= {one["home"] for one in json.loads(out)["homes"]}
    elif name == "nagios":
        assert re.match(r"HERMES \w+ - [2-9] homes", out)
    elif name != "github":  # it has nothing to say of a healthy home
        assert "profiles/second" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--format", "xml"], "Unknown --format 'xml'. Use text, json, prometheus"),
        (["--json", "--format", "junit"], "contradict each other"),
    ],
)
def test_mistakes(home: Path, words: list[str], said: str) -> None:
    """One line says what to type."""
    done = support.doctor("check", "--home", home, *words)

    assert done.code == 2
    assert said in done.out + done.err


@pytest.mark.parametrize("format", check_run.FORMATS)
def test_many_homes_need_little_memory(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Less than 0.25 MB for each home, so that 1,000 homes fit into the limit of a command."""
    known = outgoing.KnownSecrets()
    known.add(Secret(f"sk-or-v1-zQcanary{number}", "KEY") for number in range(3))
    monkeypatch.setattr(outgoing, "known", known)
    checks = tuple(CheckResult(f"check-{n}", "group", Status.OK, 0.1) for n in range(120))
    reports = [
        example_reports.working(checks=checks)._replace(home=Path(f"/srv/homes/{number}"))
        for number in range(200)
    ]
    thresholds = {one.home: frozenset({"error"}) for one in reports}
    tracemalloc.start()
    try:
        made = check_run.formatted(format, reports, thresholds, all_homes=True, verbose=False)
        output_file.replace(tmp_path / "out", made)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 50 * MEGABYTE
    assert (tmp_path / "out").read_text() == made


def test_the_document_of_many_homes() -> None:
    """It is made home by home, and reads as if it was made at once."""
    reports = [example_reports.working()._replace(home=Path(f"/srv/{n}")) for n in range(3)]

    for some in ([], reports[:1], reports):
        text = document.dump_reports(some)
        assert text == json.dumps(json.loads(text), indent=2)
        homes = json.loads(text)["homes"]
        assert homes == [json.loads(document.dump(document.of_report(one))) for one in some]
