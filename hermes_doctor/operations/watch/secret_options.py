"""Reads the options that may be secret, and sends requests to an address that is one.

Each can be given as @FILE, so that neither the process list nor a world-readable unit shows it.
"""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system.files import read
from hermes_doctor.operations.watch import secret_options

if TYPE_CHECKING:
    import urllib.request


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


LIMIT = 10.0
"""Seconds that the server may be silent; the whole request may take twice as long."""


class Failure(NamedTuple):
    """Why a request failed, and whether another try is useless."""

    why: str
    lasting: bool


class WebAddress:
    """An address given as an option, perhaps with a user and password in it."""

    def __init__(self, address: str, option: str) -> None:
        """Raise Trouble if it is no address; `option` names it in the message."""
        self._url, self._pass = secret_options.split_credentials(address, option)
        self.limit = 2 * LIMIT

    def post(self, data: bytes) -> Failure | None:
        """Post JSON; None if the server took it."""
        return self._in_time(data)

    def get(self) -> Failure | None:
        """Fetch the address; None if the server answered."""
        return self._in_time(None)

    def _in_time(self, data: bytes | None) -> Failure | None:
        """Send with a limit on the total time: a server may answer one byte at a time."""
        failures: list[Failure | None] = []
        thread = threading.Thread(target=lambda: failures.append(self._send(data)), daemon=True)
        thread.start()
        thread.join(self.limit)
        return failures[0] if failures else Failure("the server did not answer in time", False)

    def _send(self, data: bytes | None) -> Failure | None:
        import http.client
        import urllib.error
        import urllib.request

        from hermes_doctor import __version__

        headers = {"User-Agent": f"hermes-doctor/{__version__}"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        if self._pass:
            headers["Authorization"] = self._pass
        try:
            request = urllib.request.Request(self._url, data, headers)
            with _opener().open(request, timeout=LIMIT) as answer:
                answer.read(4096)
            return None
        except urllib.error.HTTPError as error:
            error.close()
            lasting = error.code < 500 and error.code not in (408, 429)
            return Failure(f"the server answered HTTP {error.code}", lasting)
        except urllib.error.URLError as error:
            why = f"the server could not be reached ({type(error.reason).__name__})"
            return Failure(why, False)
        except (OSError, ValueError, http.client.HTTPException) as error:
            why = f"the server could not be reached ({type(error).__name__})"
            return Failure(why, isinstance(error, ValueError))
        except Exception as error:  # noqa: BLE001 (a traceback would show the address)
            return Failure(f"the request failed ({type(error).__name__})", False)


def _opener() -> urllib.request.OpenerDirector:
    """An opener that follows no redirects, because the address is a secret."""
    import urllib.request

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    return urllib.request.build_opener(Stay)


OPTION, FAIL_OPTION = "--heartbeat", "--heartbeat-fail"


class HeartbeatSender:
    """Sends one request after each round."""

    def __init__(self, address: str, fail_address: str | None) -> None:
        self._good = WebAddress(address, OPTION)
        self._bad = self._good if fail_address is None else WebAddress(fail_address, FAIL_OPTION)
        self._thread: threading.Thread | None = None
        self._failure = ""

    def beat(self, *, good: bool) -> str:
        """Send a request, unless the previous one is under way.

        Return why that one failed; empty if it did not.
        """
        failure, self._failure = self._failure, ""
        if self._thread is None or not self._thread.is_alive():
            address = self._good if good else self._bad
            self._thread = threading.Thread(target=self._send, args=(address,), daemon=True)
            self._thread.start()
        return failure

    def _send(self, address: WebAddress) -> None:
        failure = address.get()
        self._failure = f"could not send the heartbeat: {failure.why}" if failure else ""

    def close(self) -> str:
        """Wait for the last request; return why it failed."""
        if self._thread is not None:
            self._thread.join(2 * self._good.limit)
        return self._failure
