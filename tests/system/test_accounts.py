"""What root runs as root: nothing that another user could have put there or named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hermes_doctor.gateway import manager_commands
from hermes_doctor.gateway.detached import Detached, python_of
from hermes_doctor.gateway.process_handle import read_origin
from hermes_doctor.home import Home, find
from hermes_doctor.installation.find import Installation, find_installation as installed
from hermes_doctor.model import CannotFix, Gateway
from hermes_doctor.system import accounts
from tests.helpers import crash_server, support
from tests.helpers.crash_server import STRANGER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs things for others")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of root's that everybody can get to."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder).resolve()


@pytest.fixture
def theirs(place: Path) -> Path:
    """A folder of another user's, with an environment in which a program tells who runs it."""
    folder = place / "user"
    environment(folder / "env", place / "told")
    crash_server.chown(folder)
    return folder


def environment(folder: Path, told: Path) -> Path:
    """Something that looks like an installation of Hermes."""
    (folder / "lib/python3.11/site-packages/hermes_agent-0.19.0.dist-info").mkdir(parents=True)
    support.put(folder / "bin" / "python", f"#!/bin/sh\nid -u >{told}\n", 0o755)
    return folder


def noted(home: Path, env: Path, uid: int) -> None:
    """The notes of a gateway that ran from an environment."""
    said = {"pid": 2**22, "kind": "hermes-gateway", "argv": [f"{env}/bin/hermes", "gateway", "run"]}
    for name in ("gateway.pid", "gateway_state.json"):
        os.chown(support.put(home / name, json.dumps(said), 0o644), uid, uid)


def nobody(home: Path) -> Installation | None:
    """The installation that is found while nothing runs."""
    return installed(Home(home), list)


# -- a folder in which anybody may put files ------------------------------------------------------


@pytest.fixture
def sticky(place: Path, theirs: Path) -> Path:
    """One of root's, as /tmp is, to which a user's home leads; his notes lie in it."""
    folder = place / "sticky"
    folder.mkdir()
    folder.chmod(0o1777)
    (theirs / ".hermes").symlink_to(folder)
    os.lchown(theirs / ".hermes", STRANGER, STRANGER)
    noted(folder, theirs / "env", STRANGER)
    return folder


def test_sticky_is_nobodys_home(sticky: Path, theirs: Path, place: Path) -> None:
    """Root runs nothing there, changes nothing there, and says why in one line."""
    before = sorted(os.listdir(sticky))

    done = support.doctor("fix", "--apply", "--yes", "--home", theirs / ".hermes")

    assert not (place / "told").exists(), "root ran what another user named"
    assert done.code != 0 and "Traceback" not in done.err
    assert sorted(os.listdir(sticky)) == before
    with pytest.raises(CannotFix, match="Other users can write"):
        Detached(Home(sticky), nobody(sticky))


def test_notes_of_others(sticky: Path, theirs: Path) -> None:
    """A file in the home that names a program counts only from its owner, or root."""
    assert getattr(nobody(sticky), "where", None) != theirs / "env"
    noted(sticky, theirs / "env", 0)
    found = nobody(sticky)
    assert found is not None and found.where == theirs / "env"


def test_notes_by_a_link_of_others(sticky: Path, theirs: Path, place: Path) -> None:
    """Nor does a link of a stranger's to a file of root's."""
    noted(place, theirs / "env", 0)
    for name in ("gateway.pid", "gateway_state.json"):
        (sticky / name).unlink()
        (sticky / name).symlink_to(place / name)
        os.lchown(sticky / name, STRANGER, STRANGER)
    assert getattr(nobody(sticky), "where", None) != theirs / "env"


def test_a_link_of_others_to_a_home_of_root(place: Path, theirs: Path) -> None:
    """Whoever owns the link decides which home it is, so it is not root's to act in."""
    home = support.healthy(place / "home")
    (theirs / ".hermes").symlink_to(home)
    os.lchown(theirs / ".hermes", STRANGER, STRANGER)
    assert manager_commands.owner_of(Home(home)).uid == 0
    with pytest.raises(CannotFix, match=f"uid {STRANGER} can replace it through"):
        manager_commands.owner_of(find(theirs / ".hermes"))


# -- what root runs ---------------------------------------------------------------------------


def test_programs_of_others(place: Path, theirs: Path) -> None:
    """For a home of root's: neither an interpreter of another user's, nor one in his folders."""
    home = Home(support.healthy(place / "home"))
    where = theirs / "env"
    for uid in (STRANGER, 0):
        os.chown(where / "bin" / "python", uid, uid)
        service = Detached(home, Installation("0.19.0", where, running=False))
        for act in (service.refuse, service.ask_to_start):
            with pytest.raises(CannotFix, match=f"root does not run .*uid {STRANGER}"):
                act()
    with pytest.raises(CannotFix, match="root does not run"):
        manager_commands.run_command([str(where / "bin" / "python")])
    assert not (place / "told").exists()
    assert python_of(where, accounts.account(STRANGER)) == where / "bin" / "python"


@pytest.mark.parametrize("name", ["bin", "bin/python", "lib/python3.11/site-packages"])
def test_programs_that_others_may_write(place: Path, name: str) -> None:
    """A mode is enough to distrust it, on a folder, the file or the packages, sticky or not."""
    env = environment(place / "env", place / "told")
    root = accounts.account(0)
    assert python_of(env, root) == env / "bin" / "python"
    for mode in (0o777, 0o775, 0o1777):
        (env / name).chmod(mode)
        with pytest.raises(CannotFix, match="other users may write"):
            python_of(env, root)


# -- a home that is swapped ---------------------------------------------------------------------


def test_swapped_for_a_folder_of_root(place: Path, theirs: Path) -> None:
    """Between the plan and the start, its owner leads to a folder of root's: nothing starts."""
    home = support.healthy(theirs / ".hermes")
    crash_server.chown(home)
    service = Detached(Home(home), Installation("0.19.0", theirs / "env", running=False))
    service.refuse()
    sticky = place / "sticky"
    sticky.mkdir()
    sticky.chmod(0o1777)
    home.rename(theirs / "away")
    home.symlink_to(sticky)
    os.lchown(home, STRANGER, STRANGER)

    with pytest.raises(CannotFix, match="Another folder has replaced the home"):
        service.start(1)
    with pytest.raises(CannotFix, match="Another folder has replaced the home"):
        service.ask_to_start()

    assert not (place / "told").exists()
    with pytest.raises(CannotFix, match=f"uid {STRANGER} can replace it through"):
        manager_commands.owner_of(Home(home))


def test_his_own_is_run_as_him(place: Path, theirs: Path) -> None:
    """A home of his, by his own interpreter, with his rights and in that very folder."""
    home = support.healthy(theirs / ".hermes")
    told = support.put(theirs / "told", "", 0o644)
    support.put(theirs / "env/bin/python", f"#!/bin/sh\n(id -u; pwd -P) >{told}\n", 0o755)
    crash_server.chown(theirs)
    service = Detached(Home(home), Installation("0.19.0", theirs / "env", running=False))

    service.ask_to_start()

    assert service._process is not None and service._process.wait(20) == 0
    assert told.read_text().split() == [str(STRANGER), str(home)]


# -- a process of a stranger's ------------------------------------------------------------------


RUN = """
import os, sys
os.setgroups([]); os.setresgid(*[int(sys.argv[1])] * 3); os.setresuid(*map(int, sys.argv[1:4]))
print("up", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("uids", "counts"),
    [((STRANGER,) * 3, False), ((STRANGER, 0, 0), False), ((0, 0, 0), True)],
    ids=["a stranger", "a stranger with rights of root", "root"],
)
def test_processes_of_others(
    place: Path, theirs: Path, uids: tuple[int, int, int], counts: bool
) -> None:
    """Which Hermes runs is told by processes of root's or of the home's owner only.

    The folder under /proc of one that has changed its user is root's, so that does not tell.
    """
    home = support.healthy(place / "home")
    words = [sys.executable, "-c", RUN, *map(str, uids)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"up\n"
        python = str(theirs / "env" / "bin" / "python")
        running = Gateway(process.pid, datetime.now(UTC), python=python)
        found = installed(Home(home), lambda: [running])
        uid = read_origin(process.pid).uid
        process.send_signal(signal.SIGKILL)
    assert (getattr(found, "where", None) == theirs / "env") is counts
    assert uid == uids[0]
