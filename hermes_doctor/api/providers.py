"""Which provider, model and key the next message uses, and how to show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import import_on_first_use

if TYPE_CHECKING:
    from hermes_doctor.backup.records.last_ask import AskAttempt, AskRecord
    from hermes_doctor.diagnosis.probes.network.provider_trial import Trial
    from hermes_doctor.diagnosis.probes.provider_routes import (
        RELAY_KEY,
        ConfiguredRoute,
        credential_pool,
        each_once,
        ignored_relay,
        is_unset,
        likely_variable,
        redact_for_display,
        redact_variable_name,
        resolved_or_skip,
        routes,
        severity_if_broken,
        variable,
    )
    from hermes_doctor.hermes.settings.credential_pool import Credential, strip_faults
    from hermes_doctor.hermes.settings.custom_providers import (
        ProviderEntry,
        entry_with_address,
        provider_entries,
        provider_entry,
        selectable_entries,
        to_plain_types,
    )
    from hermes_doctor.hermes.settings.document import Key, ResolvedValue, Source, Text
    from hermes_doctor.hermes.settings.misspellings import is_seller, openrouter_name, vendor_of
    from hermes_doctor.hermes.settings.resolved import Resolved, Route, SideTask
else:
    __getattr__, __all__ = import_on_first_use(
        __name__,
        {
            "hermes_doctor.backup.records.last_ask": "AskAttempt AskRecord",
            "hermes_doctor.diagnosis.probes.network.provider_trial": "Trial",
            "hermes_doctor.diagnosis.probes.provider_routes": "ConfiguredRoute RELAY_KEY "
            "credential_pool each_once ignored_relay is_unset likely_variable "
            "redact_for_display redact_variable_name resolved_or_skip routes "
            "severity_if_broken variable",
            "hermes_doctor.hermes.settings.credential_pool": "Credential strip_faults",
            "hermes_doctor.hermes.settings.custom_providers": "ProviderEntry entry_with_address "
            "provider_entries provider_entry selectable_entries to_plain_types",
            "hermes_doctor.hermes.settings.misspellings": "is_seller openrouter_name vendor_of",
            "hermes_doctor.hermes.settings.resolved": "Resolved Route SideTask",
            "hermes_doctor.hermes.settings.document": "Key ResolvedValue Source Text",
        },
    )
