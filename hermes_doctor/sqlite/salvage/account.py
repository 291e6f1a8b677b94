"""Count saved and lost rows of a salvage per table, and describe the result in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hermes_doctor.message import count, sentences, text
from hermes_doctor.sqlite.salvage.partial_rows import PartialRows
from hermes_doctor.system.files import shown

FROM_FULLTEXT_COPIES = "the full-text copies"
FROM_INDEXES = "the indexes"
FROM_TRANSCRIPTS = "the transcripts"
ONLY_FITTING_VALUE = "the only value that fits"


@dataclass(frozen=True)
class TableResult:
    """The result of salvaging one table; each row is counted once."""

    name: str
    there: int
    """The original number of rows, as far as known: saved, restored, partial and lost."""
    saved: int
    """Rows read completely from the table's own pages."""
    restored: Mapping[str, int] = field(default_factory=dict)
    """By source: rows that were completed with its help."""
    partial: int = 0
    """Rows with some values lost or guessed."""
    lost: int = 0
    """Rows that are known to have existed and are not in the new database."""
    unsure: bool = False
    """More rows may be lost than are known: no complete index is left."""
    added: Mapping[str, int] = field(default_factory=dict)
    """By source: rows that only another file has; they may have been deleted since."""
    incomplete: tuple[str, ...] = ()
    """The rows in part and their fields, one sentence for each kind of loss."""

    @property
    def kept(self) -> int:
        """Rows in the new database."""
        told = self.saved + sum(self.restored.values()) + self.partial
        return told + sum(self.added.values())

    @property
    def sentence(self) -> str:
        """The result for this table in one line."""
        parts = [f"{self.saved:,} saved"]
        parts += [f"{rows:,} restored from {source}" for source, rows in self.restored.items()]
        parts += [f"{self.partial:,} in part"] if self.partial else []
        parts += [f"{self.lost:,} lost"] if self.lost else []
        template = "{table}: {results} of {rows}."
        if self.unsure:
            template = "{table}: {results} of at least {rows}."
        return sentences(
            text(
                template,
                table=shown([self.name]),
                results=", ".join(parts),
                rows=count(self.there, "row"),
            ),
            *(
                text(
                    "{number:,} more came from {source}. They may have been deleted earlier; no "
                    "record of that is left.",
                    number=rows,
                    source=source,
                )
                for source, rows in self.added.items()
            ),
        )


@dataclass(frozen=True)
class SalvageResult:
    """The result of salvaging a whole database."""

    tables: tuple[TableResult, ...]
    notes: tuple[str, ...] = ()
    """What else was found and done, one sentence each."""
    proofs: tuple[str, ...] = ()
    """The checks that the new database passed."""
    lost: tuple[str, ...] = ()
    """Tables, views and the like that are not in the new database, by kind and name."""

    def table(self, name: str) -> TableResult | None:
        """The result for one table."""
        return next((table for table in self.tables if table.name == name), None)

    @property
    def complete(self) -> bool:
        """Every row that there was is there again, as it was."""
        short = any(table.lost or table.partial or table.unsure for table in self.tables)
        return not (short or self.lost)

    @property
    def forecast(self) -> str:
        """What a trial run says will be lost, in one sentence; "" if nothing will be."""
        if self.complete:
            return ""
        wanted = self.table("messages")
        noun = "message" if wanted and wanted.there else "row"
        tables = (wanted,) if wanted and wanted.there else self.tables
        there = sum(one.there for one in tables)
        cut = sum(one.partial for one in tables)
        lost = sum(one.lost for one in tables)
        saved = there - cut - lost
        if any(one.unsure for one in tables):
            told = text(
                "Saves {saved}; {partial} in part; at least {lost} lost.",
                saved=count(saved, noun),
                partial=cut,
                lost=lost,
            )
        else:
            told = text(
                "Saves {saved} of {there}; {partial} in part; {lost} lost.",
                saved=f"{saved:,}",
                there=count(there, noun),
                partial=cut,
                lost=lost,
            )
        return sentences(told, *self._other_losses(tables), "The damaged file is kept.")

    def _other_losses(self, told: tuple[TableResult, ...]) -> Iterator[str]:
        """What is lost besides the rows of these tables, one sentence for each table."""
        for one in self.tables:
            if one in told or not (one.partial or one.lost):
                continue
            yield text(
                "{table}: {partial:,} in part; at least {lost:,} lost."
                if one.unsure
                else "{table}: {partial:,} in part; {lost:,} lost.",
                table=shown([one.name]),
                partial=one.partial,
                lost=one.lost,
            )
        if self.lost:
            # not their names: in a damaged schema, a name can be any bytes of the file
            yield text("Lost completely: {parts}.", parts=count(len(self.lost), "part"))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Everything, for people; no content of any row is in it."""
        told = [table.sentence for table in self.tables if table.there or table.added]
        rows = [one for table in self.tables for one in table.incomplete]
        return (*(f"Lost: {one}." for one in self.lost), *told, *rows, *self.notes)


@dataclass
class Tally:
    """The counters of one table while its rows are salvaged."""

    name: str
    saved: int = 0
    restored: dict[str, int] = field(default_factory=dict)
    partial: int = 0
    lost: int = 0
    unsure: bool = False
    added: dict[str, int] = field(default_factory=dict)
    incomplete: PartialRows = field(default_factory=PartialRows)

    def add(self, source: str) -> None:
        """Count a row that only another file has."""
        self.added[source] = self.added.get(source, 0) + 1

    def restore(self, source: str, count: int = 1) -> None:
        """Count rows that were completed from a source."""
        if count:
            self.restored[source] = self.restored.get(source, 0) + count

    def change(self, count: int, source: str = "") -> None:
        """Recount saved rows that were corrected from a source, or that lost a value."""
        count = min(count, self.saved)
        self.saved -= count
        if source:
            self.restore(source, count)
        else:
            self.partial += count

    def close(self) -> TableResult:
        """Return the final result."""
        there = self.saved + sum(self.restored.values()) + self.partial + self.lost
        return TableResult(
            self.name,
            there,
            self.saved,
            self.restored,
            self.partial,
            self.lost,
            self.unsure,
            self.added,
            tuple(self.incomplete.sentences(self.name)),
        )
