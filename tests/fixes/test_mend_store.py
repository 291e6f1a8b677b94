"""mend-store: the flaw goes, every entry is kept."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Gateway
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.stores.json_repairs import repair_bytes
from tests.helpers import planned_steps, store_files, support
from tests.helpers.fix_contract import Planted
from tests.helpers.fix_cycle import cure
from tests.helpers.store_kinds import store

PAIRED = "platforms/pairing/telegram-approved.json"
CODES = {
    "auth.json": "AUTHJSON",
    "cron/jobs.json": "CRON-JOBS-CORRUPT",
    "sessions/sessions.json": "SESSION-ROUTE-STALE",
    PAIRED: "PAIRING-CORRUPT",
    "webhook_subscriptions.json": "STORE-CORRUPT",
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", CODES)
def test_cures_and_undoes(home: Path, name: str) -> None:
    """NUL bytes behind each store: gone, every entry there, twice is once, undo gives them back."""
    store_files.everything(home)
    store_files.write(home, name, store_files.text(name) + b"\0" * 512)

    cured = cure(home, CODES[name], "mend-store", name)

    assert (home / name).read_bytes() == store_files.text(name)
    assert "every entry is kept" in cured.steps[0]
    cured.undo()


@pytest.mark.parametrize("name", ["cron/jobs.json", PAIRED])
def test_a_comma_too_many(home: Path, name: str) -> None:
    """A comma before a closing bracket, as people leave it, goes; one inside a text stays."""
    store_files.everything(home)
    spoiled = store_files.text(name).rstrip()
    assert spoiled.endswith(b"}")
    last = spoiled[:-1].rstrip() + b",\n}\n"
    store_files.write(home, name, last)

    cured = cure(home, CODES[name], "mend-store", name)

    assert json.loads((home / name).read_bytes()) == json.loads(store_files.text(name))
    cured.undo()
    odd = b'{"5": {"user_name": "a,} ,] \\\\\\",}", "approved_at": 1.0,},}'
    made = repair_bytes(odd, store("approved"))
    assert made is not None and made.lossless
    assert made.values["5"]["user_name"] == 'a,} ,] \\",}'


def test_put_aside_joins(home: Path) -> None:
    """What only the file has that Hermes put aside comes back; what is there now stays."""
    store_files.write(home, "auth.json", b'{"version": 1, "providers": {"nous": {"x": 1}}}')
    support.put(home / "auth.json.corrupt", store_files.text("auth.json") + b"}")

    cured = cure(home, "AUTHJSON", "mend-store", "auth.json")

    found = json.loads((home / "auth.json").read_text())
    assert found["providers"] == {"nous": {"x": 1}}
    assert found["credential_pool"] == store_files.WHOLE["auth.json"]["credential_pool"]
    cured.undo()


@pytest.mark.parametrize("aside", ['{"providers": [1]}', '{"providers": {}, "credential_pool": 7}'])
def test_odd_file_aside(home: Path, aside: str) -> None:
    """What was put aside may be anything."""
    store_files.write(home, "auth.json")
    support.put(home / "auth.json.corrupt", aside)

    done = support.doctor("check", "--json", "--home", home)

    assert "AUTHJSON" not in done.codes
    assert '"crashed": 0' in done.out


def test_cache(home: Path) -> None:
    """A list of limits on which Hermes fails goes to the vault: it makes a new one."""
    name = "platforms/pairing/_rate_limits.json"
    store_files.write(home, name, b"null")

    cured = cure(home, "PAIRING-CORRUPT", "mend-store", name)

    assert not (home / name).exists()
    cured.undo()


@pytest.mark.parametrize(
    ("name", "restarts"), [("auth.json", True), ("cron/jobs.json", False), (PAIRED, False)]
)
def test_gateway(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, restarts: bool
) -> None:
    """A gateway is down for what it reads at its start and writes by itself, and for no other."""
    store_files.write(home, name, store_files.text(name) + b"\0")
    running = [Gateway(os.getpid(), Probes(Home(home)).files.modified(home) or None)]  # type: ignore[arg-type]
    monkeypatch.setattr(GatewayView, "running", lambda _: running)
    planned_steps.owned(monkeypatch, planned_steps.Steady(home, os.getpid(), tmp_path))

    steps = planned_steps.sentences(
        Probes(Home(home)), planned_steps.finding(CODES[name], "mend-store", name)
    )

    assert any("restart the gateway" in one for one in steps) is restarts


def test_id_of_its_own(home: Path) -> None:
    """Jobs with the id of another get one each; nothing else of them changes."""
    same = store_files.job("a")
    made = [same, store_files.job("b", id="ida"), same, store_files.job("c")]
    store_files.write(home, "cron/jobs.json", json.dumps({"jobs": made}).encode())

    cured = cure(home, "CRON-JOBS-CORRUPT", "mend-store", "cron/jobs.json")

    found = json.loads((home / "cron/jobs.json").read_text())["jobs"]
    ids = [job.pop("id") for job in found]
    assert (ids[0], ids[3], len({*ids})) == ("ida", "idc", 4)
    assert found == [{key: job[key] for key in job if key != "id"} for job in made]
    cured.undo()


def test_senseless_schedule() -> None:
    """A job whose schedule tells no time is paused as it is; the others run."""
    odd = store_files.job("a", schedule={"kind": "cron", "expr": "every noon"}, next_run_at=None)

    made = repair_bytes(json.dumps({"jobs": [odd, store_files.job("b")]}).encode(), store("jobs"))

    assert made is not None
    assert made.lossless
    assert made.values["jobs"] == [
        odd | {"enabled": False, "state": "paused"},
        store_files.job("b"),
    ]


def test_chats_that_are_left_out(home: Path) -> None:
    """What an entry lacks and can be told otherwise is filled in, behind a note as well."""
    id, name = "20261115_001248_af794ef7", "sessions/sessions.json"
    whole = {key: store_files.session(key, id) for key in store_files.CHATS}
    keys = ("session_key", "created_at", "updated_at")
    odd = {key: value for key, value in whole[store_files.CHATS[0]].items() if key not in keys}
    data = {"_README": "a note", **whole, store_files.CHATS[0]: odd | {"origin": "x"}}
    store_files.write(home, name, json.dumps(data).encode())

    cured = cure(home, "SESSION-ROUTE-STALE", "mend-store", name)

    found = json.loads((home / name).read_text())
    assert found[store_files.CHATS[0]].pop("origin") is None
    assert found == whole
    cured.undo()


def planted(home: Path) -> None:
    """NUL bytes behind the jobs."""
    name = "cron/jobs.json"
    store_files.write(home, name, store_files.text(name) + b"\0" * 512)


PLANTED = Planted("CRON-JOBS-CORRUPT", planted)
