"""How a settings file changes, without its secrets."""

from __future__ import annotations

import pytest

from hermes_doctor import redaction
from hermes_doctor.render import diff


def test_diff() -> None:
    """Both sides are masked line by line, and the heads name the file."""
    before, after = b"port: 1\nkey: canary1\n", b"port: 2\nkey: canary2\nb: true\n"
    made = list(diff.redacted_diff("x.yaml", before, after))

    assert [text[:10] for text in made[:2]] == ["--- x.yaml", "+++ x.yaml"]
    assert "-port: 1" in made
    assert "+port: 2" in made
    assert "+b: true" in made
    assert "canary" not in "".join(made)


def test_diff_is_bounded() -> None:
    """A long difference ends with how much more there is."""
    made = list(diff.redacted_diff("x", b"", b"a: 1\n" * 1000))

    assert len(made) == diff.MOST_LINES + 1
    assert made[-1].endswith("more lines")


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00", b"\0" * 10, b"\x85\xe2\x80\xa8\n", "x\x0cy\x1cz\u2028w".encode()]
)
def test_diff_of_any_bytes(data: bytes) -> None:
    """Whatever the bytes are, each row of the difference is one line."""
    for text in diff.redacted_diff("x", data, b"a: 1\n"):
        assert text == redaction.clean(text)


def test_text_over_several_lines() -> None:
    """Blocks and quoted runs may hold anything, names and numbers included."""
    text = "a: |\n  canary.one: true\n\n  port: 4242\nb: 'canary\n  port: 7'\nport: 8\n"
    made = "\n".join(diff.redacted_diff("x.yaml", b"", text.encode()))

    assert "canary" not in made
    assert "4242" not in made
    assert "port: 7" not in made
    assert "+port: 8" in made
