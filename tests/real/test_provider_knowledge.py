"""What is known of providers and of access, held against the releases themselves."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_doctor.knowledge.data import load_knowledge
from hermes_doctor.knowledge.releases import parse_release as numbers
from tests.conftest import need_release
from tools import lessons, releases

pytestmark = pytest.mark.real
NEWEST = releases.ALL[-1]


@pytest.mark.parametrize("version", ["0.13.0", NEWEST])
def test_providers(version: str) -> None:
    """The release says today what the file says of it."""
    need_release(version)
    here = numbers(version)
    known: dict[str, dict[str, Any]] = {
        topic: {
            name: form["is"]
            for name, forms in entries.items()
            for form in forms
            if numbers(form["from"]) <= here <= numbers(form["to"])
        }
        for topic, entries in load_knowledge("resolution").items()
    }

    assert lessons.learn(version, "resolution") == {"resolution": known}


@pytest.mark.wide
def test_access() -> None:
    """The newest release says today what the file says of it."""
    need_release(NEWEST)
    known = {
        name: {key: value for key, value in form.items() if key != "releases"}
        for name, forms in load_knowledge("access").items()
        for form in forms
        if NEWEST in form["releases"]
    }

    assert lessons.learn(NEWEST, "access") == {"access": known}


def test_every_release_is_known() -> None:
    """A release that is installed for tests is one that the resolver has rules for."""
    assert set(load_knowledge("resolution")["releases"]) >= set(releases.ALL)
