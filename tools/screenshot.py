"""Create docs/check.svg: the output of `hermes-doctor check` for the demo's damaged home.

python -m tools.screenshot
"""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path

from rich.console import Console

from hermes_doctor.cli import demo_home
from hermes_doctor.examination import runner
from hermes_doctor.home import Home
from hermes_doctor.plugins import load
from hermes_doctor.probes.probes import Probes
from hermes_doctor.render import report as render_report
from hermes_doctor.terminal import console as terminal_console

TARGET = Path(__file__).parent.parent / "docs" / "check.svg"


def main() -> None:
    """Examine a damaged home in a folder that represents the user's own."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        os.chmod(folder, 0o755)
        home = Path(folder) / ".hermes"
        demo_home.make(home)
        loaded = load.load()
        report = runner.report(Probes(Home(home)), loaded, loaded.checks)
        out = io.StringIO()
        console = Console(
            record=True, width=88, file=out, force_terminal=True, color_system="truecolor"
        )
        terminal_console.show(render_report.lines(report), out, console)
    TARGET.write_text(console.export_svg(title="hermes-doctor check", unique_id="check"))
    print(f"wrote {TARGET.name}")


if __name__ == "__main__":
    main()
