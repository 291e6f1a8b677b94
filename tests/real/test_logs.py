"""What real gateways and a real journald write down, read back."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.hermes.logs import clock
from hermes_doctor.hermes.logs.entry import LogEntry
from hermes_doctor.hermes.processes import process_stat
from tests.helpers import support
from tests.helpers.log_lines import reading
from tests.helpers.real.gateways import gateway, until
from tests.helpers.real.systemd import Machine, systemd

pytestmark = pytest.mark.real


@pytest.mark.wide
@pytest.mark.parametrize("version", ["0.13.0", "0.19.0"])
def test_gateway(hermes_home: Callable[[str], Path], version: str) -> None:
    """Every line of a gateway far east is understood, dated right and told once."""
    home = hermes_home(version)
    began = time.time()
    with gateway(version, home, extra={"TZ": "Asia/Shanghai"}) as running:
        zone = clock.zone_of_process(running.pid, process_stat.read_vitals(running.pid).environment)
        assert zone is not None
        assert zone.utcoffset(datetime.now()) == timedelta(hours=8)
        while_it_runs = list(reading(home, began - 60, zone=zone))
    found = reading(home, began - 60, whole=True)
    got = list(found)

    for told in (while_it_runs, got):
        says = [one.text for one in told]
        assert "Starting Hermes Gateway..." in says
        assert says.count("Starting Hermes Gateway...") == 1
        assert all(began - 1 <= one.at <= time.time() + 1 for one in told)
        assert not [line for one in told for line in one.more if line.startswith("20")]
    assert found.unread == []
    name, _, number = found.where(got[-1]).rpartition(":")
    assert (
        got[-1].kind != "log"
        or got[-1].text in (home / name).read_text().splitlines()[int(number) - 1]
    )
    lines = (home / "logs" / "agent.log").read_text().splitlines()
    assert {one.text for one in got} >= {
        line.partition(": ")[2] for line in lines if line.startswith("20")
    }


PRINTS = """
import sys, time
print("[hooks] a plain line", flush=True)
print("WARNING [20261115_1] gateway.run: trouble: with words", file=sys.stderr)
sys.stderr.flush()
raise ValueError("the end")
"""
"""As a gateway does that has the wrong settings."""

READS = """
import json, sys, time
from pathlib import Path
from hermes_doctor.core.home import Home
from hermes_doctor.hermes.logs.stream import read
from hermes_doctor.diagnosis.probes.probes import Probes
home = Home(Path(sys.argv[1]))
[unit] = Probes(home).gateway.supervision().units
units = [unit, unit._replace(manager=None)]
found = read(home, since=time.time() - 600, units=units)
print(json.dumps([list(found), found.unread]))
"""
"""The manager in there stands in the root of all control groups, so that journald takes its units
for the machine's: they are asked for in both ways."""

EXITED = "Main process exited, code=exited, status=1/FAILURE"
TELLS = """
printf 'MESSAGE=%s: %s\\nUSER_UNIT=%s\\nPRIORITY=5\\nSYSLOG_IDENTIFIER=systemd\\n' $1 "$2" $1 |
logger --journald
"""
"""As a user's manager does; the one in there tells it to no journal."""


def read_in(machine: Machine, home: Path) -> tuple[list[LogEntry], list[object]]:
    """What the reader gives in there."""
    done = machine.run(sys.executable, "-c", READS, home)
    assert done.code == 0, done.err
    found, unread = json.loads(done.out)
    return [LogEntry(*one) for one in found], unread


@pytest.mark.wide
def test_journal(tmp_path: Path) -> None:
    """What a unit printed, and what its manager says of its end."""
    home = tmp_path / "home"
    support.put(home / "config.yaml", support.CONFIG)
    hermes = support.put(tmp_path / "bin" / "hermes", PRINTS)
    name = "hermes-gateway-journal.service"
    text = (
        "[Service]\n"
        f"ExecStart={sys.executable} {hermes} gateway run\n"
        f'Environment="HERMES_HOME={home}"\n'
    )
    with systemd(tmp_path / "user") as machine:
        machine.install(name, text)
        machine.run("systemctl", "--user", "start", name)
        machine.wait_for(name, ActiveState="failed")
        told = machine.run("sh", "-ec", TELLS, "sh", name, EXITED)
        assert told.code == 0, told.err
        until(lambda: len(read_in(machine, home)[0]) == 3, "the journal")
        found, unread = read_in(machine, home)

    assert unread == []
    assert [(one.level, one.logger, one.text, one.kind) for one in found] == [
        ("INFO", "", "[hooks] a plain line", "journal"),
        ("WARNING", "gateway.run", "trouble: with words", "journal"),
        ("INFO", "systemd", f"{name}: {EXITED}", "journal"),
    ]
    assert found[1].session == "20261115_1"
    assert found[1].more[-1] == "ValueError: the end"
