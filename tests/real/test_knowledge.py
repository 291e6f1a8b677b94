"""What the files say of a release is what the release itself says."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.hermes.knowledge import atlas, merging
from hermes_doctor.hermes.knowledge.releases import load_knowledge, shipped_releases
from hermes_doctor.operations.learning.lessons import schema_uses
from hermes_doctor.sqlite import schema
from tests.conftest import need_release
from tools import add_release, lessons

pytestmark = pytest.mark.real
VERSION = "0.19.0"


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    """What the release says about its databases, asked anew."""
    need_release(VERSION)
    return lessons.learn(VERSION, "schemas")


@pytest.mark.sampled
@pytest.mark.parametrize("name", add_release.SCHEMAS)
def test_release(answer: dict[str, Any], name: str) -> None:
    """Every part with its declaration, what the release does without it, and in upgraded files."""
    known = merging.split(name, load_knowledge(name), shipped_releases())

    assert {part: told for part, told in answer[name].items() if told} == {
        part: told for part, told in known[VERSION].items() if told
    }


@pytest.mark.wide
def test_upgraded_files(tmp_path: Path) -> None:
    """The files that real releases leave behind have the orders that the files say."""
    path = ("0.15.0", "0.18.0", VERSION)
    for version in path:
        need_release(version)
        lessons.empty(tmp_path / version / "fresh")
        lessons.visit(version, tmp_path / version)
    walked = tmp_path / VERSION
    for version in path[:-1]:
        shutil.copytree(tmp_path / version / "fresh", walked / version)
    lessons.visit(VERSION, walked)

    for home in walked.iterdir():
        for database in schema_uses.USES:
            plan = atlas.blueprint(database, VERSION)
            if plan is not None and (home / database).exists():
                for table, columns in schema.read(home / database).tables.items():
                    assert tuple(columns) in plan.tables[table].orders, (home.name, table)


@pytest.mark.parametrize("version", ["0.13.0", VERSION])
def test_services(version: str) -> None:
    """The unit that a release writes is the one that is known of it."""
    need_release(version)

    assert lessons.learn(version, "services") == {"services": load_knowledge("services")[version]}
