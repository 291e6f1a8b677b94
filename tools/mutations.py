"""Change single lines of the engine by chance, and count how many changes the tests notice.

    python -m tools.mutations [--number 20] [--seed 7]

Each change is made in a copy of the last commit, and the tests of that module and of its package
run. If these notice fewer than 17 of 20, the whole suite of `make test` runs for the others. A
change that no test notices is for somebody to judge: it may change nothing that can be seen.
Exit code 1 if fewer than 17 of 20 are noticed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENGINE = "hermes_doctor"
BAR = 17 / 20
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+"}


@dataclass(frozen=True)
class Mutation:
    """One changed line of a module."""

    module: str
    number: int
    before: str
    after: str

    def apply(self, checkout: Path) -> None:
        """Change the line in a checkout."""
        path = checkout / self.module
        lines = path.read_text().splitlines(keepends=True)
        assert lines[self.number - 1] == f"{self.before}\n"
        lines[self.number - 1] = f"{self.after}\n"
        path.write_text("".join(lines))


def main() -> int:
    """Try as many changes as asked for, and print what became of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=20)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(100_000))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    dice = random.Random(options.seed)
    modules = sorted(str(path.relative_to(ROOT)) for path in (ROOT / ENGINE).rglob("*.py"))
    candidates = [mutation for module in modules for mutation in mutations_of(module)]
    left = dice.sample(candidates, options.number)
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        checkout = _copy(Path(folder) / "checkout")
        for whole_suite in (False, True):
            left = [mutation for mutation in left if not _noticed(checkout, mutation, whole_suite)]
            noticed = options.number - len(left)
            print(f"{noticed} of {options.number} were noticed (seed {options.seed})", flush=True)
            if noticed >= BAR * options.number:
                return 0
    return 1


def mutations_of(module: str) -> Iterator[Mutation]:
    """Yield each change of one line that can be made inside the functions of a module."""
    text = (ROOT / module).read_text()
    lines = text.splitlines()
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    seen = set()
    for node in (node for function in functions for node in ast.walk(function)):
        for first, last, replacement in _replacements(node):
            number, start = first
            if last[0] != number:
                continue
            line = lines[number - 1].encode()  # columns of the syntax tree count bytes
            changed = (line[:start] + replacement.encode() + line[last[1] :]).decode()
            mutation = Mutation(module, number, lines[number - 1], changed)
            if changed != lines[number - 1] and mutation not in seen:
                seen.add(mutation)
                yield mutation


Position = tuple[int, int]


def _replacements(node: ast.AST) -> Iterator[tuple[Position, Position, str]]:
    """Yield where a piece of text starts and ends, and what may stand there instead."""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            between = COMPARISONS.get(type(operator))
            if between:
                yield _end(left), _start(right), f" {between} "
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in ARITHMETIC:
            if not isinstance(left, ast.Constant) or not isinstance(left.value, str):
                yield _end(left), _start(right), f" {ARITHMETIC[type(operator)]} "
        case ast.BoolOp(op=operator, values=[left, right]):
            yield _end(left), _start(right), " or " if isinstance(operator, ast.And) else " and "
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield _start(node), _start(operand), ""
        case ast.Constant(value=bool() as value):
            yield _start(node), _end(node), str(not value)
        case ast.Constant(value=int() as value):
            yield _start(node), _end(node), str(value + 1)
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield _start(node), _end(node), "return None"
        case ast.Expr(value=ast.Call()):
            yield _start(node), _end(node), "pass"


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _start(node: ast.expr | ast.stmt) -> Position:
    return node.lineno, node.col_offset


def _end(node: ast.expr | ast.stmt) -> Position:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset


def _copy(checkout: Path) -> Path:
    """Make a copy of the last commit, with the folders beside the checkout that tests read."""
    subprocess.run(["git", "clone", "--quiet", ROOT, checkout], check=True)
    if (ROOT.parent / "shared").exists():
        (checkout.parent / "shared").symlink_to(ROOT.parent / "shared")
    return checkout


def _noticed(checkout: Path, mutation: Mutation, whole_suite: bool) -> bool:
    """Tell whether a test fails with a change, and print which."""
    tests = [] if whole_suite else _tests_near(checkout, mutation.module)
    mutation.apply(checkout)
    try:
        failed = _first_failure(checkout, tests)
    finally:
        subprocess.run(["git", "-C", checkout, "checkout", "--quiet", "."], check=True)
    print(f"{failed or 'NOT NOTICED'}: {mutation.module}:{mutation.number}")
    print(f"  - {mutation.before.strip()}\n  + {mutation.after.strip()}", flush=True)
    return failed is not None


def _tests_near(checkout: Path, module: str) -> list[str]:
    """Return the test file of a module, the one that the table names, and those of its package."""
    inside = Path(module).relative_to(ENGINE).with_suffix("")
    tests = checkout / "tests"
    paths = [tests / inside.parent / f"test_{inside.name}.py"]
    table = [
        line.split() for line in (tests / "data" / "module_tests.txt").read_text().splitlines()
    ]
    paths += [tests / row[1] for row in table if row[:1] == [str(inside)]]
    if inside.parent != Path("."):
        paths.append(tests / inside.parent)
    return [str(path.relative_to(checkout)) for path in paths if path.exists()]


def _first_failure(checkout: Path, tests: list[str]) -> str | None:
    """Return the name of the first of these tests that fails; of all tests if none is named."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "2", "-p", "no:cacheprovider"]
    env = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [*command, *tests], cwd=checkout, env=env, stdin=subprocess.DEVNULL, capture_output=True
    )
    if run.returncode == 0:
        return None
    lines = run.stdout.decode(errors="replace").splitlines()
    failures = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return failures[0].split()[1].split("::")[-1] if failures else "the start of the tests"


if __name__ == "__main__":
    raise SystemExit(main())
