"""Stores, scheduled jobs, logs and free space."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import import_on_first_use

if TYPE_CHECKING:
    from hermes_doctor.core.redaction import redact_log_text, redact_name
    from hermes_doctor.core.system.mounts import Space, lacks_room
    from hermes_doctor.diagnosis.plugins.recorded_causes import RecordedCause, recorded_cause
    from hermes_doctor.diagnosis.probes.cron import CronJob, UndeliverableTarget
    from hermes_doctor.diagnosis.probes.large_files import backups_size
    from hermes_doctor.diagnosis.probes.log_tails import GatewayLogLine, Refusal
    from hermes_doctor.diagnosis.probes.unsaved_turns import KeptFile
    from hermes_doctor.hermes.stores.pairing import Pairing, PairingRequest
    from hermes_doctor.hermes.stores.store_file import StoreFile
else:
    __getattr__, __all__ = import_on_first_use(
        __name__,
        {
            "hermes_doctor.core.redaction": "redact_log_text redact_name",
            "hermes_doctor.core.system.mounts": "Space lacks_room",
            "hermes_doctor.diagnosis.plugins.recorded_causes": "RecordedCause recorded_cause",
            "hermes_doctor.diagnosis.probes.cron": "CronJob UndeliverableTarget",
            "hermes_doctor.diagnosis.probes.log_tails": "GatewayLogLine Refusal",
            "hermes_doctor.diagnosis.probes.large_files": "backups_size",
            "hermes_doctor.diagnosis.probes.unsaved_turns": "KeptFile",
            "hermes_doctor.hermes.stores.pairing": "Pairing PairingRequest",
            "hermes_doctor.hermes.stores.store_file": "StoreFile",
        },
    )
