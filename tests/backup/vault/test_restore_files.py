"""What lies outside of a home comes back only where the home of today leads, and is its owner's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.backup.vault import restore_files
from hermes_doctor.backup.vault.manifest import BackupEntry
from hermes_doctor.core.home import Home
from tests.helpers import support
from tests.helpers.database_writer import back_up


def test_what_the_home_leads_to(home: Path, tmp_path: Path) -> None:
    """A database on another disk, and a folder of skills elsewhere."""
    real = tmp_path / "data" / "kanban.db"
    real.parent.mkdir()
    (home / "kanban.db").rename(real)
    (home / "kanban.db").symlink_to(real)
    skill = support.put(tmp_path / "mine" / "a" / "SKILL.md", "then")
    (home / "skills").symlink_to(skill.parent.parent)
    id, saved = back_up(home).id, real.read_bytes()
    support.clobber(real)
    skill.unlink()

    done = support.doctor("backup", "restore", id, "--yes", "--json", "--home", home)

    assert done.code == 0, done.err
    assert "left" not in done.json
    assert real.read_bytes() == saved
    assert skill.read_text() == "then"


def test_what_several_links_lead_to(home: Path, tmp_path: Path) -> None:
    """It is saved once, in the first backup and in the next."""
    file = support.put(tmp_path / "mine" / "sub" / "file", "then")
    for name, target in {"a": file, "b": file, "c": file.parent, "d": file.parents[1]}.items():
        (home / name).symlink_to(target)

    for made in (back_up(home), back_up(home)):
        assert [entry.path for entry in made.entries if entry.path.startswith("/")] == [str(file)]
        assert made.copy_of(made.entry(str(file)) or made.entries[0]).read_text() == "then"


def test_a_link_that_leads_to_where_the_home_lies(home: Path) -> None:
    """The home is saved in its own place, its backups and what lies beside it nowhere."""
    (home / "up").symlink_to(home.parent)
    support.put(home.parent / "beside", "x")
    first = back_up(home)

    made = back_up(home)

    names = [entry.path for entry in made.entries]
    assert names == [entry.path for entry in first.entries]
    assert len(names) == len({*names})
    assert [name for name in names if name.startswith("/")] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's files")
def test_what_is_another_user_s(home: Path, tmp_path: Path) -> None:
    """It is left as it is, and told; the rest comes back. By its name it is asked for."""
    theirs = support.put(tmp_path / "theirs", "then", 0o644)
    (home / "theirs").symlink_to(theirs)
    id = back_up(home).id
    theirs.write_text("now")
    os.chown(theirs, 12345, 12345)
    support.put(home / ".env", "now")

    done = support.doctor("backup", "restore", id, "--yes", "--home", home)

    assert done.code == 0, done.err
    assert "because outside of the home" in done.out
    assert theirs.read_text() == "now"
    assert (home / ".env").read_text() != "now"
    by_name = support.doctor("backup", "restore", id, str(theirs), "--yes", "--home", home)
    assert by_name.code == 0, by_name.err
    assert theirs.read_text() == "then"


def test_what_leads_nowhere_today(home: Path, tmp_path: Path) -> None:
    """Neither a manifest alone leads out, nor a link that is another by now, nor one of system."""
    mine = support.put(tmp_path / "mine", "x")
    (home / "link").symlink_to(mine)
    (home / "hosts").symlink_to("/etc/hosts")
    entries = [
        BackupEntry("link", "symlink", target=str(mine)),
        BackupEntry("hosts", "symlink", target="/etc/hosts"),
        BackupEntry(str(mine), "file"),
        BackupEntry("/etc/hosts", "file"),
        BackupEntry(f"{tmp_path}/elsewhere", "absent"),
        BackupEntry("config.yaml", "file"),
    ]

    def left() -> list[str]:
        kept, left = restore_files.split_restorable(Home(home), entries, entries)
        assert entries[-1] in kept
        return left

    assert left() == ["/etc/hosts", f"{tmp_path}/elsewhere"]
    (home / "link").unlink()
    assert left() == [str(mine), "/etc/hosts", f"{tmp_path}/elsewhere"]
