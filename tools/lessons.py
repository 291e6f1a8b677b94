"""Run a script under a release's own interpreter, in a temporary home, and collect its answer."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from tools import real_home, releases

T = TypeVar("T")


def ask(version: str, lesson: Path, question: Any = None) -> Any:
    """Return a release's answer: the last line that the script prints."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        done = subprocess.run(
            [str(releases.python_of(version)), "-I", "-c", lesson.read_text()],
            env=real_home.environment(home),
            cwd=home,
            input=json.dumps(question),
            capture_output=True,
            text=True,
            timeout=300,
        )
    if done.returncode:
        raise RuntimeError(f"Hermes {version} failed: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def learn(ask: Callable[[str], T], document: Callable[[dict[str, T]], str], into: Path) -> None:
    """Ask all releases, two at a time, and write the file; or print those of named releases."""
    named = sys.argv[1:]
    versions = named or releases.ALL
    with ThreadPoolExecutor(2) as pool:
        text = document(dict(zip(versions, pool.map(ask, versions), strict=True)))
    if named:
        print(text, end="")
    else:
        into.write_text(text)
