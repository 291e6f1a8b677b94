"""Code of an installation cannot reach the network, stay behind, or use up the machine."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.system import isolated, keeper
from hermes_doctor.core.system.privileges import Privileges
from hermes_doctor.operations.learning import isolation
from hermes_doctor.operations.learning.isolation import DoesNotStart, Lesson, ask_all
from tests.helpers import hostile_hermes, support

pytestmark = pytest.mark.skipif(
    not Path(hostile_hermes.SYSTEM_PYTHON).exists(), reason="needs a Python that all may run"
)
OTHER = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
CONNECTS = """
import socket
try:
    socket.socket.__mro__[1].connect(socket.socket(), ("127.0.0.1", {port}))
except OSError:
    pass
"""
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve("/bin/sleep", ["sleep", "600"], {{"WORD": "{word}"}})
    os._exit(0)
"""
DEAF = """
import signal, time
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
time.sleep(600)
"""
PRINTS = "import os\nwhile True: os.write(1, b'x' * 65536)\n"
SLEEPS = "import time\ntime.sleep(600)\n"
HUNGRY = "import os\nkept = []\nwhile True:\n    kept.append(os.urandom(1 << 20))\n"
HUNGRY_FAMILY = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        kept = os.urandom(200 << 20)
        time.sleep(600)
time.sleep(600)
"""
HUNGRY_SHARED = """
import mmap, time
kept = mmap.mmap(-1, 900 << 20)
for place in range(0, len(kept), 4096):
    kept[place] = 1
time.sleep(600)
"""
NOBODY_S = """
import os
for number in range(3):
    try:
        os.write(os.memfd_create("x"), b"x" * (10 << 20))
        raise SystemExit("memory of nobody")
    except OSError:
        pass
"""
NESTED = """
import os
for number in range(3000):
    os.mkdir("deep")
    os.chdir("deep")
"""
KILLS = """
import os, signal
for pid in ({pid}, os.getppid()):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
"""
FORKS = """
import os, time
for _ in range(200):
    if os.fork() == 0:
        time.sleep(600)
time.sleep(600)
"""
WRITES = "import os\ntry:\n    open({path!r}, 'w').close()\nexcept OSError:\n    pass\n"


@pytest.fixture(params=["namespaces", "filters"])
def barrier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With what the kernel has where it allows namespaces, and where it does not."""
    kind: str = request.param

    def start(*words: Any, **options: Any) -> isolated.RunningCommand:
        return isolated.RunningCommand(*words, **options, namespaces=kind == "namespaces")

    monkeypatch.setattr(isolation, "RunningCommand", start)
    return kind


@pytest.fixture
def place() -> Iterator[Path]:
    """A home that every user can reach."""
    with support.reachable_folder() as folder:
        yield folder / "home"


def ask(home: Path, source: str, seconds: float = 30) -> Any:
    """Ask whether the module in the `.pth` file of the installation was run: this code."""
    hostile_hermes.code(hostile_hermes.make(home), source)
    subprocess.run(["chmod", "-R", "a+rX", str(home.parent)], check=True)
    lesson = Lesson("import json, sys; print(json.dumps('harm' in sys.modules))")
    user = Privileges(OTHER, OTHER, (), home, can_reach=True) if os.geteuid() == 0 else None
    python = home / "hermes-agent" / "venv" / "bin" / "python"
    return ask_all(python, {"one": lesson}, seconds=seconds, user=user)["one"]


def ends(work: Callable[[], object], within: float) -> str:
    """Insist that it fails within this time; return why."""
    began = time.monotonic()
    with pytest.raises(DoesNotStart) as caught:
        work()
    assert time.monotonic() - began < within
    return str(caught.value)


def test_it_reaches_no_server(place: Path, barrier: str) -> None:
    """Not even on this machine, and not with the functions below those of the module `socket`."""
    with hostile_hermes.listener() as server:
        assert ask(place, CONNECTS.format(port=server.port)) is True
        assert not server.reached()


def test_it_cannot_write_elsewhere(place: Path, barrier: str) -> None:
    """Also not in a folder in which its user may write."""
    if barrier == "filters" and keeper._number(444, None, 0, 1) < 1:
        pytest.skip("this kernel has no Landlock")
    open_to_all = place.parent / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)

    assert ask(place, WRITES.format(path=str(open_to_all / "file"))) is True

    assert [*open_to_all.iterdir()] == []


def test_nothing_stays_behind(place: Path, barrier: str) -> None:
    """A daemon in a session of its own ends with the answer."""
    word = f"daemon-{os.getpid()}-{barrier}"

    assert ask(place, DAEMON.format(word=word)) is True

    assert hostile_hermes.processes_with(word) == []


@pytest.mark.parametrize("source", [SLEEPS, DEAF])
def test_the_time_is_that_of_the_clock(place: Path, barrier: str, source: str) -> None:
    """Whatever it does with signals."""
    assert ends(lambda: ask(place, source, seconds=2), within=25) == (
        "it did not answer within 2 s"
    )


def test_endless_output(place: Path, barrier: str) -> None:
    """It is ended at the limit, and little memory is needed for what it wrote."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    assert ends(lambda: ask(place, PRINTS), within=25) == "it wrote more than 1 MB"

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


def test_memory(place: Path, barrier: str) -> None:
    """One process cannot have more than the limit, so the module ends with an error."""
    assert ask(place, HUNGRY) is False


def test_memory_of_several_processes(place: Path, barrier: str) -> None:
    """All processes together have the same limit; memory that they could share counts too."""
    assert "more than 600 MB" in ends(lambda: ask(place, HUNGRY_FAMILY), within=29)
    shutil.rmtree(place)
    assert "more than 600 MB" in ends(lambda: ask(place, HUNGRY_SHARED), within=29)


def test_nothing_is_left_in_the_temporary_folder(place: Path, barrier: str) -> None:
    """Also not of folders that are nested too deep for Python."""
    made = place.parent / "scratch"
    made.mkdir()
    made.chmod(0o711)
    user = Privileges(OTHER, OTHER, (), place, can_reach=True) if os.geteuid() == 0 else None
    lesson = Lesson(f"{NESTED}import json; print(json.dumps(number))")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "mkdtemp", lambda **_: str(_new(made / "run")))
        found = ask_all(Path(hostile_hermes.SYSTEM_PYTHON), {"one": lesson}, seconds=30, user=user)

    assert found == {"one": 2999}
    assert [*made.iterdir()] == []


def _new(path: Path) -> Path:
    path.mkdir()
    return path


def test_memory_of_no_process(place: Path, barrier: str) -> None:
    """There is none that would not count."""
    assert ask(place, NOBODY_S) is True


def test_it_cannot_kill_others(place: Path, barrier: str) -> None:
    """Not even processes of the same user."""
    if barrier == "filters" and keeper._number(444, None, 0, 1) < 6:
        pytest.skip("this kernel cannot limit signals")
    options = {"user": OTHER} if os.geteuid() == 0 else {}
    other = subprocess.Popen(["sleep", "60"], **options)  # type: ignore[call-overload]
    try:
        assert ask(place, KILLS.format(pid=other.pid)) is True
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_many_processes(place: Path, barrier: str) -> None:
    """All of them end."""
    word = f"{place}/hermes-agent"

    assert "more than 64 processes" in ends(lambda: ask(place, FORKS), within=25)

    assert hostile_hermes.processes_with(word) == []


# -- the command itself ----------------------------------------------------------------------------


@pytest.mark.parametrize("source", [SLEEPS, PRINTS, DEAF])
def test_the_command_keeps_its_limit(home: Path, source: str) -> None:
    """`--timeout` is the time of the whole command."""
    hostile_hermes.code(hostile_hermes.make(home), source)
    began = time.monotonic()

    done = support.doctor("learn", "--timeout", "3", "--home", home)

    assert done.code == 1, done
    assert time.monotonic() - began < 40
    assert hostile_hermes.processes_with(f"{home}/hermes-agent") == []


def test_the_command_reaches_no_server(home: Path) -> None:
    """The `.pth` file runs after the network is gone."""
    with hostile_hermes.listener() as server:
        hostile_hermes.code(hostile_hermes.make(home), CONNECTS.format(port=server.port))
        done = support.doctor("learn", "--home", home)
        assert done.code == 1, done
        assert not server.reached()


@needs_root
@pytest.mark.parametrize("way", ["packages", "editable", "finder", "link", "settings"])
def test_root_does_not_run_code_of_another_user(home: Path, tmp_path: Path, way: str) -> None:
    """It says whose code it is, and starts nothing of this installation."""
    packages = hostile_hermes.make(home)
    ran = tmp_path / "ran"
    ran.mkdir(mode=0o777)
    ran.chmod(0o777)
    theirs = tmp_path / "checkout"
    support.put(theirs / "sitecustomize.py", WRITES.format(path=str(ran / "code")))
    for path in (theirs, theirs / "sitecustomize.py"):
        os.chown(path, OTHER, OTHER)
    if way == "packages":
        os.chown(packages, OTHER, OTHER)
    elif way == "editable":
        support.put(packages / "__editable__.pth", f"{theirs}\n")
    elif way == "finder":
        support.put(packages / "__editable__.pth", "import __editable___hermes_finder\n")
        mapping = {"hermes_cli": str(theirs)}
        support.put(packages / "__editable___hermes_finder.py", f"MAPPING = {mapping!r}\n")
    elif way == "link":
        (packages / "hermes_cli").symlink_to(theirs)
    else:
        settings = packages.parents[2] / "pyvenv.cfg"
        os.chown(settings, OTHER, OTHER)

    done = support.doctor("learn", "--home", home)

    assert done.code == 2, done
    assert "root does not run the code of this Hermes" in done.err
    assert f"(uid {OTHER})" in done.err
    assert [*ran.iterdir()] == []


@needs_root
def test_a_guarded_update_does_not_run_it_either(home: Path) -> None:
    """The proof of an environment is refused in the same way."""
    from hermes_doctor.core.system.accounts import account
    from hermes_doctor.hermes.installation.details import read_details
    from hermes_doctor.hermes.installation.find import installation_at
    from hermes_doctor.operations.updates.requirements import unmet_requirements

    packages = hostile_hermes.make(home)
    root = packages.parents[2]
    os.chown(packages, OTHER, OTHER)
    found = installation_at(root)
    assert found is not None

    [said] = unmet_requirements(read_details(found), account(0))

    assert said.startswith("root does not run")


@needs_root
@pytest.mark.needs("git")
def test_git_of_root_runs_no_program_of_another_user(tmp_path: Path) -> None:
    """Git runs what `.git/config` names, and looks only at who owns the folder."""
    from hermes_doctor.core.model import CannotFix
    from hermes_doctor.core.system.accounts import account
    from hermes_doctor.operations.updates import git_rollback

    checkout, ran = tmp_path / "checkout", tmp_path / "ran"
    support.put(checkout / ".gitattributes", "* filter=harm\n")
    subprocess.run(["git", "init", "--quiet", str(checkout)], check=True)
    subprocess.run(["git", "-C", str(checkout), "add", "."], check=True)
    assert git_rollback.unmerged_files(str(checkout), account(0)) == []
    config = checkout / ".git" / "config"
    config.write_text(f'{config.read_text()}[filter "harm"]\n\tclean = touch {ran}; cat\n')
    os.chown(config, OTHER, OTHER)
    os.utime(checkout / ".gitattributes", (1, 1))

    with pytest.raises(CannotFix, match=f"root does not run .*config: .* \\(uid {OTHER}\\)"):
        git_rollback.unmerged_files(str(checkout), account(0))

    assert git_rollback.is_clean(str(checkout), account(0)) is None
    assert not ran.exists()


@needs_root
def test_a_gateway_is_not_started_from_it(home: Path) -> None:
    """Nor is anything else that uses the same function: `hermes send`, the installer, pip."""
    from hermes_doctor.core.model import CannotFix
    from hermes_doctor.core.system.accounts import account
    from hermes_doctor.repair.gateway.detached import python_of

    packages = hostile_hermes.make(home)
    root = packages.parents[2]
    assert python_of(root, account(0)) == root / "bin" / "python"
    os.chown(support.put(packages / "hermes_cli" / "main.py", ""), OTHER, OTHER)

    with pytest.raises(CannotFix, match=f"root does not run .* \\(uid {OTHER}\\)"):
        python_of(root, account(0))


def test_a_guarded_update_reaches_no_server(home: Path) -> None:
    """The proof of an environment runs its `.pth` files without network."""
    from hermes_doctor.core.system.accounts import account
    from hermes_doctor.hermes.installation.details import read_details
    from hermes_doctor.hermes.installation.find import installation_at
    from hermes_doctor.operations.updates.requirements import unmet_requirements

    with hostile_hermes.listener() as server:
        packages = hostile_hermes.make(home)
        hostile_hermes.code(packages, CONNECTS.format(port=server.port))
        found = installation_at(packages.parents[2])
        assert found is not None
        said = unmet_requirements(read_details(found), account(os.geteuid()))
        assert not server.reached()
    assert said == ()


def test_answers_that_take_long_to_understand(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own work with the answers is part of the time."""
    from hermes_doctor.operations.learning import learn

    began = time.monotonic()

    with pytest.raises(DoesNotStart, match="within 1 s"):
        learn._in_time(lambda: str(sum(iter(int, 1))), began + 1, 1)

    assert time.monotonic() - began < 30
