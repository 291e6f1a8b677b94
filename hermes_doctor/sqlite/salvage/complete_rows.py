"""Complete partial and lost rows from indexes, full-text copies, older copies and transcripts."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.pages import LOST, LostValue, ReplacedText, Row, Value
from hermes_doctor.sqlite.salvage import account
from hermes_doctor.sqlite.salvage.account import (
    FROM_FULLTEXT_COPIES,
    FROM_INDEXES,
    FROM_TRANSCRIPTS,
    TableResult,
)
from hermes_doctor.sqlite.salvage.assign_pages import AssignedPages, OrphanJudge
from hermes_doctor.sqlite.salvage.index_evidence import IndexEvidence, contains
from hermes_doctor.sqlite.salvage.layouts import Layout
from hermes_doctor.sqlite.salvage.load import LoadedTable
from hermes_doctor.sqlite.salvage.older_copies import OlderCopies, SessionMessage, Transcripts
from hermes_doctor.sqlite.salvage.survey import Survey, decode
from hermes_doctor.sqlite.salvage.target import NewDatabase
from hermes_doctor.sqlite.salvage.trees import FulltextCopies

PLACEHOLDERS: Mapping[str, Mapping[str, Value]] = {
    "sessions": {"source": "recovered", "started_at": 0},
}
"""Placeholder values for a row of which only references to it are left."""


def has_required_values(layout: Layout, known: Mapping[str, Value]) -> bool:
    """Whether these values are enough for a row, without inventing any."""
    return all(
        known.get(column.name) is not None
        for place, column in enumerate(layout.columns)
        if place != layout.rowid_column
        and (column.key or (column.notnull and column.default is None))
    )


PARTS = re.compile(r"(?P<content>.*) (?P<tool_name>\S*) (?P<tool_calls>\[\{.*\}\])?", re.DOTALL)


def message_from_text(text: str) -> dict[str, Value]:
    """Parse a message from its full-text copy: content, tool name and tool calls in one text."""
    parts = PARTS.fullmatch(text)
    content = parts["content"] if parts else text
    tool = (parts["tool_name"] or None) if parts else None
    calls = parts["tool_calls"] if parts else None
    role = "assistant" if calls else "tool" if tool else "user"
    return {"role": role, "content": content, "tool_name": tool, "tool_calls": calls}


def list_doubtful(
    loaded: LoadedTable,
    survey: Survey,
    texts: FulltextCopies | None,
    facts: Callable[[set[int]], Mapping[int, Mapping[str, Value]]],
) -> None:
    """List the rows that were read first, unless an index confirms them.

    The row that claims a page second is cut before it.
    """
    leaves = {leaf.page for leaf in loaded.pages.tree.leaves}
    rows: dict[int, Row] = {}
    for mark in set(survey.disputed.values()):
        if mark >> 16 in leaves:
            row = decode(survey.cell(mark >> 16, mark & 0xFFFF))
            if row is not None and row.whole and not (texts is not None and texts.agree(row)):
                rows[row.rowid] = row
    known = facts(set(rows)) if rows else {}
    layout = loaded.pages.layout
    for rowid, row in sorted(rows.items()):
        if not _confirmed(layout.names, row, known.get(rowid, {})):
            loaded.tally.change(1)
            key = account.key_of(layout, row)
            columns = account.last_columns(layout, row)
            loaded.tally.incomplete.add(account.DOUBTFUL, columns, key)


def _confirmed(names: tuple[str, ...], row: Row, facts: Mapping[str, Value]) -> bool:
    """Whether an index has the same numbers as the row; they are behind its text."""
    comparisons = [
        row.values[place] == facts[name]
        for place, name in enumerate(names[: len(row.values)])
        if name in facts and row.kinds[place] == 7
    ]
    return bool(comparisons) and all(comparisons)


Facts = dict[int, dict[str, Value]]
MOST = 300_000
"""The most lost rows of a table that are searched for."""


@dataclass
class RowCompleter:
    """Completes one table after the other, after their readable rows were loaded."""

    forest: AssignedPages
    target: NewDatabase
    texts: Mapping[str, FulltextCopies]
    older_copies: OlderCopies
    transcripts: Transcripts
    tallies: dict[str, TableResult] = field(default_factory=dict)
    transcribed: int = 0
    """Messages whose text came from a transcript."""
    withheld: int = 0
    """Rows that an index names but that the table's own sound pages do not have."""

    @property
    def survey(self) -> Survey:
        """The pages of the damaged database."""
        return self.forest.survey

    def tally(self, name: str) -> TableResult:
        """The counters of one table."""
        return self.tallies.setdefault(name, TableResult(name))

    def complete_table(self, loaded: LoadedTable) -> None:
        """Add the rows of one table that can be completed or rebuilt, and count the lost ones."""
        self.tallies[loaded.name] = loaded.tally
        if self.survey.disputed and loaded.name not in self.target.extra:
            known = partial(self._facts, self.forest.evidence(loaded.name))
            texts = self.texts.get(loaded.name)
            list_doubtful(loaded, self.survey, texts, known)
        if not (loaded.pages.damaged or loaded.pending or loaded.broken):
            return
        name = loaded.name
        witness = self.forest.evidence(name)
        present = self._present(name)
        begun = array("q", sorted(row.rowid for row in loaded.pending))
        gone = self._gone(loaded, witness, present, begun)
        facts = self._facts(witness, {*gone, *begun})
        for row in loaded.pending:
            self._complete(loaded, row, facts.get(row.rowid, {}))
        gone = self._from_others(loaded, gone, facts)
        if self.transcripts.paths and "role" in self.target.layouts[name].names:
            gone = self._from_transcripts(loaded, gone, facts)
        self._rebuild(loaded, gone, facts)
        if not witness.whole:
            loaded.tally.unsure = bool(loaded.pages.tree.gaps)

    def _present(self, name: str) -> array[int]:
        rows = self.target.database.execute(f"SELECT rowid FROM {quote_name(name)} ORDER BY rowid")
        return array("q", (row[0] for row in rows))

    def _gone(
        self, loaded: LoadedTable, witness: IndexEvidence, present: array[int], begun: array[int]
    ) -> list[int]:
        """The rowids of rows that existed and are not in the new database.

        An index entry is not enough: it may be older than the table's page, for example after an
        interrupted checkpoint. The row must also belong on a damaged page.
        """
        broken = set(loaded.broken)
        gone = []
        for rowid in witness.rowids:
            if contains(present, rowid) or contains(begun, rowid):
                continue
            if loaded.pages.tree.lost(rowid) or rowid in broken:
                gone.append(rowid)
            else:
                self.withheld += 1
        gone += [
            rowid
            for rowid in broken.difference(gone)
            if not (contains(present, rowid) or contains(begun, rowid) or witness.denies(rowid))
        ]
        loaded.tally.lost += max(0, len(gone) - MOST)
        return gone[:MOST]

    def _facts(self, witness: IndexEvidence, wanted: set[int]) -> Facts:
        """By rowid: the values of these rows that the indexes contain."""
        facts: Facts = {}
        for index in witness.indexes if wanted else ():
            for values, rowid in witness.entries(index):
                if rowid in wanted:
                    known = facts.setdefault(rowid, {})
                    for column, value in zip(index.columns, values, strict=True):
                        if not isinstance(value, LostValue | ReplacedText):
                            known.setdefault(column, value)
        return facts

    def _complete(self, loaded: LoadedTable, row: Row, facts: Mapping[str, Value]) -> None:
        """Complete a truncated row: texts from a full-text copy, the rest from indexes or files."""
        layout = loaded.pages.layout
        texts = self.texts.get(loaded.name)
        source = FROM_FULLTEXT_COPIES if texts is not None and texts.complete(row) else ""
        for place, value in enumerate(row.values):
            column = layout.columns[place].name
            if value is LOST and column in facts:
                row.values[place] = facts[column]
                source = source or FROM_INDEXES
        if LOST in row.values:
            source = self.older_copies.complete(layout, row) or source
        whole = LOST not in row.values
        losses = {} if whole else account.keep_beginning(layout, row)
        values = loaded.shape.values(row)
        if not self.target.insert(loaded.name, loaded.shape.columns, [values]):
            return  # already loaded from a better page
        if whole:
            loaded.tally.restore(source or FROM_INDEXES)
        else:
            loaded.tally.partial += 1
        for kind, columns in losses.items():
            loaded.tally.incomplete.add(kind, columns, account.key_of(layout, row))

    def _from_others(self, loaded: LoadedTable, gone: list[int], facts: Facts) -> list[int]:
        """Restore lost rows from the newest other file that has them; return those still lost."""
        if not self.older_copies.sources:
            return gone
        left = []
        for rowid in gone:
            source = self._take(loaded, rowid, facts.get(rowid, {}))
            if source:
                loaded.tally.restore(source)
            else:
                left.append(rowid)
        if not self.forest.evidence(loaded.name).whole:
            judge = self.forest.orphan_judge(loaded.name)
            for rowid in list(self._unnamed(loaded, set(gone))):
                source = self._take(loaded, rowid, {}, judge)
                if source:
                    loaded.tally.added[source] += 1
        return left

    def _take(
        self,
        loaded: LoadedTable,
        rowid: int,
        facts: Mapping[str, Value],
        judge: OrphanJudge | None = None,
    ) -> str:
        """Restore one row from another file, unless it or a row it refers to was deleted.

        Returns the name of the source; empty if there is none.
        """
        older_row = self.older_copies.row(self.target.layouts[loaded.name], rowid, facts)
        if older_row is None:
            return ""
        values, source = older_row
        if self._severed(loaded.name, values) or (judge and judge.denies(rowid, values)):
            return ""
        return source if self._insert(loaded.name, values, rowid) else ""

    def _severed(self, name: str, values: Mapping[str, Value]) -> bool:
        """Whether a row refers to a deleted one: a row that its sound table does not have."""
        for child, parent, column in self.target.foreign_keys(name):
            value = values.get(child)
            if value is None or self.forest.tables[parent].damaged:
                continue
            sql = f"SELECT 1 FROM {quote_name(parent)} WHERE {quote_name(column)} = ?"
            if not self.target.database.execute(sql, (value,)).fetchone():
                return True
        return False

    def _unnamed(self, loaded: LoadedTable, gone: set[int]) -> Iterator[int]:
        """Rows of other files that belong on a lost page and that no index can confirm."""
        layout = self.target.layouts[loaded.name]
        if not loaded.pages.has_root or layout.rowid_column is None:
            return
        present = self._present(loaded.name)
        witness = self.forest.evidence(loaded.name)
        for rowid in self.older_copies.rowids(layout):
            if (
                rowid not in gone
                and loaded.pages.tree.lost(rowid)
                and not contains(present, rowid)
                and not witness.denies(rowid)
            ):
                yield rowid

    def _from_transcripts(self, loaded: LoadedTable, gone: list[int], facts: Facts) -> list[int]:
        """Restore lost messages by their position in the transcript of their session."""
        talks: dict[str, list[int]] = {}
        for rowid in gone:
            session = facts.get(rowid, {}).get("session_id")
            if isinstance(session, str) and session in self.transcripts.paths:
                talks.setdefault(session, []).append(rowid)
        if not talks:
            return gone
        table, database = quote_name(loaded.name), self.target.database
        database.execute(f"CREATE INDEX salvage_talks ON {table}(session_id)")
        here = self.target.layouts[loaded.name].names
        restored = set()
        for session, rowids in talks.items():
            rows = database.execute(
                f"SELECT rowid, role, content FROM {table} WHERE session_id = ?", (session,)
            )
            entries = [SessionMessage(*row) for row in rows] + list(map(SessionMessage, rowids))
            entries.sort(key=lambda entry: entry.id)
            messages, exact = self.transcripts.lost(session, entries)
            for rowid, values in messages.items():
                known = {**values, **facts[rowid]}
                known = {name: value for name, value in known.items() if name in here}
                if not self._insert(loaded.name, known, rowid):
                    continue
                restored.add(rowid)
                if exact and known.get("timestamp") is not None:
                    loaded.tally.restore(FROM_TRANSCRIPTS)
                else:
                    self._count_partial(loaded, known, rowid)
                    self.transcribed += 1
        database.execute("DROP INDEX salvage_talks")
        return [rowid for rowid in gone if rowid not in restored]

    def _rebuild(self, loaded: LoadedTable, gone: Iterable[int], facts: Facts) -> None:
        """Rebuild rows from their index entries and the full-text copy of their text."""
        layout = self.target.layouts[loaded.name]
        texts = self.texts.get(loaded.name)
        for rowid in gone:
            known: dict[str, Any]
            known = {**PLACEHOLDERS.get(loaded.name, {}), **facts.get(rowid, {})}
            text = texts.text(rowid) if texts is not None else None
            if texts is not None:
                if text is None or not known:
                    loaded.tally.lost += 1
                    continue
                there = {name: value for name, value in known.items() if value is not None}
                known = {**message_from_text(text), **there}
            if has_required_values(layout, known) and self._insert(loaded.name, known, rowid):
                self._count_partial(loaded, known, rowid)
            else:
                loaded.tally.lost += 1

    def _count_partial(self, loaded: LoadedTable, known: Mapping[str, Any], rowid: int) -> None:
        """Count a row that was rebuilt from some of its values, and list these."""
        layout = self.target.layouts[loaded.name]
        loaded.tally.partial += 1
        columns = [name for name in layout.names if known.get(name) is not None]
        key = account.key_in(layout, known, rowid)
        loaded.tally.incomplete.add(account.LEFT, columns, key)

    def _insert(self, table: str, values: Mapping[str, Any], rowid: int) -> bool:
        """Insert a row with its old rowid; False if that is in use."""
        row = {"rowid": rowid, **values}
        return bool(self.target.insert(table, list(row), [list(row.values())]))
