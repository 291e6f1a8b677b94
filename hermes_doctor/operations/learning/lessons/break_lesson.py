"""Report from inside a release which platforms it cannot start as packaged.

Two things break a platform for all users: an adapter that does not accept an argument that the
gateway passes, and a plugin without its manifest.
"""

import ast
import json
import sys
from importlib.util import find_spec
from pathlib import Path


def passed(root: Path) -> set[str]:
    """Return the arguments with which the gateway connects adapters."""
    tree = ast.parse((root / "gateway/run.py").read_text())
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            named = isinstance(node.func.value, ast.Name) and node.func.value.id == "adapter"
            if node.func.attr == "connect" and named:
                found |= {word.arg for word in node.keywords if word.arg}
    return found


def lacking(path: Path, wanted: set[str]) -> set[str]:
    """Return the arguments that an adapter in this file does not accept."""
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
    if path.parent.name == "platforms":
        return path.stem
    part = path.stem.removesuffix("adapter").strip("_")
    return f"{path.parent.name}_{part}" if part else path.parent.name


def main() -> None:
    spec = find_spec("gateway")
    assert spec is not None
    assert spec.origin is not None
    root = Path(spec.origin).parent.parent
    found = {}
    wanted = passed(root)
    places = [*root.glob("gateway/platforms/*.py"), *root.glob("gateway/platforms/*/adapter.py")]
    for path in sorted([*places, *root.glob("plugins/platforms/*/*adapter.py")]):
        for word in sorted(lacking(path, wanted)):
            found[platform(path)] = {"file": str(path.relative_to(root)), "lacks": word}
    for path in sorted(root.glob("plugins/platforms/*/adapter.py")):
        names = ("plugin.yaml", "plugin.yml")
        if not any((path.parent / name).exists() for name in names):
            missing = path.parent.relative_to(root) / names[0]
            found[platform(path)] = {"file": str(missing), "lacks": "the manifest"}
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
