"""Verifies a switch: Hermes resolves what was planned, and the provider answers a test request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hermes_doctor.model import CouldNotLook
from hermes_doctor.provider_switch.plan import SwitchPlan, difference

if TYPE_CHECKING:
    from hermes_doctor.probes.network.provider_trial import Trial
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.records.journal import ItemRecord

_SAID = {
    "key": "the provider rejects the key",
    "money": "the account has no credit left",
    "limit": "too many requests",
    "refused": "the provider rejects the request",
    "model": "the provider does not serve the model",
    "address": "no API at this address; most addresses end with /v1",
    "down": "the provider fails",
    "unsure": "could not check whether it works; to switch anyway: add --no-test",
}


class Proof:
    """Verifies one run; `test_result` is the result of the test request."""

    def __init__(
        self, switch: SwitchPlan, make_probes: Callable[[], Probes], *, tested: bool
    ) -> None:
        self.switch = switch
        self.make_probes = make_probes
        self.tested = tested
        self.test_result = "not tested"

    def __call__(self, records: Sequence[ItemRecord]) -> list[str | None]:
        """What is wrong, for each item of the run; a switch has one item."""
        return [self._wrong() for _ in records]

    def _wrong(self) -> str | None:
        try:
            found = self.make_probes().resolved()
        except CouldNotLook as doubt:
            return str(doubt)
        differs = difference(found.main, self.switch.after)
        if differs:
            return f"Hermes would not use the planned settings: {differs}"
        if not self.tested:
            return None
        from hermes_doctor.probes.network import provider_trial, request
        from hermes_doctor.settings.variables import Settings

        asked = [one for one in request.requests(found) if one.route.path == "model"]
        if not asked:
            self.test_result = "not tested: the provider needs more than a key"
            return None
        settings = Settings(found.world.variables, frozenset(), found.world.raw, ())
        [answer] = provider_trial.ask_all(asked[:1], settings)
        self.test_result = self._words(answer)
        return None if answer.is_fine else f"the test request failed: {self.test_result}"

    def _words(self, answer: Trial) -> str:
        if answer.verdict is None:
            stage = "" if answer.failed == "answer" else f"{answer.failed}: "
            return f"{stage}{answer.why}"
        if answer.is_fine:
            return f"it answers in {answer.seconds:.1f} s"
        said = f", {answer.verdict.message}" if answer.verdict.message else ""
        return f"{_SAID[answer.verdict.kind]} (HTTP {answer.verdict.status}{said})"
