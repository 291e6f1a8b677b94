"""`undo` of an owner change restores the owner, or says clearly that it cannot."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.system import privileges
from tests.helpers import support

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
USER = 4242


@pytest.fixture
def theirs() -> Iterator[Path]:
    """A home of another user, in a place that everybody can get to, with two files of root's."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        yield _theirs(Path(place) / "home")


def _theirs(home: Path) -> Path:
    support.healthy(home)
    for path in (home, *home.rglob("*")):
        os.chown(path, USER, USER)
    for name, mode in (("auth.json", 0o600), ("state.db", 0o400)):
        os.chown(home / name, 0, 0)
        (home / name).chmod(mode)
    return home


def state(home: Path) -> dict[str, tuple[int, int, int]]:
    """Owner, group and mode of the two files."""
    found = {name: (home / name).stat() for name in ("auth.json", "state.db")}
    return {name: (st.st_uid, st.st_gid, st.st_mode & 0o777) for name, st in found.items()}


def fixed(home: Path) -> str:
    """Give both to the home's owner; the run."""
    done = support.doctor("fix", "--apply", "--yes", "--json", "--home", home)
    assert done.code == 0, done
    assert {one[0] for one in state(home).values()} == {USER}
    [run] = [path.name for path in (home / "backups" / "doctor" / "runs").iterdir()]
    return run


def test_undo_and_redo(theirs: Path) -> None:
    """Owner and mode come back; the undo can be undone, too."""
    before = state(theirs)
    run = fixed(theirs)
    after = state(theirs)

    undone = support.doctor("undo", run, "--yes", "--home", theirs)
    assert undone.code == 0, undone
    assert "auth.json: restored" in undone.out
    assert state(theirs) == before
    newest = sorted(path.name for path in (theirs / "backups/doctor/runs").iterdir())[-1]
    redone = support.doctor("undo", newest, "--yes", "--home", theirs)

    assert redone.code == 0, redone
    assert state(theirs) == after


def test_the_home_is_roots(home: Path, tmp_path: Path) -> None:
    """The other direction: a file of a user in a home of root's."""
    os.chown(home / "state.db", USER, USER)
    before = state(home)
    words = ("--plugins", plugin(tmp_path, wanted=0), "--home", home)
    done = support.doctor("fix", "ODD-OWNER", "--apply", "--yes", *words)
    assert done.code == 0, done
    assert state(home)["state.db"] == (0, 0, 0o644)

    assert support.doctor("undo", "--yes", *words).code == 0
    assert state(home) == before


def test_as_an_ordinary_user(theirs: Path) -> None:
    """Only root can give a file to root: that is said, and nothing else is claimed."""
    run = fixed(theirs)
    after = state(theirs)

    done = support.doctor("undo", run, "--yes", "--home", theirs, user=USER, env={"HOME": "/"})

    assert done.code == 1, done
    assert "its owner is still uid 4242: only root can restore its owner, uid 0" in done.out
    assert state(theirs) == after
    assert support.doctor("undo", run, "--yes", "--home", theirs).code == 0
    assert {one[0] for one in state(theirs).values()} == {0}


def test_without_a_mark_the_owner_stays(theirs: Path) -> None:
    """A disk that keeps no mark, or a file that was replaced: said, and exit 1."""
    run = fixed(theirs)
    os.removexattr(theirs / "auth.json", privileges.MARK)

    done = support.doctor("undo", run, "--yes", "--json", "--home", theirs)

    assert done.code == 1, done
    outcomes = {item["subject"]: (item["outcome"], item["reason"]) for item in done.json["items"]}
    assert outcomes["state.db"][0] == "verified"
    assert outcomes["auth.json"][0] == "rolled-back"
    assert "its owner is still uid 4242: could not prove" in outcomes["auth.json"][1]
    assert (state(theirs)["auth.json"][0], state(theirs)["state.db"][0]) == (USER, 0)


def test_a_forged_receipt_gives_nothing_away(theirs: Path) -> None:
    """The home's owner can forge receipt and manifest, but no mark of root's."""
    from hermes_doctor.backup.vault import manifest

    run = fixed(theirs)
    mine = support.put(theirs / "config.yaml", "model: x\n")
    os.chown(mine, USER, USER)
    folder = theirs / "backups" / "doctor" / run
    backup = manifest.parse(folder, (folder / "manifest.json").read_bytes())
    forged = tuple(
        entry._replace(path="config.yaml", mode=0o600) if entry.path == "auth.json" else entry
        for entry in backup.entries
    )
    (folder / "manifest.json").write_bytes(manifest.seal(backup._replace(entries=forged)))
    receipt = theirs / "backups" / "doctor" / "runs" / run / "run.json"
    document = json.loads(receipt.read_text())
    for record in document["paths"]:
        if record["path"] == "auth.json":
            record["path"] = "config.yaml"
            record["after"]["mode"] = 0o600
    receipt.write_text(json.dumps(document))

    done = support.doctor("undo", run, "--yes", "--force", "--home", theirs)

    assert done.code == 1, done
    assert mine.stat().st_uid == USER


def test_a_failing_run_restores_owners(theirs: Path, tmp_path: Path) -> None:
    """A fix that does not hold is rolled back with owner and mode."""
    before = state(theirs)
    words = ("--plugins", plugin(tmp_path, wanted=USER, holds=False), "--home", theirs)

    done = support.doctor("fix", "ODD-OWNER", "--apply", "--yes", *words)

    assert done.code == 1, done
    assert "still finds the problem" in done.out
    assert state(theirs) == before


CHECK = """\
from hermes_doctor.api import Finding, Severity, check, snapshot


@check(id="odd", group="odd", codes=["ODD-OWNER"])
def odd(probes):
    \"\"\"Is it odd?\"\"\"
    if not HOLDS or snapshot(probes.home / "state.db").uid != WANTED:
        yield Finding(
            code="ODD-OWNER", severity=Severity.ERROR, title="x", subject="state.db", fix="odd"
        )
"""
FIX = """\
from hermes_doctor.api import Safety, SetMode, SetOwner, fix, snapshot


@fix(id="odd", codes=["ODD-OWNER"], safety=Safety.SAFE)
def odd(probes, finding):
    \"\"\"Change owner and mode.\"\"\"
    path = probes.home / "state.db"
    yield SetOwner(path, WANTED, WANTED, why="x", expect=snapshot(path))
    yield SetMode(path, 0o644, why="x", expect=snapshot(path))
"""


def plugin(place: Path, *, wanted: int, holds: bool = True) -> Path:
    """A fix that changes the owner of state.db, and a check that may go on complaining."""
    for name, text in (("checks", CHECK), ("fixes", FIX)):
        made = text.replace("WANTED", str(wanted)).replace("HOLDS", str(holds))
        support.put(place / "odd" / name / "odd.py", made)
        (place / "odd" / name).chmod(0o755)
    (place / "odd").chmod(0o755)
    return place / "odd"
