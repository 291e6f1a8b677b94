"""Whether an environment has what its Hermes needs, asked of its own interpreter.

Not one line of Hermes is run: its modules read and write the home when they are loaded. What it
needs stands in the metadata of the package.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from hermes_doctor.masking import clean
from hermes_doctor.model import CannotFix
from hermes_doctor.services.commands import Account, login
from hermes_doctor.services.detached import python_of
from hermes_doctor.updating.hermes import Installed

LIMIT = 60.0
_ASK = """
import importlib.metadata as metadata, json, sys
try:
    from packaging.requirements import Requirement
except ImportError:
    try:
        from pip._vendor.packaging.requirements import Requirement
    except ImportError:
        Requirement = None
wrong = []
try:
    needed = metadata.requires("hermes-agent") or []
except metadata.PackageNotFoundError:
    needed, wrong = [], ["hermes-agent itself is not installed"]
for line in needed:
    if Requirement is None:
        if ";" in line:
            continue
        said = "".join(c if c.isalnum() or c in "-_." else " " for c in line)
        name, specifier = said.split()[0], None
    else:
        one = Requirement(line)
        if one.marker and not one.marker.evaluate({"extra": ""}):
            continue
        name, specifier = one.name, one.specifier
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        wrong.append(name + " is missing")
        continue
    if specifier and not specifier.contains(version, prereleases=True):
        wrong.append(f"{name} {version} is there, {specifier} is needed")
print(json.dumps(wrong))
"""


def unmet(installed: Installed, user: Account) -> tuple[str, ...]:
    """What the installed Hermes needs and does not have; empty where all is there."""
    try:
        python = python_of(Path(installed.where), user)
    except CannotFix as why:
        return (str(why),)
    options: dict[str, object] = user.options()
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", _ASK],
            capture_output=True,
            timeout=LIMIT,
            env=login(user),
            cwd="/",
            check=False,
            **options,  # type: ignore[call-overload]
        )
        found = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return (f"{python} does not answer",)
    except (OSError, ValueError):
        return (f"{python} does not run any more",)
    return tuple(clean(str(one))[:200] for one in found)
