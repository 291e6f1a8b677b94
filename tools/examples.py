"""Run the examples of docs/ and write what they print: `make examples`.

An example is a block of commands with their output, marked in the line before it:

    <!-- example: SCENE -->              or  <!-- example: SCENE, needs PROGRAM -->
    ```console
    $ hermes-doctor explain ENV-BOM

A scene is a machine of tests/helpers/example_scenes.py; all commands of a block run on one machine.
In a new command, @1 is the first id that was printed before it: of a run, a backup or an update.
What differs from run to run (ids, times, sizes) does not count when outputs are compared.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.helpers import example_scenes
from tests.helpers.terminal_screen import DURATION, PROCESS, RUN_ID, last_screen

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(
    r"^<!-- example: (?P<scene>[a-z]+)(?:, needs (?P<needs>[a-z]+))? -->\n"
    r"```console\n(?P<text>.*?)^```\n",
    re.MULTILINE | re.DOTALL,
)
_PROGRESS = re.compile(r"^ .* …\n", re.MULTILINE)
"""Lines that say what a command is doing."""
_VARIES = (
    (RUN_ID, "ID"),
    (re.compile(r"\b[A-Z][a-z]+day, [A-Z][a-z]{2} \d{1,2} \d{4}\b"), "DATE"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b|\b[A-Z][a-z]{2} \d{1,2}\b"), "DATE"),
    (re.compile(r"\b\d\d:\d\d(?::\d\d)?\b"), "TIME"),
    (DURATION, "TIME"),
    (re.compile(r"\b\d+(?:\.\d+)? (?:bytes|KB|MB)\b"), "SIZE"),
    (PROCESS, "process N"),
    (re.compile(r"\bjust now\b|\bTIME ago\b"), "TIME"),
    (re.compile(r"\b[0-9a-f]{7,40}\b"), "HASH"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True)
class Example:
    """A block of a page."""

    page: Path
    scene: str
    needs: str | None
    text: str

    @property
    def commands(self) -> list[str]:
        """Its commands."""
        return [command for command, _ in parts(self.text)]

    def __str__(self) -> str:
        """The page and the first command, to tell it from others."""
        return f"{self.page.stem}: {self.commands[0].removeprefix('hermes-doctor ')}"


def examples(page: Path) -> list[Example]:
    """The examples of a page."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Example(page, one["scene"], one["needs"], one["text"]) for one in found]


def parts(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a block, each with its output."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def run(example: Example) -> str:
    """Run the commands of a block, and return the block as it should be."""
    made = []
    shown_ids: dict[str, str] = {}
    """The real id for each id on the page."""
    seen: list[str] = []
    with example_scenes.machine(example.scene) as machine:
        for command, output in parts(example.text):
            typed = _with_real_ids(command, seen, shown_ids)
            shown = last_screen(["bash", "-c", typed], machine.env, machine.user)
            shown = _PROGRESS.sub("", shown).lstrip("\n")
            shown = shown.replace(sys.executable, example_scenes.PYTHON)
            shown = shown.replace(str(machine.user), example_scenes.SHOWN)
            shown_ids |= zip(_ids(output), _ids(shown), strict=False)
            seen += [one for one in _ids(shown) if one not in seen]
            made.append(f"$ {typed}\n{shown}")
    return "".join(made)


def _with_real_ids(command: str, seen: list[str], shown: Mapping[str, str]) -> str:
    command = re.sub(r"@(\d)\b", lambda found: seen[int(found[1]) - 1], command)
    return RUN_ID.sub(lambda found: shown.get(found[0], found[0]), command)


def _ids(text: str) -> list[str]:
    return list(dict.fromkeys(RUN_ID.findall(text)))


def steady(text: str) -> str:
    """The text without what differs from run to run, and without line breaks."""
    for pattern, instead in _VARIES:
        text = pattern.sub(instead, text)
    return text


def main() -> None:
    """Run all examples, or those whose name has a word; write the ones that changed."""
    for page in sorted(DOCS.glob("*.md")):
        for example in examples(page):
            if not any(word in str(example) for word in sys.argv[1:] or [""]):
                continue
            made = run(example)
            if steady(made) != steady(example.text):
                text = page.read_text(encoding="utf-8")
                page.write_text(text.replace(example.text, made, 1), encoding="utf-8")
                print(f"wrote {example}")


if __name__ == "__main__":
    main()
