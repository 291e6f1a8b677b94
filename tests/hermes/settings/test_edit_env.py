"""Edits of .env: exactly the named variable, for both parsers of Hermes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.hermes.knowledge.releases import Release
from hermes_doctor.hermes.settings import env_file
from hermes_doctor.hermes.settings.edit_env import apply_edits
from hermes_doctor.hermes.settings.edits import Assign, EnvEdit, ReplaceLine, Unset
from hermes_doctor.hermes.settings.env_file import EnvFile
from tests.helpers import budget

NAMES = ["OPENKEY_API_KEY", "QQ_APP_ID", "TELEGRAM_BOT_TOKEN", "MY_VARIABLE", "X"]
RELEASES = [Release((0, 13, 0)), Release((0, 16, 0)), Release((0, 19, 0))]
MANY = settings(
    max_examples=budget.examples(250),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def reading(release: Release, data: bytes) -> list[dict[str, str]]:
    file = EnvFile(Path("/"), data, snapshot(Path("/")))
    found = env_file.parse_env(file, release, {})
    return [
        {name: str(value) for name, value in one.values.items()}
        for one in (found.dotenv, found.own)
    ]


def done(data: bytes, *edits: EnvEdit, release: Release = RELEASES[-1]) -> bytes:
    return apply_edits(data, edits, lambda one: reading(release, one))


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """A .env as people write it."""
    lines = []
    for _ in range(draw(st.integers(0, 6))):
        value = draw(
            st.text("abcXYZ012.:/-_=", max_size=12)
            | st.sampled_from(["sk-1", "秘密", "a b", "${X}", ""])
        )
        line = draw(
            st.sampled_from(["{n}={v}", "export {n}={v}", '{n}="{v}"', "{n}='{v}'", "{n} = {v}"])
        )
        said = line.format(n=draw(st.sampled_from(NAMES)), v=value)
        said += draw(st.sampled_from(["", "", "", "  # note", " "]))
        lines += [*draw(st.sampled_from([[], [], ["# 说明"], [""]])), said]
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    return (newline.join(lines) + draw(st.sampled_from([newline, ""]))).encode()


VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20)


@MANY
@given(files(), st.sampled_from(NAMES), VALUES, st.sampled_from(RELEASES))
def test_both_parsers_read_what_was_assigned(
    data: bytes, name: str, value: str, release: Release
) -> None:
    """The value is the same to both, and every other variable too."""
    before = reading(release, data)
    try:
        after = done(data, Assign(name, value), release=release)
    except CannotFix:
        assume(False)
    now = reading(release, after)
    assert [one[name] for one in now] == [value, value]
    for old, new in zip(before, now, strict=True):
        assert {k: v for k, v in old.items() if k != name} == {
            k: v for k, v in new.items() if k != name
        }
    assert done(after, Assign(name, value), release=release) == after
    others = [line for line in data.splitlines(True) if name.encode() not in line]
    assert [line for line in after.splitlines(True) if line in others][: len(others)] == others or (
        not data.endswith((b"\n", b"\r"))
    )


@MANY
@given(files(), st.sampled_from(NAMES))
def test_a_variable_that_is_taken_out_leaves_the_others(data: bytes, name: str) -> None:
    """Only its own lines are gone."""
    try:
        after = done(data, Unset(name))
    except CannotFix:
        assume(False)
    assert all(name not in one for one in reading(RELEASES[-1], after))
    assert after == b"".join(
        line for line in data.splitlines(True) if name.encode() not in line.partition(b"=")[0]
    )


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        ("A=1\nB=2\n", Assign("B", "3"), "A=1\nB=3\n"),
        ("A=1\r\nB=2\r\n", Assign("C", "3"), "A=1\r\nB=2\r\nC=3\r\n"),
        ("A=1", Assign("B", "2"), "A=1\nB=2\n"),
        ("", Assign("B", "2"), "B=2\n"),
        ("export A='x'\n", Assign("A", "y"), "export A=y\n"),
        ("A=1  # note\nB=2\n", Assign("A", "3"), "# note\nA=3\nB=2\n"),
        ("A=1\nA=2\n", Assign("A", "3"), "A=1\nA=3\n"),
        ("A=x\n", Assign("A", "two words"), 'A="two words"\n'),
        ("A=x\n", Assign("A", "a#b"), 'A="a#b"\n'),
        ("A=1\n# c\nB=2\nA=3\n", Unset("A"), "# c\nB=2\n"),
        ("A: 1\nB=2\n", ReplaceLine(1, "A: 1", "A=1"), "A=1\nB=2\n"),
        ("A=1 # c\r\nB=2\r\n", ReplaceLine(1, "A=1 # c", "# c\nA=1"), "# c\r\nA=1\r\nB=2\r\n"),
    ],
)
def test_it_looks_as_a_person_would_have_written_it(before: str, edit: EnvEdit, after: str) -> None:
    """The edited text, letter by letter; and a second time nothing."""
    assert done(before.encode(), edit).decode() == after


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    """A comment in another encoding is kept."""
    assert done(b"# caf\xe9\nA=1\n", Assign("A", "2")) == b"# caf\xe9\nA=2\n"


@pytest.mark.parametrize(
    ("before", "edit"),
    [
        ("A=1\n", Assign("A", "two\nlines")),
        ("A=1\n", Assign("A", "${B}")),
        ("A=1\n", Assign("A", "schlüssel")),
        ("A=1\n", Assign("no name", "x")),
        ("A=1\nB=${A}\n", Assign("A", "2")),
        ("A=1\n", ReplaceLine(1, "A=2", "A=3")),
        ("A=1\n", ReplaceLine(7, "", "A=3")),
        ("A=1\0\n", Assign("A", "2")),
    ],
)
def test_what_only_a_person_should_change_is_refused(before: str, edit: EnvEdit) -> None:
    """Nothing is guessed."""
    with pytest.raises(CannotFix):
        done(before.encode(), edit)


@pytest.mark.parametrize(
    ("before", "edit"),
    [
        ('N="see\nK=\'x\nend"\n', ReplaceLine(2, "K='x", "K=x")),
        ("A=1\nB=${A}\n", ReplaceLine(1, "A=1", "A=2")),
    ],
)
def test_a_mended_line_changes_no_other_variable(before: str, edit: ReplaceLine) -> None:
    """Those on other lines stay what they were, or nothing is done."""
    with pytest.raises(CannotFix, match="depends on it"):
        done(before.encode(), edit)


def test_a_mended_line_may_free_what_it_swallowed() -> None:
    """A quote that was not closed hid the next variable."""
    assert done(b'A="x\nB=2\nC="3"\n', ReplaceLine(1, 'A="x', "A=x")) == b'A=x\nB=2\nC="3"\n'
