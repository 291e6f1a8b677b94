"""Find rows whose values differ from their index entries: the row may be the damaged one.

SQLite's check says "row missing from index" both when an index has lost an entry and when a value
of the row has changed. In the first case the index can be rebuilt. In the second it has the only
copy of the original value, and rebuilding it destroys that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hermes_doctor.lazy import pattern
from hermes_doctor.sqlite.catalog import Catalog, SchemaRow
from hermes_doctor.sqlite.column_rules import quote_name
from hermes_doctor.sqlite.reader import Reader

_PARTIAL = pattern(r"\)\s*WHERE\s+(.+)$", re.IGNORECASE | re.DOTALL)


def count_contradictions(
    reader: Reader, catalog: Catalog, indexes: Iterable[str], seconds: float | None
) -> dict[str, int]:
    """Count, for each table, the rows whose value differs from an index entry."""
    found: dict[str, int] = {}
    wanted = set(indexes)
    for entry in catalog.entries:
        if entry.kind == "index" and entry.name in wanted:
            count = _differing(reader, entry, seconds)
            if count:
                found[entry.table] = max(count, found.get(entry.table, 0))
    return found


def _differing(reader: Reader, index: SchemaRow, seconds: float | None) -> int:
    """Count rows that the index has by rowid, but with other values."""
    parts = reader.ask(f"PRAGMA index_xinfo({quote_name(index.name)})", seconds)
    keys = [part for part in parts.rows if part[5]]
    if parts.error or not keys or any(part[1] == -2 or not part[2] for part in keys):
        return 0  # an index of expressions has no values to compare
    names = [quote_name(str(part[2])) for part in keys]
    partial = _PARTIAL.search(index.sql)
    where = f" WHERE {partial[1]}" if partial else ""
    known = ", ".join(f"{name} AS k{number}" for number, name in enumerate(names))
    differs = " OR ".join(f"o.{name} IS NOT i.k{number}" for number, name in enumerate(names))
    table = quote_name(index.table)
    answer = reader.ask(
        f"SELECT count(*) FROM (SELECT rowid AS r, {known} FROM {table} "
        f"INDEXED BY {quote_name(index.name)}{where}) AS i CROSS JOIN {table} AS o NOT INDEXED "
        f"ON o.rowid = i.r WHERE {differs}",
        seconds,
    )
    return int(answer.rows[0][0]) if answer.rows and not answer.error else 0
