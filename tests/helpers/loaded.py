"""Load all modules of this tool, for a process that is about to become a user who may not read."""

from __future__ import annotations

import contextlib
import encodings
import importlib
import pkgutil

import hermes_doctor
from hermes_doctor.cli import separate_look
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.hermes.knowledge import releases

STANDARD = (
    *("concurrent.futures.thread", "difflib", "dotenv", "dotenv.variables", "getpass", "hashlib"),
    *("http.client", "importlib.metadata", "ipaddress", "plistlib", "pty", "pwd", "rich.console"),
    *("rich.progress", "secrets", "shlex", "sqlite3", "ssl", "subprocess", "tarfile", "tempfile"),
    *("textwrap", "tomllib", "traceback", "urllib.request", "xml.etree.ElementTree", "zipfile"),
    *("zoneinfo", "_strptime", "calendar", "locale", "importlib.resources", "base64", "inspect"),
)


def load_everything() -> None:
    """Import all that functions import, and read the knowledge about releases."""
    separate_look.load_binary()
    tops = [(hermes_doctor, "hermes_doctor."), (encodings, "encodings.")]
    names = [one.name for top, dot in tops for one in pkgutil.walk_packages(top.__path__, dot)]
    for kind in ("checks", "fixes"):
        files = builtin(kind).glob("[!_]*.py")
        names += [f"hermes_doctor.{kind}.{path.stem}" for path in files]
    for name in (*STANDARD, *names):
        if not name.endswith("__main__") and ".lessons" not in name:
            with contextlib.suppress(ImportError, AssertionError):  # some are for Windows
                importlib.import_module(name)
    for path in releases._HERE.rglob("*.json"):
        releases.load_knowledge(str(path.relative_to(releases._HERE).with_suffix("")))
