"""rewrite-env: the same text as plain UTF-8."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.fix_contract import Planted

TEXT = "FIRST_TOKEN=1:a\r\n# comment 中文\nB='two words'\n"
CASES = {
    "mark": codecs.BOM_UTF8 + TEXT.encode(),
    "UTF-16 LE": codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
    "UTF-16 BE": codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
    "UTF-32 LE": codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"),
    "UTF-16 LE without a mark": TEXT.encode("utf-16-le"),
    "UTF-16 BE without a mark": TEXT.encode("utf-16-be"),
    "two marks": codecs.BOM_UTF8 * 2 + TEXT.encode(),
    "a mark inside UTF-16": codecs.BOM_UTF16_LE + ("\ufeff" + TEXT).encode("utf-16-le"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
def test_cures_and_undoes(home: Path, case: str) -> None:
    """Every character and line ending stays; twice equals once; undo gives the bytes back."""
    support.put(home / "config.yaml", support.CONFIG_WITHOUT_FALLBACK)
    support.put(home / ".env", CASES[case])
    sick = support.contents(home)

    done = support.doctor("fix", "--apply", "--json", "--home", home)

    assert (done.code, done.codes) == (0, [])
    assert (home / ".env").read_bytes() == TEXT.encode()
    cured = support.contents(home)
    again = support.doctor("fix", "--apply", "--json", "--home", home)
    assert (again.code, again.json["repair"]["runs"]) == (0, [])
    assert support.contents(home) == cured
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


def test_mark_and_nothing_else(home: Path) -> None:
    """A file of only a mark becomes an empty one."""
    support.put(home / ".env", codecs.BOM_UTF8)

    assert support.doctor("fix", "--apply", "--home", home).code == 0

    assert (home / ".env").read_bytes() == b""


@pytest.mark.parametrize("data", [b"A=\xff\0\n", "A=中文\n".encode("gbk"), b"\xff\xfeA"])
def test_uncertain_encodings_are_not_touched(home: Path, data: bytes) -> None:
    """What cannot be told for certain stays as it is."""
    support.put(home / "config.yaml", support.CONFIG_WITHOUT_FALLBACK)
    support.put(home / ".env", data)
    sick = support.contents(home)

    done = support.doctor("fix", "--apply", "--yes", "--json", "--home", home)

    assert done.json["repair"]["runs"] == []
    assert done.codes == ["ENV-BOM"]
    assert support.contents(home) == sick


def test_with_modes_in_one_run(home: Path) -> None:
    """A mark and an open mode on the same file are cured together and undone together."""
    support.put(home / "config.yaml", support.CONFIG_WITHOUT_FALLBACK)
    support.put(home / ".env", CASES["mark"], 0o644)
    sick = support.contents(home)

    done = support.doctor("fix", "--apply", "--json", "--home", home)

    assert (done.code, done.codes) == (0, [])
    assert (home / ".env").read_bytes() == TEXT.encode()
    assert (home / ".env").stat().st_mode & 0o777 == 0o600
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


def test_values_are_hidden(home: Path) -> None:
    """No value of .env shows in the plan, in JSON or in the receipt."""
    support.put(
        home / ".env", codecs.BOM_UTF16_LE + "K=canary-1\nP: canary-2\n".encode("utf-16-le")
    )

    for args in ([], ["--json"], ["--apply"]):
        done = support.doctor("fix", *args, "--home", home)
        assert "canary" not in done.out + done.err

    [receipt] = (home / "backups" / "doctor" / "runs").glob("*/run.json")
    assert "canary" not in receipt.read_text()


def test_managed_home(home: Path) -> None:
    """A home that a package manager writes is changed there."""
    support.put(home / ".env", CASES["mark"])
    support.put(home / ".managed", "")
    sick = support.contents(home)

    done = support.doctor("fix", "ENV-BOM", "--apply", "--json", "--home", home)

    assert "managed" in str([one["refusal"] for one in done.json["repair"]["plan"]])
    assert done.json["repair"]["runs"] == []
    assert support.contents(home) == sick


PLANTED = Planted("ENV-BOM", lambda home: support.put(home / ".env", CASES["UTF-16 LE"]))
