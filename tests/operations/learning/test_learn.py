"""`hermes-doctor learn`: after it, an unknown release is judged like a known one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.model import Trouble
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.hermes.knowledge.releases import shipped_releases
from hermes_doctor.operations.learning import learn
from tests.conftest import need_release
from tests.helpers import damage, recorded_homes, support
from tests.helpers.cut_knowledge import CutTool
from tests.helpers.real.release_homes import machine
from tools import real_home, releases

VERSION = "0.19.0"
LAST = "0.17.0"
MISTAKES = {
    "config.yaml": "model: {provider: openroute, default: m}\nmodle: x\nagent: {max_turn: 3}\n"
    "platforms: {telegram: {enabled: true, alow_from: [1]}}\n"
    "fallback_model: [{provider: nowhere, model: x}]\nsession_reset: {mode: tide}\n",
    ".env": "OPENROUTER_API_KEY=abc\nTELEGRAM_BOT_TOKEN=9\nAPI_SERVER_ENABLED=true\n"
    "WEBHOOK_ENABLED=true\nWEBHOOK_PORT=x\n",
    "cron/jobs.json": '{"jobs": [{"id": "a", "name": "n", "prompt": "p", "deliver": "qqbot", '
    '"enabled": true, "schedule": {"kind": "interval", "minutes": 5}}]}',
    "auth.json": '{"providers": ',
}


def answers(done: support.Done) -> list[dict[str, Any]]:
    """Everything that a report says, without what differs from run to run."""
    found: list[dict[str, Any]] = done.json["findings"]
    checks = [{key: one[key] for key in ("id", "status", "reason")} for one in done.json["checks"]]
    return found + checks


@pytest.mark.wide
@pytest.mark.real
def test_an_unknown_release_is_judged_like_a_known_one(tmp_path: Path) -> None:
    """0.19.0, learned by a tool that knows releases up to 0.17.0."""
    need_release(VERSION)
    tool = CutTool(tmp_path / "tool", LAST)
    homes = {name: _home(tmp_path / name, name) for name in ("sound", "mistakes", "schema")}
    env = machine(tmp_path, releases.python_of(VERSION).parent)
    env |= {"XDG_DATA_HOME": str(tmp_path / "data")}
    before = support.contents(homes["sound"])

    unknown = tool.run("check", "--json", "--home", homes["mistakes"], env=env)
    done = tool.run("learn", "--json", "--timeout", "800", "--home", homes["sound"], env=env)

    note = support.finding(unknown, "HERMES-NEWER")
    assert "hermes-doctor learn" in note["next"]
    assert done.code == 0, done
    assert done.json["status"] == "learned"
    assert done.json["databases"] == 8
    assert Path(done.json["path"]).is_relative_to(tmp_path / "data")
    assert Path(done.json["path"]).stat().st_mode & 0o777 == 0o600
    assert support.contents(homes["sound"]) == before
    for home in homes.values():
        learned = tool.run("check", "--json", "--home", home, env=env)
        known = support.doctor("check", "--json", "--home", home, env=env)
        assert answers(learned) == answers(known), home.name
    assert {"CFG-PROVIDER-UNKNOWN", "CFG-UNKNOWN-KEY"} <= {
        *tool.run("check", "--json", "--home", homes["mistakes"], env=env).codes
    }
    assert "DB-SCHEMA" in tool.run("check", "--json", "--home", homes["schema"], env=env).codes
    _is_used_only_if_trusted(tool, Path(done.json["path"]), homes["mistakes"], env)


def _home(path: Path, kind: str) -> Path:
    home = real_home.make(VERSION, path)
    if kind == "mistakes":
        for name, text in MISTAKES.items():
            support.put(home / name, text)
    if kind == "schema":
        damage.execute(
            home / "state.db", "DROP TRIGGER messages_fts_insert", "DROP INDEX idx_sessions_source"
        )
        damage.execute(home / "kanban.db", "DROP INDEX idx_tasks_session_id")
    return home


def _is_used_only_if_trusted(tool: CutTool, path: Path, home: Path, env: dict[str, str]) -> None:
    for place, mode in ((path, 0o622), (path.parent, 0o777)):
        kept = place.stat().st_mode & 0o777
        place.chmod(mode)
        assert "HERMES-NEWER" in tool.run("check", "--json", "--home", home, env=env).codes
        place.chmod(kept)
    assert "HERMES-NEWER" not in tool.run("check", "--json", "--home", home, env=env).codes


# -- a Hermes that does not start ------------------------------------------------------------------


def broken(home: Path, script: str, version: str = "0.99.0") -> None:
    """Give a home a Hermes whose interpreter is this script."""
    recorded_homes.installed(home, version)
    support.put(home / "hermes-agent" / "venv" / "bin" / "python", script, 0o755)


def run(home: Path, *words: str, env: dict[str, str] | None = None) -> support.Done:
    """Run the command with a folder of its own for what is learned."""
    more = {"XDG_DATA_HOME": str(home.parent / "data"), **(env or {})}
    return support.doctor("learn", *words, "--home", home, env=more)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("#!/bin/sh\necho 'ImportError: no module named gateway' >&2\nexit 1\n", "no module named"),
        ("#!/bin/sh\nexit 3\n", "exit code 3"),
        ("#!/bin/sh\necho '[1, 2]'\n", "not what was expected"),
        ("#!/bin/sh\necho hello\n", "not what was expected"),
        ("#!/nowhere\n", "could not be run"),
        ("#!/bin/sh\nsleep 60\n", "within 1 s"),
    ],
)
def test_it_does_not_start(home: Path, script: str, reason: str) -> None:
    """One line, exit code 1, nothing stored, the home untouched."""
    broken(home, script)
    before = support.contents(home)
    limit = "1" if "sleep" in script else "60"

    done = run(home, "--timeout", limit)
    as_json = run(home, "--timeout", limit, "--json")

    assert done.code == as_json.code == 1, done
    assert reason in done.err and len(done.err.strip().splitlines()) <= 2, done.err
    assert as_json.json["error"] == {"message": as_json.json["error"]["message"], "exit_code": 1}
    assert reason in as_json.json["error"]["message"]
    assert not (home.parent / "data").exists()
    assert support.contents(home) == before


def test_a_hermes_in_a_container() -> None:
    """Its folders are not what their names say here, so nothing of it is run."""
    inside = Installation("0.99.0", Path("/proc/self/root/usr"), running=True)

    with pytest.raises(Trouble, match="Run hermes-doctor in the container"):
        learn._interpreter(inside, None)


def test_no_hermes(home: Path) -> None:
    """There is nothing to ask."""
    done = run(home, env={"PATH": "/nowhere"})

    assert done.code == 2
    assert "No installed Hermes" in done.err


def test_a_known_release(home: Path) -> None:
    """There is nothing to learn."""
    recorded_homes.installed(home, shipped_releases()[-1])

    done = run(home, env={"PATH": "/nowhere"})

    assert (done.code, done.err) == (0, "")
    assert "already knows" in done.out


def _sleeping(seconds: int) -> set[int]:
    """Return the processes that sleep for exactly so long."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "cmdline").read_bytes().split(b"\0")[:2] == [b"sleep", b"%d" % seconds]:
                found.add(int(folder.name))
    return found


def test_interrupted(home: Path, tmp_path: Path) -> None:
    """Ctrl-C ends the scripts of Hermes, and nothing is stored."""
    seconds = 10_000_000 + os.getpid()
    broken(home, f"#!/bin/sh\nexec sleep {seconds}\n")
    child = subprocess.Popen(
        [sys.executable, "-m", "hermes_doctor", "learn", "--home", str(home)],
        env=support.environ({"XDG_DATA_HOME": str(tmp_path / "data")}),
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 50
    while not _sleeping(seconds):
        assert time.monotonic() < end
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=30)

    assert child.returncode == 130
    assert said.startswith("hermes-doctor: Interrupted. Nothing was changed.")
    assert not (tmp_path / "data").exists()
    assert not _sleeping(seconds)


def test_nothing_learned_costs_one_stat(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`check` looks for the folder, and opens nothing."""
    from hermes_doctor.core.home import Home
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.hermes.knowledge import releases

    def refuse(*_: object) -> None:
        raise AssertionError("something was looked up")

    monkeypatch.setenv("XDG_DATA_HOME", str(home.parent / "data"))
    monkeypatch.setattr(releases, "learned_path", refuse)
    recorded_homes.installed(home, "0.99.0")
    probes = Probes(Home(home))
    try:
        assert probes.newer() == "Hermes 0.99.0 is newer than hermes-doctor knows"
    finally:
        probes.close()


@pytest.mark.parametrize("content", ["", "[]", '{"format": 1}', '{"format": 99}', "nonsense"])
def test_a_file_that_is_not_one(home: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    """It is ignored."""
    from hermes_doctor.hermes.knowledge import releases

    monkeypatch.setenv("XDG_DATA_HOME", str(home.parent / "data"))
    path = releases.learned_path("0.99.0", None, os.getuid())
    assert path is not None
    support.put(path, content)
    for folder in list(path.parents)[:3]:
        folder.chmod(0o700)

    assert releases.load_learned(path) is None
    assert releases.learned_path("../0.1", None, 0) is None


def test_what_is_stored_is_read_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same values; a commit has a file of its own."""
    from hermes_doctor.hermes.knowledge import releases

    monkeypatch.setenv("XDG_DATA_HOME", str(home.parent / "data"))
    told = releases.Learned("0.99.0", "ab" * 20, 40, 30, {"cron": {"a": ["b"]}})
    path = releases.learned_path("0.99.0", told.commit, 7)
    assert path is not None
    assert path.parts[-2:] == ("7", "0.99.0-abababababab.json")
    support.put(path, json.dumps(releases.learned_document(told)))
    for folder in list(path.parents)[:3]:
        folder.chmod(0o700)

    assert releases.load_learned(path) == told
