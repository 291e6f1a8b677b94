"""The index of the built-in checks or fixes, so that only those that are needed are imported.

It has what each file declares, so a check whose subject is absent and a fix that nobody plans are
never imported.

The index is not trusted blindly. A file that is new or whose size differs is imported at once, as
if there were no index, and so is one of which it says that it declares nothing. What a file
declares when it is imported must be what the index says. It also has the number of checks or fixes,
so none can disappear unnoticed. Folders of operators and of other packages have no index.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from hermes_doctor.core.model import Safety
from hermes_doctor.diagnosis.plugins import built_in
from hermes_doctor.diagnosis.plugins.declare import Check, Fix
from hermes_doctor.diagnosis.plugins.mount import import_plugin, mount

FOLDERS: dict[type[Check] | type[Fix], str] = {Check: "checks", Fix: "fixes"}
Declared = Mapping[str, Any]
"""The fields of one check or fix, without its function."""
T = TypeVar("T", Check, Fix)


def read(kind: type[T]) -> tuple[int, dict[str, list[T]]] | None:
    """Return how many built-in checks or fixes there are, and those of each unchanged file.

    None without an index that can be read.
    """
    name = FOLDERS[kind]
    content = built_in.computed(f"{name}.json", lambda: {f"{name}.json": compute(kind)})
    if content is None:
        return None
    return parse(content, kind, built_in.builtin(name), f"hermes_doctor.{name}")


def parse(
    content: bytes, kind: type[T], folder: Path, package: str
) -> tuple[int, dict[str, list[T]]] | None:
    """Return what the index says about files that have the size in it; None if it is damaged."""
    try:
        listed = json.loads(content)
        with os.scandir(folder) as entries:
            sizes = {
                entry.name: entry.stat().st_size
                for entry in entries
                if entry.name in listed["files"]
            }
        files = {
            name: [
                _declared_as(kind, fields, f"{package}.{name[:-3]}") for fields in one["declares"]
            ]
            for name, one in listed["files"].items()
            if sizes.get(name) == one["size"] and one["declares"]
        }
        return int(listed["number"]), files
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _declared_as(kind: type[T], fields: Declared, module: str) -> Any:
    """Return the check or the fix; its function imports the file when it is called."""
    function = _later(kind, fields, module)
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }
    if kind is Check:
        return Check(**values, look=function)
    return Fix(**{**values, "safety": Safety(values["safety"])}, plan=function)


def _later(kind: type[T], fields: Declared, module: str) -> Callable[..., Iterable[Any]]:
    def call(*arguments: Any) -> Iterable[Any]:
        file = import_plugin(module, patient=True)
        for item in declared_in(file, kind):
            if item.id == fields["id"] and _matches(item, fields):
                return (item.look if isinstance(item, Check) else item.plan)(*arguments)
        raise ImportError(f"the index does not fit {module}; reinstall", name=module)

    return call


def _matches(item: Check | Fix, fields: Declared) -> bool:
    """Whether a file declares what the index says; in a checkout, the file is right."""
    if declared_fields(item) == fields:
        return True
    if built_in.is_checkout():  # it declares a value of another file, which was changed
        built_in.forget(f"{FOLDERS[type(item)]}.json")
        return True
    return False


def compute(kind: type[Check] | type[Fix]) -> str:
    """Return the index of the built-in checks or fixes, for which all files are imported.

    A file that cannot be imported is left out, so each start tries it and says what is wrong.
    """
    name = FOLDERS[kind]
    folder, package = built_in.builtin(name), f"hermes_doctor.{name}"
    mount(folder, package)
    files: dict[str, Any] = {}
    for path in sorted(folder.glob("[!_]*.py")):
        try:
            file = import_plugin(f"{package}.{path.stem}", patient=True)
        except BaseException as error:  # it may also try to end this process
            if isinstance(error, KeyboardInterrupt):
                raise
            continue
        declares = [declared_fields(item) for item in declared_in(file, kind)]
        files[path.name] = {"size": path.stat().st_size, "declares": declares}
    number = sum(len(kept_file["declares"]) for kept_file in files.values())
    return json.dumps({"number": number, "files": files}, indent=1) + "\n"


def declared_in(file: object, kind: type[Any]) -> list[Any]:
    """Return the checks or fixes that an imported file declares."""
    return [value for value in vars(file).values() if isinstance(value, kind)]


def declared_fields(item: Check | Fix) -> Declared:
    """Return the fields of a check or fix as the index has them."""
    fields = item._asdict()
    del fields["look" if isinstance(item, Check) else "plan"]
    return {
        name: list(value)
        if isinstance(value, tuple)
        else value.value
        if isinstance(value, Safety)
        else value
        for name, value in fields.items()
    }
