"""Our own modules are loaded from bytecode that fits, and only from such."""

from __future__ import annotations

import importlib
import importlib.util
import os
import py_compile
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from hermes_doctor import fast_import
from hermes_doctor.fast_import import Finder

NAME = "hermes_doctor.made_for_a_test"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is mounted as a part of our package; what is loaded from it is forgotten."""
    package = ModuleType(NAME)
    package.__path__ = [str(tmp_path)]
    monkeypatch.setitem(sys.modules, NAME, package)
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith(f"{NAME}.")]:
        del sys.modules[name]


def written(path: Path, text: str, *, compiled: bool = True) -> Path:
    """A module, with its bytecode or without."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    if compiled:
        py_compile.compile(str(path), doraise=True)
    return path


def value(name: str) -> object:
    """What a module says."""
    importlib.invalidate_caches()
    return importlib.import_module(f"{NAME}.{name}").VALUE


def ours(name: str) -> bool:
    """Whether it was loaded by us."""
    return isinstance(sys.modules[f"{NAME}.{name}"].__loader__, fast_import.Made)


def test_from_its_bytecode(folder: Path) -> None:
    """A module and a package are what they would be otherwise."""
    path = written(folder / "one.py", "VALUE = 1\n")
    inside = written(folder / "many" / "__init__.py", "VALUE = 2\n")
    written(folder / "many" / "other.py", "VALUE = 3\n")

    assert (value("one"), value("many"), value("many.other")) == (1, 2, 3)
    assert ours("one") and ours("many") and ours("many.other")
    one, many = (sys.modules[f"{NAME}.{name}"] for name in ("one", "many"))
    assert (one.__file__, one.__package__) == (str(path), NAME)
    assert (many.__file__, many.__package__) == (str(inside), f"{NAME}.many")
    assert list(many.__path__) == [str(folder / "many")]
    for module in (one, many):
        assert module.__cached__ == importlib.util.cache_from_source(str(module.__file__))


@pytest.mark.parametrize("how", ["none", "older", "longer", "other", "torn", "hashed"])
def test_bytecode_that_does_not_fit(folder: Path, how: str) -> None:
    """Then Python looks for itself, and finds what the source says."""
    path = written(folder / "one.py", "VALUE = 1\n", compiled=how not in ("none", "hashed"))
    cached = Path(importlib.util.cache_from_source(str(path)))
    if how == "older":
        path.write_text("VALUE = 2\n")
        os.utime(path, (1, 1))
    elif how == "longer":
        at = path.stat().st_mtime_ns
        path.write_text("VALUE = 1 + 1\n")
        os.utime(path, ns=(at, at))
    elif how == "other":
        cached.write_bytes(b"\0\0\0\0" + cached.read_bytes()[4:])
    elif how == "torn":
        cached.write_bytes(cached.read_bytes()[:30])
    elif how == "hashed":
        mode = py_compile.PycInvalidationMode.CHECKED_HASH
        py_compile.compile(str(path), doraise=True, invalidation_mode=mode)

    if how == "torn":
        with pytest.raises(EOFError):  # which is what Python says of it
            value("one")
        return
    assert value("one") == (2 if how in ("older", "longer") else 1)
    assert not ours("one")


def test_nothing_else_is_ours(folder: Path) -> None:
    """Neither what is not there, nor what is not in our package."""
    written(folder / "one.py", "VALUE = 1\n")
    assert Finder.find_spec(f"{NAME}.missing", [str(folder)]) is None
    assert Finder.find_spec("elsewhere.one", [str(folder)]) is None
    assert Finder.find_spec("hermes_doctor", None) is None
    with pytest.raises(ModuleNotFoundError):
        value("missing")
