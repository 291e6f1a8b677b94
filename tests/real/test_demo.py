"""The demo on a machine that has Hermes: it finds, starts and contacts nothing outside itself."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from hermes_doctor.cli import demo
from tests.helpers import fake_gateway, support
from tools import releases

pytestmark = pytest.mark.real
RELEASE = "0.19.0"
_VARYING = re.compile(r"hermes-doctor-demo-\w+|\d{8}-\d{6}-[0-9a-f]{5}|in \d+\.\d s")
"""The folder of the demo, the ids of its runs, and the time that a check took."""


def _users_of(folder: Path) -> list[psutil.Process]:
    """The processes whose command, working folder or variables name a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), process.cwd(), *process.environ().values()]
        except psutil.Error:
            continue
        if any(word.startswith(str(folder)) for word in words):
            found.append(process)
    return found


def _demo(temporary: Path, env: dict[str, str]) -> str:
    """Run the demo with these variables in a folder of its own; return what it says, without ids.

    The folder has the same length each time: a screen depends on the length of its lines.
    """
    temporary.mkdir()
    done = support.doctor("demo", env={**env, "TMPDIR": str(temporary)}, timeout=30)
    assert (done.code, done.err) == (0, "")
    assert list(temporary.iterdir()) == []
    assert _users_of(temporary) == []
    return _VARYING.sub("…", done.out).replace(str(temporary), "TMP")


def _equipped_user(tmp_path: Path) -> dict[str, str]:
    """A user with Hermes in all usual places, settings of this tool, and programs that note it."""
    hermes = releases.python_of(RELEASE).parent
    user, programs = tmp_path / "user", tmp_path / "programs"
    for place in (".hermes/hermes-agent/venv", ".local/share/pipx/venvs/hermes-agent"):
        (user / place).parent.mkdir(parents=True)
        (user / place).symlink_to(hermes.parent)
    support.put(
        user / ".config" / "hermes-doctor" / "config.toml",
        f'vault = "{tmp_path / "vault"}"\n[severity]\nENV-BOM = "off"\n',
    )
    unit = f"[Service]\nExecStart={hermes / 'hermes'} gateway run\nRestart=always\n"
    support.put(user / ".config" / "systemd" / "user" / "hermes-gateway.service", unit)
    for name in ("systemctl", "docker", "podman", "crontab", "loginctl", "hermes"):
        support.put(programs / name, f"#!/bin/sh\necho {name} >>{tmp_path / 'called'}\n", 0o755)
    return {
        "HOME": str(user),
        "PATH": f"{programs}:{hermes}:/usr/bin:/bin",
        "HERMES_HOME": str(user / ".hermes"),
        "HERMES_DOCTOR_VAULT": str(tmp_path / "vault"),
        "TELEGRAM_BOT_TOKEN": "1234567890:AAThisIsTheTokenOfAnotherBotEntirely",
        "QQ_APP_ID": "102081123",
        "QQ_CLIENT_SECRET": "abcdef",
    }


def test_demo_is_the_same_beside_hermes(tmp_path: Path) -> None:
    """Beside installations, a gateway and settings it starts and leaves nothing, and says the same.

    No program of the machine is asked, and no backup of the demo gets into the operator's vault.
    """
    alone = _demo(tmp_path / "1", {"HOME": str(tmp_path / "nobody"), "PATH": "/usr/bin:/bin"})
    equipped = _equipped_user(tmp_path)
    with fake_gateway.gateway(support.healthy(tmp_path / "user" / "bot"), api="answers"):
        beside = _demo(tmp_path / "2", equipped)

    assert beside == alone
    assert not (tmp_path / "called").exists()
    assert not (tmp_path / "vault").exists()
    assert "no Hermes found" in beside
    assert "undo restored the broken home byte for byte" in beside


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_demo_that_is_ended_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """Its folder is removed also if it is ended in the middle."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hermes_doctor", "demo"],
        env=support.environ({"TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    with process, process.stdout as out:
        assert any("── 4. " in line for line in out)
        process.send_signal(number)
        out.read()

    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


def test_no_gateway_is_started_in_a_kept_demo_home(tmp_path: Path) -> None:
    """`fix GW-DOWN` refuses in the home that `demo --keep` leaves, although Hermes is there."""
    hermes = releases.python_of(RELEASE).parent
    env = {"PATH": f"{hermes}:/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    support.doctor("demo", "--keep", env=env)
    [home] = tmp_path.glob("hermes-doctor-demo-*/home")

    done = support.doctor("fix", "GW-DOWN", "--apply", "--yes", "--home", home, env=env)

    assert done.code == 1
    assert "This is an example home without Hermes, so no gateway is started." in done.out
    assert _users_of(tmp_path) == []


def test_a_step_that_is_interrupted_ends_the_demo() -> None:
    """Typer turns the signal into an exit code, after which the demo would go on."""

    def interrupted(home: Path = Path("home")) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        demo._call(interrupted, Path("home"))
