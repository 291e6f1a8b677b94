"""Write docs/codes.md, the table of all codes: `make generate`."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.plugins.load import Plugins

DOCS = Path(__file__).parent.parent / "docs"
TARGET = DOCS / "codes.md"
LOGS = "logs"
"""The group of what is found by log rules; a code that a check also finds is not listed there."""
HEAD = """\
# All codes

<!-- Written by `make generate` from the checks, the fixes and docs/failures. Do not edit. -->

hermes-doctor knows {codes} codes and has fixes for {fixable} of them. `hermes-doctor explain CODE`
prints the page of a code, and `hermes-doctor fix CODE` shows what its fix would do.

The headings are the groups of checks: `hermes-doctor check --only GROUP` runs one group. The group
`{logs}` has the codes that only [log rules](log-rules.md) report. Where no fix is named, the page
says what to do by hand. Where several are named, the one that suits the finding is used.
"""


def table(plugins: Plugins) -> str:
    """Return the text of docs/codes.md."""
    groups: dict[str, str] = {}
    for check in sorted(plugins.checks, key=lambda one: one.group == LOGS):
        for code in check.codes:
            groups.setdefault(code, check.group)
    fixes = {code: [fix.id for fix in plugins.fixes if code in fix.codes] for code in groups}
    fixable = sum(map(bool, fixes.values()))
    parts = [HEAD.format(codes=len(groups), fixable=fixable, logs=LOGS)]
    for group in sorted(set(groups.values())):
        parts.append(f"\n## {group}\n\n| code | problem | fix |\n| --- | --- | --- |\n")
        parts += [
            f"| [`{code}`](failures/{code}.md) | {symptom(code)} | {_names(fixes[code])} |\n"
            for code in sorted(code for code, own in groups.items() if own == group)
        ]
    return "".join(parts)


def symptom(code: str) -> str:
    """Return the problem in a few words: the heading of the code's page."""
    with (DOCS / "failures" / f"{code}.md").open(encoding="utf-8") as page:
        return page.readline().strip().removeprefix(f"# {code}: ")


def _names(fixes: list[str]) -> str:
    return ", ".join(f"`{id}`" for id in fixes)


def main() -> None:
    """Write the table."""
    TARGET.write_text(table(load.load()), encoding="utf-8")
    print(f"wrote {TARGET.name}")


if __name__ == "__main__":
    main()
