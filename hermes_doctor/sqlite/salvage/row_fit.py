"""Score how well a record fits a table, to assign pages that no b-tree points to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hermes_doctor.sqlite.cells import LOST, Row
from hermes_doctor.sqlite.salvage.catalog import Layout

ROLES = frozenset(
    {"user", "assistant", "tool", "system", "developer", "function", "session_meta", "unknown"}
)
FLAGS = frozenset({"active", "observed", "compacted", "archived", "expiry_finalized"})
JSON = frozenset(
    {"tool_calls", "model_config", "reasoning_details", "codex_reasoning_items",
     "codex_message_items", "skills"}
)  # fmt: skip
EPOCH = (1_000_000_000, 4_000_000_000)


def fits_affinity(declared: str, kind: int) -> bool:
    """Whether a column of this declared type stores values of this serial type."""
    if kind == 0 or not declared or declared == "BLOB":
        return True
    if "INT" in declared:
        return kind in (1, 2, 3, 4, 5, 6, 8, 9)
    if "CHAR" in declared or "TEXT" in declared or "CLOB" in declared:
        return kind >= 13 and kind % 2 == 1
    if declared in ("REAL", "FLOAT", "DOUBLE"):
        return kind <= 9
    return True


def fits(layout: Layout, row: Row) -> bool:
    """Whether a record can be a row of this table, by column count, types and NULLs."""
    columns, kinds = layout.columns, row.kinds
    if not kinds or len(kinds) > len(columns):
        return False
    if len(kinds) < len(columns):
        if len(kinds) < 2:
            return False
        if any(c.notnull and c.default is None for c in columns[len(kinds) :]):
            return False
    for place, kind in enumerate(kinds):
        column = columns[place]
        if place == layout.rowid_column:
            if kind:
                return False
        elif (kind == 0 and (column.notnull or column.key)) or not fits_affinity(column.type, kind):
            return False
    return True


def score(layout: Layout, row: Row) -> int:
    """Points for the record being a row of this table; 0 if it cannot be."""
    if not fits(layout, row):
        return 0
    points = 1
    for place, value in enumerate(row.values):
        if value is None or value is LOST:
            continue
        name = layout.columns[place].name
        points += 1
        if name == "role":
            if value not in ROLES:
                return 0
            points += 3
        elif name.endswith("_at") or name == "timestamp":
            if not isinstance(value, int | float) or not EPOCH[0] < value < EPOCH[1]:
                return 0
            points += 3
        elif name.endswith("_json") or name in JSON:
            if not isinstance(value, str) or value[:1] not in ("[", "{"):
                return 0
            points += 3
        elif name in FLAGS:
            if value not in (0, 1):
                return 0
            points += 1
    return points


def best_tables(layouts: Iterable[Layout], rows: Sequence[Row]) -> list[str]:
    """The tables that 80 % of these rows fit, closest in the number of columns."""
    if not rows:
        return []
    fitting = [
        layout for layout in layouts if 5 * sum(score(layout, r) > 0 for r in rows) >= 4 * len(rows)
    ]
    if not fitting:
        return []
    slack = {layout.name: abs(len(layout.columns) - len(rows[0].kinds)) for layout in fitting}
    least = min(slack.values())
    return [layout.name for layout in fitting if slack[layout.name] == least]
