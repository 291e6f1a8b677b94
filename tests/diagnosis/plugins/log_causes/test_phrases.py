"""What a line says was tried, and how it ended."""

from __future__ import annotations

import functools

import pytest

from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_causes import table_source
from hermes_doctor.diagnosis.plugins.log_causes.phrases import (
    MOST_KNOWN,
    OperationReader,
    OutcomeReader,
    own_words,
)


@functools.cache
def readers() -> tuple[OperationReader, OutcomeReader]:
    """Return readers of the built-in tables."""
    tables = table_source.read_places(builtin("checks") / "signatures").tables
    return OperationReader(tables.operations), OutcomeReader(tables.outcomes)


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("Failed to connect to Telegram: [Errno 98] x", "connect"),
        ("✗ slack failed to connect", "connect"),
        ("[QQBot:1] WebSocket closed: code=4009", "connect"),
        ("[Email] SMTP connection failed: timed out", "connect"),
        ("[QQBot:1] Failed to get access token: dns", "log in"),
        ("Matrix: login failed — x", "log in"),
        ("[Telegram] Error sending image: connection reset", "send"),
        ("[Telegram] Failed to deliver response after 3 retries: x", "send"),
        ("[Discord] Error handling message: x", "receive"),
        ("Matrix: sync error: x", "receive"),
        ("[Email] IMAP fetch error: x", "connect"),
        ("API call failed after 3 retries. HTTP 503", "call the model"),
        ("Auxiliary title generation failed: x", "call the model"),
        ("Tool terminal failed: x", "run a tool"),
        ("MCP server 'files' failed initial connection", "run a tool"),
        ("Job 'news' failed: x", "run a job"),
        ("Cron ticker error: x", "run a job"),
        ("Failed to load plugin 'acme': x", "load a plugin"),
        ("Session DB append_message failed: database is locked", "save"),
        ("Failed to save session: x", "save"),
        ("Failed to load config.yaml: x", "read"),
        ("Context compression failed: x", "compress"),
        ("Failed to start API server: x", "start"),
        ("Shutdown: x", "stop"),
        ("hermes update failed: x", "update"),
        ("Something quite odd: sending failed", "work"),
        ("said: hi", "work"),
    ],
)
def test_the_operation_of_a_line(text: str, operation: str) -> None:
    """The first of Hermes' own words that names one decides, not those of the error."""
    assert readers()[0].read(text) == operation


def test_the_usual_operation() -> None:
    """A place may have a usual one, for lines that name none."""
    assert readers()[0].read("odd", "run a tool") == "run a tool"
    assert readers()[0].read("Failed to save", "run a tool") == "save"


def test_few_words_are_remembered() -> None:
    """A log may contain any number of different lines."""
    own = OperationReader([])
    for number in range(MOST_KNOWN + 100):
        own.read(f"odd {number}")

    assert len(own._known) == MOST_KNOWN


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("[Telegram] Send failed (attempt 1/3, retrying in 2s): x", "retried"),
        ("Reconnect slack error: x, next retry in 30s", "retried"),
        ("Streaming failed: x — falling back to non-streaming", "retried"),
        ("Giving up reconnecting slack after 20 attempts", "given up"),
        ("Reconnect slack: non-retryable error (x), removing from retry queue", "given up"),
        ("[Telegram] Failed to deliver response after 3 retries: x", "lost"),
        ("[X] response_delivery_dropped: non-empty response", "lost"),
        ("[photon] inbound stream dropped (x); reconnecting in 1.0s", "retried"),
        ("Auxiliary compression: recovered openrouter via credential-pool rotation", "recovered"),
        ("HTTPSConnectionPool(host='h', port=1): Max retries exceeded with url: /", ""),
        ("Failed to save session: x", ""),
        ("x " * 1000 + "retrying", ""),
    ],
)
def test_the_outcome_of_a_line(text: str, outcome: str) -> None:
    """The worst of the outcomes that it names."""
    assert readers()[1].read(text) == outcome


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[Telegram] Send failed: x", "[Telegram] Send failed"),
        ("Job 'secret plan' failed: x", "Job"),
        ("Reconnect slack (3): x", "Reconnect slack"),
        ("✗ slack failed to connect", "✗ slack failed to connect"),
        ("[Slack] Unauthorized approval click by kelly", "[Slack] Unauthorized approval click"),
        ("Failed to fetch members for guild My Guild", "Failed to fetch members for"),
        ("Failed to connect to Telegram", "Failed to connect"),
        ("Failed to save config at /home/kelly/x", "Failed to save config"),
        ("said: hi", "said"),
        ("", ""),
        ("[" * 10_000, ""),
        ("a" * 10_000, "a" * 100),
    ],
)
def test_own_words(text: str, words: str) -> None:
    """They end before the first value or error, because those may be words of people."""
    assert own_words(text) == words
