"""The `demo` command: check, fix and undo on a broken home that the tool creates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EPILOG = """\b
Examples:
  hermes-doctor demo
  hermes-doctor demo --keep

\b
Exit codes:
  0  the story went as it should
  1  it did not
"""


def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the home there, sick again, to play with.")
    ] = False,
) -> int:
    """Show it all on a sick home that the tool makes itself."""
    import shlex
    import shutil
    import tempfile

    from hermes_doctor.terminal.lines import row
    from hermes_doctor.terminal.show import show

    folder = Path(tempfile.mkdtemp(prefix="hermes-doctor-demo-"))
    folder.chmod(0o755)  # the secrets are a finding only if other users can reach them
    home = folder / "home"
    try:
        good = _story(home)
    finally:
        if not keep:
            shutil.rmtree(folder)
    if keep:
        show(
            [
                row(
                    "The home is yours to play with: ",
                    (f"hermes-doctor check --home {shlex.quote(str(home))}", "command"),
                )
            ]
        )
    else:
        show([row("The home is removed again; with --keep it stays.")])
    return 0 if good else 1


def _story(home: Path) -> bool:
    from hermes_doctor.cli import demo_home
    from hermes_doctor.cli.check import check
    from hermes_doctor.cli.fix import fix
    from hermes_doctor.cli.undo import undo
    from hermes_doctor.terminal.lines import row
    from hermes_doctor.terminal.show import show

    faults = demo_home.make(home)
    _title(1, "A Hermes home in which five things went wrong")
    show([row(("· ", "faint"), fault, hang=2) for fault in faults])
    sick = contents(home)

    _title(2, "hermes-doctor check: looks, and changes nothing")
    found = check(home=home)
    untouched = contents(home) == sick

    _title(3, "hermes-doctor fix: shows the plan, and changes nothing")
    fix(home=home)
    untouched = untouched and contents(home) == sick

    _title(4, "hermes-doctor fix --apply --yes: backs up, repairs, verifies")
    applied = fix(home=home, apply=True, yes=True)

    _title(5, "hermes-doctor check: once more")
    left = check(home=home)

    _title(6, "hermes-doctor undo --yes: gives everything back")
    undone = undo(home=home, yes=True)
    same = contents(home) == sick

    _title(7, "What happened")
    told = [
        (found == 1 and untouched, "check and fix found the faults and changed not one byte"),
        (applied == 0, "fix --apply backed up, repaired and verified all of them"),
        (left == 0, "the second check found nothing wrong"),
        (undone == 0 and same, "undo gave back the sick home, byte for byte"),
    ]
    show([row(("✓ ", "good") if good else ("✗ ", "error"), text, hang=2) for good, text in told])
    return all(good for good, _ in told)


def _title(number: int, text: str) -> None:
    from hermes_doctor.terminal.lines import BLANK, row
    from hermes_doctor.terminal.show import show

    show(
        [
            BLANK,
            row((f"── {number}. {text} ", "strong"), ("─" * max(3, 66 - len(text)), "faint")),
            BLANK,
        ]
    )


def contents(home: Path) -> dict[str, tuple[bytes, int]]:
    """Content and mode of every file in the home, without the tool's own folder."""
    return {
        str(path.relative_to(home)): (path.read_bytes(), path.stat().st_mode)
        for path in sorted(home.rglob("*"))
        if path.is_file() and "backups" not in path.relative_to(home).parts
    }
