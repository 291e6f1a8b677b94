"""Commands of the machine that only tell: without a shell, without a terminal, for a moment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from hermes_doctor.model import CouldNotLook

LIMIT = 2.0
"""Seconds that one command may take; a manager that works answers within a tenth of one."""
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "SYSTEMROOT", "DOCKER_HOST")
MOST = 1_000_000


class User(NamedTuple):
    """As whom to ask."""

    uid: int
    gid: int


class Answer(NamedTuple):
    """What a command said."""

    code: int
    out: str
    err: str


def ask(*command: str, env: Mapping[str, str] | None = None, user: User | None = None) -> Answer:
    """Run a command that changes nothing; `CouldNotLook` when it does not answer in time."""
    import subprocess

    environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environ |= {"LC_ALL": "C", "LANGUAGE": "C", "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"}
    become = {"user": user.uid, "group": user.gid, "extra_groups": [user.gid]} if user else {}
    try:
        done = subprocess.run(
            command,
            env=environ | dict(env or {}),
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT,
            **become,  # type: ignore[call-overload]
        )
    except subprocess.TimeoutExpired:
        raise CouldNotLook(f"{command[0]} did not answer within {LIMIT:g} s") from None
    except (OSError, ValueError) as error:
        raise CouldNotLook(f"{command[0]} could not be run") from error
    out, err = (text[:MOST].decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return Answer(done.returncode, out, err)
