"""The `demo` command: check, fix and undo on a broken home that the tool creates."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import typer

from hermes_doctor.cli import exits
from hermes_doctor.cli.option_values import load_plugins
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Severity
from hermes_doctor.core.preferences import places
from hermes_doctor.core.system.signals import interruptible
from hermes_doctor.core.terminal.lines import BLANK, row
from hermes_doctor.core.terminal.show import show

EPILOG = """\b
Examples:
  hermes-doctor demo
  hermes-doctor demo --keep

\b
Exit codes:
  0  everything was found, repaired and undone
  1  something was not found, repaired or undone
"""

_KEPT = ("COLUMNS", "LANG", "LANGUAGE", "LINES", "NO_COLOR", "TERM", "TMPDIR", "TZ")
"""The variables that the demo keeps; all others could show it what is on this machine."""


def demo(
    keep: bool = typer.Option(
        False, "--keep", help="Keep the example home, so that you can try it yourself."
    ),
) -> int:
    """Show check, fix and undo on a broken example home."""
    import shlex
    import shutil
    import tempfile

    with interruptible():
        folder = Path(tempfile.mkdtemp(prefix="hermes-doctor-demo-"))
        home = folder / "home"
        try:
            folder.chmod(0o755)  # the secrets are a finding only if other users can reach them
            with _apart(folder):
                good = _story(home)
        finally:
            if not keep:
                shutil.rmtree(folder)
    if keep:
        command = f"hermes-doctor check --home {shlex.quote(str(home))}"
        show([row("Try it yourself: ", (command, "command"))])
    else:
        show([row("The example home was removed. To keep it: hermes-doctor demo --keep")])
    return 0 if good else 1


@contextlib.contextmanager
def _apart(folder: Path) -> Iterator[None]:
    """Hide the variables, programs and settings of this machine, so that no demo depends on them.

    Without this, a vault in config.toml would keep the backups of the demo.
    """
    before = dict(os.environ)
    nowhere = str(folder / "nowhere")
    os.environ.clear()
    for name, value in before.items():
        if name in _KEPT or name.startswith(("LC_", "PYTHON")):
            os.environ[name] = value
    os.environ |= {"HOME": nowhere, "PATH": nowhere}
    try:
        with places.hidden():
            yield
    finally:
        os.environ.clear()
        os.environ |= before


def _story(home: Path) -> bool:
    from hermes_doctor.cli import demo_home
    from hermes_doctor.cli.check_run import run as check
    from hermes_doctor.cli.fix import fix
    from hermes_doctor.cli.undo import undo

    faults = demo_home.make(home)
    _title(1, "A Hermes home in which five things went wrong")
    show([row(("· ", "faint"), fault, hang=2) for fault in faults])
    broken = contents(home)

    _title(2, "hermes-doctor check: find out what is wrong; change nothing")
    check(home=home)
    found = _codes(home)
    untouched = contents(home) == broken

    _title(3, "hermes-doctor fix: show the plan; change nothing")
    _call(fix, home)
    untouched = untouched and contents(home) == broken

    _title(4, "hermes-doctor fix --apply --yes: back up, repair, check again")
    _call(fix, home, "--apply", "--yes")

    _title(5, "hermes-doctor check: check again")
    check(home=home)
    left = _codes(home)

    _title(6, "hermes-doctor undo --yes: restore the files as they were")
    undone = _call(undo, home, "--yes")
    same = contents(home) == broken

    _title(7, "What happened")
    rest = ", ".join(sorted(left - demo_home.CODES))
    number = len(found & demo_home.CODES)  # in a private folder nobody else can read secrets
    told = [
        (number >= len(demo_home.CODES) - 1, f"check found {number} faults"),
        (untouched, "check and fix changed nothing"),
        (not left & demo_home.CODES, "fix --apply repaired all of them"),
        (undone == 0 and same, "undo restored the broken home byte for byte"),
    ]
    show([row(("✓ ", "good") if good else ("✗ ", "error"), text, hang=2) for good, text in told])
    if rest:
        text = f"not repaired, because the demo has no Hermes to run: {rest}"
        show([row(("· ", "faint"), text, hang=2)])
    return all(good for good, _ in told)


def _call(command: Callable[..., int], home: Path, *options: str) -> int:
    """Call a command as if it was typed, and return its exit code."""
    alone = typer.Typer(add_completion=False)
    alone.command()(command)
    code: int = alone(["--home", str(home), *options], standalone_mode=False)
    if code == exits.INTERRUPTED:  # typer has caught the signal itself
        raise KeyboardInterrupt
    return code


def _codes(home: Path) -> set[str]:
    """The codes of all problems of a home."""
    from hermes_doctor.diagnosis.examination import report as reports
    from hermes_doctor.diagnosis.probes.probes import Probes

    plugins = load_plugins(None)
    report = reports.report(Probes(Home(home)), plugins, plugins.checks)
    return {finding.code for finding in report.findings if finding.severity is not Severity.INFO}


def _title(number: int, text: str) -> None:
    import shutil

    title = f"── {number}. {text} "
    room = min(73, shutil.get_terminal_size().columns - 1) - len(title)
    rule = "─" * room if room > 2 else ""
    show([BLANK, row((title, "strong"), (rule, "faint"), hang=6), BLANK])


def contents(home: Path) -> dict[str, tuple[bytes, int]]:
    """Content and mode of every file in the home, without the tool's own folder."""
    return {
        str(path.relative_to(home)): (path.read_bytes(), path.stat().st_mode)
        for path in sorted(home.rglob("*"))
        if path.is_file() and "backups" not in path.relative_to(home).parts
    }
