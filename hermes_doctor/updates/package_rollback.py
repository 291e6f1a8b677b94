"""Restores the previous packages with the tool that manages their environment."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hermes_doctor.gateway.detached import python_of
from hermes_doctor.home import Home
from hermes_doctor.installation.details import (
    COPIED,
    EDITABLE,
    PIPX,
    UV,
    UV_TOOL,
    InstallationDetails,
)
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix
from hermes_doctor.system.accounts import Account
from hermes_doctor.updates import requirements

NAME = "hermes-agent"
_MANAGERS = ("pip", "setuptools", "wheel")
"""Tools of the environment itself; these are left as they are."""


def package_rollback(
    home: Home, before: InstallationDetails, now: InstallationDetails | None, user: Account
) -> list[tuple[str, ...]]:
    """The commands, if any are needed; raise CannotFix if nothing can run them."""
    others = [
        f"{name}=={version}" for name, version in missing_packages(before, now) if name != NAME
    ]
    itself = _itself(before, now)
    if now is None or not _has_python(before):
        again = []
    else:
        again = [one for one in _damaged(before, now, user) if one not in (*others, *itself)]
    if before.kind == PIPX:
        return _by_pipx(before, others, itself, again)
    if not others and not itself and not again:
        return []
    if not _has_python(before):
        return [*_anew(home, before, user), (*_by_uv(home, before, user), *others, *itself)]
    install = _installer(home, before, now, user)
    made = [(*install, *others, *itself)] if others or itself else []
    return [*made, (*install, "--force-reinstall", *again)] if again else made


def _by_pipx(
    before: InstallationDetails, others: list[str], itself: list[str], again: list[str]
) -> list[tuple[str, ...]]:
    made: list[tuple[str, ...]] = []
    by_pip = ("pipx", "runpip", NAME, "install", "--no-deps", "--quiet")
    if itself:
        made.append(("pipx", "install", "--force", f"{NAME}=={before.version}"))
    if others:
        made.append((*by_pip, *others))
    if again:
        made.append((*by_pip, "--force-reinstall", *again))
    return made


def _damaged(before: InstallationDetails, now: InstallationDetails, user: Account) -> list[str]:
    """Packages with the old version that lack files; git restores those of a checkout."""
    names = requirements.damaged_packages(now, user)
    kept = [NAME] if before.source in (EDITABLE, COPIED) else []
    found = [name for name in names if name in before.packages and name not in kept]
    return [f"{name}=={before.packages[name]}" for name in found]


def missing_packages(
    before: InstallationDetails, now: InstallationDetails | None
) -> list[tuple[str, str]]:
    """The old packages that are missing now or have another version."""
    there = now.packages if now else {}
    return sorted(
        (name, version)
        for name, version in before.packages.items()
        if there.get(name) != version and name not in _MANAGERS
    )


def _itself(before: InstallationDetails, now: InstallationDetails | None) -> list[str]:
    """The requirement for Hermes as it was installed: a checkout, a repository or an index."""
    wanted = before.packages.get(NAME)
    if wanted is None:
        return []  # run from its checkout without being installed
    same = now is not None and now.packages.get(NAME) == wanted and now.source == before.source
    if before.source == COPIED and before.checkout:
        same = same and now is not None and now.revision == before.revision
        return [] if same else [before.checkout]
    if same:
        return []
    if before.source == EDITABLE and before.checkout:
        return ["--editable", before.checkout]
    return [before.source if "@" in before.source else f"{NAME}=={wanted}"]


def _installer(
    home: Home, before: InstallationDetails, now: InstallationDetails | None, user: Account
) -> tuple[str, ...]:
    """The command that installs packages into the existing environment."""
    has_pip = "pip" in (now or before).packages
    if has_pip and (before.kind not in (UV, UV_TOOL) or _uv(home, user) is None):
        python = str(python_of(Path(before.where), user))
        return (python, "-m", "pip", "install", "--no-deps", "--quiet")
    return _by_uv(home, before, user)


def _by_uv(home: Home, before: InstallationDetails, user: Account) -> tuple[str, ...]:
    uv = _uv(home, user)
    if uv is None:
        raise CannotFix(
            text(
                "{folder} has no pip, and uv is not on the PATH. Install uv, which "
                "reinstalls the packages, then try again.",
                folder=before.where,
            )
        )
    python = Path(before.where) / "bin" / "python"
    if _has_python(before):
        python = python_of(Path(before.where), user)
    return (uv, "pip", "install", "--quiet", "--python", str(python), "--no-deps")


def _anew(home: Home, before: InstallationDetails, user: Account) -> list[tuple[str, ...]]:
    """The command that recreates the environment if the update removed it."""
    uv = _uv(home, user)
    if uv is None or not before.python:
        version = f" with Python {before.python}" if before.python else ""
        raise CannotFix(
            text(
                "{folder} has lost its Python, and uv is not on the PATH. Create the "
                "environment{version} again, then try again.",
                folder=before.where,
                version=version,
            )
        )
    if before.kind == UV_TOOL:
        return [(uv, "tool", "install", "--quiet", "--force", f"{NAME}=={before.version}")]
    words = ("venv", "--quiet", "--allow-existing", "--python", before.python, before.where)
    return [(uv, *words)]


def _has_python(before: InstallationDetails) -> bool:
    places = [Path(before.where) / folder for folder in ("", "venv", ".venv")]
    return any(os.access(place / "bin" / "python", os.X_OK) for place in places)


def _uv(home: Home, user: Account) -> str | None:
    """uv on the PATH, or where its installer or that of Hermes puts it for the home's owner."""
    folders = [home / "bin"]
    if user.folder:
        folders += [Path(user.folder) / ".local" / "bin", Path(user.folder) / ".cargo" / "bin"]
    found = ("uv", *(str(folder / "uv") for folder in folders))
    return next((one for one in found if shutil.which(one)), None)
