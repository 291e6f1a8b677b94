"""The steps that a fix can plan: each says beforehand what it will do and can be taken back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from hermes_doctor.system.files import Snapshot

if TYPE_CHECKING:
    from hermes_doctor.backup.vault import Vault
    from hermes_doctor.records.journal import Journal

Maker = Callable[[Path], None]
"""Writes the new content to the (not yet existing) path it is given."""


@dataclass(frozen=True)
class Change:
    """What a step wants of one path. Fields left None stay as they are."""

    path: Path
    expect: Snapshot
    """Compare-and-swap: nothing happens unless the path is still this."""
    make: Maker | None = None
    absent: bool = False
    mode: int | None = None
    owner: tuple[int, int] | None = None
    beside: tuple[tuple[Path, Snapshot], ...] = ()
    """Other paths that must still be what they were, such as a log that must not appear."""
    from_root: bool = False
    """The owner is changed because a file of root's is to be given back."""
    growing: bool = False
    """The gateway writes it until it is stopped, so that it may change until then."""
    restored: bool = False
    """The maker brings mode, owner and times along; they are not taken from the old file."""
    room: int = 0
    """Bytes that the maker needs on the way, if more than what is there now."""


class Step:
    """One act: a `sentence` that says what it is, `texts` that show it, and its `changes`."""

    def sentence(self) -> str:
        """What the step does, for the plan."""
        raise NotImplementedError

    def texts(self) -> tuple[str, bytes, bytes] | None:
        """Label, bytes before and bytes after, when the change can be shown as a diff."""
        return None

    def lines(self) -> Sequence[str]:
        """The change entry by entry instead, in lines that may be shown as they are."""
        return ()

    def changes(self) -> Sequence[Change]:
        """What the step changes, in the order in which it must happen."""
        raise NotImplementedError

    def notes(self) -> Sequence[str]:
        """What is known only once the new content is made, for the receipt."""
        return ()

    def save_first(self, vault: Vault, receipt: Journal) -> None:
        """Save into the vault what must be safe before the gateway is stopped.

        Where that cannot be done it raises CannotFix, and nothing is stopped.
        """

    def prepare(self) -> None:
        """Take hold of what would be gone once the gateway is stopped."""

    def release(self) -> None:
        """Let go of it, whatever became of the run."""


class Act(Step):
    """Something that is asked of the machine and changes no file of the plan.

    It is done when the files are in place and before the gateway starts. Done twice it equals
    done once. The receipt keeps its `kind` and `words`, from which `undo` makes it again.
    """

    kind: ClassVar[str] = ""
    lasting: ClassVar[bool] = False
    """Whether it leaves something that can be taken back."""

    def words(self) -> dict[str, str]:
        """What the receipt keeps of it; no secret, and nothing that the home's owner may forge."""
        return {}

    def refuse(self) -> None:
        """Raise CannotFix where it cannot be done, before anything is changed."""

    def do(self) -> None:
        """Do it; raises CannotFix."""
        raise NotImplementedError

    def take_back(self) -> None:
        """Take it back, as far as that can be done."""

    def changes(self) -> Sequence[Change]:
        return []
