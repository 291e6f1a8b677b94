"""README.md is short, has a current screenshot, and never leads to the wrong package."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.docs.test_failure_pages import refused
from tests.helpers.each import each
from tools import screenshot

ROOT = Path(__file__).parents[2]
README = screenshot.README.read_text(encoding="utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
IN_PLAIN_ENGLISH = [
    path for path in DOCUMENTS if path.name != "CHANGELOG.md" and path.parent.name != "failures"
]
LONGEST = 120
COMMANDS = (
    "hermes-doctor check",
    "hermes-doctor fix",
    "hermes-doctor fix --apply",
    "hermes-doctor undo",
    "make install",
    "make demo",
    "make test",
)
_WRONG_PACKAGE = re.compile(
    r"\b(?:pip3?|pipx|uv(?: tool| pip)?) (?:install|run|add)(?: -\S+)* ['\"]?hermes-doctor(?![\w-])"
    r"|\buvx (?:-\S+ )*hermes-doctor(?![\w-])"
)
"""Commands that would fetch the unrelated project that has the name of our command."""


def test_short() -> None:
    """README fits on a few screens."""
    assert len(README.splitlines()) <= LONGEST


def test_screenshot() -> None:
    """The screenshot is what `hermes-doctor check` shows now, and fits 80 columns."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.screenshot", "--print"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    shown = screenshot.split(README)[1]

    assert done.stdout == shown, "run `make screenshot`"
    assert max(map(cell_len, shown.splitlines())) <= screenshot.COLUMNS
    assert "~/.hermes" in shown


def test_screenshot_is_replaced() -> None:
    """Only the lines between the command and the end of the block are replaced."""
    before, shown, after = screenshot.split(f"a\n{screenshot.START}old\n```\nb\n")

    assert (before, shown, after) == (f"a\n{screenshot.START}", "old\n", "```\nb\n")
    with pytest.raises(SystemExit):
        screenshot.split("no block")


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command: str) -> None:
    """The commands can be pasted: each is a line of a block, with or without a comment."""
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL))

    assert re.search(rf"^{re.escape(command)}(?: +#.*)?$", blocks, re.MULTILINE)


def test_install() -> None:
    """The first block installs the clone, not a name from an index, and then runs `check`."""
    blocks = re.findall(r"```sh\n(.*?)```", README, re.S)
    lines = re.findall(r"^.*\binstall\b.*$", "".join(blocks), re.M)
    name = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"]

    assert blocks[0] == "make install\nhermes-doctor check\n"
    assert lines == ["make install"]
    assert name != "hermes-doctor"
    assert f"`{name}`" in README


@each(DOCUMENTS)
def test_no_wrong_package(path: Path) -> None:
    """No document has a command that installs the unrelated project."""
    assert not _WRONG_PACKAGE.search(" ".join(path.read_text(encoding="utf-8").split()))


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("pip install hermes-doctor", True),
        ("pip install -U hermes-doctor", True),
        ("uv tool install hermes-doctor", True),
        ("uvx hermes-doctor check", True),
        ("pipx run hermes-doctor", True),
        ("pipx install .", False),
        ("pipx install hermes-doctor-plugins", False),
        ("hermes-doctor watch install --heal", False),
    ],
)
def test_wrong_package(command: str, wrong: bool) -> None:
    """The pattern of the test above finds such commands."""
    assert bool(_WRONG_PACKAGE.search(command)) is wrong


@each(IN_PLAIN_ENGLISH)
def test_words(path: Path) -> None:
    """The documents do not use words that a reader with little English does not know."""
    assert refused(path.read_text(encoding="utf-8")) == []
