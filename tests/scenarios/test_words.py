"""The texts for people: whole sentences from templates, in plain words, and short."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.diagnosis.plugins import load
from tests.helpers.each import each
from tests.helpers.plain_words import refused_words, understated

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "checks").glob("*.py"), *(ROOT / "fixes").glob("*.py")])
ENGINE = sorted((ROOT / "hermes_doctor").rglob("*.py"))
TEXTS = ("title", "detail", "next")
RAISED = ("Trouble", "CannotFix", "Skip", "CouldNotLook")
PROMPTS = ("confirm", "prompt")
RETURNED = ("sentence", "_question")
"""Functions that return what a step does, or what a person is asked."""
LOADED = load.load()
LONGEST = 60
"""Characters of a title, with a typical value of eight for each place."""


def called(node: ast.Call) -> str:
    """The name of the function that is called."""
    function = node.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def shown(path: Path) -> Iterator[tuple[str, ast.expr]]:
    """The expressions that become texts for people, by what they are."""
    tree = ast.parse(path.read_text())
    assigned: dict[str, list[ast.expr]] = {}
    """By name: the constant strings that a variable of this name gets anywhere in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for name in (target.id for target in node.targets if isinstance(target, ast.Name)):
                assigned.setdefault(name, []).append(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in RETURNED:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return) and inner.value:
                    yield node.name, inner.value
        if not isinstance(node, ast.Call):
            continue
        if called(node) in ("Finding", "_replace"):
            for keyword in node.keywords:
                if keyword.arg in TEXTS:
                    yield keyword.arg, keyword.value
        elif called(node) in (*RAISED, *PROMPTS) and node.args:
            yield called(node), node.args[0]
            if isinstance(node.args[0], ast.Name):
                yield from ((called(node), text) for text in assigned.get(node.args[0].id, ()))


def texts(node: ast.expr) -> Iterator[str]:
    """The constant strings and templates in an expression; not those inside of values."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Call) and called(node) in ("text", "sentences"):
        for argument in node.args:
            yield from texts(argument)
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from texts(value)


def assembled(node: ast.expr) -> bool:
    """Whether a text is glued together: an f-string with values, or a sum, a format or a join."""
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(value, ast.FormattedValue) for value in node.values)
    if isinstance(node, ast.BinOp):
        return True
    if isinstance(node, ast.IfExp):
        return assembled(node.body) or assembled(node.orelse)
    if isinstance(node, ast.Call) and called(node) in ("text", "sentences"):
        return any(map(assembled, node.args))
    return isinstance(node, ast.Call) and called(node) in ("join", "format")


def glued(path: Path) -> list[str]:
    """The places of texts that are glued together."""
    return [
        f"{path.relative_to(ROOT)}:{value.lineno}: {kind}"
        for kind, value in shown(path)
        if assembled(value)
    ]


def unusual(path: Path) -> dict[str, list[str]]:
    """The texts with words that nobody says."""
    said = {text for _, value in shown(path) for text in texts(value)}
    return {text: words for text in said if (words := refused_words(text))}


@each(FILES)
def test_texts_are_templates(path: Path) -> None:
    """So that they can be translated, compared and counted."""
    assert glued(path) == []


@each(FILES)
def test_texts_are_plain(path: Path) -> None:
    """None has a word that nobody says."""
    assert unusual(path) == {}


def test_texts_of_the_engine_are_templates() -> None:
    """Its refusals, its steps and its questions, too."""
    assert [place for path in ENGINE for place in glued(path)] == []


def test_texts_of_the_engine_are_plain() -> None:
    """Its refusals, its steps and its questions, too."""
    assert {text: words for path in ENGINE for text, words in unusual(path).items()} == {}


@pytest.mark.parametrize(
    "source",
    [
        'raise Trouble(f"No backup {id}.")',
        'raise Trouble("No backup " + id)',
        'raise CannotFix(sentences("One.", f"No backup {id}."))',
        'raise Skip("No backup {id}.".format(id=id))',
        'raise CouldNotLook("No backup %s." % id)',
        'raise Trouble(" ".join(parts))',
        'confirm(f"Remove {count}?")',
        'def sentence(self):\n    return f"remove {self.path}"',
        'def _question(number):\n    return "Remove " + number',
    ],
)
def test_a_glued_text_is_found(
    tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests above see every way to build a text from fragments."""
    monkeypatch.setattr("tests.scenarios.test_words.ROOT", tmp_path)
    path = tmp_path / "one.py"
    path.write_text(source)

    assert len(glued(path)) == 1


@each(FILES)
def test_titles_are_short(path: Path) -> None:
    """A title fits on its line beside its code, and is not a sentence."""
    titles = [text for kind, value in shown(path) if kind == "title" for text in texts(value)]

    long = [one for one in titles if len(re.sub(r"\{[^}]*\}", "x" * 8, one)) > LONGEST]
    assert long == []
    assert [one for one in titles if one.endswith(".")] == []


def test_questions_and_titles_of_plugins_are_plain() -> None:
    """What `list` shows of each check and each fix."""
    said = {check.id: check.question for check in LOADED.checks}
    said |= {fix.id: fix.title for fix in LOADED.fixes}

    assert {id: words for id, one in said.items() if (words := refused_words(one))} == {}
    assert {id: one for id, one in said.items() if len(one) > 75} == {}


@pytest.mark.parametrize(
    ("severity", "said", "wrong"),
    [
        ("info", "Nobody on QQ gets an answer.", True),
        ("warning", "Nobody gets an answer.", True),
        ("warning", "Nobody gets an answer unless a service sets the key.", False),
        ("info", "Nobody gets an answer unless a service sets the key.", True),
        ("error", "Nobody gets an answer.", False),
        ("info", "The bot answers everybody.", False),
    ],
)
def test_what_silences_a_bot_is_an_error(severity: str, said: str, wrong: bool) -> None:
    """Every test that runs `check --json` asks this about every finding (see `support.check`)."""
    assert understated(severity, said) is wrong


def test_the_log_rules_agree() -> None:
    """A rule whose text says that people get no answer reports an error."""
    bad = {
        rule.id: f"{rule.title}. {rule.detail}"
        for rule in LOADED.rules
        if understated(rule.severity, f"{rule.title}. {rule.detail}")
    }

    assert bad == {}
