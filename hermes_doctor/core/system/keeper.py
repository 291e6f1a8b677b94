"""Run one command that is not trusted: the program that `isolated` starts, with no other module.

The command starts only when all of this is in force:
- no network: a network namespace, else a system call filter. Without either it is not started.
- no writes outside of its own folder: read-only mounts with that folder in memory, else Landlock.
  Only this is left out where the kernel has neither.
- no processes left behind: a process namespace, else its descendants are found and killed.
- no privileges: those of the owner it becomes; none of root's capabilities.
- a limit of memory and of processes for all of them together.

On systems other than Linux, only the last two points are partly kept.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import struct
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

SIGN = "hermes-doctor: "
"""How a line of the error output begins that is not the command's own."""
MEGABYTE = 1024 * 1024
NEW_NAMESPACES = 0x20000000 | 0x40000000 | 0x08000000
"""A process, a network and an IPC namespace."""
NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000
_PAUSE = 0.05
_LINUX = sys.platform == "linux"
_CALLS = {
    "x86_64": (0xC000003E, 41, (319, 29)),
    "aarch64": (0xC00000B7, 198, (279, 194)),
    "riscv64": (0xC00000F3, 198, (279, 194)),
}
"""The number of each architecture in system call filters, of its call `socket`, and of the calls
`memfd_create` and `shmget`, whose memory belongs to no process."""
_EVERYWHERE = (425, 447)
"""`io_uring_setup`, which opens sockets past the filter, and `memfd_secret`."""
_READ_ONLY, _RECURSIVE = 1, 0x8000


class Refused(Exception):
    """Says why the command was not started."""


def main() -> None:
    """Run the command that the first argument describes, and exit as it does."""
    given: dict[str, Any] = json.loads(sys.argv[1])
    signal.signal(signal.SIGTERM, _stop)
    _control(1, signal.SIGTERM)  # when the process ends that started this one
    if os.getppid() != given["parent"]:
        os._exit(1)
    _control(36, 1)  # orphaned descendants become children of this process
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    try:
        inside = _enter_namespaces() if given["namespaces"] else False
        child = os.fork()
        if child == 0:
            _become_the_command(given, inside)
        _groups.append(child)
        code = _watch(child, given["memory"] * MEGABYTE, given["processes"])
    finally:
        _kill_all()
    os._exit(code)


def _stop(*_: int | FrameType | None) -> None:
    _kill_all()
    os._exit(143)


# -- before the command starts ---------------------------------------------------------------------


def _become_the_command(given: dict[str, Any], inside: bool) -> None:
    """Give up everything and run the command; never returns."""
    try:
        parent = os.getppid()
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        mounted = inside and _mount(given)
        _drop_privileges(given["user"])
        for kind, most in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, given["file"] * MEGABYTE),
            (resource.RLIMIT_DATA, given["memory"] * MEGABYTE),
        ):
            _, hard = resource.getrlimit(kind)
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            with contextlib.suppress(*(() if _LINUX else (OSError, ValueError))):
                resource.setrlimit(kind, (most, most))
        _control(38, 1)  # no set-uid program gives new privileges
        if _LINUX and not mounted:
            _forbid_writing(given["writable"])
        if _LINUX:
            _forbid_calls(sockets=not inside)
        os.chdir(given["cwd"])
        _control(1, signal.SIGKILL)  # the change of user has cleared it
        if os.getppid() != parent:
            os._exit(1)
        os.execve(given["command"][0], given["command"], given["env"])
    except BaseException as error:  # noqa: BLE001 (this process must end here)
        what = getattr(error, "strerror", None) or error
        os.write(2, f"{SIGN}it could not be run ({what})\n".encode())
    finally:
        os._exit(1)


def _enter_namespaces() -> bool:
    """Whether the next child has no network and a process number space of its own."""
    if not _LINUX:
        return False
    user, group = os.geteuid(), os.getegid()
    if _call("unshare", NEW_NAMESPACES):
        return True
    if user == 0 or not _call("unshare", NEW_USER | NEW_NAMESPACES):
        return False
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)
    return True


def _mount(given: dict[str, Any]) -> bool:
    """Make every mount read-only except the command's own folder, which is then in memory."""
    own, others = given["writable"][0], given["writable"][1:]
    if not _call("unshare", NEW_MOUNTS) or not _mounted(None, "/", None, 0x44000, None):
        return False
    if not all(_mounted(place, place, None, 0x1000, None) for place in others):
        return False
    if not _set_attributes("/", _RECURSIVE, _READ_ONLY, 0):
        return False
    if not all(_set_attributes(place, 0, 0, _READ_ONLY) for place in others):
        return False
    user, group = (given["user"] or (os.geteuid(), os.getegid()))[:2]
    options = f"size={given['room']}m,mode=0700,uid={user},gid={group}"
    if not _mounted("tmpfs", own, "tmpfs", 6, options):
        return False
    for name in given["folders"]:
        path = os.path.join(own, name)
        os.mkdir(path, 0o700)
        os.chown(path, user, group)
    _mounted("proc", "/proc", "proc", 15, None)  # refused in many containers, which is harmless
    return True


def _drop_privileges(user: list[Any] | None) -> None:
    if _LINUX:
        _control(47, 4)
        for capability in range(64):
            _control(24, capability)  # also root gets none when the command starts
    if user:
        uid, gid, groups = user
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)


def _forbid_writing(places: list[str]) -> None:
    """Let Landlock refuse what changes files outside of these places, where it exists."""
    version = _number(444, None, 0, 1)
    if version < 1:
        return
    rights = 1 << 1 | sum(1 << bit for bit in range(4, 13))
    rights |= (1 << 13 if version > 1 else 0) | (1 << 14 if version > 2 else 0)
    of_a_file = rights & (1 << 1 | 1 << 14)
    own = 3 if version > 5 else 0  # no signals to other processes and no abstract sockets of theirs
    size = 24 if version > 5 else 8
    rules = _number(444, struct.pack("=QQQ", rights, 0, own), size, 0)
    allowed = True
    for place, kind in [*((place, rights) for place in places), ("/dev/null", of_a_file)]:
        fd = os.open(place, os.O_PATH | os.O_CLOEXEC)
        allowed &= _number(445, rules, 1, struct.pack("=Qi", kind, fd), 0) == 0
    if rules < 0 or not allowed or _number(446, rules, 0) != 0:
        raise Refused("this system did not accept the limits for files")


def _forbid_calls(sockets: bool) -> None:
    """Let the kernel refuse memory that belongs to no process and, if asked, new sockets.

    Sockets between local processes stay possible.
    """
    architecture, socket, missing = _CALLS.get(os.uname().machine, (0, 0, ()))
    if not architecture or sys.maxsize < 2**32:
        if sockets:
            raise Refused("this system offers no way to keep a program from the network")
        return
    load, equal, at_least, end = 0x20, 0x15, 0x35, 0x06
    allow, unreachable, no_such_call = 0x7FFF0000, 0x50000 | 101, 0x50000 | 38
    lines = [
        (load, 0, 0, 4),  # the architecture
        (equal, 1, 0, architecture),
        (end, 0, 0, no_such_call),
        (load, 0, 0, 0),  # the system call
        (at_least, 0, 1, 0x40000000),  # the second numbering of x86-64
        (end, 0, 0, no_such_call),
    ]
    for number in (*_EVERYWHERE, *missing):
        lines += [(equal, 0, 1, number), (end, 0, 0, no_such_call)]
    if sockets:
        lines += [
            (equal, 0, 3, socket),
            (load, 0, 0, 16),  # its first argument: the family
            (equal, 1, 0, 1),  # AF_UNIX
            (end, 0, 0, unreachable),
        ]
    lines.append((end, 0, 0, allow))
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    given = struct.pack("@HxxxxxxP", len(lines), ctypes.addressof(program))
    if not _control(22, 2, given) and sockets:
        raise Refused("this system offers no way to keep a program from the network")


# -- while it runs ---------------------------------------------------------------------------------


def _watch(child: int, memory: int, processes: int) -> int:
    """Wait for the command; end it if it and its descendants use too much."""
    while True:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == child:
                    code = os.waitstatus_to_exitcode(status)
                    return code if code >= 0 else 128 - code
                if pid == 0:
                    break
        tree = [*_descendants()]
        if len(tree) > processes:
            return _too_much(f"it started more than {processes} processes")
        if sum(map(_memory, tree)) > memory and sum(map(_own_memory, tree)) > memory:
            return _too_much(f"it used more than {memory // MEGABYTE} MB of memory")
        time.sleep(_PAUSE)


_groups: list[int] = []
"""The process group of the command, which is all that other systems than Linux know of it."""


def _too_much(what: str) -> int:
    _kill_all()
    os.write(2, f"\n{SIGN}{what}\n".encode())
    return 1


def _descendants() -> Iterator[int]:
    """Yield all processes that come from this one."""
    waiting, seen = [os.getpid()], set()
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as f:
                    for child in map(int, f.read().split()):
                        if child not in seen:
                            seen.add(child)
                            waiting.append(child)
                            yield child


def _memory(pid: int) -> int:
    """Return the bytes that a process keeps in memory; what several share counts for each."""
    return _sum(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:"))


def _own_memory(pid: int) -> int:
    """Return the same with its part of what several share, which takes longer to find out."""
    return _sum(f"/proc/{pid}/smaps_rollup", ("Pss_Anon:", "Pss_Shmem:")) or _memory(pid)


def _sum(path: str, names: tuple[str, ...]) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError), open(path) as file:
        found = [line.split()[1] for line in file if line.startswith(names)]
        return sum(map(int, found)) * 1024
    return 0


def _kill_all() -> None:
    """Kill all descendants, also those that left their group and session, and wait for them."""
    for group in _groups:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    until = time.monotonic() + 5
    while time.monotonic() < until:
        tree = [*_descendants()]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in tree:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


# -- the C library ---------------------------------------------------------------------------------

_C = ctypes.CDLL(None, use_errno=True)


def _control(*words: Any) -> bool:
    if not hasattr(_C, "prctl"):
        return True
    return bool(_C.prctl(*_arguments((*words, 0, 0, 0, 0)[:5])) == 0)


def _call(name: str, *words: Any) -> bool:
    return bool(getattr(_C, name)(*_arguments(words)) == 0)


def _number(*words: Any) -> int:
    return int(_C.syscall(*_arguments(words)))


def _mounted(what: str | None, where: str, kind: str | None, flags: int, data: str | None) -> bool:
    texts = [None if text is None else os.fsencode(text) for text in (what, where, kind, data)]
    return bool(_C.mount(*texts[:3], ctypes.c_ulong(flags), texts[3]) == 0)


def _set_attributes(place: str, how: int, set_: int, clear: int) -> bool:
    attributes = struct.pack("=QQQQ", set_, clear, 0, 0)
    return _number(442, -100, os.fsencode(place), how, attributes, len(attributes)) == 0


def _arguments(words: tuple[Any, ...]) -> list[Any]:
    return [ctypes.c_long(word) if isinstance(word, int) else word for word in words]


if __name__ == "__main__":
    main()
