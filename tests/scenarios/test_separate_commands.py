"""As root in another user's home full of traps: commands that back up, ask, guard and mute."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.system import accounts, privileges
from hermes_doctor.core.system.closed_folders import LentFolder
from hermes_doctor.core.system.separate_process import run_as
from hermes_doctor.operations.updates import git_rollback, root_actions
from tests.cli.test_separate_look import opened_by_root
from tests.cli.test_separate_work import closed_tool, sick
from tests.helpers import crash_server, support
from tests.helpers.crash_server import STRANGER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
ID = "20261115-031500-1234f"
COMMANDS = (
    ("backup", "create", "--daily", "2"),
    ("backup", "list"),
    ("backup", "list", "--hermes"),
    ("backup", "verify"),
    ("backup", "verify", "--deep", "--all"),
    ("backup", "verify", "--hermes"),
    ("backup", "prune", "--keep", "1", "--yes"),
    ("backup", "restore", "NEWEST", "config.yaml", "--yes"),
    ("backup", "schedule", "status"),
    ("switch-provider", "openrouter", "--model", "acme/other"),
    ("switch-provider", "openrouter", "--model", "acme/other", "--no-test", "--apply", "--yes"),
    ("ask", "--timeout", "1"),
    ("learn",),
    ("mute", "CFG-YAML"),
    ("unmute", "CFG-YAML"),
    ("history",),
    ("hook", "install", "--no-shell"),
    ("hook", "install", "--no-shell", "--dry-run"),
    ("hook", "status"),
    ("hook", "remove", "--no-shell"),
    ("hook", "run", "pre-update", "--force"),
    ("hook", "run", "post-update"),
    ("update-guard", "--force", "--", "true"),
    ("rollback", "--yes"),
    ("watch", "status", "--system"),
    ("watch", "remove", "--system"),
)
MISTAKES = (
    ("mute", "NO-SUCH-CODE"),
    ("history", "NO-SUCH-CODE"),
    ("backup", "restore", "no-such-backup", "--yes"),
    ("undo", "no-such-run"),
)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody can get to."""
    with support.reachable_folder() as folder:
        yield folder


def newest(home: Path) -> str:
    """The id of the newest backup."""
    return max(one.name for one in (home / "backups" / "doctor").glob("2*"))


@pytest.mark.needs("strace")
@pytest.mark.sampled(one_of=4)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_root_opens_nothing(place: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    """Neither in the home nor where its links lead; the owner's process opens it."""
    home = sick(place, traps=True)
    if command[:2] in (("backup", "verify"), ("backup", "restore"), ("backup", "prune")):
        assert support.doctor("backup", "create", "--home", home).code in (0, 1)
    words = tuple(newest(home) if word == "NEWEST" else word for word in command)

    by_root, by_others = opened_by_root(words, home, tmp_path / "log")

    tops = (str(home), str(place / "secret"))
    assert [path for path in by_root if path.startswith(tops)] == []
    if command[0] not in ("unmute", "history", "watch"):
        assert [path for path in by_others if path.startswith(str(home))], "nothing was looked at"
    assert {*crash_server.strangers(home)} <= {"auth.json"}, "the one that was root's"


@pytest.mark.needs("strace")
@pytest.mark.sampled(one_of=4)
@pytest.mark.parametrize("command", MISTAKES, ids=" ".join)
def test_root_opens_nothing_to_report_a_mistake(
    place: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """Also not to find out which secrets the message must not contain."""
    home = sick(place, traps=True)

    by_root, _ = opened_by_root(command, home, tmp_path / "log")

    tops = (str(home), str(place / "secret"))
    assert [path for path in by_root if path.startswith(tops)] == []


def test_backups_belong_to_the_owner(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Created, listed, verified, restored and pruned as by the owner; names are those of here."""
    home = support.healthy(place / "home")
    crash_server.chown(home)
    (place / "disk").mkdir()
    os.chown(place / "disk", STRANGER, STRANGER)
    monkeypatch.chdir(place)
    for vault in ((), ("--vault", "disk")):
        for _ in range(2):
            made = support.doctor("backup", "create", "--json", "--home", "home", *vault)
            assert made.json["missing"] == []
        folder = Path(made.json["folder"])
        assert folder.parent == (place / "disk" if vault else home / "backups" / "doctor")
        tree = [folder, *folder.rglob("*")]
        assert {path.lstat().st_uid for path in tree} == {STRANGER}
        listed = support.doctor("backup", "list", "--json", "--home", "home", *vault)
        assert [one["id"] for one in listed.json["backups"]][-1] == folder.name
        verified = support.doctor("backup", "verify", "--deep", "--home", "home", *vault)
        assert (verified.code, "is intact" in verified.out) == (0, True), verified.out
        support.put(home / "config.yaml", "model: changed\n")
        os.chown(home / "config.yaml", STRANGER, STRANGER)
        restored = support.doctor(
            *("backup", "restore", folder.name, "config.yaml", "--yes"), "--home", "home", *vault
        )
        assert restored.code == 0, restored.err
        assert (home / "config.yaml").read_text() == support.CONFIG
        pruned = support.doctor("backup", "prune", "--keep", "1", "--yes", "--home", "home", *vault)
        assert pruned.code == 0, pruned.err
    assert crash_server.strangers(home) == []


@pytest.fixture
def vault(place: Path) -> Path:
    """A folder for backups that only root may get to, with a backup of another home."""
    closed = place / "closed"
    closed.mkdir(0o700)
    other = support.healthy(place / "other")
    made = support.doctor("backup", "create", "--home", other, "--vault", closed / "vault")
    assert made.code == 0, made.err
    return closed / "vault"


IN_A_VAULT_OF_ROOT = (
    ("backup", "create"),
    ("backup", "list"),
    ("backup", "verify", "--deep"),
    ("backup", "prune", "--keep", "1", "--yes"),
    ("backup", "restore", "NEWEST", "config.yaml", "--yes"),
    ("fix", "--apply", "--yes"),
)


@pytest.mark.needs("strace")
@pytest.mark.sampled(one_of=3)
@pytest.mark.parametrize("command", IN_A_VAULT_OF_ROOT, ids=" ".join)
def test_a_vault_of_root(
    place: Path, vault: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """It is lent to the owner's process, so root opens nothing in the home here either."""
    home = sick(place, traps=True)
    option = ("--vault", str(vault))
    others = {path.name for path in vault.iterdir()}
    assert support.doctor("backup", "create", "--home", home, *option).code in (0, 1)
    [first] = {path.name for path in vault.iterdir()} - others
    words = tuple(first if word == "NEWEST" else word for word in command)

    by_root, by_others = opened_by_root((*words, *option), home, tmp_path / "log")

    tops = (str(home), str(place / "secret"))
    assert [path for path in by_root if path.startswith(tops)] == []
    assert [path for path in by_others if path.startswith(str(vault))], "it was not used"
    assert {path.lstat().st_uid for path in vault.rglob("*")} == {0}
    assert others <= {path.name for path in vault.iterdir()}


def test_a_link_into_a_vault_of_root(place: Path, vault: Path) -> None:
    """It does not lead to the backup of another home while the vault is lent."""
    [other] = vault.iterdir()
    saved = next(path for path in other.rglob("config.yaml"))
    home = support.healthy(place / "home")
    (home / "SOUL.md").symlink_to(saved)
    (home / "memories").mkdir(exist_ok=True)
    (home / "memories" / "MEMORY.md").symlink_to(other)
    crash_server.chown(home)

    support.doctor("backup", "create", "--home", home, "--vault", vault)

    [mine] = [path for path in vault.iterdir() if path != other]
    copies = [path for path in mine.rglob("*") if path.is_file() and path.name != "manifest.json"]
    assert [path for path in copies if {"SOUL.md", "memories"} & {*path.parts}] == []


def test_an_undo_that_needs_a_vault_of_root(place: Path, vault: Path) -> None:
    """The receipt names the vault; it is lent, and the files are restored."""
    home = sick(place)
    before = crash_server.state(home)
    done = support.doctor("fix", "CFG-YAML", "--apply", "--yes", "--home", home, "--vault", vault)
    assert done.code in (0, 1) and crash_server.state(home) != before, done.err

    undone = support.doctor("undo", "--yes", "--home", home)

    assert undone.code == 0, undone.err
    assert crash_server.state(home) == before


@pytest.mark.needs("strace")
@pytest.mark.parametrize(
    "command", [("backup", "list"), ("backup", "verify", "--deep")], ids=" ".join
)
def test_the_vault_of_a_lost_home(place: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    """It belongs to another user: root opens nothing in it."""
    home, vault = support.healthy(place / "home"), place / "disk"
    crash_server.chown(home)
    vault.mkdir()
    os.chown(vault, STRANGER, STRANGER)
    for _ in range(2):
        made = support.doctor("backup", "create", "--home", home, "--vault", vault)
        assert made.code == 0, made.err
    shutil.rmtree(home)

    by_root, by_others = opened_by_root((*command, "--vault", str(vault)), home, tmp_path / "log")

    assert [path for path in by_root if path.startswith(f"{vault}/")] == []
    assert [path for path in by_others if path.startswith(f"{vault}/")], "it was not used"
    assert {path.lstat().st_uid for path in vault.rglob("*")} == {STRANGER}


def test_a_vault_that_is_not_lent(place: Path) -> None:
    """One that contains the home would hide it; into an open one others could bring programs."""
    (place / "closed").mkdir(0o700)
    home = support.healthy(place / "closed" / "bots" / "one")
    crash_server.chown(home)
    above, open_to_all = home.parent, place / "closed" / "open"
    above.chmod(0o700)
    open_to_all.mkdir(0o755)
    for vault, why in ((above, "contains the home"), (open_to_all, "chmod 700")):
        done = support.doctor("backup", "create", "--home", home, "--vault", vault)
        assert (done.code, why in done.err) == (2, True), done.err
        assert os.listdir(vault) == (["one"] if vault == above else [])


def test_programs_of_the_owner_see_no_vault_and_no_secret(place: Path, vault: Path) -> None:
    """Git, which runs what a checkout names, is started by root outside of the process."""
    home, seen = support.healthy(place / "home"), place / "seen"
    code = home / "hermes-agent"
    git = ("git", "-C", str(code), "-c", "user.name=x", "-c", "user.email=x@x")
    code.mkdir()
    subprocess.run(["git", "init", "-q", str(code)], check=True)
    support.put(code / ".gitattributes", "* filter=spy\n")
    support.put(code / "pyproject.toml", '[project]\nname = "hermes-agent"\nversion = "0.19.0"\n')
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    spy = support.put(
        place / "spy.sh",
        f"#!/bin/sh\nls {vault} >{seen}/vault 2>&1\nenv >{seen}/env\ntty <&2 >{seen}/tty; cat\n",
        0o755,
    )
    seen.mkdir(mode=0o777)
    seen.chmod(0o777)
    subprocess.run([*git, "config", "filter.spy.clean", str(spy)], check=True)
    support.put(code / "pyproject.toml", '[project]\nname = "hermes-agent"\nversion = "0.19.1"\n')
    crash_server.chown(home)
    account = accounts.account(STRANGER)
    actions = root_actions.actions(home, STRANGER)
    user = privileges.owner_of_home(home)
    assert user is not None

    def work() -> bool | None:
        return git_rollback.is_clean(str(code), account)

    lent = [LentFolder(vault)]
    os.environ["RESTIC_PASSWORD"] = "zQcanaryRoot"
    try:
        assert run_as(user, work, actions, lent=lent) is False
    finally:
        del os.environ["RESTIC_PASSWORD"]
    assert "Permission denied" in (seen / "vault").read_text()
    assert "zQcanaryRoot" not in (seen / "env").read_text()
    assert (seen / "env").stat().st_uid == STRANGER


def test_a_vault_that_is_not_there_yet(place: Path) -> None:
    """It is created for what is saved, and not for a look."""
    home = support.healthy(place / "home")
    crash_server.chown(home)
    (place / "closed").mkdir(0o700)
    vault = place / "closed" / "new"

    listed = support.doctor("backup", "list", "--home", home, "--vault", vault)
    assert listed.code in (0, 2) and not vault.exists(), listed.err
    assert support.doctor("backup", "create", "--home", home, "--vault", vault).code == 0
    assert (vault.stat().st_uid, vault.stat().st_mode & 0o777) == (0, 0o700)


def test_a_look_sees_a_vault_of_root(place: Path, vault: Path) -> None:
    """`check` says how old the last backup in it is."""
    home = support.healthy(place / "home")
    crash_server.chown(home)
    support.put(place / "settings" / "hermes-doctor" / "config.toml", f'vault = "{vault}"\n')
    env = {"XDG_CONFIG_HOME": str(place / "settings")}
    assert support.doctor("backup", "create", "--home", home, env=env).code == 0

    seen = support.doctor("check", "--home", home, env=env)

    assert re.search(r"backup \d+ s old", seen.out), seen.out


def test_only_root_may_read_a_copy_elsewhere(place: Path) -> None:
    """An archive of root's that the operator names is read with root's rights."""
    home = sick(place)
    zip = place / "secret" / "hermes.zip"
    zip.parent.mkdir(0o700)
    with zipfile.ZipFile(zip, "w") as file:
        file.writestr("config.yaml", support.CONFIG)

    done = support.doctor("backup", "restore", zip, "config.yaml", "--yes", "--home", home)

    assert done.code == 0, done.err
    assert (home / "config.yaml").read_text() == support.CONFIG
    assert {*crash_server.strangers(home)} == {"auth.json"}


def test_a_switch_and_its_undo(place: Path) -> None:
    """The settings of another provider are written by the owner's process."""
    home = support.healthy(place / "home")
    crash_server.chown(home)
    before = crash_server.state(home)
    words = ("switch-provider", "openrouter", "--model", "acme/other", "--no-test")

    done = support.doctor(*words, "--apply", "--yes", "--home", home)

    assert done.code == 0, done.err
    assert "acme/other" in (home / "config.yaml").read_text()
    assert crash_server.strangers(home) == []
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert crash_server.state(home) == before


def test_a_mute_is_root_s(place: Path) -> None:
    """The owner's process looks whether the problem is there; root's own file has the mute."""
    home = sick(place)
    settings = {"XDG_CONFIG_HOME": str(place / "settings")}

    muted = support.doctor("mute", "CFG-YAML", "--for", "7d", "--home", home, env=settings)

    assert muted.code == 0, muted.err
    [file] = (place / "settings").rglob("mutes.json")
    assert file.stat().st_uid == 0
    assert support.doctor("unmute", "CFG-YAML", "--home", home, env=settings).code == 0


def test_a_guarded_update(place: Path) -> None:
    """Root runs the command and holds the lock; the owner's process has backed up and examines."""
    home = support.healthy(place / "home")
    crash_server.chown(home)
    inner = f"id -u; {sys.executable} -m hermes_doctor hook run post-update --home {home}; exit 7"
    words = ("update-guard", "--force", "--home", str(home), "--", "sh", "-c", inner)

    done = support.doctor(*words)

    assert done.code == 7, done.err
    assert done.out.startswith("0\n"), "the command is the operator's"
    assert "is still running" in done.err, done.err
    [file] = (home / "backups" / "doctor" / "updates").iterdir()
    record = json.loads(file.read_text())
    assert (record["stage"], record["exit_code"]) == ("checked", 7)
    assert crash_server.strangers(home) == []


def test_an_update_that_holds_the_lock(place: Path) -> None:
    """While its command runs, no other update starts."""
    home = support.healthy(place / "home")
    crash_server.chown(home)
    other = f"{sys.executable} -m hermes_doctor update-guard --force --home {home} -- true"
    inner = f"unset HERMES_DOCTOR_UPDATE; {other}; true"

    done = support.doctor("update-guard", "--force", "--home", home, "--", "sh", "-c", inner)

    assert "Another update or rollback of this home is running" in done.err, done.err
    [_] = (home / "backups" / "doctor" / "updates").iterdir()


def test_in_a_tool_that_is_closed_to_the_owner(place: Path) -> None:
    """Everything is loaded before the process becomes the owner."""
    home = sick(place)
    closed = closed_tool(place / "closed")
    for command in (
        ("backup", "create"),
        ("backup", "list"),
        ("backup", "verify", "--deep"),
        ("backup", "prune", "--keep", "1", "--yes"),
        ("backup", "restore", "NEWEST", "config.yaml", "--yes"),
        ("mute", "CFG-YAML"),
        ("ask", "--timeout", "1"),
        ("switch-provider", "openrouter", "--model", "acme/other"),
        ("hook", "install", "--no-shell", "--dry-run"),
        ("hook", "run", "pre-update", "--force"),
        ("hook", "run", "post-update"),
        ("rollback", "--yes", "--keep-data"),
    ):
        words = [newest(home) if word == "NEWEST" else word for word in command]
        done = subprocess.run(
            [sys._base_executable, "-m", "hermes_doctor", *words, "--home", home],  # type: ignore[attr-defined]
            cwd=closed,
            env=support.environ({"PYTHONPATH": str(closed), "PYTHONDONTWRITEBYTECODE": "1"}),
            capture_output=True,
            text=True,
            check=False,
        )
        said = done.stdout + done.stderr
        for wrong in ("This is a bug", "crashed", "Permission denied", "No module", "it failed"):
            assert wrong not in said, (command, said)
