"""Check that the folder for commands exists and that the gateway's user may enter it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    snapshot,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Text

_ANYWHERE = ("", ".", "auto", "cwd")
_NAMES = ("TERMINAL_CWD", "MESSAGING_CWD")


@check(id="working-folder", group="configuration", codes=["CFG-CWD"], by_release=True)
def working_folder(probes: Probes) -> Iterator[Finding]:
    """Can the gateway use its working folder?"""
    world = probes.resolved().world
    terminal = world.raw.get("terminal")
    terminal = terminal if isinstance(terminal, dict) else {}
    backend = terminal.get("backend") or world.getenv("TERMINAL_ENV") or "local"
    if backend != "local":
        raise Skip("commands run on another machine or in a container")
    written = terminal.get("cwd")
    named: list[Text] = [written] if isinstance(written, str) else []  # type: ignore[list-item]
    named += [world.getenv(name) for name in _NAMES]
    chosen = next((one for one in named if one.strip() not in _ANYWHERE), None)
    if chosen is None:
        raise Skip("no folder is set, so Hermes uses the home of its user")
    path = _folder(probes, chosen.strip())
    if path is None:
        return
    fault = _fault(probes, path)
    if fault:
        sure = bool(probes.gateways()) or _is_native(probes)
        yield Finding(
            code="CFG-CWD",
            severity=Severity.WARNING if sure else Severity.INFO,
            title=text(fault),
            subject=chosen.source.name,
            detail=(
                "Commands of the bot fail or run in another folder."
                if sure
                else "Commands of the bot fail or run in another folder, unless the gateway runs "
                "in a container that has this folder."
            ),
            evidence=(
                Evidence(
                    chosen.source.place,
                    text("{name}: {folder}", name=chosen.source.name, folder=path),
                ),
            ),
            next=(
                "Create the folder for the gateway's user, or set terminal.cwd in config.yaml to "
                "another folder, then restart the gateway."
            ),
        )


def _folder(probes: Probes, said: str) -> Path | None:
    """Return the folder as the gateway sees it; None if only the gateway knows."""
    if said.startswith("~"):
        home = probes.resolved().world.getenv("HOME") or _home(probes.gateway_user().uid)
        return Path(home) / said[2:] if home and said[1:2] in ("", "/") else None
    return Path(said) if os.path.isabs(said) else None


def _home(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        return ""


def _is_native(probes: Probes) -> bool:
    """Return whether the gateway would see the same files as this process, not a container's."""
    found = probes.installation()
    return found is not None and snapshot(found.where).kind != "absent"


def _fault(probes: Probes, path: Path) -> str | None:
    gateways = probes.gateways()
    root = Path(f"/proc/{gateways[0].pid}/root") if gateways else Path("/")
    seen = root / path.relative_to("/") if root.is_dir() else path
    if not os.path.lexists(seen):
        return "the working folder of the bot does not exist"
    if not seen.is_dir():
        return "the working folder of the bot is not a folder"
    user = probes.gateway_user()
    for folder in reversed([path, *path.parents]):
        try:
            st = os.stat(root / folder.relative_to("/") if root.is_dir() else folder)
        except OSError:
            return None
        if not user.may_enter(st):
            return "the gateway may not enter the working folder of the bot"
    return None
