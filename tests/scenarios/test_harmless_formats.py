"""No format of `check` lets hostile text out: escape sequences, hidden characters, commands.

The formats come from the table of the command, so a new one is tested by itself.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from hermes_doctor.cli import check_run
from hermes_doctor.core.model import (
    CheckResult,
    Effect,
    Evidence,
    Finding,
    Gateway,
    Mark,
    Part,
    PartState,
    Report,
    Rung,
    RungState,
    Safety,
    Severity,
    Status,
    Verdict,
    VerdictKind,
)
from hermes_doctor.core.outgoing import clean_lines
from tests.core.test_outgoing import HOSTILE
from tests.helpers import budget, support
from tests.scenarios.test_planted_secrets import on_a_terminal

_NOW = datetime(2026, 11, 18, tzinfo=UTC)
_ALLOWED = {"\n", "\t"}


def _filled(value: Any, words: str) -> Any:
    """The value with hostile words in the place of every text in it."""
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return words
    if isinstance(value, tuple):
        made = [_filled(one, words) for one in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if isinstance(value, frozenset):
        return frozenset(_filled(one, words) for one in value)
    if isinstance(value, Mapping):
        return {_filled(key, words): _filled(one, words) for key, one in value.items()}
    return value


def _reports(words: str) -> list[Report]:
    """Two reports with these words in every place that a text has."""
    finding = Finding(
        code="x",
        severity=Severity.ERROR,
        title="x",
        subject="x",
        detail="x",
        evidence=(Evidence("x", "x"),) * 3,
        since=_NOW,
        fix="x",
        check="x",
        next="x",
    )
    findings = (
        finding,
        finding._replace(severity=Severity.WARNING, next="", caused_by="x"),
        finding._replace(severity=Severity.INFO, muted=True),
    )
    report = Report(
        home=Path("/"),
        hermes_version="x",
        started_at=_NOW,
        seconds=0.5,
        checks=tuple(CheckResult("x", "x", one, 0.1, "x", "x") for one in Status),
        findings=findings,
        fixes={"x": Safety.SAFE},
        personal=frozenset({"x"}),
        options="x",
        page_options="x",
        gateways=(Gateway(1, _NOW, "x"),),
        ladder=(Rung("x", RungState.FAILED, "x", _NOW),),
        states=tuple(PartState("x", (Part(one, "x"),)) for one in Mark),
        effects={"x": Effect("x", "x")},
        verdict=Verdict(VerdictKind.NOT_WORKING, "x", finding),
        turned_down=(finding,),
    )
    made = _filled(report, words)
    home = Path("/home") / os.fsdecode(words.replace("\0", "").encode(errors="surrogatepass"))
    return [made._replace(home=home), made._replace(home=Path("/other") / home.name)]


def _bad_characters(shown: str) -> set[str]:
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return {one for one in shown if unicodedata.category(one) in kinds} - _ALLOWED


def _of_github(shown: str) -> None:
    lines = shown.splitlines()
    assert len(lines) == 8, "one for each problem and each crashed check of both homes"
    form = re.compile(r"::(error|warning|notice) (file=[^:,]+,(line=\d+,)?)?title=[^:,]*::.*")
    assert all(form.fullmatch(line) for line in lines), shown


def _of_nagios(shown: str) -> None:
    first, *more = shown.splitlines()
    assert first.count("|") == 1 and first.startswith("HERMES CRITICAL - ")
    assert not any("|" in line for line in more)


def _of_junit(shown: str) -> None:
    suites = ElementTree.fromstring(shown)
    assert len(suites) == 2


def _of_prometheus(shown: str) -> None:
    label = r'[a-z]+="(?:[^"\\\n]|\\.)*"'
    line = re.compile(rf"# (HELP|TYPE) .*|[a-z_]+\{{{label}(,{label})*\}} \S+")
    lines = shown.splitlines()
    assert all(line.fullmatch(one) for one in lines), shown
    series = [one.rpartition(" ")[0] for one in lines if not one.startswith("#")]
    assert len(set(series)) == len(series)


def _of_json(shown: str) -> None:
    assert shown.isascii() and len(json.loads(shown)["homes"]) == 2


_FORMS: dict[str, Callable[[str], None]] = {
    "github": _of_github,
    "nagios": _of_nagios,
    "junit": _of_junit,
    "prometheus": _of_prometheus,
    "json": _of_json,
}


def _look(words: str, name: str) -> None:
    """What this format makes of the words is harmless and has the form of the format."""
    reports = _reports(words)
    thresholds = {one.home: frozenset({"error"}) for one in reports}
    page = check_run.formatted(name, reports, thresholds, all_homes=True, verbose=True)
    shown = clean_lines(page)

    assert not _bad_characters(shown), (name, _bad_characters(shown))
    assert shown.encode()
    if name != "github":
        assert not re.search(r"(?m)^\s*::[A-Za-z][\w-]*.*::", shown), name
        assert name == "json" or "##[" not in shown
    if name in _FORMS:
        _FORMS[name](shown)


@pytest.mark.parametrize("name", check_run.FORMATS)
@pytest.mark.parametrize("how", [*HOSTILE, "separators"])
def test_hostile_words(name: str, how: str) -> None:
    """In every place of a report at once."""
    _look(HOSTILE.get(how, 'a|b,c:d%0Ae"f\\g<h>&i]]>{j}'), name)


@settings(max_examples=budget.examples(100), deadline=None)
@given(st.text(max_size=30), st.sampled_from(sorted(check_run.FORMATS)))
def test_any_words(words: str, name: str) -> None:
    """Whatever they are."""
    _look(words, name)


_PLUGIN = """
from hermes_doctor.api import Evidence, Finding, Severity, check

WORDS = {words!r}

@check(id="own", group="own", codes=["OWN-ONE"])
def own(probes):
    \"\"\"Is everything harmless?\"\"\"
    yield Finding(code="OWN-ONE", severity=Severity.ERROR, title=WORDS, subject=WORDS,
                  detail=WORDS, evidence=(Evidence(WORDS, WORDS),), next=WORDS)

@check(id="doubt", group="own", codes=["OWN-TWO"])
def doubt(probes):
    \"\"\"Is this unknown?\"\"\"
    from hermes_doctor.api import CouldNotLook
    raise CouldNotLook(WORDS)
"""


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[Path, Path]:
    """A home with hostile words wherever it has free text, and a folder of plugins with more."""
    words = "".join(HOSTILE.values()).replace("\udcff\ud800", "").replace("\0", "")
    name = words.replace("/", "")[:60]
    home = support.healthy(tmp_path / name)
    said = json.dumps({
        "pid": 1,
        "gateway_state": "startup_failed",
        "exit_reason": words,
        "updated_at": "2026-11-18T03:00:00+00:00",
        "platforms": {"telegram": {"state": "fatal", "error_code": words, "error_message": words}},
    })  # fmt: skip
    support.put(home / "gateway_state.json", said)
    config = {
        "model": {"provider": words, "default": words},
        "custom_providers": [{"name": words, "base_url": f"http://{words}/"}],
        words: {words: words},
    }
    support.put(home / "config.yaml", json.dumps(config))
    support.put(home / "cron" / "jobs.json", json.dumps({"jobs": [
        {"id": words, "name": words, "prompt": words, "last_status": "error", "last_error": words,
         "enabled": True, "schedule": {"kind": "cron", "expr": words}}]}))  # fmt: skip
    with (home / ".env").open("a") as env:
        env.write(f"TELEGRAM_BOT_TOKEN={words!r}\n{words}=1\n")
    for level in ("ERROR", "WARNING"):
        with (home / "logs" / "gateway.log").open("a") as log:
            log.write(f"2026-11-18 03:00:00,000 {level} gateway.run: {words}\n")
            log.write(f"2026-11-18 03:00:00,000 {level} gateway.run: telegram failed: {words}\n")
    support.healthy(home / "profiles" / name)
    own = tmp_path / "own"
    support.put(own / "checks" / "own.py", _PLUGIN.format(words=words))
    return home, own


def test_a_hostile_home(hostile: tuple[Path, Path]) -> None:
    """Every format, in a pipe; the other commands as well."""
    home, own = hostile
    formats = [("check", "--format", name) for name in check_run.FORMATS]
    others = [("check", "-v"), ("check", "--all-homes", "--format", "github"), ("config",),
              ("timeline",), ("fix",), ("fix", "--json"), ("watch", "--once"),
              ("watch", "--once", "--json"), ("history",), ("backup", "create"),
              ("backup", "list"), ("switch-provider", "openrouter", "--model", "x")]  # fmt: skip
    for args in [*formats, *others]:
        plugins = ("--plugins", own) if args[0] in ("check", "fix", "watch") else ()
        done = support.doctor(*args, "--home", home, *plugins)
        assert done.code in (0, 1, 2), done.err
        for shown in (done.out, done.err):
            assert not _bad_characters(shown), (args, _bad_characters(shown))
            if "github" not in args:
                assert not re.search(r"(?m)^\s*::[A-Za-z][\w-]*.*::", shown), args
        if "github" in args:
            assert all(line.startswith("::") for line in done.out.splitlines()), done.out


def test_a_hostile_home_on_a_terminal(hostile: tuple[Path, Path]) -> None:
    """What moves the cursor or sets a title does not come through; our colours do."""
    home, own = hostile
    for args in (("check", "-v", "--plugins", own), ("fix", "--plugins", own), ("config",)):
        shown = on_a_terminal(*args, "--home", home)
        bare = re.sub(r"\x1b\[[\d;]*m|\r", "", shown)
        bare = re.sub(r"\x1b\[(\?25[lh]|2K|1A|\d*[AG])", "", bare)  # a bar that shows progress
        assert not _bad_characters(bare), (args, _bad_characters(bare))
        assert "\x1b]0;title" not in shown
