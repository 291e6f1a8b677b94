"""The condition and structure of databases, and who uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import import_on_first_use

if TYPE_CHECKING:
    from hermes_doctor.core.file_copies import DatabaseCopy
    from hermes_doctor.diagnosis.probes.database_users import LostFile, writers
    from hermes_doctor.diagnosis.probes.databases import Structure
    from hermes_doctor.sqlite.blueprint import Blueprint
    from hermes_doctor.sqlite.examine.condition import Condition, JournalVerdict
    from hermes_doctor.sqlite.examine.damage import Damage
    from hermes_doctor.sqlite.examine.first_page import FirstPageFault
    from hermes_doctor.sqlite.files import set_aside_logs
    from hermes_doctor.sqlite.schema import DANGLING_CONVERSATIONS, UNREADABLE_RESPONSES
    from hermes_doctor.sqlite.schema_differences import ChangedPart, MissingPart
    from hermes_doctor.sqlite.wal import LOG_HEAD
else:
    __getattr__, __all__ = import_on_first_use(
        __name__,
        {
            "hermes_doctor.core.file_copies": "DatabaseCopy",
            "hermes_doctor.diagnosis.probes.database_users": "LostFile writers",
            "hermes_doctor.diagnosis.probes.databases": "Structure",
            "hermes_doctor.sqlite.blueprint": "Blueprint",
            "hermes_doctor.sqlite.examine.condition": "Condition JournalVerdict",
            "hermes_doctor.sqlite.examine.damage": "Damage",
            "hermes_doctor.sqlite.examine.first_page": "FirstPageFault",
            "hermes_doctor.sqlite.schema": "DANGLING_CONVERSATIONS UNREADABLE_RESPONSES",
            "hermes_doctor.sqlite.schema_differences": "ChangedPart MissingPart",
            "hermes_doctor.sqlite.files": "set_aside_logs",
            "hermes_doctor.sqlite.wal": "LOG_HEAD",
        },
    )
