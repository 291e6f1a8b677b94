"""What tests need is named where people set up a machine, and in CI nothing is skipped for it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import requirements
from tests.helpers.warm_server import ROOT

BY_HAND = re.compile(
    r"""skipif\([^)]*which\(|skip\([^)]*not installed|skip\(\s*f?["']there is no|importorskip"""
    r"""|environ.*"CI\""""
)
"""A skip for something that is not installed, which `needing` does not know about."""


def test_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A skip that names the package; in CI a failure."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"setfacl is not installed: .* acl"):
        requirements.programs("setfacl")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"setfacl is not installed: .* acl"):
        requirements.programs("setfacl")


def test_packages_are_named() -> None:
    """The one command of CONTRIBUTING.md installs them all, and CI does."""
    [command] = re.findall(
        r"^sudo apt-get install -y (.*)$", _text("CONTRIBUTING.md"), re.MULTILINE
    )
    assert set(command.split()) == set(requirements.PACKAGES.values())
    script = _text(".ci/run")
    assert all(re.search(rf"[( ]{re.escape(one)}[); ]", script) for one in command.split())


def test_one_place_decides() -> None:
    """No test skips by itself for a program that is missing: CI would not notice."""
    tests = {*(ROOT / "tests").rglob("*.py")} - {Path(requirements.__file__), Path(__file__)}
    found = [path.name for path in tests if BY_HAND.search(path.read_text())]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        '@pytest.mark.skipif(shutil.which("age") is None, reason="no age")',
        'pytest.skip("age is not installed")',
        'pytest.skip(f"there is no Python {version} here")',
        'pytest.skip(\n    "there is no age"\n)',
        'yaml = pytest.importorskip("yaml")',
        'if os.environ.get("CI"):',
    ],
)
def test_what_is_recognised(line: str) -> None:
    """Each of these would hide from CI that something is missing."""
    assert BY_HAND.search(line)


def test_ci_begins_with_an_empty_cache() -> None:
    """In the clone, where neither Git nor the linter looks."""
    script = _text(".ci/run")
    assert (
        script.index('rm -rf "$cache"')
        < script.index("HERMES_DOCTOR_CACHE")
        < script.index("make test")
    )
    assert 'cache="$PWD/.ci/cache"' in script
    assert "/.ci/cache/" in _text(".gitignore").splitlines()
    assert '".ci/cache"' in _text("pyproject.toml")


def _text(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize(
    ("words", "several_releases"),
    [
        (["tests/real/test_updates.py"], False),
        (["tests/real/test_updates.py", "--all"], True),
        (["tests/real/test_updates.py::test_through_every_release_and_back"], True),
    ],
)
def test_make_test_needs_one_release(words: list[str], several_releases: bool) -> None:
    """Tests that need more run with `--all` or when they are named."""
    found = _collected(*words)
    assert ("test_through_every_release_and_back" in found) is several_releases
    assert "test_a_chat_is_told_why" in found or "::" in words[0]


@pytest.mark.parametrize(
    ("words", "every_case"),
    [
        (["tests/repair/transaction"], False),
        (["tests/repair/transaction/test_recovery.py"], True),
        (["tests/repair/transaction", "--all"], False),
        (["tests/repair/transaction", "--every-case"], True),
    ],
)
def test_one_case_of_a_sampled_test(words: list[str], every_case: bool) -> None:
    """One runs; all of them run with `--every-case`, or when their file is named."""
    cases = _collected(*words).count("::test_the_next_command_says_what_happened[")
    assert (cases > 5) if every_case else (cases == 1)


def test_one_of_so_many_cases() -> None:
    """Where a test names a number, `make test` runs the cases at that distance."""
    found, every = (
        re.findall(r"test_database_pages\.py::test_each_damage\[(.+)\]", _collected(*words))
        for words in (["tests/checks"], ["tests/checks", "--every-case"])
    )
    assert found in [every[n::3] for n in range(3)]
    assert len(found) > 5


def _collected(*words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *words],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if "PYTEST" not in name},
        capture_output=True,
        text=True,
    ).stdout
