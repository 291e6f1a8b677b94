"""Edits of config.yaml: exactly the named value, whatever the file looks like."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from hermes_doctor.core.model import CannotFix
from hermes_doctor.hermes.settings.config_yaml import parse
from hermes_doctor.hermes.settings.edit_yaml import apply_edits
from hermes_doctor.hermes.settings.edits import ConfigEdit, Drop, Put, Rename
from tests.helpers import budget
from tests.helpers.random_yaml import NEW, SCALARS, files, paths

MANY = settings(
    max_examples=budget.examples(250),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
FEW_REFUSED = 0.1


def shared(one: bytes, two: bytes) -> int:
    """How many bytes two texts begin with in common."""
    return next(
        (n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b),
        min(len(one), len(two)),
    )


def insertion(before: bytes, after: bytes) -> bool:
    """Whether `after` is `before` with something put in at one place."""
    start = shared(before, after)
    return start + shared(before[start:][::-1], after[start:][::-1]) == len(before)


def pairs_at(data: bytes, path: tuple[str | int, ...]) -> list[tuple[Any, Any]]:
    """The key and value nodes of a path by a way of our own; of a key that stands twice, both."""
    above: Any = yaml.compose(data.decode().removeprefix("\ufeff"), yaml.SafeLoader)
    found: list[tuple[Any, Any]] = [(None, above)]
    for part in path:
        above = found[-1][1]
        if isinstance(part, int):
            found = [(None, above.value[part])]
        else:
            found = [(key, value) for key, value in above.value if key.value == part]
    return found


def span(data: bytes, node: Any) -> tuple[int, int]:
    """The bytes of a node."""
    text = data.decode()
    mark = len(text) - len(text.removeprefix("\ufeff"))
    start, end = node.start_mark.index + mark, node.end_mark.index + mark
    if getattr(node, "style", None) in ("|", ">"):
        end = start + len(text[start:end].rstrip())
    return len(text[:start].encode()), len(text[:end].encode())


def done(data: bytes, *edits: ConfigEdit) -> bytes:
    try:
        return apply_edits(data, edits)
    except CannotFix:
        assume(False)
        raise


@MANY
@given(files(), st.data())
def test_a_value_changes_and_nothing_around_it(data: bytes, draw: st.DataObject) -> None:
    """The bytes before and after a replaced value are the same."""
    nodes = {one: pairs_at(data, one)[-1][1] for one in paths(parse(data)[0])}
    scalars = [one for one, node in nodes.items() if isinstance(node, yaml.ScalarNode)]
    assume(scalars)
    path = draw.draw(st.sampled_from(scalars))
    value = draw.draw(SCALARS)
    after = done(data, Put(path, value))
    start, end = span(data, nodes[path])
    assert after[:start] == data[:start]
    assert after.endswith(data[end:])
    assert apply_edits(after, [Put(path, value)]) == after


@MANY
@given(files(), NEW, st.data())
def test_a_new_setting_is_put_in_at_one_place(data: bytes, value: Any, draw: st.DataObject) -> None:
    """The old file is all there, in its order."""
    nodes = {one: pairs_at(data, one)[-1][1] for one in [(), *paths(parse(data)[0])]}
    sections = [one for one, node in nodes.items() if isinstance(node, yaml.MappingNode)]
    above = draw.draw(st.sampled_from(sections))
    after = done(data, Put((*above, "brand_new"), value))
    assert insertion(data, after)
    assert apply_edits(after, [Put((*above, "brand_new"), value)]) == after
    assert apply_edits(after, [Put((*above, "brand_new"), "another")]) != after


@MANY
@given(files(), st.data())
def test_a_renamed_key_keeps_its_value_and_its_place(data: bytes, draw: st.DataObject) -> None:
    """Only the bytes of the key differ."""
    path = draw.draw(st.sampled_from(names(data)))
    after = done(data, Rename(path, "brand_new"))
    start, end = span(data, pairs_at(data, path)[-1][0])
    assert after[:start] == data[:start]
    assert after.endswith(data[end:])
    assert len(after) <= len(data) + len("brand_new") + 2
    assert apply_edits(after, [Rename(path, "brand_new")]) == after


@MANY
@given(files(), st.data())
def test_a_dropped_key_takes_nothing_along(data: bytes, draw: st.DataObject) -> None:
    """One piece is gone, and no comment that stood elsewhere."""
    path = draw.draw(st.sampled_from(names(data)))
    found = pairs_at(data, path)
    after = done(data, Drop(path))
    assert apply_edits(after, [Drop(path)]) == after
    above = pairs_at(data, path[:-1])[-1][1]
    if len(found) == 1 and (len(above.value) > 1 or above.flow_style):
        key, value = found[0]
        lines = data.splitlines()
        around = [*lines[: key.start_mark.line], *lines[value.end_mark.line + 1 :]]
        assert insertion(after, data)
        comments = {line for line in around if line.lstrip().startswith(b"#")}
        assert comments <= set(after.splitlines())


def names(data: bytes) -> list[tuple[str | int, ...]]:
    """The places that have a key."""
    return [one for one in paths(parse(data)[0]) if isinstance(one[-1], str)]


def test_few_files_are_too_odd_to_edit() -> None:
    """Refusing everything would be exact, too."""
    tried = refused = 0

    @settings(
        max_examples=budget.examples(300),
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(files(), NEW, st.data())
    def edit(data: bytes, value: Any, draw: st.DataObject) -> None:
        nonlocal tried, refused
        path = draw.draw(st.sampled_from(paths(parse(data)[0])))
        tried += 1
        try:
            apply_edits(data, [Put(path, value)])
        except CannotFix:
            refused += 1

    edit()
    assert tried >= budget.examples(200)
    assert refused / tried < FEW_REFUSED


EXAMPLES: list[tuple[str, list[ConfigEdit], str]] = [
    (
        "# relay\nmodel:\n  default: openkey/gpt-4o-mini   # the model\n  provider: openrouter\n",
        [Put(("model", "provider"), "openkey"), Put(("model", "default"), "gpt-4o-mini")],
        "# relay\nmodel:\n  default: gpt-4o-mini   # the model\n  provider: openkey\n",
    ),
    ("model:\n", [Put(("model", "provider"), "x")], "model:\n  provider: x\n"),
    ("", [Put(("model", "provider"), "x")], "model:\n  provider: x\n"),
    ("# nothing yet\n", [Put(("a",), 1)], "# nothing yet\na: 1\n"),
    ("a: 1", [Put(("b",), 2)], "a: 1\nb: 2"),
    ("a: {}\nb: 1\n", [Put(("a", "c"), 2)], "a: {c: 2}\nb: 1\n"),
    ("a: [1, 2]\n", [Put(("a", 2), 3)], "a: [1, 2, 3]\n"),
    ("a:\n- 1\n- 2\nb: 3\n", [Put(("a", 2), 3)], "a:\n- 1\n- 2\n- 3\nb: 3\n"),
    ("a: 'x'\r\nb: \"y\"\r\n", [Put(("a",), "no")], "a: 'no'\r\nb: \"y\"\r\n"),
    ("a: x\n", [Put(("a",), "no")], 'a: "no"\n'),
    ("a: x\n", [Put(("a",), "0123")], 'a: "0123"\n'),
    ("a: x # c\n", [Put(("a",), "b: c # d")], 'a: "b: c # d" # c\n'),
    ("a: ''\n", [Put(("a",), "it's")], 'a: "it\'s"\n'),
    ("a:   # why\n  b: 1\nc: 2\n", [Put(("a",), "x")], "a: x   # why\nc: 2\n"),
    (
        "providers:\n  x:\n    api_key_env: K # here\n",
        [Rename(("providers", "x", "api_key_env"), "key_env")],
        "providers:\n  x:\n    key_env: K # here\n",
    ),
    ("a: 1\nb: 2\nc: 3\n", [Drop(("b",))], "a: 1\nc: 3\n"),
    ("a: 1\n# of b\nb: 2\nb: 3\n", [Drop(("b",))], "a: 1\n# of b\n"),
    ("a:\n  b: 1\nc: 3\n", [Drop(("a", "b"))], "a: {}\nc: 3\n"),
    ("a: {b: 1, c: 2, d: 3}\n", [Drop(("a", "c"))], "a: {b: 1, d: 3}\n"),
    ("l:\n- a: 1\n  b: 2\n", [Drop(("l", 0, "a"))], "l:\n- b: 2\n"),
    ("a: 1\na: 2\n", [Put(("a",), 3)], "a: 1\na: 3\n"),
    (
        'f: \'[{"provider": "x"}]\'\n',
        [Put(("f",), [{"provider": "x", "model": "m"}])],
        "f:\n  - provider: x\n    model: m\n",
    ),
    ("f: s # c\n", [Put(("f",), [{"p": "x"}])], "f: [{p: x}] # c\n"),
    ("\ufeffa: 名字\n", [Put(("a",), "别的")], '\ufeffa: "别的"\n'),
]


@pytest.mark.parametrize(("before", "edits", "after"), EXAMPLES)
def test_it_looks_as_a_person_would_have_written_it(
    before: str, edits: list[ConfigEdit], after: str
) -> None:
    """The edited text, letter by letter; and a second time nothing."""
    assert apply_edits(before.encode(), edits).decode() == after
    assert apply_edits(after.encode(), edits).decode() == after


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("a: &x {b: 1}\nc: *x\n", Put(("a", "b"), 2)),
        ("a: &x {b: 1}\nc: *x\n", Put(("c", "b"), 2)),
        ("a: &x {b: 1}\nc: *x\n", Drop(("a",))),
        ("a: [1\n", Put(("a",), 2)),
        ("a: x\n", Put(("a", "b"), 2)),
        ("a: 1\nb: 2\n", Rename(("a",), "b")),
        ("a: 1\na: 2\n", Rename(("a",), "b")),
        ("a: |+\n  x\n\n", Put(("b",), 1)),
        ("a: [1]\n", Put(("a", 5), 1)),
        ("a: [1]\n", Put(("a", "b"), 1)),
        ("a: 1\n", Put(("b", 0), 1)),
    ],
)
def test_what_only_a_person_should_change_is_refused(text: str, edit: ConfigEdit) -> None:
    """Nothing is guessed."""
    with pytest.raises(CannotFix):
        apply_edits(text.encode(), [edit])


def test_a_merge_is_overridden_not_changed() -> None:
    """What others share stays what it is."""
    before = "base: &b\n  x: 1\n  y: 2\nmine:\n  <<: *b\n  z: 3\n"
    after = apply_edits(before.encode(), [Put(("mine", "x"), 9)])
    assert after.decode() == before + "  x: 9\n"
