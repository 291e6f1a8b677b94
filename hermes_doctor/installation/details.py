"""Describe how Hermes is installed: by which installer, in which version, with which packages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hermes_doctor.installation.find import Installation
from hermes_doctor.model import CouldNotLook
from hermes_doctor.processes.lineage import in_container
from hermes_doctor.system.files import MEGABYTE, list_folder, read

PIP, UV, PIPX, UV_TOOL, GIT, IMAGE = "pip", "uv", "pipx", "uv-tool", "git", "image"
EDITABLE, COPIED = "editable", "copied"
_DIST = re.compile(r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[A-Za-z0-9_.!+]+)\.dist-info")
_REVISION = re.compile(r"[0-9a-f]{40,64}")


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


def read_details(found: Installation) -> InstallationDetails:
    """Read the details of an installation from its files."""
    root = found.where
    packages = _packages(root)
    source, folder = _source(packages / _info(packages)) if packages else ("", None)
    near = (root, root.parent, *([folder] if folder else []))
    checkout = next((one for one in near if _is_checkout(one)), None)
    names = packages_in(packages) if packages else {}
    return InstallationDetails(
        version=found.version,
        where=str(root),
        kind=_kind(root, checkout, packages),
        checkout=str(checkout) if checkout else None,
        revision=_revision(checkout) if checkout else None,
        branch=_branch(checkout) if checkout else None,
        source=source,
        python=packages.parent.name.removeprefix("python") if packages else "",
        packages=names,
    )


def has_changed(found: Installation | None, recorded: InstallationDetails | None) -> bool:
    """Whether the version or the commit is different from the recorded one."""
    now = read_details(found) if found else None
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
    made_by = _text(packages / _info(packages) / "INSTALLER") if packages else ""
    return UV if made_by.strip() == "uv" else PIP


def _is_checkout(folder: Path) -> bool:
    return 'name = "hermes-agent"' in _text(folder / "pyproject.toml")


def _source(info: Path) -> tuple[str, Path | None]:
    """Return the source that the installer recorded, and its folder; empty for a package index."""
    text = _text(info / "direct_url.json")
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


def git_folder(checkout: Path) -> Path:
    """Return git's folder of a checkout; in a linked worktree `.git` is a file that names it."""
    git = checkout / ".git"
    said = _text(git)
    return checkout / said[8:].strip() if said.startswith("gitdir: ") else git


def _branch(checkout: Path) -> str | None:
    head = _text(git_folder(checkout) / "HEAD").strip()
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else None


def _revision(checkout: Path) -> str | None:
    """Return the commit of HEAD, read from git's files."""
    git = git_folder(checkout)
    head = _text(git / "HEAD").strip()
    if not head.startswith("ref: "):
        return head if _REVISION.fullmatch(head) else None
    name = head[5:]
    shared = git / (_text(git / "commondir").strip() or ".")  # all worktrees share the branches
    found = _text(shared / name).strip()
    for line in _text(shared / "packed-refs").splitlines() if not found else ():
        revision, _, what = line.partition(" ")
        if what == name:
            found = revision
    return found if _REVISION.fullmatch(found) else None


def _packages(root: Path) -> Path | None:
    for name in _names(root / "lib"):
        place = root / "lib" / name / "site-packages"
        if name.startswith("python") and place.is_dir():
            return place
    return None


def packages_in(folder: Path) -> dict[str, str]:
    """Return the packages of an environment, by their dist-info folders: versions by name."""
    found = [match for name in _names(folder) if (match := _DIST.fullmatch(name))]
    return {match["name"].replace("_", "-").lower(): match["version"] for match in found}


def _info(packages: Path) -> str:
    return next((name for name in _names(packages) if name.startswith("hermes_agent-")), "")


def _names(folder: Path) -> list[str]:
    try:
        return list_folder(folder)
    except CouldNotLook:
        return []


def _text(path: Path) -> str:
    try:
        return read(path, MEGABYTE)[0].decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, CouldNotLook):
        return ""
