"""Units, property lists and crontabs: what is written, and that nothing is left of it."""

from __future__ import annotations

import contextlib
import os
import plistlib
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.cli import watch_service
from hermes_doctor.core import home as homes
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix, Trouble
from hermes_doctor.core.preferences import places
from hermes_doctor.operations.history import place
from hermes_doctor.operations.watch import assembly, install
from hermes_doctor.operations.watch.store import WatchStateFiles
from hermes_doctor.repair.gateway.service_managers import SystemdManager
from hermes_doctor.repair.schedule import choose, managers
from hermes_doctor.repair.schedule.jobs import Job
from tests.helpers import fake_managers, support
from tests.helpers.fake_crontab import CRONTAB

ODD = 'a b"c%d$e\\f'


@contextlib.contextmanager
def lasting_home() -> Iterator[Path]:
    """A home that lies where homes last: the tests' own folders do not."""
    folder = Path(tempfile.mkdtemp(dir=Path.home(), prefix=".hermes-doctor-test-"))
    try:
        yield support.healthy(folder / "home")
    finally:
        shutil.rmtree(folder)


def cron(folder: Path) -> tuple[Path, Path, dict[str, str]]:
    """A folder of commands with a crontab, its file, and the variables of a user who has both."""
    bin, tab = folder / "bin", folder / "tab"
    bin.mkdir()
    fake_managers.command(bin, "crontab", CRONTAB.format(file=tab))
    path = f"{bin}:{os.environ['PATH']}"
    return (
        bin,
        tab,
        {
            "PATH": path,
            "HOME": str(folder / "user"),
            "XDG_STATE_HOME": str(folder / "state"),
        },
    )


LAUNCHCTL = """
case "$1" in
  print) test -f {file} ;;
  bootstrap) touch {file} ;;
  bootout) rm {file} ;;
esac
"""


def job(home: Path, *options: str, **more: object) -> Job:
    store = WatchStateFiles(Home(home), home.parent / "state" / "hermes-doctor")
    return Job(Home(home), options, bool(more.get("heal")), 30.0, store.folder)


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands that comes first, and a user's folder of its own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return folder


def test_a_line_in_the_crontab(home: Path, fakes: Path) -> None:
    """A line in the crontab."""
    file = fakes.parent / "tab"
    fake_managers.command(fakes, "crontab", CRONTAB.format(file=file))
    cron, mine = managers.Cron(), job(home, "--interval", "30s", "--heal", "--also", "50%")

    assert not cron.status(mine).installed
    assert cron.install(mine) and not cron.install(mine), "twice equals once"
    [line] = file.read_text().splitlines()
    assert line.startswith("*/5 * * * * env ") and line.endswith(f"# {mine.name}")
    words = shlex.split(line.partition("env ")[2].replace(r"\%", "%"), comments=True)
    assert words[-3:] == ["--once", "--interval", "5m"] and "50%" in words
    assert words.count("--interval") == 1
    assert cron.status(mine).running
    assert cron.remove(mine) and not file.exists()
    assert not cron.remove(mine)


def test_a_watch_that_heals_runs_every_minute(home: Path) -> None:
    """Nobody gets an answer while a gateway is down, so the next round must not be far away."""
    mine = job(home, "--interval", "30s", "--heal", heal=True)
    line = managers.Cron().text(mine)

    assert line.startswith("* * * * * env ") and "--once --interval 1m" in line
    assert "at least 60 s" in managers.Cron().hints(mine)[-1]


@pytest.mark.parametrize(
    ("minutes", "line"),
    [
        (0.5, "*/5 * * * *"),
        (7, "*/6 * * * *"),
        (13, "*/12 * * * *"),
        (45, "*/30 * * * *"),
        (59, "0 * * * *"),
        (100, "0 */2 * * *"),
        (300, "0 */4 * * *"),
        (100000, "0 0 * * *"),
    ],
)
def test_rounds_come_evenly(home: Path, minutes: float, line: str) -> None:
    """Cron begins anew each hour: */45 would be 45 minutes and then 15."""
    mine = job(home)
    mine = Job(mine.home, (), False, minutes * 60, mine.folder)

    assert managers.Cron().text(mine).startswith(f"{line} env ")
    assert any("a part of an hour" in hint for hint in managers.Cron().hints(mine))
    even = Job(mine.home, (), False, 900.0, mine.folder)
    [hint] = managers.Cron().hints(even)
    assert "every 15 min" in hint and managers.Cron().text(even).startswith("*/15 ")


def test_a_command_is_not_for_everybody_to_read(tmp_path: Path) -> None:
    """It may hold a secret: neither the crontab nor what is shown holds it, and that is said."""
    bin = tmp_path / "bin"
    bin.mkdir()
    tab, state = tmp_path / "tab", tmp_path / "state" / "hermes-doctor"
    fake_managers.command(bin, "crontab", CRONTAB.format(file=tab))
    env = {"PATH": f"{bin}:{os.environ['PATH']}", "XDG_STATE_HOME": str(state.parent)}
    with lasting_home() as home:
        args = ("watch", "install", "--cron", "--home", home, "--notify-command")
        done = support.doctor(*args, "curl -H 'Token: zQcanary' x", env=env)
        assert done.code == 0 and "zQcanary" not in done.out + tab.read_text()
        [kept] = state.glob("*.command")
        assert kept.read_text() == "curl -H 'Token: zQcanary' x"
        assert kept.stat().st_mode & 0o777 == 0o600
        assert f"readable by its user only: {kept}" in done.out
        support.doctor("watch", "remove", "--cron", "--home", home, env=env)
        assert not state.exists()


def test_the_rest_of_the_crontab_is_left_alone(home: Path, fakes: Path) -> None:
    """The rest of the crontab is left alone."""
    file = support.put(
        fakes.parent / "tab", b"MAILTO=me\n0 1 * * * caf\xc3\xa9 \xff\n# old\x0c* * * * * x\n# end"
    )
    fake_managers.command(fakes, "crontab", CRONTAB.format(file=file))
    cron, mine = managers.Cron(), job(home)
    cron.install(mine)
    cron.remove(mine)

    assert file.read_bytes() == (
        b"MAILTO=me\n0 1 * * * caf\xc3\xa9 \xff\n# old\x0c* * * * * x\n# end\n"
    )


def test_a_crontab_that_does_not_tell_is_not_overwritten(home: Path, fakes: Path) -> None:
    """A crontab that does not tell is not overwritten."""
    fake_managers.command(fakes, "crontab", "echo 'you are not allowed' >&2; exit 1")
    with pytest.raises(CannotFix, match="Could not read the crontab"):
        managers.Cron().install(job(home))

    assert fake_managers.asked(fakes) == ["crontab -l"]


def test_an_agent_of_launchd(home: Path, fakes: Path) -> None:
    """An agent of launchd."""
    loaded = fakes.parent / "loaded"
    fake_managers.command(fakes, "launchctl", LAUNCHCTL.format(file=loaded))
    manager, mine = managers.Launchd(system=False), job(home, "--notify-command", ODD)

    assert manager.install(mine) and not manager.install(mine)
    file = Path(manager.place(mine))
    wanted = plistlib.loads(file.read_bytes())
    assert wanted["ProgramArguments"] == mine.command and wanted["KeepAlive"] is True
    assert wanted["ProgramArguments"][-1] == ODD
    assert file.parent == fakes.parent / "user" / "Library" / "LaunchAgents"
    assert manager.status(mine).running
    assert manager.remove(mine) and not file.exists() and not loaded.exists()
    assert not manager.remove(mine) and not manager.status(mine).installed


def test_a_word_in_a_unit_is_what_it_was() -> None:
    """As systemd reads it: quotes, escapes, specifiers and variables."""
    assert managers.quote("/plain/word-1.0") == "/plain/word-1.0"
    assert managers.quote(ODD, command=True) == '"a b\\"c%%d$$e\\\\f"'
    assert managers.quote(ODD) == '"a b\\"c%%d$e\\\\f"', "a variable only in a command"
    assert managers.quote("") == '""'
    with pytest.raises(CannotFix):
        managers.quote("two\nlines")


def test_a_unit_of_the_system(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit of the system."""
    monkeypatch.setattr(SystemdManager, "refuse", lambda _: None)
    monkeypatch.setattr(os.path, "isdir", lambda _: True)
    manager = managers.Systemd(system=True)

    text = manager.text(job(home))
    assert "ProtectSystem=strict" in text and "NoNewPrivileges=yes" in text
    assert "ProtectHome" not in text
    assert "ReadWritePaths=-/etc/hermes-doctor\n" in text, "it only looks, and ends mutes"
    assert f"ReadWritePaths=-{home} -/etc/hermes-doctor\n" in manager.text(job(home, heal=True))
    owned = Job(Home(home), (), False, 30.0, WatchStateFiles(Home(home)).folder, user="alice")
    assert "User=alice\n" in manager.text(owned)
    assert "CapabilityBoundingSet=\n" in manager.text(owned)
    assert "ReadWritePaths" not in manager.text(owned)


def test_where_no_manager_is_cron_is_asked(home: Path, fakes: Path) -> None:
    """Where no manager is cron is asked."""
    found = choose.choose(Home(home), system=False, cron=True)

    assert isinstance(found, managers.Cron)


@pytest.mark.parametrize("group", [["watch"], ["backup", "schedule"]])
def test_without_any_manager_nothing_is_installed(tmp_path: Path, group: list[str]) -> None:
    """Status and remove do not say what cannot be installed: they were not asked for that."""
    home = support.healthy(tmp_path / "home")
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}

    status = support.doctor(*group, "status", "--home", home, env=env)
    remove = support.doctor(*group, "remove", "--home", home, env=env)

    assert (status.code, status.err) == (1, "")
    assert "not installed; systemd, launchd and cron are all missing" in status.out
    assert "cannot be installed" not in status.out
    assert (remove.code, remove.err) == (0, "")
    assert "was not installed" in remove.out


def test_the_command_line(tmp_path: Path) -> None:
    """With a crontab of straw: shown, written, told about, taken away, and no secret in sight."""
    bin = tmp_path / "bin"
    bin.mkdir()
    tab = tmp_path / "tab"
    fake_managers.command(bin, "crontab", CRONTAB.format(file=tab))
    with lasting_home() as home:
        env = {
            "PATH": f"{bin}:{os.environ['PATH']}",
            "HOME": str(tmp_path / "user"),
            "XDG_STATE_HOME": str(tmp_path / "state"),
        }

        def doctor(word: str, *args: str) -> support.Done:
            return support.doctor("watch", word, "--cron", "--home", home, *args, env=env)

        webhook = "https://hooks.example/zQcanary"
        shown = doctor("install", "--heal", "--dry-run", "--notify-webhook", webhook)
        assert shown.code == 0 and "Nothing was written." in shown.out and not tab.exists()
        assert not (tmp_path / "state").exists()
        assert doctor("status").code == 1
        done = doctor("install", "--heal", "--notify-webhook", webhook)
        assert done.code == 0 and "Installed" in done.out
        assert "zQcanary" not in shown.out + done.out + tab.read_text()
        [kept] = (tmp_path / "state" / "hermes-doctor").glob("*.webhook")
        assert kept.read_text() == webhook and kept.stat().st_mode & 0o777 == 0o600
        assert "Already installed" in doctor("install", "--heal", "--notify-webhook", webhook).out
        line = tab.read_text().partition("env ")[2]
        words = shlex.split(line, comments=True)
        ran = support.doctor("watch", *words[words.index("watch") + 1 :], env=env)
        assert ran.code == 0 and "start" in ran.out
        told = doctor("status")
        assert told.code == 0 and "Last check: " in told.out and "Open: 0 problems." in told.out
        assert "scheduled" in told.out and "runs" not in told.out and "running" not in told.out
        [known] = (tmp_path / "state" / "hermes-doctor").glob("*.json")
        os.utime(known, (1e9, 1e9))
        late = doctor("status")
        assert late.code == 1 and "too old: one was due every 60 s" in late.out
        gone = doctor("remove")
        assert gone.code == 0 and not tab.exists()
        kept = tmp_path / "state" / "hermes-doctor" / "history.db"
        assert list(kept.parent.iterdir()) == [kept] and f"Kept: {kept}" in gone.out
        assert doctor("remove").out.startswith("The watch was not installed")


def test_for_monitors(tmp_path: Path) -> None:
    """The addresses of heartbeats are secrets; the file for Prometheus has a whole path."""
    _, tab, env = cron(tmp_path)
    beats = ("--heartbeat", "https://beat/zQcanary1", "--heartbeat-fail", "https://beat/zQcanary2")
    with lasting_home() as home:
        words = ("watch", "install", "--cron", "--home", home, *beats)
        more = ("--metrics", "out.prom", "--fail-on", "warning")
        done = support.doctor(*words, *more, env=env, cwd=tmp_path)
        assert done.code == 0, done
        line = tab.read_text()
        assert "--fail-on warning" in line
        kept = sorted((tmp_path / "state" / "hermes-doctor").glob("*.heartbeat*"))
        assert [one.read_text() for one in kept] == [beats[1], beats[3]]
        assert {one.stat().st_mode & 0o777 for one in kept} == {0o600}
        assert "zQcanary" not in line + done.out
        assert f"--heartbeat @{kept[0]} --heartbeat-fail @{kept[1]}" in line
        assert f"--metrics {tmp_path}/out.prom" in line
        assert support.doctor("watch", "remove", "--cron", "--home", home, env=env).code == 0
        assert not (tmp_path / "state" / "hermes-doctor").exists()


def test_an_installation_that_fails_leaves_no_secret(tmp_path: Path) -> None:
    """What was there before it stays."""
    bin, tab, env = cron(tmp_path)
    kept = tmp_path / "state" / "hermes-doctor"
    with lasting_home() as home:
        words = ("watch", "install", "--cron", "--home", home)
        fake_managers.command(bin, "crontab", "exit 1")
        assert support.doctor(*words, "--heartbeat", "https://beat/1", env=env).code == 2
        assert not list(kept.glob("*.heartbeat"))
        fake_managers.command(bin, "crontab", CRONTAB.format(file=tab))
        assert support.doctor(*words, "--heartbeat", "https://beat/1", env=env).code == 0
        fake_managers.command(bin, "crontab", "exit 1")
        assert support.doctor(*words, "--heartbeat", "https://beat/2", env=env).code == 2
        [secret] = kept.glob("*.heartbeat")
        assert secret.read_text() == "https://beat/1"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs a service of the system")
@pytest.mark.parametrize("secret", [True, False])
def test_a_failed_installation_leaves_no_folder(
    secret: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither for its state nor for the mutes; what was there before stays."""
    state, etc = tmp_path / "var" / "lib", tmp_path / "etc" / "hermes-doctor"
    state.mkdir(parents=True)
    monkeypatch.setattr(homes, "SYSTEM_STATE", state)
    monkeypatch.setattr(install, "SYSTEM_STATE", state)
    monkeypatch.setattr(places, "SYSTEM", etc)

    class Broken:
        schedules = False

        def install(self, job: Job) -> bool:
            assert etc.is_dir() and job.folder.is_dir() == secret
            raise CannotFix("systemd refused it")

    chosen = assembly.WatchOptions(
        *("30s", False, assembly.NotifyOptions("error", None, None, None), None, None),
        heartbeat="https://beat/1" if secret else None,
    )
    with lasting_home() as home:
        mine = Job(Home(home), (), False, 30.0, install._folder(Home(home), system=True))
        for kept in ([], [state / "other"]):
            for folder in kept:
                folder.mkdir()
            before = sorted(tmp_path.rglob("*"))

            with pytest.raises(CannotFix, match="systemd refused it"):
                install.install(Broken(), mine, chosen)  # type: ignore[arg-type]

            assert sorted(tmp_path.rglob("*")) == before


def test_a_secret_that_others_can_read(home: Path, tmp_path: Path) -> None:
    """One line says which file, and how to close it."""
    file = support.put(tmp_path / "beat", "http://127.0.0.1:1/", 0o644)
    words = ("watch", "--once", "--home", home, "--heartbeat", f"@{file}")
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    done = support.doctor(*words, env=env)
    assert done.err == (
        f"hermes-doctor: Other users can read {file}, which may hold a secret. "
        f"Run: chmod go-r {file}\n"
    )
    file.chmod(0o600)
    assert support.doctor(*words, env=env).err == ""


@pytest.mark.parametrize("place", ["/tmp/out.prom", "/var/tmp/out.prom"])
def test_metrics_where_only_the_service_would_see_them(place: str) -> None:
    """A system service has its own /tmp."""
    with pytest.raises(Trouble, match="has its own"):
        watch_service._metrics_file(Path(place), Home(Path("/none")), system=True)
    assert watch_service._metrics_file(Path(place), Home(Path("/none")), system=False) == Path(
        place
    )


def test_the_service_may_write_its_metrics(home: Path) -> None:
    """Also if it repairs nothing."""
    job = Job(Home(home), (), False, 30.0, home.parent, metrics=Path("/srv/metrics/out.prom"))

    assert job.writes == [Path("/srv/metrics")]


def test_a_home_that_does_not_last_gets_no_service(home: Path) -> None:
    """A home that does not last gets no service."""
    done = support.doctor("watch", "install", "--home", home)

    assert done.code == 2 and "temporary folder" in done.err


@pytest.mark.parametrize("system", [False, True])
def test_the_service_may_write_the_history(
    system: bool, home: Path, fakes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the state folder: for a system service, the one that its sandbox lets it write."""
    monkeypatch.setattr(SystemdManager, "refuse", lambda _: None)
    isdir = os.path.isdir
    monkeypatch.setattr(os.path, "isdir", lambda path: path == "/run/systemd/system" or isdir(path))
    folder = install._folder(Home(home), system)
    mine = Job(Home(home), (), False, 30.0, folder)
    unit = managers.Systemd(system=system).text(mine)
    given = dict(re.findall(r"^Environment=(XDG_STATE_HOME)=(.*)$", unit, re.M))
    monkeypatch.setenv("XDG_STATE_HOME", given.get("XDG_STATE_HOME", ""))

    assert place.own_file() == folder / "history.db"
    assert not system or f"StateDirectory={mine.name}" in unit.splitlines()
    assert not system or place.own_file().is_relative_to(f"/var/lib/{mine.name}")
    assert system or ("ProtectSystem" not in unit and "ProtectHome" not in unit)
