"""An environment in a cache is refused, any other is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import own_environment
from hermes_doctor.operations.updates import launcher
from tests.helpers import support


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without any cache."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return tmp_path


def test_inside_a_tagged_cache(tmp_path: Path) -> None:
    """`uvx` uses an environment in uv's cache, wherever that is."""
    support.put(tmp_path / "uv" / own_environment.TAG, "")

    assert own_environment.is_cached(tmp_path / "uv" / "archive-v0" / "abc")


@pytest.mark.parametrize("cache", [".cache", "Library/Caches"])
def test_inside_the_cache_of_the_user(tmp_path: Path, cache: str) -> None:
    """`pipx run` uses a folder there, without a tag."""
    assert own_environment.is_cached(tmp_path / cache / "pipx" / "abc")


def test_in_a_cache_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable names another folder for caches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))

    assert own_environment.is_cached(tmp_path / "kept" / "pipx" / "abc")
    assert not own_environment.is_cached(tmp_path / ".cache" / "pipx" / "abc")


def test_installed(tmp_path: Path) -> None:
    """`uv tool install` and pipx use other folders; uv tags the environment itself."""
    environment = tmp_path / ".local" / "share" / "uv" / "tools" / "hermes-gateway-doctor"
    support.put(environment / own_environment.TAG, "")

    assert not own_environment.is_cached(environment)


def test_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks are not installed from there, and one line says what to do."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".cache" / "pipx" / "abc"))

    with pytest.raises(Trouble, match=r"a cache that may be emptied\. Install it with pipx"):
        launcher.refuse_uncallable()


def test_this_one_is_installed() -> None:
    """The environment of the tests is not in a cache."""
    own_environment.refuse_cached()
    assert not own_environment.is_cached(Path(sys.prefix))
