"""Back to the Hermes that was there before an update, and to its data."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes_doctor.home import Home
from hermes_doctor.model import CannotFix
from hermes_doctor.probes import Probes
from hermes_doctor.services.commands import Account, Said, ask, login, owner_of
from hermes_doctor.services.detached import python_of
from hermes_doctor.updating import hermes
from hermes_doctor.updating.hermes import GIT, IMAGE, PIPX, UV, UV_TOOL, Installed
from hermes_doctor.values import NamedTuple

LIMIT = 1800.0
"""Seconds for a package manager to bring everything back."""
_NAME = "hermes-agent"
_WHO = ("-c", "user.name=hermes-doctor", "-c", "user.email=hermes-doctor@localhost")
"""git asks who stashes; many servers have nobody set."""
_MANAGERS = ("pip", "setuptools", "wheel")
"""What an environment has for its own sake; these stay as they are."""


class Command(NamedTuple):
    """One command that brings the old Hermes back."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.words)


def commands(home: Home, before: Installed, after: Installed | None) -> list[Command]:
    """What it takes to have the Hermes of before; nothing where it is there."""
    if after is not None and _same(before, after):
        return []
    owner = owner_of(home)
    if before.kind == IMAGE:
        raise CannotFix(
            f"Hermes lies in the image of a container: start it from the image of {before.version}"
        )
    if before.kind == PIPX:
        return [Command(("pipx", "install", "--force", f"{_NAME}=={before.version}"))]
    if before.kind == UV_TOOL:
        return [Command(("uv", "tool", "install", "--force", f"{_NAME}=={before.version}"))]
    made = []
    if before.kind == GIT:
        if before.checkout is None or before.revision is None:
            raise CannotFix("the commit that the checkout was at is not known")
        made += _checked_out(before.checkout, before.revision)
    now = after.packages if after else {}
    changed = sorted(
        f"{name}=={version}"
        for name, version in before.packages.items()
        if now.get(name) != version
        and name not in _MANAGERS
        and (before.kind != GIT or name != _NAME)
    )
    python = str(python_of(Path(before.where), owner))
    if changed and before.kind == UV and shutil.which("uv"):
        made.append(Command(("uv", "pip", "install", "--python", python, "--no-deps", *changed)))
    elif changed:
        made.append(Command((python, "-m", "pip", "install", "--no-deps", "--quiet", *changed)))
    return made


def _checked_out(checkout: str, revision: str) -> list[Command]:
    """The commit of before; what was changed by hand goes to git's stash, not away."""
    git = ("git", "-C", checkout, *_WHO)
    return [
        Command((*git, "stash", "push", "--include-untracked", "--message", "before a rollback")),
        Command((*git, "reset", "--hard", revision)),
    ]


def _same(before: Installed, after: Installed) -> bool:
    return (before.version, before.revision) == (after.version, after.revision) and dict(
        before.packages
    ) == dict(after.packages)


def bring_back(
    home: Home, todo: Sequence[Command], before: Installed, tell: Callable[[str], None]
) -> None:
    """Run them one after the other; CannotFix where the old Hermes is not there afterwards."""
    owner = owner_of(home)
    for one in todo:
        tell(f"running {one.words[0]} to bring Hermes {before.version} back")
        said = _ask(one, owner)
        if said.code:
            raise CannotFix(f"`{one}` failed with {said.code}: {said.text or 'it said nothing'}")
    found = Probes(home).installation()
    there = hermes.look(found) if found else None
    if there is None or there.version != before.version:
        what = f"Hermes {there.version}" if there else "no Hermes"
        raise CannotFix(f"{what} is there afterwards, not {before.version}")


def _ask(one: Command, owner: Account) -> Said:
    """As the home's owner: with the environment of this shell where that is us, else of a login."""
    env = dict(os.environ) if owner.is_us else login(owner)
    return ask(one.words, user=owner, env=env, limit=LIMIT)
