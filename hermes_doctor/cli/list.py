"""The `list` command: the checks, codes and fixes that exist."""

from __future__ import annotations

import enum
import sys
from typing import TYPE_CHECKING, Any

import typer

from hermes_doctor.cli.option_declarations import JsonOption, PluginsOption
from hermes_doctor.cli.option_values import load_plugins
from hermes_doctor.cli.progress_bars import print_document
from hermes_doctor.core.model import Safety
from hermes_doctor.core.preferences import effective
from hermes_doctor.core.terminal.lines import BLANK, row
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hermes_doctor.diagnosis.plugins.load import Plugins

EPILOG = """\b
Examples:
  hermes-doctor list
  hermes-doctor list codes
  hermes-doctor list fixes --json

\b
Exit codes:
  0  listed
  2  could not run
"""


class ListedKind(enum.StrEnum):
    """What can be listed."""

    CHECKS = "checks"
    CODES = "codes"
    FIXES = "fixes"


_NEXT = {
    ListedKind.CHECKS: ("hermes-doctor check --only NAME", "run one check"),
    ListedKind.CODES: ("hermes-doctor explain CODE", "explain one code"),
    ListedKind.FIXES: ("hermes-doctor fix CODE", "show what a fix would do"),
}


def listing(
    kind: ListedKind = typer.Argument(
        ListedKind.CHECKS, metavar="[checks|codes|fixes]", help="List these."
    ),
    json: JsonOption = False,
    plugins: PluginsOption = None,
) -> int:
    """List the checks, codes or fixes."""
    found = load_plugins(plugins)
    table = _table(kind, found, plugins or effective.load().plugins())
    broken = [{"path": str(one.path), "why": one.why} for one in found.broken]
    if json:
        head = {"schema": "hermes-doctor/list/1", "kind": kind.value}
        print_document(head | {"items": table, "broken": broken})
        return 0
    for item in table:
        name, *said, last = filter(None, map(_words, item.values()))
        text = "  ".join(("", *said, ""))
        show([row((name, "strong"), text, last, hang=2)])
    if sys.stdout.isatty():
        command, why = _NEXT[kind]
        show([BLANK, row("Next: ", (command, "command"), f"  {why}", hang=6)])
    if broken:
        show([BLANK])
    for one in broken:
        show([row(("? ", "warning"), f"Could not load {one['path']}: {one['why']}", hang=2)])
    return 0


def _words(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(value)}]" if value else ""
    return "asks" if value == Safety.CONFIRM else str(value)


def _table(kind: ListedKind, plugins: Plugins, folders: Sequence[Path]) -> list[dict[str, Any]]:
    from hermes_doctor.render.document import fields_of

    if kind is ListedKind.CHECKS:
        return [fields_of(check, "id group question codes") for check in plugins.checks]
    if kind is ListedKind.FIXES:
        return [fields_of(fix, "id safety title codes") for fix in plugins.fixes]
    from hermes_doctor.diagnosis.plugins.mount import page_folders

    titles = {
        page.stem: page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        for folder in page_folders(folders)
        for page in folder.glob("*.md")
    }
    codes = sorted({code for check in plugins.checks for code in check.codes})
    return [
        {
            "code": code,
            "title": titles.get(code, code).removeprefix(f"{code}: "),
            "fixes": [fix.id for fix in plugins.fixes if code in fix.codes],
        }
        for code in codes
    ]
