"""The table that says what each problem does to the bot."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.core.model import PARTS, Effect
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.plugins.effects import read_effects
from tests.helpers import support

ROOT = Path(__file__).parents[3]


def test_lines_that_are_not_effects_are_ignored(tmp_path: Path) -> None:
    """A comment, an unknown part, a line without words, bytes that are not text."""
    assert read_effects(tmp_path) == {}
    (tmp_path / "effects.txt").write_bytes(
        b"# CODE part words\nA model no key\nB weather rain\nC model\n\n\xff\xfe\nD data a b c\n"
    )

    assert read_effects(tmp_path) == {"A": Effect("model", "no key"), "D": Effect("data", "a b c")}


def test_every_code_of_the_table_exists() -> None:
    """Each has a page, a known part and a few words; none is listed twice."""
    text = (ROOT / "checks" / "signatures" / "effects.txt").read_text()
    rows = [line.split(None, 2) for line in text.splitlines() if not line.startswith("#")]
    pages = {page.stem for page in (ROOT / "docs" / "failures").glob("*.md")}

    assert len(rows) == len({code for code, _, _ in rows})
    for code, part, words in rows:
        assert code in pages
        assert part in PARTS
        assert 2 < len(words) <= 45, words


def test_an_operator_can_add_effects(tmp_path: Path) -> None:
    """A folder of one's own is read last, so it also changes built-in effects."""
    support.put(tmp_path / "signatures" / "effects.txt", "MY-CODE platform out of tea\n")

    assert load.load([tmp_path]).effects["MY-CODE"] == Effect("platform", "out of tea")
    assert "GW-DOWN" in load.load([tmp_path]).effects
