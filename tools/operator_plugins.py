"""Write an operator's plugin folder as documented, with checks, fixes and a log rule."""

from __future__ import annotations

from pathlib import Path

GREETING_CHECK = '''\
"""The greeting must be friendly."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, snapshot


@check(id="greeting", group="greetings", codes=["MY-GREETING"])
def greeting(probes: Probes) -> Iterator[Finding]:
    """Is the greeting friendly?"""
    path = probes.home / "greeting.txt"
    if snapshot(path).kind == "file" and path.read_bytes() == b"go away":
        yield Finding(
            code="MY-GREETING",
            severity=Severity.ERROR,
            title="greeting.txt is rude",
            subject="greeting.txt",
            evidence=(Evidence("greeting.txt:1", "it says go away"),),
            fix="be-friendly",
        )
'''
GREETING_FIX = '''\
"""Be friendly."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, ReplaceFile, Safety, Step, fix, snapshot


@fix(id="be-friendly", codes=["MY-GREETING"], safety=Safety.SAFE)
def be_friendly(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Replace the greeting by a friendly one."""
    path = probes.home / "greeting.txt"
    yield ReplaceFile(
        path, b"welcome", why="be friendly", expect=snapshot(path), before=path.read_bytes()
    )
'''
STAIN_CHECK = '''\
"""A stain that no fix removes."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Severity, check, snapshot


@check(id="stain", group="greetings", codes=["MY-STAIN"])
def stain(probes: Probes) -> Iterator[Finding]:
    """Is there a stain?"""
    if snapshot(probes.home / "stain.txt").kind == "file":
        yield Finding(
            code="MY-STAIN",
            severity=Severity.ERROR,
            title="there is a stain",
            subject="stain.txt",
            fix="wipe",
        )
'''
STAIN_FIX = '''\
"""Wipe the stain, which does not help."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, ReplaceFile, Safety, Step, fix, snapshot


@fix(id="wipe", codes=["MY-STAIN"], safety=Safety.SAFE)
def wipe(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Wipe the stain."""
    path = probes.home / "stain.txt"
    yield ReplaceFile(
        path, b"wiped", why="it is ugly", expect=snapshot(path), before=path.read_bytes()
    )
'''
RULES = """\
rules:
  - id: my-kettle-cold
    code: MY-KETTLE
    severity: error
    title: The kettle {name} is cold
    detail: Nobody gets tea. Switch it on.
    logger: my.kettle
    level: warning
    pattern: '^Kettle (?P<name>\\w+) is cold$'
    window: 2h
    examples:
      - '2026-11-15 00:35:09,004 WARNING my.kettle: Kettle blue is cold'
    near:
      - '2026-11-15 00:35:09,004 WARNING my.kettle: Kettle blue is warm'
"""
PAGE = "# {code}: {title}\n\n## What it is\n\nAn example.\n"
FILES = {
    "checks/greeting.py": GREETING_CHECK,
    "checks/stain.py": STAIN_CHECK,
    "fixes/be_friendly.py": GREETING_FIX,
    "fixes/wipe.py": STAIN_FIX,
    "signatures/kettle.yaml": RULES,
    "docs/failures/MY-GREETING.md": PAGE.format(code="MY-GREETING", title="rude"),
    "docs/failures/MY-KETTLE.md": PAGE.format(code="MY-KETTLE", title="cold"),
    "docs/failures/MY-STAIN.md": PAGE.format(code="MY-STAIN", title="a stain"),
}


def write(folder: Path) -> None:
    """Write the folder."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
