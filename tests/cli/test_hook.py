"""`hook remove` leaves every folder that was there before `hook install`, with its mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.operations.updates import chat_hook, launcher, shell_startup
from tests.helpers import support


def folders(root: Path) -> dict[str, int]:
    """Every folder with its mode."""
    return {
        str(path.relative_to(root)): path.stat().st_mode
        for path in sorted(root.rglob("*"))
        if path.is_dir()
    }


def there_and_back(place: Path) -> None:
    """Install, install again, remove."""
    home = Home(place)
    assert chat_hook.install(home)
    assert chat_hook.install(home) == []
    assert chat_hook.is_installed(home, home)
    assert chat_hook.remove(home)


def test_an_empty_folder_of_before_stays(home: Path) -> None:
    """`hooks/` was there, empty."""
    (home / "hooks").mkdir(mode=0o750)
    before = folders(home)

    there_and_back(home)

    assert folders(home) == before


def test_a_folder_that_was_made_goes(home: Path) -> None:
    """There was none."""
    before = support.contents(home)

    there_and_back(home)

    assert support.contents(home) == before
    assert not (home / "hooks").exists()


@pytest.mark.parametrize("when", ["before", "after"])
def test_other_hooks_stay(home: Path, when: str) -> None:
    """Whatever else is in the folder keeps it."""
    if when == "before":
        support.put(home / "hooks" / "mine" / "HOOK.yaml", "name: mine\n")
    chat_hook.install(Home(home))
    support.put(home / "hooks" / "mine" / "HOOK.yaml", "name: mine\n")

    chat_hook.remove(Home(home))

    assert [path.name for path in (home / "hooks").iterdir()] == ["mine"]


def test_profiles_keep_their_folders(home: Path) -> None:
    """Each home by itself."""
    support.put(home / "profiles" / "a" / "config.yaml", "model: x\n")
    support.put(home / "profiles" / "b" / "config.yaml", "model: x\n")
    (home / "profiles" / "a" / "hooks").mkdir()
    before = folders(home)

    there_and_back(home)

    assert folders(home) == before


def test_an_older_installation_leaves_the_folder(home: Path) -> None:
    """It did not write down whether it made the folder."""
    chat_hook.install(Home(home))
    path = home / "hooks" / "hermes-doctor" / "bin" / launcher.NAME
    text = path.read_text().replace("# Folders made for it: 3", "# Folders made for it: 0")
    support.put(path, text, 0o755)

    chat_hook.remove(Home(home))

    assert [path.name for path in (home / "hooks").iterdir()] == []


@pytest.mark.parametrize("there", ["", "fish", "fish/conf.d"])
def test_folders_of_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str) -> None:
    """The folder for the file of a shell goes only if it was made for it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    (tmp_path / "config" / there).mkdir(parents=True)
    before = folders(tmp_path)

    file = tmp_path / "config" / "fish" / "conf.d" / "hermes-doctor.fish"
    assert shell_startup.install() == [file]
    assert shell_startup.install() == []
    assert shell_startup.doubts() == []
    assert shell_startup.remove() == [file]

    assert folders(tmp_path) == before


def test_dry_run_writes_nothing_and_names_every_file(tmp_path: Path) -> None:
    """What it names is what the installation then writes; after that there is nothing to do."""
    home = support.healthy(tmp_path / "home")
    support.put(tmp_path / ".bashrc", "# mine\n")
    env = {"HOME": str(tmp_path), "SHELL": "/bin/bash"}
    before = support.tree(tmp_path)

    planned = support.doctor("hook", "install", "--dry-run", "--home", home, env=env)
    untouched = support.tree(tmp_path) == before
    done = support.doctor("hook", "install", "--home", home, env=env)
    again = support.doctor("hook", "install", "--dry-run", "--home", home, env=env)

    assert (planned.code, done.code, again.code) == (0, 0, 0), planned.err + done.err
    assert untouched
    named = [line[2:] for line in planned.out.splitlines() if line.startswith("→ ")]
    assert named == [line[2:] for line in done.out.splitlines() if line.startswith("✓ ")]
    assert len(named) == 4
    assert planned.out.endswith("Nothing was written.\n")
    assert again.out.startswith("✓ Already installed.")
