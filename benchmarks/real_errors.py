"""Raise real errors with the libraries of a release, and print what they say as JSON.

`benchmarks.cause_corpus` starts this with the interpreter of a release, as root in a network and a
mount namespace of its own: it has only loopback, and a small file system that it may fill.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import resource
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
import zipfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from benchmarks.raising import (
    FOUND,
    LOST,
    Server,
    answering,
    bot,
    clients,
    closed_port,
    closing,
    fetched,
    in_child,
    library,
    model,
    raised,
    resetting,
    silent,
)

NOBODY = 65534
WRONG = "wrong-content|text-not-json"
"""Where JSON is expected, nothing or a page may be either."""


def machine(folder: Path) -> None:
    """Files, processes and ports."""
    raised("file-missing", "open-missing", lambda: (folder / "none.json").open())
    raised("file-missing", "listdir-missing", lambda: os.listdir(folder / "none"))
    raised("program-missing~file-missing", "program", lambda: subprocess.run(["no-such-program"]))
    broken = folder / "program"
    broken.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(57))
    broken.chmod(0o755)
    raised("wrong-architecture", "format", lambda: subprocess.run([str(broken)]))
    raised("library-file-missing", "cdll", lambda: ctypes.CDLL("libnone.so.1"))
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    raised("port-in-use", "bind", lambda: socket.create_server(("127.0.0.1", port)))

    async def serve(host: str, on: int) -> None:
        await asyncio.start_server(lambda *_: None, host, on)

    raised("port-in-use", "asyncio", lambda: serve("127.0.0.1", port))

    async def site(host: str, on: int) -> None:
        web = library("aiohttp.web")
        runner = web.AppRunner(web.Application())
        await runner.setup()
        await web.TCPSite(runner, host, on).start()

    raised("port-in-use", "aiohttp-site", lambda: site("127.0.0.1", port))
    raised("address-not-here", "bind-address", lambda: socket.create_server(("192.0.2.1", 0)))
    raised("address-not-here", "asyncio-address", lambda: serve("192.0.2.1", 0))
    taken.close()


def full_disk(folder: Path) -> None:
    """A file system without space, and one that is read-only."""
    small = folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(small)], check=True)
    base = sqlite3.connect(small / "a.db", isolation_level=None)
    base.execute("create table t (x)")
    filler = b"x" * 65536

    def fill() -> None:
        with (small / "filler").open("ab", buffering=0) as file:
            while file.write(filler):
                pass

    raised("disk-full", "write", fill)
    raised("disk-full", "copy", lambda: (small / "other.json").write_bytes(filler))
    raised("disk-full", "sqlite", lambda: base.execute("insert into t values (zeroblob(60000))"))
    base.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    raised("disk-read-only", "open", lambda: (small / "new").open("w"))
    raised("disk-read-only", "mkdir-read-only", lambda: (small / "folder").mkdir())
    raised("disk-read-only", "unlink", lambda: (small / "a.db").unlink())

    def device() -> None:
        with open("/dev/full", "w") as file:
            file.write("x")

    raised("disk-full", "device", device)


def rights(folder: Path) -> None:
    """What somebody else's files and low limits refuse."""
    secret = folder / "secret"
    secret.write_text("x")
    secret.chmod(0o600)
    program = folder / "not-executable"
    program.write_text("#!/bin/sh\n")
    base = folder / "refused.db"
    base.write_bytes(b"")
    base.chmod(0o600)

    def work() -> None:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        raised("permission-denied", "open", lambda: secret.open())
        raised("permission-denied", "mkdir", lambda: (folder / "new").mkdir())
        raised("permission-denied", "unlink", lambda: secret.unlink())
        raised("permission-denied", "run", lambda: subprocess.run([str(program)]))
        raised("permission-denied", "chown", lambda: os.chmod(secret, 0o644))
        raised(
            "port-not-allowed|permission-denied",
            "low-port",
            lambda: socket.create_server(("127.0.0.1", 80)),
        )
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        raised("processes-used-up~nothing", "fork", lambda: subprocess.run(["true"]))
        raised("processes-used-up", "thread", lambda: threading.Thread(target=print).start())

    in_child(work)

    def files() -> None:
        loop = asyncio.new_event_loop()
        httpx = library("httpx")
        client = httpx.Client(trust_env=False)
        port = closed_port()
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (24, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        )
        held = []
        with suppress(OSError):
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        raised("too-many-files", "open", lambda: secret.open())
        raised("too-many-files", "socket", lambda: socket.socket())
        raised("too-many-files", "httpx", lambda: client.get(f"http://127.0.0.1:{port}/"))
        raised("too-many-files", "listdir", lambda: os.listdir(folder))
        raised("too-many-files", "pipe", os.pipe)
        for one in held:
            os.close(one)
        loop.close()

    in_child(files)

    def memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
        raised("memory-used-up", "bytes", lambda: bytearray(2**34))

    in_child(memory)


def databases(folder: Path) -> None:
    """What SQLite says."""
    path = folder / "state.db"
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("create table messages (id integer primary key, content text not null unique)")
    base.executemany(
        "insert into messages (content) values (?)", [(str(n) * 300,) for n in range(200)]
    )
    raised("database-lacks-column", "table", lambda: base.execute("select * from sessions"))
    raised(
        "database-lacks-column", "column", lambda: base.execute("select reasoning from messages")
    )
    raised(
        "database-lacks-column",
        "insert",
        lambda: base.execute("insert into messages (role) values (1)"),
    )
    raised(
        "database-refuses-row",
        "null",
        lambda: base.execute("insert into messages (id) values (9000)"),
    )
    raised(
        "database-refuses-row",
        "unique",
        lambda: base.execute("insert into messages (content) values (?)", ("1" * 300,)),
    )
    base.execute("begin exclusive")
    raised(
        "database-locked",
        "locked",
        lambda: sqlite3.connect(path, timeout=0.05).execute("select * from messages"),
    )
    raised(
        "database-locked",
        "write",
        lambda: sqlite3.connect(path, timeout=0.05).execute("begin immediate"),
    )
    base.execute("commit")
    base.close()
    raised("database-closed", "closed", lambda: base.execute("select 1"))
    only = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    raised("database-read-only", "read-only", lambda: only.execute("delete from messages"))
    raised("database-cannot-open", "cannot-open", lambda: sqlite3.connect(folder / "none" / "a.db"))
    text = folder / "text.db"
    text.write_bytes(b"this is no database, but long enough " * 100)
    raised("not-a-database", "text", lambda: sqlite3.connect(text).execute("select * from x"))
    damaged = bytearray(path.read_bytes())
    damaged[4096:] = b"\xa5" * (len(damaged) - 4096)
    (folder / "damaged.db").write_bytes(damaged)
    raised(
        "database-malformed",
        "damaged",
        lambda: (
            sqlite3.connect(folder / "damaged.db")
            .execute("select count(content) from messages")
            .fetchall()
        ),
    )
    damaged[100:4096] = b"\x07" * 3996
    (folder / "schema.db").write_bytes(damaged)
    raised(
        "database-malformed",
        "schema",
        lambda: sqlite3.connect(folder / "schema.db").execute("select * from messages"),
    )


def texts(folder: Path) -> None:
    """Files with the wrong content."""
    yaml = library("yaml")
    for name, said in {
        "empty": "",
        "cut": '{"a": [1, 2',
        "html": "<html>",
        "comma": '{"a": 1,}',
        "two": "{} {}",
    }.items():
        cause = WRONG if name in ("empty", "html") else "text-not-json"
        raised(cause, name, partial(json.loads, said))
    for name, said in {
        "tab": "a:\n\tb: 1",
        "colon": "a: b: c",
        "bracket": "a: [1",
        "indent": "a: 1\n  b: 2",
    }.items():
        raised("settings-not-yaml", name, lambda said=said: yaml.safe_load(said))  # type: ignore[misc]
    raised("text-not-unicode", "decode", lambda: b"caf\xe9 \xff".decode())
    raised("text-not-unicode", "encode", lambda: "é".encode("ascii"))
    bad = folder / "bad.zip"
    bad.write_bytes(b"PK\x03\x04" + bytes(100))
    raised("archive-damaged", "zip", lambda: zipfile.ZipFile(bad))
    tarfile, gzip = library("tarfile"), library("gzip")
    raised("archive-damaged", "tar", lambda: tarfile.open(bad))
    raised("archive-damaged", "gzip", lambda: gzip.open(bad).read())
    raised("value-invalid", "int", lambda: int("eight"))
    raised(
        "value-invalid|module-missing", "zone", lambda: library("zoneinfo").ZoneInfo("Mars/Olympus")
    )
    raised("address-invalid", "httpx-scheme", lambda: clients("api.example/v1")["httpx"]())
    raised("address-invalid", "requests-scheme", lambda: clients("api.example/v1")["requests"]())
    raised("address-invalid", "urllib-url", lambda: clients("api.example/v1")["urllib"]())


def code(folder: Path) -> None:
    """Modules that are missing, and two versions that are mixed."""
    (folder / "half_module.py").write_text("def connect(url): return url\n")
    (folder / "broken_module.py").write_text("def connect(:\n    pass\n")
    (folder / "indented_module.py").write_text("def connect():\npass\n")
    (folder / "importing_module.py").write_text("import snowballstemmer\n")
    sys.path.insert(0, str(folder))
    half = library("half_module")
    raised("module-missing", "module", lambda: library("no_such_library"))
    raised("module-missing", "inner", lambda: library("importing_module"))
    raised("module-missing", "submodule", lambda: library("json.fast"))
    raised("name-missing", "name", lambda: exec("from half_module import Client", {}))
    raised("name-missing", "library-name", lambda: exec("from httpx import AsyncRequester", {}))
    raised("argument-unknown", "keyword", lambda: half.connect("x", retries=3))
    raised("argument-unknown", "library-keyword", lambda: library("httpx").Client(proxies={}))
    raised("argument-unknown", "missing", lambda: half.connect())
    raised("attribute-missing", "module-attribute", lambda: half.reconnect)
    raised("attribute-missing", "object", lambda: library("httpx").Timeout(1).total)
    raised("code-not-python", "syntax", lambda: library("broken_module"))
    raised("code-not-python", "indentation", lambda: library("indented_module"))


def times(_: Path) -> None:
    """Waiting that ends."""

    async def waits() -> None:
        await asyncio.wait_for(asyncio.sleep(5), 0.01)

    async def within() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(5)

    async def cancelled() -> None:
        task = asyncio.create_task(asyncio.sleep(5))
        await asyncio.sleep(0)
        task.cancel()
        await task

    raised("timed-out", "wait-for", waits)
    raised("timed-out", "timeout", within)
    raised("", "cancelled", cancelled)
    raised("timed-out", "subprocess", lambda: subprocess.run(["sleep", "5"], timeout=0.05))
    raised("timed-out", "future", lambda: library("concurrent.futures").Future().result(0.01))


def connections(_: Path) -> None:
    """Connections that do not come about or break."""
    refused = f"http://127.0.0.1:{closed_port()}"
    fetched("connection-refused", "refused", f"{refused}/v1")
    raised(
        "connection-refused",
        "socket",
        lambda: socket.create_connection(("127.0.0.1", closed_port())),
    )
    raised(
        "connection-refused", "smtp", lambda: library("smtplib").SMTP("127.0.0.1", closed_port())
    )
    raised("connection-refused", "telegram", bot(refused))
    raised("connection-refused", "openai", model(refused))
    fetched("name-not-resolved", "dns", "http://api.made-up-host.example/v1")
    raised(
        "name-not-resolved",
        "dns-socket",
        lambda: socket.create_connection(("imap.made-up.example", 993)),
    )
    raised("name-not-resolved", "dns-telegram", bot("http://api.made-up-host.example"))
    raised("name-not-resolved", "dns-openai", model("http://api.made-up-host.example"))
    fetched("network-unreachable", "unreachable", "http://192.0.2.1/v1")
    for name, treat in {"closed": closing, "reset": resetting}.items():
        url = f"http://127.0.0.1:{Server(treat).port}"
        fetched("connection-reset", name, url)
        raised("connection-reset", f"{name}-telegram", bot(url))
        raised("connection-reset", f"{name}-openai", model(url))
    quiet = f"http://127.0.0.1:{Server(silent).port}"
    fetched("answer-timed-out|timed-out", "silent", quiet, timeout=0.3)
    raised("answer-timed-out|timed-out", "silent-telegram", bot(quiet))
    raised("answer-timed-out|timed-out", "silent-openai", model(quiet, timeout=0.3))
    full = socket.create_server(("127.0.0.1", 0), backlog=0)
    waiting = []
    for _number in range(4):
        one = socket.socket()
        one.setblocking(False)
        with suppress(BlockingIOError):
            one.connect(full.getsockname())
        waiting.append(one)
    time.sleep(0.1)
    fetched(
        "connection-timed-out|timed-out",
        "backlog",
        f"http://127.0.0.1:{full.getsockname()[1]}",
        timeout=0.3,
    )
    used = Server(silent)

    async def pool() -> None:
        httpx = library("httpx")
        limits = httpx.Limits(max_connections=1)
        timeout = httpx.Timeout(3, pool=0.1)
        async with httpx.AsyncClient(limits=limits, timeout=timeout, trust_env=False) as client:
            url = f"http://127.0.0.1:{used.port}"
            await asyncio.gather(client.get(url), client.get(url))

    raised("connections-used-up|timed-out", "pool", pool)


def proxies(_: Path) -> None:
    """Proxies that refuse, ask, or are not there."""
    target = "https://127.0.0.1:1/"
    fetched(
        "proxy-refuses~access-forbidden",
        "forbidden",
        target,
        proxy=f"http://127.0.0.1:{answering('403 Forbidden').port}",
    )
    asks = answering("407 Proxy Authentication Required", headers="Proxy-Authenticate: Basic\r\n")
    fetched("proxy-needs-login", "login", target, proxy=f"http://127.0.0.1:{asks.port}")
    fetched(
        "proxy-unreachable|connection-refused",
        "absent",
        target,
        proxy=f"http://127.0.0.1:{closed_port()}",
    )
    raised(
        "proxy-scheme", "scheme", lambda: clients(target, proxy="socks://127.0.0.1:1")["httpx"]()
    )
    raised(
        "socks-library-missing",
        "requests",
        lambda: clients(target, proxy="socks5://127.0.0.1:1")["requests"](),
    )

    def without() -> None:
        sys.modules["socksio"] = None  # type: ignore[assignment]
        for name in [
            name for name in sys.modules if name.startswith("httpcore") and "socks" in name
        ]:
            del sys.modules[name]
        raised(
            "socks-library-missing",
            "httpx",
            lambda: clients(target, proxy="socks5://127.0.0.1:1")["httpx"](),
        )
        raised(
            "socks-library-missing",
            "httpx-async",
            lambda: clients(target, proxy="socks5://127.0.0.1:1")["httpx-async"](),
        )

    in_child(without)


def certificates(folder: Path) -> None:
    """Servers with wrong certificates, from a local authority."""

    x509 = library("cryptography.x509")
    hashes = library("cryptography.hazmat.primitives.hashes")
    serialization = library("cryptography.hazmat.primitives.serialization")
    rsa = library("cryptography.hazmat.primitives.asymmetric.rsa")
    common_name = x509.oid.NameOID.COMMON_NAME
    today = datetime.now(UTC)

    def certificate(name: str, address: str, days: int, issuer: Any = None) -> tuple[Any, Any]:
        key = rsa.generate_private_key(65537, 2048)
        subject = x509.Name([x509.NameAttribute(common_name, name)])
        made = x509.CertificateBuilder().subject_name(subject).public_key(key.public_key())
        made = made.issuer_name(issuer[0].subject if issuer else subject)
        made = made.serial_number(x509.random_serial_number())
        made = made.not_valid_before(today - timedelta(days=30)).not_valid_after(
            today + timedelta(days=days)
        )
        made = made.add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), True)
        if issuer:
            names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
            made = made.add_extension(names, False)
        done = made.sign(issuer[1] if issuer else key, hashes.SHA256())
        form = serialization.Encoding.PEM
        (folder / f"{name}.pem").write_bytes(done.public_bytes(form))
        kind, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        (folder / f"{name}.key").write_bytes(key.private_bytes(form, kind, plain))
        return done, key

    authority = certificate("ca", "", 30)
    for name, address, days in (
        ("good", "127.0.0.1", 9),
        ("expired", "127.0.0.1", -9),
        ("other", "192.0.2.9", 9),
    ):
        certificate(name, address, days, authority)
    trusted = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    bundle = str(folder / "ca.pem")

    def serving(name: str) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")

        def treat(connection: socket.socket) -> None:
            with context.wrap_socket(connection, server_side=True) as safe:
                safe.recv(1024)

        return f"https://127.0.0.1:{Server(treat).port}/"

    fetched("certificate-untrusted", "untrusted", serving("good"))
    raised("certificate-untrusted", "untrusted-openai", model(serving("good")[:-1]))
    fetched(
        "certificate-for-another-host",
        "other-host",
        serving("other"),
        verify=trusted,
        bundle=bundle,
    )
    fetched("certificate-expired", "expired", serving("expired"), verify=trusted, bundle=bundle)
    fetched(
        "tls-broken|connection-reset",
        "broken-off",
        f"https://127.0.0.1:{Server(closing).port}/",
        verify=trusted,
        bundle=bundle,
    )

    def plain(connection: socket.socket) -> None:
        connection.recv(1024)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    fetched(
        "tls-broken",
        "plain",
        f"https://127.0.0.1:{Server(plain).port}/",
        verify=trusted,
        bundle=bundle,
    )


STATUSES = {
    "400 Bad Request": ("request-refused", "Invalid value for 'messages[0].content'"),
    "401 Unauthorized": ("login-refused", "Incorrect API key provided"),
    "402 Payment Required": ("no-credit", "Insufficient balance"),
    "403 Forbidden": ("access-forbidden", "Your account does not have access"),
    "404 Not Found": ("address-not-found", "Not Found"),
    "409 Conflict": ("request-conflict", "Conflict"),
    "413 Payload Too Large": ("request-too-large", "Request too large"),
    "422 Unprocessable Entity": ("request-refused", "Field required"),
    "429 Too Many Requests": ("rate-limited", "Rate limit reached for requests"),
    "500 Internal Server Error": ("server-error", "The server had an error"),
    "502 Bad Gateway": ("server-error", "Bad gateway"),
    "503 Service Unavailable": ("server-error|overloaded", "Service unavailable"),
    "504 Gateway Timeout": ("server-error|answer-timed-out", "Gateway timeout"),
    "529 Overloaded": ("overloaded", "Overloaded"),
}


MODEL_ANSWERS = (
    ("model-unknown", "404 Not Found", "model_not_found", "The model `made-up` does not exist"),
    (
        "context-too-long",
        "400 Bad Request",
        "context_length_exceeded",
        "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens.",
    ),
    (
        "no-credit|rate-limited",
        "429 Too Many Requests",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
)
TELEGRAM_ANSWERS = (
    ("login-refused", "401 Unauthorized", "Unauthorized"),
    (
        "used-by-two",
        "409 Conflict",
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is "
        "running",
    ),
    ("rate-limited", "429 Too Many Requests", "Too Many Requests: retry after 35"),
    ("access-forbidden", "403 Forbidden", "Forbidden: bot was blocked by the user"),
    ("server-error", "502 Bad Gateway", "Bad Gateway"),
)
SLACK_ANSWERS = (
    ("login-refused", "invalid_auth"),
    ("scope-missing", "missing_scope"),
    ("login-expired|login-refused", "token_revoked"),
    ("login-refused|login-expired", "account_inactive"),
)


def served(status: str, said: Any) -> str:
    """Return the address of a server that answers everybody so."""
    return f"http://127.0.0.1:{answering(status, json.dumps(said).encode()).port}"


def slack(url: str) -> None:
    """Call a method of Slack."""
    library("slack_sdk").WebClient(token="xoxb-made-up", base_url=f"{url}/").auth_test()


def answers(_: Path) -> None:
    """What servers answer."""
    for status, (cause, words) in STATUSES.items():
        said = {"error": {"message": words, "type": "error", "code": int(status[:3])}}
        url = served(status, said)
        fetched(cause, status[:3], f"{url}/v1/chat/completions")
        raised(cause, f"{status[:3]}-openai", model(url))
    for cause, status, name, words in MODEL_ANSWERS:
        raised(cause, name, model(served(status, {"error": {"message": words, "code": name}})))
    page = f"http://127.0.0.1:{answering('200 OK', b'<html>Login</html>').port}"
    get = library("httpx").get
    raised(WRONG, "html-httpx", lambda: get(page, trust_env=False).json())
    for cause, status, words in TELEGRAM_ANSWERS:
        body = {"ok": False, "error_code": int(status[:3]), "description": words}
        if status[:3] == "429":
            body["parameters"] = {"retry_after": 35}
        raised(cause, f"telegram-{status[:3]}", bot(served(status, body)))
    for cause, reason in SLACK_ANSWERS:
        url = served("200 OK", {"ok": False, "error": reason})
        raised(cause, f"slack-{reason}", partial(slack, url))


def websockets(_: Path) -> None:
    """Connections that the other side closes with a code."""

    async def closes(code: int, reason: str) -> None:
        web = library("aiohttp.web")

        async def handler(request: Any) -> Any:
            answer = web.WebSocketResponse()
            await answer.prepare(request)
            await answer.close(code=code, message=reason.encode())
            return answer

        app = web.Application()
        app.router.add_get("/", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        connect = library("websockets.asyncio.client").connect
        try:
            async with connect(f"ws://127.0.0.1:{port}/", proxy=None) as socket_:
                await socket_.recv()
        finally:
            await runner.cleanup()

    for code, reason in (
        (1000, ""),
        (1001, "going away"),
        (1011, "internal error"),
        (4000, "unknown"),
        (4009, "session timed out"),
    ):
        raised("websocket-closed", f"{code}", lambda code=code, reason=reason: closes(code, reason))  # type: ignore[misc]

    async def refused(status: str) -> None:
        aiohttp = library("aiohttp")
        async with aiohttp.ClientSession() as session:
            await session.ws_connect(f"http://127.0.0.1:{answering(status).port}/")

    raised("login-refused|websocket-closed", "handshake-401", lambda: refused("401 Unauthorized"))
    raised("server-error|websocket-closed", "handshake-502", lambda: refused("502 Bad Gateway"))


KINDS = (machine, rights, databases, texts, code, times, connections, proxies, certificates,
         answers, websockets, full_disk)  # fmt: skip


def main(folder: Path) -> None:
    """Raise everything and print it."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
    for kind in KINDS:
        try:
            kind(folder)
        except Exception as error:  # noqa: BLE001 (the others are raised, too)
            LOST.append(f"{kind.__name__}: {error!r}")
    with open(1, "w", closefd=False) as output:
        json.dump([FOUND, LOST], output)
    os._exit(0)  # some servers still wait


if __name__ == "__main__":
    main(Path(sys.argv[1]))
