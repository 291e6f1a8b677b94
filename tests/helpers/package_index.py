"""A package index on loopback: a folder of wheels, as PEP 503 describes it."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Write nothing about requests."""


def write(folder: Path, wheels: Path) -> None:
    """Write a page for each project, with links to its wheels."""
    projects: dict[str, list[str]] = {}
    for wheel in sorted(wheels.glob("*.whl")):
        name = re.sub(r"[-_.]+", "-", wheel.name.split("-")[0]).lower()
        projects.setdefault(name, []).append(wheel.name)
        page = folder / "simple" / name
        page.mkdir(parents=True, exist_ok=True)
        (page / wheel.name).hardlink_to(wheel)
    for name, files in projects.items():
        links = "".join(f'<a href="{file}">{file}</a><br>\n' for file in files)
        (folder / "simple" / name / "index.html").write_text(f"<!DOCTYPE html>\n{links}")


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve such a folder; the address of the index."""
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/simple/"
        finally:
            server.shutdown()
            thread.join()
