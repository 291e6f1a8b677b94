"""Installs a gateway hook that makes `/update` in a chat back up first and examine afterwards.

The files are in `hooks/` of the home, where Hermes loads them when a gateway starts. Hermes' own
interpreter runs them, so they import nothing of this tool: they call it. While an answer is being
written, Hermes calls no hook; but it looks for `hermes` on its PATH, where our launcher is first.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from hermes_doctor.core.home import Home, all_homes
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import disk
from hermes_doctor.operations.updates import launcher

FOLDER = "hooks/hermes-doctor"
_FOLDERS = 3
"""The number of folders in `hooks/hermes-doctor/bin`.

The launcher records how many were created for it, so that `hooks` is removed only if it was one of
them.
"""
_ABOUT = """\
name: hermes-doctor
description: Back up before /update and check after it (hermes-doctor hook remove)
events:
  - command:update
  - gateway:startup
"""
_HANDLER = '''\
"""Written by hermes-doctor. Remove it with: hermes-doctor hook remove"""

import asyncio
import logging
import os
import shutil

DOCTOR = {doctor!r}
CODE = {code!r}
HOME = {home!r}
LIMIT = 3600


async def handle(event_type, context):
    if event_type == "gateway:startup":
        asyncio.ensure_future(_after())
        _stand_first()
        return None
    if not os.access(DOCTOR[0], os.X_OK) or not os.path.isfile(CODE):
        return {{"decision": "deny", "message": "hermes-doctor is missing, so no backup can be "
                 "made. Install it again, or remove " + os.path.dirname(__file__)}}
    code, said = await _ask("pre-update", "--from-chat")
    if code == 0:
        return {{"decision": "allow"}}
    return {{"decision": "deny", "message": "hermes-doctor stopped the update: " + said}}


def _stand_first():
    """Put our launcher first on PATH; it calls the real hermes."""
    mine, found = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin"), None
    if os.access(os.path.join(mine, "hermes"), os.X_OK):
        found = shutil.which("hermes")
    if found and os.path.dirname(found) != mine and os.pathsep not in mine:
        others = os.environ.get("PATH", os.defpath).split(os.pathsep)
        os.environ["PATH"] = os.pathsep.join([mine, *(one for one in others if one != mine)])


async def _after():
    code, said = await _ask("post-update", "--from-chat")
    if code:
        logging.getLogger("hermes_doctor.update").error("After the update: %s", said)


async def _ask(*words):
    try:
        child = await asyncio.create_subprocess_exec(
            *DOCTOR, "hook", "run", *words, "--home", HOME,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await asyncio.wait_for(child.communicate(), LIMIT)
    except Exception as error:
        return 1, type(error).__name__
    lines = out.decode("utf-8", "replace").strip().splitlines()
    return child.returncode, " ".join(lines[-3:])[:800]
'''


def hook_homes(home: Home) -> list[Home]:
    """The home and its profiles: each gateway loads the hooks of its own home."""
    inside = home / "profiles"
    return [
        home,
        *(
            other_home
            for other_home in all_homes(home, [])
            if other_home.path.is_relative_to(inside)
        ),
    ]


def files(hook_home: Home, home: Home) -> dict[Path, bytes]:
    """The files to write into `hook_home`, for a hook that guards the updates of `home`."""
    handler = _HANDLER.format(
        doctor=launcher.command_words(), code=str(launcher.command_files()[1]), home=str(home.path)
    )
    folder = hook_home / FOLDER
    path = folder / "bin" / launcher.NAME
    there = launcher.read_data(path)
    folder_count = (
        launcher.count_created_folders(there)
        if there is not None
        else launcher.count_missing_folders(path.parent)
    )
    first = launcher.script(min(folder_count, _FOLDERS), here=path.parent, home=home.path)
    return {
        folder / "HOOK.yaml": _ABOUT.encode(),
        folder / "handler.py": handler.encode(),
        path: first.encode(),
    }


def install(home: Home, *, dry_run: bool = False) -> list[Path]:
    """Install the hook, which takes effect at the next start.

    Returns the folders that it changed, or would change.
    """
    launcher.refuse_uncallable()
    for place in hook_homes(home):
        # Raise Trouble if a file that is not ours would be replaced.
        folder = place / FOLDER
        for part in (folder, folder / "bin"):
            if part.is_symlink():
                raise Trouble(
                    "{path} is a link to another folder. Nothing was changed there.", path=part
                )
        for path in files(place, home):
            if os.path.lexists(path) and not _is_ours(path):
                raise Trouble(
                    "{path} was not written by hermes-doctor. Move it away, then try again. "
                    "Nothing was changed.",
                    path=path,
                )
    changed = []
    for place in hook_homes(home):
        for path, data in files(place, home).items():
            if launcher.read_data(path) == data and _may_run(path):
                continue
            changed.append(place / FOLDER)
            if not dry_run:
                disk.make_folder(path.parent)
                disk.save(path, data, 0o755 if path.name == launcher.NAME else disk.FILE_MODE)
    return [*dict.fromkeys(changed)]


def _is_ours(path: Path) -> bool:
    """Whether any version of this tool wrote the file."""
    mark = b'"""Written by hermes-doctor. ' if path.suffix == ".py" else b"name: hermes-doctor\n"
    if path.name == launcher.NAME:
        return launcher.is_ours(path)
    return not path.is_symlink() and (launcher.read_data(path) or b"").startswith(mark)


def remove(home: Home) -> list[Path]:
    """Remove the hook; other files in its folders stay."""
    return [place / FOLDER for place in hook_homes(home) if _remove(place, home)]


def _remove(hook_home: Home, home: Home) -> bool:
    folder = hook_home / FOLDER
    if folder.is_symlink() or (folder / "bin").is_symlink():
        return False
    ours = [path for path in files(hook_home, home) if _is_ours(path)]
    folder_count = launcher.count_created_folders(
        launcher.read_data(folder / "bin" / launcher.NAME) or b""
    )
    for path in ours:
        disk.remove(path)
    # Remove the bytecode of the handler.
    cache = folder / "__pycache__"
    if cache.is_dir() and not cache.is_symlink():
        for name in os.listdir(cache):
            if name.startswith("handler."):
                disk.remove(cache / name)
        with suppress(OSError):
            disk.remove_folder(cache)
    with suppress(OSError):
        disk.remove_folder(folder / "bin")
    launcher.remove_folders([folder, folder.parent] if folder_count == _FOLDERS else [folder])
    return bool(ours)


def is_installed(hook_home: Home, home: Home) -> bool:
    """Whether the hook is as this version writes it, for this home or one that contains it."""
    return _seen_to(hook_home, home) is not None


def is_from_other_version(hook_home: Home) -> bool:
    """Whether the hook was written by another installation or version of this tool."""
    return _is_ours(hook_home / FOLDER / "handler.py") and not is_installed(hook_home, hook_home)


def guarded_home(hook_home: Home) -> Home | None:
    """The home whose updates the hook in `hook_home` guards, if there is a hook."""
    return _seen_to(hook_home, hook_home)


def _seen_to(hook_home: Home, home: Home) -> Home | None:
    root = Home(hook_home.path.parent.parent) if hook_home.profile else hook_home
    for guarded in (home, hook_home, root):
        if all(
            launcher.read_data(path) == data and _may_run(path)
            for path, data in files(hook_home, guarded).items()
        ):
            return guarded
    return None


def _may_run(path: Path) -> bool:
    """Whether the file is executable, if it has to be."""
    return path.name != launcher.NAME or launcher.is_executable(path)
