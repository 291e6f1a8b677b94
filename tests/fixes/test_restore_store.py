"""restore-store: what is whole of a torn file, else the newest sound copy, entry by entry."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from tests.helpers import store_files, support
from tests.helpers.fix_contract import Planted
from tests.helpers.fix_cycle import SECRET, cure, refused

JOBS = "cron/jobs.json"
PAIRED = "platforms/pairing/telegram-approved.json"
SNAPSHOT = "state-snapshots/20261101-120000-pre-update"


def plan(home: Path, code: str) -> list[str]:
    """The lines of the plan that tell of entries."""
    done = support.doctor("fix", code, "--json", "--home", home)
    [one] = done.json["repair"]["plan"]
    assert SECRET not in done.out
    return list(one["steps"][0]["diff"])


def test_torn(home: Path) -> None:
    """The entry that is cut off is named and lost, the others stay."""
    data = store_files.text(JOBS)
    store_files.write(home, JOBS, data[: data.index(b'"idbeta"') + 20])
    assert plan(home, "CRON-JOBS-CORRUPT") == [
        "jobs.json, jobs:",
        "  alpha (idalpha)",
        "- idbeta  cannot be kept",
    ]

    cured = cure(home, "CRON-JOBS-CORRUPT", "restore-store", JOBS)

    found = json.loads((home / JOBS).read_text())
    assert found == {"jobs": [store_files.job("alpha")]}
    cured.undo()


@pytest.mark.usefixtures("utc")
def test_copy(home: Path) -> None:
    """Where nothing of the file can be had, the newest sound copy of a snapshot is."""
    older = support.put(home / SNAPSHOT / JOBS, store_files.text(JOBS))
    os.utime(older, (1e9, 1e9))
    newer = support.put(
        home / "state-snapshots/20261102/cron/jobs.json", store_files.text(JOBS)[:-40]
    )
    os.utime(newer, (2e9, 2e9))
    store_files.write(home, JOBS, b"")
    assert plan(home, "CRON-JOBS-CORRUPT")[1:] == ["+ alpha (idalpha)", "+ beta (idbeta)"]

    cured = cure(home, "CRON-JOBS-CORRUPT", "restore-store", JOBS)

    assert (home / JOBS).read_bytes() == store_files.text(JOBS)
    assert "of 2001-09-09 " in cured.steps[0]
    cured.undo()


def test_copy_that_has_more(home: Path) -> None:
    """What only a copy has comes back, and what is left stays as it is: it is newer."""
    users = {str(n): {"user_name": "x", "approved_at": 1.0} for n in (1001, 1002, 1003)}
    support.put(home / SNAPSHOT / PAIRED, json.dumps(users))
    store_files.write(home, PAIRED, store_files.text(PAIRED)[:90])

    assert plan(home, "PAIRING-CORRUPT") == [
        "telegram-approved.json, users:",
        "  1001",
        "+ 1002",
        "+ 1003",
    ]
    cure(home, "PAIRING-CORRUPT", "restore-store", PAIRED)
    assert set(json.loads((home / PAIRED).read_text())) == set(users)


def test_newer_than_the_copy(home: Path) -> None:
    """A login that is whole in the torn file stays: an older one may be worth nothing any more."""
    now = {"version": 1, "providers": {"nous": {"refresh_token": "now"}}, "credential_pool": {}}
    old = {"version": 1, "providers": {"nous": {}}, "credential_pool": {"deepseek": [{"id": "a"}]}}
    data = json.dumps(now, indent=2).encode()
    store_files.write(home, "auth.json", data[: data.index(b'"credential_pool"')])
    support.put(home / SNAPSHOT / "auth.json", json.dumps(old))

    cured = cure(home, "AUTHJSON", "restore-store", "auth.json")

    found = json.loads((home / "auth.json").read_text())
    assert found == {**now, "credential_pool": old["credential_pool"]}
    cured.undo()


def test_broken_in_the_middle(home: Path) -> None:
    """What only the broken file has stays, and what cannot be read of it is named."""
    jobs = {"jobs": [store_files.job(name) for name in ("alpha", "beta", "gamma")]}
    data = json.dumps(jobs, indent=2).encode().replace(b'"name": "beta",', b'"name": "beta"')
    store_files.write(home, JOBS, data)
    support.put(home / SNAPSHOT / JOBS, json.dumps({"jobs": [store_files.job("delta")]}))

    assert plan(home, "CRON-JOBS-CORRUPT")[1:] == [
        "  alpha (idalpha)",
        "  gamma (idgamma)",
        "+ delta (iddelta)",
        "- beta  cannot be kept",
    ]


def test_what_is_lost_is_shown(home: Path) -> None:
    """However many entries stay."""
    jobs = [store_files.job(f"job {number}") for number in range(60)]
    store_files.write(home, JOBS, json.dumps({"jobs": [*jobs, "odd"]}).encode())

    lines = plan(home, "CRON-JOBS-CORRUPT")

    assert lines[-2:] == ["  … 21 more are kept", "- number 61  cannot be kept"]


def test_zip_of_no_certain_home(tmp_path: Path) -> None:
    """Hermes writes its zips into the user's folder, whichever home they are of: that is said."""
    home = support.healthy(tmp_path / "user" / ".hermes")
    with zipfile.ZipFile(home.parent / "hermes-backup-2026.zip", "w") as archive:
        archive.writestr("auth.json", store_files.text("auth.json"))
    (home.parent / "hermes-backup-2026.zip").chmod(0o600)
    store_files.write(home, "auth.json", b"nonsense")

    done = support.doctor("fix", "AUTHJSON", "--home", home)

    assert "perhaps from another home" in done.out.replace("\n", " ")


@pytest.mark.sampled
@pytest.mark.parametrize("place", ["vault", "zip", "beside", "home zip"])
def test_every_place(tmp_path: Path, place: str) -> None:
    """Backups of this tool, zips of Hermes' in the home or beside it, and copies by hand."""
    home = support.healthy(tmp_path / "user" / ".hermes")
    store_files.write(home, "auth.json")
    if place == "vault":
        assert support.doctor("backup", "create", "--home", home).code == 0
    elif place == "beside":
        support.put(home / "auth.json.bak", store_files.text("auth.json"))
    else:
        name = "backups/pre-update.zip" if place == "zip" else "../hermes-backup-2026.zip"
        target = (home / name).resolve()
        target.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(target, "w") as archive:
            archive.writestr("auth.json", store_files.text("auth.json"))
        target.chmod(0o600)
    store_files.write(home, "auth.json", b"{}}")

    done = support.doctor("fix", "AUTHJSON", "--apply", "--yes", "--json", "--home", home)

    assert (done.code, done.codes) == (0, [])
    assert (home / "auth.json").read_bytes() == store_files.text("auth.json")


def test_zip_beside_another_home(home: Path) -> None:
    """A zip beside a home that is not the usual one may be of any home."""
    with zipfile.ZipFile(home.parent / "hermes-backup-2026.zip", "w") as archive:
        archive.writestr("auth.json", store_files.text("auth.json"))
    store_files.write(home, "auth.json", b"\xff")

    assert "no fix is known for it" in refused(home, "AUTHJSON")


def test_profile_in_the_zip_of_the_root(tmp_path: Path) -> None:
    """A zip of the root home covers its profiles."""
    root = support.healthy(tmp_path / ".hermes")
    home = support.healthy(root / "profiles" / "shop")
    (root / "backups").mkdir()
    with zipfile.ZipFile(root / "backups" / "a.zip", "w") as archive:
        archive.writestr("auth.json", b'{"providers": {"wrong": {}}}')
        archive.writestr("profiles/shop/auth.json", store_files.text("auth.json"))
    (root / "backups" / "a.zip").chmod(0o600)
    store_files.write(home, "auth.json", b"\xff")

    assert support.doctor("fix", "AUTHJSON", "--apply", "--yes", "--home", home).code == 0

    assert (home / "auth.json").read_bytes() == store_files.text("auth.json")


def test_no_copy_is_no_reset(home: Path) -> None:
    """Without a copy nothing is done."""
    store_files.write(home, "auth.json", b"nonsense")

    assert refused(home, "AUTHJSON")


def planted(home: Path) -> None:
    """A file of which the last job is cut off."""
    data = store_files.text(JOBS)
    store_files.write(home, JOBS, data[: data.index(b'"idbeta"') + 20])


PLANTED = Planted("CRON-JOBS-CORRUPT", planted)
