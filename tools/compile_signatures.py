"""Check and compile the log rules and causes that come with the tool: `make signatures`."""

from __future__ import annotations

import sys
from pathlib import Path

from hermes_doctor.plugins.log_causes import tables
from hermes_doctor.plugins.log_rules import folder

RULES = Path(__file__).parent.parent / "checks" / "signatures"


def main() -> int:
    """Print what is wrong, or write the compiled rules."""
    written = folder.read_source(RULES)
    known = tables.read_source(RULES)
    for fault in (*written.faults, *known.faults):
        print(fault, file=sys.stderr)
    if written.faults or known.faults:
        return 1
    (RULES / folder.COMPILED).write_text(folder.compile_rules(written), encoding="utf-8")
    (RULES / tables.COMPILED).write_text(tables.compile_tables(known), encoding="utf-8")
    codes = sorted({*written.codes, *tables.codes(known)})
    (RULES / folder.CODES).write_text("\n".join(codes) + "\n", encoding="ascii")
    print(f"{len(written.rules)} rules, {len(codes)} codes, {len(known.causes)} causes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
