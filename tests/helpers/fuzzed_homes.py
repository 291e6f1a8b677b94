"""Make hostile homes by chance: real-looking ones in which some files are spoilt."""

from __future__ import annotations

import hashlib
import os
import random
import stat
from collections.abc import Callable
from pathlib import Path

from tests.helpers import support

Change = Callable[[random.Random, Path], None]
MEGABYTE = 1024 * 1024
LOG = (
    "2026-11-19 04:13:{second:02} ERROR gateway.platforms.qqbot: [QQBot] token response: "
    "code 100016, invalid appid or secret\n"
)
TEXTS = {
    "config.yaml": "model:\n  default: x/y\n  provider: openrouter\nplatforms: {telegram: {}}\n",
    ".env": "OPENROUTER_API_KEY=sk-or-v1-0123456789\nTELEGRAM_BOT_TOKEN=123456:AAAA\nA=${B}\n",
    "auth.json": '{"providers": {}, "credential_pool": {"openrouter": [{"id": "a", "n": 1}]}}',
    "gateway_state.json": '{"gateway_state": "running", "pid": 4, "platforms": {"qqbot": {}}}',
    "gateway.pid": '{"pid": 4, "kind": "hermes-gateway", "argv": ["hermes"], "start_time": 5}',
    "gateway.json": '{"platforms": {"telegram": {"enabled": true}}}',
    "processes.json": '[{"pid": 7, "session_key": "a"}]',
    "channel_directory.json": '{"platforms": {"telegram": [{"id": "1", "name": "a"}]}}',
    "cron/jobs.json": '{"jobs": [{"id": "a", "schedule": {"kind": "cron", "expr": "* * * * *"}}]}',
    "sessions/sessions.json": '{"a": {"session_id": "a", "updated_at": "2026-11-19T04:13:00"}}',
    "pairing/telegram-approved.json": '{"1": {"user_name": "a", "approved_at": 1.0}}',
    "pairing/telegram-pending.json": '{"ABCD": {"user_id": "1", "created_at": 1.0}}',
    "logs/agent.log": "".join(LOG.format(second=n) for n in range(60)),
    "logs/errors.log": "".join(LOG.format(second=n) for n in range(60)),
    "logs/gateway.log": "".join(LOG.format(second=n) for n in range(60)),
    "logs/gateway-exit-diag.log": '{"ts": "2026-11-19T04:13:00", "event": "exit"}\n',
    "SOUL.md": "You are kind.\n",
}
NUMBERS = ("9" * 5000, "-1", "1e999", "0", "NaN", str(2**64), "true", '""')


def make(home: Path, seed: int) -> list[str]:
    """Make the home of this number; return what was done to it."""
    chance = random.Random(seed)
    support.healthy(home)
    for name, text in TEXTS.items():
        support.put(home / name, text)
    names = [*TEXTS, "state.db", "kanban.db"]
    done = []
    for _ in range(chance.randint(1, 6)):
        path = home / chance.choice(names)
        kind = chance.choice([*CHANGES])
        if path.is_file() and not path.is_symlink():
            CHANGES[kind](chance, path)
            done.append(f"{kind} {path.relative_to(home)}")
    return done


def fingerprint(home: Path) -> dict[str, tuple[object, ...]]:
    """Everything about every file: kind, owner, size, times and content."""
    found: dict[str, tuple[object, ...]] = {}
    waiting = [home]
    while waiting:
        path = waiting.pop()
        st = path.lstat()
        content = ""
        if stat.S_ISREG(st.st_mode):
            with path.open("rb") as file:
                content = hashlib.sha256(file.read(8 * MEGABYTE)).hexdigest()
        elif stat.S_ISDIR(st.st_mode):
            waiting += path.iterdir()
        found[str(path)] = (st.st_mode, st.st_uid, st.st_size, st.st_mtime_ns, st.st_ino, content)
    return found


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data[: 64 * MEGABYTE])


def _cut(chance: random.Random, path: Path) -> None:
    data = path.read_bytes()
    _write(path, data[: chance.randrange(len(data) + 1)])


def _repeat(chance: random.Random, path: Path) -> None:
    data = path.read_bytes()[: 1 << 16] or b"\n"
    _write(path, data * (chance.choice([2, 100, 4 * MEGABYTE, 30 * MEGABYTE]) // len(data) + 1))


def _number_lines(chance: random.Random, path: Path) -> None:
    count = chance.choice([1000, 30_000, 200_000])
    sign = ": " if path.suffix == ".yaml" else "="
    _write(path, "".join(f"VAR_{n}{sign}v{n}\n" for n in range(count)).encode())


def _nest(chance: random.Random, path: Path) -> None:
    opening, closing = chance.choice([("[", "]"), ('{"a":', "}"), ("- ", ""), ("(", ")")])
    depth = chance.choice([50, 500, 5000, 500_000])
    _write(path, ('{"a": ' + opening * depth + "1" + closing * depth + "}").encode())


def _number(chance: random.Random, path: Path) -> None:
    data = path.read_bytes()
    digits = [n for n, byte in enumerate(data[:4096]) if 48 <= byte < 58]
    if digits:
        at = chance.choice(digits)
        _write(path, data[:at] + chance.choice(NUMBERS).encode() + data[at + 1 :])


def _value(chance: random.Random, path: Path) -> None:
    """Replace a value of JSON or YAML by one of another type."""
    data = path.read_bytes()
    ends = [n for n, byte in enumerate(data[:4096]) if byte in b":["]
    if ends:
        at = chance.choice(ends) + 1
        odd = chance.choice(["null", "[]", "{}", "1", '"a"', "[null]", '{"a": null}', "1e400"])
        rest = data[at:]
        stop = next((n for n, byte in enumerate(rest) if byte in b",]}\n"), len(rest))
        _write(path, data[:at] + b" " + odd.encode() + rest[stop:])


def _junk(chance: random.Random, path: Path) -> None:
    _write(path, chance.randbytes(chance.choice([1, 100, 10_000, 2 * MEGABYTE])))


def _flip(chance: random.Random, path: Path) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 20, 2000])):
        if data:
            data[chance.randrange(len(data))] = chance.randrange(256)
    _write(path, bytes(data))


def _double(chance: random.Random, path: Path) -> None:
    """Variables or aliases that multiply each other."""
    times = chance.choice([2, 10])
    lines = ["a0: &a0 lol"] if path.suffix == ".yaml" else ["A0=0123456789"]
    for n in range(1, 60):
        lines += (
            [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * times)}]"]
            if path.suffix == ".yaml"
            else [f"A{n}={f'${{A{n - 1}}}' * times}"]
        )
    _write(path, "\n".join([*lines, "model: {default: *a59}", ""]).encode())


def _anchors(chance: random.Random, path: Path) -> None:
    count = chance.choice([1000, 20_000, 50_000])
    made = "".join(f"  k{n}: &a{n} v{n}\n" for n in range(count))
    _write(path, f"model:\n  default: x\nx:\n{made}".encode())


def _long_line(chance: random.Random, path: Path) -> None:
    fill = chance.choice([b"a", b"$", b"(", b"{", b'"', b"\\", b" ", b"\xff", b"\0", b"="])
    data = path.read_bytes()
    at = chance.randrange(min(len(data), 4096) + 1)
    _write(path, data[:at] + fill * chance.choice([5000, MEGABYTE, 20 * MEGABYTE]) + data[at:])


def _sparse(chance: random.Random, path: Path) -> None:
    os.truncate(path, chance.choice([5 * MEGABYTE, 100 * MEGABYTE, 5000 * MEGABYTE]))


def _link(chance: random.Random, path: Path) -> None:
    targets = [
        "/dev/zero",
        "/dev/full",
        "/dev/tty",
        "/",
        ".",
        path.name,
        "missing",
        "/proc/self/mem",
    ]
    path.unlink()
    path.symlink_to(chance.choice(targets))


def _pipe(_: random.Random, path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(chance: random.Random, path: Path) -> None:
    path.unlink()
    path.mkdir()
    for n in range(chance.choice([0, 3, 3000])):
        (path / f"{n}.json").write_text("{}")


def _deep_folder(chance: random.Random, path: Path) -> None:
    path.unlink()
    for _ in range(chance.choice([30, 300])):
        path.mkdir()
        path = path / "d"


def _closed(chance: random.Random, path: Path) -> None:
    path.chmod(chance.choice([0, 0o777, 0o400]))


def _times(chance: random.Random, path: Path) -> None:
    moment = chance.choice([0, 2**31, 2**33, 1])
    os.utime(path, (moment, moment))


CHANGES: dict[str, Change] = {
    "cut": _cut,
    "repeat": _repeat,
    "many lines": _number_lines,
    "nest": _nest,
    "number": _number,
    "value": _value,
    "junk": _junk,
    "flip": _flip,
    "double": _double,
    "anchors": _anchors,
    "long line": _long_line,
    "sparse": _sparse,
    "link": _link,
    "pipe": _pipe,
    "folder": _folder,
    "deep folder": _deep_folder,
    "closed": _closed,
    "times": _times,
}
