"""The reference pages and the man page name every command, variable, file and field."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from hermes_doctor.cli import settings
from hermes_doctor.core.preferences import effective, mutes, places
from hermes_doctor.operations.history import place
from tools.share import command_tree, man_page

DOCS = Path(__file__).parents[2] / "docs"
MAN_PAGE = man_page.page(command_tree.read()).replace("\\-", "-")
ORDER = ("--home", "HERMES_HOME", "config.toml", "~/.hermes", "/opt/data")


def page(name: str) -> str:
    """The text of a page."""
    return (DOCS / name).read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    """The part of a page below a heading that starts like this."""
    [found] = re.findall(rf"^## {re.escape(title)}.*?\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    return str(found)


def test_every_command_has_a_page() -> None:
    """The table of docs/commands.md has each command."""
    table = page("commands.md").partition("| command |")[2].partition("## ")[0]
    named = {word for part in re.findall(r"`([^`]+)`", table) for word in part.split()}

    assert {one.path[0] for one in command_tree.read().commands} <= named


def test_order_of_homes() -> None:
    """All pages say in the same order where the home is looked for."""
    for text in (
        page("commands.md"),
        (DOCS.parent / "README.md").read_text(encoding="utf-8"),
        MAN_PAGE.replace("\\(ti", "~"),
    ):
        before = text.partition("whichever is set")[0][-300:]
        positions = [before.rfind(name) for name in ORDER]
        assert -1 not in positions
        assert positions == sorted(positions)


def test_variables_and_files() -> None:
    """The man page has them; the pages name the files that stay after removal."""
    files, variables = MAN_PAGE.split(".SH FILES")[1].split(".SH ENVIRONMENT")

    for name in (*effective.VARIABLES.values(), "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        assert name in variables
    for text in (files, section(page("commands.md"), "Files")):
        assert all(name in text for name in (places.CONFIG, places.MUTES, place.FILE))
    for name in (place.FILE, "~/.config/hermes-doctor/", str(places.SYSTEM), "/var/lib/"):
        assert name in section(page("install.md"), "Remove")


def test_fields_of_mutes_and_settings() -> None:
    """docs/json.md has the schema and each field."""
    mute = mutes.made_for(
        (),
        *("/home", "NET-TCP", None),
        at=datetime(2026, 11, 15, tzinfo=UTC),
        until=None,
        sticky=True,
        because="",
    )
    about_mutes = section(page("json.md"), f"`mutes`: {mutes.SCHEMA}")
    about_settings = section(page("json.md"), f"`settings`: {settings.SCHEMA}")

    assert all(f'"{name}"' in about_mutes for name in mutes.document(mute))
    assert all(f'"{name}"' in about_settings for name in ("key", "value", "origin", "files"))
    assert settings.HIDDEN in about_settings
