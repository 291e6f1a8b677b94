"""Describe how Hermes is installed: by which installer, in which version, with which packages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hermes_doctor.core.system.files import names_in
from hermes_doctor.hermes.installation.find import (
    Installation,
    branch_of,
    file_text,
    is_checkout,
    revision_of,
)
from hermes_doctor.hermes.installation.packages import site_packages_of
from hermes_doctor.hermes.processes.lineage import in_container

PIP, UV, PIPX, UV_TOOL, GIT, IMAGE = "pip", "uv", "pipx", "uv-tool", "git", "image"
EDITABLE, COPIED = "editable", "copied"
_DIST = re.compile(r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[A-Za-z0-9_.!+]+)\.dist-info")


@dataclass(frozen=True)
class InstallationDetails:
    """The details of one installed Hermes at one moment, as update records keep them."""

    version: str
    where: str
    """Its virtual environment, its checkout if it has no environment, or its container."""
    kind: str
    """pip, uv, pipx, uv-tool, git or image."""
    checkout: str | None = None
    revision: str | None = None
    """The commit of the checkout, or the image of a container."""
    branch: str | None = None
    """The branch that was checked out."""
    clean: bool | None = None
    """Whether the checkout had no local changes; None if that was not examined."""
    source: str = ""
    """What it was installed from: its checkout (EDITABLE, COPIED), a repository, or the name of an
    image; empty for a package index."""
    python: str = ""
    """The version of the environment's interpreter."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """All packages of the environment: versions by name."""


def read_details(installation: Installation) -> InstallationDetails:
    """Read the details of an installation from its files."""
    root = installation.where
    packages = site_packages_of(root)
    source, folder = _source(packages / _info(packages)) if packages else ("", None)
    near = (root, root.parent, *([folder] if folder else []))
    checkout = next((path for path in near if is_checkout(path)), None)
    names = packages_in(packages) if packages else {}
    return InstallationDetails(
        version=installation.version,
        where=str(root),
        kind=_kind(root, checkout, packages),
        checkout=str(checkout) if checkout else None,
        revision=revision_of(checkout) if checkout else None,
        branch=branch_of(checkout) if checkout else None,
        source=source,
        python=packages.parent.name.removeprefix("python") if packages else "",
        packages=names,
    )


def has_changed(installation: Installation | None, recorded: InstallationDetails | None) -> bool:
    """Whether the version or the commit is different from the recorded one."""
    now = read_details(installation) if installation else None
    if now is None or recorded is None:
        return now is not recorded
    return (now.version, now.revision) != (recorded.version, recorded.revision)


def _kind(root: Path, checkout: Path | None, packages: Path | None) -> str:
    if (root / "pipx_metadata.json").exists():
        return PIPX
    if (root / "uv-receipt.toml").exists():
        return UV_TOOL
    if checkout is not None and (checkout / ".git").exists():
        return GIT
    if root.is_relative_to("/opt/hermes") and in_container():
        return IMAGE
    made_by = file_text(packages / _info(packages) / "INSTALLER") if packages else ""
    return UV if made_by.strip() == "uv" else PIP


def _source(info: Path) -> tuple[str, Path | None]:
    """Return the source that the installer recorded, and its folder; empty for a package index."""
    text = file_text(info / "direct_url.json")
    try:
        said = json.loads(text) if text else {}
        url, folder, kept = str(said.get("url")), said.get("dir_info"), said.get("vcs_info")
        if isinstance(kept, dict):
            return f"hermes-agent @ {kept['vcs']}+{url}@{kept['commit_id']}", None
        if isinstance(folder, dict) and url.startswith("file:///"):
            from urllib.parse import unquote

            editable = folder.get("editable") is True
            return EDITABLE if editable else COPIED, Path(unquote(url[7:]))
    except (ValueError, RecursionError, AttributeError, KeyError):
        pass
    return "", None


def packages_in(folder: Path) -> dict[str, str]:
    """Return the packages of an environment, by their dist-info folders: versions by name."""
    matches = [match for name in names_in(folder) if (match := _DIST.fullmatch(name))]
    return {match["name"].replace("_", "-").lower(): match["version"] for match in matches}


def _info(packages: Path) -> str:
    return next((name for name in names_in(packages) if name.startswith("hermes_agent-")), "")
