"""The settings command, and that every command obeys config.toml."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.backup.vault import copies
from hermes_doctor.core.home import Home
from tests.helpers import support
from tests.helpers.support import Done
from tests.operations.watch.test_install import lasting_home

MARK = b"\xef\xbb\xbf"
Doctor = Callable[..., Done]


@pytest.fixture
def config(tmp_path: Path) -> Callable[[str], Path]:
    """Writes config.toml of the user."""

    def write(content: str) -> Path:
        path = tmp_path / "config" / "hermes-doctor" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        support.put(path, content, 0o600)
        return path

    return write


@pytest.fixture
def doctor(tmp_path: Path) -> Doctor:
    """Runs a command as this user."""

    def run(*args: str | Path, **more: str) -> Done:
        env = {
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "HOME": str(tmp_path / "nobody"),
        }
        return support.doctor(*args, env=env | more)

    return run


def shown(doctor: Doctor, *args: str | Path, **more: str) -> dict[str, tuple[Any, str]]:
    """What `settings --json` says, by key."""
    done = doctor("settings", "--json", *args, **more)
    assert done.code == 0, done.err
    return {one["key"]: (one["value"], one["origin"]) for one in json.loads(done.out)["settings"]}


def test_defaults(doctor: Doctor, home: Path) -> None:
    """Each value is there, with its origin."""
    found = shown(doctor, "--home", home)
    assert found["home"] == (str(home), "--home")
    assert found["fail_on"] == ("error", "default")
    assert found["vault"] == (f"{home}/backups/doctor", "default")
    assert found["watch.interval"] == ("30s", "default")
    assert found["watch.notify_webhook"] == (None, "default")


def test_values_and_their_origin(doctor: Doctor, config: Callable[[str], Path], home: Path) -> None:
    """A secret is not shown; text and JSON say the same."""
    path = config(
        f'home = "{home}"\nfail_on = "warning"\n'
        '[severity]\nGW-LINGER = "off"\n'
        '[watch]\nnotify_webhook = "https://example.org/secret"\nafter = 5\n'
    )
    found = shown(doctor, HERMES_DOCTOR_FAIL_ON="critical")
    assert found["home"] == (str(home), f"{path}:1")
    assert found["fail_on"] == ("critical", "HERMES_DOCTOR_FAIL_ON")
    assert found["severity.GW-LINGER"] == ("off", f"{path}:4")
    assert found["watch.after"] == (5, f"{path}:7")
    assert found["watch.notify_webhook"] == ("(set, not shown)", f"{path}:6")
    done = doctor("settings")
    assert "secret" not in done.out and f"{path}:2" in done.out and f"{path}: read" in done.out


def test_without_a_home(doctor: Doctor) -> None:
    """The other settings are shown."""
    found = shown(doctor)
    assert found["home"] == (None, "default: not found") and found["fail_on"][0] == "error"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("colour = 1", ":1: unknown key colour."),
        ('[severity]\nENV-BON = "off"', ":2: unknown code 'ENV-BON'. Did you mean ENV-BOM?"),
        ('[watch]\ninterval = "soon"', ":2: interval needs a time from 1s"),
        ('[watch]\nbudget = "3"', ":2: --budget needs a number and a time"),
        ('[watch]\nnotify_on = "all"', ":2: use critical, error, warning, info."),
        ("home = " + "1" * 5000, ": not valid TOML"),
        ('[watch]\nonly = ["nope"]', ": Unknown check, code or group 'nope'."),
        ('[watch]\nheal = true\nalso = ["nope"]', ": --also needs a code or fix"),
        ('[watch]\nheartbeat = "nope"', ": --heartbeat needs an address that starts with"),
        ('[homes."/elsewhere".watch]\ninterval = "bad"', ":2: interval needs a time"),
    ],
)
def test_mistakes(
    doctor: Doctor, config: Callable[[str], Path], home: Path, content: str, said: str
) -> None:
    """`settings` finds them all."""
    path = config(content)
    done = doctor("settings", "--home", home)
    assert done.code == 2 and f"{path}{said}" in done.err and done.err.count("\n") == 1


@pytest.mark.parametrize("command", ["check", "fix", "list", "explain ENV-BOM", "watch --once"])
def test_no_command_runs_with_a_wrong_file(
    doctor: Doctor, config: Callable[[str], Path], home: Path, command: str
) -> None:
    """It could do something that the operator did not want."""
    path = config("colour = 1")
    named = {} if command.startswith(("list", "explain")) else {"HERMES_HOME": str(home)}
    done = doctor(*command.split(), **named)
    assert done.code == 2 and f"{path}:1: unknown key colour." in done.err


def test_fail_on(doctor: Doctor, config: Callable[[str], Path], home: Path) -> None:
    """The command line comes before the environment, and that before the file."""
    support.put(home / ".env", MARK + (home / ".env").read_bytes())
    config('fail_on = "critical"')
    check = ("check", "--only", "ENV-BOM", "--home", home)
    assert doctor(*check).code == 0
    assert doctor(*check, HERMES_DOCTOR_FAIL_ON="error").code == 1
    assert doctor(*check, "--fail-on", "critical", HERMES_DOCTOR_FAIL_ON="error").code == 0
    config(f'fail_on = "critical"\n[homes."{home}"]\nfail_on = "error"')
    assert doctor(*check).code == 1
    assert doctor("check", "--all-homes", "--only", "ENV-BOM", "--home", home).code == 1
    assert doctor("watch", "--once", "--only", "ENV-BOM", "--home", home).code == 1


def test_severities(doctor: Doctor, config: Callable[[str], Path], home: Path) -> None:
    """In check, in the watch and in fix; a code that is off is repaired if it is named."""
    support.put(home / ".env", MARK + (home / ".env").read_bytes())
    config('[severity]\nENV-BOM = "info"')
    [one] = doctor("check", "--json", "--only", "ENV-BOM", "--home", home).json["findings"]
    assert one["severity"] == "info"
    config('[severity]\nENV-BOM = "off"')
    assert doctor("check", "--json", "--only", "ENV-BOM", "--home", home).json["findings"] == []
    assert "ENV-BOM" not in doctor("watch", "--once", "--home", home).out
    plan = doctor("fix", "--json", "--home", home).json["repair"]["plan"]
    assert "ENV-BOM" not in [item["code"] for item in plan]
    assert doctor("fix", "ENV-BOM", "--apply", "--yes", "--home", home).code == 0
    assert not (home / ".env").read_bytes().startswith(MARK)


def test_plugins(doctor: Doctor, config: Callable[[str], Path], home: Path, tmp_path: Path) -> None:
    """Their folder is loaded without the option."""
    text = (
        "from hermes_doctor.api import *\n"
        "@check(id='mine', group='tests', codes=['MINE'])\n"
        "def mine(probes):\n"
        "    'Is it mine?'\n"
        "    yield Finding('MINE', Severity.WARNING, 'it is mine')\n"
    )
    support.put(tmp_path / "own" / "checks" / "mine.py", text, 0o644)
    config(f'plugins = ["{tmp_path}/own"]\n[severity]\nMINE = "error"')
    [one] = doctor("check", "--json", "--only", "MINE", "--home", home).json["findings"]
    assert one["severity"] == "error"
    support.put(tmp_path / "own" / "docs" / "failures" / "MINE.md", "# MINE: it is mine\n", 0o644)
    assert doctor("explain", "MINE").out == "# MINE: it is mine\n"


def test_vault(doctor: Doctor, config: Callable[[str], Path], home: Path, tmp_path: Path) -> None:
    """Backups and repairs use it, check finds the backup there, and undo works."""
    vault = tmp_path / "vault"
    config(f'vault = "{vault}"')
    assert doctor("backup", "create", "--home", home).code == 0
    assert list(vault.iterdir()) and not list((home / "backups" / "doctor").glob("2*"))
    states = doctor("check", "--json", "--home", home).json["states"]["data"]
    assert re.search(r"backup \d+ s old", str(states))
    plain = (home / ".env").read_bytes()
    support.put(home / ".env", MARK + plain)
    assert doctor("fix", "ENV-BOM", "--apply", "--yes", "--home", home).code == 0
    assert len(list(vault.glob("2*"))) == 2
    config("")
    assert doctor("undo", "--yes", "--home", home).code == 0
    assert (home / ".env").read_bytes() == MARK + plain


def test_one_severity_is_enough(doctor: Doctor, home: Path) -> None:
    """Two of them would contradict each other."""
    done = doctor("check", "--fail-on", "error,info", "--home", home)
    assert done.code == 2
    assert "Unknown --fail-on 'error,info': use one of critical, error" in done.err


def test_a_vault_of_two_homes(
    doctor: Doctor, config: Callable[[str], Path], home: Path, tmp_path: Path
) -> None:
    """The backup of one home is not taken for one of the other."""
    other = support.healthy(tmp_path / "other")
    config(f'vault = "{tmp_path}/vault"')
    doctor("backup", "create", "--home", other)
    states = doctor("check", "--json", "--home", home).json["states"]["data"]
    assert "no full backup" in str(states)
    told = doctor("timeline", "--json", "--home", home).json["events"]
    assert "backup" not in {event["kind"] for event in told}


def test_options_of_the_watch(
    doctor: Doctor, config: Callable[[str], Path], home: Path, tmp_path: Path
) -> None:
    """They are used by `watch` and written into the service by `watch install`."""
    config(
        f'[watch]\nmetrics = "{tmp_path}/hermes.prom"\nonly = ["ENV-BOM"]\n'
        'interval = "2m"\nheal = true\nalso = ["reset-gateway"]\n'
    )
    done = doctor("watch", "--once", "--json", "--home", home)
    assert done.code == 0, done.err
    assert (tmp_path / "hermes.prom").exists()
    assert json.loads(done.out.splitlines()[0])["interval"] == 120.0
    done = doctor("watch", "--once", "--no-heal", "--interval", "7s", "--json", "--home", home)
    assert done.code == 0, done.err


def test_a_silence_that_is_switched_off(
    doctor: Doctor, config: Callable[[str], Path], home: Path
) -> None:
    """No format says that the bot works, and none raises an alarm."""
    text = (home / "config.yaml").read_text()
    support.put(home / "config.yaml", text + "\n\tbroken: [\n")
    codes = {
        one["code"]
        for one in doctor("check", "--json", "--home", home).json["findings"]
        if one["severity"] in ("critical", "error")
    }
    assert "CFG-YAML" in codes
    for severity in ("off", "info"):
        config("[severity]\n" + "".join(f'{code} = "{severity}"\n' for code in codes))
        done = doctor("check", "--home", home)
        assert done.code == 0
        assert (
            "✗ Your bot is not working, and config.toml lowers the severity of the reason"
            in done.out
        )
        assert ("Found, but off in config.toml" in done.out) is (severity == "off")
        summary = doctor("check", "--json", "--home", home).json["summary"]
        assert summary["verdict"] == "not working"
        assert (sorted(codes) == summary["off"]) is (severity == "off")
        metrics = doctor("check", "--format", "prometheus", "--home", home).out
        assert re.search(r"hermes_doctor_bot_works\{.*\} 0", metrics)
        assert re.search(r"hermes_doctor_silence_muted\{.*\} 1", metrics)
        nagios = doctor("check", "--format", "nagios", "--home", home)
        assert nagios.out.startswith("HERMES OK - Your bot is not working, and config.toml")
        assert nagios.code == 0
    config('[severity]\nCFG-YAML = "off"')
    assert "Left out, because off: CFG-YAML. Name the code" in doctor("fix", "--home", home).out


def test_the_vault_of_a_file_is_searched_for_copies(
    doctor: Doctor,
    config: Callable[[str], Path],
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A repair takes rows from the backups there, and from those in the home."""
    assert doctor("backup", "create", "--home", home).code == 0
    config(f'vault = "{tmp_path}/vault"')
    assert doctor("backup", "create", "--home", home).code == 0
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    found = [copy.path for copy in copies.database_copies(Home(home), home / "state.db")]
    assert [path.parents[2] for path in found] == [tmp_path / "vault", home / "backups" / "doctor"]
    other = support.healthy(tmp_path / "other")
    assert copies.database_copies(Home(other), other / "state.db") == []
    assert list(copies.text_copies(Home(other), "config.yaml", 4096)) == []
    assert len(list(copies.text_copies(Home(home), "config.yaml", 4096))) == 2


def test_a_switch_that_is_declined(
    doctor: Doctor, config: Callable[[str], Path], tmp_path: Path
) -> None:
    """`watch install --no-heal` installs a watch that does not heal, whatever the file says."""
    config("[watch]\nheal = true\nnetwork = true\n")
    with lasting_home() as home:
        words = ("watch", "install", "--dry-run", "--cron", "--home", home)
        plain = doctor(*words).out
        assert " --heal " in plain and " --network" in plain
        done = doctor(*words, "--no-heal", "--no-network").out
        assert " --no-heal --no-network" in done and " --heal " not in done
        assert f"XDG_CONFIG_HOME={tmp_path}/config" in done


def test_a_folder_that_cannot_be_entered(doctor: Doctor, home: Path) -> None:
    """What is in it is unknown, so nothing runs."""
    with support.reachable_folder() as folder:
        (folder / "hermes-doctor").mkdir(mode=0o700)
        (folder / "home").mkdir(mode=0o755)
        (folder / "home" / "config.yaml").touch()
        env = {"XDG_CONFIG_HOME": str(folder), "HOME": str(folder / "nobody")}
        user = None if os.geteuid() else 65534
        if user is None:
            (folder / "hermes-doctor").chmod(0)
        done = support.doctor("check", "--home", folder / "home", env=env, user=user)
        assert done.code == 2
        assert f"Could not read {folder}/hermes-doctor/config.toml: permission denied." in done.err


def test_a_lost_home(
    doctor: Doctor, config: Callable[[str], Path], home: Path, tmp_path: Path
) -> None:
    """It is restored from the vault that the file names."""
    import shutil

    config(f'home = "{home}"\nvault = "{tmp_path}/vault"')
    assert doctor("backup", "create").code == 0
    before = (home / ".env").read_bytes()
    shutil.rmtree(home)
    [backup] = (tmp_path / "vault").glob("2*")
    assert doctor("backup", "restore", backup.name, "--yes").code == 0
    assert (home / ".env").read_bytes() == before
