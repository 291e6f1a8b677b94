"""Which parts an error has, which cause it names, and with which fields."""

from __future__ import annotations

import functools
import itertools
import traceback
from pathlib import Path

import pytest

from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_causes import table_source
from hermes_doctor.diagnosis.plugins.log_causes.place_reader import PlaceReader
from hermes_doctor.diagnosis.plugins.log_causes.reading import (
    MOST,
    MOST_EXCEPTIONS,
    MOST_KNOWN,
    Reader,
    SuccessReader,
    parts_of,
)
from hermes_doctor.diagnosis.plugins.log_causes.table_source import CauseSample
from hermes_doctor.diagnosis.plugins.log_causes.tables import read_source
from hermes_doctor.diagnosis.plugins.log_rules.folder import Folder
from hermes_doctor.hermes.knowledge.logging_calls import catalogue, known_releases
from tests.helpers.each import each
from tests.helpers.rule_lines import entry


def lines_of(error: BaseException) -> list[str]:
    """Return the lines of an exception's traceback."""
    return "".join(traceback.format_exception(error)).splitlines()


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("[Slack] startup failed: aiohttp not installed", "aiohttp not installed"),
        ("[Email] SMTP failed: [Errno 111] Connection refused", "[Errno 111] Connection refused"),
        ("[QQBot:102] token: timed out", "timed out"),
        ("telegram.error.TimedOut: Pool timeout", "telegram.error.TimedOut: Pool timeout"),
        (
            "[Errno 98] error while attempting to bind: address already in use",
            "[Errno 98] error while attempting to bind: address already in use",
        ),
        ("login failed — x: httpx.ConnectError: no", "httpx.ConnectError: no"),
        ("search is off. (underlying error: Remote end closed)", "Remote end closed)"),
        (
            "(Caused by ProxyError('x', OSError('Tunnel failed: 403')))",
            "(Caused by ProxyError('x', OSError('Tunnel failed: 403')))",
        ),
        ("nothing here", ""),
    ],
)
def test_where_the_error_begins(message: str, error: str) -> None:
    """Behind the first colon, or at its number or class."""
    parts = parts_of(message)

    assert parts.message == message
    assert message[parts.start :] == error


def test_a_traceback_with_its_root() -> None:
    """The exceptions come in their order, each with the function that raised it."""

    def inner() -> None:
        raise ConnectionResetError(104, "Connection reset by peer")

    def outer() -> None:
        try:
            inner()
        except OSError as error:
            raise RuntimeError("('Connection aborted.')") from error

    with pytest.raises(RuntimeError) as caught:
        outer()
    parts = parts_of("send failed", lines_of(caught.value))

    assert parts.exceptions == [
        "ConnectionResetError: [Errno 104] Connection reset by peer (in inner)",
        "RuntimeError: ('Connection aborted.') (in outer)",
    ]
    assert parts.message == "send failed"


def test_a_group_of_exceptions() -> None:
    """The exceptions of a group are read."""
    with pytest.raises(ExceptionGroup) as caught:
        raise ExceptionGroup("unhandled errors", [OSError(98, "Address already in use")])
    parts = parts_of("x", lines_of(caught.value))

    assert any(one.startswith("OSError: [Errno 98]") for one in parts.exceptions)


def test_an_exception_of_several_lines() -> None:
    """All of its lines belong to it, as YAML writes them."""
    more = [
        "Traceback (most recent call last):",
        '  File "/opt/hermes/config.py", line 3, in load',
        "    data = yaml.safe_load(text)",
        "yaml.scanner.ScannerError: while scanning for the next token",
        "found character '\\t' that cannot start any token",
        '  in "<unicode string>", line 2, column 1:',
    ]
    [said] = parts_of("config is broken", more).exceptions

    assert "cannot start any token" in said and said.endswith("(in load)")


def test_lines_without_a_traceback() -> None:
    """They belong to the message."""
    parts = parts_of("Failed to parse: while scanning", ["found character '\\t'", "  line 2"])

    assert parts.exceptions == []
    assert parts.message.endswith("found character '\\t'\n  line 2")


@pytest.mark.parametrize(
    "message",
    [
        'Tool terminal returned error (0.4s): {"output": "bash: x: Permission denied"}',
        "Unauthorized user: 5 (address already in use) on telegram",
        "[Telegram] Blocked command: rm -rf / # disk full",
        "Model declined to respond: no space left on device",
    ],
)
def test_words_of_others(message: str) -> None:
    """What people, tools and models write is not read."""
    assert parts_of(message).message == ""


def test_quoted_words_of_people() -> None:
    """What somebody said is taken out of a line."""
    said = "session reset failed msg='why is the disk full?' user=5: [Errno 5] x"

    assert "disk full" not in parts_of(said).message
    assert "[Errno 5]" in parts_of(said).message
    assert parts_of("Job 'disk full?' was blocked").message == "Job was blocked"


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        ": " * 500_000,
        "[" * 500_000,
        "msg='" * 200_000,
        "(Caused by " * 100_000,
        'File "' * 150_000,
        "Error: " * 150_000,
        ("a." * 500_000) + "Error: x",
        "\\'" * 500_000,
        "\n" * 1_000_000,
    ],
)
def test_parts_of_hostile_lines(text: str) -> None:
    """Only the start of a text is read, however it is made."""
    parts = parts_of(text, [text[:5000]] * 50)

    assert len(parts.message) <= MOST
    assert all(len(one) <= 2 * MOST for one in parts.exceptions)


def test_many_exceptions() -> None:
    """A chain of exceptions is read up to a limit, from its root on."""
    one = [
        "Traceback (most recent call last):",
        '  File "/opt/hermes/x.py", line 3, in work',
        "OSError: [Errno 28] No space left on device",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
    ]
    assert len(parts_of("x", one * 100).exceptions) == MOST_EXCEPTIONS


SIGNATURES = builtin("checks") / "signatures"
SAMPLES = table_source.read_causes(SIGNATURES).samples
READER = Reader(Folder(SIGNATURES, ours=True).tables)
WRAPPERS = (
    "{}",
    "[Telegram] Failed to connect: {}",
    "Job 'Morning news' failed: {}",
    "[QQBot:102000001] send failed, retrying in 3s: {}",
    "kanban dispatcher: tick failed ({})",
    "Error: {}",
)
"""What Hermes writes around errors."""


def named(text: str, *more: str) -> str:
    """Return the name of the cause that a text names; empty if it names none."""
    cause, _ = READER.cause_of(text, more)
    return cause.name if cause else ""


@each(SAMPLES)
def test_examples_and_near_misses(sample: CauseSample) -> None:
    """An example names its cause, a near miss does not."""
    for text in sample.examples:
        assert named(text) == sample.cause.name, text
    for text in sample.near:
        assert named(text) != sample.cause.name, text


@each(SAMPLES)
def test_titles_are_complete(sample: CauseSample) -> None:
    """No title shows a brace, or is longer than its limit."""
    for text in sample.examples:
        _, fields = READER.cause_of(text)
        title = sample.cause.title_with(fields)
        assert title and "{" not in title and len(title) <= 48


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("[Errno 28] No space left on device", "disk-full"),
        ("OSError(24, 'Too many open files')", "too-many-files"),
        ("[Errno 98] Address already in use", "port-in-use"),
        ("[Errno 48] Address already in use", "port-in-use"),
        ("[WinError 10048] Only one usage of each socket address", "port-in-use"),
        ("listen EADDRINUSE: address already in use :::3000", "port-in-use"),
        ("[Errno -3] Temporary failure in name resolution", "name-not-resolved"),
        ("getaddrinfo ENOTFOUND api.telegram.org", "name-not-resolved"),
        ("[Errno 61] Connection refused", "connection-refused"),
        ("[Errno 61] Connect call failed ('127.0.0.1', 8080)", "connection-refused"),
        ("database is locked", "database-locked"),
        ("No module named 'snowballstemmer'", "module-missing"),
        ("'NoneType' object has no attribute 'send'", "program-fault"),
        ("os error: No space left on device (os error 28)", "disk-full"),
    ],
)
def test_any_wrapping_words(wrapper: str, text: str, cause: str) -> None:
    """The cause is found, whatever words are around it."""
    assert named(wrapper.format(text)) == cause


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("httpx.ConnectTimeout", "connection-timed-out"),
        ("httpx.ReadTimeout", "answer-timed-out"),
        ("httpx.PoolTimeout", "connections-used-up"),
        ("httpx.ReadError", "connection-reset"),
        ("httpcore.RemoteProtocolError: Server disconnected", "connection-reset"),
        ("httpx.ProxyError: 407 Proxy Authentication Required", "proxy-needs-login"),
        ("aiohttp.client_exceptions.ServerDisconnectedError", "connection-reset"),
        ("aiohttp.client_exceptions.ClientPayloadError", "connection-reset"),
        ("aiohttp.client_exceptions.ClientProxyConnectionError", "proxy-unreachable"),
        ("requests.exceptions.ConnectTimeout", "connection-timed-out"),
        ("requests.exceptions.ChunkedEncodingError", "connection-reset"),
        ("requests.exceptions.TooManyRedirects", "too-many-redirects"),
        ("urllib3.exceptions.NameResolutionError", "name-not-resolved"),
        ("websockets.exceptions.ConnectionClosedError: received 1006", "websocket-closed"),
        ("discord.opus.OpusNotLoaded", "library-file-missing"),
        ("telegram.error.NetworkError: httpx.ConnectError", "connection-failed"),
        ("slack_sdk.errors.SlackClientNotConnectedError", "connection-reset"),
        ("aiosmtplib.errors.SMTPConnectError: no", "connection-failed"),
        ("smtplib.SMTPServerDisconnected: Connection unexpectedly closed", "connection-reset"),
        ("botocore.exceptions.EndpointConnectionError", "connection-failed"),
        ("ssl.SSLZeroReturnError: TLS/SSL connection has been closed", "tls-broken"),
        ("ssl.SSLCertVerificationError", "certificate-untrusted"),
        ("sqlite3.IntegrityError", "database-refuses-row"),
        ("sqlite3.OperationalError: unable to open database file", "database-cannot-open"),
        ("json.decoder.JSONDecodeError", "text-not-json"),
        ("yaml.scanner.ScannerError", "settings-not-yaml"),
        ("zipfile.BadZipFile", "archive-damaged"),
        ("MemoryError", "memory-used-up"),
        ("socket.gaierror: [Errno -5] No address associated with hostname", "name-not-resolved"),
    ],
)
def test_classes_of_libraries(error: str, cause: str) -> None:
    """A class alone names the cause: in a line, in a `repr`, and at the end of a traceback."""
    frames = ("Traceback (most recent call last):", '  File "/opt/hermes/x.py", line 3, in work')

    assert named(f"It failed: {error}") == cause
    assert named("It failed", *frames, error) == cause
    if ":" not in error:
        assert named(f"It failed: {error.rpartition('.')[2]}('')") == cause


@pytest.mark.parametrize(
    ("text", "more", "cause"),
    [
        ("unable to open database file (Too many open files)", (), "too-many-files"),
        ("Failed to connect to Telegram: [Errno 98] Address already in use", (), "port-in-use"),
        ("SMTP connection failed: timed out", (), "timed-out"),
        ("git timed out: [Errno 28] No space left on device", (), "disk-full"),
        ("QQ startup failed: aiohttp not installed", (), "module-missing"),
        (
            "QQ startup failed: aiohttp not installed",
            ("PermissionError: [Errno 13] Permission denied: '/x'",),
            "permission-denied",
        ),
    ],
)
def test_the_innermost_cause_wins(text: str, more: tuple[str, ...], cause: str) -> None:
    """Not the words around it, and not what only follows from it."""
    frames = ("Traceback (most recent call last):", '  File "/opt/x.py", line 3, in work')

    assert named(text, *(frames + more if more else ())) == cause


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (
            "[Errno 98] error while attempting to bind on address ('0.0.0.0', 8443): address "
            "already in use",
            {"port": "8443"},
        ),
        ("HTTPConnectionPool(host='api.x.org', port=80): [Errno 111] Connection refused",
         {"host": "api.x.org", "port": "80"}),
        ("Cannot connect to host a.b.example:443 ssl:default [Name or service not known]",
         {"host": "a.b.example"}),
        ("[Errno 13] Permission denied: '/opt/data/x.json'", {"path": "/opt/data/x.json"}),
        ("No module named 'lark_oapi.ws'", {"module": "lark_oapi.ws"}),
        ("no such column: tasks.session_id", {"column": "tasks.session_id"}),
    ],
)  # fmt: skip
def test_fields(text: str, fields: dict[str, str]) -> None:
    """The values that a title shows are taken from the line."""
    assert READER.cause_of(text)[1] == fields


@each(
    [
        "Telegram: 3 messages sent",
        "Context usage 81 % of 200000 tokens",
        "Gateway is draining 2 active sessions",
        "No response from the user within the approval window was needed",
        "Connection pool is full, discarding connection: api.telegram.org",
        "Skill `disk-cleaner` was reloaded",
        "Shutting down with exit code 0",
        "",
    ]
)
def test_lines_without_a_cause(text: str) -> None:
    """Most warnings do not say that something failed."""
    assert named(text) in ("", "timed-out")


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "Failed: " * 100_000,
        "'" * 500_000,
        "[Errno 98] " * 50_000,
        "(Caused by OSError(98, 'x" * 20_000,
        "HTTP error code: status " * 20_000,
        "connection " * 50_000,
        "漢" * 100_000,
        "No module named '" * 20_000,
    ],
)
def test_hostile_lines(text: str) -> None:
    """A line of any length is read in a bounded way."""
    before = READER.index.tried
    READER.cause_of(text, (text[:4000],) * 100)

    assert READER.index.tried - before < 400


def test_few_patterns_are_tried() -> None:
    """Only those whose words are in a text: about ten of a thousand."""
    reader = Reader(Folder(SIGNATURES, ours=True).tables)
    texts = [text for sample in SAMPLES for text in (*sample.examples, *sample.near)]
    for wrapper, text in itertools.product(WRAPPERS, texts):
        reader.cause_of(wrapper.format(text))
    patterns = len(reader.index.signs)

    assert patterns > 700
    assert reader.index.tried / (len(texts) * len(WRAPPERS)) < 8


def test_texts_are_remembered() -> None:
    """A log repeats itself; what was read before costs nothing, and memory is bounded."""
    reader = Reader(Folder(SIGNATURES, ours=True).tables)
    first = reader.cause_of("send failed: database is locked")
    tried = reader.index.tried
    assert reader.cause_of("send failed: database is locked") is first
    assert reader.index.tried == tried
    for number in range(3 * MOST_KNOWN):
        reader.cause_of(f"line {number}")
    assert len(reader._known) <= MOST_KNOWN


def test_an_operators_own_cause(tmp_path: Path) -> None:
    """A folder of one's own is read in the same way."""
    (tmp_path / "causes").mkdir()
    (tmp_path / "causes" / "machine.yaml").write_text(
        "causes:\n- {name: door-closed, rank: 3, code: GW-ERRORS, title: a door is closed,\n"
        "   advice: Open it., texts: ['door \\d is closed'],\n"
        "   examples: [door 3 is closed, door 4 is closed], near: [door 3 is open]}\n"
    )
    reader = Reader(read_source(tmp_path))

    assert reader.tables.faults == ()
    cause, _ = reader.cause_of("knocking failed: door 7 is closed")
    assert cause is not None and cause.name == "door-closed"


SOURCE = table_source.read_places(builtin("checks") / "signatures")
EXAMPLES = [(sample, line) for sample in SOURCE.samples for line in sample.examples]
NEAR = [(sample, line) for sample in SOURCE.samples for line in sample.near]


@functools.cache
def reader() -> SuccessReader:
    """Return a reader of the built-in successes."""
    return SuccessReader(SOURCE.tables.successes, lambda: PlaceReader(SOURCE.tables.places))


@pytest.mark.parametrize(("sample", "line"), EXAMPLES, ids=[line[24:80] for _, line in EXAMPLES])
def test_examples(sample: table_source.SuccessSample, line: str) -> None:
    """Each is recognised, and a known release writes it."""
    found = reader().read(entry(line))

    assert sample.row.operations in [success.operations for success in found]
    said = entry(line)
    assert any(
        catalogue(version).match(said.logger, said.level, said.text) for version in known_releases()
    )


@pytest.mark.parametrize(("sample", "line"), NEAR, ids=[line[24:80] for _, line in NEAR])
def test_near_misses(sample: table_source.SuccessSample, line: str) -> None:
    """They show nothing of the kind."""
    found = reader().read(entry(line))

    assert sample.row.operations not in [success.operations for success in found]


def test_whose_success_it_is() -> None:
    """The line's own place works again, unless the row names another one."""
    [back] = reader().read(entry("2026-11-15 00:00:00,000 INFO gateway.run: ✓ signal connected"))
    assert back.place.name == "signal" and "connect" in back.operations
    told = "response ready: platform=signal chat=1 time=1.0s api_calls=1 response=2 chars"
    [said] = reader().read(entry(f"2026-11-15 00:00:00,000 INFO gateway.run: {told}"))
    assert said.place.name == "model" and "send" not in said.operations
    line = "cron.scheduler: Job 'slack': delivered to telegram:123 via live adapter"
    found = reader().read(entry(f"2026-11-15 00:00:00,000 INFO {line}"))
    assert {"telegram", "scheduled jobs"} == {success.place.name for success in found}


def test_the_level_counts() -> None:
    """A stranger's words in a line of another level show nothing."""
    line = "2026-11-15 00:00:00,000 WARNING gateway.run: ✓ signal connected"
    assert reader().read(entry(line)) == ()
