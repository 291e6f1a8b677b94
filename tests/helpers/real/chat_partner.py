"""A friend who chats with a real gateway, and a Hermes of its own for that which can be updated."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.helpers import support
from tests.helpers.real import gateways, qq
from tests.helpers.real.release_homes import machine
from tools import releases

PATIENCE = 300.0
"""Seconds for an answer: a backup, an examination and a busy machine may lie between."""
FULL = "0.19.0"
"""A release that has what the QQ adapter needs; the others borrow it."""
HERMES = """#!/bin/sh
case " $* " in
  *" update "*)
    echo "the update itself, asked for as: $*"
    mv {packages} {root}/earlier && mv {root}/later {packages}
    exit ;;
esac
exec {root}/bin/python -m hermes_cli.main "$@"
"""
QUICK = {"HERMES_DOCTOR_SETTLE": "0", "PYTHONDONTWRITEBYTECODE": "1"}
"""No time to settle; and nothing is written through the links into a release."""
SETTINGS = """
model:
  default: thinker
  provider: custom
  base_url: http://{place}/model
  api_key: not-a-key
"""


@dataclass(frozen=True)
class Checkout:
    """A Hermes that takes itself for a checkout, so that it can be updated; its files are links."""

    root: Path
    version: str

    @property
    def hermes(self) -> Path:
        """Its command; what that does for an update stays on this machine."""
        return self.root / "bin" / "hermes"

    @property
    def packages(self) -> Path:
        """Where its packages lie."""
        return self.root / "lib" / "python3.11" / "site-packages"


def checkout(root: Path, version: str, later: str) -> Checkout:
    """One release, and how it becomes another."""
    made = Checkout(root, version)
    real = releases.python_of(version).parent.parent
    _link(made.packages, version, FULL)
    _link(root / "later", later, FULL)
    (root / "bin").mkdir()
    (root / "bin" / "python").symlink_to((real / "bin" / "python").resolve())
    support.put(root / "pyvenv.cfg", (real / "pyvenv.cfg").read_text())
    support.put(made.hermes, HERMES.format(packages=made.packages, root=root), 0o755)
    return made


def _link(folder: Path, *versions: str) -> None:
    """What is in a release, and what others have besides."""
    (folder / ".git").mkdir(parents=True)
    for version in versions:
        [packages] = releases.python_of(version).parent.parent.glob("lib/python3*/site-packages")
        for one in packages.iterdir():
            place = folder / one.name
            is_second = version != versions[0] and one.name.startswith("hermes_agent-")
            if not is_second and not os.path.lexists(place):
                place.symlink_to(one)


@dataclass(frozen=True)
class Chat:
    """What is said between the friend and the bot."""

    platform: qq.Qq

    def say(self, text: str) -> None:
        """Send a message to the bot."""
        self.platform.tell(f"say {text}")

    def heard(self) -> list[str]:
        """All that the bot has said."""
        lines = self.platform.said.read_text().splitlines()
        return [json.loads(line[6:]) for line in lines if line.startswith("heard ")]

    def hear(self, *words: str) -> str:
        """Wait until the bot has said all these words, and return everything it has said.

        Hermes sends the output of a command every four seconds, so a busy machine decides how many
        messages it becomes. All are joined, and each line break is a space, because lines are
        wrapped.
        """

        def everything() -> str:
            return " ".join(" ".join(self.heard()).split())

        try:
            gateways.until(
                lambda: all(word in everything() for word in words),
                f"{words} in the chat",
                PATIENCE,
            )
        except AssertionError as error:
            error.add_note(f"The bot said: {everything()}")
            raise
        return everything()

    def keep_busy(self) -> None:
        """Ask for something that takes for ever, and wait until the model is asked for it."""
        before = self.platform.said.read_text().count("asked")
        self.say("What is the answer?")
        said = self.platform.said
        gateways.until(
            lambda: said.read_text().count("asked") > before, "the model to be asked", PATIENCE
        )


def set_up(home: Path, platform: qq.Qq) -> None:
    """Lead the bot of a home to the platform, to its model and to the friend."""
    config = home / "config.yaml"
    support.put(config, SETTINGS.format(place=platform.place))
    qq.set_up(home, platform)
    env = home / ".env"
    support.put(env, env.read_text() + "QQ_ALLOWED_USERS=friend\n")


@contextmanager
def bot(hermes: Checkout, home: Path, platform: qq.Qq, *first: Path) -> Iterator[gateways.Running]:
    """A gateway of that Hermes which has a session with the platform; `first` on its PATH."""
    before = platform.sessions()
    extra = qq.through(platform) | machine(home.parent, *first, hermes.hermes.parent) | QUICK
    command = [str(hermes.hermes), "gateway", "run"]
    with gateways.gateway(FULL, home, command=command, extra=extra) as running:
        gateways.until(lambda: platform.sessions() > before, "the session")
        yield running
