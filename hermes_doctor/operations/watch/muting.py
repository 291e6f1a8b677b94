"""Marks the muted findings of each round, and removes the mutes that have ended."""

from __future__ import annotations

from datetime import UTC, datetime

from hermes_doctor.core.model import Report, Trouble
from hermes_doctor.core.preferences import mutes, places
from hermes_doctor.diagnosis.examination.verdict import judge

MOST_ENDED = 100


class Muting:
    """The mutes of the watched home."""

    def __init__(self, ended: list[str] | None = None) -> None:
        self.ended = [] if ended is None else ended
        """The ids of mutes that have ended but could not be removed."""
        self._told = ""

    def mark(self, report: Report) -> tuple[Report, list[str]]:
        """Return the report with its muted findings marked, and what the operator should know."""
        if not places.existing(places.MUTES):
            return report, []
        try:
            places.refuse_inside(report.home)
            known = [one for one in mutes.load() if one.id not in self.ended]
        except Trouble as trouble:
            return report, self._once(f"nothing is muted: {trouble}")
        over = mutes.ended(report, known, datetime.now(UTC))
        gone = [mute.id for mute, _ in over]
        valid = [one for one in known if one.id not in gone]
        own = [one for one in valid if one.home == str(report.home)]
        updates = {one.id: one.updated(report) for one in own}
        notes = [f"the mute of {mute.name} has ended: {why}" for mute, why in over]
        changed = {id: new for id, new in updates.items() if new not in own}
        if gone or changed:
            try:
                mutes.replace({**changed, **dict.fromkeys(gone)})
            except Trouble as trouble:
                self.ended += gone
                del self.ended[:-MOST_ENDED]
                notes += self._once(f"could not change the mutes: {trouble}")
        else:
            self._told = ""
        marked = mutes.apply(report, valid)
        if marked is not report:
            marked = marked._replace(verdict=judge(marked))
        return marked, notes

    def _once(self, note: str) -> list[str]:
        """The note, unless it was the last one."""
        told, self._told = self._told, note
        return [] if told == note else [note]
