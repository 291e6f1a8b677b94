"""Look up user accounts, and refuse to run as root what other users could have written."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix
from hermes_doctor.system.files import folder_of, user_home


class Account(NamedTuple):
    """A user of this machine, as whom a command is started."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str | None
    folder: str | None

    @property
    def is_us(self) -> bool:
        """Whether this process already runs as that user."""
        return os.geteuid() == self.uid

    def options(self) -> dict[str, object]:
        """Return the arguments that make `subprocess` start a process as that user."""
        if self.is_us:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": list(self.groups)}


def account(uid: int) -> Account:
    """Return the account of a uid; in a container it may have no name."""
    import pwd

    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        own = str(user_home()) if uid == os.geteuid() else None
        return Account(uid, uid, (uid,), None, own)
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    folder = folder_of(uid, entry.pw_dir)
    return Account(uid, entry.pw_gid, groups, entry.pw_name, folder)


def refuse_untrusted(path: Path, user: Account | None) -> None:
    """Raise CannotFix if root would run as root something that another user could have written."""
    if os.geteuid() != 0 or (user is not None and user.uid != 0):
        return
    from hermes_doctor.system.trust import why_untrusted

    if why := why_untrusted(path, strict=True):
        raise CannotFix(text("root does not run {path}: {reason}.", path=path, reason=why))


def refuse_foreign_code(python: Path, user: Account | None) -> None:
    """Raise CannotFix if this interpreter would run code of another user as root."""
    if os.geteuid() != 0 or (user is not None and user.uid != 0):
        return
    from hermes_doctor.system.foreign_code import why_foreign

    if why := why_foreign(python):
        raise CannotFix(text("root does not run the code of this Hermes: {reason}.", reason=why))
