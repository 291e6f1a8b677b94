"""Write the screenshot in README.md: `hermes-doctor check` on the demo's broken home.

python -m tools.screenshot            write it: `make screenshot`
python -m tools.screenshot --print    print it and write nothing
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from hermes_doctor.cli import demo_home
from hermes_doctor.core.home import Home
from hermes_doctor.core.terminal import console as terminal_console
from hermes_doctor.diagnosis.examination import report as reports
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.render import report as render_report

README = Path(__file__).parent.parent / "README.md"
START = "```console\n$ hermes-doctor check\n"
END = "```\n"
COLUMNS = 80
_TIMES = (
    (re.compile(r"\b\d\d:\d\d\b"), "04:13"),
    (re.compile(r"\b\d+(?:\.\d+)? s\b"), "1 s"),
)
"""What differs from run to run, and what is shown instead."""


def take() -> str:
    """Examine the demo's home as an ordinary user would see it, and return the screen.

    This replaces the environment of the process, so that neither a proxy nor a Hermes on the PATH
    of this machine can be seen in the picture.
    """
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # other users must be able to read it
        os.environ.clear()
        os.environ |= {"HOME": folder, "PATH": os.defpath, "LANG": "C.UTF-8"}
        os.chmod(folder, 0o755)
        home = Path(folder) / ".hermes"
        demo_home.make(home)
        plugins = load.load()
        report = reports.report(Probes(Home(home)), plugins, plugins.checks)
        out = io.StringIO()
        console = Console(file=out, width=COLUMNS, color_system=None)
        terminal_console.show(render_report.lines(report), out, console)
    shown = "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())
    for pattern, instead in _TIMES:
        shown = pattern.sub(instead, shown)
    return shown


def split(text: str) -> tuple[str, str, str]:
    """Return what is before the screenshot of a README, the screenshot, and what is after it."""
    before, start, rest = text.partition(START)
    shown, end, after = rest.partition(END)
    if not start or not end:
        raise SystemExit(f"{README.name} has no block that starts with {START!r}")
    return before + start, shown, end + after


def main() -> None:
    """Write the screenshot into README.md, or print it."""
    shown = take()
    if "--print" in sys.argv[1:]:
        print(shown, end="")
        return
    before, _, after = split(README.read_text(encoding="utf-8"))
    README.write_text(before + shown + after, encoding="utf-8")
    print(f"wrote the screenshot in {README.name}")


if __name__ == "__main__":
    main()
