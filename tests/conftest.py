"""Fixtures: healthy homes, made by hand or by real Hermes."""

from __future__ import annotations

import fcntl
import functools
import gc
import os
import shutil
import signal
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import budget, own_gateways, requirements, support
from tools import real_home, releases

RELEASES = ("0.13.0", "0.16.0", "0.19.0")
"""The oldest, one between, and the newest: their code differs where it matters here."""

MEMORY = Path("/dev/shm")
ROOM = 3 * 1024**3
"""Bytes that must be free in memory; a run never holds more than a third of it."""
DISK = Path("/var/tmp")
FOLDER = pytest.StashKey[str]()
"""Where this session's part of the memory is."""
CHANGED = pytest.StashKey[dict[str, list[str]]]()
"""Files of cached releases that were changed before the session, by environment."""
LOOKS = "gw0"
"""The worker that looks at the cached releases, where there are workers."""
HARM = pytest.StashKey[list[str]]()
"""What the session changed in cached releases."""


WIDE = {
    *("age", "age-keygen", "docker", "dockerd", "restic", "systemctl", "systemd-analyze"),
    *("nagios4", "negate", "prometheus-node-exporter", "promtool"),
}
"""Programs whose tests only `make test-all` runs."""

own_gateways.hide_those_of_other_tests()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that `make test-all` and `make test-every-case` use."""
    wide = "also run long tests, and tests that need several releases, systemd, Docker and so on"
    every = "the same, and every case of those of which the others try a sample"
    parser.addoption("--all", action="store_true", help=wide)
    parser.addoption("--every-case", action="store_true", help=every)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of `make test-all` and most of the sampled cases, unless asked for.

    That is by option, by the name of the test, or for the cases by the name of the file. The
    longest tests come first, so that no worker waits for the last of them at the end.
    """
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    named = budget.seed is None and any("::" in word for word in config.args)
    if config.getoption("--every-case") or named:
        return
    every_test = config.getoption("--all")
    left_out = set() if every_test else {item for item in items if _is_wide(item)}
    if budget.seed is not None or not any(word.endswith(".py") for word in config.args):
        alike = [item for item in items if item not in left_out and not _needs_more(item)]
        left_out |= _further_cases(alike)
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]
    if not every_test:
        releases.python_of = functools.partial(_only_the_newest, releases.python_of)


def _further_cases(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the cases to leave out of tests that are marked `sampled`.

    It keeps one of them, or every Nth. Which one depends on the name of the test: always the same,
    but not the first case of each test, because many tests have the same cases; in an attack, its
    seed decides as well. A case that needs a program is kept only if all need one.
    """
    tests: dict[tuple[str, int | None], list[pytest.Item]] = {}
    for item in items:
        if mark := item.get_closest_marker("sampled"):
            test = item.nodeid.partition("[")[0], mark.kwargs.get("one_of")
            tests.setdefault(test, []).append(item)
    left_out = set()
    for (name, one_of), cases in tests.items():
        some = [case for case in cases if not case.get_closest_marker("needs")] or cases
        step = min(one_of or len(some), len(some))
        first = zlib.crc32(name.encode()) + (budget.seed or 0)
        left_out |= {*cases} - {*some[first % step :: step]}
    return left_out


def _only_the_newest(python_of: Callable[[str], Path], version: str) -> Path:
    """Fail a test that needs another release: `make test` must not install a second one."""
    if version in releases.ALL[:-1]:
        pytest.fail(f"It needs Hermes {version}, so it must be marked `wide`", pytrace=False)
    return python_of(version)


def _is_wide(item: pytest.Item) -> bool:
    return item.get_closest_marker("wide") is not None or _needs_more(item)


def _needs_more(item: pytest.Item) -> bool:
    """Tell whether a case needs an older release or a program that `make test` does not need."""
    if any(WIDE & {*mark.args} for mark in item.iter_markers("needs")):
        return True
    older = {*releases.ALL[:-1]}
    given = item.callspec.params.values() if hasattr(item, "callspec") else ()
    words = {
        word
        for one in given
        for word in (one if isinstance(one, tuple) else (one,))
        if isinstance(word, str)
    }
    return not older.isdisjoint(words) and _may_use_a_release(item)


def pytest_configure(config: pytest.Config) -> None:
    """Let homes lie in memory, where there is room: otherwise most of the time of these tests
    goes into waiting for a disk at each commit of each database.
    """
    budget.everything = bool(config.getoption("--every-case"))
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGINT):
        if signal.getsignal(number) is signal.SIG_IGN:  # as after `nohup`; the tests send them
            ends = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, ends)
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK | os.X_OK):
        return
    free = os.statvfs(MEMORY)
    if free.f_bavail * free.f_frsize > ROOM:
        folder = tempfile.mkdtemp(prefix="hd-", dir=MEMORY)
        os.chmod(folder, 0o1777)  # as /tmp is
        os.environ["TMPDIR"] = folder  # for the workers, and for what the tests start
        tempfile.tempdir = None
        config.stash[FOLDER] = folder


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Remember which cached releases were changed before, if a test of this run may use one.

    One process looks. No worker starts before all have collected.
    """
    gc.freeze()  # the tests themselves are never garbage, and looking at all of them takes long
    if session.config.option.collectonly:
        return
    looks = os.environ.get("PYTEST_XDIST_WORKER", LOOKS) == LOOKS
    if looks and any(map(_may_use_a_release, session.items)):
        session.config.stash[CHANGED] = releases.changed()


def _may_use_a_release(item: pytest.Item) -> bool:
    if item.get_closest_marker("real") or item.nodeid.startswith("tests/real/"):
        return True
    return "hermes_home" in getattr(item, "fixturenames", ())


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what the worker that looked has found."""
    found = getattr(node, "workeroutput", {}).get(LOOKS)
    if found is not None:
        node.config.stash[CHANGED] = found


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name what the tests changed in cached releases."""
    for line in config.stash.get(HARM, []):
        terminalreporter.write_line(line, red=True)


def _harm(config: pytest.Config) -> list[str]:
    """Compare the cached releases with what was installed: no test may change one."""
    before = config.stash.get(CHANGED, None)
    if before is None:
        return []
    if hasattr(config, "workeroutput"):  # others still run tests: the main process compares
        config.workeroutput[LOOKS] = before
        return []
    return [
        f"The tests changed the cached release {name}: {len(files)} files, such as {files[0]}"
        for name, files in releases.changed().items()
        if files != before.get(name)
    ]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run that changed a cached release, and take away what killed processes left in memory.

    That stays where there is a failure to look into.
    """
    if harm := _harm(session.config):
        session.config.stash[HARM] = harm
        session.exitstatus = exitstatus = pytest.ExitCode.TESTS_FAILED
    folder = session.config.stash.get(FOLDER, None)
    if folder and exitstatus == 0:
        shutil.rmtree(folder, ignore_errors=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs a program which is not installed; in CI, fail it."""
    for mark in item.iter_markers("needs"):
        requirements.programs(*mark.args)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder of the test's own; on a disk if it is marked so."""
    if request.node.get_closest_marker("disk") is None:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=DISK, prefix="hermes-doctor-") as folder:
        yield Path(folder)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A healthy home made without Hermes."""
    return support.healthy(tmp_path / "home")


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the test and the commands it starts use UTC as local time, in which logs are written."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def need_release(version: str) -> None:
    """Skip where a release cannot be installed; in CI that is a failure."""
    try:
        releases.python_of(version)
    except (OSError, RuntimeError) as error:
        requirements.missing(f"Hermes {version} cannot be installed here: {error}")


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that is made once a session, by whichever worker needs it first."""
    base = factory.getbasetemp()
    session = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = session / name
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            making = session / f"making-{name}"
            making.mkdir()
            make(making)
            making.rename(folder)
    return folder


@pytest.fixture
def hermes_home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Copies of a healthy home that a real Hermes release made, once a session."""

    def make(version: str) -> Path:
        need_release(version)
        shared = once(
            tmp_path_factory,
            f"hermes-{version}",
            lambda folder: real_home.make(version, folder / "home"),
        )
        return support.copy_home(shared / "home", tmp_path / f"hermes-{version}")

    return make


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home with a Hermes of its own, for tests of updates."""
    from tests.helpers import fake_environments

    home = support.healthy(tmp_path / "home")
    fake_environments.make(home)
    return home
