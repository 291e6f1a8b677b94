"""Edits of config.yaml and .env, for findings and fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import import_on_first_use

if TYPE_CHECKING:
    from hermes_doctor.hermes.settings.edits import (
        Assign,
        Drop,
        Edit,
        Put,
        Rename,
        ReplaceLine,
        Unset,
    )
else:
    __getattr__, __all__ = import_on_first_use(
        __name__,
        {
            "hermes_doctor.hermes.settings.edits": "Assign Drop Edit Put Rename ReplaceLine Unset",
        },
    )
