"""As root in a home full of traps: what root opens, and that its owner's process sees the same."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.cli import separate_look
from hermes_doctor.core.model import Trouble, Verdict, VerdictKind
from hermes_doctor.core.system import privileges
from hermes_doctor.diagnosis.plugins import load
from tests.diagnosis.probes.test_probes import pretender
from tests.helpers import crash_server, fake_gateway, support
from tests.helpers.crash_server import STRANGER
from tests.helpers.watch_parts import finding, report
from tests.scenarios import test_hostile_home as hostile

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
TRACED = "open,openat,openat2,clone,clone3,fork,vfork,setresuid"
SECRET = "a secret of root's"
COMMANDS = (
    ("check", "--json"),
    ("check", "--deep", "--record"),
    ("timeline",),
    ("probe", "live"),
    ("config",),
    ("fix",),
    ("fix", "--apply", "--yes"),
    ("watch", "--once", "--json"),
    ("watch", "--interval", "1"),
)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody can get to."""
    with support.reachable_folder() as folder:
        yield folder


@pytest.fixture
def trapped(place: Path) -> Path:
    """A home in which every file and every folder that is read leads to root's own double of it."""
    home = hostile.full(place / "home")
    secret = place / "secret"
    shutil.copytree(home, secret)
    for base, _, names in os.walk(secret):
        os.chmod(base, 0o700)
        for name in names:
            os.chmod(Path(base, name), 0o600)
    place_of_traps = [
        *hostile.READ,
        *hostile.SEEN,
        *hostile.FOLDERS,
        "sessions",
        "pending_messages",
    ]
    tops = sorted({name.partition("/")[0] for name in place_of_traps} - {"config.yaml", ".env"})
    for name in tops:
        path = home / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        if name == "gateway":
            os.mkfifo(path)
        else:
            path.symlink_to(secret / name)
    crash_server.chown(home)
    return home


COMMAND = """
from tests.helpers import own_gateways
own_gateways.hide_those_of_other_tests()
from hermes_doctor.__main__ import main
main()
"""
"""The command, beside the gateways of other tests."""


def opened_by_root(command: tuple[str, ...], home: Path, log: Path) -> tuple[list[str], list[str]]:
    """The paths that processes of root try to open during a command, and those of other users."""
    home_option: tuple[str, ...] = ("--home", str(home))
    if "--" in command:
        at = command.index("--")
        command, home_option = (*command[:at], *home_option, *command[at:]), ()
    words = ["strace", "-f", "-y", "-qq", "-o", str(log), "-e", f"trace={TRACED}"]
    python = [sys.executable, "-c", COMMAND]
    endless = "--interval" in command
    some_rounds = ["timeout", "--signal=TERM", "12"] if endless else []
    done = subprocess.run(
        [*words, *some_rounds, *python, *command, *home_option],
        env=support.environ(
            {
                "XDG_STATE_HOME": str(log.parent / "state"),
                "PYTHONPATH": str(Path(__file__).parents[2]),
            }
        ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if "PTRACE" in done.stderr or "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    expected = (124,) if endless else (0, 1)
    looks = command[0] in ("check", "timeline", "probe", "watch") or command == ("fix",)
    looks &= command[1:2] not in (("status",), ("remove",), ("install",))
    refused = not looks or "--apply" in command  # its folders lead away
    assert done.returncode in expected or (refused and done.returncode == 2), done.stderr
    assert "Traceback" not in done.stderr
    assert not endless or ("stopped after" in done.stdout and " warning " not in done.stdout)
    return sorted_by_user(log.read_text(errors="replace"))


def sorted_by_user(log: str) -> tuple[list[str], list[str]]:
    """The paths that processes of root opened, and those of other users, by a log of strace."""
    parents = _parents(log)
    uids: dict[str, int] = {}
    pending: dict[str, str] = {}
    by_root: list[str] = []
    by_others: list[str] = []
    for line in log.splitlines():
        pid, _, call = line.partition(" ")
        call = call.strip()
        if call.endswith("<unfinished ...>"):
            pending[pid] = call.removesuffix("<unfinished ...>")
            if not call.startswith("open"):
                continue
        elif match := re.match(r"<\.\.\. \w+ resumed>(.*)", call):
            call = pending.pop(pid, "") + match[1]
            if call.startswith("open"):
                continue
        uid = uids.setdefault(pid, uids.get(parents.get(pid, ""), 0))
        name = call.partition("(")[0]
        if name == "setresuid" and call.rstrip().endswith("= 0"):
            real_uid = int(call.partition("(")[2].partition(",")[0])
            if real_uid != -1:  # otherwise it could become root again
                uids[pid] = real_uid
        elif (
            name.startswith("open")
            and "O_PATH" not in call
            and (path := re.search(r'"((?:[^"\\]|\\.)*)"', call))
        ):
            real = re.search(r"= \d+<(.*)>", call)
            (by_others if uid else by_root).extend([path[1], *([real[1]] if real else [])])
    return by_root, by_others


def _parents(log: str) -> dict[str, str]:
    """Who made each process; a new one may be in the log before the call that made it has ended."""
    call = r"^(\d+) +(?:<\.\.\. )?(?:clone3?|v?fork)\b.*= (\d+)"
    return {made: parent for parent, made in re.findall(call, log, re.MULTILINE)}


@pytest.mark.needs("strace")
@pytest.mark.sampled
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_root_opens_nothing_in_a_home(
    trapped: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """Neither there nor where its links lead: all of that is opened by a process of its owner."""
    by_root, by_others = opened_by_root(command, trapped, tmp_path / "log")

    tops = (str(trapped), str(trapped.parent / "secret"))
    assert [path for path in by_root if path.startswith(tops)] == []
    assert [path for path in by_others if path.startswith(tops)], "nothing was looked at"


@pytest.mark.needs("strace")
@pytest.mark.sampled
def test_root_opens_nothing_while_it_finds_homes(trapped: Path, tmp_path: Path) -> None:
    """Neither the folder of profiles nor the files that may name a process without a lock."""
    profile = trapped / "profiles" / "coder"
    (trapped / "profiles").unlink(missing_ok=True)
    support.put(profile / "config.yaml", support.CONFIG)
    support.put(profile / ".env", "TOKEN=profile-Kx9pLm2Tw\n")
    crash_server.chown(trapped)
    with pretender(tmp_path, {"HERMES_HOME": str(trapped)}):
        by_root, by_others = opened_by_root(("check", "--all-homes"), trapped, tmp_path / "log")

    tops = (str(trapped), str(trapped.parent / "secret"))
    assert [path for path in by_root if path.startswith(tops)] == []
    assert any(path.startswith(str(profile)) for path in by_others), "the profile was not found"
    assert f"{trapped}/gateway.pid" in by_others


@pytest.mark.needs("strace")
def test_root_s_own_home_beside_another_users_gateway(
    place: Path, tmp_path: Path, trapped: Path
) -> None:
    """A look at one home opens nothing in the homes of others that are in use."""
    own = support.healthy(place / "own")
    support.put(own / ".env", support.ENV + "TELEGRAM_BOT_TOKEN=123456:a-bot-that-may-be-shared\n")
    with pretender(tmp_path, {"HERMES_HOME": str(trapped)}):
        by_root, _ = opened_by_root(("check",), own, tmp_path / "log")

    tops = (str(trapped), str(trapped.parent / "secret"))
    assert [path for path in by_root if path.startswith(tops)] == []
    assert any(path.startswith(str(own)) for path in by_root)


def test_what_links_lead_to_is_not_read(trapped: Path) -> None:
    """They are open questions with a reason; and nothing is said to be in order."""
    document = support.check(trapped).json

    assert document["summary"]["status"] != "ok"
    reasons = {check["id"]: check["reason"] or "" for check in document["checks"]}
    assert any("permission denied" in why for why in reasons.values())
    assert not [check for check in document["checks"] if check["status"] == "crashed"]


def test_a_home_of_root_that_others_may_write(place: Path) -> None:
    """It is not looked at before that is taken away; other homes are."""
    home = support.healthy(place / "home")
    support.healthy(home / "profiles" / "coder")
    for folder, mode in ((home, 0o755), (home / "profiles" / "coder", 0o777)):
        folder.chmod(mode)
    refused = support.doctor("check", "--home", home / "profiles" / "coder")
    both = support.doctor("check", "--all-homes", "--home", home)

    said = f"Other users may write to {home}/profiles/coder, so root does not trust what is in it."
    watched = support.doctor("watch", "--once", "--home", home / "profiles" / "coder")
    for done in (refused, watched):
        assert (done.code, done.out, done.err.count(said)) == (2, "", 1), done
    assert (both.code, both.err.count(said)) == (1, 1), both
    assert "checks passed" in both.out
    assert f"No check could look at {home}/profiles/coder" in both.err
    nagios = support.doctor("check", "--all-homes", "--home", home, "--format", "nagios")
    assert nagios.code != 0 and re.search(r"\d unknown", nagios.out), nagios.out

    place.chmod(0o700)  # nobody else gets there any more
    assert support.doctor("check", "--home", home / "profiles" / "coder").code == 0


def test_a_secret_in_an_error(place: Path) -> None:
    """Root does not know what is secret in the home, so the owner's process hides it."""
    home = support.healthy(place / "home")
    (home / ".env").write_text("TELEGRAM_BOT_TOKEN=a-long-canary-7Kx9pLm2Tw\n")
    crash_server.chown(home)

    def work() -> None:
        raise Trouble("It says a-long-canary-7Kx9pLm2Tw.")

    with pytest.raises(Trouble) as raised:
        separate_look.look(home, work)
    assert "canary" not in str(raised.value)


def test_folders_of_root_that_are_not_searched(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No copy was found, and the report says where nobody has looked."""
    (place / "root").mkdir(0o700)
    home = support.healthy(place / "home")
    (home / "state.db").unlink()
    support.put(home / "sessions" / "one.jsonl", "{}\n")
    crash_server.chown(home)

    said = support.doctor(
        "check", "--only", "DB-GONE", "--home", home, env={"HOME": str(place / "root")}
    )

    words = " ".join(said.out.split())
    assert f"{place}/root could not be searched with the rights of the home's owner" in words
    assert "If a copy is there, move it next to the database and give it to that user." in words


def without_times(document: dict[str, Any]) -> dict[str, Any]:
    """A report without what differs in each run."""
    plain = re.sub(r'"(started_at|seconds)": [^,}]*', '"same": 0', json.dumps(document))
    made: dict[str, Any] = json.loads(plain)
    return made


@pytest.mark.parametrize("kind", ["healthy", "sick"])
def test_the_findings_are_the_same(place: Path, kind: str) -> None:
    """Root finds in another user's home what its owner finds."""
    home = hostile.full(place / "home") if kind == "healthy" else crash_server.sick(place / "home")
    crash_server.chown(home)

    owner = privileges.owner_of_home(home)
    assert owner is not None
    if not privileges.may_read(owner, [separate_look.__file__]):
        pytest.skip("this tool is in a folder that its owner may not enter")

    seen = without_times(support.check(home).json)

    own = support.doctor(
        "check", "--json", "--home", home, user=STRANGER, env={"HOME": "/nonexistent"}
    )
    assert seen["findings"] == without_times(own.json)["findings"]


@pytest.mark.parametrize("uid", [0, STRANGER])
def test_a_running_gateway_is_seen(place: Path, monkeypatch: pytest.MonkeyPatch, uid: int) -> None:
    """Also one of root's, and one whose files in /proc are hidden from its own user."""
    home = support.healthy(place / "home")
    crash_server.chown(home)
    become = (
        f"os.setgroups([]); os.setresgid({uid}, {uid}, {uid}); os.setresuid({uid}, {uid}, {uid})"
    )
    script = fake_gateway._SCRIPT.replace("\nhome, wants", f"\n{become}\nhome, wants")
    monkeypatch.setattr(fake_gateway, "_SCRIPT", script)
    with fake_gateway.gateway(home, open=2, api="answers") as running:
        crash_server.chown(home)
        document = support.check(home).json
    rungs = {rung["name"]: rung for rung in document["liveness"]["rungs"]}
    assert str(running.pid) in json.dumps(document["states"]["gateway"])
    assert rungs["process"]["status"] == "ok"
    assert rungs["lock"]["status"] == "ok"


@pytest.fixture(scope="session")
def closed_program() -> Iterator[Path]:
    """A copy of this tool in a folder that only root can enter."""
    top = Path(separate_look.__file__).parents[2]
    with tempfile.TemporaryDirectory() as folder:  # it has the mode 0700
        for name in ("hermes_doctor", "checks", "fixes", "docs", "pyproject.toml"):
            if (top / name).is_dir():
                shutil.copytree(top / name, Path(folder) / name)
            elif (top / name).exists():
                shutil.copy(top / name, folder)
        yield Path(folder)


@pytest.mark.parametrize(
    "command",
    [("check",), ("check", "--all-homes"), ("timeline",), ("config",), ("watch", "--once")],
)
@pytest.mark.parametrize("kind", ["healthy", "sick"])
def test_a_program_in_a_closed_folder(
    place: Path, closed_program: Path, command: tuple[str, ...], kind: str
) -> None:
    """What is shown does not depend on whether the home's owner may read this tool."""
    home = hostile.full(place / "home") if kind == "healthy" else crash_server.sick(place / "home")
    with open(home / ".env", "a") as file:
        file.write("EMAIL_PASSWORD=openrouter\n")  # a value that may be a word of this tool
    crash_server.chown(home)
    words = [sys.executable, "-m", "hermes_doctor", *command, "--home", str(home)]
    shown = []
    for number, program in enumerate((Path(separate_look.__file__).parents[2], closed_program)):
        done = subprocess.run(
            words,
            cwd=program,
            env=support.environ({"XDG_STATE_HOME": str(place / f"state-{number}")}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        told = re.sub(r"\d+", "0", done.stdout.partition("\n\n\n")[0].strip())  # the first home's
        assert "Permission denied" not in told + done.stderr
        # Gateways of other tests have homes, too, which come and go.
        rest = () if "--all-homes" in command else (done.returncode, done.stderr)
        shown.append((re.sub(r"in 0+(\.0+)? s", "in 0 s", told), rest))
    assert shown[1] == shown[0]


def test_all_that_functions_import_can_be_sent() -> None:
    """Where Python is closed to the owner, root sends each module, unless it has a part in C."""
    top = Path(separate_look.__file__).parents[1]
    names = {
        name
        for folder in (top, top.parent / "checks", top.parent / "fixes")
        for path in folder.rglob("*.py")
        for name in _imported(path)
        if not path.is_relative_to(top / "learning") and _exists(name)
    }
    program = (
        "import sys; from hermes_doctor.cli.separate_look import load_binary; load_binary(); "
        "from hermes_doctor.core.system.modules_of_root import send; "
        "names = [*sys.argv[1:]]; "
        "known = {*sys.modules, *sys.builtin_module_names}; "
        "print(*(name for name in names if name not in known and not send(name)))"
    )
    done = subprocess.run([sys.executable, "-c", program, *sorted(names)], capture_output=True)
    assert (done.stdout.split(), done.stderr) == ([], b"")


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _exists(name: str) -> bool:
    import importlib.util

    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def test_the_report_keeps_what_screens_need(place: Path) -> None:
    """Words and numbers of a finding stay; what only a fix needs does not."""
    suggests = ("hermes-doctor learn", "ask it")
    data = {"suggests": suggests, "one_chat": True, "snapshot": object(), "edits": (object(),)}
    bad = finding("PROVIDER-401", data=data)
    made = report(bad)._replace(verdict=Verdict(VerdictKind.LIMITED, "limited", bad))

    home = support.healthy(place / "home")
    crash_server.chown(home)

    found = separate_look.look_at(home, lambda: made, load.load())

    assert found.verdict is not None and found.verdict.primary is not None
    kept = {"suggests": suggests, "one_chat": True}
    assert [dict(one.data) for one in (*found.findings, found.verdict.primary)] == [kept, kept]
