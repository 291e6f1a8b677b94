"""Reads the options that may be secret.

Each can be given as @FILE, so that neither the process list nor a world-readable unit shows it.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path

from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system.files import read

MOST_BYTES = 65536


def option_value(value: str, option: str) -> str:
    """The option's value, or the content of the file if it is @FILE."""
    if not value.startswith("@"):
        return value
    try:
        return read(option_file(value), MOST_BYTES)[0].decode("utf-8", "replace").strip()
    except (OSError, CouldNotLook):
        raise Trouble("Could not read the file that {option} names.", option=option) from None


def option_file(value: str) -> Path:
    return Path(value[1:]).expanduser().absolute()


def readable_by_others(values: Iterable[str | None]) -> list[Path]:
    """The files among these values that other users of the machine can read."""
    named = [option_file(value) for value in values if value and value.startswith("@")]
    return [path for path in named if path.is_file() and path.stat().st_mode & stat.S_IROTH]


def split_credentials(address: str, option: str) -> tuple[str, str | None]:
    """Split off user and password of an address and return them as an Authorization header.

    Left in, they would become part of the host name that is resolved on the network.
    """
    import re
    from urllib.parse import unquote, urlsplit

    scheme, _, rest = address.partition("://")
    if scheme not in ("https", "http"):
        raise Trouble(
            "{option} needs an address that starts with https:// or http://.", option=option
        )
    whom = re.split("[/?#]", rest, maxsplit=1)[0]
    rest = rest[len(whom) :]
    if "@" in rest:
        raise Trouble(
            "The host in {option} is not clear. Write @ after the host as %40; in a "
            "password also / as %2F, ? as %3F and # as %23.",
            option=option,
        )
    try:
        parts = urlsplit(address)
        whole = bool(parts.hostname) and parts.port != 0 and parts.netloc == whom
    except ValueError:
        whole = False
    if not whole or any(ord(sign) < 33 or ord(sign) == 127 for sign in address):
        raise Trouble(
            "The address in {option} is invalid: no host, a wrong port, or a space in it.",
            option=option,
        )
    user, at, place = whom.rpartition("@")
    if not at:
        return address, None
    import base64

    name, colon, password = user.partition(":")
    pair = f"{unquote(name)}{colon or ':'}{unquote(password)}".encode()
    return f"{scheme}://{place}{rest}", f"Basic {base64.b64encode(pair).decode()}"
