"""restore-config: the newest copy that parses, and back again."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.fix_contract import Planted

SICK = b"model:\n  default: acme/edited\n  provider: [\n"


def sicken(home: Path, data: bytes = SICK) -> dict[str, tuple[object, ...]]:
    """Break config.yaml and put an older copy beside it; what the home holds then."""
    os.utime(support.put(home / "config.yaml.bak", "model:\n  default: acme/older\n"), (1e9, 1e9))
    support.put(home / "config.yaml", data, 0o640)
    return support.contents(home)


@pytest.mark.sampled
@pytest.mark.parametrize("data", [SICK, b"- a\n", b"caf\xe9: 1\n", b"a: 1\n---\nb: 2\n"])
def test_cures_and_undoes(home: Path, data: bytes) -> None:
    """The fault is gone, mode kept, a second time does nothing, and undo gives the bytes back."""
    sick = sicken(home, data)

    done = support.doctor("fix", "--apply", "--yes", "--json", "--home", home)

    assert (done.code, done.codes) == (0, [])
    assert (home / "config.yaml").read_text() == "model:\n  default: acme/older\n"
    assert (home / "config.yaml").stat().st_mode & 0o777 == 0o640
    cured = support.contents(home)
    again = support.doctor("fix", "--apply", "--yes", "--json", "--home", home)
    assert (again.code, again.json["repair"]["runs"]) == (0, [])
    assert support.contents(home) == cured
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


@pytest.mark.usefixtures("utc")
def test_plan_shows_a_masked_difference(home: Path) -> None:
    """The plan shows what would change, hides values, asks first, and writes nothing."""
    sicken(home, SICK + b"api_key: canary-secret\n")
    before = support.tree(home, vault=True)

    done = support.doctor("fix", "CFG-YAML", "--home", home)

    assert support.tree(home, vault=True) == before
    assert done.code == 0
    assert "-api_key: (13-character key)" in done.out
    assert "canary" not in done.out
    assert "config.yaml.bak of 2001-09-09 " in done.out
    assert "1 question" in done.out


def test_asks_first(home: Path) -> None:
    """Without --yes in a pipe nothing is done, it says so, and the exit code is 1."""
    sick = sicken(home)

    done = support.doctor("fix", "--apply", "--home", home)

    assert done.code == 1
    assert "no terminal is open" in done.out
    assert support.contents(home) == sick


def test_newest_of_all_places(home: Path) -> None:
    """A newer copy in a zip goes before an older one beside the file."""
    sicken(home)
    (home / "backups").mkdir()
    with zipfile.ZipFile(home / "backups" / "pre-update.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("config.yaml", (2026, 6, 1, 12, 0, 0)), "from: zip\n")
    (home / "backups" / "pre-update.zip").chmod(0o600)

    assert support.doctor("fix", "--apply", "--yes", "--home", home).code == 0

    assert (home / "config.yaml").read_text() == "from: zip\n"


def test_symlink_stays(home: Path, tmp_path: Path) -> None:
    """A config.yaml that is a symlink stays one; the file behind it is changed and given back."""
    sicken(home)
    real = tmp_path / "dotfiles" / "hermes.yaml"
    real.parent.mkdir()
    (home / "config.yaml").rename(real)
    (home / "config.yaml").symlink_to(real)

    assert support.doctor("fix", "--apply", "--yes", "--home", home).code == 0

    assert (home / "config.yaml").is_symlink()
    assert real.read_text() == "model:\n  default: acme/older\n"
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert (home / "config.yaml").is_symlink()
    assert real.read_bytes() == SICK


def test_no_copy(home: Path) -> None:
    """Without a copy the fix is not offered, and the command says why."""
    support.put(home / "config.yaml", SICK)

    done = support.doctor("fix", "--apply", "--yes", "--home", home)

    assert done.code == 1
    assert "explain CFG-YAML" in done.out
    assert (home / "config.yaml").read_bytes() == SICK


def test_own_backup_is_a_source(home: Path) -> None:
    """A backup of the tool's own vault serves as the copy."""
    assert support.doctor("backup", "create", "--home", home).code == 0
    support.put(home / "config.yaml", SICK)

    assert support.doctor("fix", "--apply", "--yes", "--home", home).code == 0

    assert (home / "config.yaml").read_text() == support.CONFIG


def test_a_damaged_backup_is_no_source(home: Path) -> None:
    """A copy in the vault that is not what was saved is not put back: its hash tells."""
    assert support.doctor("backup", "create", "--home", home).code == 0
    [copy] = (home / "backups" / "doctor").glob("*/files/config.yaml")
    copy.write_bytes(copy.read_bytes().replace(b"test-model", b"tesu-model"))
    support.put(home / "config.yaml", SICK)

    support.doctor("fix", "--apply", "--yes", "--home", home)

    assert b"tesu-model" not in (home / "config.yaml").read_bytes()


PLANTED = Planted("CFG-YAML", sicken)
