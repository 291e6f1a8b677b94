"""States that real releases leave in files, and what check says about them."""

from __future__ import annotations

import http.server
import json
import os
import pty
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.one_check import ask
from tests.helpers.real.gateways import gateway, sealed, until
from tests.helpers.real.release_homes import MakeHome, machine
from tools import real_home, releases

pytestmark = pytest.mark.real
VERSION = "0.19.0"
ENTRY = "import sys; from hermes_cli.main import main; sys.argv[0] = 'hermes'; main()"
NO_CRONITER = """
import sys
from cron import jobs
job = jobs.create_job("say hello", "0 9 * * *", name="daily")
sys.modules["croniter"] = None
jobs.HAS_CRONITER = False
jobs.mark_job_run(job["id"], True)
"""


class Refusing(http.server.BaseHTTPRequestHandler):
    """A server that rejects every login."""

    def do_GET(self) -> None:
        """Reject it."""
        self.send_response(401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def refusing() -> Iterator[str]:
    """Yield the address of such a server."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_adapter_that_is_rejected(hermes_home: MakeHome) -> None:
    """A real gateway whose ntfy server rejects the login says so in gateway_state.json."""
    home = hermes_home(VERSION)
    with refusing() as place:
        env = home / ".env"
        extra = f"NTFY_TOPIC=topic\nNTFY_TOKEN=not-a-token\nNTFY_SERVER_URL={place}\n"
        support.put(env, (env.read_text() if env.exists() else "") + extra)
        with gateway(VERSION, home):

            def state() -> dict[str, str]:
                found = json.loads((home / "gateway_state.json").read_bytes())
                return dict(found["platforms"].get("ntfy", {}))

            until(lambda: state().get("state") == "fatal", "the rejection")
            _, [found] = ask("platform-states", home)

    assert (found.code, found.title) == ("PLATFORM-DOWN", "ntfy rejects the login of the bot")
    assert "Check NTFY_TOKEN" in found.evidence[-1].what
    assert found.next.startswith("Correct the token or password")


def git(folder: Path, *words: str) -> None:
    """Run git as somebody whom the test names."""
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def checkout(folder: Path) -> Path:
    """A Hermes in a git checkout, of links to a release, with an update and a change of its own."""
    origin, own = folder / "origin", folder / "hermes-agent"
    origin.mkdir()
    [packages] = releases.python_of(VERSION).parent.parent.glob("lib/python3*/site-packages")
    for name in packages.iterdir():
        (origin / name.name).symlink_to(name)
    git(origin, "init", "-q", "-b", "main")
    git(origin, "add", "-A")
    git(origin, "commit", "-q", "-m", "first")
    git(folder, "clone", "-q", str(origin), str(own))
    support.put(origin / "NEWS", "new\n")
    git(origin, "add", "-A")
    git(origin, "commit", "-q", "-m", "second")
    support.put(own / "mine.py", "x = 1\n")
    return own


def test_an_update_that_asks(hermes_home: MakeHome, tmp_path: Path) -> None:
    """A real `hermes update` at a terminal asks what to do with own changes, and nobody answers."""
    home, own = hermes_home(VERSION), checkout(tmp_path)
    log = home / "logs/update.log"
    python = releases.python_of(VERSION)
    env = real_home.environment(home) | sealed(None) | machine(tmp_path, python.parent)
    env |= {"PYTHONPATH": str(own), "PYTHONDONTWRITEBYTECODE": "1"}
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [python, "-c", ENTRY, "update"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=env,
        cwd=own,
        start_new_session=True,
    )
    os.close(slave)
    reading = threading.Thread(target=drain, args=(master,))
    reading.start()
    try:
        until(lambda: log.exists() and log.read_text().rstrip().endswith("[Y/n]"), "the question")
        earlier = log.stat().st_mtime - 3600
        os.utime(log, (earlier, earlier))
        _, [waits] = ask("update-log", home)
        process.kill()
        process.wait()
        _, [stopped] = ask("update-log", home)
    finally:
        process.kill()
        process.wait()
        reading.join()
        os.close(master)

    assert waits.title == "an update of Hermes waits for an answer"
    assert f"process {process.pid}" in waits.next
    assert waits.evidence[1].what.endswith("Restore local changes now? [Y/n]")
    assert stopped.title == "an update of Hermes stopped at a question"


def drain(master: int) -> None:
    """Read what is written to a terminal until it is closed."""
    try:
        while os.read(master, 4096):
            pass
    except OSError:
        pass


def test_a_job_without_a_next_time(hermes_home: MakeHome) -> None:
    """The code of a release marks a run while the package croniter is missing."""
    home = hermes_home(VERSION)
    env = real_home.environment(home)
    subprocess.run([releases.python_of(VERSION), "-c", NO_CRONITER], env=env, check=True)

    found = [one for one in ask("cron-jobs", home)[1] if "no next time" in one.title]

    assert [one.title for one in found] == ["1 scheduled job will not run again: no next time"]
    assert "croniter" in found[0].evidence[0].what
