"""Tells a service after each round that the watch runs, so that someone notices when it does not.

Healthchecks.io, Uptime Kuma and others raise an alarm if no request comes for a while. The request
is sent beside the watch: a slow service delays no round.
"""

from __future__ import annotations

import threading

from hermes_doctor.operations.watch.web_address import WebAddress

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
