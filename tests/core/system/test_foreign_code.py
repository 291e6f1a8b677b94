"""Root finds code of other users in an environment without running its Python."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hermes_doctor.core.system import foreign_code
from hermes_doctor.core.system.foreign_code import why_foreign
from tests.helpers import fake_environments, support

OTHER = 54321
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture
def packages(home: Path) -> Path:
    """The packages of an environment that is root's alone."""
    return fake_environments.packages(fake_environments.make(home))


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder of another user with a module."""
    support.put(tmp_path / "theirs" / "module.py", "raise SystemExit(9)\n")
    for path in (tmp_path / "theirs", tmp_path / "theirs" / "module.py"):
        os.chown(path, OTHER, OTHER)
    return tmp_path / "theirs"


def why(packages: Path) -> str:
    """Return the reason for the interpreter of these packages; empty if there is none."""
    return str(why_foreign(packages.parents[2] / "bin" / "python") or "")


def test_an_environment_of_root(packages: Path) -> None:
    """It may run, also with files that name folders of root or folders that do not exist."""
    support.put(
        packages / "a.pth",
        "# comment\n\nimport sys; sys.x = '/usr/lib/python3'\n/usr/lib/python3\n",
    )
    support.put(packages / "b.pth", f"{packages.parent}/nothing\n../plat\n")

    assert why(packages) == ""


@pytest.mark.parametrize(
    "line",
    [
        "{theirs}",
        "{theirs}/later/module",
        "import sys; sys.path.insert(0, '{theirs}')",
        "\ufeff{theirs}",
        "../" * 20 + ".{theirs}",
    ],
)
def test_path_files(packages: Path, theirs: Path, line: str) -> None:
    """Also a folder that its owner could still create."""
    support.put(packages / "a.pth", line.format(theirs=theirs) + "\n")

    assert f"uid {OTHER}" in why(packages)


def test_a_folder_whose_name_is_not_utf8(packages: Path, theirs: Path) -> None:
    """Its name is compared byte by byte."""
    odd = theirs.rename(theirs.with_name(os.fsdecode(b"th\xe9irs")))
    support.put(packages / "a.pth", os.fsencode(odd) + b"\n")

    assert f"uid {OTHER}" in why(packages)


def test_a_path_file_that_is_too_large(packages: Path, theirs: Path) -> None:
    """What is behind the part that is read could name anything."""
    support.put(packages / "a.pth", "# nothing\n" * 200_000 + f"{theirs}\n")

    assert "a.pth is too large to check" in why(packages)


def test_the_path_file_of_the_interpreter(packages: Path, theirs: Path) -> None:
    """It takes the place of all other folders."""
    support.put(packages.parents[2] / "bin" / "python._pth", f"{theirs}\nimport site\n")

    assert f"uid {OTHER}" in why(packages)


def test_an_egg_link(packages: Path, theirs: Path) -> None:
    """It names the checkout in its first line."""
    support.put(packages / "hermes.egg-link", f"{theirs}\n.\n")

    assert f"uid {OTHER}" in why(packages)


def test_the_finder_of_an_editable_installation(packages: Path, theirs: Path) -> None:
    """Its table of modules names the folders."""
    finder = f"MAPPING = {{'module': '{theirs}/module.py'}}\ndef install(): pass\n"
    support.put(packages / "__editable___a_finder.py", finder)
    support.put(
        packages / "__editable__.a.pth", "import __editable___a_finder; __editable___a_finder.x()\n"
    )

    assert f"{theirs}" in why(packages)


@pytest.mark.parametrize("name", ["module.py", "deep/package/module.so", "__pycache__/a.pyc"])
def test_one_file_of_another_user(packages: Path, name: str) -> None:
    """Wherever it is."""
    os.chown(support.put(packages / name, ""), OTHER, OTHER)

    assert name in why(packages)


@pytest.mark.parametrize("mode", [0o666, 0o664])
def test_a_file_that_others_may_write(packages: Path, mode: int) -> None:
    """The owner does not matter then."""
    support.put(packages / "module.py", "").chmod(mode)

    assert "other users may write" in why(packages)


@pytest.mark.needs("setfacl")
def test_an_access_list(packages: Path) -> None:
    """One more user who may write, without any other sign of him."""
    path = support.put(packages / "module.py", "")
    subprocess.run(["setfacl", "-m", f"u:{OTHER}:rw", str(path)], check=True)

    assert "other users may write" in why(packages)


def test_a_folder_behind_a_symlink(packages: Path, theirs: Path) -> None:
    """It is followed as Python follows it."""
    (packages / "module").symlink_to(theirs)

    assert f"uid {OTHER}" in why(packages)


def test_the_settings_of_the_environment(packages: Path, tmp_path: Path) -> None:
    """`pyvenv.cfg` names the folder of the interpreter, and so the standard library."""
    settings = packages.parents[2] / "pyvenv.cfg"
    library = tmp_path / "base" / "lib" / "python3.11" / "site.py"
    support.put(library, "")
    (tmp_path / "base" / "bin").mkdir()
    settings.write_text(f"home = {tmp_path}/base/bin\n")
    assert why(packages) == ""

    os.chown(library, OTHER, OTHER)
    assert str(library) in why(packages)


def test_packages_of_the_whole_system(packages: Path, tmp_path: Path) -> None:
    """They count only if the environment uses them."""
    settings = packages.parents[2] / "pyvenv.cfg"
    module = tmp_path / "base" / "lib" / "python3.11" / "site-packages" / "module.py"
    os.chown(support.put(module, ""), OTHER, OTHER)
    (tmp_path / "base" / "bin").mkdir()
    settings.write_text(f"home = {tmp_path}/base/bin\n")
    assert why(packages) == ""

    settings.write_text(f"home = {tmp_path}/base/bin\ninclude-system-site-packages = true\n")
    assert str(module) in why(packages)


def test_too_many_files(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be checked completely is refused."""
    monkeypatch.setattr(foreign_code, "MOST_FILES", 3)

    assert "too many files" in why(packages)
