"""Every module of the engine has a test file of its own, or a named one that covers it."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.diagnosis.plugins import load
from tests.helpers.each import each

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "hermes_doctor"
TABLE = ROOT / "tests" / "data" / "module_tests.txt"
MODULES = sorted(
    str(path.relative_to(ENGINE).with_suffix(""))
    for path in ENGINE.rglob("*.py")
    if path.name != "__init__.py"
)
FIXES = {fix.id for fix in load.load().fixes}
CHECKS = {fix.id for fix in load.load().checks}
LIMIT = 400
LONG = {"core/system/disk"} | {
    "diagnosis/examination/verdict",
    "core/model",
    "diagnosis/plugins/log_rules/source",
    "backup/records/journal",
    "render/repair",
}
"""The one door for writes may be longer; the others are slightly too long and will be split."""


def own_test(module: str) -> Path:
    """Where the test file of a module is."""
    path = Path(module)
    return ROOT / "tests" / path.parent / f"test_{path.name}.py"


def table() -> dict[str, str]:
    """The covering test of each module without its own."""
    lines = TABLE.read_text().splitlines()
    pairs = (line.split() for line in lines if not line.startswith("#"))
    return {pair[0]: pair[1] for pair in pairs}


def test_every_module_is_covered() -> None:
    """A new module needs a test file at the mirrored path, or a line in the table."""
    missing = {module for module in MODULES if not own_test(module).is_file()}

    assert missing - table().keys() == set(), "add a test file, or a line in the table"
    assert table().keys() - missing == set(), "these have a test of their own, or are gone"


@each(sorted(set(table().values())))
def test_the_covering_tests_exist(test: str) -> None:
    """A test that was renamed or removed covers nothing."""
    text = (ROOT / "tests" / test).read_text()

    assert "\ndef test_" in text or "    def test_" in text


def test_no_module_is_long() -> None:
    """A module that needs more lines has more than one job."""
    lengths = {
        module: len((ENGINE / f"{module}.py").read_text().splitlines()) for module in MODULES
    }

    assert {m: n for m, n in lengths.items() if n > LIMIT and m not in LONG} == {}


def test_a_test_file_belongs_to_a_module() -> None:
    """Tests of more than one module are in `tests/scenarios`; those of pages in `tests/docs`.

    The tests of a check or a fix are named after its id.
    """
    alone = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        folder, name = path.relative_to(ROOT / "tests").parent, path.stem.removeprefix("test_")
        if folder.parts[:1] in (("scenarios",), ("real",), ("docs",), ("data",)):
            continue
        if folder.parts[:1] == ("fixes",):
            there = name.replace("_", "-") in FIXES
        elif folder.parts[:1] == ("checks",):
            there = name.replace("_", "-") in CHECKS
        else:
            there = (ENGINE / folder / f"{name}.py").is_file()
        if not there:
            alone.append(str(path.relative_to(ROOT)))

    assert alone == []
