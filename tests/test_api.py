"""The names that a plugin may import."""

from __future__ import annotations

import ast
from pathlib import Path

from hermes_doctor import api


def test_names_that_are_loaded_when_used() -> None:
    """The lines of the block give the same names and places as Python's own parser."""
    tree = ast.parse(Path(api.__file__).read_text("utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    expected = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert len(expected) > 100
    assert api._places() == expected
    for name in expected:
        assert getattr(api, name) is not None
