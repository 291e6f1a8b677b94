"""AUTHZ-DASHBOARD: a dashboard that others can use."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.gateway_home import Scene, ask


@contextmanager
def running(home: Path, tmp_path: Path, *words: str) -> Iterator[int]:
    """A process with the command line and the environment of a dashboard."""
    script = tmp_path / "hermes"
    script.write_text("print('up', flush=True)\ninput()\n")
    process = subprocess.Popen(
        [sys.executable, str(script), "dashboard", *words],
        env={"HERMES_HOME": str(home), "PATH": os.environ["PATH"]},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
    finally:
        process.communicate(b"\n")


OPEN = ["--host", "0.0.0.0", "--insecure"]
CASES = [
    ("0.13.0", OPEN, True),
    ("0.17.0", ["--insecure", "--host=192.0.2.7"], True),
    ("0.17.0", ["--host", "127.0.0.1", "--insecure"], False),
    ("0.17.0", ["--host", "0.0.0.0"], False),
    ("0.17.0", [], False),
    ("0.18.0", OPEN, False),
]


@pytest.mark.parametrize(("version", "words", "found"), CASES)
def test_dashboard(home: Path, tmp_path: Path, version: str, words: list[str], found: bool) -> None:
    """Up to 0.17 it can be opened to others without a password."""
    with running(home, tmp_path, *words) as pid:
        _, findings = ask("open-dashboard", Scene(home, {}, version=version))

    assert [one.evidence[0].where for one in findings] == ([f"process {pid}"] if found else [])


def test_of_another_home(home: Path, tmp_path: Path) -> None:
    """Somebody else's is not this home's business."""
    with running(tmp_path / "other", tmp_path, *OPEN):
        _, findings = ask("open-dashboard", Scene(home, {}, version="0.13.0"))

    assert findings == []
