"""The names that a plugin may import."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

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


def test_two_threads_ask_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither sees a half-filled table, even if the disk is slow."""
    reading, go_on = threading.Event(), threading.Event()

    def slowly(lines: Iterable[str]) -> Iterator[tuple[str, tuple[str, str]]]:
        for number, one in enumerate(real(lines)):
            if number == 10 and threading.current_thread() is first:
                reading.set()
                assert go_on.wait(60)
            yield one

    real, answers = api._imports_for_type_checking, []
    complete = dict(api._places())
    monkeypatch.setattr(api, "_found", {})
    monkeypatch.setattr(api, "_imports_for_type_checking", slowly)
    first = threading.Thread(target=lambda: answers.append(dict(api._places())))
    first.start()
    assert reading.wait(60)
    answers.append(dict(api._places()))
    go_on.set()
    first.join()

    assert answers == [complete, complete]
