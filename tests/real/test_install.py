"""Installed from a package index by pipx and by uv, on each Python; uninstalled without a trace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import once
from tests.helpers import package_index, support
from tests.helpers.pythons import VERSIONS, interpreter, run
from tests.real.test_wheel import wheel
from tools.share.files import files

__all__ = ["wheel"]
pytestmark = [pytest.mark.real, pytest.mark.wide]
PACKAGE = "hermes-gateway-doctor"
NAMES = ("hermes-doctor", PACKAGE)
PIPX, UV = (sys.executable, "-m", "pipx"), (sys.executable, "-m", "uv")
every_python = pytest.mark.parametrize("version", VERSIONS)
THEIRS = (
    ".cache/",
    ".local/share/uv/tools/.lock",
    ".local/share/uv/tools/.gitignore",
    ".local/share/pipx/shared/",
    ".local/share/pipx/.cache/",
    ".local/share/pipx/py/",
    ".local/share/pipx/venvs/.hermes-gateway-doctor.lock",
    ".local/state/pipx/log/",
)
"""What belongs to pipx and uv: caches, the pip that all environments share, logs, locks."""


@pytest.fixture(scope="module")
def index(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An index with our wheel and, for each Python, the packages that it needs."""
    folder = once(tmp_path_factory, "index", lambda target: _fill(target, wheel))
    with package_index.serving(folder) as address:
        yield address


def _fill(target: Path, wheel: Path) -> None:
    wheels = target / "wheels"
    wheels.mkdir()
    for version in VERSIONS:
        options = ("--quiet", "--only-binary=:all:", "--python-version", version, "--dest", wheels)
        run(sys.executable, "-m", "pip", "download", *options, wheel, cwd=target)
    package_index.write(target, wheels)


@dataclass(frozen=True)
class User:
    """A user with an empty home and a healthy Hermes."""

    home: Path
    env: dict[str, str]

    def run(self, *command: str | Path) -> str:
        """Run a command that must succeed."""
        return run(*command, cwd=self.home, env=self.env)

    def files(self) -> set[str]:
        """What is in the home, apart from empty folders and from what pipx and uv own."""
        found = (path for path in self.home.rglob("*") if path.is_symlink() or path.is_file())
        names = {str(path.relative_to(self.home)) for path in found}
        return {name for name in names if not name.startswith(THEIRS)}

    def try_it(self) -> None:
        """Run `check` and `demo` under both names; they leave nothing behind."""
        before = support.tree(self.home / ".hermes")
        for name in NAMES:
            program = self.home / ".local" / "bin" / name
            assert '"findings": []' in self.run(program, "check", "--json")
            told = self.run(program, "demo")
            assert told.count("✓") >= 4
            assert "✗ check" not in told
            assert support.tree(self.home / ".hermes") == before
        assert os.listdir(self.env["TMPDIR"]) == []

    def install_a_hook(self) -> None:
        """Install and remove what calls this environment later; it is not in a cache."""
        program = self.home / ".local" / "bin" / NAMES[1]
        before = support.contents(self.home / ".hermes")
        self.run(program, "hook", "install")
        launcher = self.home / ".local/share/hermes-doctor/bin/hermes"
        assert "-m hermes_doctor update-guard" in launcher.read_text()
        self.run(program, "hook", "remove")
        assert support.contents(self.home / ".hermes") == before


@pytest.fixture
def user(tmp_path: Path, index: str) -> User:
    """A user for whom pip, pipx and uv know only this index."""
    home = tmp_path / "user"
    support.healthy(home / ".hermes")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    env = {
        "HOME": str(home),
        "PATH": f"{home}/.local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TMPDIR": str(temporary),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": index,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_DEFAULT_INDEX": index,
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "copy",
    }
    return User(home, env)


@every_python
def test_pipx(version: str, user: User) -> None:
    """With pipx, which also links the man page and the completions."""
    python = interpreter(version)
    before = user.files()

    user.run(*PIPX, "install", "--python", python, PACKAGE)
    user.try_it()
    assert [one for one in files() if not (user.home / ".local/share" / one).is_file()] == []
    if shutil.which("man"):
        assert user.run("man", "--where", NAMES[0]).startswith(f"{user.home}/.local/")
        assert "hermes-doctor check" in user.run("man", "--pager=cat", NAMES[1])
    user.install_a_hook()
    user.run(*PIPX, "uninstall", PACKAGE)

    assert user.files() == before
    assert traces(user) == []


@every_python
def test_uv(version: str, user: User) -> None:
    """With `uv tool install`."""
    python = interpreter(version)
    before = user.files()

    user.run(*UV, "tool", "install", "--python", python, PACKAGE)
    user.try_it()
    [environment] = user.home.glob(f".local/share/uv/tools/{PACKAGE}")
    assert (environment / "share" / "hermes-doctor" / "prometheus-alerts.yml").is_file()
    user.install_a_hook()
    user.run(*UV, "tool", "uninstall", PACKAGE)

    assert user.files() == before
    assert traces(user) == []


def traces(user: User) -> list[Path]:
    """What bears our name, apart from the Hermes home and from what belongs to pipx and uv."""
    theirs = (".hermes", *THEIRS)
    found = user.home.rglob("*hermes*")
    return [path for path in found if not str(path.relative_to(user.home)).startswith(theirs)]


@every_python
def test_uvx(version: str, user: User) -> None:
    """With `uvx hermes-gateway-doctor check`, from where no service can be installed."""
    uvx = (*UV, "tool", "run", "--python", str(interpreter(version)), PACKAGE)
    before = user.files()

    assert '"findings": []' in user.run(*uvx, "check", "--json")
    assert user.run(*uvx, "undo", "--help").startswith(f"Usage: {PACKAGE} undo")
    for words in (("hook", "install"), ("watch", "install"), ("backup", "schedule", "install")):
        done = subprocess.run([*uvx, *words], env=user.env, capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "a cache that may be emptied. Install it with pipx, uv tool or pip" in done.stderr
    assert user.files() == before
    assert traces(user) == []
