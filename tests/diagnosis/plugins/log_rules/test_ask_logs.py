"""Reading the logs twice: first without lines that can only end something, then with a few."""

from __future__ import annotations

import math
import random
import time
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_rules import source
from hermes_doctor.diagnosis.plugins.log_rules.ask_logs import ask
from hermes_doctor.diagnosis.plugins.log_rules.folder import Folder
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import budget, support

pytestmark = pytest.mark.usefixtures("utc")
SIGNATURES = builtin("checks") / "signatures"
DAY = 86_400.0


def written(home: Path, dice: random.Random, texts: list[str], now: float) -> None:
    """Write lines at random times of the last day, each into the logs that Hermes uses for it."""
    logs: dict[str, list[str]] = {"agent": [], "gateway": [], "errors": []}
    chosen = dice.choices(texts, k=dice.choice((1, 2, 4, 40)))
    chosen += dice.choices(chosen, k=dice.randint(0, 40))
    ages = sorted((dice.choice((300, 3600, DAY)) * dice.random() for _ in chosen), reverse=True)
    for age, text in zip(ages, chosen, strict=True):
        clock = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now - age))
        line = f"{clock},{dice.randrange(1000):03}{text[23:]}\n"
        level, _, rest = text[24:].partition(" ")
        logger = rest.partition("] ")[2] if rest.startswith("[") else rest
        logs["agent"].append(line)
        if logger.startswith(("gateway", "hermes_plugins", "plugins.platforms")):
            logs["gateway"].append(line)
        if level not in ("DEBUG", "INFO"):
            logs["errors"].append(line)
    for name, lines in logs.items():
        support.put(home / "logs" / f"{name}.log", "".join(lines))


def test_the_skipped_lines_change_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes on is the same as if every line had been read."""
    samples = source.read(SIGNATURES).samples
    texts = [text for one in samples for text in (*one.examples, *one.near) if text[19:20] == ","]
    folder = Folder(SIGNATURES, ours=True)
    since = IncidentTracker.ends_since
    limits = []

    def noted(tracker: IncidentTracker) -> float:
        limits.append(since(tracker))
        return limits[-1]

    def going_on() -> list[tuple[object, ...]]:
        asked = ask(Probes(Home(home)), folder.rule_set.rules, folder.reader, folder.symptoms)
        return [(one.rule.id, *one[1:6]) for one in asked.incidents if one.cleared_at is None]

    def all_of_them(tracker: IncidentTracker) -> float:
        return -math.inf if since(tracker) < math.inf else math.inf

    dice = budget.chance(400)
    for _ in range(budget.tries(12, 400)):
        written(home, dice, texts, time.time())
        monkeypatch.setattr(IncidentTracker, "ends_since", noted)
        found = going_on()
        monkeypatch.setattr(IncidentTracker, "ends_since", all_of_them)
        assert found == going_on()
    assert any(-math.inf < limit < math.inf for limit in limits)
