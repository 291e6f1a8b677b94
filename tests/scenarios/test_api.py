"""The names that a plugin may import."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import hermes_doctor.api

PACKAGE = Path(hermes_doctor.api.__file__).parent
TOPICS = sorted(PACKAGE.glob("*.py"))


def imports(path: Path) -> list[ast.ImportFrom]:
    """Return the imports that a module of the interface makes to offer names to plugins."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return [
        node
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module not in (None, "__future__", "typing")
    ]


def names(path: Path) -> list[str]:
    """Return the names that a module of the interface offers."""
    return [
        alias.name
        for node in imports(path)
        for alias in node.names
        if alias.name != "import_on_first_use"
    ]


def test_every_name_is_in_one_topic() -> None:
    """No name stands for two things, and none is offered twice."""
    everything = [name for path in TOPICS for name in names(path)]

    assert len(everything) > 150
    assert sorted(everything) == sorted(set(everything))


def test_no_alias() -> None:
    """Plugins and the engine use the same name for the same thing."""
    aliases = [alias for path in TOPICS for node in imports(path) for alias in node.names]

    assert [alias.name for alias in aliases if alias.asname] == []


@pytest.mark.parametrize("path", TOPICS, ids=lambda path: path.stem)
def test_types_and_imports_agree(path: Path) -> None:
    """What type checkers see is what a plugin gets, from the same module."""
    stem = "" if path.stem == "__init__" else f".{path.stem}"
    module = importlib.import_module(f"hermes_doctor.api{stem}")
    assert sorted(module.__all__) == sorted(names(path))
    for node in imports(path):
        for alias in node.names:
            if alias.name == "import_on_first_use":
                continue
            assert getattr(module, alias.name) is defined(node.module or "", alias.name)


def defined(module: str, name: str) -> object:
    """Return what a module defines under a name, or the module of that name in a package."""
    found = getattr(importlib.import_module(module), name, None)
    return importlib.import_module(f"{module}.{name}") if found is None else found


def test_unknown_name() -> None:
    """The error says which module has no such name."""
    with pytest.raises(ImportError, match="nothing"):
        exec("from hermes_doctor.api.settings import nothing")


def test_the_first_page_names_every_topic() -> None:
    """The docstring of the interface says which topics there are."""
    stems = {path.stem for path in TOPICS} - {"__init__"}
    text = hermes_doctor.api.__doc__ or ""

    assert stems
    assert [stem for stem in stems if f"`hermes_doctor.api.{stem}`" not in text] == []
