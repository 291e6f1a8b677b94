"""The changes that `tools.mutations` makes are valid Python and concern one line each."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools import mutations

MODULE = """
def decide(size: int, words: list[str]) -> bool:
    if size < 3 and not words:
        print("small")
        return False
    return size + 1 == len(words)
"""
CHANGED = {
    "    if size <= 3 and not words:",
    "    if size < 4 and not words:",
    "    if size < 3 or not words:",
    "    if size < 3 and words:",
    "        pass",
    "        return True",
    "        return None",
    "    return None",
    "    return size - 1 == len(words)",
    "    return size + 2 == len(words)",
    "    return size + 1 != len(words)",
}


def test_each_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons, conditions, numbers, returned values and calls are changed, one at a time."""
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    monkeypatch.setattr(mutations, "ROOT", tmp_path)

    made = list(mutations.mutations_of("module.py"))

    assert {mutation.after for mutation in made} == CHANGED
    for mutation in made:
        path.write_text(MODULE)
        mutation.apply(tmp_path)
        ast.parse(path.read_text())
        lines = zip(path.read_text().splitlines(), MODULE.splitlines(), strict=True)
        assert [now for now, before in lines if now != before] == [mutation.after]
