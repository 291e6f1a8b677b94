"""Read the index of the built-in checks or fixes, so that only those that are needed are loaded.

`make index` writes one `index.json` for each folder. It has what each file declares, so a check
whose subject is absent and a fix that nobody plans are never imported.

The index is not trusted blindly. A file that is new or whose size differs is imported at once, as
if there were no index, and so is one of which it says that it declares nothing. What a file
declares when it is imported must be what the index says. How many checks and fixes there must be
is known apart from it (`built_in`), so none can disappear unnoticed.
Folders of operators and of other packages have no index.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hermes_doctor.model import Safety
from hermes_doctor.plugins.declare import Check, Fix
from hermes_doctor.plugins.mount import import_plugin
from hermes_doctor.system.files import MEGABYTE

INDEX = "index.json"
_MOST_BYTES = 4 * MEGABYTE
Declared = Mapping[str, Any]
"""The fields of one check or fix, without its function."""


def read(folder: Path, package: str, kind: type[Check] | type[Fix]) -> dict[str, list[Any]]:
    """Return what the unchanged files of a folder declare, by file name; empty without an index."""
    try:
        with (folder / INDEX).open("rb") as file:
            listed = json.loads(file.read(_MOST_BYTES))
        sizes = {one.name: one.stat().st_size for one in os.scandir(folder) if one.name in listed}
        return {
            name: [_made(kind, fields, f"{package}.{name[:-3]}") for fields in one["declares"]]
            for name, one in listed.items()
            if sizes.get(name) == one["size"] and one["declares"]
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _made(kind: type[Check] | type[Fix], fields: Declared, module: str) -> Check | Fix:
    """Return the check or the fix; its function imports the file when it is called."""
    function = _later(kind, fields, module)
    made: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }
    if kind is Check:
        return Check(**made, look=function)
    return Fix(**{**made, "safety": Safety(made["safety"])}, plan=function)


def _later(
    kind: type[Check] | type[Fix], fields: Declared, module: str
) -> Callable[..., Iterable[Any]]:
    def call(*given: Any) -> Iterable[Any]:
        file = import_plugin(module, patient=True)
        for one in vars(file).values():
            if isinstance(one, kind) and one.id == fields["id"]:
                if declared(one) != fields:
                    break
                function = one.look if isinstance(one, Check) else one.plan
                return function(*given)
        raise ImportError(f"{INDEX} does not fit {file.__name__}; run `make index`", name=module)

    return call


def declared(one: Check | Fix) -> Declared:
    """Return the fields of a check or fix as the index has them."""
    fields = one._asdict()
    del fields["look" if isinstance(one, Check) else "plan"]
    return {
        name: list(value)
        if isinstance(value, tuple)
        else value.value
        if isinstance(value, Safety)
        else value
        for name, value in fields.items()
    }
