"""voice-programs: ffmpeg for voices on Telegram."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.check_home import TELEGRAM, look

ID = "voice-programs"
ALWAYS = "voice:\n  auto_tts: true\n"


@pytest.mark.parametrize(
    ("config", "severity"), [(ALWAYS, "warning"), ("tts:\n  provider: edge\n", "info")]
)
def test_missing(home: Path, tmp_path: Path, config: str, severity: str) -> None:
    """Where answers are always spoken it is a warning."""
    _, [finding] = look(
        home, ID, TELEGRAM, config, running=True, environment={"PATH": str(tmp_path)}
    )

    assert (finding.code, finding.severity) == ("PLATFORM-FFMPEG", severity)
    assert finding.evidence[0].where == "config.yaml:2"


def test_in_order(home: Path, tmp_path: Path) -> None:
    """It is on the PATH of the gateway, or not needed."""
    support.put(tmp_path / "bin" / "ffmpeg", "", 0o755)
    there = {"PATH": f"/nowhere:{tmp_path}/bin"}

    assert look(home, ID, TELEGRAM, ALWAYS, running=True, environment=there)[1] == []
    for config in ("", "tts:\n  provider: openai\n", "voice: true\ntts: edge\n"):
        path = {"PATH": str(tmp_path)}
        assert look(home, ID, TELEGRAM, config, running=True, environment=path)[1] == []
    assert look(home, ID, "", ALWAYS)[0].status == "skipped"
