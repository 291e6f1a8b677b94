"""Backups by the clock: what is written for each manager, and which backups stay."""

from __future__ import annotations

import os
import plistlib
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.backup.vault.prune_rules import Retention
from hermes_doctor.core.home import Home
from hermes_doctor.operations.watch.store import WatchStateFiles
from hermes_doctor.repair.gateway.service_managers import SystemdManager
from hermes_doctor.repair.schedule import daily_backup
from hermes_doctor.repair.schedule.daily_backup import (
    Daily,
    DailyCrontabLine,
    DailyLaunchdJob,
    DailyTimer,
)
from tests.helpers import fake_managers, support
from tests.helpers.fake_crontab import CRONTAB
from tests.operations.watch.test_install import lasting_home


def job(home: Path, *options: str, **more: str) -> Daily:
    """A job of a home."""
    return Daily(
        Home(home),
        options,
        False,
        0.0,
        WatchStateFiles(Home(home)).folder,
        at=more.get("at", "04:05"),
    )


def systemd(system: bool = False) -> DailyTimer:
    """A manager that asks nobody."""
    made = object.__new__(DailyTimer)
    made.system = system
    made.manager = object.__new__(SystemdManager)
    return made


def test_the_timer(home: Path) -> None:
    """A timer that catches up, and a service that runs once; both name this very installation."""
    unit, mine = systemd(), job(home, "--daily", "7", "--exclude", "a b%c")

    assert "OnCalendar=*-*-* 04:05:00" in unit.text(mine)
    assert "Persistent=true" in unit.text(mine)
    service = unit.service_text(mine)
    assert "Type=oneshot" in service
    assert '"a b%%c"' in service
    assert "Restart=" not in service
    strict = systemd(system=True).service_text(mine)
    assert "ProtectSystem=strict" in strict
    assert f"ReadWritePaths=-{home}" in strict


def test_where_the_installed_one_puts_them(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read back out of what is installed, whatever signs are in its name."""
    unit, place = systemd(), tmp_path / 'a "$b" %c \\d'
    mine = job(home, "--vault", str(place))
    file = support.put(tmp_path / "b.service", unit.service_text(mine))
    monkeypatch.setattr(unit, "_service", lambda _: file)

    assert daily_backup.vault_of(unit, mine) == place
    file.unlink()
    assert daily_backup.vault_of(unit, mine) is None
    plist = support.put(tmp_path / "b.plist", DailyLaunchdJob(system=False).text(mine))
    calendar = DailyLaunchdJob(system=False)
    monkeypatch.setattr(calendar, "place", lambda _: str(plist))
    assert daily_backup.vault_of(calendar, mine) == place


def test_the_property_list(home: Path) -> None:
    """Once a day, and not kept running."""
    wanted = plistlib.loads(DailyLaunchdJob(system=False).text(job(home)).encode())

    assert wanted["StartCalendarInterval"] == {"Hour": 4, "Minute": 5}
    assert not wanted["RunAtLoad"]
    assert "KeepAlive" not in wanted


def test_the_command_line(tmp_path: Path) -> None:
    """With a crontab of straw: shown, written, run, told about, taken away."""
    bin, tab = tmp_path / "bin", tmp_path / "tab"
    bin.mkdir()
    fake_managers.command(bin, "crontab", CRONTAB.format(file=tab))
    with lasting_home() as home:
        env = {"PATH": f"{bin}:{os.environ['PATH']}", "HOME": str(tmp_path / "user")}

        def doctor(word: str, *args: str) -> support.Done:
            options = ("--cron", "--home", str(home), *args)
            return support.doctor("backup", "schedule", word, *options, env=env)

        shown = doctor("install", "--dry-run")
        assert "Nothing was written." in shown.out
        assert not tab.exists()
        assert doctor("status").code == 1
        done = doctor("install", "--at", "4:05", "--daily", "2", "--exclude", "cron/*")
        assert done.code == 0, done.err
        assert "every day at 04:05" in done.out
        assert (
            "Already installed"
            in doctor("install", "--at", "4:05", "--daily", "2", "--exclude", "cron/*").out
        )
        [line] = tab.read_text().splitlines()
        assert line.startswith("5 4 * * * ")
        words = shlex.split(line, comments=True)
        ran = support.doctor(*words[words.index("backup") : words.index(">/dev/null")], env=env)
        assert ran.code == 0, ran.err
        told = doctor("status")
        assert told.code == 0, told.out
        assert "reason: scheduled" in told.out
        other = tmp_path / "another disk"
        assert doctor("install", "--vault", str(other)).code == 0
        assert f"{other} contains no backup of this home" in doctor("status").out
        there = ("--home", str(home), "--vault", str(other))
        assert support.doctor("backup", "create", *there).code == 0
        assert doctor("status").code == 0
        assert doctor("remove").out.startswith("Removed the daily backup")
        assert not tab.exists()
        assert doctor("remove").out.startswith("The daily backup was not installed")
        assert list((home / "backups" / "doctor").glob("*/manifest.json"))


@pytest.mark.parametrize(
    "args", [["--at", "25:00"], ["--at", "noon"], ["--at", "²:00"], ["--daily", "0"]]
)
def test_refusals(args: list[str]) -> None:
    """Nonsense is refused, and so is keeping nothing."""
    with lasting_home() as home:
        words = ("backup", "schedule", "install", "--cron", "--weekly", "0", "--dry-run")
        assert support.doctor(*words, *args, "--home", home).code == 2


def test_a_home_that_does_not_last(home: Path) -> None:
    """A timer for what is gone after the next boot would only fail."""
    done = support.doctor("backup", "schedule", "install", "--home", home)

    assert done.code == 2
    assert "temporary folder" in done.err


def test_where_no_manager_is(home: Path) -> None:
    """Then it is cron's."""
    manager, _ = daily_backup.find_job(Home(home), system=False, cron=True)

    assert isinstance(manager, DailyCrontabLine)


# -- retention ---------------------------------------------------------------------------------

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
DAYS = [(f"{day:03}", NOW - timedelta(days=day)) for day in range(120)]


@pytest.mark.usefixtures("utc")
def test_days_weeks_and_months() -> None:
    """The newest of each stays."""
    assert Retention(daily=3).ids_to_keep(DAYS) == {"000", "001", "002"}
    assert len(Retention(weekly=4).ids_to_keep(DAYS)) == 4
    assert Retention(monthly=3).ids_to_keep(DAYS) == {"000", "031", "059"}
    every = Retention(7, 4, 6).ids_to_keep(DAYS)
    assert 12 <= len(every) <= 17
    assert Retention().ids_to_keep(DAYS) == set()
    twice = [*DAYS, ("late", NOW + timedelta(hours=1))]
    assert Retention(daily=1).ids_to_keep(twice) == {"late"}


def test_create_removes_what_it_outlives(home: Path) -> None:
    """Two of today: the newest stays. A run's own backup is not in the rule."""
    support.put(home / ".env", b"\xef\xbb\xbfA=1\n")
    assert support.doctor("fix", "--apply", "--home", home).code == 0
    first = support.doctor("backup", "create", "--json", "--home", home).json["id"]

    made = support.doctor("backup", "create", "--daily", "5", "--json", "--home", home).json

    assert made["removed"] == [first]
    left = {path.parent.name for path in home.glob("backups/doctor/*/manifest.json")}
    assert len(left) == 2
    assert made["id"] in left
    assert support.doctor("backup", "verify", "--all", "--home", home).code == 0


def test_prune_by_the_same_rule(home: Path) -> None:
    """By hand, and it asks."""
    ids = [
        support.doctor("backup", "create", "--json", "--home", home).json["id"] for _ in range(3)
    ]
    words = ("backup", "prune", "--weekly", "1", "--json", "--home", home)
    assert support.doctor(*words).code == 2

    assert support.doctor(*words, "--yes").json["removed"] == ids[:2]


def test_a_part_does_not_stand_for_the_whole(home: Path) -> None:
    """A backup of what was chosen is the newest of the day, and the whole one before it stays."""
    whole = support.doctor("backup", "create", "--json", "--home", home).json["id"]
    words = ("backup", "create", "--exclude", "state.db", "--daily", "1", "--json", "--home", home)
    parts = [support.doctor(*words).json for _ in range(2)]
    newest = support.doctor("backup", "create", "--json", "--home", home).json["id"]

    assert [one["removed"] for one in parts] == [[], [parts[0]["id"]]]
    prune = ("backup", "prune", "--daily", "1", "--yes", "--json", "--home", home)
    assert support.doctor(*prune).json == {
        "schema": "hermes-doctor/prune/1",
        "removed": [whole],
        "kept": [parts[1]["id"], newest],
        "protected": [],
        "lost": [],
    }
