"""The way back: everything is known before anything is changed, and git loses no commit."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from hermes_doctor.backup.records.updates import UpdateRecords, process_identity
from hermes_doctor.cli import exits
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.hermes.installation import details
from hermes_doctor.hermes.installation.details import InstallationDetails
from hermes_doctor.hermes.installation.find import installation_at
from hermes_doctor.operations.updates import before_update, downtime, rollback
from hermes_doctor.repair.gateway.manager_commands import owner_of
from tests.helpers import fake_environments, support

PROJECT = '[project]\nname = "hermes-agent"\nversion = "{}"\n'


class Checkout:
    """A Hermes that is a git checkout, with a branch `up` that holds the next release."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.path = home / "hermes-agent"
        self.path.mkdir()
        self.git("init", "-q", "-b", "main")
        self.commit("old", **{"pyproject.toml": PROJECT.format("0.18.2"), "run.py": "old\n"})
        self.old = self.git("rev-parse", "HEAD")
        self.git("checkout", "-qb", "up")
        self.commit("new", **{"pyproject.toml": PROJECT.format("0.19.0"), "run.py": "new\n"})
        self.git("checkout", "-q", "main")
        fake_environments.make(home)

    def git(self, *words: str, check: bool = True) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        command = ["git", "-C", str(self.path), *who, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=check)
        return done.stdout.strip()

    def commit(self, message: str, **files: str) -> str:
        for name, text in files.items():
            support.put(self.path / name, text)
            self.git("add", name)
        self.git("commit", "-qm", message)
        return self.git("rev-parse", "HEAD")

    def doctor(self, *words: str) -> support.Done:
        env = {"HERMES_DOCTOR_SETTLE": "0"}
        command, *more = words
        return support.doctor(command, "--home", str(self.home), *more, env=env)

    def update(self, script: str = "git merge -q up") -> support.Done:
        return self.doctor("update-guard", "--", "sh", "-c", f"cd {self.path}; {script}")

    def kept(self, commit: str) -> str:
        return self.git("branch", "--contains", commit)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """One in a home."""
    return Checkout(support.healthy(tmp_path / "home"))


def test_no_branch_is_moved(checkout: Checkout) -> None:
    """Commits made since then are on their branch, and on one that names the rollback."""
    checkout.update()
    mine = checkout.commit("mine", **{"mine.py": "x\n"})
    done = checkout.doctor("rollback", "--yes")
    assert done.code == 0, done.err
    assert checkout.git("rev-parse", "HEAD") == checkout.old
    assert checkout.git("rev-parse", "main") == mine
    assert "hermes-doctor/before-rollback-" in checkout.kept(mine)
    assert "hermes-doctor/before-rollback-" in done.err
    assert (checkout.path / "run.py").read_text() == "old\n"
    assert (checkout.path / "venv").is_dir()


def test_newer_rows_are_counted(checkout: Checkout) -> None:
    """The plan says how many messages it removes from the live data, and undo restores them."""
    checkout.update()
    history = checkout.home / "state.db"
    with contextlib.closing(sqlite3.connect(history)) as db, db:
        support.say(db, "said after the update", "and this")

    done = checkout.doctor("rollback", "--yes")

    assert done.code == 0, done.err
    loss = "2 messages that the restored copy lacks will be removed from state.db and kept in a"
    assert loss in " ".join(done.err.split())
    assert checkout.doctor("undo", "--yes").code == 0
    with contextlib.closing(sqlite3.connect(history)) as db:
        assert ("and this",) in db.execute("SELECT content FROM messages").fetchall()


def test_the_branch_of_before_comes_back_where_it_was(checkout: Checkout) -> None:
    """The update had changed to another one."""
    checkout.git("checkout", "-qb", "feature")
    mine = checkout.commit("mine", **{"mine.py": "x\n"})
    checkout.update("git checkout -q main; git merge -q up")
    assert checkout.doctor("rollback", "--yes").code == 0
    assert checkout.git("rev-parse", "--abbrev-ref", "HEAD") == "feature"
    assert checkout.git("rev-parse", "HEAD") == mine


def test_what_was_changed_by_hand_is_in_the_stash(checkout: Checkout) -> None:
    """So is a file that git did not know and that the commit would write over."""
    who = "-c user.name=a -c user.email=a@b"
    checkout.update(f"git merge -q up; git rm -q --cached run.py; git {who} commit -qm gone")
    support.put(checkout.path / "run.py", "not yours\n")
    support.put(checkout.path / "pyproject.toml", PROJECT.format("0.19.0") + "# mine\n")
    support.put(checkout.path / "unknown.txt", "stays\n")
    done = checkout.doctor("rollback", "--yes")
    assert done.code == 0, done.err
    assert "stash" in done.err
    assert len(checkout.git("stash", "list").splitlines()) == 2
    assert "# mine" in checkout.git("show", "stash@{1}:pyproject.toml")
    assert checkout.git("show", "stash@{0}^3:run.py") == "not yours"
    assert (checkout.path / "unknown.txt").read_text() == "stays\n"


def test_an_unfinished_merge_is_said_first(checkout: Checkout) -> None:
    """Before anything is changed."""
    support.put(checkout.path / "run.py", "mine\n")
    said = checkout.update("git stash -q; git merge -q up; git stash pop")
    before = checkout.git("status", "--porcelain")
    assert "UU run.py" in before
    assert "a git merge is unfinished" in said.err
    done = checkout.doctor("rollback", "--yes")
    assert done.code == 2
    assert "run.py" in done.err
    assert "Nothing was changed" in done.err
    assert checkout.git("status", "--porcelain") == before
    last = UpdateRecords(Home(checkout.home)).last()
    assert last is not None
    assert last.stage == "checked"


@pytest.mark.sampled
@pytest.mark.parametrize("mine", [False, True])
def test_a_tree_that_was_clean_is_clean_again(checkout: Checkout, mine: bool) -> None:
    """The update died before the commit was another; changes of before stay as they are."""
    if mine:
        support.put(checkout.path / "pyproject.toml", PROJECT.format("0.18.2") + "# mine\n")
    checkout.update("echo garbage > run.py; exit 1")
    assert checkout.doctor("rollback", "--yes").code == 0
    assert (checkout.path / "run.py").read_text() == ("garbage\n" if mine else "old\n")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home whose Hermes was updated, with a backup in a vault elsewhere."""
    home = support.healthy(tmp_path / "home")
    root = fake_environments.make(home)
    vault = ("--vault", str(tmp_path / "vault"))
    done = support.doctor("hook", "run", "pre-update", "--home", str(home), *vault)
    assert done.code == 0, done.err
    fake_environments.become(root, "0.19.0")
    support.put(root / "bin" / "pip-was-run", "")
    return home


def roll_back(home: Path, *more: str) -> support.Done:
    return support.doctor("rollback", "--yes", "--home", str(home), *more)


def refused(home: Path, why: str) -> None:
    before = support.contents(home)
    done = roll_back(home)
    assert done.code == 2, done.err
    assert why in done.err
    assert "Nothing was changed" in done.err
    assert support.contents(home) == before


def test_a_vault_that_is_not_there(place: Path, tmp_path: Path) -> None:
    """A disk that is not mounted."""
    (tmp_path / "vault").rename(tmp_path / "away")
    refused(place, "No backup")


def test_a_backup_that_is_damaged(place: Path, tmp_path: Path) -> None:
    """It is read wholly before the old Hermes comes back."""
    [copy] = (tmp_path / "vault").rglob("config.yaml")
    copy.chmod(0o600)
    copy.write_text("model: another\n")
    refused(place, "is damaged")


def test_somebody_who_has_the_history_open(place: Path) -> None:
    """He is named."""
    code = "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1]); "
    code += "c.execute('select 1 from sqlite_master').fetchall(); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(place / "state.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        refused(place, f"rocess {holder.pid} has state.db open")
        holder.communicate(b"\n")


def test_an_update_that_is_still_under_way(place: Path) -> None:
    """Its command lives, though its guard may be dead."""
    records = UpdateRecords(Home(place))
    last = records.last()
    assert last is not None
    last.stage = "updating"
    last.guard = [2**22 + 1, 5]
    last.child = process_identity(os.getpid()) or []
    records.save(last)
    refused(place, f"is still running (process {os.getpid()})")
    done = support.doctor("hook", "run", "post-update", "--home", str(place))
    assert done.code == 2
    assert "is still running" in done.err


class Service:
    """Somebody who owns a gateway that does not run."""

    def __init__(self, done: list[str], runs: int | None = None) -> None:
        self.done = done
        self.runs = runs
        self.was: int | None = None

    def running(self) -> int | None:
        return self.runs

    def asked(self) -> int | None:
        return self.was

    def restless(self) -> bool:
        return False

    def remember(self, file: Path) -> None:
        support.put(file, "how it was started")

    def recall(self, file: Path) -> None:
        self.done.append(f"recall {file.read_text()}")

    def stop(self, _: float) -> None:
        self.done.append("stop")
        self.was, self.runs = self.runs, None

    def start(self, _: float) -> None:
        self.done.append("start")
        self.runs = 2


def test_a_gateway_that_a_killed_rollback_had_stopped_is_started(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it had been, variables and all; one that nobody stopped is left alone."""
    done: list[str] = []
    monkeypatch.setattr(
        "hermes_doctor.repair.gateway.control.gateway_control", lambda _: Service(done)
    )
    records = UpdateRecords(Home(home))
    made = before_update.record_state(Home(home), None, None, before_update.UpdatePreflight((), ()))
    with downtime.gateways_stopped(Home(home), made, lambda _: None) as up:
        up()
    assert done == []
    made.down = [str(home)]
    support.put(records.origin(made, Home(home)), "by hand")
    with downtime.gateways_stopped(Home(home), made, lambda _: None) as up:
        up()
    assert done == ["recall by hand", "start"]
    assert not records.load(made.id).down
    assert not records.origin(made, Home(home)).exists()


def test_the_gateways_of_profiles_are_down_and_up_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their code is exchanged and their data replaced as well; and one failure hinders no other."""
    profile = support.healthy(home / "profiles" / "work")
    owned = {str(home): Service([], 7), str(profile): Service([], 8)}

    def fail(_: float) -> None:
        raise CannotFix("not today")

    owned[str(home)].start = fail  # type: ignore[method-assign]
    records = UpdateRecords(Home(home))
    made = before_update.record_state(Home(home), None, None, before_update.UpdatePreflight((), ()))
    monkeypatch.setattr(
        "hermes_doctor.repair.gateway.control.gateway_control",
        lambda probes: owned[str(probes.home.path)],
    )
    running = [SimpleNamespace(pid=4_000_000)]  # higher than Linux counts by default
    monkeypatch.setattr(
        "hermes_doctor.diagnosis.probes.gateway_view.GatewayView.running", lambda _: running
    )
    with (
        pytest.raises(CannotFix, match="not today"),
        downtime.gateways_stopped(Home(home), made, lambda _: None) as up,
    ):
        assert records.load(made.id).down == [str(home), str(profile)]
        assert records.origin(made, Home(profile)).name.endswith(".work.origin")
        up()
    assert owned[str(profile)].done == ["stop", "start"]
    assert records.load(made.id).down == [str(home)]


def installs_by(root: Path, script: str) -> None:
    """Its interpreter does this, where it is asked to install something."""
    python = root / "bin" / "python"
    python.unlink()
    asked = f'[ "$1" = -m ] || exec {sys.executable} "$@"'
    support.put(python, f"#!/bin/sh\n{asked}\n{script}").chmod(0o755)


def test_what_brings_packages_back_outlives_a_killed_rollback(tmp_path: Path) -> None:
    """Until it has ended, nobody begins another beside it."""
    home = support.healthy(tmp_path / "home")
    root = fake_environments.make(home)
    support.doctor("hook", "run", "pre-update", "--home", str(home))
    fake_environments.become(root, "0.19.0")
    installs_by(root, f"kill -9 $PPID\nread line <{tmp_path}/fifo\n")
    os.mkfifo(tmp_path / "fifo")
    assert roll_back(home).code == -9
    assert "another update or rollback" in roll_back(home).err.lower()
    support.put(tmp_path / "fifo", "\n")
    until = time.monotonic() + 60
    while "another update or rollback" in (said := roll_back(home).err.lower()):
        assert time.monotonic() < until
    assert "no interpreter" not in said
    support.put(tmp_path / "fifo", "\n")  # what the last one began ends, too


def test_interrupted(tmp_path: Path) -> None:
    """Whoever does so in the middle is not told that nothing is left half-done."""
    home = support.healthy(tmp_path / "home")
    root = fake_environments.make(home)
    support.doctor("hook", "run", "pre-update", "--home", str(home))
    fake_environments.become(root, "0.19.0")
    installs_by(root, "kill -2 $PPID\nexec sleep 1000\n")

    done = roll_back(home)

    assert done.code == 130
    assert "The rollback is not finished. To go on, run the same command again." in done.err
    assert "half-done" not in done.err


def test_a_way_back_that_was_cut_off_can_be_settled_by_a_look(place: Path) -> None:
    """And one that was gone to its end cannot be looked at as an update any more."""
    records = UpdateRecords(Home(place))
    last = records.last()
    assert last is not None
    for stage, code in (("going-back", 0), ("back", 2)):
        last.stage = stage
        records.save(last)
        words = ("hook", "run", "post-update", "--home", str(place))
        done = support.doctor(*words, env={"HERMES_DOCTOR_SETTLE": "0"})
        assert done.code == code, done
    assert records.load(last.id).stage == "back"


def test_two_at_once(place: Path) -> None:
    """The second waits for nothing and changes nothing."""
    with UpdateRecords(Home(place)).lock():
        refused(place, "is running")


def test_back_already(tmp_path: Path) -> None:
    """What came in since would be lost from sight: only by name."""
    home = support.healthy(tmp_path / "home")
    fake_environments.make(home)
    assert support.doctor("hook", "run", "pre-update", "--home", str(home)).code == 0
    assert roll_back(home).code == 0
    with sqlite3.connect(home / "state.db") as database:
        database.execute("CREATE TABLE mine (x)")
    database.close()
    refused(home, "already rolled back")
    [id] = UpdateRecords(Home(home)).ids()
    assert roll_back(home, id).code == 0


def test_one_document_for_programs(tmp_path: Path) -> None:
    """With the data and without; and where it cannot be, too."""
    home = support.healthy(tmp_path / "home")
    root = fake_environments.make(home)
    assert support.doctor("hook", "run", "pre-update", "--home", str(home)).code == 0
    [id] = UpdateRecords(Home(home)).ids()
    done = roll_back(home, "--json", "--keep-data").json
    assert (done["schema"], done["update"]) == ("hermes-doctor/rollback/1", id)
    assert (done["run"], done["error"]) == (None, None)
    assert roll_back(home, "--json", id).json["run"]["state"] == "done"
    fake_environments.become(root, "0.19.0")
    failed = roll_back(home, "--json", id)  # there is no pip in this environment
    assert failed.code == 1
    assert "failed with" in failed.json["error"]


def test_a_hermes_that_was_not_seen_is_for_the_operator_to_exchange(tmp_path: Path) -> None:
    """It lies in an image; where the data is, is said."""
    home = support.healthy(tmp_path / "home")
    made = before_update.record_state(
        Home(home), "20261115-000000-000aa", None, before_update.UpdatePreflight((), ())
    )
    made.before = None
    UpdateRecords(Home(home)).save(made)
    done = roll_back(home)
    assert done.code == 2
    assert "hermes-doctor backup restore 20261115-000000-000aa" in done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's files")
def test_what_a_symlink_leads_to_is_another_s(tmp_path: Path) -> None:
    """A file of another user, which was saved along, does not stop the way back half-way."""
    home = support.healthy(tmp_path / "home")
    fake_environments.make(home)
    theirs = support.put(tmp_path / "theirs", "then", 0o644)
    (home / "theirs").symlink_to(theirs)
    assert support.doctor("hook", "run", "pre-update", "--home", str(home)).code == 0
    os.chown(support.put(theirs, "now"), 12345, 12345)
    support.put(home / ".env", "now")

    done = roll_back(home)

    assert done.code == 0, done.err
    assert "is outside of the home" in done.err
    assert theirs.read_text() == "now"
    assert (home / ".env").read_text() != "now"


def test_a_damaged_record_is_not_passed_over(place: Path) -> None:
    """The one before it is not what is meant."""
    records = UpdateRecords(Home(place))
    [id] = records.ids()
    support.put(records.folder / "20991231-000000-000aa.json", "{")
    done = roll_back(place)
    assert done.code == 2
    assert "damaged" in done.err
    assert id in done.err


def test_asked_for_in_a_profile(place: Path) -> None:
    """An update is one of the whole home, and so is the way back."""
    profile = support.healthy(place / "profiles" / "shop")
    named = {"HERMES_HOME": str(profile), "HERMES_DOCTOR_SETTLE": "0"}

    looked = support.doctor("hook", "run", "post-update", "--json", env=named)
    done = support.doctor("rollback", "--yes", env=named)

    assert looked.json["after"] == "0.19.0"
    assert "No guarded update was made" not in done.err
    assert UpdateRecords(Home(profile)).ids() == []


def test_what_cannot_be_done_is_no_fault_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, wherever it comes from."""

    def refuse() -> None:
        raise CannotFix("other users may write to it")

    assert exits.exit_code_of(refuse) == 2
    assert capsys.readouterr().err == "hermes-doctor: other users may write to it\n"


OLD = {"hermes-agent": "0.18.2", "idna": "3.10", "pip": "26.0"}
NEW = {"hermes-agent": "0.19.0", "idna": "3.15", "pip": "26.1"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with an environment, and a uv on the PATH."""
    home = support.healthy(tmp_path / "home")
    fake_environments.make(home)
    support.put(tmp_path / "tools" / "uv", "#!/bin/sh\n").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    return home


def installed(home: Path, kind: str, **more: object) -> InstallationDetails:
    where = str(home / "hermes-agent" / "venv")
    one = InstallationDetails("0.18.2", where, kind, packages=OLD, python="3.11")
    return replace(one, **more)  # type: ignore[arg-type]


def back(home: Path, before: InstallationDetails, **now: object) -> list[str]:
    after = replace(before, version="0.19.0", packages=NEW)
    after = replace(after, **now)  # type: ignore[arg-type]
    made = rollback.package_rollback(Home(home), before, after, owner_of(Home(home)))
    return [" ".join(words).replace(f"{before.where}/bin/", "") for words in made]


def test_by_pip_or_by_uv(here: Path) -> None:
    """pip stays as it is; an environment without one is uv's, whoever made it."""
    wanted = "idna==3.10 hermes-agent==0.18.2"
    by_pip = f"python -m pip install --no-deps --quiet {wanted}"
    by_uv = f"uv pip install --quiet --python python --no-deps {wanted}"
    assert back(here, installed(here, "pip")) == [by_pip]
    assert back(here, installed(here, "uv")) == [by_uv]
    bare = {name: version for name, version in NEW.items() if name != "pip"}
    assert back(here, installed(here, "git"), packages=bare) == [by_uv]


def test_a_tool_keeps_what_was_installed_with_it(here: Path) -> None:
    """`uv tool install --force` would leave out every --with."""
    [command] = back(here, installed(here, "uv-tool"))
    assert command.startswith("uv pip install")
    first, second = back(here, installed(here, "pipx"))
    assert first == "pipx install --force hermes-agent==0.18.2"
    assert second == "pipx runpip hermes-agent install --no-deps --quiet idna==3.10"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (details.EDITABLE, "--editable /src"),
        (details.COPIED, "/src"),
        ("hermes-agent @ git+https://x/y@abc", "hermes-agent @ git+https://x/y@abc"),
    ],
)
def test_from_where_it_was_installed(here: Path, source: str, expected: str) -> None:
    """The checkout is installed anew, or the environment names the version of the update."""
    before = installed(here, "git", source=source, checkout="/src", revision="1" * 40)
    [command] = back(here, before)
    assert command.endswith(f"idna==3.10 {expected}")
    assert back(here, before, packages=OLD, revision="1" * 40) == []


def test_an_environment_that_is_gone_is_made_anew(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every package; without uv it is said what is missing."""
    before = installed(here, "uv", where=str(here / "gone"))
    made = rollback.package_rollback(Home(here), before, None, owner_of(Home(here)))
    assert [" ".join(words) for words in made] == [
        f"uv venv --quiet --allow-existing --python 3.11 {here}/gone",
        f"uv pip install --quiet --python {here}/gone/bin/python --no-deps "
        "idna==3.10 hermes-agent==0.18.2",
    ]
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(rollback, "_uv", lambda *_: None)
    with pytest.raises(CannotFix, match=r"lost its Python.* Python 3\.11"):
        rollback.package_rollback(Home(here), before, None, owner_of(Home(here)))


def test_what_has_only_its_name_left_is_installed_again(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version is that of before, so nothing else would bring the files back."""
    said = ("idna has lost files: idna/core.py", "gateway.run cannot be compiled (line 2)")
    monkeypatch.setattr(
        "hermes_doctor.operations.updates.requirements.unmet_requirements", lambda *_: said
    )
    by_pip = "python -m pip install --no-deps --quiet"
    wanted = "--force-reinstall idna==3.10 hermes-agent==0.18.2"
    assert back(here, installed(here, "pip"), packages=OLD) == [f"{by_pip} {wanted}"]
    both = back(here, installed(here, "pip"), packages=OLD | {"idna": "3.15"})
    assert both == [f"{by_pip} idna==3.10", f"{by_pip} --force-reinstall hermes-agent==0.18.2"]
    checkout = installed(here, "git", source=details.EDITABLE, checkout="/src")
    assert back(here, checkout, packages=OLD) == [f"{by_pip} --force-reinstall idna==3.10"]
    assert back(here, installed(here, "pipx"), packages=OLD) == [
        f"pipx runpip hermes-agent install --no-deps --quiet {wanted}"
    ]


def test_neither_pip_nor_uv_is_said_before_anything_is_changed(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when git has gone back already."""
    monkeypatch.setattr(rollback, "_uv", lambda *_: None)
    with pytest.raises(CannotFix, match="has no pip"):
        back(here, installed(here, "git"), packages={"hermes-agent": "0.19.0"})


@pytest.mark.parametrize("editable", [True, False])
def test_what_the_installer_wrote_down(here: Path, tmp_path: Path, editable: bool) -> None:
    """Also of an environment that does not lie in its checkout."""
    source = support.put(tmp_path / "my src" / "pyproject.toml", 'name = "hermes-agent"\n').parent
    root = here / "hermes-agent" / "venv"
    info = fake_environments.packages(root) / "hermes_agent-0.18.2.dist-info"
    said = {"url": (source).as_uri(), "dir_info": {"editable": True} if editable else {}}
    support.put(info / "direct_url.json", json.dumps(said))
    seen = look(root)
    assert seen.source == (details.EDITABLE if editable else details.COPIED)
    assert seen.checkout == str(source)


@pytest.mark.parametrize("text", ["[]", '{"url": 5}', "{", '{"vcs_info": {}}', "[" * 9999])
def test_odd_words_of_an_installer(here: Path, text: str) -> None:
    """They say nothing."""
    root = here / "hermes-agent" / "venv"
    info = fake_environments.packages(root) / "hermes_agent-0.18.2.dist-info"
    support.put(info / "direct_url.json", text)
    assert look(root).source == ""


@pytest.mark.parametrize("packed", [False, True])
def test_a_linked_worktree_has_a_commit(tmp_path: Path, packed: bool) -> None:
    """`.git` is a file there, and the branches lie with the first one."""
    first, linked = tmp_path / "first", tmp_path / "linked"
    support.put(first / "pyproject.toml", 'name = "hermes-agent"\nversion = "0.18.2"\n')

    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        command = ["git", "-C", str(first), *who, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q", "-b", "trunk")
    git("add", ".")
    git("commit", "-qm", "old")
    git("worktree", "add", "-q", "-b", "mine", str(linked))
    if packed:
        git("pack-refs", "--all")
    seen = look(linked)
    assert seen.revision == git("rev-parse", "HEAD")
    assert (seen.branch, seen.kind) == ("mine", "git")


def look(place: Path) -> InstallationDetails:
    found = installation_at(place)
    assert found is not None
    return details.read_details(found)
