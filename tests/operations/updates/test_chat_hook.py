"""An update that a chat asked for, by way of the launcher: with the gateway's hook and without."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_doctor.backup.records.updates import Update, UpdateRecords
from hermes_doctor.core import home as homes
from hermes_doctor.core.home import Home
from hermes_doctor.operations.updates import chat_hook
from tests.helpers import fake_environments, support

QUICK = {"HERMES_DOCTOR_SETTLE": "0"}


def asked(home: Path, *command: str) -> support.Done:
    """What the launcher in the operator's shell runs for it."""
    more = {**QUICK, "HERMES_HOME": str(home)}
    return support.doctor("update-guard", "--from-chat", "--", *command, env=more)


def update(home: Path) -> list[str]:
    """A command that exchanges the Hermes of a home."""
    root = home / "hermes-agent" / "venv"
    return fake_environments.updating(root, "0.19.0")


def last(home: Path) -> Update:
    found = UpdateRecords(Home(home)).last()
    assert found is not None
    return found


def test_without_the_hook_the_guard_looks_itself(place: Path) -> None:
    """`hook install --no-chat`: no gateway would."""
    done = asked(place, *update(place))
    assert done.code == 0, done
    assert "Hermes 0.18.2 was updated to 0.19.0" in done.err
    assert (last(place).stage, last(place).chat) == ("checked", False)


def test_with_the_hook_the_gateway_that_it_starts_looks(place: Path) -> None:
    """Until then it is open; what was asked for by the hook a moment ago is not asked again."""
    chat_hook.install(Home(place))
    done = asked(place, *update(place))
    first = last(place)
    assert done.code == 0, done
    assert (first.stage, first.chat) == ("updating", True)
    assert first.backup is not None
    fake_environments.ended(place)
    again = asked(place, "sh", "-c", "exit 9")
    assert again.code == 9
    fake_environments.ended(place)
    assert UpdateRecords(Home(place)).ids() == [first.id]
    words = ("hook", "run", "post-update", "--from-chat", "--home", str(place))
    assert support.doctor(*words, env=QUICK).code == 0
    assert last(place).stage == "checked"


def test_an_update_that_goes_on(place: Path) -> None:
    """No other begins beside it, and a gateway that it starts looks when it has ended."""
    chat_hook.install(Home(place))
    root = place / "hermes-agent" / "venv"
    command = fake_environments.updating(root, "0.19.0", then="print('up', flush=True); input()")
    env = {**QUICK, "HERMES_HOME": str(place), "PATH": os.environ["PATH"], "HOME": str(place)}
    doctor = [sys.executable, "-P", "-m", "hermes_doctor"]
    with subprocess.Popen(
        [*doctor, "update-guard", "--from-chat", "--", *command],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "up\n"
        second = asked(place, "touch", str(place / "second"))
        looking = subprocess.Popen([*doctor, "hook", "run", "post-update", "--from-chat"], env=env)
        first.communicate("\n", timeout=120)
        assert (first.returncode, looking.wait(timeout=300)) == (0, 0)
    assert second.code == 2
    assert f"another update is running (process {first.pid})" in second.err.lower()
    assert not (place / "second").exists()
    assert last(place).stage == "checked"
    assert len(UpdateRecords(Home(place)).ids()) == 1


@pytest.mark.sampled
@pytest.mark.parametrize("hooked", [True, False])
def test_no_backup_no_update(place: Path, hooked: bool) -> None:
    """The chat is told what can be typed in a shell, whole: it has no option to add one to."""
    if hooked:
        chat_hook.install(Home(place))
    support.clobber(place / "state.db")
    done = asked(place, "touch", str(place / "updated"))
    assert done.code == 2
    assert not (place / "updated").exists()
    said = " ".join(done.err.split())
    wanted = f"hermes-doctor update-guard --force --home {place} -- hermes update (in a shell)"
    assert wanted in said


def test_a_profile_is_updated_with_all_of_its_home(place: Path) -> None:
    """The Hermes of a profile is that of every other; whoever names the profile, means it."""
    profile = support.healthy(place / "profiles" / "work")
    assert asked(profile, *update(place)).code == 0
    assert last(place).stage == "checked"
    assert UpdateRecords(Home(profile)).ids() == []
    named = ("update-guard", "--home", str(profile), "--", "true")
    assert support.doctor(*named, env=QUICK).code == 0
    assert len(UpdateRecords(Home(profile)).ids()) == 1


def test_a_folder_called_profiles_makes_no_home(tmp_path: Path) -> None:
    """Somebody's own folder, above a home that only lies as a profile would."""
    alone = Home(support.healthy(tmp_path / "profiles" / "work"))
    assert homes.root_home(alone) == alone


def test_what_the_guard_becomes_has_its_signals(place: Path) -> None:
    """Python ignores a broken pipe; a command that was started by hand would not."""
    chat_hook.install(Home(place))
    seen = asked(place, "grep", "SigIgn", "/proc/self/status")
    mask = int(seen.out.split()[1], 16)
    assert not mask & (1 << 12 | 1 << 24)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_home_where_nothing_can_be_run(tmp_path: Path) -> None:
    """Installed once, not again and again; and what it cannot do there is said."""
    probe = ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o noexec tmpfs /mnt"]
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    place = tmp_path / "disk"
    place.mkdir()
    doctor = f"{sys.executable} -P -m hermes_doctor"
    script = f"""
    mount -t tmpfs -o noexec tmpfs {place} && cp -R {support.healthy(tmp_path / "home")} {place}
    for time in 1 2; do {doctor} hook install --home {place}/home || exit 9; done
    {doctor} hook status --home {place}/home
    echo "exit $?"
    """
    env = {"HOME": str(place), "SHELL": "/bin/bash", "PATH": os.environ["PATH"], "COLUMNS": "200"}
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], env=env, capture_output=True, text=True
    )
    said = " ".join(done.stdout.split())
    assert said.count("Already installed.") == 1, done
    assert "cannot run (noexec?)" in said
    assert "writes an answer: programs in" in said
    assert done.stdout.endswith("exit 1\n")
