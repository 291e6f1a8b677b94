"""Without the rules about a platform, the tables still say what fails there, and why."""

from __future__ import annotations

import pytest

from benchmarks import cause_families


@pytest.mark.wide
def test_all_platforms() -> None:
    """Most lines are placed, most reasons are named, and hardly ever another one."""
    judged = [
        verdict
        for place in cause_families.platforms()
        for _, verdict in cause_families.measure(place.name)
    ]
    why = [verdict.cause for verdict in judged if verdict.cause]

    assert len(judged) > 300 and len(why) > 100
    assert sum(verdict.place for verdict in judged) >= 0.6 * len(judged)
    assert sum(verdict.reported for verdict in judged) >= 0.4 * len(judged)
    assert why.count("named") >= 2 / 3 * len(why)
    assert why.count("other") <= 0.04 * len(why)


def test_one_platform() -> None:
    """The rules of the platform are really gone."""
    gone = cause_families.rules_of("dingtalk")
    judged = cause_families.measure("dingtalk")

    assert {case.rule.id for case, _ in judged} <= gone
    assert all(verdict.place for _, verdict in judged)
