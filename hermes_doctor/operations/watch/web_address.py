"""Sends requests to an address that is a secret: no error and no redirect shows it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.operations.watch.secret_options import split_credentials

if TYPE_CHECKING:
    import urllib.request

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
        self._url, self._pass = split_credentials(address, option)
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
