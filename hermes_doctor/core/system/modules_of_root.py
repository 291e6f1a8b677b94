"""Let a process that may not read this tool import its modules: root sends their code.

Only modules of this tool, of Python's library and of the packages that this tool needs are sent,
as they are installed for root. Modules that are no Python code have to be loaded before.
"""

from __future__ import annotations

import base64
import importlib.util
import marshal
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

from hermes_doctor.core.system import root_parent

PACKAGES = frozenset(
    (
        *("hermes_doctor", "dotenv", "psutil", "yaml", "rich", "typer", "click", "markdown_it"),
        *("mdurl", "pygments", "shellingham", "sqlite_utils", "typing_extensions", "annotated_doc"),
    )
)
"""Apart from Python's library."""


def send(name: str) -> dict[str, Any] | None:
    """Return the code of a module, for the process that asked root; None if it has none."""
    top = name.partition(".")[0]
    if top not in PACKAGES and top not in sys.stdlib_module_names:
        return None
    try:
        spec = importlib.util.find_spec(name)
        code = spec.loader.get_code(name) if spec and hasattr(spec.loader, "get_code") else None  # type: ignore[union-attr]
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None or code is None:
        return None
    folders = spec.submodule_search_locations
    return {
        "code": base64.b64encode(marshal.dumps(code)).decode(),
        "file": spec.origin,
        "folders": None if folders is None else [*folders],
    }


class SentCode:
    """An import loader that executes the code which root has sent."""

    def __init__(self, code: CodeType) -> None:
        self._code = code

    def create_module(self, _: ModuleSpec) -> ModuleType | None:
        """Let Python create the module in the default way."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Execute the code in the module."""
        exec(self._code, vars(module))


class Finder:
    """Finds modules by asking root."""

    @staticmethod
    def find_spec(
        name: str, _: Sequence[str] | None, __: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that root sends; None leaves the search to Python."""
        if name in sys.builtin_module_names or os.getpid() != _asking:
            return None  # a copy of the process has no line of its own
        sent = root_parent.ask_root("module", name)
        if not sent:
            return None
        loader = SentCode(marshal.loads(base64.b64decode(sent["code"])))
        spec = ModuleSpec(name, loader, origin=sent["file"])  # type: ignore[arg-type]
        spec.has_location = bool(sent["file"])
        spec.submodule_search_locations = sent["folders"]
        return spec


_asking = 0
"""The process that asks root for modules."""


def install() -> None:
    """Ask root for every module from now on; for the separate process only."""
    global _asking
    _asking = os.getpid()
    sys.meta_path.insert(0, Finder)


def is_asking() -> bool:
    """Whether this process cannot read the tool, so that its copies need all modules loaded."""
    return os.getpid() == _asking


_UNUSED = (
    *("_asyncio", "_crypt", "_curses", "_test", "_tkinter", "_xx", "audioop", "nis"),
    *("ossaudiodev", "readline", "spwd", "xx"),
)
"""How those begin that this tool does not need; some are large or will leave Python."""


def load_binary() -> None:
    """Load the modules of Python's library that are no Python code, before root is left."""
    import contextlib

    folders = [one for one in sys.path if one.endswith("/lib-dynload") and os.path.isdir(one)]
    names = {file.partition(".")[0] for folder in folders for file in os.listdir(folder)}
    for name in sorted(names):
        if not name.startswith(_UNUSED):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    for name in ("psutil", "yaml"):  # they have a part in C
        importlib.import_module(name)
