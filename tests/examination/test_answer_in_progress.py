"""Whether an answer is being written, by the gateway's own count or by its log."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

from hermes_doctor.examination.answer_in_progress import is_answering
from hermes_doctor.home import Home
from hermes_doctor.probes.probes import Probes
from tests.helpers import fake_gateway, support


def busy(home: Path) -> bool:
    return is_answering(Probes(Home(home.resolve())))


def count(home: Path, agents: object) -> None:
    said = json.loads((home / "gateway_state.json").read_bytes())
    support.put(home / "gateway_state.json", json.dumps(said | {"active_agents": agents}))


def log(home: Path, *lines: str) -> None:
    first = datetime.now() + timedelta(seconds=2)
    text = "".join(
        f"{first + timedelta(seconds=n):%Y-%m-%d %H:%M:%S},000 INFO gateway.run: {line}\n"
        for n, line in enumerate(lines)
    )
    support.put(home / "logs" / "gateway.log", text)


IN = "inbound message: platform=telegram user=x chat=1 msg='hi'"
OUT = "response ready: platform=telegram chat=1 time=1.0s"


def test_by_its_own_count(home: Path) -> None:
    """The gateway's own number, where it is one."""
    with fake_gateway.gateway(home):
        assert not busy(home)
        count(home, 2)
        assert busy(home)
        for none in (0, -1, "many", True, None):
            count(home, none)
            assert not busy(home)
    count(home, 2)
    assert not busy(home), "nobody is there to write one"


def test_by_the_log_where_nobody_counts(home: Path) -> None:
    """By the log where nobody counts."""
    with fake_gateway.gateway(home):
        log(home, IN, OUT)
        assert not busy(home)
        log(home, IN, OUT, IN)
        assert busy(home)


def test_the_count_of_another_process_is_not_its_own(home: Path) -> None:
    """The count of another process is not its own."""
    with fake_gateway.gateway(home):
        count(home, 2)
        said = json.loads((home / "gateway_state.json").read_bytes())
        support.put(home / "gateway_state.json", json.dumps(said | {"pid": fake_gateway.DEAD}))
        assert not busy(home)
