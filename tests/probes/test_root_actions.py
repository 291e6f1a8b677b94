"""What root does for a process that looks at another user's home, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.model import CouldNotLook
from hermes_doctor.probes import root_actions
from tests.helpers import support
from tests.helpers.real.gateways import end

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has something to do")

REFUSED = (
    ("sh", "-c", "true"),
    ("journalctl",),
    ("journalctl", "--rotate"),
    ("journalctl", "--rot"),
    ("journalctl", "--unit=hermes", "--vacuum-size=1"),
    ("journalctl", "--file=/etc/shadow"),
    ("docker",),
    ("docker", "run", "x"),
    ("docker", "exec", "x", "sh"),
    ("docker", "--host=tcp://x", "ps"),
    ("docker", "cp", "0a1:/etc/shadow", "-"),
    ("docker", "cp", "0a1:/etc/passwd", "/etc/passwd"),
    ("podman", "rm", "x"),
    ("/command/s6-svstat", "/run/service/gateway-x/../../../root"),
    ("/command/s6-svc", "-d", "/run/service/gateway-default"),
)


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_other_commands_are_refused(home: Path, words: tuple[str, ...]) -> None:
    """A program, a command or an option that is not on the list."""
    with pytest.raises(CouldNotLook, match="root does not run"):
        root_actions.actions(home)["command"]([*words], 1.0, 1000)


@pytest.mark.parametrize(
    "words",
    [
        ("journalctl", "--no-pager", "--output=json", "--since=@1", "--unit=a@b.service"),
        ("journalctl", "_SYSTEMD_USER_UNIT=a.service", "_UID=1", "+", "USER_UNIT=a.service"),
        ("docker", "ps", "--all", "--no-trunc", "--format", "{{.ID}}"),
        ("docker", "logs", "--tail", "40", "0a1"),
        ("docker", "cp", "0a1:/etc/passwd", "-"),
    ],
    ids=" ".join,
)
def test_commands_that_read_are_run(
    home: Path, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With these words and no others."""
    program = support.put(tmp_path / "bin" / words[0], '#!/bin/sh\necho "$*"\n', 0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    code, out, _ = root_actions.actions(home)["command"]([*words], 10.0, 1000)

    assert (code, out) == (0, " ".join(words[1:]) + "\n")


@pytest.fixture
def holder(home: Path, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of root's that has a file of the home and a secret one open."""
    support.put(home / "state.db", "x")
    support.put(tmp_path / "secret", "x")
    program = "import sys; kept = [open(name) for name in sys.argv[1:]]; print(flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(home / "state.db"), str(tmp_path / "secret")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"SECRET": "x"},
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdout.readline()
    try:
        yield process
    finally:
        process.stdin.close()
        process.stdout.close()
        end(process)


def test_a_process_of_root(home: Path, holder: subprocess.Popen[bytes]) -> None:
    """Of one that is no gateway only the files of the home are shown."""
    seen = root_actions.actions(home)["process"](holder.pid)

    st = (home / "state.db").stat()
    assert [one[1:] for one in seen["files"]] == [[str(home / "state.db"), st.st_dev, st.st_ino]]
    assert [*seen["details"]] == [seen["files"][0][0]]
    assert (seen["environ"], seen["cwd"], seen["maps"]) == (None, None, None)


def test_a_process_that_has_ended(home: Path, holder: subprocess.Popen[bytes]) -> None:
    """Nothing is shown of it."""
    end(holder)

    assert root_actions.actions(home)["process"](holder.pid) is None


@pytest.mark.parametrize("commit", ["../../x", "a/b", ""])
def test_no_path_in_what_was_learned(home: Path, commit: str) -> None:
    """Version and commit come from the home; they cannot lead elsewhere."""
    learned = root_actions.actions(home)["learned"]

    assert learned("0.19.0", commit) is None
    assert learned("../../../etc/passwd", None) is None
