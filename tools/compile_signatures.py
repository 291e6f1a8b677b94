"""Check and compile the log rules that come with the tool: `make signatures`."""

from __future__ import annotations

import sys
from pathlib import Path

from hermes_doctor.plugins.log_rules import folder

RULES = Path(__file__).parent.parent / "checks" / "signatures"


def main() -> int:
    """Print what is wrong, or write the compiled rules."""
    written = folder.read_source(RULES)
    for fault in written.faults:
        print(fault, file=sys.stderr)
    if written.faults:
        return 1
    (RULES / folder.COMPILED).write_text(folder.compile_rules(written), encoding="utf-8")
    (RULES / folder.CODES).write_text("\n".join(written.codes) + "\n", encoding="ascii")
    number = len(written.explanations)
    print(f"{len(written.rules)} rules, {len(written.codes)} codes, {number} explanations")
    return 0


if __name__ == "__main__":
    sys.exit(main())
