"""Plain files are read by libyaml exactly as by PyYAML's own parser, which the gateway uses."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from hermes_doctor.hermes.settings import config_yaml
from hermes_doctor.hermes.settings.plain_yaml import is_plain_yaml

DUMPED = {
    "model": {"default": "anthropic/claude-opus-4.6", "provider": "auto", "base_url": ""},
    "fallbacks": [{"provider": "custom", "url": "http://127.0.0.1:9/v1"}, "none", []],
    "limits": {"turns": 90, "share": 0.5, "below": -3, "nothing": None, "is_on": True, "so": {}},
    "words": ["yes", "123", "两个词", "a:b", "*", "x # y", "- z", "00:30", "=", "2026-11-16"],
}
WORDS = st.sampled_from(
    [
        *("a", "b", "model", "值", "x.y", "1", "0x1F", "1_000", "1:30", "y", "no", "~", "="),
        "null",
        *("2026-11-16", "2026-11-16 10:00:00", "1.5", "-7", ".5", "a b", "a: b", "a:b"),
        "http://x/y",
        *("''", '""', "'a # b'", '"c: d"', "'- e'", "[]", "{}", "a, b", "(x)", "50%", "*"),
        *("&a", "x*"),
        *("it's", "'it''s'", '"\\u0041"', "|", ">-", "!!str 1", "<<", "---", "...", "- x"),
        *("? x", "#"),
        *("𝒳𠀀", "é", "\u2028", "\x85", "\t", "\ufeff", "a" * 200, "@x", "`x", "%x", "x#y", "x #y"),
    ]
)
LINES = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["", " ", "  ", "    ", "      "]),
    st.sampled_from(["", "", "- ", "- - ", "-"]),
    st.one_of(st.just(""), WORDS.map("{}:".format), WORDS.map("{}: ".format)),
    st.one_of(st.just(""), WORDS),
    st.sampled_from(["", "", " ", "  # why", " #", "#no"]),
)


def read(text: str, loader: Any) -> object:
    """Read with one parser: the values, and the place of each node; or that it is an error."""
    try:
        values, root = config_yaml._load(text, loader)
    except Exception:  # noqa: BLE001 (PyYAML raises nearly anything)
        return "an error"
    return repr(values), [] if root is None else list(places(root))


def places(node: yaml.Node) -> Any:
    """Yield tag, text, start and end of each node, as far as the tool uses them."""
    for part in node.value if isinstance(node.value, list) else ():
        for one in part if isinstance(part, tuple) else (part,):
            yield from places(one)
    start, text = node.start_mark, node.value if isinstance(node.value, str) else ""
    yield node.tag, text, start.index, start.line, start.column, node.end_mark.index


@given(st.lists(LINES.filter(is_plain_yaml), max_size=8).map("\n".join))
def test_both_parsers_agree(text: str) -> None:
    """A plain file has the same values in the same places for both, or is an error for both."""
    assert is_plain_yaml(text)

    assert read(text, config_yaml.FAST) == read(text, yaml.SafeLoader)


@given(st.recursive(WORDS, lambda of: st.lists(of) | st.dictionaries(WORDS, of), max_leaves=20))
def test_what_pyyaml_writes(value: object) -> None:
    """Hermes writes its settings with PyYAML."""
    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    if is_plain_yaml(text):
        assert read(text, config_yaml.FAST) == read(text, yaml.SafeLoader)


def test_usual_settings_are_plain() -> None:
    """Settings as Hermes writes them, and with what people add, are plain."""
    text = yaml.safe_dump(DUMPED, sort_keys=False, allow_unicode=True)

    assert is_plain_yaml(text)
    assert is_plain_yaml("# 注释\n\nmodel:\n  default: gpt-4o  # cheap\n  base_url:\n")


@pytest.mark.parametrize(
    "line",
    [
        *("a:\tb", "? a", "a: |", "a: >-", "a: &b c", "a: *b", "<<: *b", "a: !!str b", "--- "),
        "...",
        *('a: "\\x41"', "a: [b, c]", "a: {b: c}", "%YAML 1.2", "a: b: c", "a: it's #no"),
        "\ufeffa: b",
        *("'a': b", "a: b\r", "a:\x85", "text", "a: 'b", "a : b", "a: b\u2028c", f"{'a' * 200}: b"),
    ],
)
def test_other_lines_are_not_plain(line: str) -> None:
    """The gateway's own parser reads a file with any other form."""
    assert not is_plain_yaml(f"first: 1\n{line}\nlast: 2\n")


@pytest.mark.parametrize("end", ["  wrong: 1\n", "- wrong\n"])
def test_the_gateways_parser_names_the_mistake(end: str) -> None:
    """A plain but invalid file has the fault that the gateway logs."""
    text = "".join(f"key_{n}: {n}\n" for n in range(200)) + end
    assert is_plain_yaml(text)

    values, fault = config_yaml.parse(text.encode())

    with pytest.raises(yaml.MarkedYAMLError) as raised:
        yaml.safe_load(text)
    assert values is None
    assert fault is not None
    assert raised.value.problem_mark is not None
    assert fault.line == raised.value.problem_mark.line + 1


def test_the_fast_parser_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long plain file is not given to the slow parser."""
    monkeypatch.setattr(yaml, "SafeLoader", None)
    text = "".join(f"key_{n}: {n}\n" for n in range(200))

    assert config_yaml.parse(text.encode()) == ({f"key_{n}": n for n in range(200)}, None)
