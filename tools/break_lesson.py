"""Run by tools/learn_breaks.py inside a release: platforms that it cannot start as it is packed.

Two things break a platform for everybody: an adapter that does not take an argument which the
gateway calls it with, and a plugin without the manifest by which it is found.
"""

import ast
import json
import sys
from importlib.util import find_spec
from pathlib import Path

spec = find_spec("gateway")
assert spec is not None
assert spec.origin is not None
ROOT = Path(spec.origin).parent.parent


def passed() -> set[str]:
    """The arguments that the gateway connects adapters with."""
    tree = ast.parse((ROOT / "gateway/run.py").read_text())
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            named = isinstance(node.func.value, ast.Name) and node.func.value.id == "adapter"
            if node.func.attr == "connect" and named:
                found |= {word.arg for word in node.keywords if word.arg}
    return found


def lacking(path: Path, wanted: set[str]) -> set[str]:
    """The arguments that an adapter of this file does not take."""
    lost: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ClassDef) or not node.name.endswith("Adapter"):
            continue
        if node.name == "BasePlatformAdapter":
            continue
        for inner in node.body:
            if isinstance(inner, ast.AsyncFunctionDef) and inner.name == "connect":
                taken = {one.arg for one in (*inner.args.args, *inner.args.kwonlyargs)}
                lost |= set() if inner.args.kwarg else wanted - taken
    return lost


def platform(path: Path) -> str:
    """The platform of an adapter's file."""
    if path.parent.name == "platforms":
        return path.stem
    part = path.stem.removesuffix("adapter").strip("_")
    return f"{path.parent.name}_{part}" if part else path.parent.name


found = {}
wanted = passed()
places = [*ROOT.glob("gateway/platforms/*.py"), *ROOT.glob("gateway/platforms/*/adapter.py")]
for path in sorted([*places, *ROOT.glob("plugins/platforms/*/*adapter.py")]):
    for word in sorted(lacking(path, wanted)):
        found[platform(path)] = {"file": str(path.relative_to(ROOT)), "lacks": word}
for path in sorted(ROOT.glob("plugins/platforms/*/adapter.py")):
    names = ("plugin.yaml", "plugin.yml")
    if not any((path.parent / name).exists() for name in names):
        missing = path.parent.relative_to(ROOT) / names[0]
        found[platform(path)] = {"file": str(missing), "lacks": "the manifest"}
sys.stdout.write("\n" + json.dumps(found) + "\n")
