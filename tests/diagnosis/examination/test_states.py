"""The four lines about gateway, platforms, model and data, on homes of their own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import (
    Effect,
    Finding,
    Mark,
    Part,
    Rung,
    RungState,
    Severity,
)
from hermes_doctor.diagnosis.examination import states
from hermes_doctor.diagnosis.probes.health_view import HealthView
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import fake_supervision, support
from tests.helpers.cron_homes import running

TOKEN = "TELEGRAM_BOT_TOKEN=123456789:AAFzWqkHk3Jm9sL2xQp7RtYvB4nC8dE6gZ0\n"
KEY = "OPENROUTER_API_KEY=sk-or-v1-0123456789abcdef0123456789abcdef0123456789abcdef\n"
CONFIG = "model:\n  provider: openrouter\n  default: nousresearch/hermes-4-70b\n"
DOWN = (Rung("process", RungState.FAILED, "no gateway of this home runs"),)
EFFECTS = {
    "NOT-RUNNING": Effect("down", "not running"),
    "REJECTED": Effect("platform", "login rejected"),
    "NO-CREDIT": Effect("model", "no credit"),
    "BROKEN-DB": Effect("data", "history unreadable"),
}


def described(home: Path, *findings: Finding, **effects: Effect) -> dict[str, tuple[Part, ...]]:
    """The parts of a home without a gateway, by name."""
    found = states.describe(Probes(Home(home)), DOWN, findings, EFFECTS | effects)
    return {state.name: state.parts for state in found}


def found(code: str, severity: Severity = Severity.ERROR, **more: object) -> Finding:
    """A finding of this code."""
    return Finding(code, severity, "title", **more)  # type: ignore[arg-type]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with Telegram and OpenRouter, whose gateway does not run."""
    support.put(tmp_path / "config.yaml", CONFIG)
    support.put(tmp_path / ".env", TOKEN + KEY)
    return tmp_path


def test_a_home_that_could_work(home: Path) -> None:
    """Everything is set up, and nothing runs."""
    assert described(home) == {
        "gateway": (Part(Mark.NONE, "not running"),),
        "platforms": (Part(Mark.NONE, "Telegram"),),
        "model": (Part(Mark.GOOD, "openrouter, nousresearch/hermes-4-70b; no fallback"),),
        "data": (Part(Mark.GOOD, "no history yet, no full backup"),),
    }


def test_an_empty_home(tmp_path: Path) -> None:
    """Nothing is set up."""
    assert described(tmp_path)["platforms"] == (Part(Mark.NONE, "none is switched on"),)


def test_problems_change_the_marks(home: Path) -> None:
    """Each part says in a few words what is wrong with it."""
    shown = described(
        home,
        found("NOT-RUNNING", since=datetime.now(UTC) - timedelta(minutes=5)),
        found("REJECTED", subject="telegram"),
        found("NO-CREDIT"),
        found("BROKEN-DB", Severity.WARNING),
    )

    assert shown["gateway"][0].mark is Mark.BAD
    assert shown["gateway"][0].text.startswith("not running since ")
    assert shown["platforms"] == (Part(Mark.BAD, "Telegram: login rejected"),)
    assert shown["model"][0].text == "openrouter, nousresearch/hermes-4-70b: no credit"
    assert shown["data"][0] == Part(Mark.LIMITED, "history unreadable")


def test_a_problem_of_another_platform(home: Path) -> None:
    """A platform is not blamed for the problem of another one."""
    assert described(home, found("REJECTED", subject="discord"))["platforms"] == (
        Part(Mark.NONE, "Telegram"),
    )


def test_a_gateway_that_was_stopped_on_purpose(home: Path) -> None:
    """That is not a problem; since when is still worth knowing."""
    since = datetime.now(UTC) - timedelta(minutes=5)

    [part] = described(home, found("NOT-RUNNING", Severity.INFO, since=since))["gateway"]

    assert part.mark is Mark.NONE
    assert part.text.startswith("stopped on purpose at ")


def test_what_a_supervisor_does_next(home: Path) -> None:
    """A unit that is not enabled, one that is, and one between two starts of a loop."""

    def shown(state: str, **settings: str) -> str:
        unit = fake_supervision.unit(home, state=state, settings=settings)
        probes = fake_supervision.Told(home, [unit], running=False)
        parts = states.describe(probes, DOWN, [], EFFECTS)[0].parts
        return parts[0].text

    name = fake_supervision.NAME
    assert shown("inactive", UnitFileState="disabled") == f"not running; {name} is not enabled"
    assert shown("inactive", UnitFileState="enabled") == "not running"
    assert shown("activating", SubState="start") == "not running; systemd is starting it"


@pytest.mark.parametrize(
    ("severity", "mark"), [(Severity.WARNING, Mark.LIMITED), (Severity.ERROR, Mark.BAD)]
)
def test_a_problem_of_a_running_gateway(
    home: Path, monkeypatch: pytest.MonkeyPatch, severity: Severity, mark: Mark
) -> None:
    """Only what silences the bot marks its gateway as broken."""
    running(monkeypatch, 60)
    runs = (Rung("process", RungState.OK, "process 7", since=datetime.now(UTC)),)
    effects = {"FILES": Effect("gateway", "too many files are open")}

    [gateway, *_] = states.describe(Probes(Home(home)), runs, [found("FILES", severity)], effects)

    [part] = gateway.parts
    assert part.mark is mark
    assert part.text.endswith(", but too many files are open")


def test_a_gateway_whose_next_start_fails(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs, so it is not marked as broken; one that is still starting is."""
    running(monkeypatch, 1)
    runs = (Rung("process", RungState.OK, "process 7", since=datetime.now(UTC)),)
    effects = {"OPEN": Effect("start", "refuses"), "FILES": Effect("gateway", "full of files")}

    def gateway(*findings: Finding) -> Part:
        [state, *_] = states.describe(Probes(Home(home)), runs, findings, effects)
        return state.parts[0]

    still_starting = gateway(found("OPEN"))  # it does not have its lock yet
    assert still_starting == Part(Mark.BAD, "starting (process 7), but refuses")
    monkeypatch.setattr(HealthView, "next_start", lambda _: None)
    for part in (gateway(found("OPEN")), gateway(found("OPEN"), found("FILES", Severity.WARNING))):
        assert part.mark is Mark.LIMITED
        assert part.text.endswith("(process 7), but its next start will fail")
    assert gateway(found("OPEN"), found("FILES")).text.endswith(", but full of files")


def test_settings_that_cannot_be_read(home: Path) -> None:
    """Nobody knows which model is meant."""
    support.put(home / "config.yaml", "model:\n\tprovider: x\n")

    assert described(home)["model"] == (Part(Mark.BAD, "unknown, config.yaml cannot be read"),)


def test_a_key_that_is_missing_here(home: Path) -> None:
    """A service may set it; whether it does is for the check of keys to find out."""
    support.put(home / ".env", TOKEN)

    [part] = described(home)["model"]

    assert part.mark is Mark.GOOD


def test_a_fallback_that_is_used(home: Path) -> None:
    """The problem is the main provider's, not that of the fallback."""
    fallback = "fallback_providers:\n  - {provider: deepseek, model: deepseek-chat}\n"
    support.put(home / "config.yaml", "model: {provider: zai, default: glm-5}\n" + fallback)
    support.put(home / ".env", f"{TOKEN}DEEPSEEK_API_KEY=sk-0123456789abcdef0123456789\n")

    [part] = described(home, found("NO-CREDIT", Severity.WARNING))["model"]

    assert part == Part(
        Mark.LIMITED, "zai: no credit; the fallback deepseek, deepseek-chat is used"
    )


def test_settings_that_may_not_be_read(home: Path) -> None:
    """Then nobody knows the platforms; that is not the same as none."""
    (home / ".env").unlink()
    (home / ".env").mkdir()

    [part] = described(home)["platforms"]

    assert part.mark is Mark.UNKNOWN
    assert part.text.startswith("could not check: .env: ")


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_history_that_is_not_a_file(home: Path, kind: str) -> None:
    """Its size says nothing."""
    if kind == "folder":
        (home / "state.db").mkdir()
    else:
        (home / "state.db").symlink_to("gone")

    [part] = described(home)["data"]

    assert part.mark is Mark.UNKNOWN


def test_the_newest_whole_backup_counts(home: Path) -> None:
    """A backup that a repair made of a few files is not a backup of the home."""
    assert support.doctor("backup", "create", "--home", home).code == 0
    [made] = (home / "backups" / "doctor").glob("2*")
    [part] = described(home)["data"]
    assert part.text.endswith(" old")
    assert "backup 0 s" in part.text or "backup " in part.text

    manifest = made / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"whole": true', b'"whole": false'))
    [part] = described(home)["data"]
    assert part.text.endswith("no full backup")


def test_the_size_of_the_history(home: Path) -> None:
    """In the unit that fits."""
    (home / "state.db").write_bytes(bytes(3 * 2**20))
    assert described(home)["data"][0].text.startswith("history 3.0 MB")
    (home / "state.db").write_bytes(bytes(4096))
    assert described(home)["data"][0].text.startswith("history 4.0 KB")


@pytest.mark.parametrize(
    ("unchecked", "expected"),
    [
        ({"BROKEN-DB"}, [Mark.UNKNOWN, Mark.NONE]),
        ({"NO-CREDIT", "UNHEARD-OF"}, [Mark.GOOD]),
    ],
)
def test_data_that_could_not_be_checked(
    home: Path, unchecked: set[str], expected: list[Mark]
) -> None:
    """It has no tick; a check of another part, or one without an effect, does not matter."""
    found = states.describe(Probes(Home(home)), DOWN, [], EFFECTS, unchecked)
    [data] = [state.parts for state in found if state.name == "data"]

    assert [part.mark for part in data] == expected
    assert data[-1].text == "no history yet, no full backup"
    assert len(data) == 1 or data[0].text == "could not check all of it"


@pytest.mark.parametrize(
    ("left_out", "mark"), [({"BROKEN-DB"}, Mark.NONE), ({"NO-CREDIT", "UNHEARD-OF"}, Mark.GOOD)]
)
def test_data_that_was_not_checked(home: Path, left_out: set[str], mark: Mark) -> None:
    """It has no tick if the operator left out a check of it."""
    found = states.describe(Probes(Home(home)), DOWN, [], EFFECTS, left_out=left_out)
    [data] = [state.parts for state in found if state.name == "data"]

    assert [(part.mark, part.text) for part in data] == [(mark, "no history yet, no full backup")]
