"""Writes marks: moments at which something changed, such as an update or a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_doctor.history.moments import HOUR, from_text, number, to_text

if TYPE_CHECKING:
    from sqlite_utils import Database

JOINED = ("start", "stop", "restart", "clock", "doctor", "moved")
"""Kinds of which one mark per hour is kept, with a count: a gateway may restart all night."""


def add_mark(
    db: Database,
    home: int,
    at: int,
    kind: str,
    what: str,
    *,
    code: str = "",
    subject: str = "",
    run: str = "",
) -> None:
    """Add a mark; one of the same kind within the last hour is counted instead."""
    table = db.table("marks")
    now = to_text(at)
    if kind in JOINED:
        same = list(
            table.rows_where("home = ? and kind = ?", [home, kind], order_by="at desc", limit=1)
        )
        if same and abs(at - from_text(same[0]["at"])) < HOUR:
            last = max(now, str(same[0]["until"] or now))
            table.update(same[0]["id"], {"times": number(same[0]["times"]) + 1, "until": last})
            return
    table.insert(
        {
            **{"home": home, "at": now, "kind": kind, "what": what, "code": code or None},
            **{"subject": subject or None, "run": run or None, "times": 1, "until": None},
        }
    )
