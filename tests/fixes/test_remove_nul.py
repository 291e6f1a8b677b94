"""remove-nul: NUL bytes in .env go, everything else stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.one_check import ask

PLAIN = b"TELEGRAM_BOT_TOKEN=123:abc\n# comment\nB=2\n"
CASES = {
    "at the end": PLAIN + b"\0" * 512,
    "in the middle": PLAIN.replace(b"# comment", b"\0" * 40 + b"# comment"),
    "in a value": PLAIN.replace(b"B=2", b"B=\x002"),
}


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


@pytest.mark.parametrize("data", [b"\0" * 64, b"A=\x00\xff\n", b"A=\x00\x07\n"])
def test_not_plain(home: Path, data: bytes) -> None:
    """Where the rest is not plain text, there is no fix."""
    support.put(home / ".env", data)

    [found] = [one for one in ask("env-encoding", home)[1] if one.code == "ENV-BOM"]

    assert found.fix is None
