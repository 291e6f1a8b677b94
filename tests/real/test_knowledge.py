"""What the atlas says of a release is what the release itself says."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_doctor.knowledge.data import load_knowledge
from tests.conftest import need_release
from tools import learn_schemas, learn_services, schema_lesson

pytestmark = pytest.mark.real
VERSION = "0.19.0"


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    """What the release says, asked anew."""
    need_release(VERSION)
    return learn_schemas.ask(VERSION)


@pytest.mark.parametrize("database", schema_lesson.USES)
def test_release(answer: dict[str, Any], database: str) -> None:
    """Every part with its declaration, and what the release does without it."""
    stem = database.rpartition("/")[2].removesuffix(".db")
    atlas = load_knowledge(f"schemas/{stem}")
    told = learn_schemas.merge(database, {VERSION: answer}, {VERSION: {database: []}})

    assert atlas["releases"][VERSION] == told["releases"][VERSION]
    for kind in learn_schemas.KINDS:
        known = {
            name: [{**form, "releases": [VERSION]} for form in forms if VERSION in form["releases"]]
            for name, forms in atlas[kind].items()
        }
        for forms in known.values():
            for form in forms:
                if "orders" in form:
                    form["orders"] = []
        assert known == told[kind]


def test_upgrade_paths() -> None:
    """Two releases walked anew leave layouts that the atlas has."""
    for version in ("0.15.0", VERSION):
        need_release(version)
    from hermes_doctor.knowledge.atlas import blueprint

    walked = learn_schemas.upgrade_paths(("0.15.0", VERSION))

    for database, layouts in walked[VERSION].items():
        plan = blueprint(database, VERSION)
        assert plan
        for layout in layouts:
            for table, columns in layout.items():
                assert tuple(columns) in plan.tables[table].orders, (database, table)
    assert len(walked[VERSION]["state.db"]) == 2


@pytest.mark.parametrize("version", ["0.13.0", VERSION])
def test_services(version: str) -> None:
    """The unit that a release writes is the one that is known of it."""
    need_release(version)

    assert learn_services.ask(version) == load_knowledge("services")[version]
