"""UPD-VENV-BROKEN, UPD-TWO-VENVS, UPD-CONFLICT-MARKERS and UPD-STASH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_doctor.core.system import privileges
from hermes_doctor.hermes.installation import find, packages as packages_module, virtualenv
from hermes_doctor.hermes.supervisors.units import Unit
from tests.helpers import support
from tests.helpers.crash_server import STRANGER
from tests.helpers.fake_supervision import ask, codes, unit
from tests.helpers.one_check import ask as look

GIT = shutil.which("git") or "git"
START = ("-m", "hermes_cli.main", "gateway", "run")


@pytest.fixture(autouse=True)
def no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other Hermes in sight."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("PATH", str(tmp_path))


def environment(root: Path, version: str = "0.19.0") -> Path:
    """A virtual environment with what Hermes needs in it, as files."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root], check=True, timeout=120)
    [packages] = root.glob("lib/python3*/site-packages")
    for name in ("hermes_cli", "yaml", "dotenv", "httpx", f"hermes_agent-{version}.dist-info"):
        (packages / name).mkdir()
    return packages


def service(home: Path, root: Path) -> Unit:
    """A unit that starts Hermes from there."""
    return unit(home, program=(str(root / "bin/python"), *START))


def test_healthy(home: Path, tmp_path: Path) -> None:
    """No environment, or a whole one."""
    assert look("hermes-install", home)[0].status == "skipped"
    environment(tmp_path / "venv")
    assert codes("hermes-install", home, service(home, tmp_path / "venv")) == []


def test_on_top_of_the_system(home: Path, tmp_path: Path) -> None:
    """What an environment does not have itself may lie in what it stands on."""
    packages = environment(tmp_path / "venv")
    shutil.rmtree(packages / "yaml")
    config = tmp_path / "venv" / "pyvenv.cfg"
    config.write_text(config.read_text().replace("packages = false", "packages = true"))

    assert codes("hermes-install", home, service(home, tmp_path / "venv")) == []


def test_left_by_an_older_python(home: Path, tmp_path: Path) -> None:
    """The packages of the Python that an environment was made with before count for nothing."""
    environment(tmp_path / "venv")
    (tmp_path / "venv/lib/python3.1/site-packages/hermes_agent-0.1.0.dist-info").mkdir(parents=True)

    assert codes("hermes-install", home, service(home, tmp_path / "venv")) == []


def test_installed_in_the_old_way(home: Path, tmp_path: Path) -> None:
    """`setup.py develop` leaves a link and no record."""
    packages = environment(tmp_path / "venv")
    shutil.rmtree(packages / "hermes_agent-0.19.0.dist-info")
    (packages / "hermes-agent.egg-link").write_text("/src\n")

    assert codes("hermes-install", home, service(home, tmp_path / "venv")) == []


@pytest.mark.parametrize(("module", "found"), [("hermes_cli", 1), ("hermes_js", 0)])
def test_another_program_of_that_name(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, found: int
) -> None:
    """A `hermes` on PATH that is something else is nobody's broken installation."""
    root = tmp_path / "venv"
    packages = environment(root)
    shutil.rmtree(packages / "hermes_agent-0.19.0.dist-info")
    command = support.put(root / "bin/hermes", f"#!{root}/bin/python\nimport {module}.main\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(root / "bin"))

    assert [one.code for one in look("hermes-install", home)[1]] == ["UPD-VENV-BROKEN"] * found


@pytest.mark.parametrize(
    "lost", ["yaml", "dotenv", "hermes_cli", "hermes_agent-0.19.0.dist-info", "pyvenv.cfg", "home"]
)
def test_broken(home: Path, tmp_path: Path, lost: str) -> None:
    """Each part without which Hermes does not start."""
    root = tmp_path / "venv"
    packages = environment(root)
    config = root / "pyvenv.cfg"
    if lost == "pyvenv.cfg":
        config.unlink()
    elif lost == "home":
        config.write_text("home = /gone/python/bin\n")
    else:
        shutil.rmtree(packages / lost)

    _, [finding] = ask("hermes-install", home, service(home, root))

    assert (finding.code, finding.severity) == ("UPD-VENV-BROKEN", "error")
    assert finding.subject == str(root)
    assert len(finding.evidence) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
@pytest.mark.parametrize("closed", ["python", "venv/lib", "site-packages"])
def test_what_may_not_be_read_is_not_called_broken(home: Path, closed: str) -> None:
    """Another user who may not look into a folder does not know what is in it."""
    with support.reachable_folder() as place:
        root = place / "venv"
        packages = environment(root)
        (place / "python" / "bin").mkdir(parents=True)
        (root / "pyvenv.cfg").write_text(f"home = {place}/python/bin\n")
        os.chmod(packages if closed == packages.name else place / closed, 0o700)
        nobody = privileges.Privileges(STRANGER, STRANGER, (), place, can_reach=True)
        with privileges._as(nobody):
            found = virtualenv._environment(root, "the service", deep=False)
    assert found.faults == ()


def test_half_upgraded(home: Path, tmp_path: Path) -> None:
    """Two versions side by side."""
    packages = environment(tmp_path / "venv")
    (packages / "hermes_agent-0.18.0.dist-info").mkdir()

    _, [finding] = ask("hermes-install", home, service(home, tmp_path / "venv"))

    assert "0.18.0 and 0.19.0" in finding.evidence[0].what


@pytest.mark.parametrize("there", [True, False])
def test_editable(home: Path, tmp_path: Path, there: bool) -> None:
    """An installation that leads to a checkout needs that checkout."""
    packages = environment(tmp_path / "venv")
    (packages / "hermes_cli").rmdir()
    target = tmp_path / "checkout" / "hermes_cli"
    if there:
        target.mkdir(parents=True)
    support.put(
        packages / "__editable___hermes_agent_0_19_0_finder.py",
        f"MAPPING: dict[str, str] = {{'hermes_cli': '{target}', 'gateway': '/x'}}\n",
    )

    found = codes("hermes-install", home, service(home, tmp_path / "venv"))

    assert found == ([] if there else [("UPD-VENV-BROKEN", "error")])


def checkout(folder: Path) -> Path:
    """A checkout of Hermes as far as the tool looks."""
    (folder / ".git").mkdir(parents=True)
    support.put(folder / "pyproject.toml", '[project]\nname = "hermes-agent"\n')
    support.put(folder / "hermes_cli/main.py", "x = 1\n")
    return folder


def test_two_environments(home: Path, tmp_path: Path) -> None:
    """One is updated, the other runs."""
    root = checkout(tmp_path / "hermes-agent")
    environment(root / "venv", "0.18.0")
    assert codes("hermes-install", home, service(home, root / "venv")) == []

    environment(root / ".venv", "0.19.0")
    _, [finding] = ask("hermes-install", home, service(home, root / "venv"))

    assert (finding.code, finding.severity) == ("UPD-TWO-VENVS", "warning")
    assert "used by hermes-gateway.service" in finding.evidence[0].what


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("before", ["", "x = 1\n"])
def test_conflict(home: Path, tmp_path: Path, before: str, end: str) -> None:
    """The marks of a merge in a file without which nothing starts, also with ends of Windows."""
    root = checkout(tmp_path / "hermes-agent")
    environment(root / "venv")
    text = f"{before}<<<<<<< Updated upstream\ny = 2\n=======\ny = 3\n>>>>>>> Stashed changes\n"
    support.put(root / "hermes_cli/main.py", text.replace("\n", end).encode())

    found = codes("hermes-install", home, service(home, root / "venv"))

    assert found == [("UPD-CONFLICT-MARKERS", "error")]


def test_cut_off(home: Path, tmp_path: Path) -> None:
    """The mark that an update leaves until it is done."""
    root = checkout(tmp_path / "hermes-agent")
    environment(root / "venv")
    (root / ".update-incomplete").touch()

    found = codes("hermes-install", home, service(home, root / "venv"))

    assert found == [("UPD-VENV-BROKEN", "warning")]


def test_modules_that_are_gone(home: Path, tmp_path: Path) -> None:
    """What the installer wrote down and is not there; a quick look sees to what starts Hermes."""
    packages = environment(tmp_path / "venv")
    names = ("hermes_cli/main.py", "hermes_state.py", "skills/far/away.py", "../../../bin/x.py")
    record = "".join(f"{name},sha256=x,1\n" for name in (*names, "gateway/__pycache__/run.pyc"))
    support.put(packages / "hermes_agent-0.19.0.dist-info" / "RECORD", record)
    for name in names[:3]:
        support.put(packages / name, "x = 1\n")
    assert codes("hermes-install", home, service(home, tmp_path / "venv")) == []

    (packages / "skills/far/away.py").unlink()
    assert codes("hermes-install", home, service(home, tmp_path / "venv")) == []
    assert packages_module.missing_modules(packages, "0.19.0", deep=True) == ["skills/far/away.py"]
    (packages / "hermes_state.py").unlink()
    _, [finding] = ask("hermes-install", home, service(home, tmp_path / "venv"))

    assert (finding.code, finding.severity) == ("UPD-VENV-BROKEN", "error")
    assert finding.evidence[0].what.startswith("hermes_state.py of Hermes 0.19.0")


def git(folder: Path, *words: str) -> None:
    """Run git as nobody in particular."""
    name = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run([GIT, *name, "-C", folder, *words], capture_output=True)
    assert done.returncode in (0, 1), done.stderr


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A real checkout with one commit."""
    root = checkout(tmp_path / "hermes-agent")
    (root / ".git").rmdir()
    git(root, "init", "-q")
    git(root, "add", "pyproject.toml", "hermes_cli")
    git(root, "commit", "-qm", "one")
    return root


def stash(root: Path, number: int) -> None:
    """What an update does that cannot put changes back."""
    support.put(root / "hermes_cli/main.py", f"x = {number}\n")
    git(root, "stash", "push", "-qm", f"hermes-update-autostash-2026111{number}-120000")


def test_stashes(home: Path, tmp_path: Path, repository: Path) -> None:
    """One that was left is worth knowing, several are a loop, and own ones are no concern."""
    environment(repository / "venv")
    support.put(repository / "hermes_cli/main.py", "x = 9\n")
    git(repository, "stash", "push", "-qm", "my own")
    found = []
    for number in (2, 3):
        found += codes("hermes-install", home, service(home, repository / "venv"))
        stash(repository, number)
    found += codes("hermes-install", home, service(home, repository / "venv"))

    assert found == [("UPD-STASH", "info"), ("UPD-STASH", "warning")]


def test_merge(home: Path, tmp_path: Path, repository: Path) -> None:
    """A merge that was left in the middle stops every update."""
    environment(repository / "venv")
    git(repository, "checkout", "-qb", "mine")
    for branch, text in (("mine", "x = 2\n"), ("main", "x = 3\n")):
        git(repository, "checkout", "-q", branch)
        support.put(repository / "hermes_cli/main.py", text)
        git(repository, "commit", "-qam", branch)
    git(repository, "merge", "-q", "mine")

    _, found = ask("hermes-install", home, service(home, repository / "venv"))

    assert [one.code for one in found] == ["UPD-CONFLICT-MARKERS", "UPD-STASH"]
    assert found[1].evidence[0].what == "a merge is not finished"
    left = find.find_leftovers(repository, deep=True)
    assert (left.stashes, left.unmerged) == (0, 1)


def test_worktree_and_nonsense(tmp_path: Path) -> None:
    """`.git` may be a file that leads elsewhere, or lead nowhere; an index may be anything."""
    support.put(tmp_path / "tree/.git", f"gitdir: {tmp_path}/real\n")
    support.put(tmp_path / "real/MERGE_HEAD", "x\n")
    support.put(tmp_path / "real/index", b"DIRC\0\0\0\2\xff\xff\xff\xff" + b"x" * 100)
    assert find.find_leftovers(tmp_path / "tree", deep=True).unfinished_operation == "a merge"
    assert find.find_leftovers(tmp_path, deep=True) == find.Leftovers(0, None, 0)
