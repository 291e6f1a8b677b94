"""What `check` shows in a terminal, recorded for ten homes that a real Hermes made and ran.

The records are in tests/data/screens. After a wanted change, record them again (see VARIABLE in
tests/helpers/terminal_screen.py) and read each of them in a terminal.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_doctor.cli import demo_home
from tests.helpers import support
from tests.helpers.real import chat_partner, qq
from tests.helpers.real.containers import OUTSIDE, Project, engine
from tests.helpers.real.gateways import Running, free_port, gateway, sealed, until
from tests.helpers.real.release_homes import MakeHome, machine
from tests.helpers.real.systemd import systemd
from tests.helpers.terminal_screen import ROWS, compare, screen, steady
from tools import releases

pytestmark = pytest.mark.real
VERSION = "0.19.0"
DOCTOR = (sys.executable, "-m", "hermes_doctor")
NETWORK = """
model:
  provider: custom
  default: thinker
  base_url: http://127.0.0.1:{port}/v1
  api_key: not-a-key-but-long-enough
fallback_providers:
  - provider: custom
    model: thinker
    base_url: https://nowhere.invalid/v1
    api_key: not-a-key-but-long-enough
"""


@pytest.fixture
def users() -> Iterator[Path]:
    """A folder for the folders of users, with a short name, that everybody can enter."""
    with tempfile.TemporaryDirectory(prefix="hd-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture
def user(users: Path, hermes_home: MakeHome) -> Path:
    """The folder of a user with a home that a real Hermes made in the usual place."""
    folder = users / "alice"
    folder.mkdir()
    shutil.move(hermes_home(VERSION), folder / ".hermes")
    return folder


NO_CRONTAB = "#!/bin/sh\necho 'no crontab for you' >&2\nexit 1\n"


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[qq.Qq]:
    """QQ and a model on this machine; the model answers."""
    with qq.platform(tmp_path) as made:
        made.tell("model answer")
        yield made


def look(user: Path, *more: str, hermes: bool = True) -> str:
    """Run `check` as that user, with or without the command of Hermes on the PATH."""
    folders = [releases.python_of(VERSION).parent] if hermes else []
    # The screens are of a machine on which cron is installed but does not run.
    crontab = support.put(user.parent / "programs" / "crontab", NO_CRONTAB, 0o755)
    env = support.environ(machine(user, *folders, crontab.parent))
    shown = screen([*DOCTOR, "check", *more], env, user)
    shown = re.sub("Start cron with `[^`]+`", "Start cron with `service cron start`", shown)
    return steady(shown, (str(user), "~"))


def alone(platform: qq.Qq) -> dict[str, str]:
    """Variables for a gateway whose one platform is this one."""
    return qq.through(platform) | {"API_SERVER_ENABLED": "false", "API_SERVER_KEY": ""}


def chat(platform: qq.Qq, text: str, *words: str) -> None:
    """Send a message, and wait for an answer with these words."""
    bot = chat_partner.Chat(platform)
    bot.say(text)
    bot.hear(*words or ("Yes.",))


@contextmanager
def answering_bot(home: Path, platform: qq.Qq) -> Iterator[Running]:
    """A gateway that is connected to QQ and has answered a message."""
    chat_partner.set_up(home, platform)
    with gateway(VERSION, home, extra=alone(platform)) as running:
        until(lambda: platform.sessions() > 0, "the session")
        chat(platform, "Are you there?")
        yield running


@pytest.mark.wide
def test_healthy(user: Path, platform: qq.Qq) -> None:
    """A bot under systemd that has just answered, with a backup."""
    home = user / ".hermes"
    chat_partner.set_up(home, platform)
    folder = releases.python_of(VERSION).parent
    with systemd(user) as box:
        box.linger(True)
        env = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
        given = sealed(None) | qq.through(platform) | {"HERMES_HOME": str(home)}
        said = "".join(f'Environment="{name}={value}"\n' for name, value in given.items())
        box.install(
            "hermes-gateway.service",
            "[Unit]\nDescription=Hermes Agent Gateway\nStartLimitIntervalSec=0\n[Service]\n"
            f"ExecStart={folder}/python -m hermes_cli.main gateway run\nWorkingDirectory={home}\n"
            f"Restart=always\nRestartSec=5\nRestartForceExitStatus=75\nRestartPreventExitStatus=78\n"
            f"KillMode=mixed\nTimeoutStopSec=60\n{said}"
            "[Install]\nWantedBy=default.target\n",
        )
        box.systemctl("enable", "--now", "hermes-gateway.service")
        until(lambda: platform.sessions() > 0, "the session")
        chat(platform, "Are you there?")
        assert box.doctor("backup", "create", env=env).code == 0
        command = box.command(*DOCTOR, "check")
        shown = screen(command, box.environment | env, user)
        box.systemctl("stop", "hermes-gateway.service")

    compare("healthy", steady(shown))
    assert shown.count("\n") < ROWS


def test_not_set_up(users: Path) -> None:
    """Hermes is installed and was opened once, but never configured."""
    from tools import real_home

    user = users / "alice"
    home = user / ".hermes"
    home.mkdir(parents=True, mode=0o700)
    real_home.run(VERSION, home, "from hermes_cli.config import load_config; load_config()")

    compare("not-set-up", look(user))


@pytest.mark.wide
def test_dead_provider(user: Path, platform: qq.Qq) -> None:
    """The provider rejects the key of a bot that is connected to QQ."""
    home = user / ".hermes"
    chat_partner.set_up(home, platform)
    platform.tell("model reject")
    with gateway(VERSION, home, extra=alone(platform)):
        until(lambda: platform.sessions() > 0, "the session")
        chat(platform, "Are you there?", "authentication failed")
        shown = look(user)

    compare("dead-provider", shown)


@pytest.mark.wide
def test_one_bot(user: Path, platform: qq.Qq, tmp_path: Path) -> None:
    """A bot that answered, and what became of it: killed, of another user, damaged, locked out."""
    home = user / ".hermes"
    killed, stopped = tmp_path / "killed", tmp_path / "stopped"
    with answering_bot(home, platform) as running, running.frozen():
        support.copy_home(home, killed)  # what a killed one leaves
    support.copy_home(home, stopped)

    # A disk was full, and the second half of state.db is missing.
    path = home / "state.db"
    for name in ("state.db-wal", "state.db-shm"):
        (home / name).unlink(missing_ok=True)
    os.truncate(path, path.stat().st_size // 4096 // 2 * 4096)
    compare("truncated-database", look(user))

    # The gateway was killed, and nothing restarts it.
    replace(home, killed)
    compare("gateway-down", look(user))
    if not os.geteuid():
        another_user(user)

    # After a restart QQ rejects its secret.
    replace(home, stopped)
    platform.tell("token bad")
    log = home / "logs" / "errors.log"
    with gateway(VERSION, home, extra=alone(platform)):
        until(lambda: log.exists() and "100016" in log.read_text(), "the rejected secret")
        compare("dead-qq", look(user))


def replace(home: Path, other: Path) -> None:
    """Put a copy in the place of a home."""
    shutil.rmtree(home)
    support.copy_home(other, home)


def another_user(user: Path) -> None:
    """Root looks at the home of somebody else, who can reach no Hermes."""
    nobody = pwd.getpwnam("nobody")
    installed = bytes(releases.python_of(VERSION).parent.parent)
    for name in ("gateway.pid", "gateway_state.json"):
        path = user / ".hermes" / name
        if path.exists():
            path.write_bytes(path.read_bytes().replace(installed, b"/root/hermes"))
    for path in (user, *user.rglob("*")):
        os.chown(path, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
    root = user.parent / "root"
    root.mkdir()
    env = support.environ(machine(root, root))
    shown = screen([*DOCTOR, "check", "--home", user / ".hermes"], env, root)
    compare("another-user", steady(shown, (str(user), "/home/nobody")))
    for path in (user, *user.rglob("*")):
        os.chown(path, 0, 0, follow_symlinks=False)


def test_seven_problems(users: Path) -> None:
    """The demo's five faults, a gateway that does not run, and a token that is not one."""
    user = users / "alice"
    home = user / ".hermes"
    demo_home.make(home)
    env = home / ".env"
    env.write_bytes(env.read_bytes().replace(b"1234567890:AAThis", b"AAThis"))
    shown = look(user, hermes=False)

    compare("seven-problems", shown)
    assert shown.count("\n") < ROWS


@pytest.mark.wide
def test_network(user: Path, platform: qq.Qq) -> None:
    """Nothing listens at the provider's address, and the proxy refuses everything else."""
    home = user / ".hermes"
    chat_partner.set_up(home, platform)
    support.put(home / "config.yaml", NETWORK.format(port=free_port()))
    with gateway(VERSION, home, extra=alone(platform)):
        until(lambda: platform.sessions() > 0, "the session")
        shown = look(user, "--network")

    compare("network", shown)


@pytest.mark.wide
def test_container(users: Path, platform: qq.Qq, hermes_home: MakeHome) -> None:
    """The gateway runs in a container; `check` runs on the host."""
    folder, home = users / "alice" / "bot", users / "alice" / "data"
    folder.mkdir(parents=True)
    shutil.move(hermes_home(VERSION), home)
    chat_partner.set_up(home, platform)
    with engine() as docker:
        docker.image(VERSION)
        project = Project(docker, folder, home)
        project.write(**qq.through(platform))
        project.up()
        until(lambda: platform.sessions() > 0, "the session")
        chat(platform, "Are you there?")
        command = [sys.executable, "-c", OUTSIDE, "check", "--home", str(home)]
        env = support.environ(docker.env | {"HOME": str(folder.parent)})
        shown = steady(screen(command, env, folder), (str(folder.parent), "/home/alice"))

    compare("container", shown)


def test_a_pipe_gets_the_same(users: Path) -> None:
    """In a pipe: the same words in the same order, and no line is wrapped."""
    user = users / "alice"
    demo_home.make(user / ".hermes")
    shown = look(user, hermes=False)
    piped = steady(support.doctor("check", env=machine(user), cwd=user).out)

    assert piped.split() == shown.split()
    assert len(piped.splitlines()) < len(shown.splitlines())
