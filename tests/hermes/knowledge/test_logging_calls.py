"""The catalogue of logging calls: which call wrote a line, and which words are its own."""

from __future__ import annotations

import time
import zlib
from typing import Any

import pytest

from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_rules import source
from hermes_doctor.hermes.knowledge.logging_calls import (
    Catalogue,
    LineMatch,
    LoggingCall,
    calls_of,
    catalogue,
    known_releases,
    pieces,
)
from hermes_doctor.hermes.logs.entry import LogEntry
from tests.helpers.rule_lines import entry
from tools import logging_calls as tool

NAMES = {"telegram_platform": "plugins.platforms.telegram"}
OWN = (
    "acp_adapter", "agent", "cli", "cron", "gateway", "hermes_cli", "hermes_logging",
    "hermes_plugins", "hermes_state", "model_tools", "plugins", "providers", "run_agent", "tools",
    "tui_gateway", "utils",
)  # fmt: skip
"""The first parts of the names of Hermes' own loggers."""


def call(template: str, level: str = "WARNING", logger: str = "gateway.run") -> LoggingCall:
    """A logging call with this template."""
    return LoggingCall("gateway/run.py", "start", logger, level, template)


def match(message: str, *templates: str) -> LineMatch | None:
    """What a message of gateway.run matches."""
    return Catalogue(map(call, templates), NAMES).match("gateway.run", "WARNING", message)


def values(found: LineMatch | None, message: str) -> dict[str, str]:
    """The values of a match, by the names of their slots."""
    assert found is not None
    return {one.name: message[one.start : one.end] for one in found.slots}


def test_values() -> None:
    """The slots of a template are the parts of the message that its words do not cover."""
    message = "Failed to connect to telegram: [Errno 98] in use: 8443"
    found = match(message, "Failed to connect to {platform}: {error}")

    assert values(found, message) == {
        "platform": "telegram",
        "error": "[Errno 98] in use: 8443",
    }


def test_own_words() -> None:
    """A word is the release's own if no slot covers a part of it, and it is no traceback."""
    message = "Job nightly failed\nTraceback (most recent call last):"
    found = match(message, "Job {job} failed")

    assert found is not None
    assert found.is_own(0, 3)
    assert not found.is_own(4, 11)
    assert found.is_own(12, 18)
    assert not found.is_own(12, 30)


def test_the_longest_text_wins() -> None:
    """A call that says more of the line is more likely to have written it."""
    found = match("Job nightly failed: x", "{a} failed: {b}", "Job {job} failed: {error}")

    assert found is not None
    assert found.call.template == "Job {job} failed: {error}"


def test_other_lines() -> None:
    """Nothing matches another text, logger or level, nor a template without words."""
    known = Catalogue([call("Job {job} failed"), call("[{tag}] {text}")], NAMES)

    assert known.match("gateway.run", "WARNING", "Job nightly failed") is not None
    assert known.match("gateway.run", "WARNING", "[a] b") is None
    assert known.match("gateway.run", "WARNING", "Jobs nightly failed") is None
    assert known.match("gateway.run", "WARNING", "Job nightly failed today") is None
    assert known.match("gateway.run", "ERROR", "Job nightly failed") is None
    assert known.match("gateway.config", "WARNING", "Job nightly failed") is None


def test_unknown_logger_and_level() -> None:
    """A call whose logger or level the source does not name fits all of them."""
    known = Catalogue([call("lost {n}", level="", logger="")], NAMES)

    assert known.match("tools.any", "ERROR", "lost 3") is not None


def test_braces_and_lines() -> None:
    """Doubled braces are text; a value may have several lines."""
    assert pieces("a {{b}} {c}{d} {{") == (["a {b} ", "", " {"], ["c", "d"])
    message = "got {x}: one\ntwo"
    found = match(message, "got {{x}}: {text}")

    assert values(found, message) == {"text": "one\ntwo"}


def test_plugin_loggers() -> None:
    """A plugin logs under the name by which the gateway loaded it, in a profile with a digest."""
    known = Catalogue([call("gone", logger="plugins.platforms.telegram.adapter")], NAMES)

    for name in ("telegram_platform", "telegram_platform__home_0123456789ab"):
        assert known.match(f"hermes_plugins.{name}.adapter", "WARNING", "gone") is not None
    assert known.match("hermes_plugins.other.adapter", "WARNING", "gone") is None


def test_long_lines_are_quick() -> None:
    """A hostile message costs time in proportion to its length."""
    known = Catalogue([call("{a}" + " x{b}" * 40 + "end")], NAMES)
    start = time.process_time()

    assert known.match("gateway.run", "WARNING", " x" * 100_000) is None
    assert time.process_time() - start < 1


def test_releases() -> None:
    """Each known release has its calls; the next one is read like the newest."""
    assert {"0.13.0", "0.19.0", "0.20.3", "0.20.5"} <= set(known_releases())
    for version in known_releases():
        calls = calls_of(version)
        assert len(calls) > 2500, version
        assert any(one.template.startswith("Starting Hermes Gateway") for one in calls), version
    assert calls_of("0.1.0") == []
    line = ("gateway.run", "INFO", "Starting Hermes Gateway...")
    assert all(catalogue(version).match(*line) for version in ("0.12.0", "0.19.5", "1.0", "x"))


def test_every_call_is_found() -> None:
    """A line that a call writes is that call's, or that of one with a longer text of its own."""
    known = catalogue("0.20.5")
    tried = 0
    for one in calls_of("0.20.5"):
        texts, names = pieces(one.template)
        if not any(letter.isalpha() for text in texts for letter in text):
            continue
        message = texts[0] + "".join(f"7{text}" for text in texts[1:])
        found = known.match(one.logger or "any", one.level or "INFO", message)
        assert found is not None, one
        if found.call.template == one.template:
            own = "".join(letter for at, letter in enumerate(message) if found.is_own(at, at + 1))
            assert own == "".join(texts)
            assert "".join(message[a:b] for _, a, b in found.slots) == "7" * len(names)
        else:
            assert len("".join(pieces(found.call.template)[0])) >= len("".join(texts))
        tried += 1
    assert tried > 8000


def test_size() -> None:
    """The file stays below 1 MB in a wheel."""
    assert len(zlib.compress(tool.STORED.read_bytes(), 6)) < 1_000_000


def test_examples_of_rules() -> None:
    """Lines of real logs, which the rules have as examples, match a call of some release."""
    samples = source.read(builtin("checks") / "signatures").samples
    texts = dict.fromkeys(text for one in samples for text in one.examples)
    entries = [one for text in texts if (one := entry(text)).kind == "log"]
    own = [one for one in entries if one.logger.partition(".")[0] in OWN]
    missed = [one for one in own if not written_by_a_release(one)]

    assert len(own) > 500
    assert len(missed) / len(own) < 0.1, [(one.logger, one.text[:100]) for one in missed]


def written_by_a_release(one: LogEntry) -> bool:
    """Tell whether a call of some release wrote an entry."""
    said = one.logger, one.level, "\n".join((one.text, *one.more))
    return any(catalogue(version).match(*said) for version in reversed(known_releases()))


@pytest.mark.real
@pytest.mark.wide
def test_a_release_is_extracted_again() -> None:
    """The file says what the source of an installed release says."""
    assert not tool.update({"0.19.0": tool.packages("0.19.0")}, write=False)


def test_one_more_release() -> None:
    """A release adds its calls and takes its old ones away; the others keep theirs."""
    first = LoggingCall("gateway/run.py", "start", "gateway.run", "INFO", "up")
    other = LoggingCall("gateway/run.py", "stop", "root", "INFO", "down {n}", "e", "OSError", True)
    empty: dict[str, Any] = {"releases": [], "plugins": {}, "calls": {}}
    both = tool.add(empty, "0.2.0", [first, other], {"plugins/a": "a"})
    more = tool.add(both, "0.10.0", [first], {})
    between = tool.add(more, "0.3.0", [other], {})
    again = tool.add(between, "0.2.0", [other], {})

    assert between["releases"] == ["0.2.0", "0.3.0", "0.10.0"]
    assert between["calls"]["gateway/run.py"] == [
        ["start", "INFO", "up", "0 2", None, "", "", 0],
        ["stop", "INFO", "down {n}", "0-1", "root", "e", "OSError", 1],
    ]
    assert [row[3] for row in again["calls"]["gateway/run.py"]] == ["2", "0-1"]
    assert again["plugins"] == {"plugins/a": "a"}
