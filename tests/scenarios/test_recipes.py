"""The recipes of CONTRIBUTING.md work exactly as printed, in a copy of the checkout.

After them, only those tests run that look at all codes, plugins or rules: no other test can notice
a new one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import support

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = ("Add a check in five minutes", "Add a log rule in two minutes")
FOLDERS = ("hermes_doctor", "checks", "fixes", "docs", "tests", "tools")
ALL_CODES = (
    *("tests/scenarios/test_contracts.py", "tests/docs/test_codes.py"),
    *("tests/scenarios/test_rule_words.py", "tests/scenarios/test_module_tests.py"),
    *("tests/diagnosis/plugins/test_index.py", "tests/diagnosis/plugins/log_rules/test_folder.py"),
)
FIX_CONTRACT = (
    "tests/scenarios/test_fix_contracts.py::"
    "test_cures_twice_equals_once_and_undo_restores_the_bytes[set-soul-aside]"
)
_STEP = re.compile(r"(?P<before>[^\n]+(?:\n[^\n]+)*)\n\n```(?P<kind>\w+)\n(?P<text>.*?)```\n", re.S)
_PATH = re.compile(r"`(?P<path>(?:checks|fixes|docs|tests)/[\w/.-]+)`")


def _is_outside(text: str, heading: re.Match[str]) -> bool:
    """Whether a heading is one of this page, not of a page that is printed in it."""
    return text.count("\n```", 0, heading.start()) % 2 == 0


def steps(recipe: str) -> list[tuple[str, str]]:
    """Return the files of a recipe with their texts; the path of a command is empty."""
    _, _, rest = TEXT.partition(f"\n## {recipe}\n")
    end = next(at.start() for at in re.finditer(r"^## ", rest, re.M) if _is_outside(rest, at))
    found = []
    for match in _STEP.finditer(rest[:end]):
        path = "" if match["kind"] == "sh" else _PATH.search(match["before"])["path"]  # type: ignore[index]
        found.append((path, match["text"]))
    return found


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the checkout with an environment like that of `make`."""
    left = shutil.ignore_patterns("__pycache__")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=left)
    for path in ROOT.glob("[!.]*"):
        if path.is_file():
            shutil.copy2(path, tmp_path)
    shutil.copy(ROOT / ".importlinter", tmp_path)
    (tmp_path / ".venv").mkdir()
    for path in Path(sys.prefix).iterdir():
        (tmp_path / ".venv" / path.name).symlink_to(path)
    for name in ("installed", "tests", "dev", "release"):  # so `make` has nothing to install
        (tmp_path / ".venv" / name).unlink(missing_ok=True)
        (tmp_path / ".venv" / name).touch()
    return tmp_path


def run(copy: Path, *command: str) -> str:
    """Run a command in the copy and return what it prints."""
    known = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "PYTHON"))}
    done = subprocess.run(command, cwd=copy, env=known, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.wide
def test_as_printed(copy: Path, home: Path) -> None:
    """The check and the rule work at once; after the last step, all tests of all codes pass."""
    tool = (".venv/bin/python", "-m", "hermes_doctor")
    run(copy, *tool, "list", "codes")  # all is computed before
    tests = []
    for recipe in RECIPES:
        for path, text in steps(recipe):
            if path:
                (copy / path).write_text(text, encoding="utf-8")
                tests += [path] if path.startswith("tests/checks/") else []
            else:
                for line in text.splitlines():
                    run(copy, *line.split())
    support.put(home / "SOUL.md", "")
    example = re.search(r"examples:\n      - '(.*)'", TEXT)
    assert example
    now = subprocess.check_output(["date", "+%F %T"], text=True).strip()
    support.put(home / "logs" / "gateway.log", f"{now}{example[1][19:]}\n")

    listed = run(copy, *tool, "check", "--home", str(home))

    assert "SOUL.md is empty" in listed
    assert "SOUL.md is too long" in listed
    for code in ("SOUL-EMPTY", "SOUL-LONG"):
        assert code in run(copy, *tool, "explain", code)
        assert code in (copy / "docs" / "codes.md").read_text()
    assert len(tests) == 1
    pytest_command = (".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    run(copy, *pytest_command, *tests, *ALL_CODES)
    run(copy, *pytest_command, FIX_CONTRACT)


def test_in_a_folder_of_ones_own(home: Path, tmp_path: Path) -> None:
    """The check and the fix also work there, under other names: found, fixed, undone."""
    for path, text in steps(RECIPES[0])[:2]:
        other = text.replace("SOUL-EMPTY", "SOUL-GONE").replace('"soul"', '"soul-gone"')
        support.put(tmp_path / path, other.replace("set-soul-aside", "bring-soul-back"), 0o644)
        (tmp_path / path).parent.chmod(0o755)
    tmp_path.chmod(0o755)
    support.put(home / "SOUL.md", "")
    sick = support.contents(home)
    options = ("--home", home, "--plugins", tmp_path)

    assert "SOUL-GONE" in support.doctor("check", "--json", *options).codes
    assert support.doctor("fix", "SOUL-GONE", "--apply", *options).code == 0
    assert support.doctor("check", "--json", *options).codes == []
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick
