"""Create the home of a bot that has worked for a month: sessions, logs and settings.

A real release creates the home and the databases. The logs are written here, in that release's
words, in the sizes at which Hermes rotates them.
"""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import salvage
from tools import real_home

MESSAGES = 8_500
"""So many messages fill a state.db of about 40 MB."""
MONTH = 30 * 86_400.0
ROTATED_AT = {"agent.log": (5 << 20, 3), "gateway.log": (5 << 20, 3), "errors.log": (200 << 10, 0)}
"""The size of each log and how many older parts there are; a healthy bot has few warnings."""
CONFIG = """\
model:
  default: gpt-4o
  provider: custom
  base_url: http://127.0.0.1:9/v1
platforms:
  api_server:
    enabled: true
"""
ENV = "OPENAI_API_KEY=sk-benchmark-0123456789abcdef\nAPI_SERVER_KEY=benchmark-0123456789abcdef\n"
_TURN = (
    "INFO gateway.run: inbound message: platform=api_server user=op chat=c{n} msg='hello {n}'",
    "INFO [{session}] agent.turn_context: conversation turn: session={session} model=gpt-4o "
    "provider=custom platform=api_server history={n}",
    "INFO [{session}] run_agent: API call #1: model=gpt-4o provider=custom in=1200 out=80",
    "INFO [{session}] agent.tool_executor: tool terminal completed (0.12s, 420 chars)",
    "INFO [{session}] run_agent: Turn ended: reason=text_response(stop) model=gpt-4o api_calls=2",
    "INFO gateway.run: response ready: platform=api_server chat=c{n} time=3.1s api_calls=2",
    "INFO gateway.platforms.base: [Api_Server] Sending response (412 chars) to c{n}",
)
_WARNINGS = (
    "WARNING [{session}] agent.tool_executor: Tool terminal returned error (0.10s): exit code {n}",
    "WARNING gateway.platforms.api_server: [Api_Server] request {n} was cancelled by the client",
    "WARNING [{session}] agent.auxiliary_client: title generation took {n} s",
    "WARNING [{session}] tools.file_tools: read of file {n} was truncated",
)


def make(home: Path, release: str) -> Path:
    """Fill an empty folder."""
    real_home.make(release, home)
    shutil.copyfile(salvage.fixture(MESSAGES) / "state.db", home / "state.db")
    (home / "config.yaml").write_text(CONFIG)
    (home / ".env").write_text(ENV)
    (home / ".env").chmod(0o600)
    logs = home / "logs"
    logs.mkdir(exist_ok=True)
    now = time.time() - 60
    for name, (size, parts) in ROTATED_AT.items():
        _write(logs / name, now, size, parts, warnings_only=name == "errors.log")
    return home


def _write(log: Path, now: float, size: int, parts: int, *, warnings_only: bool) -> None:
    """Write a month of lines: full older parts, and a half full newest one."""
    sizes = [size // 2, *[size - 1000] * parts]
    for number, length in enumerate(sizes):
        path = log if number == 0 else log.with_name(f"{log.name}.{number}")
        span = MONTH / len(sizes)
        end = now - number * span
        path.write_text(_lines(end - span, end, length, warnings_only=warnings_only))
        os.utime(path, (end, end))


def _lines(start: float, end: float, length: int, *, warnings_only: bool) -> str:
    texts = _WARNINGS if warnings_only else _TURN
    count = length // 150 // len(texts) * len(texts)  # the last turn is complete
    said = []
    for number in range(count):
        at = datetime.fromtimestamp(start + (end - start) * (number + 1) / count, UTC)
        session = f"{at:%Y%m%d}_{number // 50:06}_df794ef7"
        text = texts[number % len(texts)].format(session=session, n=number // len(texts))
        said.append(f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03} {text}\n")
    return "".join(said)
