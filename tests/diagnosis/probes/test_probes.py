"""Probes: lazy, once a run, bounded, and right about processes and installations."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook, Gateway
from hermes_doctor.core.system import files, limits, open_files
from hermes_doctor.core.system.cached_calls import once
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.probes.scope import View
from hermes_doctor.hermes.installation import find
from hermes_doctor.hermes.knowledge import parse_release
from hermes_doctor.hermes.processes import gateway_processes, home_of, process_stat
from tests.helpers import fake_gateway, support


class Counting(Probes):
    """Probes that count how often they look."""

    def __init__(self, home: Path) -> None:
        super().__init__(Home(home))
        self.looks = 0
        self.ended = threading.Event()

    @once(limit=5)
    def slow(self, name: str = "") -> list[str]:
        """Takes a moment."""
        self.looks += 1
        time.sleep(0.1)
        return [name]

    @once(limit=0.2)
    def hanging(self) -> str:
        """Does not answer in time."""
        self.looks += 1
        self.ended.wait(200)
        return "late"

    @once(limit=5)
    def refusing(self) -> str:
        """Cannot look."""
        self.looks += 1
        raise CouldNotLook("no right")

    @once(limit=5)
    def failing(self) -> str:
        """Has a fault of its own."""
        self.looks += 1
        raise RuntimeError("a bug")


def test_once_from_many_threads(home: Path) -> None:
    """Many threads that ask at once share one look and one answer."""
    probes = Counting(home)
    start = threading.Barrier(20, timeout=10)
    answers: list[list[str]] = []

    def ask() -> None:
        start.wait()
        answers.append(probes.slow("a"))

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert probes.looks == 1
    assert len(answers) == 20
    assert all(answer is answers[0] for answer in answers)
    probes.slow("b")
    assert probes.looks == 2, "another argument is another question"


def test_small_views(home: Path) -> None:
    """A person can read each view of the probes at a glance."""
    probes = Probes(Home(home))
    views = [view for view in vars(probes).values() if isinstance(view, View)]
    assert len(views) == 10
    for view in (probes, *views):
        public = [name for name in dir(view) if not name.startswith("_")]
        assert len(public) <= 25, f"{type(view).__name__} has {len(public)} public names"


def test_lazy(home: Path) -> None:
    """Nothing is looked at before somebody asks."""
    assert not Probes(Home(home)).cache.calls


def test_hanging(home: Path) -> None:
    """A look that hangs is `could not look` within its limit, for every caller."""
    probes = Counting(home)
    clock = time.monotonic()

    for _ in range(2):
        with pytest.raises(CouldNotLook, match=r"hanging took longer than 0\.2 s"):
            probes.hanging()

    assert time.monotonic() - clock < limits.stretch(3)
    assert probes.looks == 1
    probes.ended.set()


def test_hanging_probe_makes_the_check_unknown(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks that need it are unknown with the reason; the others are not."""
    from hermes_doctor.core.model import Status
    from hermes_doctor.diagnosis.examination.report import examine
    from hermes_doctor.diagnosis.plugins import load
    from hermes_doctor.hermes.settings import env_file

    ended = threading.Event()
    monkeypatch.setattr(env_file, "read", lambda home: ended.wait(200))
    clock = time.monotonic()

    results, _ = examine(Probes(Home(home)), load.load().checks)
    ended.set()

    assert time.monotonic() - clock < limits.stretch(10)
    unknown = {result.group for result in results if result.status is Status.UNKNOWN}
    assert "configuration" in unknown
    assert not unknown & {"databases", "storage", "supervision", "doctor", "logs"}


def test_reasons_and_bugs(home: Path) -> None:
    """The same reason for everybody who asks, and a bug is not hidden as a reason."""
    probes = Counting(home)
    for _ in range(3):
        with pytest.raises(CouldNotLook, match="no right"):
            probes.refusing()
    for _ in range(3):
        with pytest.raises(RuntimeError):
            probes.failing()

    assert probes.looks == 2


def test_files_are_read_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """config.yaml is read once even when everybody asks for it."""
    reads: list[Path] = []

    def counted(path: Path, limit: int) -> object:
        reads.append(path)
        return files.read_if_there(path, limit)

    monkeypatch.setattr("hermes_doctor.hermes.settings.config_yaml.read_if_there", counted)
    probes = Probes(Home(home))
    for _ in range(5):
        probes.settings.config()

    assert reads == [home / "config.yaml"]


# -- processes -------------------------------------------------------------------------------

GATEWAYS = [
    ["/x/bin/python", "/x/bin/hermes", "gateway"],
    ["/x/bin/python3.11", "/x/bin/hermes", "gateway", "run"],
    ["python3", "-m", "hermes_cli.main", "gateway", "run"],
    ["python3", "-u", "-X", "utf8", "-m", "hermes_cli.main", "gateway", "restart"],
    ["/x/bin/python", "/x/bin/hermes", "-p", "coder", "gateway", "run"],
    ["/x/bin/python", "/x/bin/hermes", "--profile=coder", "gateway"],
    ["hermes", "gateway", "run"],
]
OTHERS = [
    [],
    ["bash", "-c", "hermes gateway run"],
    ["vim", "hermes", "gateway"],
    ["ssh", "host", "hermes", "gateway", "run"],
    ["tmux", "new", "hermes gateway"],
    ["python3", "-c", "print('hermes gateway run')"],
    ["/x/bin/python", "/x/bin/hermes", "gateway", "status"],
    ["/x/bin/python", "/x/bin/hermes", "gateway", "stop"],
    ["/x/bin/python", "/x/bin/hermes", "chat"],
    ["/x/bin/python", "/x/bin/other.py", "gateway", "run"],
    ["python3", "-m", "pytest", "gateway"],
    ["/x/bin/python", "/x/bin/hermes"],
]


@pytest.mark.parametrize("argv", GATEWAYS, ids=" ".join)
def test_is_gateway(argv: list[str]) -> None:
    """Command lines of gateways."""
    assert home_of.is_gateway(argv)


@pytest.mark.parametrize("argv", OTHERS, ids=" ".join)
def test_is_no_gateway(argv: list[str]) -> None:
    """Command lines that only mention one, or do something else with it."""
    assert not home_of.is_gateway(argv)


@contextmanager
def pretender(
    tmp_path: Path, env: dict[str, str], *, lock: Path | None = None, args: tuple[str, ...] = ()
) -> Iterator[int]:
    """A process that looks like a gateway; it may hold a gateway.lock."""
    script = support.put(
        tmp_path / "bin" / "hermes",
        "import fcntl, os, sys\n"
        "lock = os.environ.get('LOCK')\n"
        "if lock:\n"
        "    file = open(lock, 'w')\n"
        "    fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('up', flush=True)\n"
        "sys.stdin.read()\n",
    )
    environ = {k: v for k, v in os.environ.items() if k != "HERMES_HOME"}
    process = subprocess.Popen(
        [sys.executable, str(script), *args, "gateway", "run"],
        env=environ | env | ({"LOCK": str(lock)} if lock else {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
    )
    assert process.stdin and process.stdout
    try:
        assert process.stdout.readline() == b"up\n"
        yield process.pid
    finally:
        process.stdin.close()
        process.wait(timeout=10)
        process.stdout.close()


def pids(home: Path) -> list[int]:
    """The gateways of a home."""
    return [gateway.pid for gateway in gateway_processes.gateways_of(Home(home))]


def test_gateway_by_environment(home: Path, tmp_path: Path) -> None:
    """HERMES_HOME of the process tells its home; another home has none of it."""
    other = support.healthy(tmp_path / "other")
    with pretender(tmp_path, {"HERMES_HOME": str(home)}) as pid:
        assert pids(home) == [pid]
        assert pids(other) == []
        assert home in gateway_processes.homes_in_use()
        [gateway] = gateway_processes.gateways_of(Home(home))
        assert gateway.python == sys.executable
        assert abs(gateway.started_at.timestamp() - time.time()) < 60
    assert pids(home) == []


def test_a_gateway_that_has_just_ended(home: Path) -> None:
    """It is not a gateway that cannot be seen, although its command line was read before."""
    argv = ["/usr/bin/python3", "-m", "hermes_cli.main", "gateway", "run"]
    with subprocess.Popen(["sleep", "60"], env={}) as child:
        lines = [(child.pid, argv, False)]
        assert gateway_processes.gateways_of(Home(home), lines) == [], "it runs another program"
        child.kill()
    assert gateway_processes.gateways_of(Home(home), lines) == []


def test_gateway_of_the_user(tmp_path: Path) -> None:
    """Without HERMES_HOME it is ~/.hermes of the process's own HOME."""
    home = support.healthy(tmp_path / "user" / ".hermes")
    with pretender(tmp_path, {"HOME": str(tmp_path / "user")}) as pid:
        assert pids(home) == [pid]


def test_gateway_of_a_profile(home: Path, tmp_path: Path) -> None:
    """A profile on the command line is its own home."""
    coder = support.healthy(home / "profiles" / "coder")
    for args in (("-p", "coder"), ("--profile", "coder"), ("--profile=coder",)):
        with pretender(tmp_path, {"HERMES_HOME": str(home)}, args=args) as pid:
            assert pids(coder) == [pid]
            assert pids(home) == []
    with pretender(tmp_path, {"HERMES_HOME": str(home)}, args=("-p", "default")) as pid:
        assert pids(home) == [pid]


def test_a_gateway_that_cannot_be_seen_into(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves a doubt while it is young or named by the home's own files, and no longer."""
    with pretender(tmp_path, {"HERMES_HOME": str(tmp_path / "elsewhere")}) as pid:
        monkeypatch.setattr(gateway_processes, "home_by_lock_file", lambda _: None)
        monkeypatch.setattr(gateway_processes, "home_by_environment", lambda *_: None)
        with pytest.raises(CouldNotLook, match=r"may not see"):
            pids(home)
        monkeypatch.setattr(gateway_processes, "BEGINNING", timedelta())
        # Other gateways of this machine are in the same case, so only this one is asked about.
        gateway = Gateway(pid, datetime.now(UTC))
        assert not gateway_processes._conceivable(Home(home), gateway)
        support.put(home / "gateway.pid", json.dumps({"pid": pid, "start_time": 1}))
        assert not gateway_processes._conceivable(Home(home), gateway), (
            "its number was another's then"
        )
        support.put(home / "gateway.pid", json.dumps({"pid": pid}))
        assert gateway_processes._conceivable(Home(home), gateway)
        if os.geteuid() == 0:
            os.chown(home, 54321, 54321)
            assert gateway_processes._conceivable(Home(home), gateway)  # root may work on any home


def test_a_gateway_without_its_lock(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be about to take it; later it is none, and hides no gateway that is down."""
    with pretender(tmp_path, {"HERMES_HOME": str(home)}) as pid:
        assert pids(home) == [pid]
        monkeypatch.setattr(gateway_processes, "LOADING", timedelta())
        assert pids(home) == []
        assert home not in gateway_processes.homes_in_use()


def test_a_gateway_that_waits(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After many starts in a row it notes its start, and is given the time to take its lock."""
    monkeypatch.setattr(gateway_processes, "LOADING", timedelta())
    with pretender(tmp_path, {"HERMES_HOME": str(home)}) as pid:
        now = datetime.now(UTC)
        fake_gateway.note(home, pid, now - timedelta(hours=1), "gateway.start")
        assert pids(home) == [], "an earlier one had the same number"
        fake_gateway.note(home, pid, now, "gateway.start")
        assert pids(home) == [pid]
        fake_gateway.note(home, pid, now, "gateway.exit_nonzero")
        assert pids(home) == [], "it gave up"
        fake_gateway.note(home, pid, now, "gateway.start")
        monkeypatch.setattr(gateway_processes, "BEGINNING", timedelta())
        assert pids(home) == []


@pytest.mark.parametrize("name", ["gateway.pid", "gateway.lock"])
def test_a_gateway_that_had_its_lock(home: Path, tmp_path: Path, name: str) -> None:
    """Who stands in the files had the lock before, so it is no beginner; by its start, too."""
    with pretender(tmp_path, {"HERMES_HOME": str(home)}) as pid:
        seen = process_stat.stat(pid)
        assert seen is not None
        earlier = {"pid": pid, "start_time": seen.start_time - 1}
        support.put(home / name, json.dumps(earlier))
        assert pids(home) == [pid]
        support.put(home / name, json.dumps(earlier | {"start_time": seen.start_time}))
        assert pids(home) == []


def test_a_file_that_is_open_is_not_locked(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only who holds the lock works on the home."""
    monkeypatch.setattr(gateway_processes, "BEGINNING", timedelta())
    (home / "gateway.lock").touch()
    command = f"exec 7<{home}/gateway.lock; echo up; read x"
    process = subprocess.Popen(
        ["bash", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin and process.stdout
    process.stdout.readline()
    claim = home_of.home_by_lock_file(process.pid)
    process.communicate()
    assert claim is not None
    assert (claim.home, claim.locked) == (home, False)


def test_a_lock_in_a_copied_home(home: Path, tmp_path: Path) -> None:
    """Hard links share the lock file; it was taken in the other folder, and that one counts."""
    copy = support.healthy(tmp_path / "copy")
    (home / "gateway.lock").touch()
    os.link(home / "gateway.lock", copy / "gateway.lock")
    with pretender(tmp_path, {"HERMES_HOME": str(home)}, lock=home / "gateway.lock") as pid:
        assert home_of.holds_lock_in(pid, home)
        assert home_of.holds_lock_in(pid, copy) is False
        assert (pids(home), pids(copy)) == ([pid], [])


def test_a_fork_is_no_second_gateway(home: Path, tmp_path: Path) -> None:
    """It has the same words and the same lock, which only one of two gateways could hold."""
    script = support.put(
        tmp_path / "bin" / "hermes",
        "import fcntl, os, sys\n"
        f"file = open({str(home / 'gateway.lock')!r}, 'w')\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('up', flush=True) if os.fork() else None\n"
        "sys.stdin.read()\n",
    )
    process = subprocess.Popen(
        [sys.executable, str(script), "gateway", "run"],
        env=os.environ | {"HERMES_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin and process.stdout
    try:
        process.stdout.readline()
        assert pids(home) == [process.pid]
    finally:
        process.stdin.close()
        process.wait(timeout=10)
        process.stdout.close()


def test_a_number_that_is_another_process_by_now(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's table names who took a lock, though a child may hold it since."""
    support.put(home / "gateway.lock", json.dumps({"pid": os.getpid()}))
    held = {home / "gateway.lock": [os.getpid()]}
    monkeypatch.setattr(open_files, "lock_holders", lambda _: held)
    assert pids(home) == []


IN_A_CONTAINER = """
mount --make-rprivate / && mount -t tmpfs none {home} && touch {home}/gateway.lock &&
exec 7>{home}/gateway.lock && flock 7 && echo up && read x
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces")
def test_a_path_in_a_container_is_another(home: Path, tmp_path: Path) -> None:
    """The same words name another folder there; the lock of that one is none of this home."""
    process = subprocess.Popen(
        ["unshare", "--mount", "bash", "-c", IN_A_CONTAINER.format(home=home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin and process.stdout
    try:
        if process.stdout.readline() != b"up\n":
            pytest.skip("no mount namespaces here")
        claim = home_of.home_by_lock_file(process.pid)
        assert claim is not None
        assert claim.locked
        assert not home_of.is_same_folder(claim.home, home)
        assert not home_of.is_reachable(claim.home)
        assert (claim.home / "gateway.lock").exists()
        assert home_of.locked_file(process.pid, home) is None
    finally:
        process.communicate(b"\n", timeout=10)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_strangers_process_is_no_gateway(home: Path, tmp_path: Path) -> None:
    """Who is neither root nor the owner of the home works on nothing in it, whatever he says."""
    with pretender(tmp_path, {"HERMES_HOME": str(home)}) as pid:
        assert home_of.may_belong(pid, home)
        assert pids(home) == [pid]
    tmp_path.chmod(0o755)
    stranger = subprocess.Popen(["sleep", "60"], user=54321, group=54321)
    try:
        assert not home_of.may_belong(stranger.pid, home)
    finally:
        stranger.kill()
        stranger.wait()


def test_lock_beats_environment(home: Path, tmp_path: Path) -> None:
    """The lock that a process holds tells more than its environment."""
    other = support.healthy(tmp_path / "other")
    with pretender(tmp_path, {"HERMES_HOME": str(other)}, lock=home / "gateway.lock") as pid:
        assert pids(home) == [pid]
        assert pids(other) == []


def test_a_symlinked_home(home: Path, tmp_path: Path) -> None:
    """A gateway that was started through a symlink belongs to the real folder."""
    (tmp_path / "link").symlink_to(home)
    with pretender(tmp_path, {"HERMES_HOME": str(tmp_path / "link")}) as pid:
        assert pids(home.resolve()) == [pid]


def test_report_names_the_gateway(home: Path, tmp_path: Path) -> None:
    """The line about the gateway says that it runs, and for how long."""
    with pretender(tmp_path, {"HERMES_HOME": str(home)}, lock=home / "gateway.lock") as pid:
        soon = {"hermes_doctor.diagnosis.probes.pulse.WATCH": 0.2}
        done = support.doctor("check", "--home", home, settings=soon)

        [line] = [one for one in done.out.splitlines() if one.startswith("  gateway ")]
        assert re.search(rf"running for \d+ s \(process {pid}\)", line)


def test_lock_holders(tmp_path: Path) -> None:
    """A lock is seen in the kernel's table, and asking takes none."""
    import fcntl

    path = support.put(tmp_path / "gateway.lock", "")
    assert open_files.lock_holders([path, tmp_path / "gone"]) == {}
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert open_files.lock_holders([path]) == {path: [os.getpid()]}


def test_file_holders(tmp_path: Path) -> None:
    """Who else has a file open is found; we ourselves do not count."""
    path = support.put(tmp_path / "state.db", "x")
    with path.open():
        assert gateway_processes.processes_using([path]) == {}
    with subprocess.Popen(
        ["sh", "-c", 'exec 3<"$0"; echo up; read _', str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin and process.stdout
        process.stdout.readline()
        assert gateway_processes.processes_using([path]) == {path: [process.pid]}
        process.stdin.close()


# -- installations -----------------------------------------------------------------------------


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without any Hermes."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return tmp_path / "user"


def install(place: Path, version: str) -> None:
    """The dist-info of a Hermes in an environment."""
    info = place / "lib" / "python3.12" / "site-packages" / f"hermes_agent-{version}.dist-info"
    info.mkdir(parents=True)


def nobody() -> list[Gateway]:
    """No gateway runs."""
    return []


def version(home: Path) -> str | None:
    """The version that is found for a home."""
    found = find.find_installation(Home(home), nobody)
    return found.version if found else None


def test_no_installation(home: Path, user: Path) -> None:
    """Nothing installed is None, not a guess."""
    assert version(home) is None


def test_newest_installation(home: Path, user: Path) -> None:
    """Of several installs the newest counts, by numbers and not by letters."""
    install(user / ".local/share/pipx/venvs/hermes-agent", "0.9.0")
    assert version(home) == "0.9.0"
    install(user / ".local/share/uv/tools/hermes-agent", "0.19.0")
    assert version(home) == "0.19.0"
    install(home / "hermes-agent" / "venv", "0.20.1")
    assert version(home) == "0.20.1"


@pytest.mark.parametrize(
    "program", ["bin/hermes", "lib/python3.12/site-packages/hermes_cli/main.py"]
)
def test_the_last_gateway_tells(home: Path, user: Path, tmp_path: Path, program: str) -> None:
    """A gateway that is gone has left behind where it was started from; nonsense tells nothing."""
    install(user / ".local/share/uv/tools/hermes-agent", "0.19.0")
    install(tmp_path / "venv", "0.17.0")
    for nonsense in (
        "[]",
        '{"argv": 7}',
        '{"argv": []}',
        '{"argv": [null]}',
        '{"argv": ["hermes"]}',
    ):
        support.put(home / "gateway.pid", nonsense)
        assert version(home) == "0.19.0"
    support.put(
        home / "gateway.pid", json.dumps({"pid": 7, "argv": [str(tmp_path / "venv" / program)]})
    )
    assert version(home) == "0.17.0"


def test_command_on_the_path(
    home: Path, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `hermes` command leads to its environment, through a symlink or its first line."""
    venv = tmp_path / "venv"
    install(venv, "0.18.2")
    support.put(venv / "bin" / "hermes", f"#!{venv}/bin/python\n", 0o755)
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "hermes").symlink_to(venv / "bin" / "hermes")
    monkeypatch.setenv("PATH", str(bin))
    assert version(home) == "0.18.2"

    (bin / "hermes").unlink()
    support.put(bin / "hermes", f"#!{venv}/bin/python\n", 0o755)
    assert version(home) == "0.18.2"


def test_checkout(home: Path, user: Path) -> None:
    """A git checkout tells by its pyproject; another project's does not count."""
    project = home / "hermes-agent" / "pyproject.toml"
    support.put(project, '[project]\nname = "hermes-agent"\nversion = "0.17.0"\n')
    assert version(home) == "0.17.0"

    support.put(project, '[project]\nname = "other"\nversion = "9.9.9"\n')
    assert version(home) is None


def test_running_interpreter_goes_first(home: Path, user: Path, tmp_path: Path) -> None:
    """The Hermes of the running gateway counts, even if a newer one is installed."""
    from datetime import UTC, datetime

    install(user / ".local/share/uv/tools/hermes-agent", "0.19.0")
    install(tmp_path / "running", "0.13.0")
    gateway = Gateway(1, datetime.now(UTC), str(tmp_path / "running" / "bin" / "python"))

    found = find.find_installation(Home(home), lambda: [gateway])

    assert found is not None
    assert (found.version, found.running) == ("0.13.0", True)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0.19.0", (0, 19, 0)),
        ("1.2.3rc1", (1, 2, 3)),
        ("nonsense", ()),
        ("2026.3.12", (2026, 3, 12)),
    ],
)
def test_release(text: str, numbers: tuple[int, ...]) -> None:
    """Versions as numbers."""
    assert parse_release(text) == numbers


@pytest.mark.parametrize("kind", ["file", "fifo", "loop", "binary"])
def test_odd_commands(
    home: Path, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Whatever `hermes` on the path is, looking at it neither hangs nor raises."""
    bin = tmp_path / "bin"
    bin.mkdir()
    monkeypatch.setenv("PATH", str(bin))
    command = bin / "hermes"
    if kind == "file":
        support.put(command, "", 0o755)
    elif kind == "fifo":
        os.mkfifo(command, 0o755)
    elif kind == "loop":
        command.symlink_to("hermes")
    else:
        support.put(command, b"\x7fELF" + bytes(range(256)), 0o755)

    probes = Probes(Home(home))
    try:
        assert probes.hermes.installation() is None
    except CouldNotLook:
        assert kind == "fifo"
