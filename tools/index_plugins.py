"""Write the index of the built-in checks and fixes, and their numbers: `make index`."""

from __future__ import annotations

import json
from pathlib import Path

from hermes_doctor.plugins import built_in, index
from hermes_doctor.plugins.declare import Check, Fix
from hermes_doctor.plugins.load import builtin
from hermes_doctor.plugins.mount import import_plugin, mount

KINDS: dict[str, type[Check] | type[Fix]] = {"checks": Check, "fixes": Fix}


def made(name: str) -> str:
    """Return the index of the folder `checks` or `fixes` as it should be."""
    folder, kind, package = builtin(name), KINDS[name], f"hermes_doctor.{name}"
    mount(folder, package)
    found = {}
    for path in sorted(folder.glob("[!_]*.py")):
        things = vars(import_plugin(f"{package}.{path.stem}", patient=True)).values()
        declares = [index.declared(one) for one in things if isinstance(one, kind)]
        found[path.name] = {"size": path.stat().st_size, "declares": declares}
    lines = [f"{json.dumps(file)}: {json.dumps(one)}" for file, one in found.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def numbers() -> str:
    """Return the module with the numbers of checks and fixes as it should be."""
    head = Path(built_in.__file__).read_text(encoding="utf-8").partition("\n\n")[0]
    found = {
        name: sum(len(one["declares"]) for one in json.loads(made(name)).values()) for name in KINDS
    }
    return f"{head}\n\n" + "".join(f"{name.upper()} = {n}\n" for name, n in found.items())


def main() -> None:
    """Write the files."""
    for name in KINDS:
        (Path(builtin(name)) / index.INDEX).write_text(made(name), encoding="utf-8")
    Path(built_in.__file__).write_text(numbers(), encoding="utf-8")


if __name__ == "__main__":
    main()
