"""What root does for a process that looks at another user's home, and what it refuses."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.diagnosis.probes import root_actions
from tests.diagnosis.probes.test_probes import pretender
from tests.helpers import budget, crash_server, support
from tests.helpers.crash_server import STRANGER
from tests.helpers.real.gateways import end

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has something to do")

REFUSED = (
    ("sh", "-c", "true"),
    ("journalctl",),
    ("journalctl", "--rotate"),
    ("journalctl", "--rot"),
    ("journalctl", "--unit=hermes", "--vacuum-size=1"),
    ("journalctl", "--file=/etc/shadow"),
    ("docker",),
    ("docker", "ps", "--all", "--no-trunc", "--format", "{{.ID}}"),
    ("docker", "run", "x"),
    ("docker", "inspect", "--type", "container"),
    ("docker", "logs", "--follow", "0a1"),
    ("docker", "events", "--since", "2026-01-01", "--until", "0s"),
    ("docker", "exec", "x", "sh"),
    ("docker", "--host=tcp://x", "ps"),
    ("docker", "cp", "0a1:/etc/shadow", "-"),
    ("docker", "cp", "0a1:/etc/passwd", "/etc/passwd"),
    ("podman", "rm", "x"),
    ("/command/s6-svstat", "/run/service/gateway-x/../../../root"),
    ("/command/s6-svc", "-d", "/run/service/gateway-default"),
)


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_other_commands_are_refused(home: Path, words: tuple[str, ...]) -> None:
    """A program, a command or an option that is not on the list."""
    with pytest.raises(CouldNotLook, match="root does not run"):
        root_actions.actions(home, 0)["command"]([*words], 1.0, 1000)


@pytest.mark.parametrize(
    "words",
    [
        ("journalctl", "--no-pager", "--output=json", "--since=@1", "--unit=a@b.service"),
        ("journalctl", "_SYSTEMD_USER_UNIT=a.service", "_UID=1", "+", "USER_UNIT=a.service"),
    ],
    ids=" ".join,
)
def test_commands_that_read_are_run(
    home: Path, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With these words and no others."""
    program = support.put(tmp_path / "bin" / words[0], '#!/bin/sh\necho "$*"\n', 0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    code, out, _ = root_actions.actions(home, 0)["command"]([*words], 10.0, 1000)

    assert (code, out) == (0, " ".join(words[1:]) + "\n")


ENGINE = """#!/bin/sh
echo "$*" >> {log}
case "$1 $2" in
"ps --all") echo 0a1; echo 0b2; echo 0c3;;
"inspect --type") case "$*" in *Mounts*)
  printf '"0a1"\\t[{{"Source": "{home}", "Destination": "/opt/data"}}]\\t[]\\t{{}}\\n'
  printf '"0b2"\\t[{{"Source": "/other", "Destination": "/opt/data"}}]\\t[]\\t{{}}\\n'
  printf '"0c3"\\t[{{"Source": "{home}-b", "Destination": "/opt/data"}}]\\t[]\\t{{}}\\n';;
*) echo '[]';; esac;;
esac
"""
_EVENTS = (
    *("events", "--since", "2026-01-01T00:00:00Z", "--until", "0s", "--filter", "container=ID"),
    *("--filter", "event=kill", "--filter", "event=die", "--format", "{{.Action}} {{.x}}"),
)
ABOUT_ONE = (
    ("inspect", "--type", "container", "ID"),
    ("inspect", "--type", "container", "--format", "{{.Id}} {{.x}}", "ID"),
    ("logs", "--tail", "40", "ID"),
    ("logs", "--timestamps", "--since=1", "--tail=5", "ID"),
    _EVENTS,
    ("cp", "ID:/etc/passwd", "-"),
)


@pytest.fixture
def engine(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A container engine with a container of the home and two others; its log has its words."""
    log = tmp_path / "log"
    program = ENGINE.format(log=log, home=home.resolve())
    support.put(tmp_path / "bin" / "docker", program, 0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/of/a/test.sock")
    return log


def words_for(words: tuple[str, ...], id: str) -> list[str]:
    """The words of a command about this container."""
    return ["docker", *(word.replace("ID", id) for word in words)]


@pytest.mark.parametrize("words", ABOUT_ONE, ids=" ".join)
def test_a_container_of_the_home(home: Path, engine: Path, words: tuple[str, ...]) -> None:
    """Root asks the engine about one that it found itself, and about no other one."""
    actions = root_actions.actions(home, 0)

    assert actions["command"](words_for(words, "0a1"), 10.0, 1000)[0] == 0
    assert engine.read_text().splitlines()[-1] == " ".join(words_for(words, "0a1")[1:])
    asked = engine.read_text()
    for id in ("0b2", "0c3", "0a", "0a12", "f00"):
        with pytest.raises(CouldNotLook, match="only about containers of this home"):
            actions["command"](words_for(words, id), 10.0, 1000)
    assert engine.read_text() == asked


def test_another_container_beside_it(home: Path, engine: Path) -> None:
    """Neither as a second one nor hidden in the word for the format."""
    command = root_actions.actions(home, 0)["command"]

    with pytest.raises(CouldNotLook, match="only about containers of this home"):
        command(words_for(("inspect", "--type", "container", "0b2", "ID"), "0a1"), 10.0, 1000)
    for more in (["--format", "x", "--size", "0a1"], ["--format", "x y", "--size 0a1"]):
        with pytest.raises(CouldNotLook, match="root does not run"):
            command(["docker", "inspect", "--type", "container", *more], 10.0, 1000)


def test_the_containers_of_a_home(home: Path, engine: Path) -> None:
    """Root lists them itself; the settings of others stay with root."""
    actions = root_actions.actions(home, 0)

    assert actions["containers"](None) == ["0a1"]
    with pytest.raises(CouldNotLook, match="only about containers of this home"):
        actions["stopped_by_record"]("0b2")


def test_a_home_that_became_a_link_has_no_containers(
    home: Path, engine: Path, tmp_path: Path
) -> None:
    """Its owner does not get those of another home."""
    theirs = tmp_path / "theirs"
    theirs.symlink_to(home)
    actions = root_actions.actions(theirs, STRANGER)

    assert actions["containers"](None) is None
    with pytest.raises(CouldNotLook, match="only about containers of this home"):
        actions["command"](["docker", "logs", "--tail", "4", "0a1"], 10.0, 1000)


@pytest.fixture
def holder(home: Path, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of root's that has a file of the home and a secret one open."""
    support.put(home / "state.db", "x")
    support.put(tmp_path / "secret", "x")
    program = "import sys; kept = [open(name) for name in sys.argv[1:]]; print(flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(home / "state.db"), str(tmp_path / "secret")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"SECRET": "x"},
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdout.readline()
    try:
        yield process
    finally:
        process.stdin.close()
        process.stdout.close()
        end(process)


def test_a_process_of_root(home: Path, holder: subprocess.Popen[bytes]) -> None:
    """Of one that is no gateway only the files of the home are shown."""
    seen = root_actions.actions(home, 0)["process"](holder.pid)

    st = (home / "state.db").stat()
    assert [one[1:] for one in seen["files"]] == [[str(home / "state.db"), st.st_dev, st.st_ino]]
    assert [*seen["details"]] == [seen["files"][0][0]]
    assert (seen["environ"], seen["cwd"], seen["maps"]) == (None, None, None)


def test_a_gateway_of_root_in_its_own_home(tmp_path: Path) -> None:
    """The owner of another home learns which home it uses, and none of its keys."""
    with support.reachable_folder() as place:
        theirs = crash_server.chown(support.healthy(place / "home"))
        own = support.healthy(tmp_path / "own")
        shown = {}
        for home in (own, theirs):
            env = {"HERMES_HOME": str(home), "KEY": CANARY}
            for lock in (None, home / "gateway.lock"):
                with pretender(tmp_path / "program", env, lock=lock) as pid:
                    shown[home, lock] = root_actions.actions(theirs, STRANGER)["process"](pid)
        os.rename(theirs, place / "aside")
        theirs.symlink_to(own)
        with pretender(tmp_path / "program", {"HERMES_HOME": str(theirs), "KEY": CANARY}) as pid:
            shown[theirs, Path("/")] = root_actions.actions(theirs, STRANGER)["process"](pid)
    for (home, lock), seen in shown.items():
        mine = home == theirs and lock != Path("/")
        assert (CANARY in json.dumps(seen)) == mine, (home, lock)
        assert seen["environ"]["HERMES_HOME"] == str(home)
        assert bool(seen["maps"]) == mine


def test_a_process_that_has_ended(home: Path, holder: subprocess.Popen[bytes]) -> None:
    """Nothing is shown of it."""
    end(holder)

    assert root_actions.actions(home, 0)["process"](holder.pid) is None


@pytest.mark.parametrize("commit", ["../../x", "a/b", ""])
def test_no_path_in_what_was_learned(home: Path, commit: str) -> None:
    """Version and commit come from the home; they cannot lead elsewhere."""
    learned = root_actions.actions(home, 0)["learned"]

    assert learned("0.19.0", commit) is None
    assert learned("../../../etc/passwd", None) is None


CANARY = "zQcanaryOfRoot"
GIVEN: dict[str, list[object]] = {
    "command": [["journalctl", "--no-pager", "--lines=1"], 2.0, 1000],
    "process": [os.getpid()],
    "learned": ["0.19.0", "abc"],
    "stopped_by_record": ["a" * 64],
    "process_with_socket": [1],
}
"""What the process asks for, where an action takes anything."""


class Swapper(threading.Thread):
    """Swaps a home for a link to a folder of root's and back, after random pauses."""

    def __init__(self, home: Path, elsewhere: Path, dice: random.Random) -> None:
        super().__init__()
        self.home, self.elsewhere, self.dice = home, elsewhere, dice
        self.over = threading.Event()
        self.swaps = 0

    def run(self) -> None:
        """Swap until it is stopped; the home is a folder then."""
        aside = self.home.with_name("aside")
        while not self.over.wait(self.dice.expovariate(1 / 0.001)):
            self.home.rename(aside)
            self.home.symlink_to(self.elsewhere)
            self.swaps += 1
            self.over.wait(self.dice.expovariate(1 / 0.001))
            self.home.unlink()
            aside.rename(self.home)


@pytest.mark.parametrize("name", sorted(root_actions.actions(Path("/"), STRANGER)))
def test_a_home_that_is_swapped_at_any_moment(name: str, tmp_path: Path) -> None:
    """No action shows anything of root's folder, writes into it, or fails in an unexpected way."""
    dice = budget.chance(41)
    home = support.healthy(tmp_path / "user" / "home")
    for path in (home.parent, home, *home.rglob("*")):
        os.chown(path, STRANGER, STRANGER)
    elsewhere = support.healthy(tmp_path / CANARY)
    support.put(elsewhere / "gateway.lock", json.dumps({"pid": os.getpid(), "home": CANARY}))
    support.put(elsewhere / "last-ask.json", json.dumps({"answer": CANARY}))
    before = support.tree(elsewhere)
    swapper = Swapper(home, elsewhere, dice)
    swapper.start()
    try:
        with (elsewhere / "gateway.lock").open():
            for _ in range(budget.tries(10, 200)):
                time.sleep(dice.uniform(0, 0.005))
                shown: object = None
                with contextlib.suppress(CouldNotLook):
                    shown = root_actions.actions(home, STRANGER)[name](*GIVEN.get(name, []))
                assert CANARY not in json.dumps(shown, default=repr)
    finally:
        swapper.over.set()
        swapper.join()
    assert swapper.swaps
    assert support.tree(elsewhere) == before
