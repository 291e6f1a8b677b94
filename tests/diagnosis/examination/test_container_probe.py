"""The answers of `probe` for each combination of working, broken and unknown parts."""

from __future__ import annotations

import time
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Gateway, Rung, RungState
from hermes_doctor.diagnosis.examination import container_probe
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.probes.pulse import Pulse
from hermes_doctor.hermes.processes.runtime_files import Heartbeat, Owner

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

    def __call__(self, question: str, **states: RungState) -> container_probe.Answer:
        """Answer it if the rungs with these names are not OK."""
        held = HEALTHY | {name.replace("_", " "): state for name, state in states.items()}

        def ladder(_: Probes, names: Collection[str]) -> tuple[Rung, ...]:
            return tuple(
                Rung(name, held[name], f"what of {name}") for name in held if name in names
            )

        self.patch.setattr(container_probe, "ladder", ladder)
        return container_probe.answer(self.probes, question)


def test_all_is_well(ask: Ask) -> None:
    """Three times yes, with what was seen."""
    assert ask("live") == (True, "live: what of process; what of lock; what of event loop")
    assert ask("started").yes
    assert ask("ready").line.endswith("; connected: what of platforms")


@pytest.mark.parametrize("name", ["process", "lock", "event_loop"])
@pytest.mark.parametrize("question", container_probe.QUESTIONS)
def test_something_is_broken(ask: Ask, question: str, name: str) -> None:
    """Three times no, and only the reason."""
    found = ask(question, **{name: FAILED})

    assert found == (False, f"not {question}: what of {name.replace('_', ' ')}")


@pytest.mark.parametrize("state", [FAILED, UNKNOWN])
def test_an_outage_of_a_platform_restarts_nothing(ask: Ask, state: RungState) -> None:
    """The gateway is live and started; it is not ready."""
    assert ask("live", platforms=state).yes
    assert ask("started", platforms=state).yes
    assert not ask("ready", platforms=state).yes


def test_a_gateway_that_starts(ask: Ask) -> None:
    """Its process is there, and it does not hold its lock yet."""
    assert ask("live", lock=UNKNOWN).yes
    assert ask("started", lock=UNKNOWN) == (False, "not started yet: what of lock")


def test_a_gateway_in_another_container(ask: Ask) -> None:
    """Its process cannot be seen, but its event loop shows that it works."""
    for question in container_probe.QUESTIONS:
        assert ask(question, process=UNKNOWN, lock=UNKNOWN).yes


def test_an_old_release_does_not_show_its_event_loop(ask: Ask) -> None:
    """Process and lock are enough."""
    for question in container_probe.QUESTIONS:
        assert ask(question, event_loop=UNKNOWN).yes


def test_nothing_is_known(ask: Ask) -> None:
    """Nothing is restarted for that, and nothing is called ready."""
    unknown = {"process": UNKNOWN, "lock": UNKNOWN, "event_loop": UNKNOWN, "platforms": UNKNOWN}

    live = ask("live", **unknown)

    assert live.yes
    assert live.line.startswith("perhaps live, could not check: what of process; ")
    assert not ask("started", **unknown).yes
    assert not ask("ready", **unknown).yes


def beating(ask: Ask, monkeypatch: pytest.MonkeyPatch, **runtime: Any) -> None:
    """Let the gateway run in another container; `runtime` is what its files say."""
    owner = ask.probes.gateway.runtime()._replace(unseen="in another container", state="running")
    seen = owner._replace(**{"state_owner": Owner(7, None), **runtime})
    monkeypatch.setattr(ask.probes.gateway, "runtime", lambda: seen)


UNSEEN = {"process": UNKNOWN, "lock": UNKNOWN, "event_loop": UNKNOWN}


@pytest.mark.parametrize(
    ("age", "state"),
    [(0.0, OK), (60.0, OK), (-3.0, OK), (100.0, UNKNOWN), (300.0, FAILED), (-600.0, UNKNOWN)],
)
def test_a_sidecar_knows_the_event_loop_by_its_heartbeat(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, age: float, state: RungState
) -> None:
    """A young heartbeat proves it, an old one disproves it; one from the future proves nothing."""
    at = datetime.now(UTC) - timedelta(seconds=age)
    beating(ask, monkeypatch, beat=Heartbeat(7, at))

    found = ask("started", **UNSEEN)

    assert found.yes is (state is OK)
    assert ("its last heartbeat is" in found.line) is (state is not UNKNOWN)
    assert ask("live", **UNSEEN).yes is (state is not FAILED)


def test_a_heartbeat_after_a_sleep_of_the_machine(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock that stops with the machine counts, if it says less."""
    at = datetime.now(UTC) - timedelta(hours=3)
    beating(ask, monkeypatch, beat=Heartbeat(7, at, time.monotonic() - 20))

    assert ask("live", **UNSEEN).line == "live: its last heartbeat is 20 s old"


@pytest.mark.parametrize(
    "runtime", [{"state": "starting"}, {"state_owner": Owner(8, None)}, {"state_owner": None}]
)
def test_a_heartbeat_of_an_earlier_life(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, runtime: dict[str, Any]
) -> None:
    """It says nothing about the gateway that runs now."""
    old = Heartbeat(7, datetime.now(UTC) - timedelta(hours=3))
    beating(ask, monkeypatch, **{"beat": old, **runtime})

    assert ask("live", **UNSEEN).line.startswith("perhaps live")
    assert not ask("started", **UNSEEN).yes


def test_long_work_looks_like_a_stuck_loop_for_a_moment(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what is certain restarts a gateway."""
    for certain in (False, True):
        pulse = Pulse(7, False, "its API server did not answer for 4 s", certain=certain)
        monkeypatch.setattr(ask.probes.health, "pulse", lambda pulse=pulse: pulse)
        assert ask("live", event_loop=FAILED).yes is not certain
        assert not ask("ready", event_loop=FAILED).yes


def test_a_start_is_not_finished(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is taken long before the platforms are connected."""
    seen = ask.probes.gateway.runtime()._replace(state="starting")
    monkeypatch.setattr(ask.probes.gateway, "runtime", lambda: seen)

    assert ask("live").yes
    assert ask("started") == (False, "not started yet: it is still starting")
    assert not ask("ready").yes


def test_a_profile_that_the_root_serves(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The gateway of the root home is asked."""
    asked = []
    profile = Probes(Home(tmp_path / "profiles" / "second"))
    monkeypatch.setattr(profile.gateway, "served_by", lambda: Gateway(7, datetime.now(UTC)))

    def ladder(probes: Probes, _: Collection[str]) -> tuple[Rung, ...]:
        asked.append(probes.home.path)
        return tuple(Rung(name, OK, "") for name in NAMES)

    monkeypatch.setattr(container_probe, "ladder", ladder)

    assert container_probe.answer(profile, "started").yes
    assert asked == [tmp_path]
