"""Interprets the options that several commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.core.message import sentences, text
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.preferences import effective, places
from hermes_doctor.core.system import root_parent

if TYPE_CHECKING:
    from hermes_doctor.core.model import Report, Severity
    from hermes_doctor.diagnosis.plugins.declare import Check
    from hermes_doctor.diagnosis.plugins.load import Plugins


def repeat_options(
    home: Path | None = None,
    plugins: Sequence[Path] | None = None,
    vault: Path | None = None,
    *,
    deep: bool = False,
    network: bool = False,
) -> str:
    """The options that a hint must repeat to work when pasted, also into another shell."""
    words = ["--home", str(home.expanduser().absolute())] if home else []
    for folder in plugins or ():
        words += ["--plugins", str(folder.expanduser().absolute())]
    if deep:
        words.append("--deep")
    if network:
        words.append("--network")
    if vault:
        words += ["--vault", str(vault.expanduser().absolute())]
    if not words:
        return ""
    import shlex

    return " " + shlex.join(words)


def named_home(option: Path | None) -> Path | None:
    """The home that an option or the environment names, as an absolute path that hints repeat.

    None for a default location.
    """
    named = os.environ.get("HERMES_HOME")
    path = option or (Path(named) if named else None)
    return absolute(path)


def absolute(path: Path | None) -> Path | None:
    """The place that a path means here; as root, a command may go on in another user's folder."""
    return path.expanduser().absolute() if path else None


_loaded: dict[tuple[Path, ...], Plugins] = {}
"""By operator's folders: what was loaded, for a process that may not read it any more."""


def load_plugins(plugins: Sequence[Path] | None) -> Plugins:
    """Load the plugins; raise Trouble if there are no checks, which must not look healthy."""
    from hermes_doctor.diagnosis.plugins import load as loader

    chosen = effective.load()
    chosen.find("language")  # a wrong one is an error
    folders = tuple(plugins or chosen.plugins())
    if root_parent.is_separate() and folders in _loaded:
        return _loaded[folders]
    _loaded[folders] = found = loader.load(folders)
    if not found.checks:
        raise Trouble("Could not load any check. Reinstall hermes-gateway-doctor.")
    return found


def select(
    plugins: Plugins, only: Sequence[str], skip: Sequence[str]
) -> tuple[list[Check], frozenset[str]]:
    """The checks chosen by --only and --skip, and the codes to show."""
    names = selectors(plugins)
    for word in (*only, *skip):
        if word.lower() not in names:
            raise Trouble(
                sentences(
                    text("Unknown check, code or group {word!r}.", word=word),
                    suggestion(word, names),
                    "See: hermes-doctor list",
                )
            )
    wanted, unwanted = ({word.lower() for word in words} for words in (only, skip))
    checks = []
    for check in plugins.checks:
        called = {check.id, check.group, *(code.lower() for code in check.codes)}
        codes = {code.lower() for code in check.codes}
        if wanted and not called & wanted:
            continue
        if {check.id, check.group} & unwanted or codes <= unwanted:
            continue
        checks.append(check)
    if not checks:
        raise Trouble("--only and --skip leave no check to run. Remove one of them.")
    every = {code for one in checks for code in one.codes}
    direct = {c for one in checks if {one.id, one.group} & wanted for c in one.codes}
    named = {c for c in every if c.lower() in wanted}
    shown = (direct | named if wanted else every) - {c for c in every if c.lower() in unwanted}
    return checks, frozenset(shown)


def selectors(plugins: Plugins) -> dict[str, str]:
    """All words that select a check, by their lower-case form."""
    words = [w for check in plugins.checks for w in (check.id, check.group, *check.codes)]
    return {word.lower(): word for word in words}


def suggestion(word: str, names: dict[str, str]) -> str:
    """A question with the most similar name; empty if none is similar."""
    import difflib

    close = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.5)
    return text("Did you mean {name}?", name=names[close[0]]) if close else ""


def severities_for(home: Path, plugins: Plugins) -> Mapping[str, Severity | None]:
    """The severities that config.toml sets for this home."""
    preferences = effective.load()
    if not preferences.files:
        return {}
    places.refuse_inside(home)  # of --all-homes, each
    preferences.check_codes({code for check in plugins.checks for code in check.codes})
    return {code: one.value for code, one in preferences.severities(home).items()}


def mark_muted(report: Report, *, but: frozenset[str] = frozenset()) -> Report:
    """Mark the muted findings, but none of the codes in `but`, and judge the report again.

    If the mutes cannot be read, nothing is muted, and stderr says why.
    """
    if not places.existing(places.MUTES):
        return report
    from hermes_doctor.core.preferences import mutes
    from hermes_doctor.diagnosis.examination.verdict import judge

    try:
        places.refuse_inside(report.home)
        stored = [
            load_with_time
            for load_with_time in mutes.load_with_times()
            if load_with_time[0].code not in but
        ]
    except Trouble as trouble:
        print(f"hermes-doctor: Nothing is muted. {trouble}", file=sys.stderr)  # noqa: T201
        return report
    known, changes = [mute for mute, _ in stored], {mute.id: at for mute, at in stored}
    marked = mutes.apply(report, known, changes=changes)
    return marked if marked is report else marked._replace(verdict=judge(marked))


def filter_report(report: Report, codes: frozenset[str], subject: str | None = None) -> Report:
    """The report with only the findings of these codes, and of that subject if one is given."""
    from hermes_doctor.diagnosis.examination.verdict import judge

    kept = tuple(f for f in report.findings if f.code in codes and subject in (None, f.subject))
    down = tuple(f for f in report.turned_down if f.code in codes and subject in (None, f.subject))
    if (len(kept), len(down)) == (len(report.findings), len(report.turned_down)):
        return report
    shown = report._replace(findings=kept, turned_down=down)
    return shown._replace(verdict=judge(shown))
