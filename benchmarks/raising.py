"""Record what real errors say, and the clients and servers on loopback that raise them.

It runs under the interpreter of a release; see `benchmarks.real_errors`.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import resource
import socket
import ssl
import threading
import traceback
from collections.abc import Callable
from typing import Any

Raiser = Callable[[], Any]
FOUND: list[dict[str, Any]] = []
LOST: list[str] = []
"""What could not be raised here, with the reason."""


VAGUE = ("All connection attempts failed", "Connection error.", "httpx.ReadError:")
"""The ends of texts that say only that there is no connection."""
UNNAMED = ("Connect call failed", "[None]")
"""What aiohttp says instead of the reason."""
ABOUT_CODE = ("module-missing", "name-missing", "attribute-missing", "socks-library-missing")
"""Causes whose errors look like those of a library that is not installed."""


def library(name: str) -> Any:
    """Import a library of the release, which the tests of this tool do not have."""
    return importlib.import_module(name)


def raised(cause: str, name: str, work: Raiser) -> None:
    """Record the error that a function raises.

    Several causes that it may be called are separated by `|`. Those after `~` are right only where
    the traceback is not shown, because the text alone says no more.
    """
    try:
        result = work()
        if asyncio.iscoroutine(result):
            asyncio.run(asyncio.wait_for(result, 20))
    except (ImportError, AttributeError) as error:
        if cause in ABOUT_CODE:
            record(cause, name, error)
        else:  # the release has another library
            LOST.append(f"{name}: {error}")
    except BaseException as error:  # noqa: BLE001 (a cancelled task is one, too)
        record(cause, name, error)
    else:
        LOST.append(f"{name}: no error")


def record(cause: str, name: str, error: BaseException) -> None:
    """Keep what an error says."""
    if str(error).strip().endswith(VAGUE) or any(one in str(error) for one in UNNAMED):
        cause = cause if "~" in cause else f"{cause}~connection-failed"
    kinds = [one for one in type(error).__mro__ if one is not object]
    names = {f"{one.__module__}.{one.__qualname__}" for one in kinds}
    FOUND.append({
        "cause": cause,
        "name": name,
        "type": type(error).__name__,
        "types": sorted(names | {one.__name__ for one in kinds}),
        "text": str(error),
        "repr": repr(error),
        "traceback": "".join(traceback.format_exception(error)),
    })  # fmt: skip


def in_child(work: Callable[[], None]) -> None:
    """Do something that cannot be undone in a process of its own, and take over what it raised."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        FOUND.clear()
        LOST.clear()
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (the parent says so)
            LOST.append(repr(error))
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        )
        os.write(writing, json.dumps([FOUND, LOST]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    found, lost = json.loads(text or b'[[], ["a process ended early"]]')
    FOUND.extend(found)
    LOST.extend(lost)


def clients(url: str, **given: Any) -> dict[str, Raiser]:
    """Return the ways in which a release fetches an address, by the name of the library."""

    timeout, verify = given.get("timeout", 5), given.get("verify", True)
    proxy = given.get("proxy")

    def by_httpx() -> None:
        make = library("httpx").Client
        with make(timeout=timeout, verify=verify, proxy=proxy, trust_env=False) as client:
            client.get(url).raise_for_status()

    async def by_async_httpx() -> None:
        make = library("httpx").AsyncClient
        async with make(timeout=timeout, verify=verify, proxy=proxy, trust_env=False) as client:
            (await client.get(url)).raise_for_status()

    async def by_aiohttp() -> None:
        aiohttp = library("aiohttp")
        patience = aiohttp.ClientTimeout(sock_connect=timeout, sock_read=timeout)
        more = {} if verify is True else {"ssl": verify}
        async with (
            aiohttp.ClientSession(timeout=patience) as session,
            session.get(url, proxy=proxy, **more) as answer,
        ):
            answer.raise_for_status()
            await answer.read()

    def by_requests() -> None:
        session = library("requests").Session()
        session.trust_env = False
        ways = {"http": proxy, "https": proxy} if proxy else None
        trusted = given.get("bundle", True)
        session.get(url, timeout=timeout, verify=trusted, proxies=ways).raise_for_status()

    def by_urllib() -> None:
        request = library("urllib.request")
        ways = {"http": proxy, "https": proxy} if proxy else {}
        handlers = [request.ProxyHandler(ways)]
        if isinstance(verify, ssl.SSLContext):
            handlers.append(request.HTTPSHandler(context=verify))
        request.build_opener(*handlers).open(url, timeout=timeout).read()

    return {"httpx": by_httpx, "httpx-async": by_async_httpx, "aiohttp": by_aiohttp,
            "requests": by_requests, "urllib": by_urllib}  # fmt: skip


def fetched(cause: str, name: str, url: str, **given: Any) -> None:
    """Fetch an address with every library."""
    for client, work in clients(url, **given).items():
        raised(cause, f"{name}-{client}", work)


def bot(base: str) -> Raiser:
    """Return a call of python-telegram-bot."""

    async def work() -> None:
        request = library("telegram.request").HTTPXRequest(connect_timeout=0.5, read_timeout=0.5)
        await (
            library("telegram")
            .Bot("12345:made-up", base_url=f"{base}/bot", request=request)
            .get_me()
        )

    return work


def model(base: str, timeout: float = 5.0) -> Raiser:
    """Return a call of the OpenAI library."""

    def work() -> None:
        httpx = library("httpx")
        openai = library("openai")

        plain = httpx.Client(trust_env=False, timeout=timeout)
        client = openai.OpenAI(
            api_key="made-up",
            base_url=f"{base}/v1",
            max_retries=0,
            http_client=plain,
            timeout=timeout,
        )
        client.chat.completions.create(
            model="made-up-model", messages=[{"role": "user", "content": "hi"}]
        )

    return work


class Server:
    """A server on loopback that treats every connection in the same way."""

    def __init__(self, treat: Callable[[socket.socket], None], backlog: int = 50) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self.port = self.socket.getsockname()[1]
        self.treat = treat
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        try:
            self.treat(connection)
        except OSError:
            pass
        finally:
            connection.close()


def answering(status: str, body: bytes = b"{}", headers: str = "") -> Server:
    """Return a server that gives everybody the same HTTP answer."""

    def treat(connection: socket.socket) -> None:
        connection.settimeout(3)
        request = connection.recv(65536)
        while b"\r\n\r\n" not in request:
            request += connection.recv(65536)
        length = f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}{length}"
        connection.sendall(head.encode() + body)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass

    return Server(treat)


def closing(connection: socket.socket) -> None:
    """Close without an answer."""
    connection.recv(65536)


def resetting(connection: socket.socket) -> None:
    """Close with a reset."""
    import struct

    connection.recv(1024)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def silent(_: socket.socket) -> None:
    """Accept and say nothing."""
    import time

    time.sleep(8)


def closed_port() -> int:
    """Return a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
