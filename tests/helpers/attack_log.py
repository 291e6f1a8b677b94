"""A pytest plugin that writes down the outcome of each test of an attack, and its number of cases.

One line of JSON for each test, in the file that the variable names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from tests.helpers import budget

FILE = "HERMES_DOCTOR_ATTACK_LOG"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Count the cases that a test was given while it ran; one with examples has these."""
    before = budget.given
    yield
    number = budget.given - before
    settings = getattr(getattr(item, "obj", None), "_hypothesis_internal_use_settings", None)
    if settings is not None:
        number += int(settings.max_examples)
    item.user_properties.append(("cases", max(1, number)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write one line for each test that ran or could not."""
    if report.skipped or (report.when != "call" and report.passed):
        return
    cases = dict(report.user_properties).get("cases", 1)
    line = {"test": report.nodeid, "cases": cases, "held": report.passed}
    with open(os.environ[FILE], "a") as file:
        file.write(json.dumps(line) + "\n")
