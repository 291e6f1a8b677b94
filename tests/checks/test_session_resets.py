"""session-resets: when conversations start anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.check_home import look

ID = "session-resets"
CASES = {
    "at_hour: 25": ("warning", 4),
    "at_hour: -1": ("warning", 4),
    "at_hour: 4:30": ("warning", 4),
    "at_hour: '7'": ("error", 7),
    "at_hour: '25'": ("error", 4),
    "at_hour: midnight": ("error", 4),
    "at_hour: ²": ("error", 4),
    "idle_minutes: 0": ("warning", 1440),
    "idle_minutes: '90'": ("error", 90),
    "mode: idel": ("warning", "idle"),
    "mode: Daily": ("warning", "daily"),
    "mode: off": ("info", "none"),
    "mode: weekly": ("warning", None),
}


@pytest.mark.parametrize("line", CASES)
def test_not_understood(home: Path, line: str) -> None:
    """Each with its line, and with what is meant where that can be told."""
    severity, value = CASES[line]

    _, [finding] = look(home, ID, config=f"model: x\nsession_reset:\n  {line}\n")

    assert (finding.code, finding.severity) == ("CFG-SESSION-RESET", severity)
    assert finding.evidence[0].where == "config.yaml:3"
    assert finding.data.get("value") == value
    assert (finding.fix is None) == (value is None)


@pytest.mark.parametrize("mode", ["idle", "both"])
@pytest.mark.parametrize("minutes", [1, 5])
def test_forgets_after_a_short_pause(home: Path, mode: str, minutes: int) -> None:
    """A pause of a minute is normal in a chat, so the bot would forget what was said."""
    config = f"session_reset:\n  mode: {mode}\n  idle_minutes: {minutes}\n"

    _, [finding] = look(home, ID, config=config)

    assert (finding.code, finding.severity) == ("CFG-SESSION-RESET", "warning")
    assert finding.title.endswith("1 minute" if minutes == 1 else "5 minutes")
    assert finding.evidence[0].where == "config.yaml:3"
    assert (finding.fix, finding.data["value"]) == ("mend-session-reset", 1440)


@pytest.mark.parametrize(("version", "found"), [("0.16.0", 1), ("0.19.0", 0)])
def test_a_short_pause_without_a_mode(home: Path, version: str, found: int) -> None:
    """Up to 0.18.0 conversations also end after a pause by default; later never."""
    config = "session_reset:\n  idle_minutes: 1\n"

    assert len(look(home, ID, config=config, version=version)[1]) == found


def test_a_short_pause_in_a_variable(home: Path) -> None:
    """SESSION_IDLE_MINUTES overrides config.yaml; the fix removes it."""
    config = "session_reset:\n  mode: idle\n  idle_minutes: 600\n"

    _, [finding] = look(home, ID, "SESSION_IDLE_MINUTES=2\n", config)

    assert finding.evidence[0].where == ".env:1"
    assert finding.data == {"variable": "SESSION_IDLE_MINUTES"}
    assert look(home, ID, "SESSION_IDLE_MINUTES=90\n", config.replace("600", "1"))[1] == []


def test_no_mapping(home: Path) -> None:
    """One word instead of settings is ignored by Hermes."""
    _, [finding] = look(home, ID, config="session_reset: daily\n")

    assert (finding.severity, finding.fix) == ("warning", None)


def test_by_a_variable(home: Path) -> None:
    """SESSION_RESET_HOUR counts before config.yaml, so a bad hour there is not used."""
    _, [finding] = look(home, ID, "SESSION_RESET_HOUR=24\n")
    _, good = look(home, ID, "SESSION_RESET_HOUR=5\n", "session_reset:\n  at_hour: 25\n")

    assert finding.evidence[0].where == ".env:1"
    assert good == []


@pytest.mark.parametrize(("version", "found"), [("0.19.0", 1), ("0.18.2", 0)])
def test_below_gateway(home: Path, version: str, found: int) -> None:
    """Only 0.19 reads it there."""
    config = "gateway:\n  session_reset:\n    at_hour: 25\n"

    assert len(look(home, ID, config=config, version=version)[1]) == found


@pytest.mark.parametrize(
    "config",
    [
        "",
        "session_reset:\n",
        "session_reset:\n  mode: both\n  at_hour: 0\n  idle_minutes: 60\n",
        "session_reset:\n  mode: none\n  at_hour:\n",
        "session_reset:\n  mode: none\n  idle_minutes: 1\n",
        "session_reset:\n  mode: daily\n  idle_minutes: 1\n",
        "session_reset:\n  mode: idle\n  idle_minutes: 6\n",
    ],
)
def test_in_order(home: Path, config: str) -> None:
    """What Hermes understands."""
    assert look(home, ID, config=config)[1] == []
