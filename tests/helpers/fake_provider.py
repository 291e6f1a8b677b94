"""A local model provider that answers as a test wants, and records the requests."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PAGE = b"<!DOCTYPE html><html><body>Welcome</body></html>"
SERVED = {"id": "c1", "object": "chat.completion", "choices": [{"message": {"content": "Hi"}}]}


def error(code: str, message: str = "no", type: str = "api_error") -> dict[str, Any]:
    """Return an error in the format of most providers."""
    return {"error": {"message": message, "type": type, "code": code}}


def streamed(answer: Any) -> bytes:
    """Return an answer as the events of a stream, which Hermes asks for."""
    words = answer["choices"][0]["message"]["content"]
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    parts = [({"role": "assistant", "content": words}, None), ({}, "stop")]
    events = [
        {
            **{"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "small"},
            "choices": [{"index": 0, "delta": delta, "finish_reason": end}],
            **({"usage": usage} if end else {}),
        }
        for delta, end in parts
    ]
    lines = [*map(json.dumps, events), "[DONE]"]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


@dataclass
class Asked:
    """One received request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass
class Provider:
    """Its answer and the received requests."""

    status: int = 200
    answer: Any = None
    """JSON, or raw bytes; by default an answer that serves a message."""
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    port: int = 0
    scheme: str = "http"
    hold: threading.Event | None = None
    """It does not answer until this is set."""

    @property
    def url(self) -> str:
        """Its address, as in config.yaml."""
        return f"{self.scheme}://127.0.0.1:{self.port}/v1"


@contextmanager
def serving(
    status: int = 200,
    answer: Any = None,
    *,
    certificate: Path | None = None,
    hold: threading.Event | None = None,
    **headers: str,
) -> Iterator[Provider]:
    """Run a provider on a free port until the block ends."""
    made = Provider(status, answer, {k.replace("_", "-"): v for k, v in headers.items()})
    made.hold = hold

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                said = json.loads(body) if body else None
            except ValueError:
                said = body
            made.asked.append(Asked(self.command, self.path, dict(self.headers), said))
            if made.hold is not None:
                made.hold.wait(60)
            data = made.answer if made.answer is not None else SERVED
            if made.status == 200 and isinstance(said, dict) and said.get("stream"):
                data = streamed(data)
            data = data if isinstance(data, bytes) else json.dumps(data).encode()
            self.send_response(made.status)
            for name, value in made.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET = _serve

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        made.scheme = "https"
    made.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        if hold is not None:
            hold.set()
        server.shutdown()
        thread.join(10)
        server.server_close()
