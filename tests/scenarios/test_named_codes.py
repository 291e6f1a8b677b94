"""A code that the operator names is never passed over: repaired, or why not and what to do."""

from __future__ import annotations

import contextlib
import json
import shlex
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.diagnosis.plugins import load
from tests.cli.test_commands import plain, terminal
from tests.helpers import future_homes, locked_out_users, recorded_homes, support
from tests.helpers.cron_homes import jobs
from tests.helpers.store_files import job

CODES = sorted({code for check in load.load().checks for code in check.codes})
PLUGIN = '''
from hermes_doctor.api import CouldNotLook, Finding, Severity, check

CODES = {codes!r}

@check(id="made-up", group="made-up", codes=CODES)
def made_up(probes):
    """Does everything work?"""
    if {case!r} == "unknown":
        raise CouldNotLook("the disk sleeps")
    for code in CODES:
        yield Finding(code=code, severity=Severity.INFO, title="note on " + code.lower(),
                      subject="made up", fix="refuse" if {case!r} == "refused" else None,
                      next="" if {case!r} == "no next" else "Turn the knob.")
'''
FIX = '''
from hermes_doctor.api import CannotFix, Safety, fix

@fix(id="refuse", codes={codes!r}, safety=Safety.SAFE)
def refuse(probes, finding):
    """Refuse."""
    raise CannotFix("The knob is stuck. Ask the smith.")
'''
CASES = {
    "no fix": ("left", "Turn the knob."),
    "no next": ("left", "There is no automatic fix for it."),
    "refused": ("left", "The knob is stuck. Ask the smith."),
    "unknown": ("unknown", "the disk sleeps"),
}


def plugin(folder: Path, case: str) -> Path:
    """A plugin that reports every built-in code in one way."""
    support.put(folder / "checks" / "made_up.py", PLUGIN.format(codes=CODES, case=case))
    support.put(folder / "fixes" / "refuse.py", FIX.format(codes=CODES))
    return folder


def fix(home: Path, *words: str | Path) -> support.Done:
    """`fix` without a terminal."""
    return support.doctor("fix", *words, "--home", home)


def named(done: support.Done) -> dict[str, dict[str, Any]]:
    """What the JSON document says about each code that was typed."""
    return {one["code"]: one for one in done.json["repair"]["named"]}


def mentions(out: str, code: str) -> list[str]:
    """The lines that say something about a code, without a mere command."""
    lines = [line.strip() for line in out.splitlines() if not line.strip().startswith("hermes-")]
    return [line for line in lines if code in line.replace(".", " ").split()]


# -- all codes -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_every_code_is_answered(home: Path, tmp_path: Path, case: str) -> None:
    """All codes at once: each has a sentence on the screen, a state and a message in JSON."""
    state, why = CASES[case]
    words = (*CODES, "--plugins", str(plugin(tmp_path / "plugin", case)))

    for apply in ((), ("--apply", "--yes")):
        done = fix(home, *words, *apply)
        silent = [code for code in CODES if not mentions(done.out, code)]
        assert silent == []
        assert why in done.out
        assert done.code == len(apply) // 2, done.out[-500:]
        told = named(fix(home, *words, *apply, "--json"))
        assert list(told) == CODES
        assert {one["state"] for one in told.values()} <= {state, "left"}
        assert all(why in one["message"] for one in told.values() if one["state"] == state)
        assert all(one["message"] for one in told.values())


def test_every_absent_code_is_answered(home: Path) -> None:
    """On a healthy home each code is absent, or it is said why that could not be checked."""
    for apply in ((), ("--apply", "--yes")):
        done = fix(home, *CODES, *apply)
        assert [code for code in CODES if not mentions(done.out, code)] == []
        told = fix(home, *CODES, *apply, "--json")
        found = {one["code"] for one in told.json["findings"]}
        for code, one in named(told).items():
            if code in found:
                assert one["state"] in ("left", "planned"), one
                assert "was not found" not in one["message"]
            elif one["state"] == "unknown":
                assert "could not be checked: " in one["message"]
            else:
                assert one["state"] == "absent", one
                assert f"{code} was not found here." in one["message"]
        left = any(one["state"] in ("left", "unknown") for one in named(told).values())
        assert done.code == told.code == (1 if apply and left else 0)


@pytest.mark.sampled(one_of=45)
@pytest.mark.parametrize("code", CODES)
def test_one_code_alone(home: Path, tmp_path: Path, code: str) -> None:
    """The exit code says that a named code is left or could not be checked; cases take turns.

    It is 2, as always, if no check could look, which happens if the code has only one check.
    """
    case = [*CASES][CODES.index(code) % len(CASES)]
    words = (code, "--plugins", plugin(tmp_path / "plugin", case))

    done = fix(home, *words, "--apply", "--yes")
    blind = "No check could look" in done.err
    assert not blind or case == "unknown"
    assert (fix(home, *words).code, done.code) == ((2, 2) if blind else (0, 1))
    assert mentions(done.out, code)
    assert CASES[case][1] in done.out


# -- real homes ----------------------------------------------------------------------------


def _no_lists(home: Path) -> None:
    support.put(home / ".env", locked_out_users.TOKEN + support.ENV)


def _deprecated(home: Path) -> None:
    support.put(home / ".env", support.ENV + "MESSAGING_CWD=/srv\n")


def _clear(home: Path) -> None:
    relay = "providers:\n  relay:\n    base_url: https://x.example\n    api_key: sk-123456789012\n"
    support.put(home / "config.yaml", support.CONFIG + relay)


def _no_fallback(home: Path) -> None:
    relay = "providers:\n  relay:\n    base_url: https://x.example\n    key_env: RELAY_KEY\n"
    settings, _, _ = support.CONFIG.partition("fallback_providers")
    support.put(home / "config.yaml", settings + relay)


def _zone(home: Path) -> None:
    jobs(home, job("alpha", schedule={"kind": "cron", "expr": "0 8 * * *"}))


def _route(home: Path) -> None:
    with contextlib.closing(sqlite3.connect(home / "state.db")) as db, db:
        db.execute("UPDATE sessions SET end_reason = 'user_exit', ended_at = 2 WHERE id = 's1'")
        insert = "INSERT INTO gateway_routing (scope, session_key, entry_json, updated_at) VALUES "
        db.execute(f"{insert} ('gateway', 'k', ?, 1)", [json.dumps({"session_id": "s1"})])


def _old_file(home: Path) -> None:
    support.put(home / "gateway.json", '{"platforms": {"telegram": {"enabled": false}}, "stt": {}}')


NOTES: dict[str, Callable[[Path], None]] = {
    "AUTHZ-NO-LISTS": _no_lists,
    "CFG-DEPRECATED": _deprecated,
    "CRED-IN-CONFIG": _clear,
    "CFG-FALLBACK-NONE": _no_fallback,
    "CRON-TZ": _zone,
    "SESSION-ROUTE-STALE": _route,
    "CFG-GATEWAY-JSON": _old_file,
}


@pytest.mark.parametrize("code", NOTES)
def test_a_note_says_what_to_do(home: Path, code: str) -> None:
    """A note without a fix: its own step on the screen, its page, and exit 1 with --apply."""
    NOTES[code](home)
    env = {"TZ": "UTC"}
    [finding] = [
        one
        for one in support.doctor("check", "--json", "--home", home, env=env).json["findings"]
        if one["code"] == code
    ]
    assert (finding["severity"], finding["fix"]) == ("info", None)

    plan = support.doctor("fix", code, "--home", home, env=env)
    assert plan.code == 0
    assert f"Needs you: {code}  {finding['next']}" in plan.out
    done = support.doctor("fix", code, "--apply", "--yes", "--home", home, env=env)
    assert done.code == 1
    assert f"– {code}  {finding['title']}. {finding['next']}" in done.out
    assert f"hermes-doctor explain {code}\n" in done.out


def test_the_same_file_has_another_problem(home: Path) -> None:
    """A board that is no database at all: the code for damaged pages leads to the right one."""
    support.clobber(home / "kanban.db")

    for apply in ((), ("--apply", "--yes")):
        done = fix(home, "KANBAN-CORRUPT", *apply)
        assert done.code == len(apply) // 2
        assert (
            "KANBAN-CORRUPT was not found here. Another problem may be meant: kanban.db" in done.out
        )
        assert "nothing to fix" not in done.out
        told = named(fix(home, "KANBAN-CORRUPT", *apply, "--json"))["KANBAN-CORRUPT"]
        assert told["state"] == "related"
        assert told["commands"] == [f"hermes-doctor fix DB-NOTADB --home {home}"]
    [command] = told["commands"]
    words = shlex.split(command)[1:]
    assert support.doctor(*words, "--apply", "--yes").code == 0
    assert fix(home, "KANBAN-CORRUPT", "--apply").code == 0


def test_a_check_that_needs_an_option(home: Path) -> None:
    """What only --network can see is not called absent without it."""
    done = fix(home, "NET-DNS", "--apply")

    assert done.code == 1
    assert "NET-DNS could not be checked: needs --network." in done.out
    assert f"hermes-doctor fix NET-DNS --network --home {home}" in done.out


def test_a_check_that_does_not_apply(home: Path) -> None:
    """Without scheduled jobs, their time zone is not a problem; the reason is said."""
    done = fix(home, "CRON-TZ", "--apply")

    assert done.code == 0
    assert "CRON-TZ was not found here. The check cron-zone was skipped: no scheduled" in done.out


def test_a_newer_hermes_is_not_judged(home: Path) -> None:
    """Codes that depend on knowledge about the release are unknown, not absent."""
    _deprecated(home)
    recorded_homes.installed(home, future_homes.VERSION)

    done = fix(home, "CFG-DEPRECATED", "--apply", "--json")

    told = named(done)["CFG-DEPRECATED"]
    assert (done.code, told["state"]) == (1, "unknown")
    assert "CFG-DEPRECATED could not be checked: not judged: " in told["message"]


def test_repaired_is_said(home: Path) -> None:
    """A repaired code and an absent one: exit 0, and both are in the document."""
    support.put(home / ".env", b"\xef\xbb\xbf" + support.ENV.encode())

    planned = named(fix(home, "ENV-BOM", "ENV-DUP", "--json"))
    assert [planned[code]["state"] for code in planned] == ["planned", "absent"]
    done = fix(home, "ENV-BOM", "ENV-DUP", "--apply", "--yes", "--json")
    assert done.code == 0
    assert [one["state"] for one in named(done).values()] == ["repaired", "absent"]
    again = fix(home, "ENV-BOM", "--apply", "--yes")
    assert (again.code, again.out) == (0, "· ENV-BOM was not found here.\n")


def test_groups_and_codes(home: Path) -> None:
    """A group without problems beside a code without problems: both are answered."""
    done = fix(home, "databases", "ENV-BOM")

    assert done.code == 0
    assert "There is nothing to fix." in done.out
    assert "ENV-BOM was not found here." in done.out


def test_a_subject_without_a_problem(home: Path) -> None:
    """It is not said that all is well: other subjects were not looked at."""
    done = fix(home, "--subject", "telegram 43")

    assert (done.code, done.out) == (0, "? No problem here is about 'telegram 43'.\n")


def test_another_subject(home: Path) -> None:
    """The code exists, but not for the subject that was named."""
    _no_lists(home)
    locked_out_users.waiting(home)

    done = fix(home, "PAIRING-WAITING", "--subject", "telegram 43", "--apply", "--yes")

    assert done.code == 1
    assert "PAIRING-WAITING was not found for 'telegram 43', but for: telegram 42." in done.out


# -- one person ----------------------------------------------------------------------------


def _waiting(home: Path, number: int) -> str:
    for n in range(number):
        locked_out_users.waiting(home, str(42 + n), entry=f"a{n}")
    return "PAIRING-WAITING"


def _refused(home: Path, number: int) -> str:
    support.put(home / ".env", locked_out_users.TOKEN + "TELEGRAM_ALLOWED_USERS=7001\n")
    for n in range(number):
        locked_out_users.turned_away(home, str(42 + n))
    return "AUTHZ-UNAUTHORIZED"


@pytest.mark.parametrize("plant", [_waiting, _refused], ids=["waiting", "refused"])
@pytest.mark.parametrize("yes", [("--yes",), ()], ids=["yes", "no answer"])
def test_choose_a_person(
    home: Path, plant: Callable[[Path, int], str], yes: tuple[str, ...]
) -> None:
    """--yes alone lets nobody in; the printed command lets one person in without a question."""
    _no_lists(home)
    code = plant(home, 2)
    sick = support.contents(home)

    done = fix(home, code, "--apply", *yes)

    assert done.code == 1
    assert "add --yes" not in done.out
    assert f"– {code}  Needs you to choose a person" in done.out
    commands = [line.strip() for line in done.out.splitlines() if f"fix {code} --subject" in line]
    assert len(commands) == 2
    assert all(" --apply --yes " in command for command in commands)
    assert support.contents(home) == sick
    told = fix(home, code, "--apply", *yes, "--json")
    assert named(told)[code]["commands"] == commands
    assert [one["command"] for one in told.json["repair"]["plan"]] == commands
    assert all(one["personal"] for one in told.json["repair"]["plan"])
    assert f"– {code}  Needs you to choose a person" in fix(home, code).out

    pasted = support.doctor(*shlex.split(commands[1])[1:])

    assert f"{code} telegram 43: repaired and checked" in " ".join(pasted.out.split())
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


def test_a_terminal_asks_about_each_person(home: Path) -> None:
    """Without --yes, the answers choose the person; with it, the commands are printed instead."""
    _no_lists(home)
    code = _waiting(home, 2)

    _, screen = terminal("fix", code, "--apply", "--yes", "--home", home, answer="y\ny\n")
    assert "[y/N]" not in plain(screen)
    assert "Needs you to choose a person" in plain(screen)
    _, screen = terminal("fix", code, "--apply", "--home", home, answer="n\ny\n")
    assert f"{code} telegram 43: repaired" in " ".join(plain(screen).split())
    approved = json.loads((home / "platforms/pairing/telegram-approved.json").read_text())
    assert [*approved] == ["43"]


def test_many_persons(home: Path) -> None:
    """The first five with their commands, and how to see the others."""
    _no_lists(home)
    code = _waiting(home, 8)

    for words in ((code, "--yes"), ("--yes",)):
        done = fix(home, *words, "--apply")
        assert done.out.count(f"fix {code} --subject") == 5
        assert f"and 3 more: hermes-doctor check -v --only {code} --home {home}" in done.out
