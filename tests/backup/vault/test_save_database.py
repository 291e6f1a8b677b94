"""A database without a write-ahead log is copied whenever nobody writes to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.backup.vault import save_database
from hermes_doctor.backup.vault.save_file import FileSaver
from hermes_doctor.core.model import Trouble
from hermes_doctor.sqlite.exclusive import in_use, is_being_written
from tests.helpers.database_writer import ROWS, back_up, versions, writing

NAME = "memory_store.db"


@pytest.mark.parametrize("mode", ["DELETE", "TRUNCATE", "PERSIST", "MEMORY"])
@pytest.mark.parametrize(
    "statement",
    ["SELECT count(*) FROM entries", "UPDATE entries SET version = 2 WHERE id < 5"],
    ids=["reads", "will write"],
)
def test_an_open_transaction_is_no_hindrance(
    home: Path, tmp_path: Path, mode: str, statement: str
) -> None:
    """Another program reads for hours, or has changed rows and committed nothing."""
    with writing(home / NAME, mode) as writer:
        writer.write(1)
        begin = "BEGIN" if statement.startswith("SELECT") else "BEGIN IMMEDIATE"
        writer.tell(begin, statement)
        assert in_use(home / NAME)
        assert not is_being_written(home / NAME)

        made = back_up(home)

        assert writer.tell("COMMIT") == []  # the copy locked nobody out
    assert versions(made, NAME, tmp_path / "work") == [(1, ROWS)]


def test_a_writer_is_waited_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it writes to the file itself, there is no copy that could be whole."""
    monkeypatch.setattr(save_database, "WAIT", 0.0)
    with writing(home / NAME, "DELETE") as writer:
        writer.write(1)
        writer.tell("PRAGMA cache_size=5", "PRAGMA cache_spill=1", "BEGIN")
        writer.tell("UPDATE entries SET version = 2")  # does not fit into its memory
        assert is_being_written(home / NAME)

        with pytest.raises(Trouble, match="Another program is writing to"):
            back_up(home)


def test_a_write_during_the_copy_is_noticed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is copied again, although nobody holds a lock before or afterwards."""
    with writing(home / NAME, "DELETE") as writer:
        writer.write(1)
        save = FileSaver.save
        later = iter([2])

        def slow(self: FileSaver, source: object) -> object:
            made = save(self, source)  # type: ignore[arg-type]
            if getattr(source, "path", home).name == NAME:
                for version in later:
                    writer.write(version)
            return made

        monkeypatch.setattr(FileSaver, "save", slow)
        made = back_up(home)
    assert versions(made, NAME, tmp_path / "work") == [(2, ROWS)]
