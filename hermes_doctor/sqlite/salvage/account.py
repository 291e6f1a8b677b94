"""Count saved and lost rows of a salvage per table, and describe the result in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hermes_doctor.core.message import count, sentences, text
from hermes_doctor.core.system.files import shown
from hermes_doctor.sqlite.salvage.partial_rows import PartialRows

FROM_FULLTEXT_COPIES = "the full-text copies"
FROM_INDEXES = "the indexes"
FROM_TRANSCRIPTS = "the transcripts"
ONLY_FITTING_VALUE = "the only value that fits"


@dataclass
class TableResult:
    """The rows of one table, counted while they are salvaged; each is counted once."""

    name: str
    saved: int = 0
    """Rows read completely from the table's own pages."""
    restored: dict[str, int] = field(default_factory=dict)
    """By source: rows that were completed with its help."""
    partial: int = 0
    """Rows with some values lost or guessed."""
    lost: int = 0
    """Rows that are known to have existed and are not in the new database."""
    unsure: bool = False
    """More rows may be lost than are known: no complete index is left."""
    added: dict[str, int] = field(default_factory=dict)
    """By source: rows that only another file has; they may have been deleted since."""
    incomplete: PartialRows = field(default_factory=PartialRows)
    """The rows in part and their fields."""

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

    @property
    def there(self) -> int:
        """The original number of rows, as far as known."""
        return self.saved + sum(self.restored.values()) + self.partial + self.lost

    @property
    def kept(self) -> int:
        """Rows in the new database."""
        return self.there - self.lost + sum(self.added.values())

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
    def has_rows(self) -> bool:
        """Whether any row was saved; every release knows its own schema version."""
        return any(table.kept for table in self.tables if table.name != "schema_version")

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
        there = sum(table.there for table in tables)
        cut = sum(table.partial for table in tables)
        lost = sum(table.lost for table in tables)
        saved = there - cut - lost
        if any(table.unsure for table in tables):
            sentence = text(
                "Saves {saved}; {partial} in part; at least {lost} lost.",
                saved=count(saved, noun),
                partial=cut,
                lost=lost,
            )
        else:
            sentence = text(
                "Saves {saved} of {there}; {partial} in part; {lost} lost.",
                saved=f"{saved:,}",
                there=count(there, noun),
                partial=cut,
                lost=lost,
            )
        return sentences(sentence, *self._other_losses(tables), "The damaged file is kept.")

    def _other_losses(self, others: tuple[TableResult, ...]) -> Iterator[str]:
        """What is lost besides the rows of these tables, one sentence for each table."""
        for table in self.tables:
            if table in others or not (table.partial or table.lost):
                continue
            yield text(
                "{table}: {partial:,} in part; at least {lost:,} lost."
                if table.unsure
                else "{table}: {partial:,} in part; {lost:,} lost.",
                table=shown([table.name]),
                partial=table.partial,
                lost=table.lost,
            )
        if self.lost:
            # not their names: in a damaged schema, a name can be any bytes of the file
            yield text("Lost completely: {parts}.", parts=count(len(self.lost), "part"))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Everything, for people; no content of any row is in it."""
        tables = [table.sentence for table in self.tables if table.there or table.added]
        rows = [line for table in self.tables for line in table.incomplete.sentences(table.name)]
        return (*(f"Lost: {part}." for part in self.lost), *tables, *rows, *self.notes)
