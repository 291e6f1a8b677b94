"""The texts of an entry that can name a cause."""

from __future__ import annotations

import traceback

import pytest

from hermes_doctor.plugins.log_causes.error_parts import MOST, MOST_EXCEPTIONS, parts_of


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
def test_hostile_lines(text: str) -> None:
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
