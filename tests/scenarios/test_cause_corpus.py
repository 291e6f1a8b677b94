"""The entries by which the naming of causes is measured, and how an answer is judged."""

from __future__ import annotations

import os
import random

import pytest

from benchmarks import cause_by_rule
from benchmarks.cause_corpus import (
    Made,
    RealError,
    entries,
    fill,
    fits,
    is_held_out,
    logger_of,
    real_errors,
)
from benchmarks.cause_reading import Verdict, judge, kinds_of_miss, missed_bars
from benchmarks.true_places import true_place
from hermes_doctor.hermes.knowledge.logging_calls import LoggingCall
from tests.helpers.rule_lines import entry

USED = RealError(
    frozenset(["port-in-use"]),
    frozenset(["connection-failed"]),
    "bind",
    "OSError",
    frozenset(["OSError", "builtins.OSError", "Exception"]),
    "[Errno 98] Address already in use",
    "Traceback (most recent call last):\n"
    '  File "socket.py", line 1, in bind\n'
    "OSError: [Errno 98] Address already in use\n",
)


def call(template: str, file: str = "gateway/run.py", **given: object) -> LoggingCall:
    """A call that shows the error `exc`."""
    values: dict[str, object] = {"error": "exc", "caught": "", "traceback": False, **given}
    return LoggingCall(file, "A.start", "gateway.run", "ERROR", template, **values)  # type: ignore[arg-type]


def made(one: LoggingCall, error: RealError = USED) -> Made:
    """The entry of a call."""
    found = fill(one, error, 1, random.Random(1))
    assert found is not None
    return found


def test_entry() -> None:
    """The error fills its slot, and the other slots get values of their kind."""
    one = made(call("Cannot listen on {port}: {exc}"))

    assert one.lines == (
        "2026-11-15 00:00:01,000 ERROR gateway.run: "
        "Cannot listen on 3: [Errno 98] Address already in use\n"
    )
    assert one.causes == {"port-in-use", "connection-failed"}
    assert made(call("{str(exc)[:99]}")).lines.endswith(": [Errno 98] Address already in use\n")
    assert made(call("{type(exc).__name__}: {exc}")).lines.endswith(
        ": OSError: [Errno 98] Address already in use\n"
    )


def test_traceback() -> None:
    """A traceback begins in the function of the call; it names the cause, so nothing is vague."""
    one = made(call("Cannot listen", traceback=True))
    head, *more = one.lines.splitlines()

    assert head.endswith("gateway.run: Cannot listen")
    assert more[:2] == [
        "Traceback (most recent call last):",
        '  File "/usr/local/lib/hermes-agent/gateway/run.py", line 100, in start',
    ]
    assert more[-1] == "OSError: [Errno 98] Address already in use"
    assert one.causes == {"port-in-use"}


def test_what_shows_nothing() -> None:
    """A call that shows only a part of the error, or an error without text, makes no entry."""
    silent = USED._replace(text="")

    assert fill(call("Cannot listen: {exc.errno}"), USED, 1, random.Random(1)) is None
    assert fill(call("Cannot listen: {exc[:10]}"), USED, 1, random.Random(1)) is None
    assert fill(call("Cannot listen: {exc}"), silent, 1, random.Random(1)) is None


def test_caught_types() -> None:
    """A handler's call gets only errors that it can catch."""
    task = USED._replace(types=frozenset(["CancelledError", "BaseException"]))

    assert fits(call("x", caught="builtins.OSError ValueError"), USED)
    assert not fits(call("x", caught="sqlite3.Error"), USED)
    assert fits(call("x"), USED)
    assert not fits(call("x"), task)
    assert fits(call("x", caught="asyncio.CancelledError"), task)


def test_places() -> None:
    """A file of an adapter is its platform; a line of the gateway may name one."""
    named = made(call("Failed to connect to {platform.value}: {exc}"))

    assert named.place.platform in named.lines
    assert true_place("plugins/platforms/telegram/adapter.py").platform == "telegram"
    assert true_place("gateway/platforms/whatsapp_cloud.py").platform == "whatsapp_cloud"
    assert true_place("gateway/platforms/base.py").parts == {"gateway", "data"}
    assert true_place("cron/jobs.py").parts == {"cron"}
    assert true_place("cron/jobs.py", template="Session DB failed").parts == {"cron", "data"}
    plugin = call("x")._replace(logger="plugins.platforms.telegram.adapter")
    assert logger_of(plugin) == "hermes_plugins.telegram_platform.adapter"
    assert logger_of(call("x")._replace(logger="plugins.memory.honcho")) == "plugins.memory.honcho"


def test_judge() -> None:
    """A cause is right, missing or wrong; a place is a platform or one of its parts."""
    one = made(call("Failed to connect: {exc}", "plugins/platforms/slack/adapter.py"))

    assert judge(one, ("platform:slack", "", "port-in-use", "")) == (True, True, False)
    assert judge(one, ("platform:discord", "", "", "")) == (False, False, False)
    assert judge(one, ("platform:slack", "", "name-not-resolved", "")) == (False, True, True)
    nothing = one._replace(causes=frozenset())
    assert judge(nothing, ("", "", "", "")).cause
    assert judge(nothing, ("", "", "disk-full", "")).blame
    answer = ("platform:discord", "", "disk-full", "")
    assert kinds_of_miss(one, answer, judge(one, answer)) == [
        ("cause", "connection-failed|port-in-use (bind, OSError)", "disk-full"),
        ("place", "slack in plugins/platforms/slack/adapter.py", "platform:discord"),
    ]


def test_bars() -> None:
    """A bar is missed by either part of the entries; there may be none of one part."""
    one = made(call("Cannot listen: {exc}"))._replace(held_out=False)
    good, bad = Verdict(True, True, False), Verdict(False, True, True)

    assert missed_bars([(one, good)] * 20) == []
    assert missed_bars([(one, good)] * 18 + [(one, bad)] * 2) == [
        "missed a bar: cause, seen: 90.0 %",
        "missed a bar: blame, seen: 10.0 %",
    ]
    assert missed_bars([(one._replace(held_out=True), bad)]) == [
        "missed a bar: cause, held out: 0.0 %"
    ]


def test_held_out() -> None:
    """The same fifth is held out on every machine."""
    chosen = [n for n in range(1000) if is_held_out(str(n))]

    assert chosen[:4] == [0, 4, 9, 15]
    assert 150 < len(chosen) < 250


def test_rules_as_reader() -> None:
    """The code of the rule that matches says the cause and the place."""
    line = "2026-11-15 00:00:01,000 ERROR gateway.run: something that no rule knows"

    assert cause_by_rule.read(entry(line)) == ("", "", "", "")


@pytest.mark.real
@pytest.mark.wide
@pytest.mark.needs("unshare", "mount", "ip")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a network of its own")
def test_real_errors(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The libraries of a release raise what the measure is about, and the log shows all of it."""
    errors, lost = real_errors("0.19.0")
    causes = set().union(*(one.causes for one in errors))

    assert len(errors) > 200
    assert causes >= {
        "disk-full", "disk-read-only", "permission-denied", "too-many-files", "port-in-use",
        "name-not-resolved", "connection-refused", "connection-timed-out", "answer-timed-out",
        "proxy-refuses", "socks-library-missing", "certificate-expired", "certificate-untrusted",
        "certificate-for-another-host", "tls-broken", "websocket-closed", "rate-limited",
        "database-locked", "database-malformed", "not-a-database", "module-missing",
    }  # fmt: skip
    assert len(lost) < 5, lost
    lines = [made(call("x", traceback=True), one) for one in errors]
    found = entries(lines, tmp_path_factory.mktemp("entries"))
    assert all(one.more for one in found)
