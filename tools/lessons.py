"""Asking a release: a script run under its own interpreter, in a home of its own."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tools import real_home, releases

QUIET = {"HERMES_DISABLE_LAZY_INSTALLS": "1", "PIP_NO_INDEX": "1"}


def ask(version: str, lesson: Path, question: Any = None) -> Any:
    """What a release says: the last line that the script prints."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        done = subprocess.run(
            [str(releases.python_of(version)), "-I", "-c", lesson.read_text()],
            env=real_home.environment(home) | QUIET,
            cwd=home,
            input=json.dumps(question),
            capture_output=True,
            text=True,
            timeout=300,
        )
    if done.returncode:
        raise RuntimeError(f"Hermes {version} failed: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
