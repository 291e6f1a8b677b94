"""DOCKER-TZ, DOCKER-LIMITS and DOCKER-NO-HEALTHCHECK."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.model import CheckResult, Finding
from hermes_doctor.diagnosis.examination.report import examine
from tests.helpers import support
from tests.helpers.compose_homes import PLAIN, InContainer, container, override, project
from tests.helpers.one_check import PLUGINS, ask

ROOT = Path(__file__).parents[2]
ZONE = "/usr/share/zoneinfo/Asia/Shanghai"
JOB = {
    "id": "a",
    "name": "hello",
    "prompt": "x",
    "schedule": {"kind": "cron", "expr": "0 8 * * *", "display": "0 8 * * *"},
    "enabled": True,
    "state": "scheduled",
}


def found(
    folder: Path, told: dict[str, Any] | None = None, **changes: Any
) -> tuple[CheckResult, list[Finding]]:
    """What the check finds in a container with these changes."""
    probes = InContainer(folder / "data", container(folder, **changes), **(told or {}))
    checks = [check for check in PLUGINS.checks if check.id == "container-settings"]
    [result], findings = examine(probes, checks)
    assert result.status != "crashed", result.reason
    return result, findings


@pytest.fixture(autouse=True)
def many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process may open many files, wherever the tests run."""
    limit(monkeypatch, 1 << 20)


def limit(monkeypatch: pytest.MonkeyPatch, files: int) -> None:
    """Let the gateway have this limit of open files."""
    from hermes_doctor.hermes.processes import process_stat

    real = process_stat.read_vitals
    monkeypatch.setattr(
        process_stat, "read_vitals", lambda pid: real(pid)._replace(files_limit=files)
    )


def test_healthy(home: Path, tmp_path: Path) -> None:
    """No container, or one that has what it needs."""
    assert ask("container-settings", home)[0].status == "skipped"
    project(tmp_path)
    assert found(tmp_path)[1] == []


def jobs(folder: Path) -> None:
    """A home with a job at a time of day."""
    support.put(folder / "data/cron/jobs.json", json.dumps({"jobs": [JOB]}))


def test_time_zone(tmp_path: Path) -> None:
    """A job at 08:00 runs at 08:00 UTC, although this machine has another zone."""
    project(tmp_path)
    jobs(tmp_path)
    told = {"zone": "Asia/Shanghai", "files": (ZONE,)}
    _, [finding] = found(tmp_path, told)

    assert (finding.code, finding.severity, finding.fix) == (
        "DOCKER-TZ",
        "warning",
        "configure-container",
    )
    assert finding.data["wanted"] == {"environment": {"TZ": "Asia/Shanghai"}}
    _, [no_zones] = found(tmp_path, {"zone": "Asia/Shanghai"})
    assert no_zones.fix is None and "hermes config set timezone" in no_zones.next


def test_time_zone_that_is_set(tmp_path: Path) -> None:
    """By TZ, by a mounted /etc/localtime, or by Hermes' own setting; and there must be jobs."""
    project(tmp_path)
    told = {"zone": "Asia/Shanghai", "files": (ZONE,)}
    assert found(tmp_path, told)[1] == []
    jobs(tmp_path)
    assert found(tmp_path, told, Config__Env=["TZ=Asia/Shanghai"])[1] == []
    assert found(tmp_path, told, Mounts=[{"Destination": "/etc/localtime"}])[1] == []
    support.put(tmp_path / "data/.env", support.ENV + "HERMES_TIMEZONE=Asia/Shanghai\n")
    assert found(tmp_path, told)[1] == []


def test_a_setting_that_is_not_applied_yet(tmp_path: Path) -> None:
    """The file has it, the container does not: the command is named, and no fix."""
    project(tmp_path, PLAIN.replace("      API_KEY", "      TZ: Asia/Shanghai\n      API_KEY"))
    jobs(tmp_path)
    _, [finding] = found(tmp_path, {"zone": "Asia/Shanghai", "files": (ZONE,)})

    assert finding.fix is None and finding.subject.endswith("(not applied yet)")
    assert f"cd {tmp_path} && docker compose up -d gateway" in finding.next


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("environment: [TZ=UTC]", "environment"),
        ("environment: {TZ: }", "environment"),
        ("ulimits: {nofile: 1024}", "ulimits"),
        ("ulimits: {nofile: {soft: 1024, hard: 4096}}", "ulimits"),
        ("healthcheck: {disable: true}", "healthcheck"),
        ("healthcheck: {interval: 5s}", "healthcheck"),
        ("mem_limit: 0", "mem_limit"),
    ],
)
def test_a_setting_that_does_not_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, key: str
) -> None:
    """Recreating the container would not change anything: the value in the file is wrong."""
    project(tmp_path, f"services:\n  gateway:\n    {line}\n")
    jobs(tmp_path)
    server = "API_SERVER_ENABLED=true\nAPI_SERVER_KEY=0123456789abcdef0123\n"
    support.put(tmp_path / "data/.env", support.ENV + server)
    told = {"zone": "Asia/Shanghai", "files": (ZONE,)} if key == "environment" else {}
    limit(monkeypatch, 1024 if key == "ulimits" else 1 << 20)
    changes: dict[str, Any] = {"State": {"OOMKilled": key == "mem_limit"}}
    changes |= {"Config__Healthcheck": None} if key == "healthcheck" else {}
    _, [finding] = found(tmp_path, told, **changes)

    assert finding.fix is None and "(not applied yet)" not in finding.subject
    assert f"Correct {key} in {tmp_path}/compose.yaml, then run `" in finding.next


def test_a_setting_in_one_of_two_files(tmp_path: Path) -> None:
    """Compose merges variables by their names, so a mapping in the last file hides no other."""
    project(tmp_path, PLAIN.replace("      API_KEY", "      TZ: Asia/Shanghai\n      API_KEY"))
    jobs(tmp_path)
    told = {"zone": "Asia/Shanghai", "files": (ZONE,)}
    for variables in ("{A: b}", "[A=b, C]", ""):
        labels = override(tmp_path, f"    environment: {variables}\n")
        _, [finding] = found(tmp_path, told, Config__Labels=labels)
        assert finding.fix is None and finding.subject.endswith("(not applied yet)")


@pytest.mark.parametrize("value", ["environment: 5", "environment: [A: b]", "ulimits: [nofile]"])
def test_a_file_that_is_not_understood(tmp_path: Path, value: str) -> None:
    """Compose rejects such a value: there is no fix, and the reason is evidence."""
    project(tmp_path, f"services:\n  gateway:\n    {value}\n")
    jobs(tmp_path)
    _, [finding] = found(tmp_path, {"zone": "Asia/Shanghai", "files": (ZONE,)})

    assert finding.fix is None
    key = value.partition(":")[0]
    assert any(f"compose.yaml has a value of {key} that" in one.what for one in finding.evidence)


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reported where there is evidence: memory ran out, or few files may be open."""
    project(tmp_path)
    for size, limited in ((1 << 30, "512m"), (16 << 30, "2g"), (0, "2g")):
        _, [memory] = found(tmp_path, {"memory": size}, State={"OOMKilled": True})
        assert (memory.code, memory.severity) == ("DOCKER-LIMITS", "warning")
        assert memory.data["wanted"] == {"mem_limit": limited}
    assert found(tmp_path, State={"OOMKilled": True}, HostConfig={"Memory": 1 << 30})[1] == []
    limit(monkeypatch, 1024)
    _, [files] = found(tmp_path)
    assert (files.code, files.severity, files.fix) == (
        "DOCKER-LIMITS",
        "info",
        "configure-container",
    )


def test_a_memory_limit_under_deploy(tmp_path: Path) -> None:
    """Compose takes it as `mem_limit`, and refuses a file that has both with other values."""
    project(tmp_path)
    killed = {"OOMKilled": True}
    for limits, pending in (("{memory: 1g}", True), ("{cpus: 1}", False), ("5", False)):
        labels = override(tmp_path, f"    deploy:\n      resources:\n        limits: {limits}\n")
        _, [finding] = found(tmp_path, State=killed, Config__Labels=labels)
        assert (finding.fix is None) is pending
        named = [one for one in finding.evidence if one.where.endswith("compose.override.yaml")]
        assert bool(named) is pending


def test_health_check(tmp_path: Path) -> None:
    """A note; its fix asks the API server, with the Python of the gateway."""
    project(tmp_path)
    _, [plain] = found(tmp_path, Config__Healthcheck=None)
    assert (plain.code, plain.severity, plain.fix) == ("DOCKER-NO-HEALTHCHECK", "info", None)
    server = "API_SERVER_ENABLED=true\nAPI_SERVER_KEY=0123456789abcdef0123\nAPI_SERVER_PORT=8700\n"
    support.put(tmp_path / "data/.env", support.ENV + server)
    _, [served] = found(tmp_path, Config__Healthcheck=None)
    assert served.fix == "configure-container"
    test = served.data["wanted"]["healthcheck"]["test"]
    assert test[:2] == ["CMD", "/opt/hermes/.venv/bin/python"] and ":8700/health" in test[3]


def test_the_health_check_uses_no_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy for the model provider does not answer for the gateway."""
    asked: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        project(tmp_path)
        key = "API_SERVER_ENABLED=true\nAPI_SERVER_KEY=0123456789abcdef0123\n"
        support.put(tmp_path / "data/.env", f"{support.ENV}{key}API_SERVER_PORT={port}\n")
        _, [served] = found(tmp_path, Config__Healthcheck=None)
        words = served.data["wanted"]["healthcheck"]["test"]
        done = subprocess.run([sys.executable, *words[2:]], check=False, capture_output=True)
        server.shutdown()
    assert (done.returncode, asked) == (0, ["/health"]), done.stderr
    page = (ROOT / "docs/failures/DOCKER-NO-HEALTHCHECK.md").read_text()
    assert words[3].replace(str(port), "8642") in " ".join(page.split())


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    """Then there is no fix, and the reason is evidence."""
    project(tmp_path).unlink()
    _, [finding] = found(tmp_path, State={"OOMKilled": True})

    assert finding.fix is None
    assert any("is missing" in one.what for one in finding.evidence)
