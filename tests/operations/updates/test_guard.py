"""The guard: a backup before, the command as it is, a look after, and nothing half-done."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from hermes_doctor.backup.records.updates import UpdateRecords
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Gateway
from hermes_doctor.core.system.accounts import account
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.installation.details import InstallationDetails, read_details
from hermes_doctor.hermes.installation.find import of_command_line
from hermes_doctor.operations.updates import after_update, before_update, launcher, requirements
from hermes_doctor.operations.updates.before_update import (
    UpdatePreflight,
    profile_findings,
    record_state,
)
from hermes_doctor.sqlite.reader import InMemory
from tests.helpers import fake_environments, support

METADATA = "Metadata-Version: 2.1\nName: some\nVersion: 1.0\n"
QUICK = {"HERMES_DOCTOR_SETTLE": "0"}


def guarded(home: Path, *command: str, **env: str) -> support.Done:
    words = ("update-guard", "--home", str(home), *OPTIONS.get(env.pop("with", ""), ()), "--")
    return support.doctor(*words, *command, env={**QUICK, **env})


OPTIONS = {"force": ("--force",)}


def root(home: Path) -> Path:
    return home / "hermes-agent" / "venv"


def test_an_update_has_a_backup_before_and_a_look_after(place: Path) -> None:
    """The record names both versions and the backup, which is whole."""
    done = guarded(place, *fake_environments.updating(root(place), "0.19.0", then="print('hello')"))
    assert done.code == 0, done.err
    assert done.out == "hello\n"
    assert "Hermes 0.18.2 was updated to 0.19.0" in done.err
    last = UpdateRecords(Home(place)).last()
    assert last is not None
    assert last.before is not None
    assert last.after is not None
    assert (last.stage, last.exit_code) == ("checked", 0)
    assert (last.before.version, last.after.version) == ("0.18.2", "0.19.0")
    store = Vault(Home(place))
    assert last.backup is not None
    assert store.verify(store.load(last.backup)) == []
    assert "state.db" in {entry.path for entry in store.load(last.backup).entries}


def test_the_exit_code_is_the_commands_own(place: Path) -> None:
    """A failed update is looked at all the same."""
    done = guarded(place, sys.executable, "-c", "raise SystemExit(3)")
    assert done.code == 3
    last = UpdateRecords(Home(place)).last()
    assert last is not None
    assert last.stage == "checked"


def test_an_interrupted_update_is_not_called_whole(place: Path) -> None:
    """Only of ourselves can we say that nothing is left half-done."""
    code = (
        "import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL); os.kill(os.getpid(), 2)"
    )
    done = guarded(place, sys.executable, "-c", code)
    assert done.code == 130
    assert "half-done" not in done.err


def test_what_the_new_hermes_needs_and_lacks_is_named(place: Path) -> None:
    """Asked of the environment's own interpreter, without loading Hermes."""
    command = fake_environments.updating(root(place), "0.19.0", "a-package-that-nobody-has>=2")
    done = guarded(place, *command)
    assert done.code == 1
    assert "a-package-that-nobody-has is missing" in done.err
    assert "hermes-doctor rollback" in done.err


def test_a_hermes_that_is_gone_is_no_good_end(place: Path, tmp_path: Path) -> None:
    """Not even where another one lies elsewhere: it was there before, too."""
    other = tmp_path / ".local" / "share" / "uv" / "tools" / "hermes-agent"
    shutil.copytree(root(place), other, symlinks=True)
    fake_environments.become(other, "0.17.0")
    where = {"HOME": str(tmp_path)}
    done = guarded(place, "rm", "-rf", str(root(place)), **where)
    assert done.code == 1
    assert "Hermes 0.18.2 is no longer installed" in done.err
    assert "hermes-doctor rollback" in done.err


def test_a_package_that_has_lost_its_files_is_named(place: Path) -> None:
    """Its metadata is there, so the package manager believes it whole."""
    folder = fake_environments.packages(root(place))
    support.put(folder / "some-1.0.dist-info" / "METADATA", METADATA)
    support.put(folder / "some-1.0.dist-info" / "RECORD", "some/__init__.py,,9\nsome/a.py,,9\n")
    support.put(folder / "some" / "__init__.py", "")
    fake_environments.become(root(place), "0.19.0", "some")
    [said] = requirements.unmet_requirements(installed(place), account(os.geteuid()))
    assert said == "some has lost files: some/__init__.py and 1 more"
    needing = "Metadata-Version: 2.1\nName: first\nVersion: 1.0\nRequires-Dist: some\n"
    needing += "Requires-Dist: none; extra == 'x'\nRequires-Dist: gone\n"
    support.put(folder / "first-1.0.dist-info" / "METADATA", needing)
    fake_environments.become(root(place), "0.19.0", "first")
    assert requirements.unmet_requirements(installed(place), account(os.geteuid())) == (
        ("some has lost files: some/__init__.py and 1 more", "gone is missing")
    )
    fake_environments.become(root(place), "0.19.0", "some")
    for name in ("__init__", "a"):
        support.put(folder / "some" / f"{name}.py", "x = 1234\n")
    assert requirements.unmet_requirements(installed(place), account(os.geteuid())) == ()


def test_a_module_that_cannot_be_compiled_is_named(place: Path) -> None:
    """Without running it."""
    folder = fake_environments.packages(root(place))
    ran = place / "ran"
    support.put(folder / "gateway" / "run.py", f"open({str(ran)!r}, 'w')\n<<<<<<< HEAD\n")
    assert requirements.unmet_requirements(installed(place), account(os.geteuid())) == (
        "gateway.run cannot be compiled (line 2)",
    )
    entries = "[console_scripts]\nhermes = hermes_cli.main:main\n"
    support.put(folder / "hermes_agent-0.18.2.dist-info" / "entry_points.txt", entries)
    support.put(folder / "gateway" / "run.py", f"open({str(ran)!r}, 'w')\n")
    assert requirements.unmet_requirements(installed(place), account(os.geteuid())) == (
        "the module hermes_cli.main is missing",
    )
    assert not ran.exists()


def installed(home: Path) -> InstallationDetails:
    found = Probes(Home(home)).hermes.installation()
    assert found is not None
    return read_details(found)


def test_the_launcher_is_no_hermes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that it stands before is found, wherever that lies."""
    (tmp_path / "mine").mkdir()
    mine = fake_environments.make(tmp_path / "mine", "0.17.0")
    support.put(mine / "bin" / "hermes", f"#!{mine}/bin/python\n", mode=0o755)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    launcher.install()
    monkeypatch.setenv("PATH", f"{launcher.folder()}:{mine}/bin:/usr/bin")
    found = Probes(Home(support.healthy(tmp_path / "home"))).hermes.installation()
    assert found is not None
    assert found.version == "0.17.0"


def test_a_damaged_database_stops_the_update(place: Path) -> None:
    """The command is not run, nothing is changed, and it says why."""
    support.clobber(place / "state.db")
    before = support.contents(place)
    done = guarded(place, sys.executable, "-c", "print('ran')")
    assert done.code == 2
    assert "ran" not in done.out
    assert "DB-NOTADB" in done.err
    assert "--force" in done.err
    assert support.contents(place) == before


def test_a_backup_that_fails_stops_the_update(place: Path) -> None:
    """A file where the vault should be: there is no place for a backup."""
    support.put(place / "backups", "not a folder")
    done = guarded(place, sys.executable, "-c", "print('ran')")
    assert done.code == 2
    assert "ran" not in done.out
    assert "The update was not started" in done.err


def test_force_goes_on_all_the_same(place: Path) -> None:
    """The obstacle is said, the backup is made if it can be."""
    support.clobber(place / "state.db")
    done = guarded(place, sys.executable, "-c", "print('ran')", **{"with": "force"})
    assert "ran" in done.out
    assert "DB-NOTADB" in done.err


def test_force_does_not_go_beside_another(place: Path) -> None:
    """Two updates at once are none."""
    with UpdateRecords(Home(place)).lock():
        done = guarded(place, sys.executable, "-c", "print('ran')", **{"with": "force"})
    assert (done.code, done.out) == (2, "")
    assert "is running" in done.err


def test_a_guard_inside_a_guard_is_none(place: Path) -> None:
    """`hermes update` behind the launcher, started by update-guard."""
    inner = (sys.executable, "-m", "hermes_doctor", "update-guard", "--home", str(place), "--")
    done = guarded(place, *inner, sys.executable, "-c", "print('ran')")
    assert done.err.count("Nothing new is broken") == 1
    assert len(UpdateRecords(Home(place)).ids()) == 1


@pytest.mark.sampled
@pytest.mark.parametrize("left", ["x", "20261115-000000-000aa:{home}", "{id}:{home}"])
def test_a_variable_that_was_left_over_is_no_guard(place: Path, left: str) -> None:
    """A shell that a guarded command started goes on after it."""
    guarded(place, sys.executable, "-c", "pass")
    [id] = UpdateRecords(Home(place)).ids()
    value = left.format(id=id, home=place)
    guarded(place, sys.executable, "-c", "print('ran')", HERMES_DOCTOR_UPDATE=value)
    assert len(UpdateRecords(Home(place)).ids()) == 2


def test_a_command_that_is_not_there(place: Path) -> None:
    """One clear line, and no update that somebody would have to look at."""
    done = guarded(place, "no-such-command-anywhere")
    assert done.code == 2
    assert "Could not run" in done.err
    assert "Traceback" not in done.err
    last = UpdateRecords(Home(place)).last()
    assert last is not None
    assert last.stage == "backed-up"


def test_data_that_is_less_than_before_is_named(place: Path) -> None:
    """By number alone."""
    support.put(place / ".env", "A=b\n")
    support.put(place / "auth.json", '{"version": 1}')
    code = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(''); "
    code += "pathlib.Path(sys.argv[2]).unlink()"
    done = guarded(place, sys.executable, "-c", code, str(place / ".env"), str(place / "auth.json"))
    assert done.code == 1
    assert "The file .env is now empty" in done.err
    assert "The file auth.json is now missing" in done.err


def test_messages_that_are_gone_are_counted(home: Path) -> None:
    """The database is sound, only shorter."""
    found = before_update.measure(Home(home))
    assert "messages" in found
    more = {**found, "messages": found["messages"] + 3}
    assert before_update.lost_data(found, Home(home)) == ()
    assert before_update.lost_data(more, Home(home)) == (
        f"only {found['messages']} of {found['messages'] + 3} messages are left",
    )


def test_no_database_stays_open(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of ours holds one while the update is under way, or its data is put back."""
    support.healthy(home / "profiles" / "shop")
    opened: list[InMemory] = []
    closed: list[InMemory] = []
    begin, end = InMemory.__init__, InMemory.close

    def note(self: InMemory, image: bytes) -> None:
        opened.append(self)
        begin(self, image)

    def finish(self: InMemory) -> None:
        closed.append(self)
        end(self)

    monkeypatch.setattr(InMemory, "__init__", note)
    monkeypatch.setattr(InMemory, "close", finish)

    moment = UpdatePreflight((), tuple(profile_findings(Home(home), load.load())))
    update = record_state(Home(home), None, None, moment)
    after_update.examine(Home(home), update, load.load(), restart=False, settle_seconds=0)

    assert len(opened) > 3
    assert {id(one) for one in opened} == {id(one) for one in closed}


def test_the_environment_that_the_command_names_is_the_one(place: Path, tmp_path: Path) -> None:
    """Not the newest on the machine, which is another's."""
    (tmp_path / "mine").mkdir()
    mine = fake_environments.make(tmp_path / "mine", "0.17.0")
    command = fake_environments.updating(mine, "0.18.0")
    done = guarded(place, str(mine / "bin" / "python"), *command[1:])
    assert "Hermes 0.17.0 was updated to 0.18.0" in done.err
    assert "Several Hermes" in done.err


def test_a_tool_has_a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pipx and uv update is not the newest on the machine, nor what lies beside `sh`."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for place, version in (
        (".local/share/pipx/venvs", "0.16.0"),
        (".local/share/uv/tools", "0.15.0"),
    ):
        packages = tmp_path / place / "hermes-agent/lib/python3.11/site-packages"
        support.put(packages / f"hermes_agent-{version}.dist-info" / "METADATA", "")
    assert _version(["pipx", "upgrade", "hermes-agent"]) == "0.16.0"
    assert _version(["uv", "tool", "upgrade", "hermes-agent"]) == "0.15.0"
    assert _version(["sh", "-c", "pipx upgrade hermes-agent"]) is None


def _version(words: list[str]) -> str | None:
    found = of_command_line(words)
    return found.version if found else None


def test_another_one_that_changed_is_said(place: Path, tmp_path: Path) -> None:
    """The record is not of that one, so the way back does not lead there."""
    (tmp_path / "mine").mkdir()
    mine = fake_environments.make(tmp_path / "mine", "0.17.0")
    command = fake_environments.updating(root(place), "0.19.0")
    done = guarded(place, str(mine / "bin" / "python"), *command[1:])
    assert "was 0.18.2 before and is 0.19.0 now" in done.err


def test_signals_are_the_commands(place: Path) -> None:
    """It ends by them, and is looked at afterwards."""
    code = "import os, sys, time; print('up', flush=True); time.sleep(60)"
    words = ["update-guard", "--home", str(place), "--", sys.executable, "-c", code]
    with subprocess.Popen(
        [sys.executable, "-m", "hermes_doctor", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=support.environ(QUICK),
        text=True,
    ) as guard:
        assert guard.stdout is not None
        assert guard.stdout.readline() == "up\n"
        guard.send_signal(signal.SIGTERM)
        assert guard.wait(timeout=60) == 128 + signal.SIGTERM
    last = UpdateRecords(Home(place)).last()
    assert last is not None
    assert last.stage == "checked"


def test_killed_in_the_middle_it_is_not_forgotten(place: Path) -> None:
    """check says so, the next update waits, and a look afterwards settles it."""
    then = "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"
    done = guarded(place, *fake_environments.updating(root(place), "0.19.0", then=then))
    assert done.code
    fake_environments.ended(place)
    found = support.check(place, "--only", "UPD-CUTOFF", "--json")
    assert found.codes == ["UPD-CUTOFF"]
    refused = guarded(place, sys.executable, "-c", "print('ran')")
    assert refused.code == 2
    assert "was interrupted" in refused.err
    support.doctor("hook", "run", "post-update", "--home", str(place), env=QUICK)
    assert support.check(place, "--only", "UPD-CUTOFF", "--json").codes == []


def test_a_healthy_home_shows_nothing(place: Path) -> None:
    """Neither one without an update nor one with a finished one."""
    assert support.check(place, "--only", "UPD-CUTOFF", "--json").codes == []
    guarded(place, sys.executable, "-c", "pass")
    assert support.check(place, "--only", "UPD-CUTOFF", "--json").codes == []


def test_the_two_halves_by_themselves(place: Path) -> None:
    """For updates that no command of ours can wrap."""
    first = support.doctor("hook", "run", "pre-update", "--home", str(place), "--json", env=QUICK)
    assert first.code == 0
    assert json.loads(first.out)["backup"]
    fake_environments.become(root(place), "0.19.0")
    second = support.doctor("hook", "run", "post-update", "--home", str(place), "--json", env=QUICK)
    said = json.loads(second.out)
    assert (said["before"], said["after"], said["good"]) == ("0.18.2", "0.19.0", True)


def test_an_update_from_a_chat_is_looked_at_by_the_gateway_that_it_starts(place: Path) -> None:
    """An ordinary start changes nothing; no process is missed meanwhile."""

    def hook(moment: str) -> support.Done:
        return support.doctor("hook", "run", moment, "--from-chat", "--home", str(place), env=QUICK)

    def stage() -> str:
        last = UpdateRecords(Home(place)).last()
        assert last is not None
        return last.stage

    assert hook("pre-update").code == 0
    assert hook("post-update").code == 0
    assert stage() == "updating"
    assert support.check(place, "--only", "UPD-CUTOFF", "--json").codes == []
    fake_environments.become(root(place), "0.19.0")
    assert hook("post-update").code == 0
    assert stage() == "checked"


def test_no_secret_of_the_home_is_in_the_record(place: Path) -> None:
    """Versions and names, nothing else."""
    support.put(place / ".env", "OPENROUTER_API_KEY=sk-canary-zQ9\n")
    done = guarded(place, sys.executable, "-c", "pass")
    said = done.out + done.err
    said += "".join(p.read_text() for p in (place / "backups/doctor/updates").iterdir())
    assert "zQ9" not in said
    assert os.stat(place / "backups/doctor/updates").st_mode & 0o077 == 0


def test_a_gateway_that_ends_while_it_settles_is_not_up(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was there when it was asked for, and is not when its logs are read."""
    seen = Gateway(pid=42, started_at=datetime.now(UTC))
    now: list[Gateway] = [seen]
    monkeypatch.setattr(GatewayView, "running", lambda _: list(now))
    monkeypatch.setattr(after_update, "time", SimpleNamespace(sleep=lambda _: now.clear()))
    update = record_state(Home(home), None, None, UpdatePreflight((), ()))
    outcome = after_update.examine(Home(home), update, load.load(), restart=False)
    assert not outcome.gateway_up
    assert "stopped again" in outcome.gateway


def test_a_profile_whose_gateway_is_gone_afterwards_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The update was of the Hermes that it ran from."""
    profile = support.healthy(home / "profiles" / "work")
    monkeypatch.setattr(GatewayView, "running", lambda _: [])
    update = record_state(Home(home), None, None, UpdatePreflight((), ()))
    assert after_update.examine(Home(home), update, load.load(), restart=False).gateway_up
    update.beside = {str(profile): 42}
    outcome = after_update.examine(Home(home), update, load.load(), restart=False)
    assert not outcome.gateway_up
    assert "The gateway of work is not running." in outcome.gateway


def test_what_is_broken_in_a_profile_is_told(place: Path) -> None:
    """By its name, with the command for that home; what was wrong there before is not."""
    profile = support.healthy(place / "profiles" / "work")
    support.put(profile / "auth.json", "{ torn")
    script = f"open({str(profile / 'config.yaml')!r}, 'w').write('model: [')"
    done = guarded(place, sys.executable, "-c", script)

    text = " ".join(done.err.split())
    assert "(work: config.yaml" in text
    assert f"hermes-doctor fix --home {profile}" in text
    assert "auth.json" not in text
