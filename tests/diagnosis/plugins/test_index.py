"""The index of the built-in plugins says what their files say, and is not trusted blindly."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.diagnosis.plugins import built_in, declare, index, load
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.declare import Check, Fix
from hermes_doctor.diagnosis.plugins.mount import import_plugin, mount

PACKAGE = "hermes_doctor_test_index"
FILE = "gateway_running.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one built-in check."""
    copied = tmp_path / "checks"
    copied.mkdir()
    shutil.copy(builtin("checks") / FILE, copied)
    mount(copied, f"{PACKAGE}.checks")
    return copied


def listed(*files: str) -> dict[str, Any]:
    """Return the index of these built-in checks."""
    whole = json.loads(index.compute(Check))
    return {"number": len(files), "files": {name: whole["files"][name] for name in files}}


def parsed(folder: Path, content: dict[str, Any]) -> dict[str, list[Check]]:
    found = index.parse(json.dumps(content).encode(), Check, folder, f"{PACKAGE}.checks")
    assert found is not None
    return found[1]


def test_a_file_is_imported_when_its_check_is_called(folder: Path) -> None:
    """Not before."""
    [check] = parsed(folder, listed(FILE))[FILE]
    assert check.id == "gateway-running"
    assert f"{PACKAGE}.checks.gateway_running" not in sys.modules
    with pytest.raises(AttributeError):  # it asks the probes, which are none
        list(check.look(object()))  # type: ignore[arg-type]
    assert f"{PACKAGE}.checks.gateway_running" in sys.modules


def test_a_file_of_another_size_is_not_taken_from_the_index(folder: Path) -> None:
    """It was edited since."""
    with (folder / FILE).open("a") as file:
        file.write("\n")
    assert parsed(folder, listed(FILE)) == {}


@pytest.mark.parametrize("checkout", [False, True])
def test_a_file_that_declares_something_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch, checkout: bool
) -> None:
    """In an installation it is refused. In a checkout it is right, and the index is made again."""
    forgotten: list[str] = []
    file = folder / FILE
    text = file.read_text()
    assert text.count('group="gateway"') == 1
    content = listed(FILE)
    monkeypatch.setattr(built_in, "is_checkout", lambda: checkout)
    monkeypatch.setattr(built_in, "forget", forgotten.append)
    file.write_text(text.replace('group="gateway"', 'group="archive"'))
    [check] = parsed(folder, content)[FILE]
    with pytest.raises(AttributeError if checkout else ImportError):
        list(check.look(object()))  # type: ignore[arg-type]
    assert forgotten == ["checks.json"] * checkout


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b'{"files": {"gateway_running.py":3}}', b"\xff", b'{"number": 1}']
)
def test_a_damaged_index_is_ignored(folder: Path, content: bytes) -> None:
    """The files are then loaded as if there were none."""
    assert index.parse(content, Check, folder, f"{PACKAGE}.checks") is None


def test_an_entry_that_declares_nothing_hides_no_check(folder: Path) -> None:
    """Its file is loaded as if it were not in the index."""
    content = listed(FILE)
    content["files"][FILE]["declares"] = []
    assert parsed(folder, content) == {}


def lose_a_file(package: Path) -> None:
    (package / "checks" / FILE).unlink()


def lose_an_entry(package: Path) -> None:
    path = package / built_in.IN_WHEEL / "checks.json"
    content = json.loads(path.read_text())
    next(one for one in content["files"].values() if len(one["declares"]) > 1)["declares"].pop()
    path.write_text(json.dumps(content))


def lose_the_index(package: Path) -> None:
    (package / built_in.IN_WHEEL / "checks.json").unlink()


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lose_a_file, "built-in checks are missing; reinstall"),
        (lose_an_entry, "built-in checks are missing; reinstall"),
        (lose_the_index, "the index of the built-in checks is missing or damaged; reinstall"),
    ],
)
def test_a_built_in_check_that_is_gone_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None], why: str
) -> None:
    """With its file, or because the index names one check of a file that has two."""
    package = tmp_path / "hermes_doctor"
    for name in ("checks", "fixes"):
        shutil.copytree(builtin(name), package / name)
    (package / built_in.IN_WHEEL).mkdir()
    for kind, name in index.FOLDERS.items():
        (package / built_in.IN_WHEEL / f"{name}.json").write_text(index.compute(kind))
    monkeypatch.setattr(built_in, "_package", lambda: package)
    assert load.load().broken == ()
    damage(package)

    [broken] = load.load().broken

    assert broken.path == package / "checks"
    assert why in broken.why
    for name in [one for one in sys.modules if one.startswith("hermes_doctor.checks")]:
        del sys.modules[name]


def test_no_check_and_no_fix_is_imported_at_start() -> None:
    """Loading the plugins imports none of their files."""
    kinds = ("hermes_doctor.checks.", "hermes_doctor.fixes.")
    _ = load.load().fixes  # computes the index if it is old
    for name in [one for one in sys.modules if one.startswith(kinds)]:
        del sys.modules[name]
    found = load.load()
    assert len(found.checks) > 100
    assert len(found.fixes) > 50
    assert not [one for one in sys.modules if one.startswith(kinds)]


def test_every_need_is_known_and_used() -> None:
    """No check needs something unknown, and no need is left over."""
    used = {one.needs for one in load.load().checks if one.needs}
    assert all(declare.is_known(one) for one in used)
    assert set(declare.NEEDS) <= used


def test_what_the_index_says_is_what_the_files_declare() -> None:
    """A check or fix from the index equals the one that its file declares."""
    kinds: tuple[Any, ...] = (Check, Fix)
    for kind in kinds:
        found = index.read(kind)
        assert found is not None
        for name, items in found[1].items():
            package = f"hermes_doctor.{index.FOLDERS[kind]}"
            file = import_plugin(f"{package}.{name[:-3]}", patient=True)
            declared = [index.declared_fields(one) for one in index.declared_in(file, kind)]
            assert [index.declared_fields(one) for one in items] == declared
    assert os.listdir(builtin("checks")).count("index.json") == 0
