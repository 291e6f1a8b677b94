"""The examples of docs/ print what the pages show, and each command has one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tools import examples
from tools.examples import Example
from tools.share import command_tree
from tools.share.command_tree import NAME, Command

PAGES = sorted(examples.DOCS.glob("*.md"))
EXAMPLES = [example for page in PAGES for example in examples.examples(page)]


def _parameter(example: Example) -> ParameterSet:
    marks = [pytest.mark.needs(example.needs)] if example.needs else []
    return pytest.param(example, id=str(example), marks=marks)


@pytest.mark.sampled
@pytest.mark.parametrize("example", [_parameter(one) for one in EXAMPLES])
def test_example(example: Example) -> None:
    """The commands of a block print what it shows, apart from ids, times and sizes."""
    assert examples.steady(examples.run(example)) == examples.steady(example.text), (
        "run `make examples`, and look at the difference"
    )


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(one, id=" ".join(one.path))
        for one in command_tree.read().walk()
        if one.path and one.callable
    ],
)
def test_every_command_has_an_example(command: Command) -> None:
    """Add a section with an example to a page; `tools/examples.py` says how."""
    typed = [line for example in EXAMPLES for line in example.commands]

    assert any(_calls(command, line) for line in typed)


def _calls(command: Command, line: str) -> bool:
    """Whether a line calls this command, and not one below it."""
    words = line.split("|")[0].split()
    length = len(command.path) + 1
    below = {one.path[-1] for one in command.commands}
    return words[:length] == [NAME, *command.path] and not {*words[length:]} & below


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks(page: Path) -> None:
    """Each block with a prompt is an example that is tested, or has a test of its own."""
    text = examples.BLOCK.sub("", page.read_text())
    blocks = re.findall(r"^```(?:console)?\n\$ (.*)\n", text, re.MULTILINE)

    elsewhere = (
        f"{NAME} check --format nagios",
        f"{NAME} history",
    )
    assert [one for one in blocks if not one.startswith(elsewhere)] == []


def test_the_index_leads_to_every_page() -> None:
    """From docs/README.md, each page of docs/ is one click away, and README.md leads to it."""
    index = (examples.DOCS / "README.md").read_text()

    for page in PAGES:
        assert page.name == "README.md" or f"({page.name}" in index, page.name
    assert "(docs/README.md)" in (examples.DOCS.parent / "README.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links(page: Path) -> None:
    """Links between pages lead to files and headings that exist."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in link:
            continue
        name, _, heading = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not heading or heading in _anchors(target), link


def _anchors(page: Path) -> set[str]:
    """The names of the headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("took 0.3 s", "took 12 s", True),
        ("backup 20261117-163631-04726", "backup 20260102-030405-abcde", True),
        ("a line that\n  wraps", "a line\n  that wraps", True),
        ("Tuesday, Nov 17 2026", "Friday, Jan 1 2027", True),
        ("5 files", "6 files", False),
        ("check", "checks", False),
    ],
)
def test_what_does_not_count(one: str, other: str, same: bool) -> None:
    """Ids, times and line breaks may differ; words and counts may not."""
    assert (examples.steady(one) == examples.steady(other)) is same
