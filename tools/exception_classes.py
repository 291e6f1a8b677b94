"""List the exception classes of a release's libraries that no cause names.

    python -m tools.exception_classes 0.19.0               all libraries below
    python -m tools.exception_classes 0.19.0 httpx aiohttp some of them

Some classes say nothing about a cause, such as those of wrong arguments; they are for a person to
judge. The list shows what to look at after Hermes has got a new library or a new release of one.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hermes_doctor.diagnosis.plugins.log_causes import table_source
from tools import releases

SIGNATURES = Path(__file__).parents[1] / "checks" / "signatures"
LIBRARIES = (
    "httpx", "httpcore", "aiohttp", "requests", "urllib3", "websockets", "anyio", "discord",
    "telegram", "slack_sdk", "slack_bolt", "mautrix", "lark_oapi", "aiosmtplib", "aioimaplib",
    "botocore", "docker", "openai", "anthropic", "yaml", "mcp", "socksio", "python_socks",
    "aiohttp_socks", "dingtalk_stream", "PIL", "tenacity",
)  # fmt: skip
"""The packages whose errors get into the logs of Hermes; a release has some of them."""
BUILT_IN = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
)


def main() -> int:
    """Print the classes of each library."""
    parser = argparse.ArgumentParser(description="List exception classes that no cause names.")
    parser.add_argument("version", help="a release on the package index")
    parser.add_argument("library", nargs="*", default=LIBRARIES)
    given = parser.parse_args()
    known = named_classes()
    [packages] = releases.python_of(given.version).parents[1].glob("lib/python3*/site-packages")
    for library in given.library:
        files = sorted((packages / library).rglob("*.py"))
        if files and (unnamed := sorted(classes_of(map(sources, files)) - known)):
            print(f"{library}: {' '.join(unnamed)}")
    return 0


def named_classes() -> set[str]:
    """Return the exception classes that the built-in causes name."""
    return {
        name
        for _, signs in table_source.read_causes(SIGNATURES).causes
        for name in signs.exceptions
    }


def sources(path: Path) -> str:
    """Return the source of a module."""
    return path.read_text(encoding="utf-8", errors="replace")


def classes_of(modules: Iterable[str]) -> set[str]:
    """Return the names of all exception classes in some sources, without warnings."""
    bases: dict[str, set[str]] = {}
    for text in modules:
        for name, parents in _classes(text):
            bases.setdefault(name, set()).update(parents)
    return {
        name
        for name in bases
        if _is_exception(name, bases, frozenset()) and not name.endswith("Warning")
    }


def _classes(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each class of a module with the names of its bases."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return  # a template, or for another Python
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, [ast.unparse(one).rpartition(".")[2] for one in node.bases]


def _is_exception(name: str, bases: Mapping[str, set[str]], seen: frozenset[str]) -> bool:
    if name in seen:
        return False
    return any(
        one in BUILT_IN or _is_exception(one, bases, seen | {name}) for one in bases.get(name, ())
    )


if __name__ == "__main__":
    sys.exit(main())
