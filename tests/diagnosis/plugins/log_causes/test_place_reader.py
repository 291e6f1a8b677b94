"""The place of a line, from its logger and from its words."""

from __future__ import annotations

import functools

import pytest

from benchmarks.cause_corpus import logger_of
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_causes import table_source
from hermes_doctor.diagnosis.plugins.log_causes.place import MOST_LOGGERS, PARTS
from hermes_doctor.diagnosis.plugins.log_causes.place_reader import PlaceReader, fields_of
from hermes_doctor.hermes.knowledge.logging_calls import calls_of, known_releases
from hermes_doctor.hermes.knowledge.releases import load_knowledge


@functools.cache
def reader() -> PlaceReader:
    """Return a reader of the built-in places."""
    return PlaceReader(table_source.read_places(builtin("checks") / "signatures").tables.places)


def named(logger: str, text: str, kind: str = "log") -> str:
    """Return the part and the name of a line's place."""
    place = reader().read(logger, text, kind).place
    return f"{place.part}:{place.name}" if place else ""


def test_every_logger_has_a_place() -> None:
    """No logger of any release is without one."""
    loggers = {logger_of(call) for version in known_releases() for call in calls_of(version)}

    assert len(loggers) > 400
    assert sorted(name for name in loggers if reader().of_logger(name) is None) == []


def test_every_platform_has_a_place() -> None:
    """All platforms that this tool knows are there, with the id that Hermes gives them."""
    platforms = {*load_knowledge("platforms")["platforms"]} - {"local", "cron", "cli"}
    rows = {row.name for row in reader()._rows if row.part == "platform"}

    assert sorted(platforms - rows) == []


@pytest.mark.parametrize("part", PARTS)
def test_every_part_has_a_place(part: str) -> None:
    """No part of the bot is without a place."""
    assert any(row.part == part for row in reader()._rows)


@pytest.mark.parametrize(
    ("logger", "text", "place"),
    [
        ("hermes_plugins.telegram_platform.adapter", "no words", "platform:telegram"),
        ("hermes_plugins.telegram_platform__home_0123456789ab", "", "platform:telegram"),
        ("gateway.platforms.telegram_network", "connect failed", "platform:telegram"),
        ("gateway.platforms.wecom_callback", "x", "platform:wecom_callback"),
        ("gateway.platforms.base", "[QQBot] Send failed: x", "platform:qqbot"),
        ("gateway.platforms.base", "[Signal] Send failed: x", "platform:signal"),
        ("gateway.run", "✗ line failed to connect", "platform:line"),
        ("gateway.run", "Reconnect email error: x, next retry in 30s", "platform:email"),
        ("gateway.run", "Fatal matrix adapter error (x): y", "platform:matrix"),
        ("gateway.run", "queued, platform=sms chat=1", "platform:sms"),
        ("gateway.run", "notification failed for signal:+49150: x", "platform:signal"),
        ("gateway.run", "email paused after 10 consecutive failures", "platform:email"),
        ("gateway.run", "state.db warning failed for telegram:1: x", "platform:telegram"),
        ("gateway.run", "kanban dispatcher: tick failed", "kanban:kanban board"),
        ("gateway.run", "Cron ticker error: x", "cron:scheduled jobs"),
        ("gateway.run", "Failed to open the session DB: x", "data:message history"),
        (
            "gateway.run",
            "No adapter could be created for any of the platforms. Check that their "
            "libraries are there. The gateway goes on for cron job execution",
            "gateway:gateway",
        ),
        ("plugins.platforms.telegram.telegram_network", "x", "platform:telegram"),
        # everyday words that are also names of platforms
        ("gateway.run", "Received signal 15, stopping", "gateway:gateway"),
        ("gateway.run", "cannot parse line 4 of the settings", "gateway:gateway"),
        ("gateway.run", "an email address is missing in the matrix", "gateway:gateway"),
        ("gateway.run", "see https://slack.example/x", "gateway:gateway"),
        # a logger that names its place says more than the words
        ("cron.scheduler", "Job 'a': delivery to telegram:1 failed", "cron:scheduled jobs"),
        ("tools.send_message_tool", "slack send failed", "tools:tools"),
        ("agent.auxiliary_client", "x", "model:side tasks of the model"),
        ("hermes_plugins.acme", "x", "plugins:plugins"),
        ("plugins.memory.honcho.session", "x", "memory:memory"),
        ("slack_bolt.AsyncApp", "x", "platform:slack"),
        ("discord.gateway", "x", "platform:discord"),
        ("openai._base_client", "x", "model:model"),
        ("root", "x", "gateway:gateway"),
        ("", "x", "gateway:gateway"),
        ("somebody.else", "x", ""),
        ("toolsmith", "x", ""),
    ],
)
def test_the_place_of_a_line(logger: str, text: str, place: str) -> None:
    """The logger decides; where it stands for many places, the words do."""
    assert named(logger, text) == place


def test_other_sources() -> None:
    """The log of updates has no loggers."""
    assert named("", "→ Pulling updates", "update") == "update:update"
    assert named("", "Killed", "journal") == "gateway:gateway"


def test_many_loggers() -> None:
    """A log may contain any number of loggers; few are remembered."""
    own = PlaceReader(reader()._rows)
    for number in range(MOST_LOGGERS + 500):
        own.read(f"gateway.run.a{number}", "x")

    assert len(own._known) == MOST_LOGGERS


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("Job 'a1b2' failed: x", {"job": "a1b2"}),
        ("MCP server 'files': lost", {"server": "files"}),
        ("failed provider=openrouter model=qwen/qwen3-8b", {"provider": "openrouter",
                                                           "model": "qwen/qwen3-8b"}),
        ("Plugin 'acme' cannot be loaded", {"plugin": "acme"}),
        ("Tool loading failed", {}),
        ("no job at all", {}),
        ("x" * 500 + " job=a1", {}),
    ],
)  # fmt: skip
def test_what_a_line_is_about(text: str, fields: dict[str, str]) -> None:
    """The names of jobs, servers, models and so on are taken, but no words of sentences."""
    assert fields_of(text) == fields
