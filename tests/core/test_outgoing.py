"""The gate: what leaves is harmless and without secrets, what was harmless is unchanged."""

from __future__ import annotations

import io
import threading
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from hermes_doctor.core import outgoing
from hermes_doctor.core.message import Message, text
from hermes_doctor.core.model import CheckResult, Evidence, Finding, Report, Severity, Status
from hermes_doctor.core.secret_forms import Secret
from tests.helpers import budget

SECRET = "qZ7#canary-Kx9pLm2Tw"


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[outgoing.KnownSecrets]:
    """A gate that knows one secret."""
    made = outgoing.KnownSecrets()
    made.add([Secret(SECRET, "EMAIL_PASSWORD")])
    monkeypatch.setattr(outgoing, "known", made)
    yield made


HOSTILE = {
    "escape sequence": "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "eight-bit escape": "\x9b31m",
    "line breaks": "a\nb\r\nc\x85d\u2028e\u2029f\x0bg\x0ch",
    "bidirectional": "\u202eabc\u2066\u2069\u200f",
    "hidden characters": "a\u200bb\u200dc\ufeffd\u00ade\u2060",
    "tags": "\U000e0041\U000e0042",
    "null": "a\0b",
    "half a pair": "\udcff\ud800",
    "backspace": "safe\b\b\b\bevil",
    "command of GitHub": "::error file=a::b",
    "command behind spaces": "  ::add-mask::x",
    "command that ends commands": "::stop-commands::x",
    "older command of GitHub": "a ##[set-env name=PATH]x",
}


@pytest.mark.parametrize("how", HOSTILE)
def test_harmless(how: str) -> None:
    """What remains can be printed on one line; doing it again changes nothing."""
    shown = outgoing.clean(HOSTILE[how])

    assert shown.isprintable() and len(shown) == len(HOSTILE[how])
    assert not shown.lstrip().startswith("::") and "##[" not in shown
    assert shown.encode()
    assert outgoing.clean(shown) == shown


@settings(max_examples=budget.examples(300), deadline=None)
@given(st.text())
def test_any_text(text: str) -> None:
    """It becomes harmless, keeps its length, and stays the same the second time."""
    shown = outgoing.harmless(text)
    kinds = {unicodedata.category(char) for char in shown}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert len(shown) == len(text)
    assert outgoing.harmless(shown) == shown
    assert outgoing.clean_lines(shown) == shown


@settings(max_examples=budget.examples(300), deadline=None)
@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs"), exclude_characters=":#")))
def test_harmless_text_is_unchanged(text: str) -> None:
    """Letters of any language, numbers, punctuation and signs."""
    assert outgoing.clean(text) == text
    assert outgoing.clean_lines(text) == text


@pytest.mark.parametrize("text", ["::1", "http://[::1]:80/", "a::b::c", "std::vector", "## [x]"])
def test_what_only_looks_like_a_command(text: str) -> None:
    """Addresses stay as they are."""
    assert outgoing.clean(text) == text


@settings(max_examples=budget.examples(200), deadline=None)
@given(st.text(), st.text())
def test_no_secret_passes(before: str, after: str) -> None:
    """Whatever stands around it, and however often it passes."""
    for gate in (outgoing.clean, outgoing.clean_lines):
        shown = gate(f"{before} {SECRET} {after}")
        assert SECRET.lower() not in shown.lower()
        assert gate(shown) == shown


def test_hidden_characters_do_not_hide_a_secret() -> None:
    """One that is torn by them is found."""
    assert SECRET[6:] not in outgoing.clean(f"{SECRET[:6]}\u200b{SECRET[6:]}")


def test_lines_keep_their_form() -> None:
    """Line breaks, tabs and colours stay; what moves the cursor does not."""
    assert outgoing.clean_lines("a\tb\n\x1b[1;31mc\x1b[0m\n") == "a\tb\n\x1b[1;31mc\x1b[0m\n"
    assert outgoing.clean_lines("a\x1b[2Jb\r\n") == "a�[2Jb�\n"


def _report(words: str) -> Report:
    finding = Finding(
        code="A",
        severity=Severity.ERROR,
        title=text("{name} is wrong", name=words),
        subject=words,
        detail=words,
        evidence=(Evidence(words, words),),
        data={"kept": words},
        check=words,
    )
    check = CheckResult("a", "b", Status.UNKNOWN, 0.1, words)
    return Report(Path("/home"), words, datetime.now(UTC), 0.1, (check,), (finding,))


def test_a_report() -> None:
    """Every text in it is hidden, except for what only a fix gets."""
    shown = outgoing.masked(_report(f"x {SECRET} y"))

    assert SECRET not in repr(shown._replace(findings=()))
    (finding,) = shown.findings
    assert finding.data == {"kept": f"x {SECRET} y"}
    assert SECRET not in repr(finding._replace(data={}))
    assert isinstance(finding.title, Message)
    assert finding.title == "x (20-character password) y is wrong"
    assert finding.title.values == {"name": "x (20-character password) y"}
    assert finding.severity is Severity.ERROR


def test_what_has_no_secret_is_the_same_object() -> None:
    """Nothing is copied then."""
    report = _report("plain")
    assert outgoing.masked(report) is report
    data = {"a": [1, None, "b", {"c": 2.5}]}
    assert outgoing.masked(data) is data


def test_a_document() -> None:
    """Names and values, however deep; numbers and places stay."""
    data = {SECRET: [SECRET, {"a": (SECRET, 1)}], "path": Path("/x")}
    hidden = "(20-character password)"
    assert outgoing.masked(data) == {hidden: [hidden, {"a": (hidden, 1)}], "path": Path("/x")}


def test_a_template_with_a_secret() -> None:
    """A plugin may make a text without values."""
    shown = outgoing.masked(text("the key " + SECRET.replace("{", "{{")))
    assert shown == "the key (20-character password)"


class _Pipe(io.TextIOWrapper):
    tty = False

    def isatty(self) -> bool:
        return self.tty


@pytest.mark.parametrize("tty", [False, True])
def test_what_is_printed_beside_it(monkeypatch: pytest.MonkeyPatch, tty: bool) -> None:
    """Stdout and stderr have the gate in front, for text and for bytes."""
    import sys

    for name in ("stdout", "stderr"):
        raw = io.BytesIO()
        stream = _Pipe(raw, encoding="utf-8", write_through=True)
        stream.tty = tty
        monkeypatch.setattr(sys, name, stream)
        outgoing.guard_output()
        outgoing.guard_output()  # only once
        gate = getattr(sys, name)
        print(f"a {SECRET}\n\x1b[2J", file=gate)
        gate.writelines(["b ", SECRET, "\n"])
        gate.buffer.write(f"c {SECRET}\n".encode())
        gate.flush()
        hidden = "(20-character password)"
        escape = "\x1b[2J" if tty else "�[2J"
        assert raw.getvalue().decode() == f"a {hidden}\n{escape}\nb {hidden}\nc {hidden}\n"
        assert gate.isatty() is tty and gate.encoding == "utf-8"
        with pytest.raises(TypeError):
            gate.write(b"x")


def test_a_source_is_asked_again(
    known: outgoing.KnownSecrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret that is new is hidden, and the former one still is."""
    monkeypatch.setattr(outgoing, "PAUSE", 0.0)
    answers = [[[Secret("former-Kx9pLm2Tw")]], [], [[Secret("present-Kx9pLm2Tw")]]]
    known.add_source("x", lambda: answers.pop(0) if answers else [])
    for _ in range(3):
        known.mask("something")
    assert known.mask("former-Kx9pLm2Tw present-Kx9pLm2Tw") == (
        "(16-character value) (17-character value)"
    )


def test_a_source_that_hangs(known: outgoing.KnownSecrets, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts leave all the same; what it has told so far is hidden, the rest when it is known."""
    monkeypatch.setattr(outgoing, "PAUSE", 0.0)
    monkeypatch.setattr(outgoing, "_LONGEST_WAIT", 0.2)
    told, go_on = threading.Event(), threading.Event()

    def hang() -> Iterator[list[Secret]]:
        yield [Secret("before-Kx9pLm2Tw")]
        told.set()
        go_on.wait(60)
        yield [Secret("behind-Kx9pLm2Tw")]

    known.add_source("x", hang)
    assert known.mask(f"a {SECRET}") == "a (20-character password)"
    assert told.wait(60)
    shown = known.mask("before-Kx9pLm2Tw behind-Kx9pLm2Tw")
    assert shown == "(16-character value) behind-Kx9pLm2Tw"
    go_on.set()
    assert known._reader is not None
    known._reader.join(60)
    assert known.mask("behind-Kx9pLm2Tw") == "(16-character value)"


def test_no_memory_for_a_thread(
    known: outgoing.KnownSecrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that prints asks the sources itself, each time."""

    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(outgoing, "PAUSE", 0.0)
    monkeypatch.setattr(threading.Thread, "start", fail)
    answers = [[[Secret(f"{number}-Kx9pLm2Tw")]] for number in ("first", "other")]
    known.add_source("x", lambda: answers.pop(0) if answers else [])
    known.add_source("y", lambda: [[Secret(known.mask("third-Kx9pLm2Tw"))]])

    known.mask("something")

    shown = known.mask("first-Kx9pLm2Tw other-Kx9pLm2Tw third-Kx9pLm2Tw")
    assert shown == " ".join(["(15-character value)"] * 3)


def test_an_error_of_a_source(known: outgoing.KnownSecrets) -> None:
    """It reaches whoever wanted to print, because a secret could be missing."""

    def fail() -> list[list[Secret]]:
        raise KeyError("x")

    known.add_source("x", fail)
    with pytest.raises(KeyError):
        known.mask("something")


def test_a_source_that_makes_a_text(known: outgoing.KnownSecrets) -> None:
    """It does not wait for itself."""
    known.add_source("x", lambda: [[Secret(known.mask("other-Kx9pLm2Tw"))]])
    assert known.mask("other-Kx9pLm2Tw") == "(15-character value)"
