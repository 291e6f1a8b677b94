"""What `hook status` says is covered, is; and what is not, it says."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Gateway, Trouble
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from hermes_doctor.operations.updates import chat_hook, launcher, shell_startup, update_paths
from tests.helpers import support


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The home of somebody whose shell is bash."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    return Home(support.healthy(tmp_path / ".hermes"))


def shell(home: Home) -> update_paths.UpdatePath:
    return update_paths.list_ways(home)[0]


def chats(home: Home) -> update_paths.UpdatePath:
    return update_paths.list_ways(home)[1]


def test_a_shell_is_covered_by_its_own_files(user: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by the PATH of this one alone."""
    assert not shell(user).covered
    launcher.install()
    assert not shell(user).covered
    monkeypatch.setenv("PATH", f"{launcher.folder()}:/usr/bin:/bin")
    assert shell(user).description.startswith("guarded only in this shell: ")
    shell_startup.install()
    assert shell(user).covered
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert shell(user) == update_paths.UpdatePath(
        "hermes update", True, "guarded in new shells, not in this one"
    )


def test_a_launcher_of_another_installation_is_not_called_none(
    user: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is of another interpreter."""
    launcher.install()
    chat_hook.install(user)
    monkeypatch.setattr("sys.executable", "/somewhere/else/python")
    assert "the launcher is of another version" in shell(user).description
    assert "the hook of the gateway is of another version" in chats(user).description


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_the_shells_of_root_say_nothing_of_the_owners(user: Home) -> None:
    """The home is another's."""
    launcher.install()
    shell_startup.install()
    os.chown(user.path, 12345, 12345)
    assert not shell(user).covered
    assert "uid 12345" in shell(user).description


def test_every_profile_has_its_own_hook(user: Home) -> None:
    """Its gateway loads no other; all of them see to the updates of the whole home."""
    profile = support.healthy(user.path / "profiles" / "work")
    before = support.contents(user.path)
    assert chat_hook.install(user) == [user / chat_hook.FOLDER, profile / chat_hook.FOLDER]
    assert chat_hook.install(user) == []
    assert chats(user).covered
    handler = (profile / chat_hook.FOLDER / "handler.py").read_text()
    assert f"HOME = {str(user.path)!r}" in handler
    later = support.healthy(user.path / "profiles" / "later")
    assert "the gateway of later has no hook" in chats(user).description
    assert chats(Home(profile)).covered
    assert chat_hook.install(Home(later)) == [later / chat_hook.FOLDER]
    assert chats(user).covered
    assert len(chat_hook.remove(user)) == 3
    assert support.contents(user.path).keys() - before.keys() == {
        name for name in support.contents(user.path) if name.startswith("profiles/later")
    }


def test_the_command_names_the_home(tmp_path: Path) -> None:
    """What is to be typed is for the home that was asked about."""
    home = support.healthy(tmp_path / "home")
    said = " ".join(support.doctor("hook", "status", "--home", str(home)).out.split())
    assert f"hermes-doctor hook install --home {home}" in said


@pytest.mark.parametrize("name", ["HOOK.yaml", "handler.py", "bin/hermes"])
def test_what_others_wrote_is_neither_replaced_nor_removed(user: Home, name: str) -> None:
    """Nothing is written at all then."""
    support.put(user / chat_hook.FOLDER / name, "mine\n")
    before = support.contents(user.path)
    with pytest.raises(Trouble, match="not written by hermes-doctor"):
        chat_hook.install(user)
    assert chat_hook.remove(user) == []
    assert support.contents(user.path) == before


@pytest.mark.parametrize("name", [chat_hook.FOLDER, f"{chat_hook.FOLDER}/bin"])
def test_a_link_to_another_folder_is_not_followed(user: Home, tmp_path: Path, name: str) -> None:
    """There may be a real hermes in it."""
    support.put(tmp_path / "other" / "bin" / "hermes", launcher.script())
    (user / name).parent.mkdir(parents=True)
    (user / name).symlink_to(tmp_path / "other")
    before = support.contents(tmp_path)
    with pytest.raises(Trouble, match="is a link"):
        chat_hook.install(user)
    assert chat_hook.remove(user) == []
    assert support.contents(tmp_path) == before


def test_the_launcher_of_all_homes_can_stay(user: Home, tmp_path: Path) -> None:
    """Where there is another home."""
    env = {"HOME": str(tmp_path), "SHELL": "/bin/bash"}
    other = support.healthy(tmp_path / "other")
    for home in (user.path, other):
        assert support.doctor("hook", "install", "--home", str(home), env=env).code == 0
    words = ("hook", "remove", "--no-shell", "--home", str(other))
    assert support.doctor(*words, env=env).code == 0
    assert launcher.is_installed()
    assert not (other / chat_hook.FOLDER).exists()
    assert chats(user).covered


def test_a_gateway_without_hermes_on_its_path(
    user: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it writes an answer it asks nobody, and runs itself by its interpreter."""
    chat_hook.install(user)
    support.put(tmp_path / "bin" / "hermes", "#!/bin/sh\n", 0o755)
    later = datetime.now(UTC) + timedelta(days=1)
    for folder, covered in ((tmp_path / "bin", True), (tmp_path, False)):
        with subprocess.Popen(
            ["/bin/sleep", "600"], env={"PATH": str(folder)}, stdin=subprocess.DEVNULL
        ) as child:
            while not Path(f"/proc/{child.pid}/environ").read_bytes():
                pass  # the program is being started
            found = Gateway(child.pid, later)
            monkeypatch.setattr(GatewayView, "running", lambda _, found=found: (found,))
            seen = chats(user)
            child.kill()
        assert seen.covered is covered
        assert ("its PATH has no hermes" in seen.description) is not covered


def test_what_is_in_the_shells_goes_also_without_a_home(user: Home, tmp_path: Path) -> None:
    """Hermes was removed first."""
    env = {"HOME": str(tmp_path), "SHELL": "/bin/bash", "HERMES_HOME": None}
    assert support.doctor("hook", "install", env=env).code == 0
    shutil.rmtree(user.path)
    assert support.doctor("hook", "remove", env=env).code == 0
    assert list(tmp_path.iterdir()) == []
    assert support.doctor("hook", "remove", "--no-shell", env=env).code == 2
    assert support.doctor("hook", "remove", "--home", str(user.path), env=env).code == 2
