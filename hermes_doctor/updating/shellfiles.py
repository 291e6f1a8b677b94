"""The start-up files of the operator's shells: a marked block that puts the launcher first."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor import durable
from hermes_doctor.files import read, snapshot, user_home
from hermes_doctor.model import CouldNotLook, Trouble
from hermes_doctor.updating import launcher, ours
from hermes_doctor.values import NamedTuple

BEGIN, END = "# >>> hermes-doctor >>>", "# <<< hermes-doctor <<<"
_MADE = "# This file was made for it.\n"
_LIMIT = 1 << 20


class Kind(NamedTuple):
    """One shell and the file that it reads."""

    shell: str
    file: Path
    is_ours: bool = False
    """A file of our own, in a folder that the shell reads."""


def kinds() -> list[Kind]:
    """The files that the shells of this user read."""
    home = user_home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    zsh = Path(os.environ.get("ZDOTDIR") or home)
    found = [Kind("sh", home / ".profile"), Kind("bash", home / ".bashrc")]
    found += [Kind("bash", home / name) for name in (".bash_profile", ".bash_login")]
    found += [Kind("zsh", zsh / ".zshrc")]
    found += [Kind("fish", config / "fish" / "conf.d" / "hermes-doctor.fish", is_ours=True)]
    return found


def wanted() -> Iterator[Kind]:
    """Those that this user has; one for the login shell where there is none at all."""
    login = os.path.basename(os.environ.get("SHELL", "sh"))
    first = {"bash": ".bashrc", "zsh": ".zshrc"}.get(login, ".profile")
    for one in kinds():
        if one.file.parent.parent.is_dir() if one.is_ours else _is_read(one.file, first):
            yield one


def _is_read(file: Path, first: str) -> bool:
    return file.exists() or file.name == first


def block(kind: Kind, *, made: bool = False) -> str:
    """The lines for one shell."""
    folder = str(launcher.folder())
    if kind.shell == "fish":
        line = f"fish_add_path --path --move --prepend {shlex.quote(folder)}"
    else:
        line = f"PATH={shlex.quote(folder)}:$PATH; export PATH"
    why = "# An update of Hermes gets a backup first. Gone with: hermes-doctor hook remove\n"
    return f"{BEGIN}\n{why}{_MADE if made else ''}{line}\n{END}\n"


def refuse() -> None:
    """Trouble where a file must not be written, before any is."""
    for kind in wanted():
        ours.refuse(kind.file)
        if _is_broken(_text(kind.file)):
            raise Trouble(
                f"{kind.file} has a line '{BEGIN}' without its end. Take that block out by hand, "
                "then try again. Nothing was changed in it."
            )


def install() -> list[Path]:
    """Add the block where it is missing; the files that were changed."""
    refuse()
    changed = []
    for kind in wanted():
        before = _text(kind.file)
        if _has(kind, before):
            continue
        kept = _without(before)
        lines = block(kind, made=not kind.file.exists())
        whole = not kept or kept.endswith("\n")
        _write(kind.file, kept + lines if whole else f"{kept}\n{lines[:-1]}")
        changed.append(kind.file)
    return changed


def remove() -> list[Path]:
    """Take the block out; every other byte stays, and a file that was made for it goes."""
    changed = []
    for kind in kinds():
        before = _text(kind.file)
        after = _without(before)
        if after == before:
            continue
        ours.refuse(kind.file)
        if _MADE in before and not after:
            durable.remove(kind.file)
        else:
            _write(kind.file, after)
        changed.append(kind.file)
    return changed


def covered() -> list[Kind]:
    """The files that have the block."""
    return [kind for kind in kinds() if _has(kind, _text(kind.file))]


def _has(kind: Kind, text: str) -> bool:
    found = text + "\n"
    return any(block(kind, made=made) in found for made in (False, True))


def _is_broken(text: str) -> bool:
    """Whether a block has lost its end, so that nobody can tell what is ours."""
    return BEGIN in _without(text)


def _without(text: str) -> str:
    """The text without our block; a block whose end was cut off is left to its owner."""
    start = text.find(BEGIN + "\n")
    end = text.find(END, start)
    if start < 0 or end < 0 or (start and text[start - 1] != "\n"):
        return text
    if BEGIN in text[start + 1 : end]:
        return text
    rest = text[end + len(END) :]
    if not rest:  # the file did not end with a line's end before, either
        return text[: max(start - 1, 0)]
    return text[:start] + rest.removeprefix("\n")


def _text(path: Path) -> str:
    try:
        return read(path, _LIMIT)[0].decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""
    except CouldNotLook as why:
        raise Trouble(f"{path} cannot be read: {why}. Nothing was changed in it.") from None


def _write(path: Path, text: str) -> None:
    """In place of the old one, behind a symlink where it is one, with the mode that it had."""
    real = path.resolve() if path.is_symlink() else path
    mode = snapshot(real).mode if real.exists() else 0o644
    durable.make_folder(real.parent)
    durable.save(real, text.encode("utf-8", "surrogateescape"))
    durable.set_mode(real, mode)
