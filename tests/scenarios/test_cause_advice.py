"""What a cause advises fits the cause, wherever it appears."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_causes import table_source
from hermes_doctor.diagnosis.plugins.log_causes.cause_index import Cause
from tests.helpers.plain_words import refused_words

SIGNATURES = builtin("checks") / "signatures"
CAUSES = [cause for cause, _ in table_source.read_causes(SIGNATURES).causes]
PLACES = table_source.read_places(SIGNATURES).tables.places
PAGES = {path.stem for path in Path("docs/failures").glob("*.md")}
PLATFORMS = [row for row in PLACES if row.part == "platform"]

OWN_CODES = (
    "TG", "DC", "SLACK", "WA", "SIGNAL", "QQ", "WX", "WECOM", "FEISHU", "DING", "MATRIX", "YUANBAO",
    "EMAIL",
)  # fmt: skip
"""The first words of codes that are about one platform."""
OWNERS = {
    "PROVIDER-": "model|provider",
    "CFG-MODEL": "model|provider",
    "TOOL-": "Docker|container|program",
    "CRON-": "job|scheduled|chat",
    "KANBAN-": "kanban",
    "MEM-PROVIDER": "memory",
    "DASH-": "dashboard",
    "PLATFORM-": "platform",
}
"""By the start of codes about one part of the bot: what the words of such a cause are about."""
THEIRS = {
    "model|provider": ("model", "gateway", "data", "cron", "kanban"),  # which call the model, too
    "Docker|container|program": ("tools",),
    "job|scheduled|chat": ("cron",),
    "kanban": ("kanban",),
    "memory": ("memory",),
    "dashboard": ("dashboard",),
    "platform": ("platform", "gateway", "data", "model"),
}
"""The parts where such codes fit any cause."""
LOGIN = r"\b(?:token|password|api key|secret|credentials?|log in|login)s?\b"
NETWORK = r"\b(?:network|dns|proxy|proxies|vpn|firewall|certificate)s?\b"
MACHINE = r"\b(?:disk|quota|chown|chmod|mount|dmesg|lsof)\b"
CODE = r"\b(?:librar(?:y|ies)|compiler|git|pip|npm)\b"
MODEL = r"\b(?:model|plan|prompt)s?\b"
UNFIT = {
    "machine": (MODEL, r"\b(?:token|password|api key)s?\b", r"\bproxy\b"),
    "network": (MODEL, r"\b(?:token|api key)s?\b", MACHINE),
    "remote": (MACHINE, CODE, r"\b(?:token|password)s?\b", r"\bdns\b"),
    "login": (NETWORK, MACHINE, CODE, MODEL),
    "data": (LOGIN, NETWORK, MODEL),
    "code": (LOGIN, MACHINE, MODEL),
    "time": (LOGIN, CODE, MODEL),
    "limits": (LOGIN, NETWORK, CODE),
    "settings": (LOGIN, NETWORK, MACHINE, CODE, MODEL),
}
"""By the family of a cause, what its advice is never about."""
EXCEPT = {
    ("lock-waited", "lsof"),  # it is found in this way
    ("packages-not-found", "network"),
    ("header-invalid", "key"),
    ("proxy-needs-login", "password"),  # of the proxy
    ("memory-used-up", "models"),  # local ones need memory
}


def words_of(cause: Cause) -> str:
    """Return all that a cause says, wherever it appears."""
    return " ".join((cause.title, cause.detail, cause.advice))


@pytest.mark.parametrize("cause", CAUSES, ids=[one.name for one in CAUSES])
def test_no_platform_is_named(cause: Cause) -> None:
    """A cause is the same on all platforms, so it names none and no variable of one."""
    for row in PLATFORMS:
        names = {row.label, *(() if row.common else (row.name, *row.words))}
        for name in names - {"email", "webhooks", "relay", "line"}:
            assert not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words_of(cause)), name
    variables = set(re.findall(r"\b[A-Z][A-Z0-9]+_[A-Z0-9_]+\b", words_of(cause)))
    assert variables <= {"NO_PROXY", "SSL_CERT_FILE", "HTTPS_PROXY"}


@pytest.mark.parametrize("cause", CAUSES, ids=[one.name for one in CAUSES])
def test_the_advice_is_about_the_cause(cause: Cause) -> None:
    """A key is no advice for a network, a proxy none for a password, and so on."""
    for way in UNFIT[cause.family]:
        for match in re.finditer(way, cause.advice, re.IGNORECASE):
            assert (cause.name, match[0].lower()) in EXCEPT, f"{cause.name}: {match[0]}"


@pytest.mark.parametrize("cause", CAUSES, ids=[one.name for one in CAUSES])
def test_the_form_of_the_words(cause: Cause) -> None:
    """One sentence that says what to do; the title goes on after the name of a place."""
    assert cause.advice.endswith(".") and cause.advice[0].isupper()
    assert cause.advice.count(". ") == 0
    for title in cause.title.split(" | "):
        first = title.split()[0]
        assert first[:1].islower() or first[:1] == "{" or first in ("SQLite", "Docker", "systemd")
        assert not title.endswith(".")


@pytest.mark.parametrize("cause", CAUSES, ids=[one.name for one in CAUSES])
def test_its_codes(cause: Cause) -> None:
    """All of them have a page."""
    assert cause.all_codes <= PAGES


def test_no_place_gets_the_words_of_another() -> None:
    """For every cause in every place, code and title fit the place."""
    for cause, row in itertools.product(CAUSES, PLACES):
        code = cause.code_in(row.part)
        assert code.partition("-")[0] not in OWN_CODES, f"{cause.name}: {code} in {row.name}"
        owner = next((way for start, way in OWNERS.items() if code.startswith(start)), "")
        if row.part not in THEIRS.get(owner, (row.part,)):
            assert re.search(owner, words_of(cause)), f"{cause.name}: {code} in {row.name}"
        plain = cause.title.rpartition(" | ")[2]
        assert len(f"{row.label}: {plain}") <= 80


OF_PLATFORM = {
    "telegram": "TG", "discord": "DC", "slack": "SLACK", "whatsapp": "WA", "signal": "SIGNAL",
    "qqbot": "QQ", "weixin": "WX", "wecom": "WECOM", "feishu": "FEISHU", "dingtalk": "DING",
    "matrix": "MATRIX", "yuanbao": "YUANBAO", "email": "EMAIL",
}  # fmt: skip
"""The first word of codes that are about a platform."""


def test_the_codes_of_platforms() -> None:
    """A cause has a code of its own only for a known platform, and that is about this platform."""
    for cause in CAUSES:
        for platform, code in cause.by_platform.items():
            assert code.partition("-")[0] == OF_PLATFORM[platform], cause.name
            assert cause.code_in("platform", platform) == code
            assert cause.means(code)


@pytest.mark.parametrize("cause", CAUSES, ids=lambda one: one.name)
def test_plain_words(cause: Cause) -> None:
    """The words of causes are as plain as those of rules."""
    for text in (cause.title, cause.detail, cause.advice):
        assert refused_words(text) == []
