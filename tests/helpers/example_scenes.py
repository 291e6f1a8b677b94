"""The machines on which the examples of the documents run: a user's home, and few programs."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hermes_doctor.cli import demo_home
from tests.helpers import fake_environments, fake_gateway, fake_provider, support

SHOWN = "/home/alice"
"""The home of the user in the documents; the real path has as many characters."""
PYTHON = f"{SHOWN}/.local/share/pipx/venvs/hermes-gateway-doctor/bin/python"
PROGRAMS = (
    "bash",
    "cat",
    "cut",
    "git",
    "head",
    "mv",
    "rm",
    "sh",
    "tail",
    "age",
    "age-keygen",
    "restic",
    "rsync",
    "ssh",
)
_DOCTOR = """\
#!{python} -P
import sys
from hermes_doctor.repair.schedule import choose
choose.refuse_temporary_home = lambda home: None  # the home of an example is in /tmp
from hermes_doctor.__main__ import main
sys.argv[0] = "hermes-doctor"
main()
"""
_CRONTAB = """\
#!/bin/sh
case $1 in
  -l) [ -f ~/.crontab ] || { echo "no crontab for alice" >&2; exit 1; }
      while IFS= read -r line; do printf '%s\\n' "$line"; done <~/.crontab ;;
  -) : >~/.crontab; while IFS= read -r line; do printf '%s\\n' "$line"; done >~/.crontab ;;
esac
"""
_HERMES = """\
#!/bin/sh
cd ~/.hermes/hermes-agent/venv/lib/python*/site-packages
mv hermes_agent-0.18.2.dist-info hermes_agent-0.19.0.dist-info
printf 'Metadata-Version: 2.1\\nName: hermes-agent\\nVersion: 0.19.0\\n' \\
  >hermes_agent-0.19.0.dist-info/METADATA
echo "Hermes 0.19.0 is installed."
"""
_CONFIG = """\
fail_on = "warning"
vault = "/srv/backups"

[severity]
GW-LINGER = "off"

[watch]
interval = "1m"
notify_webhook = "https://example.org/secret"
"""
_PROJECT = '[project]\nname = "hermes-agent"\nversion = "{}"\n'


@dataclass(frozen=True)
class Machine:
    """A user's home with a Hermes home in it, and the variables of the user's shell."""

    user: Path
    env: dict[str, str]

    @property
    def home(self) -> Path:
        """The Hermes home."""
        return self.user / ".hermes"

    def doctor(self, *words: str) -> None:
        """Run the command before the example starts."""
        program = Path(self.env["PATH"]) / "hermes-doctor"
        subprocess.run([program, *words], env=self.env, capture_output=True, check=False)


@contextlib.contextmanager
def machine(scene: str) -> Iterator[Machine]:
    """Set up the machine of a scene."""
    user = Path("/tmp") / secrets.token_hex(3)
    assert len(str(user)) == len(SHOWN)
    user.mkdir(mode=0o755)
    try:
        programs = user / ".bin"
        programs.mkdir()
        for name in PROGRAMS:
            found = shutil.which(name)
            if found:
                (programs / name).symlink_to(found)
        for name, text in (("hermes-doctor", _DOCTOR), ("crontab", _CRONTAB)):
            support.put(programs / name, text.replace("{python}", sys.executable), 0o755)
        env = {
            **{"HOME": str(user), "PATH": str(programs), "LANG": "C.UTF-8", "SHELL": "/bin/bash"},
            **{"TZ": "UTC", "HERMES_DOCTOR_SETTLE": "0", "RESTIC_PASSWORD": "an example"},
        }
        made = Machine(user, env)
        with contextlib.ExitStack() as stack:
            SCENES[scene](made, stack)
            yield made
    finally:
        shutil.rmtree(user)


def _broken(made: Machine, _: contextlib.ExitStack) -> None:
    """The home of `hermes-doctor demo`."""
    demo_home.make(made.home)


def _repaired(made: Machine, stack: contextlib.ExitStack) -> None:
    """The same home, after its repair."""
    _broken(made, stack)
    made.doctor("fix", "--apply", "--yes")


def _healthy(made: Machine, _: contextlib.ExitStack) -> None:
    """A home without any problem."""
    support.healthy(made.home)


def _configured(made: Machine, _: contextlib.ExitStack) -> None:
    """The home of `hermes-doctor demo`, and a config.toml; mutes are stored beside it."""
    demo_home.make(made.home)
    made.env["XDG_CONFIG_HOME"] = str(made.user / ".config")
    support.put(made.user / ".config" / "hermes-doctor" / "config.toml", _CONFIG, 0o600)


def _damaged(made: Machine, _: contextlib.ExitStack) -> None:
    """The same home, with a message history whose first bytes were overwritten."""
    support.clobber(support.healthy(made.home) / "state.db")


def _running(made: Machine, stack: contextlib.ExitStack) -> None:
    """A home without any problem, with a gateway."""
    support.healthy(made.home)
    stack.enter_context(fake_gateway.gateway(made.home))


def _answering(made: Machine, stack: contextlib.ExitStack) -> None:
    """A home whose model is on this machine and answers; no gateway runs."""
    support.healthy(made.home)
    words = {"choices": [{"message": {"role": "assistant", "content": "ready"}}]}
    provider = stack.enter_context(fake_provider.serving(200, words))
    config = (
        "model:\n  provider: relay\n  default: small\n"
        f"providers:\n  relay:\n    base_url: {provider.url}\n    key_env: RELAY_KEY\n"
    )
    support.put(made.home / "config.yaml", config)
    support.put(made.home / ".env", "RELAY_KEY=sk-example-0123456789\n")


def _checkout(made: Machine, _: contextlib.ExitStack) -> None:
    """A home whose Hermes is a checkout, with a newer release in the branch `up`."""
    support.healthy(made.home)
    path = made.home / "hermes-agent"
    path.mkdir()

    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", path, *who, *words], check=True)

    def commit(version: str) -> None:
        support.put(path / "pyproject.toml", _PROJECT.format(version))
        git("add", "pyproject.toml")
        git("commit", "-qm", version)

    git("init", "-q", "-b", "main")
    commit("0.18.2")
    git("checkout", "-qb", "up")
    commit("0.19.0")
    git("checkout", "-q", "main")
    fake_environments.make(made.home)


def _package(made: Machine, _: contextlib.ExitStack) -> None:
    """A home whose Hermes is a package that `hermes update` updates."""
    support.healthy(made.home)
    fake_environments.make(made.home)
    support.put(made.user / ".bin" / "hermes", _HERMES, 0o755)


SCENES: dict[str, Callable[[Machine, contextlib.ExitStack], None]] = {
    "broken": _broken,
    "repaired": _repaired,
    "healthy": _healthy,
    "configured": _configured,
    "damaged": _damaged,
    "running": _running,
    "answering": _answering,
    "checkout": _checkout,
    "package": _package,
}
