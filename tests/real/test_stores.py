"""Damaged stores and real Hermes: what it does to them, and what it reads after the repair."""

from __future__ import annotations

import json
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Gateway
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from hermes_doctor.diagnosis.probes.hermes_view import HermesView
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.knowledge import parse_release as numbers
from hermes_doctor.hermes.knowledge.releases import load_knowledge
from hermes_doctor.hermes.stores.catalogue import outcome
from tests.conftest import RELEASES, need_release
from tests.helpers import store_files, support
from tests.helpers.one_check import ask
from tests.helpers.real import gateways
from tests.helpers.real.controlled_gateways import ward
from tests.helpers.real.release_homes import MakeHome, Patient, undo
from tests.hermes.stores.test_damage import BAD, GOOD
from tools import lessons, real_home

pytestmark = pytest.mark.real
PAIRED = "platforms/pairing/telegram-approved.json"
NAMES = ("cron/jobs.json", "auth.json", "sessions/sessions.json", PAIRED)
LOAD = """
import json, os
from pathlib import Path
home = Path(os.environ["HERMES_HOME"])
found = {}
from cron import jobs
try:
    found["jobs"] = sorted(job["name"] for job in jobs.load_jobs())
    jobs.get_due_jobs()
except Exception as error:
    found["jobs"] = type(error).__name__
from hermes_cli import auth
store = auth._load_auth_store()
found["auth"] = sorted([*store["providers"], *store.get("credential_pool", {})])
from gateway.pairing import PairingStore
found["paired"] = [u for u in ("1001", "1002") if PairingStore().is_approved("telegram", u)]
from gateway.config import GatewayConfig
from gateway.session import SessionStore
chats = SessionStore(home / "sessions", GatewayConfig())
chats._ensure_loaded()
found["chats"] = sorted(chats._entries)
"""
SAVE = """
auth._save_auth_store(store)
pairing = PairingStore()
pairing._approve_user("telegram", "2000", "new")
chats._save()
found["left"] = {name: (home / name).read_text() for name in %r}
"""
TELL = "\nprint()\nprint(json.dumps(found))\n"
WHOLE = {
    "jobs": ["alpha", "beta"],
    "auth": ["deepseek", "nous"],
    "paired": ["1001", "1002"],
    "chats": sorted(store_files.CHATS),
}
MINE = {"store-files", "routes", "kanban-claims", "cron-ticker", "cron-jobs", "cron-targets"}
NOTHING = {"jobs": "RuntimeError", "auth": [], "paired": [], "chats": []}


def asked(patient: Patient, script: str) -> dict[str, object]:
    """What a release finds in a copy of the home."""
    told: dict[str, object] = json.loads(patient.ask(script + TELL).splitlines()[-1])
    return told


def flawed(name: str, flaw: str) -> bytes:
    """A store with a flaw around its entries."""
    data = store_files.text(name)
    return {
        "bom": b"\xef\xbb\xbf" + data,
        "padding": data + b"\0" * 100,
        "tail": data + b'"x"}',
        "torn": data[: len(data) * 4 // 5],
    }[flaw]


@pytest.mark.parametrize("version", RELEASES)
def test_repaired(version: str, hermes_home: MakeHome) -> None:
    """What Hermes takes for empty and writes over, it reads whole after the repair."""
    patient = Patient(version, hermes_home(version))
    assert patient.home is not None
    flaw = "padding" if version == "0.19.0" else "bom"
    for name in NAMES:
        store_files.write(patient.home, name, flawed(name, flaw))
    sick = support.contents(patient.home)
    broken = asked(patient, LOAD + SAVE % (NAMES,))
    left = broken.pop("left")
    assert broken == NOTHING
    assert isinstance(left, dict)
    for name in ("auth.json", PAIRED, "sessions/sessions.json"):
        assert store_files.SECRET not in left[name], "Hermes has written over it"
    assert store_files.SECRET in left["cron/jobs.json"]

    done = patient.doctor("fix", "--apply", "--yes", "--json")

    assert done.code == 0, done
    assert not {one["check"] for one in done.json["findings"]} & MINE
    assert asked(patient, LOAD) == WHOLE
    undo(patient, sick)


@pytest.mark.parametrize("version", RELEASES)
def test_torn(version: str, hermes_home: MakeHome) -> None:
    """Of files that break off Hermes reads what was whole; an empty one comes from a snapshot."""
    patient = Patient(version, hermes_home(version))
    for name in ("cron/jobs.json", "sessions/sessions.json", PAIRED):
        store_files.write(patient.home, name, flawed(name, "torn"))
    store_files.write(patient.home, "auth.json", b"")
    support.put(patient.home / "state-snapshots/1/auth.json", store_files.text("auth.json"))

    done = patient.doctor("fix", "--apply", "--yes", "--json")

    assert done.code == 0, done
    first = {key: value[:1] for key, value in WHOLE.items()}
    assert asked(patient, LOAD) == first | {"auth": WHOLE["auth"]}


@pytest.mark.wide
@pytest.mark.parametrize("flaw", ["named", "timeless", "senseless"])
def test_jobs_that_stop_every_look(hermes_home: MakeHome, flaw: str) -> None:
    """Jobs under names, one whose next run is no time, one whose schedule tells none: they stop
    0.16 until they are put right."""
    patient = Patient("0.16.0", hermes_home("0.16.0"))
    jobs = store_files.WHOLE["cron/jobs.json"]["jobs"]
    odd = {job["id"]: job for job in jobs} if flaw == "named" else [*jobs]
    if isinstance(odd, list):
        garbage = {"kind": "cron", "expr": "every noon"}
        wrong = {"next_run_at": None, "schedule": garbage}
        odd[0] = {**odd[0], **(wrong if flaw == "senseless" else {"next_run_at": "soon"})}
    store_files.write(patient.home, "cron/jobs.json", json.dumps({"jobs": odd}).encode())
    assert asked(patient, LOAD)["jobs"] != WHOLE["jobs"]

    assert patient.doctor("fix", "CRON-JOBS-CORRUPT", "--apply").code == 0

    assert asked(patient, LOAD)["jobs"] == WHOLE["jobs"]


@pytest.mark.parametrize("version", RELEASES)
def test_schedules(version: str) -> None:
    """What is called a schedule that tells no time is none to the release either."""
    asked = "import json; from cron import jobs\nsaid = []\n"
    asked += f"for one in {[*GOOD, *BAD]!r}:\n"
    asked += "    try: said.append(bool(jobs.compute_next_run({'kind': 'cron', 'expr': one})))\n"
    asked += "    except Exception: said.append(False)\n"
    with tempfile.TemporaryDirectory() as folder:
        told = real_home.run(version, Path(folder), asked + "print(); print(json.dumps(said))")

    assert json.loads(told.splitlines()[-1]) == [True] * len(GOOD) + [False] * len(BAD)


@pytest.mark.parametrize("version", ["0.13.0", "0.16.0", "0.18.2", "0.19.0"])
def test_one_id_twice(version: str, hermes_home: MakeHome) -> None:
    """The second of two jobs with one id is due whenever it is looked for, until the repair."""
    patient = Patient(version, hermes_home(version))
    past = (datetime.now(UTC) - timedelta(seconds=60)).isoformat()
    first, second = store_files.WHOLE["cron/jobs.json"]["jobs"]
    odd = [first, {**second, "id": first["id"], "next_run_at": past}]
    store_files.write(patient.home, "cron/jobs.json", json.dumps({"jobs": odd}).encode())
    look = (
        "import json; from cron import jobs\nfound = {'due': []}\nfor _ in range(3):\n"
        "    due = jobs.get_due_jobs()\n    found['due'].append([job['name'] for job in due])\n"
        "    for job in due: jobs.advance_next_run(job['id'])\n"
    )
    assert asked(patient, look)["due"] == [["beta"]] * 3

    assert patient.doctor("fix", "CRON-JOBS-CORRUPT", "--apply").code == 0

    assert asked(patient, look)["due"] == [["beta"], [], []]


@pytest.mark.parametrize("version", ["0.13.0", "0.16.0", "0.18.0", "0.19.0"])
def test_chats_that_are_dropped(version: str, hermes_home: MakeHome) -> None:
    """Without a date or a key Hermes drops a chat at its next save; after the repair it is kept."""
    patient = Patient(version, hermes_home(version))
    whole = store_files.WHOLE["sessions/sessions.json"]
    one, two = store_files.CHATS
    lacking = {key: value for key, value in whole[one].items() if key != "created_at"}
    data = {one: lacking, two: {**whole[two], "origin": {"platform": "telegram"}}}
    store_files.write(patient.home, "sessions/sessions.json", json.dumps(data).encode())
    gone = asked(patient, LOAD + SAVE % (NAMES[2:3],))
    assert gone["chats"] == []
    assert one not in json.loads(str(gone["left"]["sessions/sessions.json"]))  # type: ignore[index]

    assert patient.doctor("fix", "SESSION-ROUTE-STALE", "--apply").code == 0

    assert asked(patient, LOAD)["chats"] == WHOLE["chats"]


@pytest.mark.wide
def test_a_note_of_a_newer_release(hermes_home: MakeHome) -> None:
    """Gone back to 0.16, Hermes stumbles over the note that 0.18 writes among the chats."""
    patient = Patient("0.16.0", hermes_home("0.16.0"))
    noted = {"_README": "a note", **store_files.WHOLE["sessions/sessions.json"]}
    store_files.write(patient.home, "sessions/sessions.json", json.dumps(noted).encode())
    assert asked(patient, LOAD)["chats"] == []

    assert patient.doctor("fix", "SESSION-ROUTE-STALE", "--apply", "--yes").code == 0

    assert asked(patient, LOAD)["chats"] == WHOLE["chats"]


@pytest.mark.parametrize("version", RELEASES)
def test_knowledge(version: str) -> None:
    """What is known of the loaders of a release is what it says itself."""
    need_release(version)

    said = lessons.learn(version, "loaders")["loaders"]

    assert set(said) == set(load_knowledge("loaders")) == set(load_knowledge("stores"))
    for kind, flaws in said.items():
        known = {flaw: outcome(kind, flaw, numbers(version)) for flaw in flaws}
        assert known == flaws, kind


MAKE = """
import os
from pathlib import Path
home = Path(os.environ["HERMES_HOME"])
from cron import jobs
jobs.create_job(prompt="say hello", schedule="every 2h", name="hello")
from hermes_cli import auth
auth._save_auth_store(auth._load_auth_store())
from gateway.pairing import PairingStore
store = PairingStore()
store._approve_user("telegram", "1001", "Ann")
from gateway.config import GatewayConfig, Platform
from gateway.session import SessionSource, SessionStore
chats = SessionStore(home / "sessions", GatewayConfig())
chats.get_or_create_session(SessionSource(Platform.TELEGRAM, "1", user_id="1001"))
from gateway import status
status.write_runtime_status(gateway_state="stopped")
from hermes_cli import webhook
webhook._save_subscriptions({"one": {"secret": "x", "prompt": "y"}})
from hermes_cli import kanban_db
kanban_db.write_board_metadata("b1", name="my board")
from gateway.platforms import weixin
weixin.save_weixin_account(str(home), account_id="a", token="x", base_url="https://a.example")
weixin.ContextTokenStore(str(home)).set("a", "u", "x")
"""
"""Every store, written by the release itself."""


@pytest.mark.parametrize("version", RELEASES)
def test_healthy(version: str, hermes_home: MakeHome) -> None:
    """Stores that a release wrote itself show nothing."""
    patient = Patient(version, hermes_home(version))
    real_home.run(version, patient.home, MAKE)
    found = Probes(Home(patient.home)).stores.files()
    assert {one.store.kind for one in found.found} >= {"jobs", "auth", "approved", "sessions"}

    done = patient.check()

    assert not {one["check"] for one in done.json["findings"]} & MINE


CLAIM = """
import os, subprocess, sys, time
from hermes_cli import kanban_db
ended = subprocess.Popen([sys.executable, "-c", ""])
ended.wait()
with kanban_db.connect() as db:
    task = kanban_db.create_task(db, title="a task", assignee="default")
    kanban_db.claim_task(db, task)
    old = int(time.time()) - 9999
    db.execute("UPDATE tasks SET worker_pid = ?, claim_expires = ?", (ended.pid, old))
    db.commit()
"""
READY = """
from hermes_cli import kanban_db
with kanban_db.connect() as db:
    [task] = [one for one in kanban_db.list_tasks(db) if one.title == "a task"]
    print(task.status, kanban_db.claim_task(db, task.id) is not None)
"""


@pytest.mark.parametrize("version", RELEASES)
def test_tasks_of_the_dead(version: str, hermes_home: MakeHome) -> None:
    """A task that a worker held which is no more can be claimed again."""
    patient = Patient(version, hermes_home(version))
    real_home.run(version, patient.home, CLAIM)
    assert patient.ask(READY).split() == ["running", "False"]

    done = patient.doctor("fix", "KANBAN-STUCK", "--apply", "--yes")

    assert done.code == 0, done
    assert patient.ask(READY).split() == ["ready", "True"]


ENDED = """
import os
from pathlib import Path
home = Path(os.environ["HERMES_HOME"])
from gateway.config import GatewayConfig, Platform
from gateway.session import SessionSource, SessionStore
from hermes_state import SessionDB
chats = SessionStore(home / "sessions", GatewayConfig())
entry = chats.get_or_create_session(SessionSource(Platform.TELEGRAM, "1", user_id="7"))
history = SessionDB(home / "state.db")
end = %r
if end:
    history.end_session(entry.session_id, "cli_close")
print(history.get_session(entry.session_id)["end_reason"])
history.close()
"""


@pytest.mark.wide
def test_chat_of_an_ended_conversation(hermes_home: MakeHome) -> None:
    """0.16 goes on writing into it; after the fix the chat begins anew."""
    patient = Patient("0.16.0", hermes_home("0.16.0"))
    real_home.run("0.16.0", patient.home, ENDED % True)
    assert patient.ask(ENDED % False).split() == ["cli_close"], "it leads there still"

    done = patient.doctor("fix", "SESSION-ROUTE-STALE", "--apply", "--yes")

    assert done.code == 0, done
    assert patient.ask(ENDED % False).split() == ["None"]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("version", "damaged"), [("0.18.2", False), ("0.19.0", False), ("0.19.0", True)]
)
def test_first_sign_of_the_ticker(
    hermes_home: MakeHome, monkeypatch: pytest.MonkeyPatch, version: str, damaged: bool
) -> None:
    """It is left as soon as a gateway looks for jobs; with a damaged list of runs, never."""
    home = hermes_home(version)
    shutil.rmtree(home / "cron", ignore_errors=True)
    if damaged:
        support.put(home / "cron/executions.db", b"no database " * 999)
    with gateways.gateway(version, home) as one:
        output, sign = home.parent / f"{home.name}.out", home / "cron/ticker_heartbeat"
        gateways.until(
            lambda: b"in thread cron-scheduler" in output.read_bytes() or sign.exists(), "a sign"
        )
        long_up = [Gateway(one.pid, datetime.now(UTC) - timedelta(hours=1))]
        monkeypatch.setattr(GatewayView, "running", lambda _: long_up)
        monkeypatch.setattr(HermesView, "code_change", lambda _: None)

        found = ask("cron-ticker", home)[1]

    assert ["did not start" in said.title for said in found] == ([True] if damaged else [])


@pytest.mark.wide
def test_running_gateway(hermes_home: MakeHome) -> None:
    """It is down while its logins are mended, up on the mended ones, and writes none over them."""
    with ward(hermes_home("0.19.0")) as one:
        first = one.pid
        store_files.write(one.home, "cron/jobs.json")
        store_files.write(one.home, "auth.json", flawed("auth.json", "padding"))
        asked = one.doctor("fix", "AUTHJSON", "--apply")
        assert (asked.code, one.pid) == (1, first), "it interrupts a gateway, so it asks first"

        done = one.fix("AUTHJSON")

        assert done.code == 0, done.out + done.err
        assert one.pid != first
        assert (one.home / "auth.json").read_bytes() == store_files.text("auth.json")
        assert not {finding["check"] for finding in one.check().json["findings"]} & MINE
