"""The launcher: updates go to the guard, everything else as if it were not there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from hermes_doctor.core.model import Trouble
from hermes_doctor.operations.updates import launcher
from tests.helpers import support

REAL = """#!/bin/sh
echo "real:$0:$#"
for word in "$@"; do echo "<$word>"; done
exit ${CODE:-0}
"""
GUARD = """#!/bin/sh
echo "guard"
[ "$1 $2 $3 $4" = "-E -P -m hermes_doctor" ] && shift 4
for word in "$@"; do echo "<$word>"; done
exit 7
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A launcher with a real hermes behind it and a guard that only says what it was asked."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    support.put(tmp_path / "real" / "hermes", REAL, mode=0o755)
    support.put(tmp_path / "tool" / "python", GUARD, mode=0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / "tool" / "python"))
    assert launcher.install()
    return tmp_path


def path(place: Path, *more: str) -> str:
    return ":".join([str(launcher.folder()), *more, str(place / "real"), "/usr/bin", "/bin"])


def run(place: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": path(place), **env}
    return subprocess.run(["hermes", *words], env=environ, capture_output=True, text=True)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("gateway", "status"),
        ("chat", "-q", "please update yourself"),
        ("config", "set", "a", "update"),
        ("-p", "update", "status"),
        ("--profile", "update"),
        ("-m", "update", "chat"),
        ("-z", "update"),
        ("-c", "update"),
        ("value", "update"),
        ("update", "--check"),
        ("update", "--help"),
        ("one two", "*", "$HOME", "'", '"', ""),
    ],
)
def test_everything_else_is_handed_on_as_it_is(place: Path, words: tuple[str, ...]) -> None:
    """Arguments, exit code and the name of the real one."""
    done = run(place, *words, CODE="42")
    assert done.returncode == 42
    assert done.stdout.splitlines() == [
        f"real:{place / 'real' / 'hermes'}:{len(words)}",
        *(f"<{word}>" for word in words),
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("update",),
        ("update", "--yes"),
        ("-p", "work", "update"),
        ("--profile=x", "update"),
        ("-m", "a-model", "--provider", "x", "-w", "update"),
        ("-c", "a", "long", "name", "update"),
        ("-c", "-w", "update"),
    ],
)
def test_an_update_goes_to_the_guard(place: Path, words: tuple[str, ...]) -> None:
    """With the whole command line, and the guard's exit code."""
    done = run(place, *words)
    assert done.returncode == 7
    real = str(place / "real" / "hermes")
    wanted = ["update-guard", "--", real, *words]
    assert done.stdout.splitlines() == ["guard", *(f"<{word}>" for word in wanted)]


def test_an_update_under_the_guard_is_the_guards_to_tell(place: Path) -> None:
    """A variable that was left over must not take the backup away."""
    assert run(place, "update", HERMES_DOCTOR_UPDATE="x").stdout.startswith("guard")


def test_it_never_runs_itself(place: Path) -> None:
    """By another name of its folder, by a link, and as the launcher of somebody else."""
    folder = launcher.folder()
    (place / "other").symlink_to(folder)
    (place / "links").mkdir()
    (place / "links" / "hermes").symlink_to(folder / "hermes")
    support.put(
        place / "copy" / "hermes", launcher.script().replace("here=", "here=/x"), mode=0o755
    )
    names = [f"{folder}/../bin", *(str(place / name) for name in ("other", "links", "copy"))]
    for first in names:
        environ = {"PATH": ":".join([first, *names, path(place)])}
        done = subprocess.run(
            ["hermes", "status"], env=environ, capture_output=True, text=True, timeout=60
        )
        assert done.stdout.startswith(f"real:{place / 'real' / 'hermes'}"), first
        environ = {"PATH": ":".join([first, *names, "/usr/bin", "/bin"])}
        done = subprocess.run(
            ["hermes", "status"], env=environ, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 127, first


def test_without_the_tool_an_update_still_works_and_says_so(place: Path) -> None:
    """A removed virtual environment must not lock anybody out of updates."""
    (place / "tool" / "python").unlink()
    done = run(place, "update")
    assert done.stdout.startswith("real:")
    assert "no backup" in done.stderr


def test_without_a_real_one_it_says_so(place: Path) -> None:
    """As a shell would, with 127."""
    (place / "real" / "hermes").unlink()
    done = run(place, "status")
    assert done.returncode == 127
    assert "not found" in done.stderr


def test_signals_reach_the_real_one(place: Path) -> None:
    """It is the same process by then."""
    support.put(place / "real" / "hermes", "#!/bin/sh\necho up\nexec sleep 60\n", mode=0o755)
    with subprocess.Popen(
        ["hermes"], env={"PATH": path(place)}, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=30) == -signal.SIGTERM


def test_it_is_found_first_or_not(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the order of PATH alone."""
    assert launcher.is_installed()
    assert launcher.is_first_on_path(path(place))
    assert not launcher.is_first_on_path(f"{place / 'real'}:{path(place)}")
    assert not launcher.is_first_on_path("/nowhere")


def test_installing_twice_is_once_and_removing_leaves_nothing(place: Path) -> None:
    """Not even the folders."""
    assert not launcher.install()
    assert launcher.remove()
    assert not launcher.remove()
    assert not (place / "data").exists()
    (place / "data").mkdir()
    assert launcher.install()
    assert launcher.remove()
    assert list((place / "data").iterdir()) == []


def test_a_tool_that_nobody_could_call_is_not_named(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written then; and what another installation wrote is told from none."""
    before = (launcher.folder() / "hermes").read_bytes()
    monkeypatch.setattr("sys.executable", str(place / "gone" / "python"))
    assert launcher.is_from_other_version()
    with pytest.raises(Trouble, match="could not find it later"):
        launcher.install()
    assert (launcher.folder() / "hermes").read_bytes() == before


def test_odd_letters_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quote, a space and a dollar in the path of the folder."""
    odd = tmp_path / "it's $HOME x"
    monkeypatch.setenv("XDG_DATA_HOME", str(odd))
    support.put(tmp_path / "real" / "hermes", REAL, mode=0o755)
    launcher.install()
    environ = {"PATH": f"{launcher.folder()}:{tmp_path / 'real'}:{os.defpath}"}
    done = subprocess.run(["hermes", "x"], env=environ, capture_output=True, text=True)
    assert done.stdout.startswith("real:")


def test_the_tool_is_called_from_elsewhere_before_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interpreter that found it only by a variable of this shell will not find it later."""
    launcher.prove()
    support.put(tmp_path / "python", "#!/bin/sh\nexit 1\n", mode=0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(Trouble, match="from another folder"):
        launcher.prove()


@pytest.mark.parametrize("words", [("update", "--gateway"), ("-p", "work", "update", "--gateway")])
def test_an_update_of_a_chat(place: Path, words: tuple[str, ...]) -> None:
    """The guard is told where it is from: nobody sits before it, and another may look after."""
    done = run(place, *words)
    asked = ["update-guard", "--from-chat", "--", str(place / "real" / "hermes"), *words]
    assert done.returncode == 7
    assert done.stdout.splitlines() == ["guard", *(f"<{word}>" for word in asked)]


@pytest.mark.parametrize(
    ("words", "named", "meant"),
    [
        (("update",), "", True),
        (("update",), "/another", False),
        (("update", "--gateway"), "", True),
        (("update", "--gateway"), "/another", True),
    ],
)
def test_the_home_of_a_launcher_inside_a_gateway(
    place: Path, words: tuple[str, ...], named: str, meant: bool
) -> None:
    """The gateway's own, also where HOME is another for what the agent types into its terminal;
    but whoever names one himself, means that."""
    inside, home = place / "hook", place / "it's a home"
    support.put(inside / "hermes", launcher.script(here=inside, home=home), mode=0o755)
    environ = {"PATH": f"{inside}:{path(place)}", "HERMES_HOME": named}
    done = subprocess.run(["hermes", *words], env=environ, capture_output=True, text=True)
    said = done.stdout.splitlines()
    assert said[:2] == ["guard", "<update-guard>"]
    assert (said[-len(words) - 4 : -len(words) - 2] == ["<--home>", f"<{home}>"]) is meant
    assert ("<--home>" in said) is meant


@pytest.mark.parametrize(
    ("words", "hidden"),
    [(("profile", "create", "work"), True), (("-p", "a", "import", "b"), True), (("chat",), False)],
)
def test_what_writes_its_own_place_down(place: Path, words: tuple[str, ...], hidden: bool) -> None:
    """An alias of a profile holds the first hermes on PATH: it must outlive the launcher."""
    support.put(place / "real" / "hermes", '#!/bin/sh\necho "$PATH"\n', mode=0o755)
    done = run(place, *words)

    folders = path(place).split(":")
    assert done.stdout.strip().split(":") == (folders[1:] if hidden else folders)


@pytest.mark.parametrize("linked", [False, True])
def test_what_others_wrote_in_its_place(place: Path, linked: bool) -> None:
    """A real hermes, or a link to one, is neither replaced nor removed."""
    file = launcher.folder() / "hermes"
    file.unlink()
    if linked:
        file.symlink_to(place / "real" / "hermes")
    else:
        support.put(file, REAL, mode=0o755)
    with pytest.raises(Trouble, match="not written by hermes-doctor"):
        launcher.install()
    assert not launcher.remove()
    assert file.read_text() == REAL
    assert file.is_symlink() is linked


def test_the_environment_arrives_as_it_was(place: Path) -> None:
    """Also what has the name of something in the launcher; `_` is every shell's own."""
    support.put(place / "real" / "hermes", "#!/usr/bin/env -S cat /proc/self/environ\n", mode=0o755)
    words = re.findall(r"[a-z_]+", launcher.script())
    env = {**{word: f"mine {word}" for word in words if word != "_"}, "PWD": "/"}
    environ = {**env, "PATH": path(place)}
    done = subprocess.run(["hermes", "x"], env=environ, capture_output=True, text=True, cwd="/")
    found = dict(pair.split("=", 1) for pair in done.stdout.split("\0") if "=" in pair)
    mine = {name for name in environ if name.startswith("hd_")}
    assert {name: found.get(name) for name in environ.keys() - mine} == {
        name: value for name, value in environ.items() if name not in mine
    }


def test_a_folder_whose_name_is_a_pattern(place: Path) -> None:
    """The shell must not look for others that fit."""
    for name in ("[ab]", "a"):
        support.put(place / "x" / name / "hermes", REAL, mode=0o755)
    environ = {"PATH": f"{launcher.folder()}:{place / 'x' / '[ab]'}:/usr/bin:/bin"}
    done = subprocess.run(["hermes"], env=environ, capture_output=True, text=True)
    assert done.stdout.startswith(f"real:{place / 'x' / '[ab]' / 'hermes'}:")


def test_modules_of_somebody_else(tmp_path: Path) -> None:
    """A PYTHONPATH is for the command, which gets it; it must not give us another's modules."""
    home = support.healthy(tmp_path / "home")
    support.put(tmp_path / "modules" / "typer.py", "raise SystemExit('not this one')\n")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HERMES_DOCTOR_SETTLE": "0"}
    environ |= {"PYTHONPATH": str(tmp_path / "modules"), "HERMES_HOME": str(home)}
    done = subprocess.run(
        [*launcher.command_words(), "update-guard", "--", "sh", "-c", 'echo "$PYTHONPATH"'],
        env=environ,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'modules'}\n"), done.stderr
