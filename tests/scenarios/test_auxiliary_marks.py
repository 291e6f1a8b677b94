"""One line of Hermes about small tasks has three meanings; its seconds tell them apart."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from hermes_doctor.hermes.logs.entry import LogEntry
from tests.conftest import need_release
from tests.diagnosis.plugins.log_rules.test_folder import ago, codes, put
from tests.helpers import support
from tools import releases

pytestmark = pytest.mark.usefixtures("utc")

AUXILIARY = "agent.auxiliary_client"
STALE = (
    "Auxiliary compression: fallback candidate anthropic has a stale/unrefreshable credential "
    "(Error code: 401) — skipping to next fallback"
)
CALL = "API call #3: model=some/model provider=openrouter in=1200 out=40 total=1240 latency=2.1s"
NONE = (
    "Auxiliary auto-detect: no provider available (tried: openrouter, nous). Compression, "
    "summarization, and memory flush will not work. Set OPENROUTER_API_KEY or configure a local "
    "model in config.yaml."
)


def mark(provider: str, seconds: int) -> str:
    """The line as 0.13.0 to 0.20.5 write it."""
    return (
        f"Auxiliary: marking {provider} unhealthy for {seconds}s (payment / credit error). "
        f"Subsequent auxiliary calls will skip it until 00:45:09."
    )


def aux(minutes: float, text: str, level: str = "WARNING") -> LogEntry:
    """A line of the client for small tasks."""
    return ago(minutes, text, level, AUXILIARY)


@pytest.mark.parametrize("provider", ["openrouter", "nous"])
def test_not_logged_in(home: Path, provider: str) -> None:
    """60 s: Hermes has no key or login for it, as for all that were never set up."""
    put(home, *(aux(n, mark(provider, 60)) for n in range(1, 40)))
    assert codes(home) == []


def test_no_credit(home: Path) -> None:
    """600 s: a provider refused for lack of credit; a call that comes back clears it."""
    put(home, aux(20, mark("openrouter", 600)))
    done = support.doctor("check", "--json", "--only", "logs", "--home", home)
    [finding] = done.json["findings"]
    assert (finding["code"], finding["severity"]) == ("PROVIDER-402-429", "warning")
    assert "openrouter" in finding["title"] and "no credit" in finding["title"]

    other = CALL.replace("openrouter", "anthropic")
    put(home, aux(20, mark("openrouter", 600)), ago(9, other, "INFO", "agent.conversation_loop"))
    assert codes(home) == ["PROVIDER-402-429"], "another provider says nothing of this one"
    put(home, aux(20, mark("openrouter", 600)), ago(9, CALL, "INFO", "agent.conversation_loop"))
    assert codes(home) == []


def test_a_dead_login_is_no_lack_of_credit(home: Path) -> None:
    """From 0.19 on 600 s also stand before a fallback whose login does not work any more."""
    put(home, aux(20, mark("anthropic", 600)), aux(19.99, STALE))
    assert codes(home) == ["PROVIDER-401"]


def test_limit_of_requests(home: Path) -> None:
    """Any other number is the rest of a limit at Nous: information, and no lack of credit."""
    put(home, aux(20, mark("nous", 1743)))
    done = support.doctor("check", "--json", "--only", "logs", "--home", home)
    [finding] = done.json["findings"]
    assert (finding["code"], finding["severity"]) == ("PROVIDER-402-429", "info")
    assert "credit" not in finding["title"]
    using = "Auxiliary auto-detect: using nous (some/model)"
    put(home, aux(20, mark("nous", 1743)), aux(3, using, "INFO"))
    assert codes(home) == []


def test_no_provider_left(home: Path) -> None:
    """Without any provider left, the finding says so and does not mention credit."""
    put(home, *(aux(n, mark("nous", 60)) for n in (9, 7)), aux(8, NONE), aux(6, NONE))
    assert codes(home) == ["PROVIDER-KEY"]


ASK = """
import json, logging, os, sys
said = []
class Keep(logging.Handler):
    def emit(self, record):
        said.append([record.name, record.levelname, record.getMessage()])
logging.getLogger("agent.auxiliary_client").addHandler(Keep())
from agent import auxiliary_client as client
client._try_openrouter()
client._try_nous()
unset = len(said)
client._mark_provider_unhealthy("openrouter")
print(json.dumps([said[:unset], said[unset:]]))
"""


@pytest.mark.real
@pytest.mark.parametrize("version", ["0.13.0", "0.19.0"])
def test_in_the_words_of_a_release(home: Path, tmp_path: Path, version: str) -> None:
    """The release itself writes the lines: without any login, and after a refusal."""
    need_release(version)
    empty = tmp_path / "empty"
    empty.mkdir()
    env = {"HERMES_HOME": str(empty), "HOME": str(empty), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [str(releases.python_of(version)), "-I", "-c", ASK],
        cwd=empty,
        env=env | {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    unset, refused = json.loads(done.stdout.splitlines()[-1])
    assert len([text for _, _, text in unset if "unhealthy for 60s" in text]) == 2

    put(home, *(ago(9, text, level, name) for name, level, text in unset))
    assert codes(home) == []
    put(home, *(ago(9, text, level, name) for name, level, text in unset + refused))
    assert codes(home) == ["PROVIDER-402-429"]
