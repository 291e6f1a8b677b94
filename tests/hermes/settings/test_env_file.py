"""The two readings of .env."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from hermes_doctor.hermes.knowledge.releases import Release
from hermes_doctor.hermes.settings import env_file as env_file_module
from hermes_doctor.hermes.settings.env_file import EnvReadings, ExpandsTooFar
from tests.helpers.setting_inputs import env_file


def read(text: str | bytes, version: tuple[int, ...] = (0, 19, 0)) -> EnvReadings:
    """Both readings, with one variable in the environment."""
    return env_file_module.parse_env(env_file(text), Release(version), {"OUTSIDE": "out"})


@pytest.mark.parametrize(
    ("line", "dotenv", "own"),
    [
        ("KEY=abc", "abc", "abc"),
        ("KEY=abc  # note", "abc", "abc  # note"),
        ("KEY=abc#1", "abc#1", "abc#1"),
        ("KEY='a b'", "a b", "a b"),
        ('KEY = "a\\"b"', 'a"b', 'a"b'),
        ("export KEY=abc", "abc", "abc"),
        ("  KEY=abc   ", "abc", "abc"),
        ("KEY=${OUTSIDE}", "out", "${OUTSIDE}"),
        ("KEY=", "", ""),
        ("KEY", None, None),
        ("# KEY=abc", None, None),
        ("KEY: abc", None, None),
        ('KEY="abc', None, '"abc'),
    ],
)
def test_two_parsers(line: str, dotenv: str | None, own: str | None) -> None:
    """What each makes of a line."""
    found = read(line + "\n")

    assert found.dotenv.values.get("KEY") == dotenv
    assert found.own.values.get("KEY") == own


def test_older_releases() -> None:
    """Before 0.18 the own parser knows no `export`, and takes any quotes off."""
    found = read("export A=x\nB='abc\n", (0, 17, 0)).own.values

    assert found["export A"] == "x"
    assert found["B"] == "abc"


def test_lines() -> None:
    """Each variable knows its line; of two, the last one counts and the first is known."""
    found = read("# top\nA=1\r\n\r\nB=2\nA=3\nbroken line\n")

    assert (found.dotenv.values["A"], found.dotenv.values["A"].source.line) == ("3", 5)
    assert found.dotenv.again == {"A": (2,)}
    assert found.own.again == {"A": (2,)}
    assert found.dotenv.values["B"].source.line == 4


def test_two_on_one_line() -> None:
    """Hermes cuts a line where another variable that it knows begins; both have its number."""
    found = read("X=1\nOPENROUTER_API_KEY=sk-oneDEEPSEEK_API_KEY=sk-two\n").dotenv.values

    assert found["OPENROUTER_API_KEY"] == "sk-one"
    assert (found["DEEPSEEK_API_KEY"], found["DEEPSEEK_API_KEY"].source.line) == ("sk-two", 2)


def test_an_address_is_not_cut() -> None:
    """A known name inside an address is a part of it, since 0.18."""
    line = "OPENROUTER_API_KEY=https://x/?DEEPSEEK_API_KEY=1\n"

    assert "DEEPSEEK_API_KEY" not in read(line).own.values
    assert "DEEPSEEK_API_KEY" in read(line, (0, 17, 0)).own.values


@pytest.mark.parametrize(
    "data",
    [b"\xef\xbb\xbfA=1\n", "A=1\n".encode("utf-16"), b"A=1\0\n", b"# caf\xe9\nA=1\n"],
)
def test_encodings(data: bytes) -> None:
    """As 0.19 reads them."""
    assert read(data).own.values["A"] == "1"


@pytest.mark.parametrize("data", [b"", b"\0" * 50, b"=\n==\n'", bytes(range(256)), b"A=" * 9999])
def test_hostile(data: bytes) -> None:
    """Nothing raises."""
    read(data)
    read(data, (0, 13, 0))


WORDS = st.sampled_from(
    [
        *("A", "KEY", "export ", "=", "=", "\n", "\r\n", "\r", " ", "\t", "#", "'", '"', "\\"),
        *(
            "$",
            "${A}",
            "sk-1",
            "a:b",
            "é",
            "\ufffd",
            "\ufeff",
            "\x0b",
            "\u2028",
            "%",
            "[",
            "]",
            "~",
        ),
    ]
)


@given(st.lists(WORDS, max_size=25).map("".join))
def test_plain_lines_are_read_alike(text: str) -> None:
    """Where python-dotenv is not loaded, it would have read the same."""
    lines = list(
        env_file_module._tidied(env_file_module._decoded(env_file(text), Release()), Release())
    )
    plainly = env_file_module._plainly(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(env_file_module, "_plainly", lambda _: None)
        theirs = env_file_module._dotenv(env_file(text), lines, {})

    if plainly is not None:
        assert plainly == theirs
        assert [one.source for one in plainly.values.values()] == [
            one.source for one in theirs.values.values()
        ]


def test_references_that_multiply_each_other() -> None:
    """2.7 TB from 1.3 KB are refused before they need memory."""
    lines = "".join(f"A{n}=${{A{n - 1}}}${{A{n - 1}}}\n" for n in range(1, 38))

    with pytest.raises(ExpandsTooFar, match=r"its variables expand to more than 4.0 MB") as error:
        read("A0=0123456789\n" + lines)

    assert error.value.line == 19


def test_many_lines_with_comments() -> None:
    """The time grows with the number of lines, not with its square."""
    started = time.process_time()

    found = read("".join(f"V{n}=a$b  # note\n" for n in range(20_000))).dotenv

    assert len(found.values) == 20_000
    assert time.process_time() - started < 10
