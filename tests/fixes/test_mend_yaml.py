"""mend-yaml: what a rule mends, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes, fix_cycle, support
from tests.helpers.fix_contract import Planted

CASES = {
    "tabs": (b"model:\n\tdefault: x\n# a\tb\n", b"model:\n  default: x\n# a\tb\n"),
    "a tab after a colon": (b"a:\tb\r\nc: 'd\te'\r\n", b"a: b\r\nc: 'd\te'\r\n"),
    "odd blanks": ("m:\n\u00a0 a: x\n  b: y\n".encode(), b"m:\n  a: x\n  b: y\n"),
    "full-width colons": ("a：\n  b：c\n".encode(), b"a:\n  b: c\n"),
    "curly quotes": ("m: {a: “x, b: 1: 2”}\n".encode(), b'm: {a: "x, b: 1: 2"}\n'),
    "UTF-16": ("a: é\n".encode("utf-16"), "a: é\n".encode()),
    "NUL": (b"a: 1\n\0\0\0", b"a: 1\n"),
    "two slips": ("a:\n\tb: 1\nc：\n\td: 2\n".encode(), b"a:\n  b: 1\nc:\n  d: 2\n"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
def test_cures_and_undoes(home: Path, case: str) -> None:
    """The file parses, nothing else changed, twice equals once, undo gives the bytes back."""
    sick, sound = CASES[case]
    (home / "config.yaml").write_bytes(sick)

    cured = fix_cycle.cure(home, "CFG-YAML", "mend-yaml", "config.yaml")

    assert (home / "config.yaml").read_bytes() == sound
    cured.undo()


def test_secrets_are_hidden(home: Path) -> None:
    """The difference is shown without values."""
    config_homes.write(home, f"model:\n\tapi_key: {fix_cycle.SECRET}\n")

    fix_cycle.cure(home, "CFG-YAML", "mend-yaml", "config.yaml").undo()


PLANTED = Planted("CFG-YAML", lambda home: support.put(home / "config.yaml", CASES["tabs"][0]))
