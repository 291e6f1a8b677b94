"""The man page has every command and option, and all readers accept it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from hermes_doctor.cli.front_page import PURPOSE
from tests.docs.test_failure_pages import refused
from tests.helpers.shells import share
from tools.share import command_tree, man_page
from tools.share.command_tree import NAMES

PAGE = "man/man1/hermes-doctor.1"
HEADINGS = [
    *("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "EXIT STATUS", "FILES"),
    *("ENVIRONMENT", "EXAMPLES", "SEE ALSO"),
]


def shown(*command: str) -> str:
    """The page as `man` shows it on a terminal with 80 columns."""
    done = subprocess.run(
        [*command],
        env={**os.environ, "MANWIDTH": "80", "LANG": "C.UTF-8", "MANPATH": str(share() / "man")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)


@pytest.mark.sampled
@pytest.mark.needs("man")
@pytest.mark.parametrize("name", NAMES)
def test_page(name: str) -> None:
    """Under both names, `man` shows all commands and options without a warning."""
    page = shown("man", "--warnings", "--encoding=UTF-8", name)
    words = " ".join(page.split())

    assert [line for line in page.splitlines() if re.match(r"[A-Z][A-Z ]+$", line)] == HEADINGS
    assert max(map(len, page.splitlines())) <= 80
    assert PURPOSE[1:-1] in words
    for command in command_tree.read().walk():
        assert " ".join(("hermes-doctor", *command.path, *command.usage)) in words
        for option in command.options:
            assert "--help" in option.names or ", ".join(option.names) in words


@pytest.mark.needs("man")
def test_options_and_codes() -> None:
    """The page says how to switch an option off, and leaves names in exit codes as they are."""
    words = " ".join(shown("man", "--warnings", "--encoding=UTF-8", NAMES[0]).split())
    lines = list(man_page.exit_codes(["0  no `--json` of HERMES_HOME -x", "1  ~/.hermes"]))

    assert "see --also. --no-heal switches it off. [default: --no-heal]" in words
    assert "--notify-hermes PLATFORM[:CHANNEL] " in words
    assert lines[2] == "No \\fB\\-\\-json\\fR of HERMES_HOME \\-x."
    assert lines[5] == "\\(ti/.hermes."


@pytest.mark.needs("mandoc")
def test_strict_reader() -> None:
    """mandoc, which macOS and Alpine have, complains only about the date, which is left out."""
    done = subprocess.run(["mandoc", "-Tlint", share() / PAGE], capture_output=True, text=True)
    complaints = [line for line in done.stdout.splitlines() if "missing date" not in line]

    assert complaints == []


def test_plain_words() -> None:
    """The page uses the words of the other documents."""
    assert refused(re.sub(r"\\[-&e]|\\f[BIR]", "", (share() / PAGE).read_text())) == []


@pytest.mark.needs("man")
@pytest.mark.parametrize("text", [".start", "'quote'", "a\\b", "-x ~ ^ `word`", "…·→", "a  b"])
def test_odd_text(text: str, tmp_path: Path) -> None:
    """What roff would read as a request or an escape is shown as it is."""
    page = tmp_path / "page.1"
    lines = (".TH X 1", ".SH NAME", "x \\- y", ".SH TEXT", *man_page.as_typed([text]))
    page.write_text("".join(f"{line}\n" for line in lines))

    assert f"       {text}\n" in shown("man", "--warnings", "--encoding=UTF-8", "-l", str(page))
