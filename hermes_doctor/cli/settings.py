"""The `settings` command: this tool's own settings, and where each comes from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.cli.option_declarations import HomeOption, JsonOption
from hermes_doctor.cli.option_values import load_plugins
from hermes_doctor.cli.progress_bars import print_document
from hermes_doctor.core import home as homes
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.preferences import effective, places
from hermes_doctor.core.terminal.lines import BLANK, row, tilde
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.core.preferences.effective import Preferences, Setting
    from hermes_doctor.core.terminal.lines import Line

EPILOG = """\b
Examples:
  hermes-doctor settings
  hermes-doctor settings --home /srv/hermes --json

\b
An option on the command line comes first, then the environment
(HERMES_HOME, HERMES_DOCTOR_FAIL_ON, HERMES_DOCTOR_LANGUAGE,
HERMES_DOCTOR_PLUGINS, HERMES_DOCTOR_VAULT), then config.toml of this user,
then /etc/hermes-doctor/config.toml.

\b
Exit codes:
  0  shown
  2  a file has a mistake, cannot be read, or others may write to it
"""
SCHEMA = "hermes-doctor/settings/1"
DEFAULT = "default"
HIDDEN = "(set, not shown)"
WIDEST = 24
"""Columns for values; a longer one moves its origin to the right."""


def settings(home: HomeOption = None, json: JsonOption = False) -> int:
    """Show this tool's own settings and their origin."""
    from hermes_doctor.cli.watch_run import check_files

    preferences, plugins = effective.load(), load_plugins(None)
    preferences.check_codes({code for check in plugins.checks for code in check.codes})
    rows = list(_rows(preferences, home))
    if preferences.files:
        check_files(preferences, _home(preferences, home)[0] or Path("/"), plugins)
    files = [folder / places.CONFIG for folder in places.folders()]
    if json:
        items = [{"key": key, "value": value, "origin": origin} for key, value, origin in rows]
        known = [{"path": str(path), "exists": os.path.lexists(path)} for path in files]
        print_document({"schema": SCHEMA, "settings": items, "files": known})
        return 0
    show(_lines(rows, files))
    return 0


def _rows(preferences: Preferences, option: Path | None) -> Iterator[tuple[str, Any, str]]:
    """Every setting with its value and its origin."""
    from hermes_doctor.cli.check_run import FAIL_ON
    from hermes_doctor.cli.watch_run import DEFAULTS, complete
    from hermes_doctor.core.preferences.config_toml import LANGUAGES, OFF, SECRETS, shown

    place, origin = _home(preferences, option)
    yield "home", str(place) if place else None, origin
    yield _row("language", preferences.find("language"), LANGUAGES[0])
    yield _row("fail_on", preferences.find("fail_on", home=place), FAIL_ON)
    plugins = preferences.find("plugins")
    yield _row("plugins", plugins, [])
    yield _row("mutes", preferences.find("mutes"), "all")
    vault = preferences.find("vault", home=place)
    yield _row("vault", vault, str(place / "backups" / "doctor") if place else None)
    if place is None:
        return
    complete(place, {})  # a wrong value is an error here, too
    chosen = preferences.watch(place)
    for name, value in DEFAULTS.items():
        key, setting = shown(("watch", name)), chosen.get(name)
        if setting and name in SECRETS:
            yield key, HIDDEN, setting.origin
        else:
            yield _row(key, setting, value)
    for code, severity in sorted(preferences.severities(place).items()):
        yield shown(("severity", code)), severity.value or OFF, severity.origin


def _row(key: str, setting: Setting | None, default: Any) -> tuple[str, Any, str]:
    if setting is None:
        return key, _plain(default), DEFAULT
    return key, _plain(setting.value), setting.origin


def _plain(value: Any) -> Any:
    """The value as JSON has it."""
    if isinstance(value, Path):
        return str(value)
    return [str(one) for one in value] if isinstance(value, list | tuple) else value


def _home(preferences: Preferences, option: Path | None) -> tuple[Path | None, str]:
    """The home that would be checked, and why that one."""
    setting = preferences.find("home")
    origin = "--home" if option else setting.origin if setting else DEFAULT
    try:
        return homes.find(option).path, origin
    except Trouble:
        if option:
            raise
        return None, f"{origin}: not found"


def _lines(rows: list[tuple[str, Any, str]], files: list[Path]) -> Iterator[Line]:
    shown = [(key, tilde(_words(value)), tilde(origin)) for key, value, origin in rows]
    first, second = (max(len(one[place]) for one in shown) for place in (0, 1))
    second = min(second, WIDEST)
    for key, words, origin in shown:
        style = "faint" if origin == DEFAULT else "strong"
        yield row(
            f"{key:<{first}}  ",
            (f"{words:<{second}}", style),
            (f"  {origin}", "faint"),
            hang=first + 2,
        )
    yield BLANK
    for path in files:
        yield row(f"{tilde(path)}: {'read' if os.path.lexists(path) else 'does not exist'}")


def _words(value: Any) -> str:
    if value is None or value in ([], ""):
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(value) if isinstance(value, list) else str(value)
