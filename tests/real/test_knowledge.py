"""What the tool knows of the kanban schema is what the release itself says."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_doctor.knowledge import columns_of, load_knowledge
from tests.conftest import need_release
from tools import learn_kanban, releases

pytestmark = pytest.mark.real
VERSION = "0.19.0"
RELEASE = (0, 19, 0)


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    """What the release says, asked anew."""
    need_release(VERSION)
    return learn_kanban.ask(VERSION)


def test_tables_and_columns(answer: dict[str, Any]) -> None:
    """Every table and column with its declaration, and whether the release heals it."""
    known = {
        table: {
            column: {name: facts[name] for name in ("type", "notnull", "default", "key")}
            | {"healed": VERSION in facts["healed_by"]}
            for column, facts in columns_of(entry, RELEASE).items()
        }
        for table, entry in load_knowledge("schemas/kanban")["tables"].items()
    }
    told = {table: entry["columns"] for table, entry in answer["tables"].items()}

    assert known == told


def test_indexes(answer: dict[str, Any]) -> None:
    """Every index, as the release declares it."""
    known = {
        name: {fact: value for fact, value in index.items() if fact != "since"}
        for name, index in load_knowledge("schemas/kanban")["indexes"].items()
    }

    assert known == answer["indexes"]


def test_releases() -> None:
    """The knowledge covers every release that the tools can install, in their order."""
    assert load_knowledge("schemas/kanban")["releases"] == list(releases.ALL)
