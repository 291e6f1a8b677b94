"""SIGKILL at every write of a repair, an undo and a restore: before or after, never between.

`make test-all` kills at every boundary, `make test` at some of each kind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.home import is_database
from hermes_doctor.sqlite import joined_copy
from tests.helpers import budget, crash_server
from tests.helpers.crash_server import Call, Cut, Ended, Server

NO_EXCHANGE = (Cut(-1, "no-renameat2"),)
"""A file system on which two names cannot be exchanged."""
CHUNKS = 3
"""A scenario's boundaries are shared out over this many tests, so that they run side by side."""


@pytest.fixture(scope="module")
def server() -> Server:
    """The warm process."""
    return crash_server.serving(alone=True)


@pytest.fixture(scope="module")
def sick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a fault of every kind; root gets one that is another user's."""
    home = crash_server.sick(tmp_path_factory.mktemp("sick") / "home")
    return crash_server.chown(home) if os.geteuid() == 0 else home


@dataclass(frozen=True)
class Scenario:
    """One command on one home, with the home before and after it.

    The home always lies in the same place: receipts name the vault by its path.
    """

    server: Server
    template: Path
    home: Path
    command: tuple[str, ...]
    before: dict[str, tuple[Any, ...]]
    after: dict[str, tuple[Any, ...]]
    cuts: tuple[Cut, ...]
    calls: tuple[Call, ...]
    contents: dict[str, list[bytes | None]]
    """What SQLite sees in each database before and after."""

    def again(self, *cuts: Cut) -> Ended:
        """Run the command on the home as it is now."""
        return self.server(*self.command, "--home", self.home, cuts=cuts)

    def sample(self, number: int, step: int = 1) -> Sequence[Cut]:
        """Where to kill it, at every so many boundaries; some are enough for `make test`.

        Every switch of a file is among them, and one of each kind of the other calls.
        """

        def kind(cut: Cut) -> tuple[str, str, int]:
            name = self.calls[cut.at].name
            return name, cut.how, cut.at if name == "exchange" else -1

        return budget.sample(self.cuts[::step], number, kind)


def put(template: Path, home: Path) -> Path:
    """The home as the template has it."""
    shutil.rmtree(home, ignore_errors=True)
    return crash_server.clone(template, home)


def rehearse(server: Server, template: Path, home: Path, *command: str) -> Scenario:
    """Let the command come to its end once, and know every place where it can be cut off."""
    put(template, home)
    whole = server(*command, "--home", home)
    assert whole.code == 0, whole.said
    cuts = []
    for n, call in enumerate(whole.calls):
        if n == 0 or whole.calls[n - 1].effect:  # else it is the same moment as the one before
            cuts.append(Cut(n, "kill"))
        if call.name == "write":
            cuts.append(Cut(n, "half"))
    return Scenario(
        server,
        template,
        home,
        command,
        crash_server.state(template),
        crash_server.state(home),
        tuple(cuts),
        whole.calls,
        {
            name: [joined_content(place / name) for place in (template, home)]
            for name in ("state.db", "kanban.db")
        },
    )


def killed(scene: Scenario, *cuts: Cut) -> list[str]:
    """Cut the command off; no path may be between. The ids of the runs that do not end."""
    put(scene.template, scene.home)
    ended = scene.again(*cuts)
    assert ended.code == -9, f"{cuts}: {ended.said}"
    between(scene)
    journals = crash_server.journals(scene.home)
    return [run["id"] for run in journals if run["state"] not in crash_server.FINAL]


def between(scene: Scenario) -> None:
    """Every path is as before or as after; a database as SQLite sees it, together with its log."""
    now = crash_server.state(scene.home, leftovers=False)
    for name in now.keys() | scene.before.keys() | scene.after.keys():
        known = (scene.before.get(name), scene.after.get(name))
        if is_database(name):
            continue
        assert now.get(name) in known, f"{name} is neither as before nor as after"
    for name in ("state.db", "kanban.db"):
        assert joined_content(scene.home / name) in scene.contents[name], name


def joined_content(path: Path) -> bytes | None:
    """What SQLite sees in a database, together with its log."""
    if not path.exists():
        return None
    names = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-journal")]
    with tempfile.TemporaryFile() as file:
        joined_copy.write_joined(joined_copy.Parts(*names), file.fileno())
        file.seek(0)
        return file.read()


def noticed(scene: Scenario, cut_off: Sequence[str]) -> None:
    """`check` tells of the run that was cut off, and changes nothing, times included."""
    frozen = crash_server.state(scene.home, times=True, vault=True)
    looked = scene.server("check", "--json", "--home", scene.home)
    assert crash_server.state(scene.home, times=True, vault=True) == frozen
    found = [f["subject"] for f in looked.json["findings"] if f["code"] == "RUN-CUTOFF"]
    assert found == list(cut_off)
    if not cut_off:
        now = crash_server.state(scene.home)
        assert now in (scene.before, scene.after), "half-way, and nothing tells of it"


def whole(server: Server, home: Path, known: Sequence[str]) -> None:
    """Every backup that was complete is still there and verifies, and nothing lies about."""
    verified = server("backup", "verify", "--all", "--json", "--home", home)
    assert verified.code == 0, verified.said
    assert {one["id"] for one in verified.json["backups"]} >= set(known)
    assert crash_server.leftovers(home) == []
    assert crash_server.strangers(home) == []
    assert crash_server.wide(home / "backups" / "doctor") == []


def backups(home: Path) -> list[str]:
    """The backups that are complete."""
    made = home.glob("backups/doctor/*/manifest.json")
    return [path.parent.name for path in made if not path.parent.name.endswith(".partial")]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_fix_killed_anywhere(chunk: int, server: Server, sick: Path, tmp_path: Path) -> None:
    """A fix that is killed leaves each path before or after; the next fix ends it; undo undoes."""
    home = tmp_path / "home"
    scene = rehearse(server, sick, home, "fix", "--apply", "--yes")
    assert scene.before != scene.after
    times = crash_server.modified(sick)
    for n, cut in enumerate(scene.sample(12)[chunk::CHUNKS]):
        cut_off = killed(scene, cut)
        known = backups(home)
        if n % 3 == 0:
            left = put(home, tmp_path / "left")
            undone = server("undo", "--yes", "--home", home)
            assert crash_server.state(home) == scene.before, f"undo after {cut}: {undone.said}"
            assert crash_server.modified(home) == times
            whole(server, home, known)
            put(left, home)
        if n % 2:
            noticed(scene, cut_off)
        ended = server("fix", "--apply", "--yes", "--json", "--home", home)
        assert ended.code == 0, f"{cut}: {ended.said}"
        told = " ".join(ended.json["repair"]["recovered"])
        assert all(run in told for run in cut_off), f"{cut}: {told}"
        assert crash_server.state(home) == scene.after, f"fix after {cut}"
        whole(server, home, known)
        if n % 2 == 0:
            undone = server("undo", "--yes", "--home", home)
            assert undone.code == 0, f"{cut}: {undone.said}"
            assert crash_server.state(home) == scene.before, f"fix and undo after {cut}"
            assert crash_server.modified(home) == times


def test_fix_not_killed(server: Server, sick: Path, tmp_path: Path) -> None:
    """One boundary past the last the run comes to its end: there are no others."""
    scene = rehearse(server, sick, tmp_path / "home", "fix", "--apply", "--yes")
    put(sick, scene.home)
    assert scene.again(Cut(len(scene.calls), "kill")).code == 0
    assert crash_server.state(scene.home) == scene.after
    assert len(scene.cuts) > 100


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_undo_killed_anywhere(chunk: int, server: Server, sick: Path, tmp_path: Path) -> None:
    """An undo that is killed leaves each path before or after; the next undo ends it."""
    home = put(sick, tmp_path / "home")
    assert server("fix", "--apply", "--yes", "--home", home).code == 0
    scene = rehearse(server, crash_server.clone(home, tmp_path / "fixed"), home, "undo", "--yes")
    assert scene.after == crash_server.state(sick)
    for n, cut in enumerate(scene.sample(9)[chunk::CHUNKS]):
        cut_off = killed(scene, cut)
        known = backups(home)
        if n % 4 == 0:
            noticed(scene, cut_off)
        server("undo", "--yes", "--home", home)
        assert crash_server.state(home) == scene.after, f"undo after {cut}"
        assert crash_server.modified(home) == crash_server.modified(sick)
        whole(server, home, known)
        if n % 4 == 0:
            again = server("fix", "--apply", "--yes", "--home", home)
            assert again.code == 0, f"{cut}: {again.said}"
            assert crash_server.state(home) == scene.before, f"fix after {cut}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_restore_killed_anywhere(chunk: int, server: Server, sick: Path, tmp_path: Path) -> None:
    """A restore that is killed leaves each path before or after, over a log written since."""
    home = put(sick, tmp_path / "home")
    made = server("backup", "create", "--json", "--home", home).json["id"]
    assert server("fix", "--apply", "--yes", "--home", home).code == 0
    crash_server.logged(home / "state.db", "INSERT INTO notes VALUES ('since')")
    if os.geteuid() == 0:
        crash_server.chown(home)
    template = crash_server.clone(home, tmp_path / "mended")
    scene = rehearse(server, template, home, "backup", "restore", made, "--yes")
    assert scene.after == crash_server.state(sick)
    for cut in scene.sample(11, step=2)[chunk::CHUNKS]:
        cut_off = killed(scene, cut)
        known = backups(home)
        noticed(scene, cut_off)
        again = scene.again()
        assert again.code == 0, f"{cut}: {again.said}"
        assert all(run in again.said for run in cut_off), f"{cut}: {again.said}"
        assert crash_server.state(home) == scene.after, f"restore after {cut}"
        whole(server, home, known)
        done = [run for run in crash_server.journals(home) if run["kind"] == "restore"]
        for run in reversed([run for run in done if run["state"] == "done"]):
            undone = server("undo", run["id"], "--yes", "--home", home)
            assert undone.code == 0, f"{cut}: {undone.said}"
        assert crash_server.state(home) == scene.before, f"undo after {cut}"


@pytest.mark.sampled
@pytest.mark.parametrize("links", [True, False], ids=["links", "no-links"])
@pytest.mark.parametrize("moment", ["committing", "verifying"])
def test_recovery_killed_anywhere(
    moment: str, links: bool, server: Server, sick: Path, tmp_path: Path
) -> None:
    """The recovery of a run that was killed may be killed too, on a drive without links as well."""
    home = tmp_path / "home"
    bare = () if links else (*NO_EXCHANGE, Cut(0, "EPERM", only=("link",), lasting=True))
    scene = rehearse(server, sick, home, "fix", "--apply", "--yes")
    calls = server("fix", "--apply", "--yes", "--home", put(sick, home), cuts=bare).calls
    swapping = ("rename", "exchange") if bare else ("exchange",)
    saves = [n for n, c in enumerate(calls) if c.name == "rename" and "run.json" in c.path]
    marked = [n for n, c in enumerate(calls) if c.name in swapping and crash_server.MARK in c.path]
    swaps = [n for n in marked if n not in saves]
    later = [n for n in saves if n > swaps[-1]]
    at = swaps[-1] if moment == "committing" else later[0] + 1
    (run,) = killed(scene, Cut(at, "kill"), *bare)
    assert crash_server.journals(home)[0]["state"] == moment
    template = crash_server.clone(home, tmp_path / "cut-off")
    ended = server("undo", "--yes", "--home", home, cuts=bare)
    assert crash_server.state(home) == scene.before, ended.said
    effective = [n + 1 for n, call in enumerate(ended.calls[:-1]) if call.effect]
    kills = [0, *effective][:: 1 if links else 2]
    for n in budget.sample(kills, 6, lambda n: ended.calls[n].name == "exchange"):
        put(template, home)
        assert server("undo", "--yes", "--home", home, cuts=(Cut(n, "kill"), *bare)).code == -9
        between(scene)
        server("undo", "--yes", "--home", home, cuts=bare)
        assert crash_server.state(home) == scene.before, f"{run} cut off, and its recovery at {n}"
        assert crash_server.modified(home) == crash_server.modified(sick)
        whole(server, home, [run])


def test_backup_killed_anywhere(server: Server, sick: Path, tmp_path: Path) -> None:
    """A backup that is killed is none: the next one is whole and nothing of the first is left."""
    scene = rehearse(server, sick, tmp_path / "home", "backup", "create")
    for cut in scene.sample(6, step=3):
        killed(scene, cut)
        noticed(scene, [])
        assert scene.again().code == 0
        whole(server, scene.home, backups(scene.home))


@pytest.mark.sampled
@pytest.mark.parametrize("command", [("create",), ("create", "--daily", "1"), ("verify", "--deep")])
def test_over_an_earlier_backup_killed_anywhere(
    command: tuple[str, ...], server: Server, sick: Path, tmp_path: Path
) -> None:
    """A backup that shares, one that lets the earlier go, one that is tried out: whenever they are
    killed, every backup that is there is whole, and the next command takes the rest away."""
    home = put(sick, tmp_path / "home")
    first = server("backup", "create", "--json", "--home", home).json["id"]
    if command[0] == "verify":  # a database that is damaged fails it
        for path in home.glob("backups/doctor/*/files/state.db*"):
            path.unlink()
    template = crash_server.clone(home, tmp_path / "one")
    put(template, home)
    whole_run = server("backup", *command, "--home", home)
    cuts = [n for n, call in enumerate(whole_run.calls) if n == 0 or whole_run.calls[n - 1].effect]
    assert len(cuts) > 10
    for n in budget.sample(cuts[:: max(1, len(cuts) // 12)], 6):
        put(template, home)
        assert server("backup", *command, "--home", home, cuts=(Cut(n, "kill"),)).code == -9
        assert crash_server.state(home) == crash_server.state(template), "the home itself"
        known = backups(home)
        assert first in known or command == ("create", "--daily", "1")
        again = server("backup", "create", "--home", home)
        assert again.code == 0, again.said
        assert crash_server.leftovers(home) == []
        assert crash_server.strangers(home) == []
        assert crash_server.wide(home / "backups" / "doctor") == []
        for id in [*set(known) - {first}, sorted(backups(home))[-1]]:
            assert server("backup", "verify", id, "--home", home).code == 0


def test_prune_killed_anywhere(server: Server, sick: Path, tmp_path: Path) -> None:
    """A prune that is killed leaves each backup whole or none; the next one takes the rest."""
    home = put(sick, tmp_path / "home")
    for _ in range(2):
        assert server("backup", "create", "--home", home).code == 0
    template = crash_server.clone(home, tmp_path / "two")
    scene = rehearse(server, template, home, "backup", "prune", "--keep", "1", "--yes")
    for cut in scene.sample(10):
        killed(scene, cut)
        assert server("backup", "verify", "--all", "--home", home).code == 0
        assert scene.again().code == 0
        assert len(backups(home)) == 1
        vault = home / "backups" / "doctor"
        assert {path.name for path in vault.iterdir()} <= {*backups(home), "runs"}, f"{cut}"


def test_every_write_is_durable(server: Server, sick: Path, tmp_path: Path) -> None:
    """Nothing but `hermes_doctor.core.system.disk` changes a disk; nothing escapes these tests."""
    home = crash_server.clone(sick, tmp_path / "home")
    (home / "link").symlink_to("config.yaml")
    made = server("backup", "create", "--json", "--home", home)
    calls = [*made.calls]
    for command in (
        ("fix", "--apply", "--yes"),
        ("undo", "--yes"),
        ("backup", "restore", str(made.json["id"]), "--yes"),
        ("backup", "prune", "--keep", "1", "--yes"),
    ):
        ended = server(*command, "--home", home)
        assert ended.code == 0, ended.said
        calls += ended.calls
    others = {(c.name, c.caller) for c in calls if c.caller != "hermes_doctor.core.system.disk"}
    harmless = {
        ("chown", "hermes_doctor.core.system.privileges"),  # what `disk.set_owner` calls
        ("mkdir", "tempfile"),  # a room of root's own, outside of any home
        ("rmdir", "shutil"),
    }
    assert {other for other in others - harmless if other[0] != "connect"} == set()
