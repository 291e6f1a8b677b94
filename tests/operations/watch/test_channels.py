"""A command, a webhook: bounded, and silent about what is secret."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Severity, Trouble
from hermes_doctor.operations.watch.channels import (
    CommandChannel,
    HermesChannel,
    Notice,
    NotSent,
    WebhookChannel,
)
from hermes_doctor.operations.watch.events import EventKind, WatchEvent
from tests.helpers import support
from tests.helpers.fake_managers import until
from tests.helpers.watch_parts import AT

SECRET = "zQcanaryHook7"
EVENT = WatchEvent(
    EventKind.NEW,
    AT,
    "state.db is damaged",
    Severity.CRITICAL,
    "DB-NOTADB",
    "state.db",
    command="do it",
)
NOTICE = Notice(EVENT, "/the/home", frozenset())


def test_a_command_gets_the_event(tmp_path: Path) -> None:
    """A command gets the event."""
    told = tmp_path / "told"
    fields = "$HERMES_DOCTOR_EVENT/$HERMES_DOCTOR_CODE/$HERMES_DOCTOR_SEVERITY/$HERMES_DOCTOR_HOME"
    CommandChannel(f'cat >{told}; echo "{fields}" >>{told}').send(NOTICE)

    document, line = told.read_text().splitlines()
    said = json.loads(document)
    assert line == "new/DB-NOTADB/critical//the/home"
    assert said["schema"] == "hermes-doctor/event/1" and said["subject"] == "state.db"
    assert said["time"] == "2026-01-02T03:04:05+00:00" and said["text"] == said["content"]


@pytest.mark.parametrize(
    ("command", "why"), [("exit 3", "exit code 3"), ("no-such-command-here", "exit code 127")]
)
def test_a_command_that_fails(command: str, why: str) -> None:
    """A command that fails."""
    with pytest.raises(NotSent, match=why):
        CommandChannel(command).send(NOTICE)


def test_a_command_that_reads_nothing() -> None:
    """A command that reads nothing."""
    long = Notice(
        WatchEvent(EventKind.NEW, AT, "x" * 1_000_000, Severity.ERROR, "A"), "/home", frozenset()
    )
    CommandChannel("true").send(long)


def test_a_command_that_does_not_end_is_ended_with_all_it_started(tmp_path: Path) -> None:
    """A command that does not end is ended with all it started."""
    with pytest.raises(NotSent, match="took longer"):
        CommandChannel(f"sleep 1000 & echo $! >{tmp_path}/pid; wait", limit=0.5).send(NOTICE)

    pid = int((tmp_path / "pid").read_text())
    until(lambda: not cmdline(pid))


def cmdline(pid: int) -> bytes:
    """What a process runs; nothing for one that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class Server:
    """A webhook on this machine that answers as told."""

    def __init__(self, *answers: int) -> None:
        self.got: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        answers_left = list(answers)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append(json.loads(data))
                outer.paths.append(self.path)
                outer.headers.append(dict(self.headers))
                code = answers_left.pop(0) if answers_left else 204
                self.send_response(code)
                if code in (301, 302, 307, 308):
                    self.send_header("Location", "/elsewhere")
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hooks/{SECRET}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    made: list[Server] = []
    yield made
    for one in made:
        one.server.shutdown()
        one.server.server_close()


def serve(servers: list[Server], *answers: int) -> Server:
    servers.append(Server(*answers))
    return servers[-1]


def test_a_webhook(servers: list[Server]) -> None:
    """It gets the event as JSON."""
    server = serve(servers)
    WebhookChannel(server.url).send(NOTICE)

    [said] = server.got
    assert said["code"] == "DB-NOTADB" and said["event"] == "new" and said["command"] == "do it"


def test_a_webhook_is_tried_again(servers: list[Server]) -> None:
    """A server that is busy is asked again."""
    server = serve(servers, 503, 429)
    WebhookChannel(server.url, pauses=(0.0, 0.0)).send(NOTICE)

    assert len(server.got) == 3


@pytest.mark.parametrize(
    ("answers", "tries"), [((500, 500, 500), 3), ((404,), 1), ((403,), 1), ((302,), 1), ((307,), 1)]
)
def test_a_webhook_that_refuses(servers: list[Server], answers: tuple[int], tries: int) -> None:
    """It is asked no more often than is of use, and nobody else is asked."""
    server = serve(servers, *answers)
    with pytest.raises(NotSent) as why:
        WebhookChannel(server.url, pauses=(0.0, 0.0)).send(NOTICE)

    assert len(server.got) == tries
    assert set(server.paths) == {f"/hooks/{SECRET}"}, "it goes nowhere else"
    assert str(answers[0]) in str(why.value) and SECRET not in repr(why.value)


@pytest.mark.parametrize(
    "url",
    [
        f"http://127.0.0.1:9/{SECRET}",
        f"http://somebody:{SECRET}@127.0.0.1:9/",
        f"http://127.0.0.1:9/%40{SECRET}",
    ],
)
def test_a_webhook_that_is_not_there_keeps_its_secret(url: str) -> None:
    """A webhook that is not there keeps its secret."""
    with pytest.raises(NotSent) as why:
        WebhookChannel(url, pauses=(0.0,)).send(NOTICE)

    assert SECRET not in str(why.value)


@pytest.mark.parametrize(
    "url",
    [
        f"file:///etc/{SECRET}",
        f"http://127.0.0.1:99999/{SECRET}",
        f"http://[bad/{SECRET}",
        f"http:///{SECRET}",
        f"http://127.0.0.1:9/{SECRET} with blanks",
        f"http://somebody:{SECRET}/x@127.0.0.1:9/",
        f"http://{SECRET}:12/3@127.0.0.1:9/",
        f"http://{SECRET}#3@127.0.0.1:9/",
        f"http://a:b@{SECRET}?3@127.0.0.1:9/",
    ],
)
def test_an_address_that_is_none_or_not_clear(url: str) -> None:
    """It is refused before anybody is asked for a part of a password as a host."""
    with pytest.raises(Trouble) as why:
        WebhookChannel(url)

    assert SECRET not in str(why.value) and "\n" not in str(why.value)


def test_a_name_and_a_password_are_no_part_of_the_host(
    servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They go as a header, and nobody is asked on the network for them."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def resolve(host: str, *args: object, **more: object) -> object:
        asked.append(str(host))
        return real(host, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    server = serve(servers)
    WebhookChannel(server.url.replace("://", f"://some%40body:p%2F{SECRET}@")).send(NOTICE)

    assert len(server.got) == 1 and set(asked) == {"127.0.0.1"}
    given = base64.b64decode(str(server.headers[0]["Authorization"]).removeprefix("Basic "))
    assert given.decode() == f"some@body:p/{SECRET}"


def test_a_command_in_a_file(tmp_path: Path) -> None:
    """What it does is in no list of processes."""
    out = tmp_path / "out"
    script = support.put(tmp_path / "run", f'echo "$HERMES_DOCTOR_CODE {SECRET}" >{out}; cat >&2\n')
    made = CommandChannel(f"@{script}")
    made.send(NOTICE)

    assert out.read_text() == f"DB-NOTADB {SECRET}\n"
    assert SECRET not in " ".join(made.words)
    with pytest.raises(Trouble, match="Could not read the file"):
        CommandChannel(f"@{tmp_path}/none")


def test_no_sign_steers_a_terminal_or_breaks_a_parser() -> None:
    """A name of a file may hold anything."""
    odd = "a\x1b]0;gone\x07b\nc\udc80\u202ed"
    event = EVENT._replace(subject=odd, title=f"{odd} is wrong", command=f"fix {odd}")
    said = Notice(event, f"/home/{odd}", frozenset())
    line = json.dumps(said.document(), ensure_ascii=False)

    assert json.loads(line)["subject"] == "a�]0;gone�b�c��d"
    line.encode()
    for text in (line, said.words(), event.sentence()):
        assert not [sign for sign in text if ord(sign) < 32 or sign in "\x7f\u202e"]


@pytest.mark.parametrize("target", ["", "tele gram", "telegram:\n", "--to", "-x", ":1"])
def test_a_target_that_is_none(home: Path, target: str) -> None:
    """What is no platform is refused at once."""
    with pytest.raises(Trouble):
        HermesChannel(Home(home), target)


def test_not_through_what_is_broken(home: Path) -> None:
    """Not through what is broken."""
    broken = Notice(EVENT, str(home), frozenset({"telegram"}))
    with pytest.raises(NotSent, match="telegram itself has a problem"):
        HermesChannel(Home(home), "telegram:123").send(broken)


def test_a_file_name_attaches_nothing() -> None:
    """A file name attaches nothing."""
    event = WatchEvent(
        EventKind.NEW, AT, "x", Severity.ERROR, "A", "MEDIA:/etc/passwd [[as_document]]\x1b[0m"
    )

    words = Notice(event, "/home", frozenset()).words()
    assert "MEDIA:" not in words and "[[" not in words and "\x1b" not in words


def test_the_environment_of_the_operator_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment of the operator is there."""
    monkeypatch.setenv("MY_OWN", "thing")
    CommandChannel(f'printf %s "$MY_OWN" >{tmp_path}/told').send(NOTICE)

    assert (tmp_path / "told").read_text() == "thing" == os.environ["MY_OWN"]


def test_a_webhook_that_answers_by_drops() -> None:
    """It is given up as a whole, not byte by byte."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        hook = WebhookChannel(f"http://127.0.0.1:{server.getsockname()[1]}/x", pauses=())
        hook.address.limit = 0.5

        def drip() -> None:
            peer, _ = server.accept()
            with peer, contextlib.suppress(OSError):
                for byte in b"HTTP/1.1 200 OK and more":
                    peer.send(bytes([byte]))
                    time.sleep(0.2)

        threading.Thread(target=drip, daemon=True).start()
        with pytest.raises(NotSent, match="did not answer in time"):
            hook.send(NOTICE)
