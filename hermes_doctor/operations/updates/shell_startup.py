"""Adds a marked block to the user's shell start-up files that puts the launcher first on PATH."""

from __future__ import annotations

import os
import pwd
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import read, snapshot, user_home
from hermes_doctor.operations.updates import launcher

BEGIN, END = "# >>> hermes-doctor >>>", "# <<< hermes-doctor <<<"
_MADE = "# This file was made for it.\n"
_FOLDERS = "# Folders made for it: {}\n"
_LIMIT = 1 << 20
_SETS_PATH = re.compile(
    r"""^[ \t]*(?:(?:export|typeset|declare)[ \t]+(?:-\w+[ \t]+)*)?PATH=(?!["']?\$\{?PATH\b)"""
    r"""|^[ \t]*path=\((?![ \t]*\$path)|^[ \t]*fish_add_path\b(?!.*--append)"""
    r"""|^[ \t]*set[ \t].*\bPATH[ \t]+(?!\$PATH)""",
    re.MULTILINE,
)
"""A line that puts something before everything else on PATH."""
_LEAVES = re.compile(r"^(?:return\b|exit\b|exec[ \t]+[^-<>&0-9 \t])", re.MULTILINE)
_OWN = re.compile(
    r"^[ \t]*(?:alias[ \t]+hermes[ =]|(?:function[ \t]+)?hermes[ \t]*\(\))", re.MULTILINE
)


class StartupFile(NamedTuple):
    """A shell and a file that it reads at start."""

    shell: str
    file: Path
    is_ours: bool = False
    """A file of our own in a folder that the shell reads."""


def kinds() -> list[StartupFile]:
    """The files that the shells of this user read."""
    home = user_home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    zsh = Path(os.environ.get("ZDOTDIR") or home)
    startup_files = [StartupFile("sh", home / ".profile"), StartupFile("bash", home / ".bashrc")]
    startup_files += [StartupFile("bash", home / name) for name in (".bash_profile", ".bash_login")]
    startup_files += [StartupFile("zsh", zsh / ".zshrc")]
    startup_files += [
        StartupFile("fish", config / "fish" / "conf.d" / "hermes-doctor.fish", is_ours=True)
    ]
    return startup_files


def login_shell() -> str:
    return os.path.basename(os.environ.get("SHELL") or _of_account() or "sh")


def _of_account() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_shell
    except KeyError:
        return ""


def files_read_by(shell: str) -> list[StartupFile]:
    """The files that a new login or interactive shell reads; none for an unknown shell."""
    known = {kind.file.name: kind for kind in kinds()}
    if shell == "bash":
        names = (".bash_profile", ".bash_login", ".profile")
        first = next((name for name in names if known[name].file.exists()), ".profile")
        return [known[".bashrc"], known[first]]
    name = {"zsh": ".zshrc", "fish": "hermes-doctor.fish"}.get(shell)
    if shell in ("sh", "dash", "ash", "ksh", "mksh"):
        name = ".profile"
    return [known[name]] if name else []


def files_to_edit() -> Iterator[StartupFile]:
    """The files that exist, and those that the login shell reads."""
    needed = files_read_by(login_shell())
    for kind in kinds():
        if kind in needed or (
            kind.file.parent.parent.is_dir() if kind.is_ours else kind.file.exists()
        ):
            yield kind


def doubts() -> list[str]:
    """Why a new shell of this user would not run the launcher; empty if it would.

    This is decided from the text of the files; nothing is run.
    """
    shell = login_shell()
    read = files_read_by(shell)
    if not read:
        return [f"hermes-doctor does not know the start-up files of {shell}"]
    contents = [(kind, _text(kind.file)) for kind in read]
    return [
        f"{kind.file}: {why}" for kind, text in contents if (why := _doubt(kind, text)) is not None
    ]


def _doubt(kind: StartupFile, text: str) -> str | None:
    again = "to repair it: hermes-doctor hook install"
    if not _has(kind, text):
        return f"the lines for the launcher are missing; {again}"
    if _is_passed(text):
        return f"a later line changes PATH; {again}"
    if _LEAVES.search(text[: text.find(BEGIN)]):
        return "it exits before the lines for the launcher"
    if _OWN.search(text):
        return "it makes hermes an alias or a function"
    later = kind.file.parent.parent / "config.fish"
    if kind.shell == "fish" and later.exists() and _SETS_PATH.search(_text(later)):
        return f"{later} changes PATH afterwards"
    return None


def _is_passed(text: str) -> bool:
    """Whether a later line puts something before the launcher on PATH."""
    return _SETS_PATH.search(text[text.find(END) :]) is not None


def block(kind: StartupFile, *, made: bool = False, folders: int = 0) -> str:
    """The block for one shell; it records if the file was created for it, and how many folders."""
    folder = str(launcher.folder())
    if kind.shell == "fish":
        line = f"fish_add_path --path --move --prepend {shlex.quote(folder)}"
    else:
        line = f"PATH={shlex.quote(folder)}:$PATH; export PATH"
    why = "# Back up before each update of Hermes. Remove with: hermes-doctor hook remove\n"
    notes = (_MADE if made else "") + (_FOLDERS.format(folders) if folders else "")
    return f"{BEGIN}\n{why}{notes}{line}\n{END}\n"


def refuse_unwritable() -> None:
    """Raise Trouble if one of the files must not be written, before any is."""
    for kind in files_to_edit():
        launcher.refuse_foreign_file(kind.file)
        if kind.file.is_symlink() and not kind.file.exists():
            raise Trouble(
                "{file} is a link to {target}, which does not exist. Repair the link, or "
                "add --no-shell. Nothing was changed.",
                file=kind.file,
                target=os.readlink(kind.file),
            )
        if BEGIN in _without(_text(kind.file)):
            raise Trouble(
                "{file} has a line '{line}' without its end. Remove that block yourself, "
                "then try again. Nothing was changed in it.",
                file=kind.file,
                line=BEGIN,
            )


def install(*, dry_run: bool = False) -> list[Path]:
    """Add the block where it is missing; return the files that changed, or would change."""
    refuse_unwritable()
    changed = []
    for kind in files_to_edit():
        before = _text(kind.file)
        if _has(kind, before) and not _is_passed(before):
            continue
        changed.append(kind.file)
        if dry_run:
            continue
        kept = _without(before)
        is_new = not kind.file.exists() or (_MADE in before and not kept)
        folders = _folders(before) if before else launcher.count_missing_folders(kind.file.parent)
        lines = block(kind, made=is_new, folders=folders if is_new else 0)
        whole = not kept or kept.endswith("\n")
        _write(kind.file, kept + lines if whole else f"{kept}\n{lines[:-1]}")
    return changed


def remove() -> list[Path]:
    """Remove the block but no other byte; delete a file that was created for it."""
    changed = []
    for kind in kinds():
        before = _text(kind.file)
        after = _without(before)
        if after == before:
            continue
        launcher.refuse_foreign_file(kind.file)
        if _MADE in before and not after:
            disk.remove(kind.file)
            launcher.remove_folders([*kind.file.parents][: _folders(before)])
        else:
            _write(kind.file, after)
        changed.append(kind.file)
    return changed


def _folders(text: str) -> int:
    """How many folders were created for a file; 0 if an old version did not record that."""
    return launcher.count_created_folders(text.encode("utf-8", "surrogateescape"))


def _has(kind: StartupFile, text: str) -> bool:
    whole = text + "\n"
    numbers = {0, _folders(text)}
    return any(
        block(kind, made=made, folders=number) in whole
        for made in (False, True)
        for number in numbers
    )


def _without(text: str) -> str:
    """The text without our blocks; a block without an end is left to the user."""
    while (less := _without_one(text)) != text:
        text = less
    return text


def _without_one(text: str) -> str:
    start = text.find(BEGIN + "\n")
    end = text.find(END, start)
    if start < 0 or end < 0 or (start and text[start - 1] != "\n"):
        return text
    if BEGIN in text[start + 1 : end]:
        return text
    rest = text[end + len(END) :]
    if not rest:  # before the block was added, the file did not end with a newline, either
        return text[: max(start - 1, 0)]
    return text[:start] + rest.removeprefix("\n")


def _text(path: Path) -> str:
    try:
        return read(path, _LIMIT)[0].decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""
    except CouldNotLook as why:
        raise Trouble(
            "Could not read {path}: {reason}. Nothing was changed in it.", path=path, reason=why
        ) from None


def _write(path: Path, text: str) -> None:
    """Replace the file, or the target of a symbolic link, and keep its mode."""
    real = path.resolve() if path.is_symlink() else path
    mode = snapshot(real).mode if real.exists() else 0o644
    disk.make_folder(real.parent)
    disk.save(real, text.encode("utf-8", "surrogateescape"), mode)
