"""comment-out: lines that should not count are comments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes, fix_cycle, support
from tests.helpers.fix_contract import Planted

CASES = {
    "older lines": (
        "{}\n",
        "A=1\r\nB=2\r\nexport A=3\r\nA=4\r\n",
        "ENV-DUP",
        "A",
        "# A=1\r\nB=2\r\n# export A=3\r\nA=4\r\n",
    ),
    "a variable that beats config.yaml": (
        "telegram: {require_mention: true}\n",
        config_homes.TELEGRAM + "TELEGRAM_REQUIRE_MENTION=false\n",
        "ENV-SHADOWS-CONFIG",
        "telegram.require_mention",
        config_homes.TELEGRAM + "# TELEGRAM_REQUIRE_MENTION=false\n",
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
def test_cures_and_undoes(home: Path, case: str) -> None:
    """No line is lost."""
    config, env, code, subject, after = CASES[case]
    config_homes.write(home, config, env)

    cured = fix_cycle.cure(home, code, "comment-out", subject)

    assert (home / ".env").read_bytes().decode() == after
    cured.undo()


def test_over_several_lines(home: Path) -> None:
    """A value that goes on below is a person's to take out."""
    config_homes.write(home, "{}\n", "A='x\ny'\nA=2\n")

    assert "several lines" in fix_cycle.refused(home, "ENV-DUP")


def test_not_utf_8(home: Path) -> None:
    """It says what is to be done first."""
    config_homes.write(home, "{}\n", "")
    (home / ".env").write_bytes(b"# gr\xfc\xdfe\nA=1\nA=3\n")

    done = support.doctor("fix", "ENV-DUP", "--apply", "--yes", "--home", home)

    assert done.code == 1
    assert "not UTF-8. Save it as UTF-8 first" in " ".join(done.out.split())


PLANTED = Planted("ENV-DUP", lambda home: config_homes.write(home, *CASES["older lines"][:2]))
