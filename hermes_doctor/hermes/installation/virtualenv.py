"""Find the virtual environments that gateways are started from, and what is broken in them.

It only reads files and runs no code of Hermes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, list_folder, names_in, read, read_head
from hermes_doctor.hermes.installation.find import (
    DIST_INFO,
    Installation,
    Leftovers,
    file_text,
    find_leftovers,
    interpreter_of,
    is_checkout,
    program_on_path,
)
from hermes_doctor.hermes.installation.packages import (
    missing_modules,
    read_pyvenv_cfg,
    site_packages_of,
)
from hermes_doctor.hermes.knowledge import parse_release
from hermes_doctor.hermes.supervisors.find import Supervision

_MAPPED = pattern(r"'([^']+)': '(/[^']+)'")
_NEEDED = {"yaml": "PyYAML", "dotenv": "python-dotenv", "httpx": "httpx"}
_ENTRIES = (
    *("hermes_cli/main.py", "hermes_cli/gateway.py", "hermes_cli/config.py", "gateway/run.py"),
    *("gateway/config.py", "gateway/status.py", "run_agent.py", "hermes_state.py"),
    *("hermes_constants.py", "model_tools.py", "cli.py", "pyproject.toml"),
)
_OLD_LINK = "hermes-agent.egg-link"
_MARKERS = (b"<<<<<<< ", b"\n=======\n", b"\n>>>>>>> ")


class Environment(NamedTuple):
    """One virtual environment that Hermes is started from."""

    root: Path
    used_by: str
    """The service or the command that starts Hermes from it."""
    version: str | None
    """The version of Hermes in it."""
    faults: tuple[tuple[str, str], ...]
    """Pairs of a path and what is wrong with it."""


class Environments(NamedTuple):
    """All virtual environments of this home, and the state of its checkout."""

    found: tuple[Environment, ...]
    rivals: tuple[tuple[Path, str | None], ...]
    """The environments of the checkout with their Hermes versions, if there is more than one."""
    conflicts: tuple[Path, ...]
    """Files of the checkout with unresolved merge conflicts."""
    unfinished: Path | None
    """The marker file of an update that did not finish."""
    checkout: Path | None = None
    git: Leftovers | None = None
    """What an unfinished update left in the checkout."""


def find(
    supervision: Supervision, installed: Installation | None, *, deep: bool = False
) -> Environments:
    """Examine the environments that the services and the command `hermes` start."""
    roots: dict[Path, str] = {}
    for unit in supervision.units:
        root = _started_from(unit.program)
        if root:
            roots.setdefault(root, unit.name)
    for place, who in _commands(installed):
        roots.setdefault(place, who)
    environments = tuple(_environment(root, who, deep=deep) for root, who in roots.items())
    checkout = next((c for root in roots if (c := _checkout(root))), None)
    if checkout is None:
        return Environments(environments, (), (), None)
    beside = [checkout / name for name in ("venv", ".venv")]
    real = [(place, _version(place)) for place in beside if (place / "pyvenv.cfg").exists()]
    mark = checkout / ".update-incomplete"
    return Environments(
        environments,
        tuple(real) if len(real) > 1 else (),
        tuple(_conflicts(checkout)),
        mark if os.path.lexists(mark) else None,
        checkout,
        find_leftovers(checkout, deep=deep),
    )


def _started_from(program: Sequence[str]) -> Path | None:
    """Return the environment that a command line starts Hermes from."""
    if "hermes_cli.main" in program:
        return _root_of(Path(program[0]))
    script = next((Path(word) for word in program[:2] if Path(word).name == "hermes"), None)
    return _behind(script) if script else None


def _root_of(python: Path) -> Path | None:
    """Return the virtual environment that an interpreter or a script belongs to, if any."""
    root = python.parent.parent
    if python.parent.name not in ("bin", "Scripts") or str(root) in ("/", "/usr", "/usr/local"):
        return None
    made = (root / "pyvenv.cfg", root / "bin" / "activate", root / "Scripts" / "activate")
    return root if any(map(os.path.exists, made)) else None


def _commands(installed: Installation | None) -> Iterator[tuple[Path, str]]:
    command = program_on_path("hermes")
    if command and _is_hermes(Path(command)) and (root := _behind(Path(command))):
        yield root, command
    if installed is not None and (root := _root_of(installed.where / "bin" / "python")):
        yield root, "the gateway" if installed.running else "the installed Hermes"


def _is_hermes(script: Path) -> bool:
    """Whether a script starts Hermes Agent; other programs are called `hermes`, too."""
    try:
        return b"hermes_cli" in read_head(script, 4096)[0]
    except (FileNotFoundError, CouldNotLook):
        return False


def _behind(script: Path) -> Path | None:
    """Return the environment of the interpreter that the first line of a script names."""
    interpreter = interpreter_of(script)
    return _root_of(interpreter) if interpreter else None


def _environment(root: Path, used_by: str, *, deep: bool) -> Environment:
    faults: list[tuple[str, str]] = []
    with contextlib.suppress(CouldNotLook):  # what this user may not read has no known fault
        faults.extend(_faults(root, deep=deep))
    return Environment(root, used_by, _version(root), tuple(faults))


def _faults(root: Path, *, deep: bool) -> Iterator[tuple[str, str]]:
    config = root / "pyvenv.cfg"
    try:
        pyvenv_cfg = read_pyvenv_cfg(root)
    except FileNotFoundError:
        yield str(config), "is gone, so Python finds none of the packages"
        return
    if pyvenv_cfg.get("home") and _is_gone(pyvenv_cfg["home"]):
        yield pyvenv_cfg["home"], "the Python that it was made from is gone"
    list_folder(root / "lib")
    packages = site_packages_of(root)
    if packages is None:
        yield str(root), "has no folder of packages"
        return
    names = set(list_folder(packages))
    versions = sorted(match[1] for name in names if (match := DIST_INFO.fullmatch(name)))
    alone = pyvenv_cfg.get("include-system-site-packages", "false").lower() != "true"
    if not versions and (_OLD_LINK in names or not alone):
        return  # installed with an egg-link, or in the system's site-packages
    if not versions:
        yield str(packages), "hermes-agent is not installed in it"
        return
    if len(versions) > 1:
        yield str(packages), f"parts of {' and '.join(versions)} are mixed"
    if "hermes_cli" not in names:
        yield from _editable(packages, names)
    for module, package in _NEEDED.items() if alone else ():
        if module not in names and f"{module}.py" not in names:
            yield str(packages / module), f"{package} is gone"
    gone = missing_modules(packages, versions[-1], deep=deep) if len(versions) == 1 else []
    if gone:
        more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        yield str(packages), f"{gone[0]}{more} of Hermes {versions[-1]} are missing"


def _editable(packages: Path, names: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the faults of an editable installation: missing link files or missing targets."""
    leads = [name for name in sorted(names) if name.startswith("__editable__") and "hermes" in name]
    leads += [name for name in ("hermes_agent.pth", "_hermes_agent.pth") if name in names]
    if not leads:
        yield str(packages / "hermes_cli"), "is gone"
    for name in leads:
        text = file_text(packages / name)
        targets = [path for module, path in _MAPPED.findall(text) if module == "hermes_cli"]
        if name.endswith(".pth"):
            targets += [line for line in text.splitlines() if line.startswith("/")]
        for target in targets:
            if _is_gone(target):
                yield target, f"{name} points there, but nothing is there"


def _is_gone(path: str) -> bool:
    """Whether nothing is there; what this user cannot get to may be there."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _version(root: Path) -> str | None:
    packages = site_packages_of(root)
    found = [m[1] for n in names_in(packages) if (m := DIST_INFO.fullmatch(n))] if packages else []
    return max(found, key=parse_release, default=None)


def _checkout(root: Path) -> Path | None:
    """Return the Hermes checkout that contains an environment; None if there is none."""
    return root.parent if root.name in ("venv", ".venv") and is_checkout(root.parent) else None


def _conflicts(checkout: Path) -> Iterator[Path]:
    """Yield the files with merge conflict markers, among those that Hermes needs to start."""
    if not os.path.exists(checkout / ".git"):
        return
    for name in _ENTRIES:
        try:
            data, _ = read(checkout / name, 4 * MEGABYTE)
        except (FileNotFoundError, CouldNotLook):
            continue
        data = data.replace(b"\r\n", b"\n")
        begins = data.startswith(_MARKERS[0]) or b"\n" + _MARKERS[0] in data
        if begins and all(mark in data for mark in _MARKERS[1:]):
            yield checkout / name
