"""Every fix cures what it is for, does nothing the second time, and its undo restores the bytes."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from hermes_doctor.diagnosis.plugins import load
from tests.helpers import fix_contract, requirements
from tests.helpers.fix_contract import Planted, ProvedBy

TESTS = Path(__file__).parents[1]
FIXES = [fix.id for fix in load.load().fixes]
DECLARED = {fix: vars(fix_contract.tests_of(fix)) for fix in FIXES}
ONLY_ROOT = {"give-back-owner"}
PLANTED = {fix: names["PLANTED"] for fix, names in DECLARED.items() if "PLANTED" in names}
PROVED_BY = {fix: names["PROVED_BY"] for fix, names in DECLARED.items() if "PROVED_BY" in names}


@pytest.mark.parametrize("fix", FIXES)
def test_every_fix_declares_a_problem(fix: str) -> None:
    """A planted problem, or the test that proves the contract elsewhere; never both."""
    assert (fix in PLANTED) != (fix in PROVED_BY), (
        f"tests/fixes/test_{fix.replace('-', '_')}.py needs a PLANTED or a PROVED_BY"
    )
    assert isinstance(DECLARED[fix].get("PLANTED"), Planted) or isinstance(
        DECLARED[fix].get("PROVED_BY"), ProvedBy
    )


@pytest.mark.parametrize(
    "fix",
    [
        pytest.param(fix, marks=[] if number % 6 == 0 else pytest.mark.wide)
        for number, fix in enumerate(PLANTED)
    ],
)
def test_cures_twice_equals_once_and_undo_restores_the_bytes(fix: str, home: Path) -> None:
    """The problem is planted, found, cured, looked for again, and put back.

    `make test` tries a sixth of the fixes, and `make test-all` every one.
    """
    if fix in ONLY_ROOT and os.geteuid() != 0:
        requirements.missing("only root can give files away")

    fix_contract.prove(home, fix, PLANTED[fix])


@pytest.mark.parametrize("fix", PROVED_BY)
def test_the_proof_elsewhere_exists(fix: str) -> None:
    """The named test is there, is not skipped in CI, and undoes the fix if that can be undone.

    What a machine lacks skips a test only outside of CI: see `tests/helpers/requirements.py`.
    """
    file, _, name = PROVED_BY[fix].test.partition("::")
    tree = ast.parse((TESTS / file).read_text())
    [function] = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    marks = {ast.unparse(mark) for mark in function.decorator_list}
    words = {
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }

    assert PROVED_BY[fix].why.endswith(".")
    assert not [mark for mark in marks if "skip" in mark or "xfail" in mark]
    undoes = "undo" in words or "undo(" in ast.unparse(function)
    assert undoes or not PROVED_BY[fix].undoes
