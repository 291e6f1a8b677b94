"""What tests need is named where people set up a machine, and in CI nothing is skipped for it."""

from __future__ import annotations

import re

import pytest

from tests import needing
from tests.warm import ROOT


def test_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A skip that names the package; in CI a failure."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"setfacl is not installed: .* acl"):
        needing.programs("setfacl")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"setfacl is not installed: .* acl"):
        needing.programs("setfacl")


def test_packages_are_named() -> None:
    """The one command of CONTRIBUTING.md installs them all, and CI does."""
    [command] = re.findall(
        r"^sudo apt-get install -y (.*)$", _text("CONTRIBUTING.md"), re.MULTILINE
    )
    assert set(command.split()) == set(needing.PACKAGES.values())
    script = _text(".ci/run")
    assert all(re.search(rf"[( ]{re.escape(one)}[); ]", script) for one in command.split())


def test_one_place_decides() -> None:
    """No test skips by itself for a program that is missing: CI would not notice."""
    by_hand = re.compile(r"skipif\([^)]*which\(|skip\([^)]*not installed|environ.*\"CI\"")
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path.name != "needing.py"]
    found = [path.name for path in tests if by_hand.search(path.read_text())]
    assert found == []


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
