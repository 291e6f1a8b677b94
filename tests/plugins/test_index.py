"""The index of the built-in plugins says what their files say, and is not trusted blindly."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from hermes_doctor.plugins import built_in, index, load, needs
from hermes_doctor.plugins.declare import Check, Fix
from hermes_doctor.plugins.mount import mount
from tools import index_plugins

PACKAGE = "hermes_doctor_test_index"


@pytest.mark.parametrize("name", index_plugins.KINDS)
def test_it_is_up_to_date(name: str) -> None:
    """`make index` would change nothing."""
    written = (load.builtin(name) / index.INDEX).read_text(encoding="utf-8")
    assert written == index_plugins.made(name), "run `make index`"


def test_the_numbers_are_up_to_date() -> None:
    """`make index` would not change them, either."""
    written = Path(built_in.__file__).read_text(encoding="utf-8")
    assert written == index_plugins.numbers(), "run `make index`"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one built-in check and its index."""
    copied = tmp_path / "checks"
    copied.mkdir()
    source = load.builtin("checks")
    shutil.copy(source / "disk_space.py", copied)
    listed = json.loads((source / index.INDEX).read_text())
    (copied / index.INDEX).write_text(json.dumps({"disk_space.py": listed["disk_space.py"]}))
    mount(copied, f"{PACKAGE}.checks")
    return copied


def read(folder: Path) -> dict[str, list[Check]]:
    return index.read(folder, f"{PACKAGE}.checks", Check)


def test_a_file_is_imported_when_its_check_is_called(folder: Path) -> None:
    """Not before."""
    [check] = read(folder)["disk_space.py"]
    assert check.id == "disk-space"
    assert f"{PACKAGE}.checks.disk_space" not in sys.modules
    with pytest.raises(AttributeError):  # it asks the probes, which are none
        list(check.look(object()))  # type: ignore[arg-type]
    assert f"{PACKAGE}.checks.disk_space" in sys.modules


def test_a_file_of_another_size_is_not_taken_from_the_index(folder: Path) -> None:
    """It was edited since."""
    with (folder / "disk_space.py").open("a") as file:
        file.write("\n")
    assert read(folder) == {}


def test_a_file_that_declares_something_else_is_refused(folder: Path) -> None:
    """An edit of the same size is noticed when the file is imported."""
    file = folder / "disk_space.py"
    text = file.read_text()
    assert text.count('group="storage"') == 1
    file.write_text(text.replace('group="storage"', 'group="archive"'))
    [check] = read(folder)["disk_space.py"]
    with pytest.raises(ImportError, match="make index"):
        check.look(object())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b'{"disk_space.py": 3}', b"\xff", b'{"a": {}}']
)
def test_a_damaged_index_is_ignored(folder: Path, content: bytes) -> None:
    """The files are then loaded as if there were none."""
    (folder / index.INDEX).write_bytes(content)
    assert read(folder) == {}


def test_an_entry_that_declares_nothing_hides_no_check(folder: Path) -> None:
    """Its file is loaded as if it were not in the index."""
    listed = json.loads((folder / index.INDEX).read_text())
    listed["disk_space.py"]["declares"] = []
    (folder / index.INDEX).write_text(json.dumps(listed))
    assert read(folder) == {}


@pytest.mark.parametrize("lost", ["file", "entry"])
def test_a_built_in_check_that_is_gone_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """With its file, or because the index names one check of a file that has two."""
    for name in ("checks", "fixes"):
        shutil.copytree(load.builtin(name), tmp_path / name)
    folder = tmp_path / "checks"
    if lost == "file":
        (folder / "disk_space.py").unlink()
    else:
        listed = json.loads((folder / index.INDEX).read_text())
        next(one for one in listed.values() if len(one["declares"]) > 1)["declares"].pop()
        (folder / index.INDEX).write_text(json.dumps(listed))
    monkeypatch.setattr(load, "builtin", lambda name: tmp_path / name)

    [broken] = load.load().broken

    assert broken.path == folder
    assert broken.why.startswith(f"1 of the {built_in.CHECKS} built-in checks are missing")


def test_without_an_index_there_is_nothing(tmp_path: Path) -> None:
    """A folder of an operator has none."""
    assert read(tmp_path) == {}


def test_no_check_and_no_fix_is_imported_at_start() -> None:
    """Loading the plugins imports none of their files."""
    for name in [
        one
        for one in sys.modules
        if one.startswith(("hermes_doctor.checks.", "hermes_doctor.fixes."))
    ]:
        del sys.modules[name]
    found = load.load()
    assert len(found.checks) > 100
    assert len(found.fixes) > 50
    assert not [
        one
        for one in sys.modules
        if one.startswith(("hermes_doctor.checks.", "hermes_doctor.fixes."))
    ]


def test_every_need_is_known_and_used() -> None:
    """No check needs something unknown, and no need is left over."""
    used = {one.needs for one in load.load().checks if one.needs}
    assert all(needs.is_known(one) for one in used)
    assert set(needs.NEEDS) <= used


def test_fixes_keep_their_safety() -> None:
    """A fix from the index equals the one that its file declares."""
    listed = index.read(load.builtin("fixes"), "hermes_doctor.fixes", Fix)
    for some in listed.values():
        for one in some:
            assert one.safety.value in ("safe", "confirm", "manual")
