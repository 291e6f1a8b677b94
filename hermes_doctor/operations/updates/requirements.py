"""Checks that an environment has what its Hermes needs, with the environment's interpreter.

No code of Hermes is run, because its modules read and write the home when they are imported. What
the environment runs by itself (`.pth` files) has no network and cannot write. The
requirements are in the package's metadata. Whether the files listed there exist, and whether the
entry modules compile, is checked without importing them.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.redaction import clean
from hermes_doctor.core.system.accounts import Account
from hermes_doctor.core.system.isolated import OwnFolder, RunningCommand
from hermes_doctor.hermes.installation.details import InstallationDetails
from hermes_doctor.repair.gateway.detached import python_of
from hermes_doctor.repair.gateway.manager_commands import login_environment

LIMIT = 120.0
_PAUSE = 0.02
_ASK = """
import site
site.main()
import csv, importlib.metadata as metadata, importlib.util, json, os, sys
ENTRIES = (
    "hermes_cli.main", "hermes_cli.gateway", "hermes_cli.config", "gateway.run", "gateway.config",
    "gateway.status", "gateway.session", "run_agent", "hermes_state", "hermes_constants",
    "model_tools", "cli",
)
MOST = 50000
looked = 0

def incomplete(name):
    global looked
    gone = []
    one = metadata.distribution(name)
    record = (one.read_text("RECORD") or "").splitlines()  # its `files` has only those that exist
    for path, *_, size in (row for row in csv.reader(record) if len(row) > 1):
        if not path.endswith((".py", ".so", ".pyd")) or path.startswith("..") or looked > MOST:
            continue
        looked += 1
        try:
            whole = os.stat(one.locate_file(path)).st_size or size in ("", "0")
        except OSError:
            whole = False
        if not whole:
            gone.append(path)
    if gone:
        more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        yield f"{name} has lost files: {gone[0]}{more}"

def source(module):
    top, *rest = module.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None:
        return None
    if not rest:
        return spec.origin
    for folder in spec.submodule_search_locations or ():
        path = os.path.join(folder, *rest) + ".py"
        if os.path.exists(path):
            return path
    return None

def uncompiled():
    started = {
        one.value.partition(":")[0]
        for one in metadata.distribution("hermes-agent").entry_points
        if one.group == "console_scripts"
    }
    for module in sorted(started.union(ENTRIES)):
        path = source(module)
        if path is None:
            if module in started:
                yield f"the module {module} is missing"
            continue
        if not path.endswith(".py"):
            continue
        try:
            with open(path, "rb") as file:
                compile(file.read(), path, "exec", dont_inherit=True)
        except SyntaxError as error:
            yield f"{module} cannot be compiled (line {error.lineno})"
        except (OSError, ValueError):
            yield f"{module} cannot be read"

try:
    from packaging.requirements import Requirement
except ImportError:
    try:
        from pip._vendor.packaging.requirements import Requirement
    except ImportError:
        Requirement = None
def wanted(line, extras):
    if Requirement is None:
        if ";" in line:
            return None
        said = "".join(c if c.isalnum() or c in "-_." else " " for c in line)
        return said.split()[0], (), None
    one = Requirement(line)
    if one.marker and not any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
        return None
    return one.name, tuple(sorted(one.extras)), one.specifier

wrong = []
try:
    needed = [(line, (), True) for line in metadata.requires("hermes-agent") or []]
except metadata.PackageNotFoundError:
    needed, wrong = [], ["hermes-agent itself is not installed"]
seen = set()
while needed:
    line, extras, direct = needed.pop(0)
    try:
        found = wanted(line, extras)
    except Exception:
        continue
    if found is None:
        continue
    name, more, specifier = found
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        if (name, None) not in seen:
            wrong.append(name + " is missing")
        seen.add((name, None))
        continue
    if direct and specifier and not specifier.contains(version, prereleases=True):
        wrong.append(f"{name} {version} is installed, but {specifier} is needed")
    if (name, more) in seen:
        continue
    if not any(one == name for one, _ in seen):
        wrong.extend(incomplete(name))
    seen.add((name, more))
    needed.extend((one, more, False) for one in metadata.requires(name) or [])
if "hermes-agent itself is not installed" not in wrong:
    wrong.extend(incomplete("hermes-agent"))
    wrong.extend(uncompiled())
print(json.dumps([*dict.fromkeys(wrong)]))
"""


def unmet_requirements(installed: InstallationDetails, user: Account) -> tuple[str, ...]:
    """What the installed Hermes needs and does not have; empty if it is complete."""
    try:
        python = python_of(Path(installed.where), user)
    except CannotFix as why:
        return (str(why),)
    try:
        code, out = _ask(python, user)
        answer = json.loads(out) if code is not None else None
    except (OSError, ValueError):
        return (f"{python} no longer runs",)
    if not isinstance(answer, list):
        return (f"{python} does not answer",)
    return tuple(clean(str(sentence))[:200] for sentence in answer)


def _ask(python: Path, user: Account) -> tuple[int | None, bytes]:
    """Return the exit code of the script and its output; None if it took too long or too much."""
    become = None if user.is_us else (user.uid, user.gid, user.groups)
    with tempfile.TemporaryDirectory(prefix="hermes-doctor-") as folder:
        command = RunningCommand(
            [str(python), "-I", "-S", "-B", "-c", _ASK],
            given=b"",
            env=login_environment(user),
            folder=OwnFolder(Path(folder)),
            cwd=Path("/"),
            user=become,
        )
        until = time.monotonic() + LIMIT
        try:
            while (code := command.ended()) is None:
                if time.monotonic() > until or command.wrote_too_much:
                    return None, b""
                time.sleep(_PAUSE)
            return code, command.out
        finally:
            command.end()


def damaged_packages(installed: InstallationDetails, user: Account) -> list[str]:
    """The packages that are installed but incomplete or broken."""
    damaged = []
    for sentence in unmet_requirements(installed, user):
        name, _, rest = sentence.partition(" ")
        if rest.startswith("has lost files"):
            damaged.append(name.replace("_", "-").lower())
        elif sentence.startswith("the module ") or rest.startswith(
            ("cannot be compiled", "cannot be r")
        ):
            damaged.append("hermes-agent")
    return [*dict.fromkeys(damaged)]
