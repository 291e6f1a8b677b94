"""Whatever stands where a setting should: the checks of config.yaml and .env do not crash."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Status
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import config_homes, support

CHECKS = [
    check
    for check in config_homes.PLUGINS.checks
    if check.id.startswith(("config-", "env-", "older-", "gateway-json"))
]
VALUES = (
    "x", "1", "-1.5", ".inf", "true", "~", "[]", "{}", "[1, [2], {3: 4}]", "{1: 2, true: {x: ~}}",
    "2026-11-15", "!!binary aGk=", "${A}", "'${'", "“x”", "{telegram: [1]}", "[telegram, ~]",
    "{? [a] : b}", "&a [*a]", "!!set {a, b}",
)  # fmt: skip
PLACES = (
    "platforms: {}", "gateway: {}", "gateway: {{platforms: {}}}", "telegram: {}",
    "telegram: {{token: {}}}", "telegram: {{enabled: {}}}", "telegram: {{allow_from: {}}}",
    "telegram: {{allowed_users: {}}}", "platforms: {{telegram: {}}}", "platforms: {{telegrm: {}}}",
    "platforms: {{telegram: {{token: {}}}}}", "platforms: {{telegram: {{enabled: {}}}}}",
    "_config_version: {}", "compression: {}", "agent: {{max_turns: {}}}", "display: {}",
    "TELEGRAM_REQUIRE_MENTION: {}", "custom_providers: {}", "providers: {{x: {}}}",
    "telegram: {{require_mention: {}}}", "{}: x", "model: {{{}: x}}",
)  # fmt: skip
ENV = (
    config_homes.TELEGRAM
    + "TELEGRAM_REQUIRE_MENTION=x\nHERMES_MAX_ITERATIONS=9\nANTHROPIC_TOKEN=y\n"
)
LINES = (
    "=", "==", "A", "A=", "'=1", "A='", 'A="\\', "export", "export A", "export =", "A: ", ":",
    "\x0b=1", "TELEGRAM_BOT_TOKEN:", "TELEGRAM_BOT_TOKEN='''", "A=1 TELEGRAM_BOT_TOKEN=",
    "\u2028A=1", "ſ=1",
)  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("place", PLACES)
def test_config(home: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Any value in any place that the checks look at."""
    config_homes.Scene(monkeypatch).release("0.16.0")
    for value in VALUES:
        _ask(config_homes.write(home, place.format(value) + "\n", ENV))


def test_lines(home: Path) -> None:
    """Any two lines below each other."""
    for pair in itertools.product(LINES, LINES[::4]):
        _ask(config_homes.write(home, "telegram: {require_mention: true}\n", "\n".join(pair)))


@pytest.mark.parametrize("text", ["", "null", "0", '"x"', "[[]]", '{"platforms": 1, "": {}}', "{"])
def test_old_settings(home: Path, text: str) -> None:
    """Any gateway.json."""
    support.put(home / "gateway.json", text)
    for config in ("platforms: [1]\n", "{}\n", "a: [\n"):
        _ask(config_homes.write(home, config))


def _ask(home: Path) -> None:
    results, findings = examine(Probes(Home(home)), CHECKS)
    crashed = [(one.id, one.reason) for one in results if one.status is Status.CRASHED]
    assert not crashed, (home / "config.yaml").read_text() + (home / ".env").read_text()
    assert "zQcanary" not in str([finding._replace(data={}) for finding in findings])
