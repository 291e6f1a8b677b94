"""docs/security.md names for each promise a test that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
ROWS = [
    line
    for part in PAGE.split("\n### ")[1:]
    for line in part.partition("\n## ")[0].splitlines()
    if line.startswith("| ") and not line.startswith(("| promise", "| ---"))
]


@pytest.mark.parametrize("row", ROWS)
def test_each_promise_has_a_test(row: str) -> None:
    """The file exists and defines the test, and pytest does not skip it everywhere."""
    held_by = row.split("|")[2]
    named = TEST.findall(held_by)

    assert named, "no test holds this promise"
    assert TEST.sub("", held_by).strip(" ,") == ""
    for file, function in named:
        path = ROOT / file
        assert path.is_file(), file
        defined = {
            node.name: ast.unparse(node)
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.FunctionDef)
        }
        assert function in defined, f"{file} has no {function}"
        assert function.startswith("test_")
        assert "pytest.mark.skip(" not in defined[function]
        assert "xfail" not in defined[function]


def test_there_are_promises() -> None:
    """All who are named in the first table are people or programs that the promises are about."""
    assert len(ROWS) > 20
    for who in ("operator", "bot", "stranger", "another user", "the tool as root"):
        assert f"| **{who}**" in PAGE


def test_it_can_be_found() -> None:
    """From the first page, the index, and the page on how to report."""
    assert "](docs/security.md)" in (ROOT / "README.md").read_text()
    assert "](SECURITY.md)" in (ROOT / "README.md").read_text()
    assert "](security.md)" in (ROOT / "docs" / "README.md").read_text()
    assert "](docs/security.md)" in (ROOT / "SECURITY.md").read_text()


def test_places_that_start_a_hermes() -> None:
    """The page counts the modules that get the interpreter of a Hermes to run it."""
    starts = re.compile(r"\bpython_of\(|\b_interpreter\(|RunningCommand\(")
    found = {
        str(path.relative_to(ROOT / "hermes_doctor"))
        for path in (ROOT / "hermes_doctor").rglob("*.py")
        if starts.search(path.read_text())
    }

    assert found == {
        "repair/gateway/detached.py",  # the gateway, and the function itself
        "operations/learning/isolation.py",
        "operations/learning/learn.py",
        "repair/steps/machine.py",  # `hermes gateway install`
        "operations/updates/rollback.py",  # pip
        "operations/updates/requirements.py",
        "operations/watch/channels.py",  # `hermes send`
    }
