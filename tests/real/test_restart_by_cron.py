"""A real gateway where systemd does not run: a crontab line brings it back, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.helpers import fake_crontab, requirements, support
from tests.helpers.real.controlled_gateways import SOONER, VERSION, Ward, ward
from tests.helpers.real.gateways import answers, sealed, until
from tests.helpers.real.release_homes import MakeHome
from tools import real_home, releases

pytestmark = [pytest.mark.real, pytest.mark.wide]
LASTING: dict[str, object] = {"hermes_doctor.repair.schedule.choose._PASSING": []}
"""The home of a test is in a temporary folder."""


class Operator:
    """Somebody with a crontab on a machine without systemd."""

    def __init__(self, one: Ward, folder: Path) -> None:
        self.one = one
        self.tab = fake_crontab.install(folder)
        self.env = {
            **one.env,
            "PATH": f"{folder}:{os.environ['PATH']}",
            "XDG_STATE_HOME": str(folder / "state"),
            "TMPDIR": str(folder),
        }

    def doctor(self, *words: str) -> support.Done:
        """Run the command."""
        where = ("--home", str(self.one.home))
        return support.doctor(
            *words, *where, env=self.env, timeout=120, settings={**SOONER, **LASTING}
        )

    def rounds(self, number: int) -> str:
        """Let cron run the line so often, with the few variables that cron sets."""
        line = self.tab.read_text().splitlines()[-1]
        command = line.split(maxsplit=5)[5].replace(r"\%", "%")
        few = {"HOME": self.env["HOME"], "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh"}
        return "".join(
            subprocess.run(
                ["/bin/sh", "-c", command], env=few, capture_output=True, text=True, timeout=120
            ).stdout
            for _ in range(number)
        )


def test_the_whole_story(hermes_home: MakeHome, tmp_path: Path) -> None:
    """Installed, killed, started again, stopped by a person, and undone without a trace."""
    if os.path.isdir("/run/systemd/system"):
        requirements.missing("systemd runs here")
    home = hermes_home(VERSION)
    with (home / ".env").open("a") as file:  # what is started again is as sealed as the first
        file.write("".join(f"\n{name}={value}" for name, value in sealed(None).items()) + "\n")
    folder = tmp_path / "cron"
    with ward(home) as one:
        me = Operator(one, folder)
        with fake_crontab.daemon(folder):
            assert "nothing restarts it" in me.doctor("check").out
            shown = me.doctor("fix", "GW-UNSUPERVISED")
            assert "+* * * * * env XDG_STATE_HOME=" in shown.out
            assert me.tab.read_text() == fake_crontab.OTHERS
            done = me.doctor("fix", "GW-UNSUPERVISED", "--apply", "--yes")
            assert done.code == 0, done.out + done.err
            assert "restarted by cron" in me.doctor("check").out
            assert "crontab" not in me.doctor("fix").out
        first = one.pid
        os.kill(first, signal.SIGKILL)
        assert "healed GW-DOWN" in me.rounds(2)
        assert one.pid != first
        until(lambda: answers(one.port, 2), "an answer")
        os.kill(one.pid, signal.SIGTERM)  # as a shutdown of the machine does
        until(lambda: not answers(one.port, 1), "the gateway to stop")
        assert "healed GW-DOWN" in me.rounds(2)
        until(lambda: answers(one.port, 2), "an answer")
        stop = [str(releases.python_of(VERSION).parent / "hermes"), "gateway", "stop"]
        subprocess.run(stop, env=real_home.environment(home), check=True, capture_output=True)
        assert "healed" not in me.rounds(3)
        assert not answers(one.port, 1)
        undone = me.doctor("undo", "--yes")
        assert undone.code == 0, undone.out + undone.err
        assert me.tab.read_text() == fake_crontab.OTHERS
