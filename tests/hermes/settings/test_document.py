"""config.yaml with the place of everything in it."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from hermes_doctor.hermes.settings import config_yaml
from hermes_doctor.hermes.settings.document import Document, Text, dotted_path

TEXT = """\
# a comment
model:
  default: gpt   # which one
  provider: 'openkey'
  context_length: 128000
providers:
  openkey: {base_url: "https://x.example/v1", models: [a, "b"]}
list:
- name: one
- name: two
"""
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=12)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_places(mark: str, newline: str) -> None:
    """Every value knows its line, and its bytes, whatever comes before them."""
    data = (mark + "# ünï\n".replace("\n", newline) + TEXT.replace("\n", newline)).encode()
    document = Document(data)

    assert document.fault is None
    for path, line, written in (
        (("model", "default"), 4, b"gpt"),
        (("model", "provider"), 5, b"'openkey'"),
        (("model", "context_length"), 6, b"128000"),
        (("providers", "openkey", "base_url"), 8, b'"https://x.example/v1"'),
        (("providers", "openkey", "models", 1), 8, b'"b"'),
        (("list", 1, "name"), 11, b"two"),
    ):
        place = document.places[path]
        start, end = document.span(place)
        assert (place.line, data[start:end]) == (line, written)
    start, end = document.span(document.keys["providers", "openkey"])
    assert data[start:end] == b"openkey"


def test_values_carry_their_place() -> None:
    """A text of the file says where it stands; what refers to it stands where it is written."""
    document = Document(b"a: &x one\nb: [two, *x]\nc: 3\n")

    assert document.values == {"a": "one", "b": ["two", "one"], "c": 3}
    two, one = document.values["b"]
    assert isinstance(two, Text) and isinstance(one, Text)
    assert str(two.source) == "b[0] in config.yaml:2"
    assert one.source.line == 1
    assert str(document.source("c")) == "c in config.yaml:3"
    assert document.source("c", "nothing").line == 3


def test_merged_mappings() -> None:
    """What `<<` brings along is there, with the place of what it was brought from."""
    document = Document(b"base: &b {url: here}\none:\n  <<: *b\n  key: x\n")

    assert document.values["one"] == {"url": "here", "key": "x"}
    assert document.values["one"]["url"].source.line == 1


def test_duplicate_keys() -> None:
    """The last one counts, as it does to Hermes, and the others are known."""
    document = Document(b"model: {default: a}\nother: 1\nmodel:\n  default: b\n")

    assert document.values["model"]["default"] == "b"
    assert document.places["model", "default"].line == 4
    assert document.duplicates == [(("model",), (1, 3), False)]


@pytest.mark.parametrize(
    "data",
    [
        b"a: b: c",
        b"a:\n\tb: c",
        b"- a",
        b"just text",
        b"a: \xff",
        "a: b".encode("utf-16"),
        b"a: !!python/object:os.system x",
        b"[" * 5000,
        b"a: &a [*a]",
        b"? [1, 2]\n: x",
        b"{a: 1, a: 2, ? {b: c} : d}",
    ],
)
def test_hostile(data: bytes) -> None:
    """Nothing that is in the file raises; what Hermes cannot read is a fault and has no values."""
    document = Document(data)

    assert document.fault is None or not document.values


def test_laughs() -> None:
    """References to references are not written out: the file is refused."""
    lines = ["a0: &a0 [x, x]"] + [
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)
    ]
    document = Document("\n".join(lines).encode())

    assert len(document.places) < 1000
    assert document.fault == config_yaml.UNFOLDS


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(WORDS.filter(bool), TREES, max_size=4), st.booleans())
def test_reads_as_pyyaml_does(tree: dict[str, object], crlf: bool) -> None:
    """Whatever the file holds, the values are PyYAML's, and the span of each text means it."""
    text = yaml.safe_dump(tree, allow_unicode=True)
    data = (text.replace("\n", "\r\n") if crlf else text).encode()
    document = Document(data)

    assert document.fault is None
    assert document.values == yaml.safe_load(data.decode())
    for path, place in document.places.items():
        start, end = document.span(place)
        assert 0 <= start <= end <= len(data), dotted_path(path)
