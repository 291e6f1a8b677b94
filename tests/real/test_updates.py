"""Real updates through every release and back, under the guard, with nothing lost."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from hermes_doctor.backup.records.updates import UpdateRecords
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.conftest import RELEASES, need_release
from tests.helpers import fake_environments, requirements, support
from tests.helpers.real import gateways
from tests.helpers.real.release_homes import KILLED, ROWS, machine
from tools import real_home, releases

FIRST, LAST = releases.ALL[0], releases.ALL[-1]
UV = str(Path(sys.executable).parent / "uv")
ASK_HOOKS = """
import asyncio, json
from gateway.hooks import HookRegistry
registry = HookRegistry()
registry.discover_and_load()
context = {"platform": "qqbot", "user_id": "1", "command": "update", "args": ""}
print("ANSWER", json.dumps(asyncio.run(registry.emit_collect("command:update", context))))
"""
BUSY = """
import asyncio, os, subprocess
os.environ["PATH"] = "REAL:/usr/bin:/bin"
from gateway.hooks import HookRegistry
from gateway.run import _resolve_hermes_bin
registry = HookRegistry()
registry.discover_and_load()
async def begin():
    await registry.emit("gateway:startup", {"platforms": []})
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
asyncio.run(begin())
words = _resolve_hermes_bin()
print("FOUND", *words, flush=True)
if len(words) == 1:
    done = subprocess.run([*words, "update", "--gateway"], capture_output=True, text=True)
    print("EXIT", done.returncode)
    print(done.stderr + done.stdout, end="")
"""
VERSION = "from importlib import metadata; print(metadata.version('hermes-agent'))"
SPEAK = """
import os
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
history.append_message("one", "user", "said with {version}")
history.close()
"""


@dataclass(frozen=True)
class Scratch:
    """A home, and an environment of its own whose Hermes can be exchanged."""

    home: Path
    root: Path

    @property
    def env(self) -> dict[str, str]:
        """What an operator's shell would have."""
        tools = Path(UV).parent
        more = {name: v for name, v in os.environ.items() if name.startswith(("UV_", "SSL_"))}
        cache = {"UV_CACHE_DIR": str(releases.cache().parent / "uv"), "HERMES_DOCTOR_SETTLE": "0"}
        return machine(self.home.parent, self.root / "bin", tools) | more | cache

    def install(self, version: str) -> list[str]:
        """The command that exchanges it."""
        python = str(self.root / "bin" / "python")
        return [UV, "pip", "install", "--quiet", "--python", python, f"hermes-agent=={version}"]

    def doctor(self, *words: str) -> support.Done:
        """The command on this home."""
        command, *more = words
        return support.doctor(command, "--home", str(self.home), *more, env=self.env, timeout=600)

    def ask(self, script: str) -> str:
        """What the Hermes that is installed now says of the home itself."""
        done = subprocess.run(
            [str(self.root / "bin" / "python"), "-I", "-c", script],
            env=real_home.environment(self.home) | gateways.sealed(None),
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    """A home made by the oldest release, and that release in an environment of its own."""
    need_release(FIRST)
    made = Scratch(real_home.make(FIRST, tmp_path / "home"), tmp_path / "venv")
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, str(made.root)], check=True)
    done = subprocess.run(made.install(FIRST), env={**os.environ, **made.env}, capture_output=True)
    if done.returncode:
        requirements.missing(f"Hermes cannot be installed: {done.stderr[-500:]!r}")
    return made


@contextmanager
def at_work(scratch: Scratch) -> Iterator[Callable[[], int]]:
    """A gateway of the oldest release; what is given tells which process is one now."""

    def pid() -> int:
        [one] = Probes(Home(scratch.home)).gateway.running()
        return one.pid

    command = [str(scratch.root / "bin" / "hermes"), "gateway", "run"]
    with gateways.gateway(FIRST, scratch.home, command=command, extra=scratch.env):
        try:
            yield pid
        finally:
            for one in Probes(Home(scratch.home)).gateway.running():
                os.kill(one.pid, signal.SIGTERM)
                gateways.until(partial(_is_gone, one.pid), "the gateway to end")


@pytest.mark.long
@pytest.mark.wide
def test_through_every_release_and_back(scratch: Scratch) -> None:
    """With a gateway that runs: it is restarted each time, and each step has its backup.

    No row is lost, and at the end the oldest release works on its own data.
    """
    config = support.put(
        scratch.home / "config.yaml", "# mine\nmodel:\n  default: m\n"
    ).read_bytes()
    support.put(scratch.home / ".env", "SOME_API_KEY=sk-must-stay\n")
    said = scratch.ask(ROWS).splitlines()
    with at_work(scratch) as gateway:
        for version in releases.ALL[1:]:
            before = gateway()
            done = scratch.doctor("update-guard", "--", *scratch.install(version))
            assert done.code == 0, (version, done)
            assert "is running on the new code" in done.err, version
            assert gateway() != before, version
            last = UpdateRecords(Home(scratch.home)).last()
            assert last is not None
            assert last.after is not None
            assert last.after.version == version
            scratch.ask(SPEAK.replace("{version}", version))
            said.append(f"said with {version}")
            assert scratch.ask(ROWS).splitlines() == said, version
            assert (scratch.home / ".env").read_text() == "SOME_API_KEY=sk-must-stay\n"
        before = gateway()
        back = scratch.doctor("rollback", "--yes")
        assert back.code == 0, back
        assert gateway() != before
        assert scratch.ask(ROWS).splitlines() == said[:-1]
        far = scratch.doctor("rollback", "--yes", UpdateRecords(Home(scratch.home)).ids()[0])
        assert far.code == 0, far
        assert scratch.ask(VERSION) == f"{FIRST}\n"
        assert scratch.ask(ROWS).splitlines() == said[: -len(releases.ALL) + 1]
        assert (scratch.home / "config.yaml").read_bytes() == config
        assert (scratch.home / ".env").read_text() == "SOME_API_KEY=sk-must-stay\n"
        assert gateway()
        undone = scratch.doctor("undo", "--yes")
        assert undone.code == 0, undone
        assert scratch.ask(ROWS).splitlines() == said[:-1]


def _is_gone(pid: int) -> bool:
    try:
        state = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


@pytest.mark.wide
def test_killed_before_in_and_after_the_command(scratch: Scratch) -> None:
    """Whenever the guard dies, the rows are there and the way back works."""
    rows = scratch.ask(ROWS)
    kill = "kill -9 $PPID"
    for script in (kill, f"{shlex.join(scratch.install('0.14.0'))}; {kill}"):
        scratch.doctor("update-guard", "--force", "--", "sh", "-c", script)
        fake_environments.ended(scratch.home)
        assert scratch.doctor("check", "--json", "--only", "UPD-CUTOFF").codes == ["UPD-CUTOFF"]
        assert scratch.ask(ROWS) == rows
        back = scratch.doctor("rollback", "--yes")
        assert back.code == 0, back
        assert scratch.doctor("check", "--json", "--only", "UPD-CUTOFF").codes == []
        assert scratch.ask(ROWS) == rows


@pytest.mark.wide
def test_rows_that_only_the_log_holds_are_in_the_backup(scratch: Scratch) -> None:
    """A process that died left twenty messages in the write-ahead log."""
    subprocess.run(
        [str(scratch.root / "bin" / "python"), "-I", "-c", KILLED],
        env=real_home.environment(scratch.home) | gateways.sealed(None),
        check=False,
    )
    done = scratch.doctor(
        "update-guard", "--", "rm", "-f", *map(str, scratch.home.glob("state.db*"))
    )
    assert "GONE" in done.err
    back = scratch.doctor("rollback", "--yes")
    assert back.code == 0, back
    assert "message number 59" in scratch.ask(ROWS)


@pytest.fixture
def hooked(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[str, Path]]:
    """A home of a release with the gateway's hook in it."""
    version: str = request.param
    need_release(version)
    home = real_home.make(version, tmp_path / "home")
    assert support.doctor("hook", "install", "--no-shell", "--home", str(home)).code == 0
    yield version, home


@pytest.mark.parametrize("hooked", RELEASES, indirect=True)
def test_a_chat_gets_its_update_after_a_backup(hooked: tuple[str, Path]) -> None:
    """Real Hermes loads the hook, asks it, and is told to go on."""
    version, home = hooked
    said = real_home.run(version, home, ASK_HOOKS)
    assert _answers(said) == [{"decision": "allow"}]
    last = UpdateRecords(Home(home)).last()
    assert last is not None
    assert last.backup is not None


@pytest.mark.wide
@pytest.mark.parametrize("hooked", RELEASES, indirect=True)
def test_a_chat_that_asks_no_hook(hooked: tuple[str, Path], tmp_path: Path) -> None:
    """While an answer is being written: the real gateway finds our launcher, which asks first."""
    version, home = hooked
    real = support.put(tmp_path / "real" / "hermes", "#!/bin/sh\necho real $*\n", 0o755)
    script = BUSY.replace("REAL", str(real.parent))
    said = real_home.run(version, home, script).splitlines()
    first = UpdateRecords(Home(home)).ids()
    again = real_home.run(version, home, script).splitlines()

    assert (said[-1], again[-1]) == ("real update --gateway",) * 2
    found = f"FOUND {home / 'hooks' / 'hermes-doctor' / 'bin' / 'hermes'}"
    assert (said.count(found), again.count(found)) == (1, 1)
    [id] = first
    update = UpdateRecords(Home(home)).load(id)
    assert update.chat
    assert update.backup in Vault(Home(home)).ids()
    assert UpdateRecords(Home(home)).ids() == first, "what was just asked about is not asked again"
    support.clobber(home / "state.db")
    (UpdateRecords(Home(home)).folder / f"{id}.json").unlink()
    stopped = real_home.run(version, home, script)
    assert "real update" not in stopped
    assert "EXIT 2" in stopped


def test_a_gateway_without_hermes_on_its_path(tmp_path: Path) -> None:
    """It would have been found in another way: no launcher stands in that."""
    need_release(LAST)
    home = real_home.make(LAST, tmp_path / "home")
    assert support.doctor("hook", "install", "--no-shell", "--home", str(home)).code == 0
    said = real_home.run(LAST, home, BUSY.replace("REAL", "/nowhere"))
    assert "python -m hermes_cli.main" in said
    assert "EXIT" not in said


@pytest.mark.parametrize("hooked", RELEASES, indirect=True)
def test_a_chat_is_told_why_there_is_no_update(hooked: tuple[str, Path]) -> None:
    """A damaged history stops it before anything is touched."""
    version, home = hooked
    support.clobber(home / "state.db")
    [answer] = _answers(real_home.run(version, home, ASK_HOOKS))
    assert answer["decision"] == "deny"
    assert "hermes-doctor stopped the update" in answer["message"]


def test_the_hook_leaves_no_trace(tmp_path: Path) -> None:
    """Not even what Python makes of it."""
    need_release(LAST)
    home = real_home.make(LAST, tmp_path / "home")
    before = support.contents(home)
    support.doctor("hook", "install", "--no-shell", "--home", str(home))
    real_home.run(LAST, home, ASK_HOOKS)
    shutil.rmtree(home / "backups")
    support.doctor("hook", "remove", "--home", str(home), env={"HOME": str(tmp_path)})
    assert {k: v for k, v in support.contents(home).items() if not k.startswith("logs")} == {
        k: v for k, v in before.items() if not k.startswith("logs")
    }


def _answers(said: str) -> list[dict[str, str]]:
    line = next(line for line in said.splitlines() if line.startswith("ANSWER "))
    found: list[dict[str, str]] = json.loads(line.removeprefix("ANSWER "))
    return found
