"""The program that `benchmarks.logs` measures: read the logs of a home, and judge them or not.

    python -m benchmarks.judge_logs HOME                 judge, with all rules and causes
    python -m benchmarks.judge_logs HOME SELECTION       only read

SELECTION is the answer of `selection` in JSON, so that both read the same entries. Both print their
number; if it judges, also the number of incidents.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import hermes_doctor.diagnosis.probes.probes  # noqa: F401 - a check has loaded it in any case
from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.hermes.logs.stream import read

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker


class Spans(TypedDict):
    """Since when a check reads the logs, the small records, and the log of warnings."""

    since: float
    records_since: float
    errors_since: float


class Selection(TypedDict):
    """Which entries a check reads at first."""

    spans: Spans
    heads: list[tuple[str, str]]
    """Level and logger."""


def main() -> None:
    """Judge or only read, without collecting garbage, as the start of a check."""
    gc.disable()
    home = Home(Path(sys.argv[1]))
    if sys.argv[2:]:
        chosen: Selection = json.loads(sys.argv[2])
        heads = {(level, logger) for level, logger in chosen["heads"]}
        print(sum(1 for _ in read(home, **chosen["spans"], wanted=lambda *head: head in heads)))
        return
    tracker = tracker_of_all_rules()
    count = 0
    for entry in read(home, **spans(tracker), wanted=tracker.needed.may_begin):
        tracker.add_entry(entry)
        count += 1
    print(count, len(tracker.incidents()))


def tracker_of_all_rules() -> IncidentTracker:
    """Load the built-in rules and causes."""
    from hermes_doctor.diagnosis.plugins.log_rules.folder import Folder
    from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker

    rules = Folder(builtin("checks") / "signatures", ours=True)
    return IncidentTracker(
        rules.rule_set.rules, now=time.time(), reader=rules.reader, symptoms=rules.symptoms
    )


def spans(tracker: IncidentTracker) -> Spans:
    """Return since when this tracker needs entries."""
    from hermes_doctor.diagnosis.plugins.log_rules.needed_entries import LOGS

    needed = tracker.needed
    return Spans(
        since=needed.since(*LOGS),
        records_since=needed.since(),
        errors_since=needed.since_days(),
    )


def selection(home: Home) -> Selection:
    """Return what a process that has not loaded the rules must know to read the same entries."""
    tracker = tracker_of_all_rules()
    chosen = spans(tracker)
    entries = read(home, **chosen, wanted=tracker.needed.may_begin)
    return Selection(spans=chosen, heads=list({(entry.level, entry.logger) for entry in entries}))


if __name__ == "__main__":
    main()
