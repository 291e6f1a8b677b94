"""Real Hermes asked whom it would let in."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.helpers.real.resolver_questions import LESSON
from tools import real_home, releases


@dataclass
class Hermes:
    """One release, loaded once, that answers about one home after another."""

    version: str
    folder: Path
    process: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        scratch = self.folder / "scratch"
        scratch.mkdir()
        sealed = {"HERMES_MANAGED_DIR": str(self.folder / "nothing")}
        self.process = subprocess.Popen(
            [str(releases.python_of(self.version)), "-I", str(LESSON)],
            env=real_home.environment(scratch) | sealed,
            cwd=scratch,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(
        self,
        home: Path,
        *people: tuple[str, str],
        codes: Sequence[tuple[str, str]] = (),
        copy: bool = True,
    ) -> dict[str, Any]:
        """What it says of these people; of a copy, since it may write."""
        if copy:
            place = Path(tempfile.mkdtemp(dir=self.folder)) / "home"
            shutil.copytree(home, place)
        else:
            place = home
        return self._said({"home": str(place), "people": people, "codes": codes})

    def starts_api(self, home: Path) -> bool | None:
        """Whether its API server would listen with these settings; None: it cannot be asked."""
        starts: bool | None = self._said({"home": str(home), "api_server": True})["starts"]
        return starts

    def _said(self, asked: dict[str, Any]) -> dict[str, Any]:
        asked["environment"] = {}
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("{"):
                answer: dict[str, Any] = json.loads(line)
                assert "crash" not in answer, answer
                return answer
        raise AssertionError(f"Hermes {self.version} ended")

    def close(self) -> None:
        """Let it end."""
        self.process.communicate()
