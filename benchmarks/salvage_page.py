"""Write `docs/salvage.md` from the results of the salvage benchmark."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from benchmarks.faults import FAULTS

METHODS = {
    "hermes": "Hermes itself",
    "dump": "sqlite3 `.dump`",
    "recover": "sqlite3 `.recover`",
    "salvage": "salvage",
}
HEAD = Path(__file__).with_name("salvage_method.md")


def page(results: Path) -> str:
    """Return the whole page."""
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    order = list(FAULTS)
    classes = sorted(
        (line for line in lines if "scores" in line), key=lambda one: order.index(one["fault"])
    )
    small: list[dict[str, Any]] = next((line["small"] for line in lines if "small" in line), [])
    return "\n".join(
        [
            HEAD.read_text().rstrip(),
            "",
            "## Results",
            "",
            *_intro(classes),
            "",
            *_totals(classes),
            "",
            *_table(classes),
            "",
            *_small(small),
            "",
        ]
    )


def _intro(classes: list[dict[str, Any]]) -> list[str]:
    there = classes[0]["there"]
    text = (
        f"A `state.db` of {there['messages']:,} messages in {there['sessions']:,} sessions "
        f"({classes[0]['megabytes']} MB), written by Hermes 0.19.0's own code, "
        f"{len(classes)} kinds of damage. A cell has the *sessions / messages* that are exactly "
        f"as before, in every column and byte; `+n` are saved in part. "
        f"*multimodal* are the messages stored as `\\0json:…` that the salvage saves."
    )
    shells = ", ".join(sorted({one["shell"] for one in classes}))
    theirs = (
        f"The shell is sqlite3 {shells}. If `.dump` meets damage, it ends with a ROLLBACK, so "
        f"a new database gets nothing; here that line was changed to a COMMIT. What `.recover` "
        f"puts into `lost_and_found` is not counted as saved, because it belongs to no table."
    )
    missing = [name for key, name in METHODS.items() if key not in classes[0]["scores"]]
    if missing:
        theirs += f" {', '.join(missing)} is not in the table, because this shell does not have it."
    return [text, "", theirs]


def _totals(classes: list[dict[str, Any]]) -> list[str]:
    there = {
        table: sum(one["there"][table] for one in classes) for table in ("sessions", "messages")
    }
    special = sum(one["multimodal"] for one in classes)
    rows = [
        "| | sessions exact | messages exact | of them multimodal | kinds with every message "
        "exact | wrong | processor seconds |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for key, name in METHODS.items():
        scores = [one["scores"][key] for one in classes if key in one["scores"]]
        if not scores:
            continue
        shares = [
            f"{100 * sum(score['exact'][table] for score in scores) / there[table]:.2f} %"
            for table in ("sessions", "messages")
        ]
        full = sum(
            one["scores"][key]["exact"]["messages"] == one["there"]["messages"] for one in classes
        )
        extra = [
            str(sum(score["extra"][table] for score in scores))
            for table in ("sessions", "messages")
        ]
        whole = f"{100 * sum(score['multimodal'] for score in scores) / special:.2f} %"
        seconds = statistics.median(score["cpu"] for score in scores)
        cells = [*shares, whole, f"{full} of {len(classes)}", " / ".join(extra), f"{seconds:.1f}"]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return [
        *rows,
        "",
        "*Wrong* are sessions / messages that were not in the original: deleted ones, or keys "
        "with a flipped bit. *Processor seconds* are the median of all kinds of damage; the "
        "machine was busy, so elapsed time is not shown.",
    ]


def _table(classes: list[dict[str, Any]]) -> list[str]:
    methods = [key for key in METHODS if key in classes[0]["scores"]]
    rows = [
        f"| damage | before | {' | '.join(METHODS[key] for key in methods)} | multimodal |",
        f"| --- | --- | {' | '.join('---' for _ in methods)} | --- |",
    ]
    for one in classes:
        cells = [_cell(one["scores"][key]) for key in methods]
        there = f"{one['there']['sessions']:,} / {one['there']['messages']:,}"
        special = f"{one['scores']['salvage']['multimodal']} of {one['multimodal']}"
        rows.append(f"| {one['fault']} | {there} | {' | '.join(cells)} | {special} |")
    return rows


def _cell(score: dict[str, Any]) -> str:
    parts = []
    for table in ("sessions", "messages"):
        more = f"+{score['partial'][table]:,}" if score["partial"][table] else ""
        parts.append(f"{score['exact'][table]:,}{more}")
    return " / ".join(parts)


def _small(results: list[dict[str, Any]]) -> list[str]:
    if not results:
        return []
    rows = ["## The other databases", "", "Only salvage; exact rows of all rows.", ""]
    for database in dict.fromkeys(one["database"] for one in results):
        mine = [one for one in results if one["database"] == database]
        tables = list(mine[0]["there"])
        rows += [
            f"| {database}.db | {' | '.join(tables)} |",
            f"| --- | {' | '.join('---' for _ in tables)} |",
        ]
        for one in mine:
            cells = [f"{one['score']['exact'][t]} of {one['there'][t]}" for t in tables]
            rows.append(f"| {one['fault']} | {' | '.join(cells)} |")
        rows.append("")
    return rows[:-1]
