"""Backups by the clock of a real systemd: the timer fires, a backup is made, old ones go."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from tests.helpers import support
from tests.helpers.real.gateways import until
from tests.helpers.real.systemd import Machine, systemd
from tests.operations.watch.test_install import lasting_home
from tests.repair.schedule.test_daily_backup import job

pytestmark = [pytest.mark.real, pytest.mark.wide]
MANY = 100
"""Files; from some number on they come onto the disk by another call of the kernel."""


def filled(home: Path) -> Path:
    """A home with enough files to go every way that a backup has."""
    for number in range(MANY):
        support.put(home / "skills" / f"{number}" / "SKILL.md", f"# {number}\n")
    return home


def missed(machine: Machine, name: str) -> None:
    """Have the timer believe that it last fired long ago, so that it makes up for it at once."""
    stamp = machine.user / ".local" / "share" / "systemd" / "timers" / f"stamp-{name}"
    support.put(stamp, "")
    long_ago = time.time() - 3 * 86400
    os.utime(stamp, (long_ago, long_ago))


def ended(machine: Machine, service: str) -> None:
    """Wait until a service has run to its end."""

    def there() -> bool:
        state, since = (
            machine.show(service, name) for name in ("ActiveState", "ExecMainExitTimestamp")
        )
        return state in ("inactive", "failed") and bool(since)

    until(there, f"{service} to have run")


def test_the_timer_fires(tmp_path: Path) -> None:
    """Installed, it makes up for the run that it missed; told about; taken away without a trace."""
    with lasting_home() as home, systemd(tmp_path / "user") as machine:
        name = f"{job(filled(home)).name}.timer"
        service = name.replace(".timer", ".service")
        missed(machine, name)

        def doctor(word: str, *args: str) -> support.Done:
            return machine.doctor("backup", "schedule", word, "--home", home, *args)

        done = doctor("install", "--daily", "2")
        assert done.code == 0, done.out + done.err
        ended(machine, service)
        said = machine.run("journalctl", "-t", "hermes-doctor", "--no-pager").out
        assert machine.show(service, "Result") == "success", said
        assert machine.show(service, "ExecMainStatus") == "0", said

        vault = Vault(Home(home))
        [made] = map(vault.load, vault.ids())
        assert (made.reason, made.whole) == ("scheduled", True)
        assert vault.verify(made) == []
        assert len(made.entries) > MANY
        told = doctor("status")
        assert told.code == 0, told.out + told.err
        assert "Already installed" in doctor("install", "--daily", "2").out
        assert doctor("install", "--daily", "2", "--at", "05:00").code == 0
        assert "05:00:00" in machine.show(name, "NextElapseUSecRealtime")
        assert doctor("remove").code == 0
        assert list(machine.units.rglob("hermes-doctor-backup*")) == []
        assert machine.show(name, "LoadState") == "not-found"
        assert vault.ids() == [made.id]
