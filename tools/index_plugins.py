"""Write the index of the built-in checks and fixes: `make index`."""

from __future__ import annotations

import json
from pathlib import Path

from hermes_doctor.plugins import index
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


def main() -> None:
    """Write both files."""
    for name in KINDS:
        (Path(builtin(name)) / index.INDEX).write_text(made(name), encoding="utf-8")


if __name__ == "__main__":
    main()
