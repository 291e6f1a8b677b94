"""Marks the muted findings of each round, and removes the mutes that have ended."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from hermes_doctor.model import Report, Trouble
from hermes_doctor.preferences import places
from hermes_doctor.preferences.mutes import Mute


class Muting:
    """The mutes of the watched home."""

    def __init__(self) -> None:
        self._ended: list[Mute] = []
        """Mutes that have ended but could not be removed."""

    def mark(self, report: Report) -> tuple[Report, list[str]]:
        """Return the report with its muted findings marked, and what the operator should know."""
        if not any(os.path.lexists(folder / places.MUTES) for folder in places.folders()):
            return report, []
        from hermes_doctor.examination.verdict import judge
        from hermes_doctor.preferences import mute_store, mutes

        try:
            known = [one for one in mute_store.load() if one not in self._ended]
        except Trouble as trouble:
            return report, [f"nothing is muted: {trouble}"]
        over = mutes.ended(report, known, datetime.now(UTC))
        notes = [f"the mute of {mute.name} has ended: {why}" for mute, why in over]
        gone = [mute for mute, _ in over]
        if gone:
            try:
                mute_store.remove(gone)
            except Trouble as trouble:
                self._ended += gone
                notes.append(f"could not remove the mute: {trouble}")
        marked = mutes.apply(report, [one for one in known if one not in gone])
        if marked is not report:
            marked = marked._replace(verdict=judge(marked))
        return marked, notes
