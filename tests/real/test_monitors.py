"""The formats for monitors, read by the real monitors."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.helpers import requirements, support
from tests.helpers.real.gateways import free_port, until

DOCS = Path(__file__).parents[2] / "docs"
ALERTS = DOCS / "prometheus-alerts.yml"


@pytest.fixture
def sick(home: Path) -> Path:
    """A home with a problem that silences the bot, and a profile with an odd name."""
    support.clobber(home / "state.db")
    copy = support.copy_home(home, home.parent / "copy")
    (home / "profiles").mkdir()
    copy.rename(home / "profiles" / 'a "b" \\c')
    return home


@pytest.fixture
def metrics(sick: Path, tmp_path: Path) -> Path:
    """The file for the textfile collector, in a folder of its own."""
    target = tmp_path / "textfile" / "hermes.prom"
    target.parent.mkdir()
    words = ("--all-homes", "--format", "prometheus", "--output", target)
    assert support.doctor("check", "--home", sick, *words).code == 1
    assert 'profiles/a \\"b\\" \\\\c"' in target.read_text()
    return target


# -- Prometheus ------------------------------------------------------------------------------------


def promtool(*words: str | Path, given: str | None = None) -> tuple[int, str]:
    """Run promtool; return its exit code and all that it says."""
    done = subprocess.run(
        ["promtool", *map(str, words)], input=given, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.needs("promtool")
def test_promtool_accepts_the_metrics(metrics: Path) -> None:
    """Its linter has nothing to say about their names, types and help."""
    assert promtool("check", "metrics", given=metrics.read_text()) == (0, "")


@pytest.mark.needs("prometheus-node-exporter")
def test_node_exporter_shows_the_metrics(metrics: Path) -> None:
    """Each sample arrives, and the collector reports no error."""
    with node_exporter(metrics.parent) as page:
        shown = re.findall(r"^(hermes_doctor_\w+)\{", page, re.M)

    made = re.findall(r"^(hermes_doctor_\w+)\{", metrics.read_text(), re.M)
    assert sorted(shown) == sorted(made)
    assert len(made) > 20
    assert "node_textfile_scrape_error 0\n" in page


@contextlib.contextmanager
def node_exporter(folder: Path) -> Iterator[str]:
    """The page of an exporter on the loopback that reads only this folder."""
    port = free_port()
    process = subprocess.Popen(
        [
            "prometheus-node-exporter",
            "--collector.disable-defaults",
            "--collector.textfile",
            f"--collector.textfile.directory={folder}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    pages: list[str] = []

    def answers() -> bool:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page,
        ):
            pages.append(page.read().decode())
        return bool(pages)

    try:
        until(answers, "the page of the exporter")
        yield pages[-1]
    finally:
        process.kill()
        process.wait()


@pytest.mark.needs("promtool")
def test_promtool_accepts_the_alerts() -> None:
    """The file that we ship is valid."""
    code, said = promtool("check", "rules", "--lint-fatal", ALERTS)

    assert code == 0, said


HOME = '{home="/srv/hermes"}'
FINDING = 'hermes_doctor_finding{home="/srv/hermes",code="A",severity="error",muted="%s"}'
CRASHED = 'hermes_doctor_checks{home="/srv/hermes",status="crashed"}'
CASES = {
    "HermesDoctorStale": (f"hermes_doctor_last_run_timestamp_seconds{HOME}", "0+60x5 _x60"),
    "HermesDoctorAbsent": (f"hermes_doctor_up{HOME}", "1x60"),
    "HermesDoctorBlind": (f"hermes_doctor_up{HOME}", "0x60"),
    "HermesDoctorCrashed": (CRASHED, "1x60"),
    "HermesBotSilent": (f"hermes_doctor_bot_works{HOME}", "0x60"),
    "HermesProblems": (FINDING % "false", "1x60"),
    "HermesRepairBudgetExhausted": (f"hermes_doctor_repair_budget_exhausted{HOME}", "1x60"),
}
"""For each alert, a series that must fire it."""
QUIET = {
    "HermesDoctorStale": (f"hermes_doctor_last_run_timestamp_seconds{HOME}", "0+60x60"),
    "HermesDoctorAbsent": (f"hermes_doctor_last_run_timestamp_seconds{HOME}", "0+60x60"),
    "HermesDoctorBlind": (f"hermes_doctor_up{HOME}", "1x60"),
    "HermesDoctorCrashed": (CRASHED, "0x60"),
    "HermesBotSilent": (f"hermes_doctor_bot_works{HOME}", "1x60"),
    "HermesProblems": (FINDING % "true", "1x60"),
    "HermesRepairBudgetExhausted": (f"hermes_doctor_repair_budget_exhausted{HOME}", "0x60"),
}
"""For each alert, a series that must not fire it."""
MUTED = {f"hermes_doctor_silence_muted{HOME}": "1x60", f"hermes_doctor_bot_works{HOME}": "0x60"}
MORE_LABELS = {"HermesDoctorCrashed": {"status": "crashed"}}


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("fires", [True, False])
@pytest.mark.parametrize("alert", CASES)
def test_an_alert(tmp_path: Path, alert: str, fires: bool) -> None:
    """Prometheus itself evaluates the rules after forty minutes."""
    series, values = (CASES if fires else QUIET)[alert]
    assert_fires(tmp_path, alert, {series: values}, fires=fires)


@pytest.mark.needs("promtool")
def test_a_silence_that_is_muted(tmp_path: Path) -> None:
    """The operator knows it."""
    assert_fires(tmp_path, "HermesBotSilent", MUTED, fires=False)


def assert_fires(tmp_path: Path, alert: str, series: dict[str, str], *, fires: bool) -> None:
    """Let Prometheus evaluate the alert for these series."""
    rules = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    [rule] = [one for one in rules if one["alert"] == alert]
    told = {
        name: text.replace("{{ $labels.home }}", "/srv/hermes").replace("{{ $value }}", "1")
        for name, text in rule["annotations"].items()
    }
    home = {} if alert == "HermesDoctorAbsent" else {"home": "/srv/hermes"}
    labels = {**rule["labels"], **home, **MORE_LABELS.get(alert, {})}
    expected = [{"exp_labels": labels, "exp_annotations": told}]
    test = {
        "rule_files": [str(ALERTS)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": name, "values": values} for name, values in series.items()
                ],
                "alert_rule_test": [
                    {
                        "eval_time": "40m",
                        "alertname": alert,
                        "exp_alerts": expected if fires else [],
                    }
                ],
            }
        ],
    }
    support.put(tmp_path / "test.yml", yaml.safe_dump(test))

    code, said = promtool("test", "rules", tmp_path / "test.yml")

    assert code == 0, said


def test_every_alert_is_tried() -> None:
    """A new alert needs its two series."""
    rules = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]

    assert [rule["alert"] for rule in rules] == [*CASES] == [*QUIET]


# -- Nagios and its relatives ----------------------------------------------------------------------


@pytest.mark.needs("negate")
@pytest.mark.parametrize(("state", "code"), [("ok", 0), ("warning", 1), ("critical", 2)])
def test_negate_understands_the_output(sick: Path, state: str, code: int) -> None:
    """The plugin that changes the states of other plugins knows ours by its exit code and text."""
    negate = requirements.program("negate")
    assert negate is not None
    tool = [sys.executable, "-P", "-m", "hermes_doctor", "check", "--format", "nagios", "--home"]
    command = [negate, "--substitute", f"--critical={state.upper()}", *tool, str(sick)]

    done = subprocess.run(command, capture_output=True, text=True, env=support.environ({}))

    assert done.returncode == code, done
    first, problem = done.stdout.splitlines()
    assert first.startswith(f"HERMES {state.upper()} - This home is not set up yet")
    assert problem.startswith("critical DB-NOTADB "), "its severity stays"


@pytest.mark.needs("nagios4")
def test_nagios_accepts_the_definition(tmp_path: Path) -> None:
    """The command definition of the documentation, used by a service."""
    [command] = re.findall(r"^define command \{\n.*?^\}\n", _page(), re.M | re.S)
    support.put(tmp_path / "objects.cfg", command + OBJECTS)
    (tmp_path / "results").mkdir()
    settings = {
        "cfg_file": "objects.cfg",
        "log_file": "nagios.log",
        "check_result_path": "results",
        "lock_file": "nagios.lock",
        "temp_file": "nagios.tmp",
    }
    lines = [f"{name}={tmp_path / value}" for name, value in settings.items()]
    lines += [f"nagios_user={os.geteuid()}", f"nagios_group={os.getegid()}"]
    config = support.put(tmp_path / "nagios.cfg", "\n".join(lines) + "\n")

    done = subprocess.run(["nagios4", "-v", str(config)], capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Total Errors:   0" in done.stdout


OBJECTS = """
define timeperiod {
    timeperiod_name  always
    alias            always
    monday           00:00-24:00
}
define contact {
    contact_name                   operator
    host_notification_period       always
    service_notification_period    always
    host_notification_commands     check_hermes
    service_notification_commands  check_hermes
}
define host {
    host_name           server
    address             127.0.0.1
    contacts            operator
    max_check_attempts  1
    check_period        always
}
define service {
    host_name            server
    service_description  Hermes
    contacts             operator
    check_command        check_hermes!/home/alice/.hermes
    check_interval       1
    retry_interval       1
    max_check_attempts   3
    check_period         always
}
"""


def _page() -> str:
    return (DOCS / "monitoring.md").read_text()
