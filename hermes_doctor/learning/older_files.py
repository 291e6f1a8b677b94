"""Write the statements that create databases as older releases left them.

A release that opens such a file adds what is new at the end of a table, and may keep an older
search index. So the files that it works on differ from those that it creates. The lesson about
schemas lets the release upgrade one file of each kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes_doctor.knowledge import atlas
from hermes_doctor.knowledge.releases import parse_release
from hermes_doctor.sqlite.blueprint import Blueprint, TableBlueprint

_PARTS = re.compile(r"(?:[^,()']|'(?:[^']|'')*'|\((?:[^()]|\([^()]*\))*\))+")


def older_files(version: str) -> dict[str, list[list[str]]]:
    """Return by database the statements for each kind of file that older releases left."""
    return {
        database: [*_distinct(database, parse_release(version))] for database in atlas.DATABASES
    }


def _distinct(database: str, version: tuple[int, ...]) -> Iterator[list[str]]:
    seen = set()
    for release in atlas.releases(database):
        plan = atlas.blueprint(database, release)
        if plan is None or parse_release(release) >= version:
            continue
        for statements in _variants(plan):
            key = tuple(statements)
            if key not in seen:
                seen.add(key)
                number = f"INSERT INTO schema_version VALUES ({plan.version})"
                yield [*statements, *([number] if plan.version is not None else [])]


def _variants(plan: Blueprint) -> Iterator[list[str]]:
    """Yield the file as declared, with each order of columns, and with an older search index."""
    longest = max((len(table.orders) for table in plan.tables.values()), default=1)
    for place in range(longest):
        yield _statements(plan, place)
    kept = {name: plan.earlier[name][-1] for name in plan.virtual if plan.earlier.get(name)}
    if kept:
        yield _statements(plan.with_earlier(kept), 0)


def _statements(plan: Blueprint, place: int) -> list[str]:
    tables = [
        _reordered(table, table.orders[place]) if place < len(table.orders) else table.sql
        for table in plan.tables.values()
    ]
    parts = (plan.indexes, plan.views, plan.virtual, plan.triggers)
    return [*tables, *(sql for part in parts for sql in part.values())]


def _reordered(table: TableBlueprint, order: tuple[str, ...]) -> str:
    """Return the statement with the columns in another order."""
    sql = re.sub(r"--[^\n]*", "", table.sql)
    start, end = sql.index("("), sql.rindex(")")
    parts = [part.strip() for part in _PARTS.findall(sql[start + 1 : end]) if part.strip()]
    named = {part.split()[0].strip('"`[]'): part for part in parts}
    columns = [named[name] for name in order]
    rest = [part for part in parts if part not in columns]
    return f"{sql[:start]}({', '.join([*columns, *rest])}){sql[end + 1 :]}"
