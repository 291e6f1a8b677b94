"""Examine the Python packages of an environment without importing them.

It lists what Hermes can import, which of its own modules are missing, and which platforms the
installed release cannot start with any settings.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import remembered_files
from hermes_doctor.core.system.files import MEGABYTE, list_folder, names_in, open_regular, read
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.hermes.knowledge.releases import load_knowledge

_EXTRAS = {
    "lark_oapi": "feishu",
    "dingtalk_stream": "dingtalk",
    "mautrix": "matrix",
    "microsoft_teams": "teams",
}
"""The extra of Hermes' package that installs a library; the others are in `messaging`."""


class Packages(NamedTuple):
    """The site-packages folder of one environment, and the names in it."""

    folder: Path
    names: frozenset[str]
    alone: bool
    """Whether the environment is isolated: no packages outside of it are used."""

    def has(self, module: str) -> bool:
        """Whether a module exists as a folder, a file or a compiled library."""
        return (
            module in self.names
            or f"{module}.py" in self.names
            or any(name.startswith(f"{module}.") and name.endswith(".so") for name in self.names)
        )

    def text(self, *parts: str) -> str | None:
        """Return the text of one of its files; None if it is missing or cannot be read."""
        try:
            data, _ = read(self.folder.joinpath(*parts), MEGABYTE)
        except (FileNotFoundError, CouldNotLook):
            return None
        return data.decode("utf-8", "replace")

    def install_command(self, library: str, version: str) -> str:
        """Return the command that installs a library of a platform into this environment."""
        import shlex

        extra = _EXTRAS.get(library, "messaging")
        wanted = [f"hermes-agent[{extra}]=={version}"]
        checkout = self.folder.parents[3]
        if "gateway" not in self.names and (checkout / "pyproject.toml").is_file():
            wanted = ["--editable", f"{checkout}[{extra}]"]
        python = str(self.folder.parents[2] / "bin" / "python")
        if self.has("pip"):
            return shlex.join([python, "-m", "pip", "install", *wanted])
        return shlex.join(["uv", "pip", "install", "--python", python, *wanted])


def read_packages(environment: Path) -> Packages | None:
    """Return the packages of an environment; None if their folder is not found."""
    folder = site_packages_of(environment)
    if folder is None:
        return None
    try:
        names = frozenset(list_folder(folder))
    except CouldNotLook:
        return None
    return Packages(folder, names, _is_alone(environment))


def _is_alone(environment: Path) -> bool:
    try:
        pyvenv_cfg = read_pyvenv_cfg(environment)
    except (FileNotFoundError, CouldNotLook):
        return False
    return pyvenv_cfg.get("include-system-site-packages", "false").lower() != "true"


def read_pyvenv_cfg(root: Path) -> dict[str, str]:
    """Return the settings in the pyvenv.cfg of an environment; FileNotFoundError if missing."""
    data, _ = read(root / "pyvenv.cfg", MEGABYTE)
    lines = (line.partition("=") for line in data.decode("utf-8", "replace").splitlines())
    return {name.strip().lower(): value.strip() for name, _, value in lines}


def site_packages_of(root: Path) -> Path | None:
    """Return the site-packages of an environment; those of an older Python are ignored."""
    folders = [
        root / lib / name / "site-packages"
        for lib in ("lib", "lib64")
        for name in names_in(root / lib)
        if name.startswith("python")
    ]
    paths = [folder for folder in folders if folder.is_dir()]
    if len({folder.parent.name for folder in paths}) > 1:
        own = _own_python(root)
        paths.sort(key=lambda folder: folder.parent.name != own)
    return paths[0] if paths else None


def _own_python(root: Path) -> str:
    """Return the name of the library folder of an environment's Python, such as `python3.12`."""
    try:
        pyvenv_cfg = read_pyvenv_cfg(root)
    except (FileNotFoundError, CouldNotLook):
        return ""
    number = pyvenv_cfg.get("version") or pyvenv_cfg.get("version_info") or ""
    return "python" + ".".join(number.split(".")[:2])


_LONGEST_RECORD = 4 * MEGABYTE
QUICK = frozenset({"hermes_cli", "gateway", "gateway/platforms", "cron", "agent", "tools", ""})
"""The folders that a quick check run compares; a gateway needs them to start."""


def missing_modules(packages: Path, version: str, *, deep: bool) -> list[str]:
    """Return the modules of Hermes that were installed and no longer exist."""
    record = packages / f"hermes_agent-{version}.dist-info" / "RECORD"
    try:
        fd = open_regular(record)
        try:
            kind = "installed" if deep else "installed-quick"
            wanted = remembered_files.ask(kind, fd, record, lambda: _installed(record, deep=deep))
        finally:
            os.close(fd)
    except (FileNotFoundError, CouldNotLook):
        return []
    gone: list[str] = []
    for folder, files in wanted.items():
        try:
            there = set(list_folder(packages / folder if folder else packages))
        except CouldNotLook:
            continue
        gone += [f"{folder}/{file}" if folder else file for file in files if file not in there]
    return gone


def _installed(record: Path, *, deep: bool) -> dict[str, list[str]]:
    """The names of the installed modules, by their folder."""
    data, _ = read(record, _LONGEST_RECORD)
    wanted: dict[str, list[str]] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        name = line.partition(",")[0]
        if name.endswith(".py") and not name.startswith(("/", "../")):
            folder, _, file = name.rpartition("/")
            if deep or folder in QUICK:
                wanted.setdefault(folder, []).append(file)
    return wanted


MANIFEST = "the manifest"


class Break(NamedTuple):
    """One platform that is broken in the installed release."""

    platform: str
    file: str
    lacks: str
    cured_by: str | None

    @property
    def packed(self) -> bool:
        """Whether the cause is a file missing from the package, not wrong code."""
        return self.lacks == MANIFEST

    @property
    def cure(self) -> str:
        """One sentence that says how to fix it."""
        if self.cured_by is None:
            return "No known release fixes it."
        return f"Update Hermes to {self.cured_by} or newer."


def known_breaks(installed: Installation, wanted: Iterable[str]) -> list[Break]:
    """Return the wanted platforms that are broken in this release and were not fixed by hand."""
    known = load_knowledge("breaks")
    return [
        Break(name, fault["file"], fault["lacks"], fault["cured_by"])
        for name in wanted
        for fault in known.get(name, ())
        if installed.version in fault["releases"] and _still(installed.where, fault)
    ]


def _still(where: Path, fault: dict[str, str]) -> bool:
    """Whether the installed files still have the fault; a checkout may have been fixed by hand."""
    for base in _bases(where):
        path = base / fault["file"]
        if fault["lacks"] == MANIFEST:
            if path.parent.is_dir():
                return not path.exists() and not path.with_suffix(".yml").exists()
            continue
        try:
            return fault["lacks"].encode() not in read(path, 4 * MEGABYTE)[0]
        except (FileNotFoundError, CouldNotLook):
            continue
    return False


def _bases(where: Path) -> Iterator[Path]:
    """Yield the folders that may have the code: site-packages, or the checkout around them."""
    yield from where.glob("lib/python3*/site-packages")
    yield where
    yield where.parent
