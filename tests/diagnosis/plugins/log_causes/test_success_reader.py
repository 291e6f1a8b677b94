"""Lines which show that a place works again."""

from __future__ import annotations

import functools

import pytest

from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_causes import place_source
from hermes_doctor.diagnosis.plugins.log_causes.place_reader import PlaceReader
from hermes_doctor.diagnosis.plugins.log_causes.success_reader import SuccessReader
from hermes_doctor.hermes.knowledge.logging_calls import catalogue, known_releases
from tests.helpers.rule_lines import entry

SOURCE = place_source.read(builtin("checks") / "signatures")
EXAMPLES = [(sample, line) for sample in SOURCE.samples for line in sample.examples]
NEAR = [(sample, line) for sample in SOURCE.samples for line in sample.near]


@functools.cache
def reader() -> SuccessReader:
    """Return a reader of the built-in successes."""
    return SuccessReader(SOURCE.tables.successes, lambda: PlaceReader(SOURCE.tables.places))


@pytest.mark.parametrize(("sample", "line"), EXAMPLES, ids=[line[24:80] for _, line in EXAMPLES])
def test_examples(sample: place_source.SuccessSample, line: str) -> None:
    """Each is recognised, and a known release writes it."""
    found = reader().read(entry(line))

    assert sample.row.operations in [success.operations for success in found]
    said = entry(line)
    assert any(
        catalogue(version).match(said.logger, said.level, said.text) for version in known_releases()
    )


@pytest.mark.parametrize(("sample", "line"), NEAR, ids=[line[24:80] for _, line in NEAR])
def test_near_misses(sample: place_source.SuccessSample, line: str) -> None:
    """They show nothing of the kind."""
    found = reader().read(entry(line))

    assert sample.row.operations not in [success.operations for success in found]


def test_whose_success_it_is() -> None:
    """The line's own place works again, unless the row names another one."""
    [back] = reader().read(entry("2026-11-15 00:00:00,000 INFO gateway.run: ✓ signal connected"))
    assert back.place.name == "signal" and "connect" in back.operations
    told = "response ready: platform=signal chat=1 time=1.0s api_calls=1 response=2 chars"
    [said] = reader().read(entry(f"2026-11-15 00:00:00,000 INFO gateway.run: {told}"))
    assert said.place.name == "model" and "send" not in said.operations
    line = "cron.scheduler: Job 'slack': delivered to telegram:123 via live adapter"
    found = reader().read(entry(f"2026-11-15 00:00:00,000 INFO {line}"))
    assert {"telegram", "scheduled jobs"} == {success.place.name for success in found}


def test_the_level_counts() -> None:
    """A stranger's words in a line of another level show nothing."""
    line = "2026-11-15 00:00:00,000 WARNING gateway.run: ✓ signal connected"
    assert reader().read(entry(line)) == ()
