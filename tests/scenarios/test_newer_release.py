"""On a release newer than the newest known one nothing that rests on knowledge is judged."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Finding, Severity
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.databases_view import DatabasesView
from hermes_doctor.diagnosis.probes.hermes_view import SettingsView
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.probes.scope import View
from hermes_doctor.diagnosis.probes.stores_view import StoresView
from hermes_doctor.hermes.knowledge import atlas, parse_release, releases
from hermes_doctor.hermes.knowledge.releases import load_knowledge
from hermes_doctor.repair.transaction.plan import plan
from tests.helpers import damage, fix_cycle, future_homes, one_check, recorded_homes, support

PLUGINS = load.load()
SENTENCE = f"not judged: Hermes {future_homes.VERSION} is newer than hermes-doctor knows"
REFUSAL = (
    f"Hermes {future_homes.VERSION} is newer than hermes-doctor knows. Update hermes-doctor first."
)
NO_GATEWAY = {"GW-DOWN", "GW-UNSUPERVISED"}
"""True of a home without a gateway, whatever its release."""
NOTES = {"DB-NEWER", "HERMES-NEWER", "GW-DOWN"}
"""All that may be said of a home whose every part is unknown, at the severity of information."""


def test_what_is_known_ends_where_the_knowledge_ends() -> None:
    """The three numbers are those of the newest release in every file of knowledge."""
    known = {parse_release(name) for name in load_knowledge("resolution")["releases"]}
    known |= {parse_release(name) for name in load_knowledge("keys")["releases"]}
    known |= {parse_release(name) for kind in atlas.DATABASES for name in atlas.releases(kind)}
    plan = atlas.blueprint("state.db", atlas.newest("state.db"))
    versions = [int(number) for number in load_knowledge("resolution")["config_version"]]

    assert max(known) == releases.NEWEST
    assert max(versions) == releases.NEWEST_CONFIG
    assert plan is not None
    assert plan.version == releases.NEWEST_SCHEMA


@pytest.mark.parametrize("id", [check.id for check in PLUGINS.checks])
def test_no_check_raises_an_alarm(tmp_path: Path, id: str) -> None:
    """Each check alone, on a sound home whose every part is unknown."""
    home = future_homes.home(tmp_path / "home")

    for deep in (False, True):
        result, findings = one_check.ask(id, home, deep=deep)

        alarms = [one for one in findings if one.severity is not Severity.INFO]
        assert [one for one in alarms if one.code not in NO_GATEWAY] == []
        notes = {one.code for one in findings if one.severity is Severity.INFO}
        assert notes <= NOTES, "information rests on knowledge, too"
        assert result.status.value in ("ok", "skipped") or alarms, result


def test_it_is_said_once(tmp_path: Path) -> None:
    """One note for the home and one for each database, and nothing to repeat it."""
    checked = support.check(future_homes.home(tmp_path / "home"))

    assert support.finding(checked, "HERMES-NEWER")["title"] == SENTENCE.removeprefix(
        "not judged: "
    )
    assert [one["code"] for one in checked.json["findings"] if "newer" in one["title"]] == [
        "DB-NEWER",
        "DB-NEWER",
        "HERMES-NEWER",
    ]
    human = support.doctor("check", "--home", tmp_path / "home")
    assert " ".join(human.out.split()).count("is newer than hermes-doctor knows") == 1


@pytest.mark.parametrize("how", ["config", "schema"])
def test_it_is_recognised_without_an_installation(home: Path, how: str) -> None:
    """A container's Hermes is not seen here; what it wrote is."""
    if how == "config":
        support.put(home / "config.yaml", future_homes.CONFIG)
    else:
        damage.execute(home / "state.db", "UPDATE schema_version SET version = 99")
        support.put(home / "config.yaml", future_homes.CONFIG.replace("_config_version: 99", ""))

    checked = support.check(home)

    file = {"config": "config.yaml", "schema": "state.db"}[how]
    title = f"{file} is from a newer Hermes than hermes-doctor knows"
    assert support.finding(checked, "HERMES-NEWER")["title"] == title
    assert "CFG-UNKNOWN-KEY" not in checked.codes
    assert "CFG-PROVIDER-UNKNOWN" not in checked.codes


def test_known_releases_are_judged_as_before(home: Path) -> None:
    """The same mistakes are alarms on a release that is known."""
    recorded_homes.installed(home, "0.19.0")
    support.put(home / "config.yaml", future_homes.CONFIG.replace("_config_version: 99", ""))

    checked = support.check(home)

    assert {"CFG-PROVIDER-UNKNOWN"} <= {*checked.codes}
    assert "HERMES-NEWER" not in checked.codes


# -- damage is still told --------------------------------------------------------------------------

DAMAGE = (
    damage.rows_zeroed,
    damage.cut_off,
    damage.index_zeroed,
    damage.search_structure,
    damage.freelist_lost,
)


@pytest.mark.sampled
@pytest.mark.parametrize("fault", DAMAGE, ids=damage.called)
def test_proven_damage_is_reported(tmp_path: Path, fault: damage.Fault) -> None:
    """What SQLite itself proves does not depend on the release."""
    home = future_homes.home(tmp_path / "home")
    fault(home / "state.db")

    found = support.finding(support.check(home), damage.CODES[fault])

    assert found["severity"] in ("error", "critical")


def test_a_damaged_store_is_reported(tmp_path: Path) -> None:
    """A file that no JSON reader accepts is damaged under every release."""
    home = future_homes.home(tmp_path / "home")
    for name in STORES:
        support.put(home / name, '{"jobs": [{"id": ')
    support.put(home / "sessions" / "old.jsonl", '{"role": ')  # who reads it is up to the release

    _, findings = one_check.ask("store-files", home)

    assert {one.subject: one.code for one in findings} == STORES
    for one in findings:
        assert one.title == f"{one.subject} is damaged"
        assert "the effect is unknown" in one.detail
        assert one.fix is None
        cache = one.subject == "channel_directory.json"
        assert (one.severity is Severity.INFO) == cache


STORES = {
    "auth.json": "AUTHJSON",
    "cron/jobs.json": "CRON-JOBS-CORRUPT",
    "channel_directory.json": "STORE-CORRUPT",
    "sessions/sessions.json": "SESSION-ROUTE-STALE",
    "pairing/telegram-approved.json": "PAIRING-CORRUPT",
}


@pytest.mark.parametrize("fix", ["mend-store", "restore-store"])
@pytest.mark.parametrize("name", STORES)
def test_no_fix_replaces_a_store(tmp_path: Path, name: str, fix: str) -> None:
    """Which entries a store has, and what Hermes does without it, is up to the release."""
    home = future_homes.home(tmp_path / "home")
    text = (home / name).read_bytes()
    support.put(home / f"{name}.bak", text)
    support.put(home / name, b"\xef\xbb\xbf" + text[:-1])
    finding = Finding(STORES[name], Severity.ERROR, "it is damaged", name, fix=fix)

    with contextlib.closing(Probes(Home(home))) as probes:
        [planned] = plan(probes, PLUGINS, [finding])

    assert (planned.refusal, planned.steps) == (REFUSAL, ())


# -- no fix changes a structure --------------------------------------------------------------------

FAULTS: dict[str, Callable[[Path], object]] = {
    "sound": lambda home: None,
    "index": lambda home: damage.index_zeroed(home / "state.db"),
    "search": lambda home: damage.search_structure(home / "state.db"),
    "search table": lambda home: damage.search_table_gone(home / "state.db"),
    "rows": lambda home: damage.rows_zeroed(home / "state.db"),
    "cut off": lambda home: damage.cut_off(home / "state.db"),
    "header": lambda home: support.clobber(home / "state.db"),
    "board": lambda home: damage.zero(home / "kanban.db", 2),
}
DECLARED = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"


@pytest.mark.sampled
@pytest.mark.parametrize("fault", FAULTS)
def test_no_fix_changes_a_structure(tmp_path: Path, fault: str) -> None:
    """Whatever is applied, no database declares anything new, or less than the damaged one did."""
    home = future_homes.home(tmp_path / "home")
    names = ("state.db", "kanban.db", "response_store.db")
    before = {name: _declared(home / name) for name in names}
    FAULTS[fault](home)
    damaged = {name: _declared(home / name) for name in names}

    support.doctor("fix", "--apply", "--yes", "--json", "--home", home)

    for name in names:
        after, was = _declared(home / name), damaged[name]
        if after is None:
            assert was is None, f"{name} could be read before the fix"
        else:
            assert (was or set()) <= after <= (before[name] or set()), name


def _declared(database: Path) -> set[tuple[Any, ...]] | None:
    """What a database declares; None if it is too damaged to say."""
    try:
        rows = fix_cycle.rows(database, DECLARED)
    except sqlite3.DatabaseError:
        return None
    return {row for row in rows if not str(row[1]).startswith("sqlite_")}


@pytest.mark.parametrize("fix", [fix.id for fix in PLUGINS.fixes if fix.structural])
def test_structural_fixes_refuse(tmp_path: Path, fix: str) -> None:
    """Even if a finding asked for them."""
    [code, *_] = next(one.codes for one in PLUGINS.fixes if one.id == fix)
    home = future_homes.home(tmp_path / "home")
    finding = Finding(code, Severity.ERROR, "it lacks a column", "kanban.db", fix=fix)

    with contextlib.closing(Probes(Home(home))) as probes:
        [planned] = plan(probes, PLUGINS, [finding])

    assert (planned.refusal, planned.steps) == (REFUSAL, ())


# -- every check that uses the knowledge says so ---------------------------------------------------

USES = {
    "resolved": SettingsView,
    "platforms": SettingsView,
    "admissions": SettingsView,
    "breaks": SettingsView,
    "structure": DatabasesView,
    "files": StoresView,
    "undeliverable": StoresView,
}
"""Questions whose answers rest on knowledge about releases, with the views that answer them."""
APART = {
    "TOKEN-DUP": "two bots with one token are compared by the token itself",
    "CFG-DUP-KEY": "a key that is there twice breaks YAML's own rule",
    "ENV-DUP": "a variable that is there twice",
    "ENV-LINE": "a line that is no assignment",
    "CRON-JOBS-CORRUPT": "only what is not valid JSON",
    "AUTHJSON": "only what is not valid JSON",
    "STORE-CORRUPT": "only what is not valid JSON",
    "PAIRING-CORRUPT": "only what is not valid JSON",
    "SESSION-ROUTE-STALE": "only what is not valid JSON",
}
"""Codes of checks that use the knowledge for other things than for calling this a problem."""


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What is asked of the knowledge from here on."""
    asked: set[str] = set()
    for name, view in USES.items():
        real = getattr(view, name)

        def ask(self: View, *args: Any, _real: Any = real, _name: str = name) -> Any:
            asked.add(_name)
            return _real(self, *args)

        monkeypatch.setattr(view, name, functools.wraps(real)(ask))
    return asked


MISTAKES = {
    "config.yaml": future_homes.CONFIG.replace("_config_version: 99\n", "")
    + "model: {provider: openroute}\nmodle: x\ntelegram: {allow_form: [1]}\n",
    ".env": future_homes.ENV + "A = 1\nA=2\nOPENROUTER_API_KEY:sk-or\nTELEGRAM_BOT_TOKEN=\n",
    "auth.json": '{"providers": ',
    "cron/jobs.json": '{"jobs": [{"id": ',
    "sessions/sessions.json": "[",
    "channel_directory.json": "{",
    "gateway.json": '{"platforms": {"telegram": {"token": "x"}}}',
}


@pytest.mark.parametrize("id", [check.id for check in PLUGINS.checks])
def test_a_check_that_uses_the_knowledge_says_so(tmp_path: Path, used: set[str], id: str) -> None:
    """Under an unknown release, whatever still raises an alarm does not rest on the knowledge."""
    home = future_homes.home(tmp_path / "home")
    for name, text in MISTAKES.items():
        support.put(home / name, text)

    _, findings = one_check.ask(id, home)

    if used:
        alarms = {one.code for one in findings if one.severity is not Severity.INFO}
        assert alarms - set(APART) - NO_GATEWAY == set()
        notes = {one.code for one in findings if one.severity is Severity.INFO}
        assert notes <= NOTES | {"STORE-CORRUPT"}
