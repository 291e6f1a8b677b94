"""A service on this machine that notes which addresses were requested."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Pings:
    """What was requested so far, and how to answer."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.paths: list[str] = []
        self.answer = 200

    def url(self, path: str) -> str:
        """The address of a path."""
        return f"http://127.0.0.1:{self.port}{path}"


@contextlib.contextmanager
def pings() -> Iterator[Pings]:
    """Run the service."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            noted.paths.append(self.path)
            self.send_response(noted.answer)
            self.send_header("Content-Length", "0")
            if noted.answer == 302:
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    noted = Pings(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield noted
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
