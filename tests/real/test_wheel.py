"""The wheel, built from the tree and installed where nothing else of the tree is."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from tests.conftest import once
from tests.helpers import support
from tests.helpers.pythons import every_python, interpreter, run
from tools.build_hook import computed_files
from tools.share.files import files

pytestmark = pytest.mark.real
TREE = Path(__file__).parents[2]
IMPORT_ALL = """
import importlib, pkgutil, hermes_doctor
for module in pkgutil.walk_packages(hermes_doctor.__path__, "hermes_doctor."):
    if not module.name.endswith("__main__") and ".lessons." not in module.name:
        importlib.import_module(module.name)
"""
"""Imports all modules but those that run in the Python of Hermes."""
HOSTILE = "import os\nos.write(2, b'HOSTILE')\nraise SystemExit('HOSTILE')\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built once a session from a copy of the tree."""
    built = once(tmp_path_factory, "wheel", _build)
    (path,) = built.glob("hermes_gateway_doctor-*.whl")
    return path


def _build(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        left = shutil.ignore_patterns(".*", "__pycache__", "tests", "dist")
        shutil.copytree(TREE, copy, ignore=left)
        options = ["--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir"]
        run(sys.executable, "-m", "pip", "wheel", ".", *options, target, cwd=copy)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with modules that bear the names of ours, and do harm when they are loaded."""
    folder = tmp_path / "hostile"
    for name in ("checks", "fixes"):
        for file in ("__init__.py", "config_yaml.py", "restore_config.py", "evil.py"):
            support.put(folder / name / file, HOSTILE)
    support.put(folder / "hermes_doctor" / "__init__.py", HOSTILE)
    return folder


def test_what_is_in_it(wheel: Path) -> None:
    """At the top the package, its dist-info and files for share/; checks and fixes inside."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    inside = {f"hermes_doctor/{path.relative_to(TREE)}" for path in sources()}
    inside |= computed_files().keys()

    tops = {name.split("/")[0] for name in names}
    start = wheel.name.split("-py3")[0]
    assert tops == {"hermes_doctor", f"{start}.dist-info", f"{start}.data"}
    shared = {path for path in names if path.startswith(f"{start}.data/")}
    alerts = "hermes-doctor/prometheus-alerts.yml"
    assert shared == {f"{start}.data/data/share/{name}" for name in (*files(), alerts)}
    assert inside <= set(names)
    assert [name for name in names if "__pycache__" in name] == []


def sources() -> list[Path]:
    """The plugins and pages of the tree."""
    patterns = ("checks/*.py", "fixes/*.py", "docs/failures/*.md")
    return [path for pattern in patterns for path in TREE.glob(pattern)]


@pytest.mark.wide
@every_python
def test_installed(version: str, wheel: Path, hostile: Path, home: Path, tmp_path: Path) -> None:
    """Installed by pip on this Python, every command works from a hostile folder."""
    python = interpreter(version)
    place = tmp_path / "venv"
    run(python, "-m", "venv", "--without-pip", place, cwd=tmp_path)
    pip = (sys.executable, "-m", "pip", "--python", place / "bin" / "python")
    run(*pip, "install", "--quiet", wheel, cwd=tmp_path)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}

    def doctor(*args: str | Path, name: str = "hermes-doctor") -> str:
        said = run(place / "bin" / name, *args, cwd=hostile, env=env)
        assert "HOSTILE" not in said
        return said

    assert doctor("--version").startswith("hermes-doctor ")
    assert '"findings": []' in doctor("check", "--json", "--home", home)
    second = "hermes-gateway-doctor"
    assert '"findings": []' in doctor("check", "--json", "--home", home, name=second)
    assert doctor("undo", "--help", name=second).startswith(f"Usage: {second} undo")
    assert "CFG-YAML" in doctor("explain", "CFG-YAML")
    listed = doctor("list")
    assert [code for code in codes() if code not in listed] == []
    told = doctor("demo")
    assert told.count("✓") >= 4
    assert "✗ check" not in told

    strict = (place / "bin" / "python", "-W", "error")  # nothing that a later Python removes
    run(*strict, "-c", IMPORT_ALL, cwd=tmp_path, env=env)
    commands: list[tuple[str | Path, ...]] = [("check", "-v"), ("check", "--json"), ("fix",)]
    commands += [("timeline",), ("config",), ("watch", "--once"), ("backup", "create")]
    for words in commands:
        run(*strict, "-m", "hermes_doctor", *words, "--home", home, cwd=tmp_path, env=env)
    run(*strict, "-m", "hermes_doctor", "demo", cwd=tmp_path, env=env)

    packages = place / "lib" / f"python{version}" / "site-packages"
    ours = [path.name for path in packages.iterdir() if path.name in ("checks", "fixes", "docs")]
    assert ours == []
    (info,) = packages.glob("hermes_gateway_doctor-*.dist-info")
    recorded = {line.split("/")[0] for line in (info / "RECORD").read_text().splitlines()}
    assert recorded == {"hermes_doctor", info.name, ".."}  # beside them: bin/ and share/


def codes() -> list[str]:
    """Every code that has a page."""
    return [path.stem for path in (TREE / "docs" / "failures").glob("*.md")]
