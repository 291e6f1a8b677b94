"""What a container manager is told, for each combination of what was seen."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.examination import health
from hermes_doctor.home import Home
from hermes_doctor.model import Rung, RungState
from hermes_doctor.probes.probes import Probes
from hermes_doctor.processes.runtime_files import Heartbeat

OK, FAILED, UNKNOWN = RungState.OK, RungState.FAILED, RungState.UNKNOWN
NAMES = ("process", "lock", "event loop", "platforms")
HEALTHY = dict.fromkeys(NAMES, OK)


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ask:
    """A gateway whose rungs a test sets."""
    return Ask(monkeypatch, Probes(Home(tmp_path)))


class Ask:
    """Asks a question about made-up rungs."""

    def __init__(self, patch: pytest.MonkeyPatch, probes: Probes) -> None:
        self.patch, self.probes = patch, probes

    def __call__(self, question: str, **states: RungState) -> health.Answer:
        """Answer it if the rungs with these names are not OK."""
        held = HEALTHY | {name.replace("_", " "): state for name, state in states.items()}

        def ladder(_: Probes, names: Collection[str]) -> tuple[Rung, ...]:
            return tuple(
                Rung(name, held[name], f"what of {name}") for name in held if name in names
            )

        self.patch.setattr(health, "ladder", ladder)
        return health.answer(self.probes, question)


def test_all_is_well(ask: Ask) -> None:
    """Three times yes, with what was seen."""
    assert ask("live") == (True, "live: what of process; what of lock; what of event loop")
    assert ask("started").holds
    assert ask("ready").line.endswith("; connected: what of platforms")


@pytest.mark.parametrize("name", ["process", "lock", "event_loop"])
@pytest.mark.parametrize("question", health.QUESTIONS)
def test_something_is_broken(ask: Ask, question: str, name: str) -> None:
    """Three times no, and only the reason."""
    found = ask(question, **{name: FAILED})

    assert found == (False, f"not {question}: what of {name.replace('_', ' ')}")


@pytest.mark.parametrize("state", [FAILED, UNKNOWN])
def test_an_outage_of_a_platform_restarts_nothing(ask: Ask, state: RungState) -> None:
    """The gateway is live and started; it is not ready."""
    assert ask("live", platforms=state).holds
    assert ask("started", platforms=state).holds
    assert not ask("ready", platforms=state).holds


def test_a_gateway_that_starts(ask: Ask) -> None:
    """Its process is there, and it does not hold its lock yet."""
    assert ask("live", lock=UNKNOWN).holds
    assert ask("started", lock=UNKNOWN) == (False, "not started yet: what of lock")


def test_a_gateway_in_another_container(ask: Ask) -> None:
    """Its process cannot be seen, but its event loop shows that it works."""
    for question in health.QUESTIONS:
        assert ask(question, process=UNKNOWN, lock=UNKNOWN).holds


def test_an_old_release_does_not_show_its_event_loop(ask: Ask) -> None:
    """Process and lock are enough."""
    for question in health.QUESTIONS:
        assert ask(question, event_loop=UNKNOWN).holds


def test_nothing_is_known(ask: Ask) -> None:
    """Nothing is restarted for that, and nothing is called ready."""
    unknown = {"process": UNKNOWN, "lock": UNKNOWN, "event_loop": UNKNOWN, "platforms": UNKNOWN}

    live = ask("live", **unknown)

    assert live.holds
    assert live.line.startswith("perhaps live, could not check: what of process; ")
    assert not ask("started", **unknown).holds
    assert not ask("ready", **unknown).holds


@pytest.mark.parametrize(
    ("age", "state"),
    [(0.0, OK), (60.0, OK), (-3.0, OK), (100.0, UNKNOWN), (300.0, FAILED), (-600.0, UNKNOWN)],
)
def test_a_sidecar_knows_the_event_loop_by_its_heartbeat(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, age: float, state: RungState
) -> None:
    """A young heartbeat proves it, an old one disproves it; one from the future proves nothing."""
    at = datetime.now(UTC) - timedelta(seconds=age)
    seen = ask.probes.runtime()._replace(unseen="in another container", beat=Heartbeat(1, at))
    monkeypatch.setattr(ask.probes, "runtime", lambda: seen)

    found = ask("started", process=UNKNOWN, lock=UNKNOWN, event_loop=UNKNOWN)

    assert found.holds is (state is OK)
    assert ("its last heartbeat is" in found.line) is (state is not UNKNOWN)
    live = ask("live", process=UNKNOWN, lock=UNKNOWN, event_loop=UNKNOWN)
    assert live.holds is (state is not FAILED)
