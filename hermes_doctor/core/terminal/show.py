"""Print lines: styled on a terminal, plain into a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO

from hermes_doctor.core.terminal.lines import Line, fit_encoding


def show(lines: Iterable[Line], out: TextIO | None = None) -> None:
    """Print in colour and wrapped on a terminal, plain and unwrapped into a pipe."""
    out = out or sys.stdout
    if out is None:  # closed by the caller
        return
    if out.isatty() and os.environ.get("TERM") != "dumb":
        from hermes_doctor.core.terminal import console

        console.show(lines, out)
        return
    for line in lines:
        print(fit_encoding(line.text, out), file=out)
