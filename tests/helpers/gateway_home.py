"""A home whose gateway reports the states, connections and variables that a test wants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CheckResult, Finding, Gateway
from hermes_doctor.core.system import mounts
from hermes_doctor.core.system.mounts import FileUser
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.probes import links
from hermes_doctor.diagnosis.probes.links import PlatformConnections
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.hermes.processes.process_stat import ProcessDetails
from hermes_doctor.hermes.processes.runtime_files import Owner, PlatformState, Runtime
from hermes_doctor.hermes.processes.sockets import Connection
from hermes_doctor.hermes.settings import urls
from tests.helpers.given_answers import GivenAnswers
from tests.helpers.one_check import PLUGINS

PID = 4242
STARTED = datetime.now(UTC) - timedelta(hours=3)
QQ = {"QQ_APP_ID": "102000001", "QQ_CLIENT_SECRET": "not-a-secret"}
TELEGRAM = {"TELEGRAM_BOT_TOKEN": "123456:not-a-token"}


def claim(
    name: str, state: str, error: str | None = None, *, ago: timedelta = timedelta(hours=1)
) -> PlatformState:
    """Return a state that the gateway reported for a platform some time ago."""
    return PlatformState(name, state, error, datetime.now(UTC) - ago)


def to(
    ip: str, port: int = 443, state: str = "ESTABLISHED", *, inode: int = 0, local: int = 50000
) -> Connection:
    """Return a connection to an address."""
    return Connection(("10.0.0.1", local), (ip, port), state, inode=inode)


class Scene(GivenAnswers):
    """Probes of a gateway that does not exist, with made-up facts about its process."""

    def __init__(
        self,
        home: Path,
        variables: Mapping[str, str],
        claims: Iterable[PlatformState] = (),
        table: Iterable[Connection] = (),
        *,
        running: bool = True,
        network: bool = False,
        version: str = "0.19.0",
    ) -> None:
        super().__init__(Home(home), network=network)
        self.variables = dict(variables)
        self.said = {one.name: one for one in claims}
        self.table = list(table)
        self.running = running
        self.version = version

    def gateway_running(self) -> list[Gateway]:
        """Return one gateway, or none."""
        return [Gateway(PID, STARTED)] if self.running else []

    def hermes_installation(self) -> Installation | None:
        """Return the release."""
        return Installation(self.version, Path("/nowhere"), running=self.running)

    def gateway_runtime(self) -> Runtime:
        """Return what the gateway wrote."""
        owner = Owner(PID, 1)
        return Runtime(
            *(owner, owner, PID, "running", owner, None, False, None, None),
            platforms=self.said,
            beat=None,
            clean_shutdown=False,
            starts=(),
        )

    def machine_vitals(self, pid: int) -> ProcessDetails:
        """Return facts about the process."""
        return ProcessDetails(
            pid, "S", STARTED, 0, None, None, None, None, 0, None, environment=self.variables
        )

    def gateway_user(self) -> FileUser:
        """Return the owner of the home."""
        return mounts.owner_of(self.home.path)

    def machine_connections(self, pid: int) -> list[Connection]:
        """Return its connections."""
        return self.table

    def health_links(self, pid: int, held: frozenset[str]) -> list[PlatformConnections]:
        """Assign the connections to platforms at once."""
        others = urls.provider_endpoints(self.settings.effective()).values()
        return links.assign(self.settings.platforms(), self.table, providers=others)

    def machine_listeners(self, pid: int) -> list[Connection]:
        """Return the listening sockets."""
        return [one for one in self.table if one.state == "LISTEN"]

    def machine_socket_owner(self, inode: int) -> int | None:
        """Return None: the owner is unknown."""
        return None


def ask(id: str, scene: Probes) -> tuple[CheckResult, list[Finding]]:
    """Return the result and the findings of one check in a scene."""
    [result], findings = examine(scene, [one for one in PLUGINS.checks if one.id == id])
    assert result.status != "crashed", result
    return result, findings


def old(path: Path) -> Path:
    """Make a file older than the gateway."""
    import os

    long_ago = (STARTED - timedelta(days=1)).timestamp()
    os.utime(path, (long_ago, long_ago))
    return path
