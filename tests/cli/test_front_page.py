"""`--help` and `--version` without typer are what typer prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from hermes_doctor.cli import front_page
from hermes_doctor.cli.commands import app
from tests.helpers import support

FILES = {
    "hermes-doctor": "hermes-doctor",
    "hermes-gateway-doctor": "hermes-gateway-doctor",
    "__main__.py": "python -m hermes_doctor",
}


def typers(word: str, program: str) -> str:
    """What typer prints in 80 columns or more."""
    done = CliRunner().invoke(app, [word], prog_name=program, env={"COLUMNS": "100"})
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("columns", [80, 200])
def test_page(file: str, columns: int) -> None:
    """The page is typer's, with all commands and options."""
    assert front_page.page(file, columns) == typers("--help", FILES[file])


def test_version() -> None:
    """So is the version."""
    assert front_page.version_line() + "\n" == typers("--version", "hermes-doctor")


def test_left_to_typer() -> None:
    """A narrow terminal and a renamed script are left to typer."""
    assert front_page.page("hermes-doctor", 79) is None
    assert front_page.page("doctor", 80) is None


def test_same_in_every_way(home: Path) -> None:
    """Both options and, where there is a home, no words print the same page."""
    env = {"COLUMNS": "80", "HERMES_HOME": str(home)}
    pages = {support.spawned(*words, env=env) for words in (["--help"], ["-h"], [])}

    assert len(pages) == 1
    assert pages.pop().out.startswith("Usage: ")
