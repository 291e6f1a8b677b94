"""List the Python packages that the installed Hermes can import, without importing them."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.installation.virtualenv import read_pyvenv_cfg, site_packages_of
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import MEGABYTE, list_folder, read

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
        said = read_pyvenv_cfg(environment)
    except (FileNotFoundError, CouldNotLook):
        return False
    return said.get("include-system-site-packages", "false").lower() != "true"
