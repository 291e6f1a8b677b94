"""Find the folders that hold one page per code, without loading a check."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from hermes_doctor.core.system.accounts import why_untrusted
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.mount import installed_folders


def page_folders(folders: Sequence[Path]) -> list[Path]:
    """Return the built-in folder, those of installed packages and those of the operator."""
    with redirect_stdout(sys.stderr):  # what a package prints is not part of our output
        roots = [folder for _, folder in installed_folders([])]
    roots += [folder for folder in folders if why_untrusted(folder) is None]
    paths = [builtin("docs/failures"), *(root / "docs" / "failures" for root in roots)]
    return [folder for folder in paths if folder.is_dir()]
