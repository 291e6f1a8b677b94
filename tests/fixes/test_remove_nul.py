"""remove-nul: NUL bytes in .env go, everything else stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.fix_contract import Planted
from tests.helpers.one_check import ask

PLAIN = b"TELEGRAM_BOT_TOKEN=123:abc\n# comment\nB=2\n"
CASES = {
    "at the end": PLAIN + b"\0" * 512,
    "in the middle": PLAIN.replace(b"# comment", b"\0" * 40 + b"# comment"),
    "in a value": PLAIN.replace(b"B=2", b"B=\x002"),
    "in a name": PLAIN.replace(b"_BOT_TOKEN", b"_BOT\0\0_TOKEN"),
    "in place of a line end": PLAIN.replace(b"comment\nB", b"comment\0\0B"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
def test_cures_and_undoes(home: Path, case: str) -> None:
    """All other bytes stay; twice equals once; undo brings the bytes back."""
    support.put(home / ".env", CASES[case])
    sick = support.contents(home)

    done = support.doctor("fix", "ENV-BOM", "--apply", "--yes", "--json", "--home", home)

    assert "ENV-BOM" not in done.codes, done.out
    assert (home / ".env").read_bytes() == PLAIN
    cured = support.contents(home)
    again = support.doctor("fix", "ENV-BOM", "--apply", "--yes", "--json", "--home", home)
    assert again.json["repair"]["runs"] == []
    assert support.contents(home) == cured
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


def test_it_asks_first(home: Path) -> None:
    """A value may have lost a part, so the operator decides."""
    support.put(home / ".env", CASES["in a value"])

    support.doctor("fix", "ENV-BOM", "--apply", "--home", home)

    assert (home / ".env").read_bytes() == CASES["in a value"]


@pytest.mark.parametrize("data", [b"\0" * 64, b"A=\x00\xff\n", b"A=\x00\x07\n", b'A="x\0\0B=2"\n'])
def test_not_plain(home: Path, data: bytes) -> None:
    """Where the rest is not plain text, there is no fix."""
    support.put(home / ".env", data)

    [found] = [one for one in ask("env-encoding", home)[1] if one.code == "ENV-BOM"]

    assert found.fix is None


def test_variables_stay_apart(home: Path) -> None:
    """NUL bytes instead of line ends: each variable keeps its own line, and the plan shows them."""
    support.put(home / ".env", b"A_NAME=123:abc\0\0\0B_NAME=sk-1\0export C_NAME=3\n")

    plan = support.doctor("fix", "ENV-BOM", "--home", home)
    support.doctor("fix", "ENV-BOM", "--apply", "--yes", "--home", home)

    assert all(f"+{line}" in plan.out.replace("+ ", "+") for line in ("A_NAME", "B_NAME"))
    assert (home / ".env").read_bytes() == b"A_NAME=123:abc\nB_NAME=sk-1\nexport C_NAME=3\n"


PLANTED = Planted("ENV-BOM", lambda home: support.put(home / ".env", CASES["at the end"]))
