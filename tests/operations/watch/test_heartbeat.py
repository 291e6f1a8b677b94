"""A request after each round, so that someone notices when the watch is gone."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator

import pytest

from hermes_doctor.core.model import Trouble
from hermes_doctor.operations.watch.heartbeat import HeartbeatSender
from tests.helpers import budget
from tests.helpers.pings import Pings, pings

SECRET = "zQcanaryBeat7"


@pytest.fixture
def service() -> Iterator[Pings]:
    """A service like Healthchecks.io."""
    with pings() as made:
        yield made


def beat(sender: HeartbeatSender, *, good: bool) -> str:
    """Send one request and wait for its end; why it failed."""
    assert sender.beat(good=good) == ""
    return sender.close()


def test_good_and_bad_rounds(service: Pings) -> None:
    """They have addresses of their own."""
    sender = HeartbeatSender(service.url("/up"), service.url("/fail"))

    for good in (True, False, True):
        assert beat(sender, good=good) == ""

    assert service.paths == ["/up", "/fail", "/up"]


def test_without_an_address_for_failures(service: Pings) -> None:
    """The watch itself runs, and that is what a heartbeat says."""
    sender = HeartbeatSender(service.url("/push?status=up"), None)

    assert beat(sender, good=False) == ""

    assert service.paths == ["/push?status=up"]


@pytest.mark.parametrize(
    ("answer", "why"), [(500, "HTTP 500"), (404, "HTTP 404"), (302, "HTTP 302")]
)
def test_a_service_that_refuses(service: Pings, answer: int, why: str) -> None:
    """The next round reports the failure without the address; no redirect is followed."""
    service.answer = answer
    sender = HeartbeatSender(service.url(f"/{SECRET}"), None)

    sender.beat(good=True)
    said = sender.close()

    assert said == f"could not send the heartbeat: the server answered {why}"
    assert sender.beat(good=True) == said, "told with the next round"
    sender.close()
    assert service.paths == [f"/{SECRET}"] * 2


def test_a_service_that_is_gone() -> None:
    """One line, without the address."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    sender = HeartbeatSender(f"http://127.0.0.1:{port}/{SECRET}", None)

    said = beat(sender, good=True)

    assert said.startswith("could not send the heartbeat: the server could not be reached")
    assert SECRET not in said


def test_a_slow_service_delays_nothing() -> None:
    """While a request is under way, the next round sends none."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sender = HeartbeatSender(f"http://127.0.0.1:{silent.getsockname()[1]}/", None)
        sender._good.limit = 0.2

        assert [sender.beat(good=True) for _ in range(3)] == [""] * 3
        assert sender.close() == "could not send the heartbeat: the server did not answer in time"
        silent.settimeout(5)
        silent.accept()[0].close()
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):
            silent.accept()


@pytest.mark.parametrize("address", ["", "ftp://x", "http://", f"https://a b/{SECRET}"])
def test_what_is_no_address(address: str) -> None:
    """The error names the option and not the address; an empty file is refused, too."""
    for words in ((address, None), ("https://example.org", address)):
        with pytest.raises(Trouble, match=r"--heartbeat(-fail)?\b") as trouble:
            HeartbeatSender(*words)
        assert SECRET not in str(trouble.value)


def random_answer(dice: random.Random) -> bytes:
    """What a broken or hostile service may send."""
    line = dice.choice([b"HTTP/1.1 200 OK", b"HTTP/1.1 999 ?", b"HTTP/9.9 x", b"", b"\0", b"HTTP"])
    name = dice.choice([b"Content-Length", b"Transfer-Encoding", b"Location", b"X" * 70_000])
    value = dice.choice([b"-1", b"9" * 5000, b"chunked", b"file:///etc/passwd", b"\r\r", b"5"])
    body = dice.choice([b"", b"zz\r\n", b"ffffffffffffffff\r\n", dice.randbytes(5000)])
    answer = b"\r\n".join([line, name + b": " + value, b"", body])
    return answer if dice.random() < 0.7 else answer[: dice.randrange(len(answer) + 1)]


def test_random_answers() -> None:
    """One line says what failed, without the address, and the watch does not wait."""
    dice = budget.chance(37)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for _ in range(budget.tries(10, 200)):
            answer = random_answer(dice)
            sender = HeartbeatSender(f"http://127.0.0.1:{port}/{SECRET}", None)
            sender._good.limit = 5.0
            assert sender.beat(good=True) == ""
            link, _ = server.accept()
            with link, contextlib.suppress(OSError):
                link.recv(4096)
                link.sendall(answer)
                link.shutdown(socket.SHUT_RDWR)
            said = sender.close()
            assert "\n" not in said, answer
            assert SECRET not in said, answer
            assert not said or said.startswith("could not send the heartbeat: "), answer
            assert sender._thread is not None
            assert not sender._thread.is_alive(), answer
