"""Contracts over all plugins, pages and commands at once."""

from __future__ import annotations

import ast
import configparser
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.model import Safety
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_rules.folder import Folder
from tests.helpers import support
from tests.helpers.each import each
from tests.helpers.provider_mistakes import MISTAKES

ROOT = Path(__file__).parents[2]
LOADED = load.load()
CODES = sorted({code for check in LOADED.checks for code in check.codes})
PLUGIN_FILES = sorted([*(ROOT / "checks").glob("[!_]*.py"), *(ROOT / "fixes").glob("[!_]*.py")])
HEADINGS = ["## What it is", "## How it shows", "## What the fix does", "## By hand"]
COMMANDS = {
    "check": [],
    "ask": [],
    "fix": [],
    "undo": [],
    "switch-provider": [],
    "hook": ["install", "remove", "run", "status"],
    "rollback": [],
    "update-guard": [],
    "timeline": [],
    "backup": [
        "create",
        "export",
        "list",
        "prune",
        "pull",
        "push",
        "restore",
        "schedule",
        "verify",
    ],
    "watch": ["install", "status", "remove"],
    "history": ["prune"],
    "config": [],
    "explain": [],
    "list": [],
    "demo": [],
    "learn": [],
    "mute": [],
    "unmute": [],
    "mutes": [],
    "settings": [],
    "probe": [],
}


def test_everything_loads() -> None:
    """No built-in plugin is broken, and every file holds at least one."""
    assert LOADED.broken == ()
    assert len(LOADED.checks) + len(LOADED.fixes) >= len(PLUGIN_FILES)


@each(CODES)
def test_page(code: str) -> None:
    """Every code that a check declares has its page with the fixed headings, each with words."""
    text = (ROOT / "docs" / "failures" / f"{code}.md").read_text(encoding="utf-8")

    assert re.match(rf"# {code}: \S.*\n", text)
    assert [line for line in text.splitlines() if line.startswith("## ")] == HEADINGS
    parts = re.split(r"^## .*$", text, flags=re.MULTILINE)[1:]
    assert all(part.strip() for part in parts)
    assert max(map(len, text.splitlines())) <= 100


def test_no_page_without_a_code() -> None:
    """A page of a code that no check declares is a leftover."""
    assert sorted(page.stem for page in (ROOT / "docs" / "failures").glob("*.md")) == CODES


def test_fixes_are_on_the_page() -> None:
    """The page of a code names each of its fixes."""
    for fix in LOADED.fixes:
        for code in fix.codes:
            assert f"`{fix.id}`" in (ROOT / "docs" / "failures" / f"{code}.md").read_text()


def test_ids_are_unique() -> None:
    """Checks, fixes, and the words that select them do not collide.

    A check may be named after a code of its own, which other checks find as well.
    """
    checks = [check.id for check in LOADED.checks]
    fixes = [fix.id for fix in LOADED.fixes]
    groups = {check.group for check in LOADED.checks}

    assert len(set(checks)) == len(checks)
    assert len(set(fixes)) == len(fixes)
    assert not groups & set(checks)
    for check in LOADED.checks:
        for other in LOADED.checks:
            if other is not check:
                words = {check.id, *groups} - {code.lower() for code in check.codes}
                assert not {code.lower() for code in other.codes} & words


def test_fix_codes_are_declared() -> None:
    """Every code of a fix is declared by some check."""
    assert {code for fix in LOADED.fixes for code in fix.codes} <= set(CODES)


def test_questions_and_titles() -> None:
    """A check asks a question; a fix says what it does; both fit a line."""
    for check in LOADED.checks:
        assert check.question.endswith("?"), check.id
        assert len(check.question) <= 90
    for fix in LOADED.fixes:
        assert fix.title.endswith("."), fix.id


def values(node: ast.expr) -> Iterator[str]:
    """The texts that an expression can be, a condition left out."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from values(node.body)
        yield from values(node.orelse)


def named_fixes() -> dict[str, set[str]]:
    """Every fix id that findings can carry, with all the words of the check files that say so."""
    ids = {fix.id for fix in LOADED.fixes}
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "checks").glob("*.py")):
        tree = ast.parse(path.read_text())
        said = {text for _, text in strings(path)}
        promised = {
            id
            for node in ast.walk(tree)
            if isinstance(node, ast.keyword) and node.arg == "fix"
            for id in values(node.value)
        }
        for id in promised | (said & ids):
            found.setdefault(id, set()).update(said)
    for rule in LOADED.rules:
        if rule.fix:
            found.setdefault(rule.fix, set()).add(rule.code)
    for cause in Folder(builtin("checks") / "signatures", ours=True).tables.causes:
        if cause.fix:
            found.setdefault(cause.fix, set()).update((cause.code, *cause.by_part.values()))
    for fix in LOADED.fixes:
        if fix.then:
            found.setdefault(fix.then, set()).update(fix.codes)
    return found


def test_promised_fixes_exist() -> None:
    """Every fix that a finding names exists, and is for codes of the checks that name it."""
    promised = named_fixes()
    assert promised
    for id, said in promised.items():
        fix = LOADED.fix(id)
        assert fix is not None, f"a check promises {id}"
        assert set(fix.codes) <= said, id


def test_every_fix_is_promised() -> None:
    """A fix that no finding names could never run."""
    assert {fix.id for fix in LOADED.fixes} == set(named_fixes())


def test_what_comes_next() -> None:
    """A fix that goes on with another one names one that is there, and that asks no less.

    A fix that gives up data follows only for codes that can mean the loss of the whole database.
    """
    ranks = list(Safety)
    for fix in LOADED.fixes:
        if fix.then is not None:
            after = LOADED.fix(fix.then)
            assert after is not None
            shared = set(fix.codes) & set(after.codes)
            assert shared if after.gives_up_data else shared == set(fix.codes)
            assert ranks.index(after.safety) >= ranks.index(fix.safety)


def imported(path: Path) -> set[str]:
    """The modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." * node.level + (node.module or ""))
    return found


ALLOWED = {"checks": frozenset[str](), "fixes": frozenset({"sqlite_utils"})}
"""Beside the standard library and the API: what the tool depends on and only fixes may load."""


@each(PLUGIN_FILES)
def test_imports(path: Path) -> None:
    """Checks and fixes import from hermes_doctor.api only: what they can do, everybody can."""
    for module in imported(path):
        top = module.partition(".")[0]
        assert (
            module.startswith("hermes_doctor.api")
            or top in sys.stdlib_module_names
            or top in ALLOWED[path.parent.name]
        ), f"{path.name} imports {module}"


VERBS = {"reset-failed", "enable-linger"}
"""What `systemctl` and `loginctl` call so themselves, and the engine asks them for."""
ENGINE = sorted(
    path
    for path in (ROOT / "hermes_doctor").rglob("*.py")
    if path.name != "demo_home.py" and path.parent.name != "api"
)


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Names and strings of a module, without its docstrings (they may give examples)."""
    tree = ast.parse(path.read_text())
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


@each(ENGINE)
def test_engine_names_no_plugin(path: Path) -> None:
    """The engine names no check, no fix and no code; examples of a command's help may."""
    words = {check.id for check in LOADED.checks} | {fix.id for fix in LOADED.fixes} | set(CODES)
    words -= VERBS | {"log-rules"}  # a folder of rules is a check that the engine itself makes
    for line, text in strings(path):
        if "Examples:" in text:
            continue
        named = words.intersection(re.findall(r"[\w-]+", text))
        assert not named, f"{path.name}:{line} names {named}"


def test_engine_imports_no_plugin() -> None:
    """Nor does it import one by name."""
    for path in (*ENGINE, ROOT / "hermes_doctor" / "cli" / "demo_home.py"):
        tops = {module.partition(".")[0] for module in imported(path)}
        assert not tops & {"checks", "fixes"}


def test_renderers_know_no_home() -> None:
    """Renderers see a report: they import neither probes nor plugins nor the home."""
    for path in (ROOT / "hermes_doctor" / "render").glob("*.py"):
        for module in imported(path):
            assert not module.startswith(
                (
                    "hermes_doctor.diagnosis.probes",
                    "hermes_doctor.diagnosis.plugins",
                    "hermes_doctor.core.home",
                )
            ), f"{path.name} imports {module}"


@each([path for path in PLUGIN_FILES if path.parent.name == "checks"])
def test_every_check_has_its_tests(path: Path) -> None:
    """Tests of each check name it; mistakes about providers have one file for all of them."""
    shared = {mistake.code for mistake in MISTAKES.values()}
    tests = "".join(tests.read_text() for tests in (ROOT / "tests" / "checks").glob("test_*.py"))
    for check in LOADED.checks:
        if f'id="{check.id}"' in path.read_text() and not set(check.codes) <= shared:
            own = ROOT / "tests" / "checks" / f"test_{check.id.replace('-', '_')}.py"
            assert own.is_file() or f'"{check.id}"' in tests, check.id


def test_every_test_says_what_it_proves() -> None:
    """A docstring on every test."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                assert ast.get_docstring(node), f"{path.name}: {node.name}"


# -- commands and documents ------------------------------------------------------------------------


def calls() -> list[list[str]]:
    """Every command with its subcommands."""
    return [[name, *sub] for name, subs in COMMANDS.items() for sub in ([], *([s] for s in subs))]


def test_commands_are_all_known_here() -> None:
    """The lists above are what the command line has."""
    from typer.main import get_command

    from hermes_doctor.cli.commands import app

    group = get_command(app)
    found = {
        name: sorted(getattr(command, "commands", {}))
        for name, command in group.commands.items()  # type: ignore[attr-defined]
    }

    assert found == {name: sorted(subs) for name, subs in COMMANDS.items()}


@pytest.mark.parametrize("call", [[], *calls()], ids=lambda call: " ".join(call) or "hermes-doctor")
def test_help(call: list[str]) -> None:
    """--help exits 0, fits 80 columns, and shows examples or exit codes."""
    done = support.doctor(*call, "--help", env={"COLUMNS": "80"})

    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80
    assert "Usage: " in done.out
    assert re.search(r"Examples?:|Exit codes:|Start here:", done.out), "no examples, no exit codes"


@pytest.mark.parametrize("name", ["check", "fix", "undo", "watch"])
def test_exit_codes_are_in_the_help(name: str) -> None:
    """They are part of the contract."""
    text = " ".join(support.doctor(name, "--help").out.split())

    assert "Exit codes:" in text
    for code in "012":
        assert re.search(rf"\b{code}\b", text.partition("Exit codes:")[2])


def test_readme() -> None:
    """README names every command and the exit codes."""
    text = (ROOT / "README.md").read_text()

    for call in calls():
        name = call[-1] if len(call) > 1 else call[0]
        assert re.search(rf"`[^`]*\b{name}\b[^`]*`", text), f"README does not name {' '.join(call)}"
    for number in (0, 1, 2, 130):
        assert re.search(rf"^\| {number} \|", text, re.MULTILINE)


def test_readme_links() -> None:
    """Every local link of the documents leads to an existing file."""
    for document in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_architecture() -> None:
    """ARCHITECTURE.md shows rooms and packages in the order of the contracts, and real files."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    pictures = text.split("```\n")[1::2]
    for name in contracts.sections():
        if "layers" not in contracts[name]:
            continue
        room = contracts[name]["containers"].removeprefix("hermes_doctor").strip(".")
        picture = pictures[0]
        if room:
            picture = f"\n{pictures[1]}".partition(f"\n{room}\n")[2].partition("\n\n")[0]
        layers = contracts[name]["layers"].replace("|", " ").split()
        shown = [line.partition("  ")[0].replace("|", " ").split() for line in lines_of(picture)]
        assert [one for line in shown for one in line] == layers, f"{name}, from the highest"
    assert text.startswith(f"# Architecture\n\n```\n{pictures[0]}"), "the rooms come first"
    for name in re.findall(r"`([a-z_/]+\.py)`", text):
        assert (ROOT / "hermes_doctor" / name).exists(), name


def lines_of(picture: str) -> list[str]:
    """The lines of a picture that begin with a name, without those that go on."""
    lines = [line.removeprefix("    ") for line in picture.splitlines()]
    return [line for line in lines if line and not line.startswith(" ")]


def test_list_agrees(home: Path) -> None:
    """`list` shows every check, code and fix, and the titles of the pages."""
    for kind, names in (
        ("checks", [check.id for check in LOADED.checks]),
        ("codes", CODES),
        ("fixes", [fix.id for fix in LOADED.fixes]),
    ):
        done = support.doctor("list", kind)
        assert done.code == 0
        assert [line.split()[0] for line in done.out.splitlines()] == names
        listed = support.doctor("list", kind, "--json").json
        assert (listed["schema"], listed["kind"]) == ("hermes-doctor/list/1", kind)
        assert [next(iter(item.values())) for item in listed["items"]] == names


@pytest.mark.sampled(one_of=6)
@pytest.mark.parametrize("code", CODES)
def test_explain(code: str) -> None:
    """`explain` prints the page, in any case of the letters."""
    page = (ROOT / "docs" / "failures" / f"{code}.md").read_text()

    done = support.doctor("explain", code.lower())

    assert (done.code, done.out) == (0, page)


def test_version() -> None:
    """The version is the package's."""
    from hermes_doctor import __version__

    assert support.doctor("--version").out == f"hermes-doctor {__version__}\n"
