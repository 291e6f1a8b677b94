"""The compiled form of the tables."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_causes import tables
from hermes_doctor.diagnosis.plugins.log_rules.folder import Folder

SIGNATURES = builtin("checks") / "signatures"
PAGES = {path.stem for path in Path(__file__).parents[4].glob("docs/failures/*.md")}


def test_the_compiled_form_says_the_same() -> None:
    """What it is unpacked to compiles to itself."""
    written = tables.read_source(SIGNATURES)
    compiled = Folder(SIGNATURES, ours=True).tables

    assert list(written.faults) == []
    assert tables.compile_tables(compiled) == tables.compile_tables(written)


def test_every_code_has_a_page() -> None:
    """What a cause blames can be explained."""
    for cause in Folder(SIGNATURES, ours=True).tables.causes:
        codes = {cause.code, *cause.codes, *cause.by_part.values()}
        assert codes <= PAGES, f"{cause.name}: {codes - PAGES}"
        assert all(map(cause.means, codes)) and not cause.means("NO-SUCH-CODE")
        assert cause.code_in("nowhere") == cause.code
