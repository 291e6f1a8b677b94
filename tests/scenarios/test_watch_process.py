"""The command as it is typed: a real process beside a home that gets sick and well."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.home import SERVICE_VARIABLE
from tests.helpers import fake_gateway, pings, support

PATIENCE = 60.0


class Child:
    """A watch at work; what it says comes line by line."""

    def __init__(
        self,
        home: Path,
        *args: str,
        env: dict[str, str | None] | None = None,
        program: Sequence[str] = ("-m", "hermes_doctor"),
        start_new_session: bool = False,
    ) -> None:
        state = {"XDG_STATE_HOME": str(home.parent / "state")}
        self.process = subprocess.Popen(
            [sys.executable, *program, "watch", "--home", str(home), *args],
            env=support.environ({**state, **(env or {})}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=start_new_session,
        )
        self.lines: list[str] = []
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._more:
                self.lines.append(line.rstrip("\n"))
                self._more.notify_all()

    def until(self, text: str) -> str:
        """Wait for a line with some text in it."""
        found: list[str] = []

        def there() -> bool:
            found[:] = [line for line in self.lines if text in line]
            return bool(found)

        with self._more:
            assert self._more.wait_for(there, PATIENCE), f"no {text!r} in {self.lines}"
        return found[0]

    def events(self) -> list[dict[str, Any]]:
        """What it said, as documents."""
        return [json.loads(line) for line in self.lines]

    def end(self, number: int = signal.SIGTERM) -> int:
        """Tell it to end; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """End it by force, if need be."""
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


@contextlib.contextmanager
def watching(home: Path, *args: str, **more: Any) -> Iterator[Child]:
    """A watch with short rounds, ended with the context."""
    child = Child(home, "--interval", "1s", *args, **more)
    try:
        yield child
    finally:
        child.close()


def until(true: Callable[[], object]) -> None:
    limit = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.05)


def await_a_round(home: Path) -> None:
    """Wait until the watch has looked once more."""

    def last() -> int:
        files = (home.parent / "state" / "hermes-doctor").glob("*.json")
        return max((file.stat().st_mtime_ns for file in files), default=0)

    before = last()
    until(lambda: last() > before)


def blot(home: Path) -> None:
    support.put(home / ".env", b"\xef\xbb\xbf" + support.ENV.encode())


def test_sick_and_well(home: Path) -> None:
    """One line for each change, each with its time, and what to type."""
    with watching(home) as child:
        first = child.until("start")
        assert str(home) in first and "every 1 s" in first and "no problem found" in first
        blot(home)
        new = child.until("ENV-BOM")
        assert "new" in new and f"hermes-doctor fix ENV-BOM --apply --home {home}" in new
        support.put(home / ".env", support.ENV)
        child.until("gone   ENV-BOM")
        assert child.end() == 0
        child.until("end    stopped after")
        assert child.process.stderr is not None and child.process.stderr.read() == ""
    times = [line[:19] for line in child.lines]
    assert times == sorted(times) and all(len(one.split()) == 2 for one in times)


def test_looking_changes_nothing(home: Path) -> None:
    """Neither in the home nor beside it, but for its own folder."""
    before = support.tree(home, vault=True)
    with watching(home) as child:
        child.until("start")
        for _ in range(3):
            await_a_round(home)
        assert child.end() == 0
    assert support.tree(home, vault=True) == before
    assert sorted(os.listdir(home.parent)) == ["home", "state"]


def test_it_heals(home: Path) -> None:
    """A database that is damaged under it is whole again."""
    with watching(home, "--heal", "--after", "2") as child:
        child.until("start")
        support.clobber(home / "state.db")
        child.until("healed DB-NOTADB")
        child.until("gone   DB-NOTADB")
        assert child.end() == 0
    assert support.check(home).codes == []


def test_one_object_a_line(home: Path) -> None:
    """One object a line."""
    blot(home)
    with watching(home, "--json") as child:
        child.until("ENV-BOM")
        child.end()
        child.until('"end"')
    events = child.events()
    assert [event["event"] for event in events] == ["start", "found", "end"]
    assert events[0]["counts"]["error"] + events[0]["counts"]["warning"] >= 1
    assert events[1]["code"] == "ENV-BOM" and events[1]["subject"] == ".env"
    assert {event["schema"] for event in events} == {"hermes-doctor/event/1"}


@pytest.mark.sampled
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_once(home: Path, number: int) -> None:
    """However long the wait between two rounds is."""
    with watching(home, "--interval", "1h") as child:
        child.until("start")
        assert child.end(number) == 0


def test_sighup_looks_now(home: Path) -> None:
    """Sighup looks now."""
    with watching(home, "--interval", "1h") as child:
        child.until("start")
        blot(home)
        child.process.send_signal(signal.SIGHUP)
        child.until("new")


SLOW_CHECK = """
import os, time
from hermes_doctor.api import *

@check(id="slow", group="tests", codes=["SLOW"], limit=60)
def slow(probes):
    \"\"\"Is it there?\"\"\"
    if os.path.exists(probes.home / "auth.json"):
        yield Finding("SLOW", Severity.ERROR, "it is there", subject="auth.json", fix="away")
    else:
        time.sleep(30)
"""
SLOW_FIX = """
from hermes_doctor.api import *

@fix(id="away", codes=["SLOW"], safety=Safety.SAFE)
def away(probes, finding):
    \"\"\"Take it away.\"\"\"
    yield MoveAside(probes.home / "auth.json", why="it is there")
"""


def test_a_repair_under_way_is_taken_back_first(home: Path) -> None:
    """As with `fix`: SIGHUP does not disturb it, SIGTERM leaves nothing half-done."""
    own = home.parent / "own"
    support.put(own / "checks" / "slow.py", SLOW_CHECK)
    support.put(own / "fixes" / "away.py", SLOW_FIX)
    before = (home / "auth.json").read_bytes()
    with watching(home, "--heal", "--after", "1", "--plugins", str(own)) as child:
        until(lambda: not (home / "auth.json").exists())
        child.process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        assert not (home / "auth.json").exists()
        assert child.end() == 0
        child.until("failed a repair was interrupted and rolled back")
    assert (home / "auth.json").read_bytes() == before
    assert support.doctor("fix", "--home", home).out.count("interrupted") == 0


WAITING = """
import os, subprocess
from hermes_doctor.api import *

@check(id="waiting", group="tests", codes=["WAITING"], limit=600)
def waiting(probes):
    \"\"\"Waits for a command.\"\"\"
    with open(os.environ["TOLD"], "a") as told:
        told.write(f"{os.getpid()}\\n")
    with subprocess.Popen(["sleep", "600"]) as command:
        with open(os.environ["TOLD"], "a") as told:
            told.write(f"{command.pid}\\n")
    yield from ()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_it_ends_in_the_middle_of_a_round(home: Path, number: int) -> None:
    """Nothing is left behind: neither the process of the round nor, if it can, a command of it."""
    own, told = home.parent / "own", home.parent / "told"
    support.put(own / "checks" / "waiting.py", WAITING)
    with watching(home, "--plugins", str(own), env={"TOLD": str(told)}) as child:
        until(lambda: told.exists() and told.read_text().count("\n") == 2)
        process, command = map(int, told.read_text().split())
        assert process != child.process.pid
        assert child.end(number) == (-number if number == signal.SIGKILL else 0)
        until(lambda: has_ended(process))
        if number == signal.SIGKILL:  # nobody is left that could end it
            os.kill(command, signal.SIGKILL)
        until(lambda: has_ended(command))


def test_ctrl_c_reaches_all_processes_of_a_terminal(home: Path) -> None:
    """The watch, in the middle of a round, ends as if only it had heard."""
    own, told = home.parent / "own", home.parent / "told"
    support.put(own / "checks" / "waiting.py", WAITING)
    with watching(
        home, "--plugins", str(own), env={"TOLD": str(told)}, start_new_session=True
    ) as child:
        until(lambda: told.exists() and told.read_text().count("\n") == 2)
        os.killpg(child.process.pid, signal.SIGINT)
        assert child.process.wait(PATIENCE) == 0
        process, command = map(int, told.read_text().split())
        until(lambda: has_ended(process) and has_ended(command))
        child.until("end    stopped after 1 check")
        assert child.process.stderr is not None and child.process.stderr.read() == ""


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or only waits for its parent to take note."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


CRASHING = """
import os
from hermes_doctor.api import *

@check(id="crashing", group="tests", codes=["CRASHING"])
def crashing(probes):
    \"\"\"Ends its process.\"\"\"
    if (probes.home / "crash").exists():
        os.kill(os.getpid(), 11)
    yield from ()
"""


def test_a_round_whose_process_crashes(home: Path) -> None:
    """It is reported once; what was found before stays, and later rounds see what has changed."""
    own = home.parent / "own"
    support.put(own / "checks" / "crashing.py", CRASHING)
    with watching(home, "--plugins", str(own)) as child:
        child.until("start")
        before = len(os.listdir(f"/proc/{child.process.pid}/fd"))
        support.put(home / "crash", "")
        child.until("could not check: its process was killed (SIGSEGV)")
        blot(home)
        for _ in range(3):
            await_a_round(home)
        (home / "crash").unlink()
        child.until("ENV-BOM")
        await_a_round(home)
        assert sum("could not check" in line for line in child.lines) == 1
        until(lambda: not children_of(child.process.pid))
        until(lambda: len(os.listdir(f"/proc/{child.process.pid}/fd")) <= before)
        assert child.end() == 0


def children_of(pid: int) -> list[str]:
    """The children of a process, zombies included."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_rounds_leave_nothing_behind(home: Path) -> None:
    """No process, no descriptor and no thread more after twenty rounds."""

    def left() -> tuple[int, int]:
        until(lambda: not children_of(child.process.pid))
        place = Path(f"/proc/{child.process.pid}")
        return len(os.listdir(place / "fd")), len(os.listdir(place / "task"))

    with watching(home, "--interval", "1h") as child:
        child.until("start")
        child.process.send_signal(signal.SIGHUP)
        await_a_round(home)
        before = left()
        for _ in range(20):
            child.process.send_signal(signal.SIGHUP)
            await_a_round(home)
        # A thread of the first round may have been about to end.
        until(lambda: all(now <= then for now, then in zip(left(), before, strict=True)))
        assert child.end() == 0


def test_a_reader_that_has_seen_enough(home: Path) -> None:
    """A reader that has seen enough."""
    blot(home)
    command = [sys.executable, "-m", "hermes_doctor", "watch", "--home", str(home)]
    env = support.environ({"XDG_STATE_HOME": str(home.parent / "state")})
    watch = subprocess.Popen(
        [*command, "--interval", "1s"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert watch.stdout is not None and watch.stderr is not None
    try:
        watch.stdout.readline()
        watch.stdout.close()
        until(lambda: not (support.put(home / ".env", support.ENV) and watch.poll() is None))
        assert b"Traceback" not in watch.stderr.read()
    finally:
        watch.kill()
        watch.wait()
        watch.stderr.close()


def test_a_second_one_that_heals_only_looks(home: Path) -> None:
    """A second one that heals only looks."""
    with watching(home, "--heal") as first, watching(home, "--heal") as second:
        both = (first, second)
        for child in both:
            child.until("start")
        until(lambda: any("another watch" in " ".join(child.lines) for child in both))
        blot(home)
        until(lambda: any("healed ENV-BOM" in " ".join(child.lines) for child in both))
        for child in both:
            child.until("gone   ENV-BOM")
        assert sum("healed" in " ".join(child.lines) for child in both) == 1


def test_killed_and_started_again_it_goes_on(home: Path) -> None:
    """Killed and started again it goes on."""
    notes = home.parent / "notes"
    with watching(home, "--notify-command", f"cat >>{home.parent}/notes") as child:
        child.until("start")
        support.clobber(home / "state.db")
        child.until("new    critical  DB-NOTADB")
        until(lambda: notes.exists() and notes.read_text().endswith("\n"))
        child.process.kill()
    with watching(home, "--notify-command", f"cat >>{home.parent}/notes") as child:
        child.until("found  critical  DB-NOTADB")
        await_a_round(home)
        child.end()
    assert notes.read_text().count("\n") == 1, "nobody is told twice"


def once(home: Path, *args: str) -> support.Done:
    state = {"XDG_STATE_HOME": str(home.parent / "state")}
    return support.doctor("watch", "--once", "--home", home, *args, env=state)


def test_single_rounds(home: Path) -> None:
    """For timers: silent where nothing changed, with the exit code of `check`."""
    first = once(home)
    assert (first.code, first.out.count("\n")) == (0, 1)
    assert once(home).out == "", "cron mails nothing"
    support.clobber(home / "state.db")
    sick = once(home)
    assert sick.code == 1 and "new    critical  DB-NOTADB" in sick.out
    again = once(home)
    assert (again.code, again.out) == (1, "")
    assert once(home, "--fail-on", "unknown").code == 0
    assert json.loads(once(home, "--json").out)["event"] == "quiet"


def test_single_rounds_heal_after_so_many(home: Path) -> None:
    """Single rounds heal after so many."""
    support.clobber(home / "state.db")
    told = [once(home, "--heal", "--interval", "5m").out for _ in range(3)]
    assert [("healed" in text) for text in told] == [False, False, True]
    assert once(home).code == 0


def test_metrics(home: Path, tmp_path: Path) -> None:
    """After each round, Prometheus can read the problems and how many repairs were tried."""
    target = tmp_path / "hermes.prom"
    support.clobber(home / "state.db")
    for _ in range(2):
        once(home, "--heal", "--interval", "5m", "--metrics", str(target))
    sick = target.read_text()
    once(home, "--heal", "--interval", "5m", "--metrics", str(target))
    once(home, "--metrics", str(target))

    assert 'code="DB-NOTADB",severity="critical",muted="false"} 1\n' in sick
    assert f'hermes_doctor_repairs_total{{home="{home}"}} 0\n' in sick
    healed = target.read_text()
    assert "DB-NOTADB" not in healed
    assert f'hermes_doctor_repairs_total{{home="{home}"}} 1\n' in healed
    assert f'hermes_doctor_up{{home="{home}"}} 1\n' in healed


def test_metrics_of_a_home_that_is_away(home: Path, tmp_path: Path) -> None:
    """It is not up, and the check is not stale."""
    target = tmp_path / "hermes.prom"
    once(home)
    home.rename(home.with_name("elsewhere"))

    assert once(home, "--metrics", str(target)).code == 2

    names = [line.partition("{")[0] for line in target.read_text().splitlines() if line[0] != "#"]
    assert names == [
        "hermes_doctor_up",
        "hermes_doctor_last_run_timestamp_seconds",
        "hermes_doctor_repairs_total",
        "hermes_doctor_repair_budget_exhausted",
    ]
    assert f'hermes_doctor_up{{home="{home}"}} 0\n' in target.read_text()


def test_metrics_that_cannot_be_written(home: Path, tmp_path: Path) -> None:
    """The watch says so once and goes on."""
    folder = tmp_path / "metrics"
    folder.mkdir()
    with watching(home, "--metrics", str(folder / "file")) as child:
        until((folder / "file").exists)
        shutil.rmtree(folder)
        child.until("its folder does not exist")
        support.clobber(home / "state.db")
        child.until("DB-NOTADB")

    assert len([line for line in child.lines if "its folder does not exist" in line]) == 1


def test_heartbeats(home: Path, tmp_path: Path) -> None:
    """One after each round; the address is nowhere to be seen."""
    with pings.pings() as service:
        secret = support.put(tmp_path / "secret", service.url("/zQcanaryBeat7"))
        words = ("--heartbeat", f"@{secret}", "--heartbeat-fail", service.url("/bad"))
        good = once(home, *words)
        support.clobber(home / "state.db")
        bad = once(home, *words)
        service.answer = 500
        refused = once(home, *words)

    assert service.paths == ["/zQcanaryBeat7", "/bad", "/bad"]
    assert "could not send the heartbeat: the server answered HTTP 500" in refused.out
    for done in (good, bad, refused):
        assert "zQcanary" not in done.out + done.err


def test_heartbeat_after_a_repair(home: Path) -> None:
    """The home that the round leaves behind counts, not the one that it found."""
    with pings.pings() as service:
        words = ("--heartbeat", service.url("/up"), "--heartbeat-fail", service.url("/fail"))
        support.clobber(home / "state.db")
        for _ in range(3):
            once(home, "--heal", "--interval", "5m", *words)

    assert service.paths == ["/fail", "/fail", "/up"]


def test_a_service_goes_on_without_its_metrics(home: Path) -> None:
    """The folder may be on a disk that is mounted later."""
    env = {"XDG_STATE_HOME": str(home.parent / "state"), SERVICE_VARIABLE: "1"}
    words = ("watch", "--once", "--home", home, "--metrics", "/no/such/folder/file")

    done = support.doctor(*words, env=env)

    assert done.code == 0
    assert "its folder does not exist" in done.out


def test_an_address_in_the_wrong_place_is_not_repeated() -> None:
    """It may be a secret."""
    done = support.doctor("watch", "https://beat.example/zQcanaryBeat7")

    assert done.code == 2
    assert "(an address)" in done.err
    assert "zQcanary" not in done.out + done.err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--interval", "soon"], "--interval needs a time"),
        (["--interval", "0"], "--interval needs a time"),
        (["--heal", "--budget", "many"], "--budget needs"),
        (["--interval", "9999999d"], "from 1s to 30d"),
        (["--heal", "--budget", "1/9999999d"], "from 60s to 30d"),
        (["--heal", "--patience", "9999999d"], "from 0s to 30d"),
        (["--notify-webhook", "http://me:secret/x@127.0.0.1:9/"], "Write @ after the host"),
        (["--notify-command", "@/no/such/secret"], "Could not read the file"),
        (["--heal", "--patience", "x"], "--patience needs"),
        (["--heal", "--also", "NO-SUCH"], "--also needs a code or fix"),
        (["--also", "GW-DOWN"], "needs --heal"),
        (["--notify-on", "awful"], "Unknown --notify-on"),
        (["--notify-webhook", "ftp://secret"], "https://"),
        (["--notify-webhook", "@/no/such/secret"], "Could not read the file"),
        (["--notify-hermes", "a b"], "--notify-hermes needs"),
        (["--heartbeat", "ftp://secret"], "--heartbeat needs an address"),
        (["--heartbeat-fail", "https://secret"], "--heartbeat-fail needs --heartbeat"),
        (["--heartbeat", "@/no/such/secret"], "Could not read the file"),
        (["--metrics", "/no/such/folder/file"], "its folder does not exist"),
        (["install"], "Put --home after `install`"),
        (["--home", "/no/such/home"], "does not exist"),
    ],
)
def test_what_makes_no_sense(home: Path, args: list[str], said: str) -> None:
    """One line that names the option, exit code 2, no secret."""
    done = support.doctor("watch", "--home", home, *args)
    assert done.code == 2 and said in done.err and "secret" not in done.err.replace(str(home), "")
    assert done.err.count("\n") == 1


def test_what_makes_no_sense_is_one_event_too(home: Path) -> None:
    """What reads lines of JSON gets one, whatever it is about."""
    done = support.doctor("watch", "--json", "--home", home, "--interval", "soon")
    [line] = done.out.splitlines()

    assert done.code == 2 and json.loads(line)["schema"] == "hermes-doctor/event/1"
    assert "--interval needs" in json.loads(line)["title"]


def test_a_home_that_is_gone_when_a_round_begins(home: Path) -> None:
    """One line, one notice and its own exit code, as when it goes later."""
    notes = home.parent / "notes"
    args = ("--json", "--notify-command", f"cat >>{notes}")
    assert once(home, *args).code == 0
    away = home.rename(home.with_name("elsewhere"))
    gone = once(home, *args)
    [line] = gone.out.splitlines()
    assert gone.code == 2 and json.loads(line)["event"] == "away"
    assert json.loads(notes.read_text())["event"] == "away"
    again = once(home, *args)
    assert (again.code, again.out) == (2, ""), "that is known by now"
    away.rename(home)
    assert json.loads(once(home, *args).out.splitlines()[0])["event"] == "back"


def test_a_home_that_is_gone_when_the_watch_begins(home: Path) -> None:
    """One that it knows may come back, so that it waits; one that it never saw ends it."""
    once(home)
    away = home.rename(home.with_name("elsewhere"))
    with watching(home, "--json") as child:
        assert '"away"' in child.until("away")
        away.rename(home)
        child.until('"back"')
        child.until('"start"')
        assert child.end() == 0
        child.until('"end"')
    assert [event["event"] for event in child.events()] == ["away", "back", "start", "end"]
    notes = home.parent / "notes"
    never = home.with_name("never")
    done = support.doctor(
        *("watch", "--home", never, "--json", "--notify-command", f"cat >>{notes}"),
        env={"XDG_STATE_HOME": str(home.parent / "state")},
    )
    [line] = done.out.splitlines()
    assert done.code == 2 and json.loads(line)["event"] == "away"
    assert json.loads(notes.read_text())["event"] == "away"


def test_a_full_disk_behind_its_output_does_not_end_it(home: Path) -> None:
    """It says so once, and goes on looking and notifying."""
    notes = home.parent / "notes"
    with open("/dev/full", "w") as full:
        watch = subprocess.Popen(
            [
                *(sys.executable, "-m", "hermes_doctor", "watch", "--home", str(home)),
                *("--interval", "1s", "--notify-command", f"cat >>{notes}"),
            ],
            env=support.environ({"XDG_STATE_HOME": str(home.parent / "state")}),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    try:
        until(lambda: list((home.parent / "state").glob("*/*.json")))
        support.clobber(home / "state.db")
        until(lambda: notes.exists() and notes.read_text().endswith("\n"))
        assert watch.poll() is None
        watch.terminate()
        said = watch.communicate(timeout=PATIENCE)[1]
        assert "could not print events (no space left on device); the watch continues" in said
        assert said.count("could not print events (no") == 1 and "Traceback" not in said
    finally:
        watch.kill()
        watch.wait()


def test_no_secret_anywhere(home: Path) -> None:
    """Not in what it says, nor in what it notifies, nor in what it keeps."""
    secret = fake_gateway.SECRET
    support.put(
        home / ".env", f"\ufeffOPENROUTER_API_KEY={secret}\nTELEGRAM_BOT_TOKEN=1:{secret}\n"
    )
    support.put(home / "config.yaml", f"model: {secret}: [\n")
    notes = home.parent / "notes"
    url = f"http://127.0.0.1:9/{secret}"
    with watching(
        home,
        *("--json", "--heal", "--after", "1", "--notify-on", "info"),
        *("--notify-command", f"env >>{notes}; cat >>{notes}", "--notify-webhook", url),
    ) as child:
        child.until("healed")
        child.until("could not send a notice with --notify-webhook")
        child.end()
        child.until('"end"')
    assert secret not in "\n".join(child.lines)
    assert notes.exists() and secret not in notes.read_text()
    [kept] = (home.parent / "state" / "hermes-doctor").glob("*.json")
    assert secret not in kept.read_text()


@pytest.mark.sampled
@pytest.mark.parametrize("colours", [True, False])
def test_on_a_terminal(home: Path, colours: bool) -> None:
    """80 columns, coloured unless NO_COLOR; Ctrl-C ends it."""
    blot(home)
    main, side = pty.openpty()
    env = {"XDG_STATE_HOME": str(home.parent / "state"), "COLUMNS": "80", "TERM": "xterm"}
    more: dict[str, str | None] = {**env, "NO_COLOR": None if colours else "1"}
    watch = subprocess.Popen(
        [sys.executable, "-m", "hermes_doctor", "watch", "--home", str(home)],
        env=support.environ(more),
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
    )
    os.close(side)
    said = b""
    try:
        while b"stopped after" not in said:
            assert select.select([main], [], [], PATIENCE)[0]
            said += os.read(main, 65536)
            if b"--apply" in said and b"stopped" not in said:
                os.kill(watch.pid, signal.SIGINT)
        assert watch.wait(PATIENCE) == 0
    finally:
        watch.kill()
        os.close(main)
    assert bool(re.search(rb"\x1b\[[0-9;]*3[0-7]m", said)) is colours
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said.decode()).splitlines()
    words = [line for line in plain if "hermes-doctor fix" not in line and str(home) not in line]
    assert max(map(len, words)) <= 80


def test_for_journald(home: Path) -> None:
    """No time of its own, a priority instead, and one line each."""
    out = home.parent / "journal"
    blot(home)
    with out.open("w") as file:
        st = os.fstat(file.fileno())
        env = {
            "XDG_STATE_HOME": str(home.parent / "state"),
            "JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino}",
        }
        command = [sys.executable, "-m", "hermes_doctor", "watch", "--once", "--home", str(home)]
        subprocess.run(command, env=support.environ(env), stdout=file, timeout=PATIENCE)
    first, second = out.read_text().splitlines()
    assert first.startswith("<5>start") and second[:1] == "<" and second[3:].startswith("found")
