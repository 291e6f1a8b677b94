"""The lines that the web server of a real release writes about rejected calls and a taken port."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_rules.folder import Folder
from hermes_doctor.diagnosis.plugins.log_rules.matcher import Matcher
from hermes_doctor.diagnosis.plugins.log_rules.rule import Rule
from hermes_doctor.hermes.logs.entry import LogEntry
from tests.conftest import need_release
from tests.helpers.rule_lines import entry
from tools import releases

pytestmark = pytest.mark.real
VERSION = "0.19.0"
SERVER = """
import asyncio, logging, sys
form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
logging.basicConfig(level=logging.INFO, format=form, stream=sys.stderr)
import uvicorn

async def app(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 4401})
    elif scope["type"] == "http":
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b""})

def server(port):
    more = {} if sys.argv[1] == "own" else {"log_config": None}
    return uvicorn.Server(uvicorn.Config(app, port=port, lifespan="off", log_level="info", **more))

UPGRADE = (
    "Upgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Version: 13\\r\\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n"
)

async def main():
    first = server(0)
    task = asyncio.create_task(first.serve())
    while not first.started:
        await asyncio.sleep(0.05)
    port = first.servers[0].sockets[0].getsockname()[1]
    for path, head in (("/api/status", "Connection: close\\r\\n"), ("/api/pty?token=x", UPGRADE)):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\\r\\nHost: x\\r\\n{head}\\r\\n".encode())
        await asyncio.wait_for(reader.read(100), 10)
        writer.close()
    try:
        await server(port).serve()
    except SystemExit:
        pass
    first.should_exit = True
    await task

asyncio.run(main())
"""


PRINTED = [f"dashboard-{name}-printed" for name in ("access-401", "ws-403", "port")]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("output", "kind", "names"),
    [
        ("own", "stderr", PRINTED),
        ("own", "journal", PRINTED),
        ("hermes", "log", ["dashboard-access-401", "dashboard-ws-403"]),
    ],
)
def test_lines(tmp_path: Path, output: str, kind: str, names: list[str]) -> None:
    """Uvicorn's own form in the output, and its lines in the form of Hermes' logs."""
    need_release(VERSION)
    python = releases.python_of(VERSION)
    command = [str(python), "-B", "-c", SERVER, output]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    matcher = Matcher(_rules())
    found = {
        match.rule.id
        for line in (done.stdout + done.stderr).splitlines()
        for match in matcher.ask(_entry(line, kind))
    }
    assert found == set(names)


def _entry(line: str, kind: str) -> LogEntry:
    return entry(line, kind) if kind == "log" else LogEntry(0.0, "INFO", "", line, kind=kind)


def _rules() -> list[Rule]:
    rules = Folder(builtin("checks") / "signatures", ours=True).rule_set.rules
    return [rule for rule in rules if rule.id.startswith("dashboard-")]
