"""docs/codes.md lists all codes; `make generate` writes it."""

from __future__ import annotations

import re

from hermes_doctor.diagnosis.plugins import load
from tools import list_codes

PLUGINS = load.load()
TEXT = list_codes.TARGET.read_text(encoding="utf-8")


def test_current() -> None:
    """The file is what `make generate` writes now."""
    assert list_codes.table(PLUGINS) == TEXT, "run `make generate`"


def test_complete() -> None:
    """Every code that a check can find is listed once, and says whether a fix exists."""
    rows = re.findall(r"^\| \[`(\S+)`\]\(failures/\1\.md\) \| \S.* \| (.*) \|$", TEXT, re.MULTILINE)
    fixed = {code for fix in PLUGINS.fixes for code in fix.codes}

    assert sorted(code for code, _ in rows) == sorted(
        {code for check in PLUGINS.checks for code in check.codes}
    )
    assert {code for code, fixes in rows if fixes} == fixed


def test_symptom() -> None:
    """A problem is described by the heading of its page, without the code."""
    assert list_codes.symptom("GW-DOWN") == "the gateway is not running"
