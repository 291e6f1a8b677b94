"""The base classes of steps and machine actions, and the change that a step makes to a path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from hermes_doctor.core.system.files import Snapshot

if TYPE_CHECKING:
    from hermes_doctor.backup.records.journal import Journal
    from hermes_doctor.backup.vault.vault import Vault

Maker = Callable[[Path], None]
"""Writes the new content to the (not yet existing) path it is given."""


@dataclass(frozen=True)
class Change:
    """What a step does to one path; fields that are None leave that aspect unchanged."""

    path: Path
    expect: Snapshot
    """Compare-and-swap: nothing happens unless the path still has this snapshot."""
    make: Maker | None = None
    absent: bool = False
    mode: int | None = None
    owner: tuple[int, int] | None = None
    beside: tuple[tuple[Path, Snapshot], ...] = ()
    """Other paths that must not have changed, such as a log that must not appear."""
    from_root: bool = False
    """The owner is changed because root owns a file that belongs to the home's owner."""
    growing: bool = False
    """The gateway writes to it, so it may change until the gateway is stopped."""
    restored: bool = False
    """The maker sets mode, owner and times; they are not copied from the old file."""
    room: int = 0
    """Bytes of disk space that the maker needs, if more than the current size."""


class Step:
    """One planned change: a `sentence` for the plan, `texts` for a diff, and its `changes`."""

    final: ClassVar[bool] = False
    """Whether it deletes something that no undo restores."""

    def sentence(self) -> str:
        """Say in the plan what the step does."""
        raise NotImplementedError

    def texts(self) -> tuple[str, bytes, bytes] | None:
        """Label, bytes before and bytes after, if the change can be shown as a diff."""
        return None

    def lines(self) -> Sequence[str]:
        """Lines that describe the change entry by entry, instead of a diff; already redacted."""
        return ()

    def losses(self) -> str:
        """What the step is expected to lose, in one sentence; "" if it loses nothing.

        It may take seconds, so it is asked for only when a plan is shown.
        """
        return ""

    def changes(self) -> Sequence[Change]:
        """The changes of paths, in the order in which they must happen."""
        raise NotImplementedError

    def notes(self) -> Sequence[str]:
        """Notes for the receipt, known only after the new content is made."""
        return ()

    def save_first(self, vault: Vault, receipt: Journal) -> None:
        """Save data in the vault that could be lost when the gateway is stopped.

        Raises CannotFix if that fails; then nothing is stopped.
        """

    def prepare(self) -> None:
        """Open files that would be lost when the gateway is stopped."""

    def release(self) -> None:
        """Close what `prepare` opened; always called, also after a failure."""


class MachineAction(Step):
    """A machine action: a step that changes the machine (such as systemd), not files of the plan.

    It is executed after the files are in place and before the gateway starts. It is idempotent.
    The receipt stores its `kind` and `words`, from which `undo` creates it again.
    """

    kind: ClassVar[str] = ""
    lasting: ClassVar[bool] = False
    """Whether it leaves something that can be reverted."""

    def words(self) -> dict[str, str]:
        """The parameters stored in the receipt: no secrets, nothing the home's owner may forge."""
        return {}

    def refuse(self) -> None:
        """Raise CannotFix if the action cannot be done, before anything is changed."""

    def do(self) -> None:
        """Execute the action; raise CannotFix if that fails."""
        raise NotImplementedError

    def revert(self) -> None:
        """Revert the action, as far as possible."""

    def refuse_revert(self) -> None:
        """Raise CannotFix if the action cannot be reverted, before anything is changed."""
        self.refuse()

    def notes_of_revert(self) -> Sequence[str]:
        """What stays although the action was reverted; asked for before and after that."""
        return ()

    def changes(self) -> Sequence[Change]:
        return []
