"""As root in a home full of traps: repairs happen in a process of its owner, as they did before."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from hermes_doctor.cli import separate_work
from hermes_doctor.diagnosis.plugins.built_in import builtin
from tests.cli.test_separate_look import opened_by_root
from tests.helpers import crash_server, shells, support
from tests.helpers.crash_server import STRANGER
from tests.scenarios import test_hostile_home as hostile
from tools.build_hook import computed_files

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
FIX = ("fix", "--apply", "--yes")
UNDO = ("undo", "--yes")
HEAL = ("watch", "--heal", "--after", "1", "--interval", "1")
HEAL_ONCE = ("watch", "--heal", "--after", "1", "--once")
TRAPS = (
    *("sessions", "pending_messages", "logs", "cron", "kanban", "state-snapshots", "profiles"),
    *("memories", "hermes-agent", "gateway", "config.yaml.old", "pairing"),
)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody can get to."""
    with support.reachable_folder() as folder:
        yield folder


def sick(place: Path, *, traps: bool = False) -> Path:
    """A home of a stranger with a problem for every kind of change, one in a file of root's."""
    home = crash_server.sick(place / "home")
    if traps:
        secret = hostile.full(place / "secret")
        for base, _, names in os.walk(secret):
            os.chmod(base, 0o700)
            for name in names:
                os.chmod(Path(base, name), 0o600)
        for name in TRAPS:
            shutil.rmtree(home / name, ignore_errors=True)
            (home / name).symlink_to(secret / name)
    crash_server.chown(home)
    os.chown(home / "auth.json", 0, 0)
    return home


def closed_tool(folder: Path) -> Path:
    """A copy of the tool, and of all that it imports besides Python's own, that only root reads."""
    shutil.copytree(Path(typer.__file__).parents[1], folder, ignore=_LEFT_OUT)
    folder.chmod(0o700)
    top = Path(separate_work.__file__).parents[1]
    shutil.copytree(top, folder / "hermes_doctor", ignore=_LEFT_OUT)
    for kind in ("checks", "fixes"):
        shutil.copytree(builtin(kind), folder / "hermes_doctor" / kind, ignore=_LEFT_OUT)
    for name, text in computed_files().items():
        support.put(folder / name, text)
    return folder


_LEFT_OUT = shutil.ignore_patterns("__pycache__", "mypy*", "ruff*", "*.pth")


@pytest.fixture
def trapped(place: Path) -> Path:
    """Such a home, whose other names lead to root's own files."""
    return sick(place, traps=True)


@pytest.mark.needs("strace")
@pytest.mark.sampled
@pytest.mark.parametrize("command", [FIX, UNDO, HEAL_ONCE], ids=" ".join)
def test_root_opens_nothing_while_it_repairs(
    trapped: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """Neither what is repaired nor what the traps lead to; root only gives a file to the owner."""
    if command == UNDO:
        assert support.doctor(*FIX, "--home", trapped).code == 0
    before = crash_server.state(trapped)

    by_root, by_others = opened_by_root(command, trapped, tmp_path / "log")

    tops = (str(trapped), str(trapped.parent / "secret"))
    assert [path for path in by_root if path.startswith(tops)] == []
    assert str(trapped / "config.yaml") in by_others, "nothing was looked at"
    changed = {
        name for name, facts in crash_server.state(trapped).items() if facts != before.get(name)
    }
    repaired = changed & {"config.yaml", ".env", "auth.json", "kanban.db", "state.db"}
    assert len(repaired) == 5 or (command[0] == "watch" and repaired), "nothing was repaired"


def test_the_same_is_repaired(place: Path) -> None:
    """Receipts, owners, modes and bytes are those of the owner's own command; undo brings back."""
    home = sick(place)
    before, times = crash_server.state(home), crash_server.modified(home)

    done = support.doctor(*FIX, "--json", "--home", home)

    assert done.code == 0, done.err
    assert crash_server.strangers(home) == []
    assert crash_server.wide(home / "backups" / "doctor") == []
    assert crash_server.leftovers(home) == []
    ended = [run["state"] for run in done.json["repair"]["runs"]]
    assert set(ended) == {"done"}
    assert all(journal["uid"] == 0 for journal in crash_server.journals(home)), "root called it"
    assert (home / "auth.json").stat().st_uid == STRANGER

    undone = support.doctor(*UNDO, "--home", home)

    assert undone.code == 0, undone.err
    assert crash_server.state(home) == before, "also the file of root's"
    assert crash_server.modified(home) == times


def test_questions_are_asked(place: Path) -> None:
    """The answers come from the terminal of the command."""
    home = sick(place)

    command = f"cd {Path(__file__).parents[2]} && {sys.executable} -m hermes_doctor"
    words = ["/bin/sh", "-c", f"{command} fix CFG-YAML --apply --home {home}"]
    with shells.Terminal(words, place, "hermes-doctor") as terminal:
        terminal.wait(lambda: b"[y/N]" in terminal.seen)
        terminal.type("y\n")
        terminal.wait(lambda: b"Undo:" in terminal.seen)

    assert b"Repaired 1 of 1" in terminal.seen
    assert "\t" not in (home / "config.yaml").read_text()


def test_in_a_tool_that_is_closed_to_the_owner(place: Path) -> None:
    """Everything is loaded before the process becomes the owner."""
    home = sick(place)
    closed = closed_tool(place / "closed")
    before = crash_server.state(home)
    for command in (("fix",), ("fix", "--json"), (*FIX, "--ask"), (*UNDO, "--json"), FIX, UNDO):
        done = subprocess.run(
            [sys._base_executable, "-m", "hermes_doctor", *command, "--home", home],  # type: ignore[attr-defined]
            cwd=closed,
            env=support.environ({"PYTHONPATH": str(closed), "PYTHONDONTWRITEBYTECODE": "1"}),
            capture_output=True,
            text=True,
            check=False,
        )
        asked = "--ask" in command  # no provider answers here
        assert done.returncode == int(asked), done.stdout + done.stderr
        assert "check crashed" not in done.stdout, done.stdout
        # Gateways of other tests come and go, and only then nobody knows whose they are.
        told = re.sub(r"could not look for the gateway: process \d+ is", "", done.stdout)
        assert "could not" not in told, done.stdout
    assert crash_server.state(home) == before


def test_a_cut_off_command_is_finished(place: Path) -> None:
    """Its owner kills the process: root says so, and the next command ends the run."""
    home = sick(place)
    before = crash_server.state(home)
    patched = (
        "import os, signal, sys\n"
        "from hermes_doctor.repair.transaction import run\n"
        "run.commit = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from hermes_doctor.cli.main import main\n"
        f"sys.argv = ['hermes-doctor', 'fix', '--apply', '--yes', '--home', {str(home)!r}]\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", patched], env=support.environ({}), capture_output=True, text=True
    )
    assert done.returncode == 2 and "cut off" in done.stderr, done.stderr
    [cut] = crash_server.journals(home)
    assert cut["state"] == "committing"

    undone = support.doctor("undo", "--yes", "--home", home)

    assert "rolled back" in undone.out, undone.out + undone.err
    assert crash_server.state(home) == before


def test_root_s_preferences_count(place: Path) -> None:
    """Those of root, although the owner may not read them."""
    home = sick(place)
    settings = place / "settings"
    settings.mkdir(0o700)
    severity = f'[severity]\nKANBAN-SCHEMA = "off"\n[homes."{home}".severity]\nENV-BOM = "off"\n'
    support.put(settings / "hermes-doctor" / "config.toml", severity)

    done = support.doctor("fix", "--json", "--home", home, env={"XDG_CONFIG_HOME": str(settings)})

    assert done.code == 0, done.err
    planned = {one["code"] for one in done.json["repair"]["plan"]}
    assert "CFG-YAML" in planned and not {"KANBAN-SCHEMA", "ENV-BOM"} & planned
    assert json.dumps(done.json)


def test_a_vault_of_root_s(place: Path) -> None:
    """Backups in a folder that only root may read; undo finds them there."""
    home = sick(place)
    vault = place / "vault"
    vault.mkdir(0o700)
    before = crash_server.state(home)

    done = support.doctor(*FIX, "--vault", vault, "--home", home)

    assert done.code == 0, done.err
    assert [*vault.iterdir()] and crash_server.strangers(home) == []

    undone = support.doctor(*UNDO, "--home", home)

    assert undone.code == 0, undone.err
    assert crash_server.state(home) == before


def test_a_watch_keeps_its_lease(place: Path) -> None:
    """Its processes become the owner and end; root holds the lock that they have taken."""
    home = sick(place)
    words = [sys.executable, "-m", "hermes_doctor", *HEAL, "--home", str(home)]
    env = support.environ({"XDG_STATE_HOME": str(place / "state")})
    lease = home / "backups" / "doctor" / "watch.lease"
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        try:
            for line in watch.stdout:
                if " gone " in line:  # found by the round after the repair
                    break
            assert lease.stat().st_uid == STRANGER
            other = support.doctor(*HEAL_ONCE, "--home", home, env={"XDG_STATE_HOME": f"{place}/2"})
            with lease.open() as file, pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            watch.terminate()
            watch.communicate(timeout=120)  # it still has something to say
    assert f"another watch (process {watch.pid}) repairs this home" in other.out, other.out
    # If a process of a round runs at this moment, the signal ends both.
    assert watch.returncode in (0, -signal.SIGTERM)
    [run] = crash_server.journals(home)
    assert run["state"] == "done"


def test_a_receipt_cannot_name_a_vault_of_root_s(place: Path) -> None:
    """Root goes on as before only if the vault has a backup of this home that root has made."""
    home = sick(place)
    assert support.doctor(*FIX, "--home", home).code == 0
    other = place / "other"
    other.mkdir(0o700)
    support.put(other / "20261115-031500-00000" / "home", "/somewhere/else")
    [receipt] = home.glob("backups/doctor/runs/*/run.json")
    receipt.write_text(json.dumps(json.loads(receipt.read_text()) | {"vault": str(other)}))
    before = crash_server.state(home)

    done = support.doctor(*UNDO, "--home", home)

    assert done.code == 2 and "has no backup of this home that root may use" in done.err, done.err
    assert crash_server.state(home) == before
