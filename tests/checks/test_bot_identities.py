"""One bot, one gateway."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from tests.helpers import fake_gateway, support
from tests.helpers.gateway_home import PID, QQ, Scene, ask, claim


def lock(folder: Path, pid: int, start_time: int | None, app: str = QQ["QQ_APP_ID"]) -> None:
    """A lock as Hermes writes it."""
    name = f"qqbot-appid-{hashlib.sha256(app.encode()).hexdigest()[:16]}.lock"
    said = {"pid": pid, "start_time": start_time, "scope": "qqbot-appid"}
    support.put(folder / name, json.dumps(said))


def own_start() -> int:
    """When this very process began, in the kernel's ticks."""
    return int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])


def scene(home: Path, folder: Path, *, running: bool = True, error: str | None = None) -> Scene:
    """A gateway with a QQ bot, which looks for locks there."""
    variables = QQ | {"HERMES_GATEWAY_LOCK_DIR": str(folder)}
    support.put(home / ".env", "".join(f"{k}={v}\n" for k, v in variables.items()))
    said = [claim("qqbot", "fatal" if error else "connected", error)]
    return Scene(home, variables, said, running=running)


@pytest.mark.parametrize("running", [True, False])
def test_held_by_another(home: Path, tmp_path: Path, running: bool) -> None:
    """A living process that is not this home's gateway holds the bot."""
    lock(tmp_path / "locks", os.getpid(), own_start())

    _, [finding] = ask("bot-identities", scene(home, tmp_path / "locks", running=running))

    assert (finding.code, finding.subject) == ("TOKEN-DUP", "qqbot")
    assert finding.severity == ("error" if running else "warning")
    assert str(os.getpid()) in finding.title
    assert QQ["QQ_APP_ID"] not in repr(finding)


@pytest.mark.parametrize("error", ["qqbot-appid_lock", "lock_conflict"])
def test_refused(home: Path, tmp_path: Path, error: str) -> None:
    """The gateway's own word is enough where the lock cannot be found."""
    _, [finding] = ask("bot-identities", scene(home, tmp_path / "locks", error=error))

    assert finding.code == "TOKEN-DUP"


def test_in_order(home: Path, tmp_path: Path) -> None:
    """Our own lock, one of a dead process, one whose number went to another, and odd files."""
    folder = tmp_path / "locks"
    for pid, start in ((PID, 1), (2**22 - 3, 5), (os.getpid(), own_start() - 1)):
        lock(folder, pid, start)
        assert ask("bot-identities", scene(home, folder))[1] == []
    for text in ("", "null", "[]", '{"pid": "x"}', '{"pid": -1}', '{"pid": true}'):
        next(folder.iterdir()).write_text(text)
        assert ask("bot-identities", scene(home, folder))[1] == []


def test_without_bots(home: Path) -> None:
    """A gateway that only listens has no bot to share."""
    result, _ = ask("bot-identities", Scene(home, {"API_SERVER_KEY": "x" * 20}))

    assert result.status == "skipped"


@pytest.mark.parametrize("running", [True, False])
def test_running_gateway_of_another_home(home: Path, tmp_path: Path, running: bool) -> None:
    """A gateway of any other home with the same app id is found without Hermes' lock files.

    If this home's own one is connected, it is the one that answers.
    """
    other = support.healthy(tmp_path / "copy" / "home")
    support.put(other / ".env", f"QQ_APP_ID={QQ['QQ_APP_ID']}\n")
    with fake_gateway.gateway(other) as sham:
        here = scene(home, tmp_path / "locks", running=running)
        _, findings = ask("bot-identities", here)
        resting = ask("shared-tokens", here)[1]

    assert resting == []
    if running:
        assert findings == []
        return
    [finding] = [one for one in findings if str(sham.pid) in one.title]
    assert finding.severity == "warning"
    assert finding.evidence[0].what == f"process {sham.pid} has the same QQ_APP_ID"
    assert QQ["QQ_APP_ID"] not in repr(finding)
