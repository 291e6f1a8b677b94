"""Writes `docs/salvage.md` from the results of the benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

METHODS = {
    "hermes": "Hermes itself",
    "dump": "sqlite3 `.dump`",
    "recover": "sqlite3 `.recover`",
    "salvage": "salvage",
}
HEAD = Path(__file__).with_name("salvage_method.md")


def page(results: Path) -> str:
    """The whole page."""
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    classes = [line for line in lines if "scores" in line]
    small: list[dict[str, Any]] = next((line["small"] for line in lines if "small" in line), [])
    return "\n".join(
        [
            HEAD.read_text().rstrip(),
            "",
            "## What came back",
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
        f"{len(classes)} kinds of damage. A cell is *sessions / messages* that are exactly what "
        f"they were, every column and byte; `+n` are there but not whole. "
        f"*multimodal* counts the messages stored as `\\0json:…`, of {classes[0]['multimodal']}."
    )
    missing = [name for key, name in METHODS.items() if key not in classes[0]["scores"]]
    note = (
        f" {', '.join(missing)} is not in the table: the shell that was installed (3.40.1, as "
        f"Debian 12 has it) cannot, it prints a script without any table."
        if missing
        else ""
    )
    return [text + note]


def _totals(classes: list[dict[str, Any]]) -> list[str]:
    there = {
        table: sum(one["there"][table] for one in classes) for table in ("sessions", "messages")
    }
    rows = ["| | sessions exact | messages exact | classes with every message exact | not to be |",
            "| --- | --- | --- | --- | --- |"]  # fmt: skip
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
        extra = sum(score["extra"]["messages"] for score in scores)
        rows.append(f"| {name} | {shares[0]} | {shares[1]} | {full} of {len(classes)} | {extra} |")
    return [
        *rows,
        "",
        "*Not to be* are messages that were not in the original: deleted ones, or misread numbers.",
    ]


def _table(classes: list[dict[str, Any]]) -> list[str]:
    methods = [key for key in METHODS if key in classes[0]["scores"]]
    rows = [
        f"| damage | there | {' | '.join(METHODS[key] for key in methods)} | multimodal |",
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
    rows = ["## The other databases", "", "Salvage alone; rows exact of rows there.", ""]
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
