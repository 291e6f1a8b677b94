"""The command as an operator meets it: documents, pipes, terminals, hints, exit codes."""

from __future__ import annotations

import copy
import fcntl
import gc
import importlib.util
import json
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import weakref
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import typer.core
import typer.main
from rich.cells import cell_len

from hermes_doctor.cli import check_run, demo_home
from hermes_doctor.cli.commands import app, build_only
from hermes_doctor.diagnosis.examination import report as reports
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import damage, support, terminal_screen

COMMAND = (
    "import sys; sys.argv[0] = 'hermes-doctor'; from hermes_doctor.cli.main import main; main()"
)
MARKED = b"\xef\xbb\xbfA=1\n"


@pytest.fixture
def sick(home: Path) -> Path:
    """A home with a fault of each safety and severity."""
    support.put(home / ".env", MARKED)
    os.utime(support.put(home / "config.yaml.bak", "a: 1\n"), (1e9, 1e9))
    support.put(home / "config.yaml", "a: [\n")
    (home / "auth.json").chmod(0o644)
    (home / "projects.db").mkdir()  # no fix moves a folder away
    return home


@pytest.fixture
def short() -> Iterator[Path]:
    """A short path, so that hints fit a narrow terminal."""
    folder = Path(tempfile.mkdtemp(prefix="h", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


def environ(**more: str) -> dict[str, str]:
    """An environment without the operator's own settings."""
    gone = ("HERMES_HOME", "SUDO_USER", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM")
    return {k: v for k, v in os.environ.items() if k not in gone} | more


def shell(line: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A line in a shell in which `hermes-doctor` is this tool."""
    words = shlex.join([sys.executable, "-P", "-c", COMMAND])
    return subprocess.run(
        ["bash", "-c", f'hermes-doctor() {{ {words} "$@"; }}; {line}'],
        env=environ(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def pasted(line: str) -> support.Done:
    """A line pasted into a shell: that splits it into words, and a warm process does the rest."""
    said = subprocess.run(
        ["bash", "-c", f"hermes-doctor() {{ printf '%s\\0' \"$@\"; }}; {line}"],
        env=environ(),
        capture_output=True,
        text=True,
        check=True,
    )
    return support.doctor(*said.stdout.split("\0")[:-1])


def terminal(
    *args: str | Path, columns: int = 80, answer: str = "", command: str = "", **more: str
) -> tuple[int, str]:
    """Exit code and output of the command on a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", command or COMMAND, *map(str, args)],
        env=environ(**{"TERM": "xterm-256color"} | more),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    if answer:
        os.write(ours, answer.encode())
    seen = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(ours)
    return process.wait(timeout=30), seen.decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    """Text without colours."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def settled(text: str) -> str:
    """Text without colours, and without the progress that a busy machine shows."""
    return re.sub(r"(?m)^checking [^\n]*\n", "", re.sub(r"[^\n]*\r", "", plain(text)))


# -- documents -----------------------------------------------------------------------------


def shape(value: Any, wanted: Any, where: str = "document") -> None:
    """A document has exactly these keys, and values of these types."""
    if isinstance(wanted, dict):
        assert isinstance(value, dict), where
        assert value.keys() == wanted.keys(), where
        for key, inner in wanted.items():
            shape(value[key], inner, f"{where}.{key}")
    elif isinstance(wanted, list):
        assert isinstance(value, list), where
        for number, one in enumerate(value):
            shape(one, wanted[0], f"{where}[{number}]")
    elif isinstance(wanted, tuple):
        if value is not None:
            shape(value, wanted[0], where)
    elif isinstance(wanted, str):
        assert value in wanted.split("|"), where
    else:
        assert type(value) is wanted, f"{where} is {value!r}"


FINDING = {
    "code": str,
    "check": str,
    "severity": "critical|error|warning|info",
    "muted": bool,
    "title": str,
    "message": {"template": str, "values": dict},
    "detail": str,
    "next": str,
    "subject": str,
    "evidence": [{"where": str, "what": str}],
    "since": (str,),
    "times_in_7_days": (int,),
    "caused_by": (str,),
    "fix": (
        {
            "id": str,
            "safety": "safe|confirm|manual",
            "command": (str,),
            "refusal": (str,),
        },
    ),
}
REPORT: dict[str, Any] = {
    "schema": "hermes-doctor/report/1",
    "version": str,
    "home": str,
    "hermes": {"version": (str,)},
    "started_at": str,
    "seconds": float,
    "summary": {
        "status": "ok|problem|unknown",
        "counts": {"critical": int, "error": int, "warning": int, "info": int},
        "muted": int,
        "off": [str],
        "checks": {"ok": int, "problem": int, "skipped": int, "unknown": int, "crashed": int},
        "verdict": "working|limited|not working|stopped|not set up|unknown",
        "headline": str,
        "primary": ({"code": str, "subject": str, "title": str},),
    },
    "states": {
        name: [{"mark": "good|bad|limited|none|unknown", "text": str}]
        for name in ("gateway", "platforms", "model", "data")
    },
    "liveness": {
        "stands_on": (str,),
        "rungs": [{"name": str, "status": "ok|failed|unknown", "what": str, "since": (str,)}],
    },
    "checks": [
        {
            "id": str,
            "status": "ok|problem|skipped|unknown|crashed",
            "seconds": float,
            "reason": (str,),
        }
    ],
    "findings": [FINDING],
}
ERROR = REPORT | {"states": {}, "home": (str,), "error": {"message": str, "exit_code": int}}
RUN: dict[str, Any] = {
    "run": str,
    "kind": "fix|undo|restore",
    "state": str,
    "of": (str,),
    "backup": str,
    "note": (str,),
    "gateway": ("started|stopped",),
    "saved": [str],
    "kept": [str],
    "unremoved": [str],
    "items": [
        {
            "code": (str,),
            "subject": str,
            "fix": str,
            "outcome": "verified|rolled-back|failed|refused|not-enough|left",
            "reason": (str,),
            "steps": [str],
            "notes": [str],
        }
    ],
}
REPAIR = REPORT | {
    "repair": {
        "applied": bool,
        "plan": [
            {
                "code": str,
                "subject": str,
                "fix": (str,),
                "safety": ("safe|confirm|manual",),
                "steps": [{"what": str, "diff": ([str],), "losses": (str,)}],
                "refusal": (str,),
                "asks": bool,
                "unnamed": bool,
                "personal": bool,
                "command": (str,),
                "later": [str],
            }
        ],
        "runs": [RUN],
        "undo": (str,),
        "named": [
            {
                "code": str,
                "state": "planned|repaired|left|absent|related|unknown",
                "message": str,
                "commands": [str],
            }
        ],
        "recovered": [str],
    }
}


def test_report_document(sick: Path) -> None:
    """Exactly the design's schema, on a sick home, with times that parse."""
    document = support.check(sick).json

    shape(document, REPORT)
    assert len(document["findings"]) == 4
    assert document["home"] == str(sick)
    assert datetime.fromisoformat(document["started_at"]).tzinfo is not None
    counts = document["summary"]["counts"]
    assert sum(counts.values()) == len(document["findings"])
    since = support.finding(support.check(sick), "CFG-YAML")["since"]
    assert datetime.fromisoformat(since).tzinfo is not None


def test_healthy_document(home: Path) -> None:
    """The same schema when nothing is wrong."""
    done = support.check(home)

    shape(done.json, REPORT)
    assert (done.code, done.err, done.json["summary"]["status"]) == (0, "", "ok")


ERRORS = [
    ["check", "--json", "--home", "/nowhere"],
    ["fix", "--json", "--home", "/nowhere"],
    ["undo", "--json", "--home", "/nowhere"],
    ["backup", "list", "--json", "--home", "/nowhere"],
    ["check", "--json", "--no-such-option"],
    ["check", "--json", "--home"],
    ["check", "--json", "--fail-on", "nonsense", "--home", "HOME"],
    ["check", "--json", "--only", "nonsense", "--home", "HOME"],
    ["fix", "NONSENSE", "--json", "--home", "HOME"],
    ["list", "nonsense", "--json"],
    ["nonsense", "--json"],
    ["undo", "nonsense", "--json", "--home", "HOME"],
    ["undo", "--json", "--yes", "--home", "HOME"],
    ["backup", "verify", "--json", "--home", "HOME"],
    ["backup", "restore", "nonsense", "--json", "--yes", "--home", "HOME"],
    ["backup", "prune", "--older-than", "x", "--json", "--home", "HOME"],
]


@pytest.mark.parametrize("args", ERRORS, ids=" ".join)
def test_error_document(home: Path, args: list[str]) -> None:
    """Every failure, usage included, is one valid document on stdout and exit 2."""
    done = support.doctor(*(str(home) if word == "HOME" else word for word in args))

    assert (done.code, done.err) == (2, "")
    shape(done.json, ERROR)
    assert done.json["error"]["exit_code"] == 2
    assert done.json["error"]["message"]


@pytest.mark.parametrize("args", [one for one in ERRORS if one[0] != "nonsense"], ids=" ".join)
def test_error_line(home: Path, args: list[str]) -> None:
    """Without --json the same is one line on stderr, and stdout is empty."""
    words = [str(home) if word == "HOME" else word for word in args if word != "--json"]

    done = support.doctor(*words)

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("hermes-doctor: ")
    assert done.err.count("\n") == 1


def test_json_as_a_value(home: Path) -> None:
    """The word --json only counts where it is an option."""
    done = support.doctor("backup", "create", "--home", "/nowhere", "--reason", "--json")

    assert done.code == 2
    assert done.out == ""


def test_plan_document(sick: Path) -> None:
    """`fix --json` is the report and the plan; nothing is applied."""
    before = support.tree(sick, vault=True)

    done = support.doctor("fix", "--json", "--home", sick)

    assert done.code == 0
    assert support.tree(sick, vault=True) == before
    shape(done.json, REPAIR)
    repair = done.json["repair"]
    assert (repair["applied"], repair["runs"], repair["recovered"]) == (False, [], [])
    plan = {one["code"]: one for one in repair["plan"]}
    assert plan["DB-NOTADB"]["refusal"]
    assert plan["CFG-YAML"]["safety"] == "confirm"
    assert plan["CFG-YAML"]["steps"][0]["diff"]


def test_repair_and_undo_documents(sick: Path) -> None:
    """`fix --apply --json` adds the receipts; `undo --json` is one receipt."""
    before = support.contents(sick)

    done = support.doctor("fix", "--apply", "--yes", "--json", "--home", sick)

    assert done.code == 1, "one finding has no fix"
    shape(done.json, REPAIR)
    assert done.codes == ["DB-NOTADB"]
    repair = done.json["repair"]
    assert repair["applied"] is True
    [run] = repair["runs"]
    assert (run["kind"], run["state"]) == ("fix", "done")
    assert {item["outcome"] for item in run["items"]} == {"verified"}
    assert Path(run["backup"]).is_dir()
    undone = support.doctor("undo", "--yes", "--json", "--home", sick)
    assert undone.code == 0
    receipt = {"schema": "hermes-doctor/run-report/1", "home": str, "recovered": [str]}
    shape(undone.json, receipt | RUN | {"undone": [str]})
    assert (undone.json["kind"], undone.json["of"]) == ("undo", run["run"])
    assert support.contents(sick) == before


def test_backup_documents(home: Path) -> None:
    """The documents of `backup`."""
    one = {
        "id": str,
        "created_at": str,
        "home": str,
        "reason": str,
        "hermes": (str,),
        "files": int,
        "bytes": int,
        "whole": bool,
        "shares": (str,),
        "missing": [{"path": str, "reason": str, "folder": bool}],
        "folder": str,
    }
    options = ("--json", "--home", home)
    made = support.doctor("backup", "create", *options).json
    more = {"entries": int, "left_out": [str], "excluded": [str], "archive": (str,)}
    more["damaged_before"] = [{"backup": str, "path": str}]
    more["protected"] = [{"id": str, "why": str}]
    more["not_followed"] = [str]
    shape(made, {"schema": "hermes-doctor/backup/1", "removed": [str]} | more | one)
    listed = support.doctor("backup", "list", *options).json
    shape(listed, {"schema": "hermes-doctor/backups/1", "vault": str, "backups": [one]})
    verified = support.doctor("backup", "verify", *options).json
    assert verified == {
        "schema": "hermes-doctor/verification/1",
        "backups": [{"id": made["id"], "whole": True, "wrong": [], "missing": []}],
    }


# -- exit codes and repairs ------------------------------------------------------------------


def test_plan_writes_nothing(sick: Path) -> None:
    """`fix` without --apply changes no byte, no time, and makes no folder."""
    before = support.tree(sick, vault=True)

    done = support.doctor("fix", "--home", sick)

    assert done.code == 0
    assert support.tree(sick, vault=True) == before
    assert not (sick / "backups").exists()
    assert "nothing is changed yet" in done.out


def test_a_plan_that_is_only_shown(short: Path) -> None:
    """Showing a plan is what was asked for, so it exits with 0."""
    home = support.healthy(short / "home")
    short.chmod(0o755)
    home.chmod(0o755)
    (home / "auth.json").chmod(0o640)
    [finding] = support.check(home).json["findings"]
    assert finding["severity"] == "warning"

    done = support.doctor("fix", "--home", home)

    assert "auth.json: let only its owner read it" in done.out
    assert done.code == 0


def test_confirm_is_left_in_a_pipe(sick: Path) -> None:
    """Safe fixes are done, those that ask are left with the exact command, exit 1."""
    broken = (sick / "config.yaml").read_bytes()

    done = support.doctor("fix", "--apply", "--home", sick)

    assert done.code == 1
    assert (sick / ".env").read_bytes() == b"A=1\n"
    assert (sick / "config.yaml").read_bytes() == broken
    assert "no terminal is open" in done.out
    hint = f"hermes-doctor fix CFG-YAML --apply --yes --home {sick}"
    assert hint in done.out
    assert pasted(hint).code == 0
    assert (sick / "config.yaml").read_text() == "a: 1\n"


@pytest.mark.sampled
@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_asks_on_a_terminal(home: Path, answer: str, code: int) -> None:
    """On a terminal it asks, and no is the default."""
    support.put(home / "config.yaml.bak", "a: 1\n")
    support.put(home / "config.yaml", "a: [\n")

    done, text = terminal("fix", "--apply", "--home", home, answer=answer)

    assert done == code
    assert "Apply this fix for CFG-YAML? You can undo it. [y/N]" in plain(text)
    assert ((home / "config.yaml").read_text() == "a: 1\n") == (code == 0)


def test_fix_of_one_code(sick: Path) -> None:
    """Only what is asked for is planned and done; a wrong code is exit 2 with the nearest."""
    done = support.doctor("fix", "env-bom", "--apply", "--json", "--home", sick)
    assert (done.code, done.codes) == (0, [])
    assert (sick / ".env").read_bytes() == b"A=1\n"
    assert (sick / "auth.json").stat().st_mode & 0o777 == 0o644

    wrong = support.doctor("fix", "ENV-BON", "--home", sick)
    assert wrong.code == 2
    assert "Did you mean ENV-BOM?" in wrong.err


def test_nothing_to_fix(home: Path) -> None:
    """A healthy home: exit 0, a friendly word, no run."""
    for args in ([], ["--apply"]):
        done = support.doctor("fix", *args, "--home", home)
        assert (done.code, done.out) == (0, "✓ There is nothing to fix.\n")
    assert not (home / "backups").exists()


def test_nothing_found_is_not_nothing_there(home: Path) -> None:
    """A check without an answer: fix does not say that all is well; with --apply it exits 1."""
    (home / "state.db").unlink()
    (home / "state.db").symlink_to("nowhere")
    for args in ([], ["--apply"]):
        done = support.doctor("fix", *args, "--home", home)
        assert done.code == len(args)
        assert "some checks had no answer" in done.out
        assert "Could not check database-header" in done.out
        assert "There is nothing to fix" not in done.out
    assert not (home / "backups").exists()


def test_undo(home: Path) -> None:
    """undo needs consent, finds the last run, can be repeated by id, and refuses nonsense."""
    support.put(home / ".env", MARKED)
    nothing = support.doctor("undo", "--yes", "--home", home)
    assert nothing.code == 2
    assert support.doctor("fix", "--apply", "--home", home).code == 0

    asked = support.doctor("undo", "--home", home)
    assert asked.code == 2
    assert "Nothing was changed" in asked.err
    assert (home / ".env").read_bytes() == b"A=1\n"
    [run] = [path.name for path in (home / "backups/doctor/runs").iterdir()]
    assert support.doctor("undo", run, "--yes", "--home", home).code == 0
    assert (home / ".env").read_bytes() == MARKED
    twice = support.doctor("undo", run, "--yes", "--home", home)
    assert twice.code == 2
    assert "already undone" in twice.err


def test_undo_of_a_changed_file(home: Path) -> None:
    """A file that changed since is not overwritten without --force; with it, it is kept."""
    support.put(home / ".env", MARKED)
    assert support.doctor("fix", "--apply", "--home", home).code == 0
    support.put(home / ".env", "MINE=1\n")

    done = support.doctor("undo", "--yes", "--home", home)
    assert done.code == 2
    assert "changed since" in done.err
    assert (home / ".env").read_text() == "MINE=1\n"
    assert support.doctor("undo", "--yes", "--force", "--home", home).code == 0
    assert (home / ".env").read_bytes() == MARKED


def test_undo_can_be_undone(home: Path) -> None:
    """An undo is a run like any other: by its id it can be taken back too."""
    support.put(home / ".env", MARKED)
    assert support.doctor("fix", "--apply", "--home", home).code == 0
    undone = support.doctor("undo", "--yes", "--json", "--home", home).json["run"]

    again = support.doctor("undo", undone, "--yes", "--home", home)

    assert again.code == 0, again.err
    assert (home / ".env").read_bytes() == b"A=1\n"


# -- hints -----------------------------------------------------------------------------------


def commands(text: str) -> list[str]:
    """Every command that the output offers to paste."""
    found = re.findall(r"(?:Next: |Undo: |yourself: |^ +)(hermes-doctor .*)", text, re.MULTILINE)
    return [re.split(r" {2,}", one)[0] for one in found]


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["home", "my home", "it's $HOME & more", "中文 家"])
def test_hints_work_when_pasted(tmp_path: Path, name: str) -> None:
    """Every printed command runs as it stands, whatever the path is called."""
    home = support.healthy(tmp_path / name)
    support.put(home / ".env", MARKED)
    support.put(home / "projects.db", b"only text\n" * 30)

    offered = commands(support.doctor("check", "--home", home).out)
    assert len(offered) == 2
    for hint in offered:
        done = pasted(hint)
        assert done.code == 0, (hint, done.err)

    plan = commands(support.doctor("fix", "--home", home).out)
    assert [one for one in plan if "--apply" in one]
    applied = pasted(plan[-1])
    assert (home / ".env").read_bytes() == b"A=1\n"
    [back] = [one for one in commands(applied.out) if " undo " in one]
    assert pasted(f"{back} --yes").code == 0
    assert (home / ".env").read_bytes() == MARKED


def test_hints_by_environment(sick: Path) -> None:
    """A home named by HERMES_HOME is repeated: the hint may be pasted into another shell."""
    done = support.doctor("check", env={"HERMES_HOME": str(sick)})

    hint = f"hermes-doctor fix --home {sick}"
    assert f"{hint}  " in done.out
    pasted(f"{hint} --apply")
    assert (sick / ".env").read_bytes() == b"A=1\n"


def test_relative_home(sick: Path) -> None:
    """A relative --home becomes absolute in the hints: they work from anywhere."""
    done = support.doctor("check", "--home", sick.name, cwd=sick.parent)

    assert f"--home {sick}" in done.out


def test_cut_off_run_hint(home: Path) -> None:
    """What is said of a run that was cut off names the home too."""
    journal = {"state": "committing", "started_at": "2026-11-15T03:15:00+00:00"}
    support.put(home / "backups/doctor/runs/20261115-031500-aaaa/run.json", json.dumps(journal))

    text = support.doctor("check", "--home", home).out

    for hint in re.findall(r"hermes-doctor fix --apply[^\n`]*", text):
        assert f"--home {home}" in hint


@pytest.mark.parametrize(
    ("word", "near"), [("CFG-YML", "CFG-YAML"), ("perm-secret", "PERM-SECRETS")]
)
def test_explain_of_an_unknown_code(word: str, near: str) -> None:
    """Exit 2 with the nearest code."""
    done = support.doctor("explain", word)

    assert (done.code, done.out) == (2, "")
    assert f"Did you mean {near}?" in done.err


@pytest.mark.parametrize("word", ["../../README", "/etc/passwd", "", "CFG-YAML.md", "\x1b[31m"])
def test_explain_reads_no_other_file(word: str) -> None:
    """A code is a name, not a path."""
    done = support.doctor("explain", word)

    assert (done.code, done.out) == (2, "")
    assert "\x1b" not in done.err


def test_usage_errors_are_plain() -> None:
    """A typing mistake gets the nearest word; no arguments get the help as it is."""
    assert "Did you mean 'check'" in support.doctor("chek").err
    for args in ([], ["backup"]):
        done = support.doctor(*args)
        assert done.code == (2 if args else 0)
        text = done.out + done.err
        assert "�" not in text
        assert re.search(r"^(Commands|Diagnose):$", text, re.MULTILINE)


# -- pipes, terminals, encodings ----------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("args", ["check", "fix", "list", "explain CFG-YAML", "--help"])
def test_plain_in_a_pipe(sick: Path, args: str) -> None:
    """No escape code, no carriage return, even with TERM set."""
    done = shell(f"hermes-doctor {args} | cat", HERMES_HOME=str(sick), TERM="xterm-256color")

    assert done.stdout
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout


@pytest.mark.parametrize("args", ["check", "check --json", "fix", "list", "explain CFG-YAML"])
def test_head(sick: Path, args: str) -> None:
    """`| head -1` ends without a traceback, and so does a reader that closes at once."""
    for reader in ("head -1", "true"):
        done = shell(f"hermes-doctor {args} | {reader}", HERMES_HOME=str(sick))
        assert done.stderr == ""


@pytest.mark.parametrize("where", [">/dev/full", ">&-"])
def test_no_output_possible(sick: Path, where: str) -> None:
    """A full or closed output is no traceback, and not exit 0 when nothing could be said."""
    done = shell(f"hermes-doctor check --json {where}", HERMES_HOME=str(sick))

    assert "Traceback" not in done.stderr
    assert done.returncode in (1, 2)


def test_colour_on_a_terminal(sick: Path) -> None:
    """Colour on a terminal, none with NO_COLOR or a dumb one; the words are the same."""
    code, coloured = terminal("check", "--home", sick)
    assert code == 1
    assert "\x1b[" in coloured

    _, bare = terminal("check", "--home", sick, NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]|\x1b\[[0-9;]*4[0-7]", bare), "a colour"
    assert settled(bare) == settled(coloured)
    _, dumb = terminal("check", "--home", sick, TERM="dumb")
    assert "\x1b" not in dumb


@pytest.mark.parametrize(
    "args",
    [
        ["check"],
        ["fix"],
        ["fix", "--apply", "--yes"],
        ["list"],
        ["list", "codes"],
        ["list", "fixes"],
        ["explain", "CFG-YAML"],
        ["config"],
        ["backup", "create"],
        ["backup", "list"],
        ["--help"],
        ["demo"],
    ],
    ids=" ".join,
)
def test_eighty_columns(short: Path, args: list[str]) -> None:
    """No row on an 80-column terminal is wider than it, but a command that must stay whole."""
    home = support.healthy(short / "home")
    support.put(home / ".env", MARKED)
    support.put(home / "config.yaml.bak", "a: 1\nname: " + "词" * 100 + "\n")
    support.put(home / "config.yaml", "a: [\n" + "x: " + "y" * 200 + "\n")
    support.put(home / "projects.db", b"only text\n" * 30)

    _, text = terminal(*args, columns=80, HERMES_HOME=str(home), TMPDIR=str(short))

    commands = re.compile(r"\s*hermes-doctor (check|fix|undo|explain|backup)\b")
    rows = [row for row in settled(text).split("\n") if not commands.match(row)]
    assert [row for row in rows if cell_len(row) > 80] == []


def test_commands_stay_whole_on_a_terminal(short: Path) -> None:
    """A command that fits a row is never broken: half a command cannot be pasted."""
    home = support.healthy(short / "home")
    short.chmod(0o755)
    home.chmod(0o755)
    for name in (".env", "auth.json"):
        (home / name).chmod(0o644)
    support.put(home / "projects.db", b"only text\n" * 30)

    _, text = terminal("check", "--home", home)

    rows = [row.strip() for row in plain(text).split("\n")]
    for command in (
        "hermes-doctor explain DB-NOTADB",
        f"hermes-doctor fix --home {home}",
    ):
        assert [row for row in rows if command in row], command


def test_long_commands_stay_whole_on_a_terminal(tmp_path: Path) -> None:
    """One that is longer than the terminal stands on a row of its own, unbroken."""
    home = support.healthy(tmp_path / ("long" * 12) / ("name" * 12))
    support.put(home / ".env", MARKED)

    _, text = terminal("check", "--home", home, columns=80)

    rows = [row.strip() for row in plain(text).split("\n")]
    assert f"hermes-doctor fix --home {home}" in rows


def test_hints_repeat_codes_and_vault(sick: Path, tmp_path: Path) -> None:
    """What was asked for and where backups go is part of what to type next."""
    vault = tmp_path / "vault"
    done = support.doctor("fix", "ENV-BOM", "--home", sick, "--vault", vault)

    hint = f"hermes-doctor fix ENV-BOM --apply --home {sick} --vault {vault}"
    assert hint + "\n" in done.out
    pasted(hint)
    assert list(vault.iterdir())
    listed = support.doctor("backup", "list", "--home", sick, "--vault", tmp_path / "other").out
    assert f"backup create --home {sick} --vault {tmp_path / 'other'}" in listed


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_full_disk_for_the_output_is_said(home: Path, form: str, unbuffered: str) -> None:
    """`check > /dev/full` must not look like a success without an answer."""
    words = [sys.executable, "-P", "-c", COMMAND, "check", "--format", form, "--home", str(home)]
    environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, env=environ
        )

    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert re.fullmatch(
        r"hermes-doctor: Could not write the output(?: or a file)?: No space left on device\.", line
    )


ENCODINGS: list[dict[str, str]] = [
    {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
    {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"PYTHONIOENCODING": "gbk"},
    {"PYTHONIOENCODING": "latin-1"},
    {"PYTHONIOENCODING": "utf-8"},
]
ENCODED = [["check"], ["fix"], ["explain", "CFG-YAML"], ["list"], ["--help"]]


@pytest.mark.parametrize(
    ("settings", "args"),
    [
        # `make test` has each encoding and each command once; `make test-all` has every pair.
        pytest.param(one, args, marks=() if row in (0, column) else pytest.mark.wide)
        for column, one in enumerate(ENCODINGS)
        for row, args in enumerate(ENCODED)
    ],
    ids=str,
)
def test_encodings(sick: Path, settings: dict[str, str], args: list[str]) -> None:
    """No encoding of the output makes a command fail."""
    process = subprocess.run(
        [sys.executable, "-P", "-c", COMMAND, *args],
        env=environ(HERMES_HOME=str(sick), **settings),
        capture_output=True,
    )

    assert process.returncode in (0, 1)
    assert process.stderr == b""
    assert len(process.stdout) > 100


def test_encodings_of_errors(tmp_path: Path) -> None:
    """Nor of the error line, with a name that it cannot show."""
    for encoding in ("ascii", "gbk"):
        process = subprocess.run(
            [sys.executable, "-P", "-c", COMMAND, "check", "--home", str(tmp_path / "é中😀")],
            env=environ(PYTHONIOENCODING=encoding),
            capture_output=True,
        )
        assert process.returncode == 2
        assert b"Traceback" not in process.stderr
        assert process.stderr.count(b"\n") == 1


def test_names_that_are_no_text(home: Path) -> None:
    """A file name that is no UTF-8 is shown somehow, in text and in JSON."""
    folder = os.fsencode(home) + b"/kanban/boards/caf\xe9"
    os.makedirs(folder)
    with open(folder + b"/kanban.db", "wb") as file:
        file.write(b"only text\n" * 30)

    done = support.doctor("check", "--home", home)
    assert done.code == 1, done.err
    assert "DB-NOTADB" in done.out
    assert support.check(home).codes == ["DB-NOTADB"]


@pytest.mark.parametrize("command", ["check", "fix"])
def test_a_slow_command_into_a_file(sick: Path, command: str, tmp_path: Path) -> None:
    """The bar is on the terminal and erased at the end, and the report is in the file."""
    slow = "from hermes_doctor.cli import progress_bars; progress_bars.patience = lambda: 0.01; "
    words = shlex.join([sys.executable, "-P", "-c", slow + COMMAND, command, "--home", str(sick)])
    line = f"{words} > {tmp_path}/report"

    raw = terminal_screen.last_screen(["bash", "-c", line], environ(), tmp_path)

    assert raw.strip() == ""
    assert "ENV-BOM" in (tmp_path / "report").read_text()


# -- completion, demo, imports ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_script(name: str) -> None:
    """A script for each shell can be printed."""
    done = shell(f"hermes-doctor --show-completion {name}", SHELL=f"/bin/{name}")

    assert done.returncode == 0
    assert "_HERMES_DOCTOR_COMPLETE" in done.stdout
    if name == "bash":
        checked = subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=False)
        assert checked.returncode == 0


@pytest.mark.parametrize(
    ("line", "word", "wanted"),
    [
        (
            "hermes-doctor ",
            1,
            {
                "ask",
                "check",
                "config",
                "fix",
                "undo",
                "timeline",
                "history",
                "hook",
                "rollback",
                "update-guard",
                "switch-provider",
                "backup",
                "watch",
                "explain",
                "learn",
                "mute",
                "mutes",
                "probe",
                "list",
                "settings",
                "demo",
                "unmute",
            },
        ),
        (
            "hermes-doctor backup ",
            2,
            {"create", "export", "list", "prune", "pull", "push", "restore", "schedule", "verify"},
        ),
        ("hermes-doctor backup pr", 2, {"prune"}),
        ("hermes-doctor fix CFG-Y", 2, {"CFG-YAML"}),
        ("hermes-doctor explain DB-NOT", 2, {"DB-NOTADB"}),
        ("hermes-doctor check --fail", 2, {"--fail-on"}),
    ],
)
def test_completion(line: str, word: int, wanted: set[str]) -> None:
    """Commands, codes and options are completed."""
    done = shell(
        "hermes-doctor",
        _HERMES_DOCTOR_COMPLETE="complete_bash",
        COMP_WORDS=line,
        COMP_CWORD=str(word),
    )

    assert set(done.stdout.split()) == wanted


def test_undo_completes_runs(home: Path) -> None:
    """The newest first, and none that is undone already; nothing without a home."""
    ids = []
    for content in (b"\xef\xbb\xbfA=1\n", b"\xef\xbb\xbfA=2\n"):
        (home / ".env").write_bytes(content)
        done = support.doctor("fix", "ENV-BOM", "--apply", "--yes", "--json", "--home", home)
        ids += [run["run"] for run in done.json["repair"]["runs"]]

    def offered(place: Path) -> list[str]:
        words = {"COMP_WORDS": f"hermes-doctor undo --home {place} ", "COMP_CWORD": "4"}
        said = shell("hermes-doctor", _HERMES_DOCTOR_COMPLETE="complete_bash", **words)
        assert said.stderr == ""
        return said.stdout.split()

    assert offered(home) == ids[::-1]
    support.doctor("undo", ids[1], "--yes", "--home", home)
    assert ids[1] not in offered(home)
    assert offered(home / "nothing") == []


def test_pick_asks_before_each_repair(home: Path) -> None:
    """Safe ones, too. Only what was agreed to is repaired; the code says that one is left."""
    support.put(home / ".env", b"\xef\xbb\xbf" + support.ENV.encode())
    (home / "auth.json").chmod(0o644)
    home.chmod(0o755)

    code, said = terminal("fix", "--apply", "--pick", "--home", home, answer="n\ny\n")

    assert said.count("You can undo it. [y/N]") == 2
    assert (home / ".env").read_bytes().startswith(b"\xef\xbb\xbf")
    assert (home / "auth.json").stat().st_mode & 0o777 == 0o600
    assert "Repaired 1 of 2. 1 skipped, because you answered no." in " ".join(plain(said).split())
    assert "ENV-BOM" in plain(said).partition("You answered no.")[0].splitlines()[-1]
    assert code == 1


@pytest.mark.parametrize("more", [[], ["--apply"], ["--apply", "--yes"], ["--apply", "--json"]])
def test_pick_needs_somebody_to_ask(home: Path, more: list[str]) -> None:
    """It is refused without --apply, with an answer for all, and without a terminal."""
    done = support.doctor("fix", "--pick", *more, "--home", home)

    assert done.code == 2
    assert "--pick asks" in (done.out + done.err)


def test_demo(tmp_path: Path) -> None:
    """The demo tells the whole story, exits 0, and leaves nothing behind."""
    done = shell("hermes-doctor demo", TMPDIR=str(tmp_path))

    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []
    assert "✗" not in done.stdout.partition("7. What happened")[2]
    assert "not-a-real" not in done.stdout


def test_demo_keep(tmp_path: Path) -> None:
    """With --keep the sick home stays, and the printed command works on it, also with spaces."""
    place = tmp_path / "my temp"
    place.mkdir()

    done = support.doctor("demo", "--keep", env={"TMPDIR": str(place)})

    assert done.code == 0
    [folder] = place.iterdir()
    assert (folder / "home" / "config.yaml").exists()
    [hint] = re.findall(r"Try it yourself: (hermes-doctor check .*)", done.out)
    done = pasted(f"{hint} --json")
    assert done.code == 1
    assert len(done.json["findings"]) >= 5


SLOW = {"rich", "sqlite_utils", "psutil", "importlib.metadata", "zipfile", "dotenv"}
PARSER = {"typer", "inspect", "subprocess", "platform", "gettext", "difflib"}
"""typer, and some of what it loads itself."""
COMPILING = {"dataclasses", "ast", "tokenize"}
"""What makes classes out of text, and what only that needs."""


def imported(*args: str, patch: str = "") -> set[str]:
    """The modules that a command loads, when no process is a gateway."""
    code = (
        "import atexit, os, sys\n"
        "sys.argv[0] = 'hermes-doctor'\n"
        "real = os._exit\n"
        "def leave(code):\n"
        "    sys.stdout.flush()\n"
        "    print(*sys.modules, file=sys.stderr, flush=True)\n"
        "    real(code)\n"
        "os._exit = leave\n"
        f"{patch}\n"
        "from hermes_doctor.cli import time_guard\n"
        "from hermes_doctor.cli.main import main\n"
        "time_guard.is_needed = lambda words: False\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *args], env=environ(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def not_loaded(loaded: set[str], *names: str) -> None:
    """These modules exist under these names, and are not among those that were loaded."""
    assert [name for name in names if importlib.util.find_spec(name) is None] == []
    assert loaded & set(names) == set()


def test_modules_of_check(home: Path) -> None:
    """`check` on a healthy home loads nothing slow that it does not need."""
    quiet = "import hermes_doctor.hermes.processes.gateway_processes as p; assert p.all_pids; "
    quiet += "p.all_pids = lambda: []"

    for args in (["check", "--home", str(home)], ["check", "--json", "--home", str(home)]):
        loaded = imported(*args, patch=quiet)
        assert "hermes_doctor.diagnosis.examination.report" in loaded
        assert loaded & (SLOW | PARSER | COMPILING) == set()
        not_loaded(
            loaded, "hermes_doctor.repair.transaction.run", "hermes_doctor.backup.vault.vault"
        )
        not_loaded(loaded, "asyncio", "ssl")


def test_modules_of_check_beside_a_gateway(home: Path, tmp_path: Path) -> None:
    """Nor does it beside a gateway that runs: what the kernel says is read without psutil."""
    program = support.put(
        tmp_path / "bin" / "hermes", "import time\nprint(flush=True)\ntime.sleep(600)\n"
    )
    gateway = subprocess.Popen(
        [sys.executable, str(program), "gateway", "run"],
        env=environ() | {"HERMES_HOME": str(home)},
        stdout=subprocess.PIPE,
    )
    try:
        assert gateway.stdout is not None
        gateway.stdout.readline()
        loaded = imported("check", "--fail-on", "critical", "--home", str(home))
    finally:
        gateway.kill()
        gateway.communicate()

    assert "hermes_doctor.diagnosis.probes.pulse" in loaded, "it was found"
    assert loaded & ((SLOW | {"typer"}) - {"psutil"}) == set(), "planning its repair takes psutil"


def loaded_after(code: str) -> set[str]:
    """The modules that are loaded in a new process after some code."""
    code = (
        f"import sys; from hermes_doctor.diagnosis.plugins import load\n{code}\nprint(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environ(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


IMPORTING = """
from hermes_doctor.diagnosis.plugins import index
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.mount import import_plugin
[kind] = [one for one, name in index.FOLDERS.items() if name == "{folder}"]
for path in sorted(builtin("{folder}").glob("[!_]*.py")):
    if any(not getattr(one, "needs", "") for one in index.read(kind)[1][path.name]):
        import_plugin(f"hermes_doctor.{folder}.{{path.stem}}", patient=True)
"""
"""Imports the files of a folder, without the checks that need something."""


def importing(folder: str) -> str:
    """The code that loads the plugins and then imports the files of a folder."""
    return f"load.load().fixes\n{IMPORTING}".format(folder=folder)


def test_the_checks_import_only_what_they_use(home: Path) -> None:
    """No check imports at its top what the check of a healthy home never uses."""
    quiet = "import hermes_doctor.hermes.processes.gateway_processes as p; assert p.all_pids; "
    quiet += "p.all_pids = lambda: []"

    loaded = loaded_after(importing("checks"))
    used = imported("check", "--home", str(home), patch=quiet)

    assert "hermes_doctor.checks.env_lines" in loaded
    assert "hermes_doctor.fixes" not in used, "a healthy home needs no fix"
    assert loaded - used - {"json", "hermes_doctor.fixes"} == set()


def test_naming_the_fixes_imports_none() -> None:
    """A report names the fixes on offer."""
    loaded = loaded_after("load.load().fixes")

    assert loaded - loaded_after("load.load()") == {"hermes_doctor.fixes"}


@pytest.mark.parametrize("words", ["--help", "-h", "--version", "explain CFG-YAML"])
def test_modules_of_short_commands(words: str) -> None:
    """They load neither the parser of options nor checks nor probes."""
    loaded = imported(*words.split())

    assert loaded & (SLOW | PARSER | COMPILING) == set()
    plugins = ("hermes_doctor.checks.", "hermes_doctor.fixes.", "hermes_doctor.api")
    assert not {name for name in loaded if name.startswith((*plugins, "yaml", "sqlite3"))}


def test_modules_of_one_round(home: Path) -> None:
    """`watch --once` loads what `check` does, and what writes the history; nothing that repairs."""
    state = f"import os; os.environ['XDG_STATE_HOME'] = {str(home.parent / 'state')!r}"

    loaded = imported("watch", "--once", "--home", str(home), patch=state)

    assert "hermes_doctor.operations.watch.rounds" in loaded
    listing = "import sys, sqlite_utils.migrations; print(*sys.modules)"
    of_history = subprocess.check_output([sys.executable, "-c", listing], text=True).split()
    assert "sqlite_utils" in loaded
    assert loaded & ((SLOW | PARSER | COMPILING) - {"psutil", *of_history}) == set()
    not_loaded(loaded, "hermes_doctor.repair.transaction.run", "hermes_doctor.backup.vault.save")


IMPATIENT = "from hermes_doctor.cli import progress_bars; progress_bars.LARGE = 0; " + COMMAND
"""The command, to which nothing is too small for a bar."""


def test_a_long_repair_shows_how_far_it_is(home: Path) -> None:
    """On a terminal each part of the work is named; in a pipe and beside JSON nothing is."""
    path = damage.history(home / "state.db")
    damage.rows_zeroed(path)
    sick = support.contents(home)

    code, text = terminal(
        "fix", "DB-MALFORMED", "--apply", "--yes", "--home", home, command=IMPATIENT
    )

    assert code == 0, text
    for part in ("backing up", "saving its rows", "letting SQLite check every page"):
        assert part in plain(text)
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick
    done = support.doctor("fix", "DB-MALFORMED", "--apply", "--yes", "--home", home)
    assert (done.code, done.err) == (0, "")
    assert "letting SQLite" not in done.out


def test_work_of_another_process_is_heard_too(home: Path) -> None:
    """Where root works with the rights of the owner, what the child tells comes through."""
    from hermes_doctor.core.system import progress, workers

    told: list[tuple[str, float | None]] = []

    def act(path: Path) -> str:
        progress.report("half of it", 0.5)
        progress.report("the rest")
        return path.name

    with (
        progress.send_to(lambda what, share: told.append((what, share))),
        workers.start_worker(
            home, lambda say: workers.run_with_progress(say, home / "state.db", act)
        ) as other,
    ):
        assert workers.wait_for_result(other) == "state.db"

    assert told == [("half of it", 0.5), ("the rest", None)]


def test_only_the_called_command_is_built() -> None:
    """Alone, each command has the same options as among all others."""
    every = typer.main.get_command(app)
    assert isinstance(every, typer.core.TyperGroup)

    for name, one in every.commands.items():
        among = copy.deepcopy(app)
        build_only([name], among)
        alone = typer.main.get_command(among)
        assert isinstance(alone, typer.core.TyperGroup)
        assert [*alone.commands] == [name]
        assert _options(alone.commands[name]) == _options(one), name


def test_an_unknown_command_is_among_all() -> None:
    """All commands are built, so that a similar one can be suggested."""
    among = copy.deepcopy(app)

    build_only(["chek"], among)

    assert len(among.registered_commands) == len(app.registered_commands) > 1


def _options(command: Any) -> list[tuple[list[str], object]]:
    return [(one.opts, one.default) for one in command.params]


def test_check_and_fix_use_the_same_numbers(tmp_path: Path) -> None:
    """Also behind a problem without a repair."""
    home = tmp_path / ".hermes"
    demo_home.make(home)
    token = (home / ".env").read_bytes().replace(b"1234567890:AA", b"AA")
    (home / ".env").write_bytes(token)
    checked = support.doctor("check", "--home", home).out
    planned = support.doctor("fix", "--home", home).out

    shown = dict(re.findall(r"^(\d+) [✗!] .*  ([A-Z-]+)$", checked, re.M))
    repaired = re.findall(r"^(\d+) +([A-Z-]+) ", planned, re.M)
    assert all(shown[number] == code for number, code in repaired)
    numbers = [int(number) for number, _ in repaired]
    assert numbers[:4] == [1, 2, 4, 6], "3 is the token, 5 the gateway"
    assert f"{len(set(numbers))} of {len(shown)} problems, " in planned
    assert "show repairs of 1-2, 4, 6" in checked


def test_homes_do_not_pile_up(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --all-homes, what was read of one home is forgotten before the next one is examined."""
    for name in ("one", "two"):
        support.healthy(home / "profiles" / name)
    earlier: list[weakref.ref[Probes]] = []
    kept: list[int] = []
    report = reports.report

    def count(probes: Probes, *args: Any, **options: Any) -> Any:
        kept.append(sum(one() is not None for one in earlier))
        earlier.append(weakref.ref(probes))
        return report(probes, *args, **options)

    monkeypatch.setattr(reports, "report", count)
    gc.disable()
    try:
        check_run.run(home, all_homes=True, json=True)
    finally:
        gc.enable()

    assert len(kept) >= 3
    assert not any(kept[1:])
