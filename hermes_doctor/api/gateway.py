"""The gateway's processes, connections, services and installation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import import_on_first_use

if TYPE_CHECKING:
    from hermes_doctor.core.model import Gateway
    from hermes_doctor.diagnosis.probes.compose import ComposeService
    from hermes_doctor.diagnosis.probes.links import PlatformConnections
    from hermes_doctor.diagnosis.probes.network.reach import HostResult
    from hermes_doctor.diagnosis.probes.next_start import NextStart
    from hermes_doctor.diagnosis.probes.other_homes import OtherGateway
    from hermes_doctor.diagnosis.probes.traces import PROGRAMS
    from hermes_doctor.hermes.installation.last_update import UpdateReceipt, UpdateRun
    from hermes_doctor.hermes.installation.packages import Packages
    from hermes_doctor.hermes.installation.virtualenv import Environments
    from hermes_doctor.hermes.processes.process_stat import ProcessDetails, start_moment
    from hermes_doctor.hermes.processes.runtime_files import (
        GatewayLife,
        PlatformState,
        Runtime,
        is_same_commit,
    )
    from hermes_doctor.hermes.processes.sockets import Connection
    from hermes_doctor.hermes.supervisors.find import Supervision
    from hermes_doctor.hermes.supervisors.units import Unit, parse_time_span
else:
    __getattr__, __all__ = import_on_first_use(
        __name__,
        {
            "hermes_doctor.core.model": "Gateway",
            "hermes_doctor.diagnosis.probes.compose": "ComposeService",
            "hermes_doctor.diagnosis.probes.traces": "PROGRAMS",
            "hermes_doctor.diagnosis.probes.links": "PlatformConnections",
            "hermes_doctor.diagnosis.probes.network.reach": "HostResult",
            "hermes_doctor.diagnosis.probes.next_start": "NextStart",
            "hermes_doctor.diagnosis.probes.other_homes": "OtherGateway",
            "hermes_doctor.hermes.installation.last_update": "UpdateReceipt UpdateRun",
            "hermes_doctor.hermes.installation.packages": "Packages",
            "hermes_doctor.hermes.installation.virtualenv": "Environments",
            "hermes_doctor.hermes.processes.process_stat": "ProcessDetails start_moment",
            "hermes_doctor.hermes.processes.runtime_files": "GatewayLife PlatformState Runtime "
            "is_same_commit",
            "hermes_doctor.hermes.processes.sockets": "Connection",
            "hermes_doctor.hermes.supervisors.find": "Supervision",
            "hermes_doctor.hermes.supervisors.units": "Unit parse_time_span",
        },
    )
