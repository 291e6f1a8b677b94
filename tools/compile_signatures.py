"""Check and compile the log rules that come with the tool: `make signatures`."""

from __future__ import annotations

import sys
from pathlib import Path

from hermes_doctor.plugins.log_causes import tables
from hermes_doctor.plugins.log_rules import folder

RULES = Path(__file__).parent.parent / "checks" / "signatures"


def main() -> int:
    """Print what is wrong, or write the compiled rules."""
    written = folder.read_source(RULES)
    causes = tables.read_source(RULES)
    faults = (*written.faults, *causes.faults)
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        return 1
    (RULES / folder.COMPILED).write_text(folder.compile_rules(written), encoding="utf-8")
    (RULES / tables.COMPILED).write_text(tables.compile_tables(causes), encoding="utf-8")
    codes = sorted({*written.codes, *tables.codes(causes)})
    (RULES / folder.CODES).write_text("\n".join(codes) + "\n", encoding="ascii")
    number = f"{len(written.explanations)} explanations, {len(causes.causes)} causes"
    print(f"{len(written.rules)} rules, {len(codes)} codes, {number}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
