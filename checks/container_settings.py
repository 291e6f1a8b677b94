"""Check that the gateway's container has a time zone, limits and a health check where needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.tools import count, listed

if TYPE_CHECKING:
    from hermes_doctor.api.gateway import ComposeService, Unit

_FEW = 1024
_ENOUGH = 65536
_UTC = ("", "UTC", "Etc/UTC", "UCT", "Etc/UCT", "GMT", "Etc/GMT", "Zulu", "Universal")
_GIGABYTE = 1 << 30
_NAMED = ("environment", "ulimits")
"""Settings of a service that are mappings of many names."""
_DEPLOYED = ("deploy", "resources", "limits", "memory")
"""The other place of a memory limit; Compose rejects a file whose two limits differ."""
_PENDING = "has the setting, but the container was created before it"


@check(
    id="container-settings",
    group="supervision",
    codes=["DOCKER-TZ", "DOCKER-LIMITS", "DOCKER-NO-HEALTHCHECK"],
    needs="service",
)
def container_settings(probes: Probes) -> Iterator[Finding]:
    """Does the container have the settings that it needs?"""
    boxes = [unit for unit in probes.gateway.supervision().units if unit.kind == "docker"]
    if not boxes or "Id" not in boxes[0].settings:
        raise Skip("no container runs the gateway, or its engine cannot be asked")
    unit = boxes[0]
    yield from _time_zone(probes, unit)
    yield from _memory(probes, unit)
    yield from _open_files(probes, unit)
    yield from _health_check(probes, unit)


# -- the time zone ------------------------------------------------------------------------------


def _time_zone(probes: Probes, unit: Unit) -> Iterator[Finding]:
    """Report jobs with a time of day that run in UTC although this machine has another zone."""
    zone = probes.machine.time_zone()
    if zone in _UTC or unit.environment.get("TZ") or unit.pid is None:
        return
    if "/etc/localtime" in unit.settings.get("Mounts", "").split("\n"):
        return
    try:
        jobs = [job for job in probes.stores.jobs() if job.kind == "cron"]
        settings = probes.settings.effective()
    except CouldNotLook:
        return
    named = settings.value("HERMES_TIMEZONE") or settings.config.get("timezone")
    if not jobs or named or probes.machine.container_zone(unit.pid) not in _UTC:
        return
    knows = probes.machine.container_has(unit.pid, f"/usr/share/zoneinfo/{zone}")
    yield _finding(
        probes,
        unit,
        Finding(
            code="DOCKER-TZ",
            severity=Severity.WARNING,
            title=text("scheduled jobs run in UTC, but this machine is in {zone}", zone=zone),
            subject=unit.name,
            detail=text(
                "A job that is planned for 08:00 runs at 08:00 UTC: the container {name} has no "
                "time zone.",
                name=unit.name,
            ),
            evidence=(
                Evidence(
                    unit.name,
                    text(
                        "TZ is not set; {jobs} with a time of day",
                        jobs=count(len(jobs), "scheduled job"),
                    ),
                ),
            ),
            next=text(
                "Run `hermes config set timezone {zone}` in the container and restart it.",
                zone=zone,
            ),
        ),
        {"environment": {"TZ": zone}} if knows else None,
    )


# -- limits -------------------------------------------------------------------------------------


def _memory(probes: Probes, unit: Unit) -> Iterator[Finding]:
    """Report a container without a memory limit, if the kernel killed it for lack of memory."""
    if unit.settings.get("OOMKilled") != "yes" or unit.settings.get("Memory") != "0":
        return
    yield _finding(
        probes,
        unit,
        Finding(
            code="DOCKER-LIMITS",
            severity=Severity.WARNING,
            title=text("memory ran out: the container {name} has no limit", name=unit.name),
            subject=f"{unit.name}: memory",
            detail=(
                "It may use all memory of this machine, so the kernel also kills other programs. "
                "With a limit, only the container restarts."
            ),
            evidence=(Evidence(unit.name, "OOMKilled: true; no memory limit"),),
            next="Recreate the container with a memory limit, such as `--memory 2g`.",
        ),
        {"mem_limit": _memory_limit(probes)},
    )


def _memory_limit(probes: Probes) -> str:
    """Half of this machine's memory, at most 2 GB, which is four times what most gateways need."""
    half = probes.machine.memory() // 2
    return f"{half >> 20}m" if 0 < half < 2 * _GIGABYTE else "2g"


def _open_files(probes: Probes, unit: Unit) -> Iterator[Finding]:
    """Report a gateway in a container that may open few files."""
    running = probes.gateway.running()
    if not running or unit.pid is None:
        return
    try:
        limit = probes.machine.vitals(running[0].pid).files_limit
    except CouldNotLook:
        return
    if limit is None or limit > _FEW:
        return
    yield _finding(
        probes,
        unit,
        Finding(
            code="DOCKER-LIMITS",
            severity=Severity.INFO,
            title=text("the container allows the gateway only {limit} open files", limit=limit),
            subject=f"{unit.name}: open files",
            detail=(
                "At the limit every new connection and every database fails with `Too many open "
                "files`."
            ),
            evidence=(
                Evidence(f"/proc/{running[0].pid}/limits", f"soft limit of open files: {limit}"),
            ),
            next="Recreate the container with `--ulimit nofile=65536`.",
        ),
        {"ulimits": {"nofile": {"soft": _ENOUGH, "hard": _ENOUGH}}},
    )


# -- the health check ---------------------------------------------------------------------------


def _health_check(probes: Probes, unit: Unit) -> Iterator[Finding]:
    """Note that Docker cannot show whether the gateway answers."""
    if unit.settings.get("Healthcheck") != "no":
        return
    yield _finding(
        probes,
        unit,
        Finding(
            code="DOCKER-NO-HEALTHCHECK",
            severity=Severity.INFO,
            title=text("the container {name} has no health check", name=unit.name),
            subject=unit.name,
            detail="`docker ps` shows `Up` even if the gateway is frozen.",
            evidence=(Evidence(unit.name, "no healthcheck"),),
            next="docs/monitoring.md shows health checks for Docker and Kubernetes.",
        ),
        _health_test(probes),
    )


def _health_test(probes: Probes) -> Mapping[str, Any] | None:
    """A health check that asks the API server; None if it is off or its port is unknown."""
    running = probes.gateway.running()
    try:
        ports = [
            platform.port
            for platform in probes.settings.platforms()
            if platform.name == "api_server" and platform.port
        ]
        lines = {pid: words for pid, words, _ in probes.machine.command_lines()}
    except CouldNotLook:
        return None
    program = lines.get(running[0].pid) if running else None
    if not ports or not program or "python" not in program[0].rpartition("/")[2]:
        return None
    direct = "import urllib.request as u; u.build_opener(u.ProxyHandler({})).open"
    ask = f"{direct}('http://127.0.0.1:{ports[0]}/health', timeout=5)"
    return {
        "healthcheck": {
            "test": ["CMD", program[0], "-c", ask],
            "interval": "60s",
            "timeout": "10s",
            "retries": 3,
            "start_period": "120s",
        }
    }


# -- all of them --------------------------------------------------------------------------------


def _finding(
    probes: Probes, unit: Unit, finding: Finding, wanted: Mapping[str, Any] | None
) -> Finding:
    """Complete a finding: with the fix, or with the command if the file has the setting already."""
    try:
        service = probes.gateway.compose()
    except CouldNotLook as why:
        return finding._replace(evidence=(*finding.evidence, Evidence(unit.name, str(why))))
    if service is None or wanted is None:
        return finding
    if keys := _present(service.values, wanted):
        return _in_file(finding, service, keys)
    return finding._replace(
        fix="configure-container", next="", data={"unit": unit, "wanted": wanted}
    )


def _in_file(finding: Finding, service: ComposeService, keys: Sequence[str]) -> Finding:
    """Complete a finding about a setting that the file has: it is not applied yet, or is wrong."""
    file = str(service.file_with(keys).path)
    if not all(_helps(key, service.values[key]) for key in keys):
        return finding._replace(
            evidence=(*finding.evidence, Evidence(file, text("sets {key}", key=listed(keys)))),
            next=text(
                "Correct {key} in {file}, then run `{command}`, which restarts the bot.",
                key=listed(keys),
                file=file,
                command=service.update_command,
            ),
        )
    return finding._replace(
        subject=f"{finding.subject} (not applied yet)",
        evidence=(*finding.evidence, Evidence(file, _PENDING)),
        next=text("Run `{command}`, which restarts the bot.", command=service.update_command),
    )


def _helps(key: str, value: Any) -> bool:
    """Whether a value in the file would put the container right; an unknown one counts as such."""
    if key == "environment":
        return str(value["TZ"] or "") not in _UTC
    if key == "ulimits":
        files = value["nofile"]
        soft = str(files.get("soft") if isinstance(files, dict) else files)
        return not soft.isdecimal() or int(soft) > _FEW
    if key == "healthcheck":
        test = value.get("test") if isinstance(value, dict) else None
        return bool(test) and test not in ("NONE", ["NONE"]) and not value.get("disable")
    return str(value) != "0"


def _present(values: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """The keys that set these settings to anything; none if a setting is missing."""
    found = []
    for key, value in wanted.items():
        there = values.get(key)
        if key == "mem_limit" and there is None and _inside(values, _DEPLOYED) is not None:
            found.append(_DEPLOYED[0])
        elif there is None or (key in _NAMED and not set(value) <= set(there)):
            return []
        else:
            found.append(key)
    return found


def _inside(values: Any, path: Sequence[str]) -> Any:
    """The value at a path of nested mappings; None if it is not set."""
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values
