"""The compiled form of the tables."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.plugins.load import builtin
from hermes_doctor.plugins.log_causes import tables

SIGNATURES = builtin("checks") / "signatures"
PAGES = {path.stem for path in Path(__file__).parents[3].glob("docs/failures/*.md")}


def test_the_compiled_form_is_up_to_date() -> None:
    """`make signatures` was run after the last change, and there is no mistake."""
    written = tables.read_source(SIGNATURES)

    assert list(written.faults) == []
    compiled = (SIGNATURES / tables.COMPILED).read_text(encoding="utf-8")
    assert compiled == tables.compile_tables(written), "run `make signatures`"


def test_the_compiled_form_says_the_same() -> None:
    """What it is unpacked to compiles to itself."""
    compiled = tables.load_tables(SIGNATURES, ours=True)

    assert tables.compile_tables(compiled) == tables.compile_tables(tables.load_tables(SIGNATURES))


def test_a_compiled_form_of_others_is_not_trusted(tmp_path: Path) -> None:
    """It was never checked; only YAML is read."""
    (tmp_path / "causes").mkdir()
    (tmp_path / tables.COMPILED).write_text('{"causes": [["x"]]}')

    assert list(tables.load_tables(tmp_path).causes) == []


def test_every_code_has_a_page() -> None:
    """What a cause blames can be explained."""
    for cause, _ in tables.load_tables(SIGNATURES, ours=True).causes:
        codes = {cause.code, *cause.codes, *cause.by_part.values()}
        assert codes <= PAGES, f"{cause.name}: {codes - PAGES}"
        assert all(map(cause.means, codes)) and not cause.means("NO-SUCH-CODE")
        assert cause.code_in("nowhere") == cause.code
