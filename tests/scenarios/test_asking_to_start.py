"""A gateway is started only where it ran, where its service wants it, or where somebody says so."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.checks.test_gateway_running import CLEAN
from tests.helpers import crash_server, damage, fake_gateway, support
from tests.helpers.fake_managers import STRAW

pytestmark = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs /proc")


@pytest.fixture
def env(home: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment with a Hermes that can be started; what runs at the end is ended."""
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    base = Path(sys.executable).resolve()
    (venv / "bin" / "python").symlink_to(base)
    support.put(venv / "pyvenv.cfg", f"home = {base.parent}\n")
    packages = venv / f"lib/python3.{sys.version_info.minor}/site-packages"
    for name in ("hermes_agent-0.19.0.dist-info", "yaml", "dotenv", "httpx"):
        (packages / name).mkdir(parents=True)
    connected = STRAW.replace('"retrying"', '"connected"')  # nobody waits for its platforms
    support.put(packages / "hermes_cli" / "main.py", connected)
    support.put(venv / "bin" / "hermes", f"#!{venv}/bin/python\n{connected}", 0o755)
    yield {"PATH": f"{venv}/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    for gateway in Probes(Home(home)).gateway.running():
        os.kill(gateway.pid, signal.SIGKILL)


def running(home: Path) -> list[int]:
    """The gateways of a home."""
    return [gateway.pid for gateway in Probes(Home(home)).gateway.running()]


def fix(home: Path, env: dict[str, str], *words: str) -> support.Done:
    """`fix --apply` without a terminal, which watches a new gateway for a second only."""
    settle = {"hermes_doctor.repair.gateway.startup_proof.SETTLE": 1.0}
    words = ("fix", *words, "--apply", "--home", str(home))
    return support.doctor(*words, env=env, timeout=120, settings=settle)


def test_stopped_on_purpose(home: Path, env: dict[str, str]) -> None:
    """A plain repair leaves it stopped, and changes nothing; the plan says how to start it."""
    fake_gateway.ended(home, *CLEAN, gateway_state="stopped")
    before = crash_server.state(home)

    for words in ([], ["--yes"]):
        done = fix(home, env, *words)
        assert done.code == 0, done.out + done.err
        assert "stopped on purpose" in done.out and "name the code" in done.out
    plan = support.doctor("fix", "--home", home, env=env)

    assert plan.code == 0, plan.out + plan.err
    assert "start the gateway in the background" in plan.out and running(home) == []
    assert crash_server.state(home) == before


def test_named_without_a_terminal(home: Path, env: dict[str, str]) -> None:
    """Named, it still asks: without a terminal it is skipped, and the exit code says so."""
    fake_gateway.ended(home, *CLEAN, gateway_state="stopped")

    done = fix(home, env, "GW-DOWN")

    assert done.code == 1 and running(home) == []
    assert "no terminal is open" in done.out
    assert f"hermes-doctor fix GW-DOWN --apply --yes --home {home}" in done.out
    told = support.doctor("fix", "GW-DOWN", "--home", home, "--json", env=env).json
    [planned] = told["repair"]["plan"]
    assert (planned["asks"], planned["unnamed"]) == (True, False)


def test_named_with_yes(home: Path, env: dict[str, str]) -> None:
    """Named, and agreed to, it is started; the tool says that it was itself."""
    fake_gateway.ended(home, *CLEAN, gateway_state="stopped")

    done = fix(home, env, "GW-DOWN", "--yes")

    assert done.code == 0, done.out + done.err
    [pid] = running(home)
    why = Probes(Home(home)).gateway.supervision().why
    assert why == "hermes-doctor started it in the background"
    shown = support.doctor("check", "--home", home, env=env).out
    assert "started by hand" not in shown
    assert running(home) == [pid]


def test_it_ran(home: Path, env: dict[str, str]) -> None:
    """Killed while it ran: it is brought back without a question."""
    fake_gateway.ended(home)

    done = fix(home, env)

    left = re.findall(r"^– (\S+)", done.out, re.MULTILINE)
    assert (done.code, left) == (1, ["PLATFORM-NONE", "GW-UNSUPERVISED"]), done.out
    assert "gateway: repaired and checked" in done.out, done.out + done.err
    assert len(running(home)) == 1


def test_a_log_without_its_database(home: Path, env: dict[str, str]) -> None:
    """Hermes would delete the log at its start: the rows are saved first, or nothing starts."""
    fake_gateway.ended(home)
    path = damage.with_log(
        damage.history(home / "state.db"), then="UPDATE messages SET content = content || 1"
    )
    path.unlink()
    before = crash_server.state(home)

    shown = support.doctor("fix", "GW-DOWN", "--home", home, env=env)
    named = fix(home, env, "GW-DOWN", "--yes")

    for done in (shown, named):
        assert "state.db-wal has the last rows of state.db" in done.out, done.out
    assert (named.code, running(home)) == (1, [])
    assert crash_server.state(home) == before
    declined = fix(home, env)  # without a terminal, the repair that asks is left out
    assert "the last rows of state.db" in declined.out and running(home) == []

    done = fix(home, env, "--yes")

    assert "state.db: repaired and checked" in done.out, done.out
    assert len(running(home)) == 1


def test_a_truncated_database(home: Path, env: dict[str, str]) -> None:
    """Hermes would damage it further: it is repaired first, by the same run, or nothing starts."""
    fake_gateway.ended(home, *CLEAN, gateway_state="stopped")
    damage.cut_off(damage.history(home / "state.db"))
    before = crash_server.state(home)

    named = fix(home, env, "GW-DOWN", "--yes")

    assert "state.db is damaged, and Hermes would damage it further" in named.out, named.out
    assert "`hermes-doctor fix` shows how" in named.out
    assert (named.code, running(home)) == (1, [])
    assert crash_server.state(home) == before

    done = fix(home, env, "DB-TRUNCATED", "GW-DOWN", "--yes")

    assert "state.db: repaired and checked" in done.out, done.out
    assert len(running(home)) == 1


def test_started_by_hand(home: Path) -> None:
    """One that somebody else started is still called so."""
    with fake_gateway.gateway(home):
        assert Probes(Home(home)).gateway.supervision().why == "it was started by hand"
