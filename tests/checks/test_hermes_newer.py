"""HERMES-NEWER: one note instead of judgements that rest on knowledge about other releases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import damage, future_homes, one_check, recorded_homes, support

ID = "hermes-newer"
BY_FILE = "{} is from a newer Hermes than hermes-doctor knows"


def test_a_newer_installation(home: Path) -> None:
    """The installed release is named."""
    recorded_homes.installed(home, future_homes.VERSION)

    _, [found] = one_check.ask(ID, home)

    assert (found.code, found.severity.value, found.fix) == ("HERMES-NEWER", "info", None)
    assert found.title == f"Hermes {future_homes.VERSION} is newer than hermes-doctor knows"
    assert "`hermes-doctor learn`" in found.next
    assert found.data["suggests"][0] == "hermes-doctor learn"


def test_a_newer_configuration(home: Path) -> None:
    """The Hermes of a container is not seen here; what it wrote is."""
    support.put(home / "config.yaml", future_homes.CONFIG)

    _, [found] = one_check.ask(ID, home)

    assert found.title == BY_FILE.format("config.yaml")
    assert found.next == "Update hermes-doctor.", "there is no Hermes to ask"


def test_a_newer_database(home: Path) -> None:
    """The same by the schema of state.db."""
    damage.execute(home / "state.db", "UPDATE schema_version SET version = 99")

    _, [found] = one_check.ask(ID, home)

    assert found.title == BY_FILE.format("state.db")


@pytest.mark.parametrize("version", ["0.13.0", "0.19.0", "0.19.0.dev3", *recorded_homes.VERSIONS])
def test_a_known_one(home: Path, version: str) -> None:
    """A release that is known, or older, is judged."""
    recorded_homes.installed(home, version)

    assert one_check.ask(ID, home)[1] == []


@pytest.mark.parametrize("number", ["'38'", "-1", "99999999", "true", "[38]", "1e9"])
def test_an_odd_number(home: Path, number: str) -> None:
    """What no release writes says nothing about the release."""
    support.put(home / "config.yaml", f"_config_version: {number}\n{support.CONFIG}")
    damage.execute(home / "state.db", "UPDATE schema_version SET version = 123456789")

    assert one_check.ask(ID, home)[1] == []


def test_healthy(home: Path) -> None:
    """A home without any Hermes is judged by the newest release that is known."""
    assert one_check.ask(ID, home)[1] == []
