"""A real systemd user manager and a real journald, in namespaces of their own.

The machine that runs the tests need not have been booted with systemd, and nothing on it is
touched: /run, the folders of system units and the marks of lingering users are private, and
every process inside ends with the context. Tests stay outside and send commands in.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.helpers import requirements
from tests.helpers.real.gateways import until
from tests.helpers.support import Done

TOOLS = ("unshare", "nsenter", "setpriv", "systemctl", "systemd-cat", "dbus-daemon")
MANAGER = Path("/lib/systemd/systemd")
JOURNALD = Path("/lib/systemd/systemd-journald")
CGROUPS = Path("/sys/fs/cgroup")

INSIDE = """
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
for folder in /etc/systemd/system /var/lib/systemd; do
  if [ -d $folder ]; then mount -t tmpfs tmpfs $folder; fi
done
mkdir -p /run/systemd/system /run/systemd/journal /run/log/journal /run/lock
grep -v "^[^:]*:[^:]*:$OWNER:" /etc/passwd >/run/passwd
echo "$NAME:x:$OWNER:$OWNER::$HOME:/bin/sh" >>/run/passwd
mount --bind /run/passwd /etc/passwd
if [ $HOME != $PLACE ]; then mkdir -p $HOME; mount --bind $PLACE $HOME; fi
mkdir -p -m 700 $XDG_RUNTIME_DIR
chown $OWNER $XDG_RUNTIME_DIR
/lib/systemd/systemd-journald >$LOGS/journald.log 2>&1 &
as="setpriv --reuid $OWNER --regid $OWNER --clear-groups"
$as dbus-daemon --session --address=$DBUS_SESSION_BUS_ADDRESS --fork --nopidfile
$as /lib/systemd/systemd --user >$LOGS/manager.log 2>&1 &
while :; do sleep 3600 & wait $!; done
"""
"""What the first process in there does: it stays, since the others live only as long as it."""


@dataclass(frozen=True)
class Machine:
    """What looks like a machine with a systemd of its own."""

    pid: int
    """Its first process, as the tests see it."""
    user: Path
    """The folder of the user whose manager it is: HOME."""
    uid: int = 0
    place: Path | None = None
    """Where the tests find that folder, if it has another name in there."""

    @property
    def units(self) -> Path:
        """Where that user's units lie, as the tests see it."""
        return (self.place or self.user) / ".config" / "systemd" / "user"

    @property
    def root(self) -> Path:
        """Its root folder, through which tests can reach its /run and /etc/systemd/system."""
        return Path(f"/proc/{self.pid}/root")

    @property
    def environment(self) -> dict[str, str]:
        """What a login of that user has, and nothing of this machine's own settings."""
        runtime = f"/run/user/{self.uid}"
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.user),
            "XDG_RUNTIME_DIR": runtime,
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={runtime}/bus",
        }

    def command(self, *command: str | Path, uid: int | None = None) -> list[str]:
        """The command line that runs a command in there."""
        enter = ["nsenter", "--target", str(self.pid), "--mount", "--pid", "--"]
        user = self.uid if uid is None else uid
        become = [f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        bound = ["setpriv", *become, "--pdeathsig", "TERM"]  # it ends with the command line
        return [*enter, *bound, *map(str, command)]

    def run(
        self,
        *command: str | Path,
        env: dict[str, str] | None = None,
        uid: int | None = None,
        timeout: float = 60,
    ) -> Done:
        """Run a command in there to its end, as that user unless another is named."""
        done = subprocess.run(
            self.command(*command, uid=uid),
            env=self.environment | (env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def systemctl(self, *words: str) -> str:
        """`systemctl --user …`, which must succeed; what it printed."""
        done = self.run("systemctl", "--user", *words)
        assert done.code == 0, f"systemctl {' '.join(words)}: {done.err}"
        return done.out.strip()

    def show(self, unit: str, name: str) -> str:
        """One property of a unit."""
        return self.systemctl("show", unit, f"--property={name}", "--value")

    def main_pid(self, unit: str) -> int:
        """The main process of a unit as it is numbered in there; 0 when it has none."""
        return int(self.show(unit, "MainPID"))

    def install(self, name: str, text: str, **drop_ins: str) -> Path:
        """Write a unit and its drop-ins, and let the manager read them."""
        self.units.mkdir(parents=True, exist_ok=True)
        path = self.units / name
        path.write_text(text)
        for part, words in drop_ins.items():
            folder = self.units / f"{name}.d"
            folder.mkdir(exist_ok=True)
            (folder / f"{part}.conf").write_text(words)
        self.systemctl("daemon-reload")
        return path

    def wait_for(self, unit: str, **wanted: str) -> None:
        """Wait until a unit has these properties."""
        names = ",".join(wanted)

        def there() -> bool:
            said = self.systemctl("show", unit, f"--property={names}").splitlines()
            return set(said) == {f"{name}={value}" for name, value in wanted.items()}

        until(there, f"{unit} to have {wanted}")

    def linger(self, on: bool) -> None:
        """Let the user's services outlive the login, or not."""
        name = "alice" if self.uid else "root"
        mark = self.root / "var/lib/systemd/linger" / name
        mark.parent.mkdir(parents=True, exist_ok=True)
        if on:
            mark.touch()
        else:
            mark.unlink(missing_ok=True)

    def doctor(self, *args: str | Path, env: dict[str, str] | None = None, uid: int = 0) -> Done:
        """Run the doctor in there, as root unless another user is named."""
        more = {"NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"} | (env or {})
        return self.run(sys.executable, "-m", "hermes_doctor", *args, env=more, uid=uid)

    def check(self, home: Path, *args: str) -> Done:
        """`check --json` on a home, in there."""
        return self.doctor("check", "--json", "--home", home, *args)


def need_systemd() -> None:
    """Skip where no private systemd can be had; in CI that is a failure."""
    why = _hindrance()
    if why is not None:
        requirements.missing(f"no systemd of its own: {why}")


def _hindrance() -> str | None:
    if sys.platform != "linux":
        return "this is not Linux"
    if os.geteuid() != 0:
        return "only root can make namespaces"
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    missing += [str(file) for file in (MANAGER, JOURNALD) if not file.exists()]
    return f"{', '.join(missing)} not installed" if missing else None


@contextmanager
def systemd(user: Path, uid: int = 0, inside: Path | None = None) -> Iterator[Machine]:
    """Such a machine with `user` as the user's folder, from up until ended.

    `inside` is the name of that folder in there, below /run: Hermes' own installer refuses a home
    in a temporary folder.
    """
    need_systemd()
    user.mkdir(parents=True, exist_ok=True)
    os.chown(user, uid, uid)
    logs = user.parent / f"{user.name}-systemd"
    logs.mkdir(exist_ok=True)
    with _control_groups(uid) as join:
        process = subprocess.Popen(
            [
                *("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "--"),
                *("sh", "-c", INSIDE),
            ],
            env=Machine(0, inside or user, uid).environment
            | {
                "OWNER": str(uid),
                "NAME": "alice" if uid else "root",
                "LOGS": str(logs),
                "PLACE": str(user),
            },
            cwd="/",
            stdin=subprocess.DEVNULL,
            preexec_fn=join,
        )
        try:
            machine = Machine(_first(process), inside or user, uid, user)
            until(lambda: _is_up(process, machine), "journald and the user manager")
            yield machine
        finally:
            process.kill()  # the kernel ends everything inside with it
            process.wait()


def _first(process: subprocess.Popen[bytes]) -> int:
    """The process that is number 1 inside."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    until(lambda: bool(children.read_text().split()), "the namespaces")
    return int(children.read_text().split()[0])


def _is_up(process: subprocess.Popen[bytes], machine: Machine) -> bool:
    assert process.poll() is None, f"the namespaces ended with {process.returncode}"
    done = machine.run("systemctl", "--user", "is-system-running")
    if done.out.strip() not in ("running", "degraded"):
        return False
    # Before journald listens, the manager would send the output of a unit to /dev/null.
    return machine.run("systemd-cat", "true").code == 0


@contextmanager
def _control_groups(uid: int) -> Iterator[Callable[[], None]]:
    """A control group of its own, named as a login's, so that no two managers share one."""
    name = f"hermes-doctor-{os.getpid()}-{time.monotonic_ns()}"
    manager = Path(name, "user.slice", f"user-{uid}.slice", f"user@{uid}.service")
    tops = [folder for folder in [CGROUPS, *_folders(CGROUPS)] if _is_hierarchy(folder)]
    made = []
    for top in tops:
        with contextlib.suppress(OSError):  # one that only the kernel may fill
            (top / manager).mkdir(parents=True)
            _prepare(top, manager)
            for path in [top / manager, *(top / manager).iterdir()]:
                os.chown(path, uid, uid)
            made.append(top / manager / "cgroup.procs")

    def join() -> None:
        for file in made:
            with contextlib.suppress(OSError):
                file.write_text("0")

    try:
        yield join
    finally:
        for top in tops:
            _clear(top / name)


def _is_hierarchy(folder: Path) -> bool:
    return (folder / "cgroup.procs").exists()


def _prepare(top: Path, manager: Path) -> None:
    """A group of processors has none at first, and takes no process before it has."""
    if not (top / "cpuset.cpus").exists():
        return
    for depth in range(1, len(manager.parts) + 1):
        for file in ("cpuset.cpus", "cpuset.mems"):
            place = top.joinpath(*manager.parts[:depth])
            (place / file).write_text((place.parent / file).read_text())


def _clear(folder: Path) -> None:
    """Remove an empty control group with those below it; its processes may take a moment to go."""
    for _ in range(100):
        for path, _folders_in, _files in os.walk(folder, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(path)
        if not folder.exists():
            return
        time.sleep(0.02)


def _folders(folder: Path) -> Sequence[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    except OSError:
        return []
