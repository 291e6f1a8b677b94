"""All that a check or a fix may import.

A check is a function that asks the probes one question and yields findings:

    @check(id="env-encoding", group="configuration", codes=["ENV-BOM"])
    def env_encoding(probes: Probes) -> Iterator[Finding]:
        \"\"\"Can Hermes read .env from its first line on?\"\"\"

A fix is a function that turns one finding into steps, writing nothing:

    @fix(id="rewrite-env", codes=["ENV-BOM"], safety=Safety.SAFE)
    def rewrite_env(probes: Probes, finding: Finding) -> Iterator[Step]:
        \"\"\"Rewrite .env as UTF-8 without a byte order mark.\"\"\"
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from hermes_doctor.home import CACHES, Home, loss
from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.model import (
    CannotFix,
    CouldNotLook,
    Evidence,
    Finding,
    Partly,
    Safety,
    Severity,
    Skip,
)
from hermes_doctor.plugins.declare import Check, Fix, check, fix
from hermes_doctor.probes.probes import Probes
from hermes_doctor.sqlite import responses
from hermes_doctor.system.files import Snapshot, listing, read_json, shown, size, snapshot

if TYPE_CHECKING:
    from hermes_doctor.gateway.control import gateway_service
    from hermes_doctor.installation.packages import Packages
    from hermes_doctor.installation.virtualenv import Environments
    from hermes_doctor.knowledge.services import service_plan
    from hermes_doctor.model import Gateway
    from hermes_doctor.planning.add_saved_rows import add_saved_rows
    from hermes_doctor.planning.allow_user import admit_user, mirror_user
    from hermes_doctor.planning.carried_edits import do_edits
    from hermes_doctor.planning.database_repair import (
        bring_back,
        compact,
        database_repair,
        evict,
        mend_rows,
        release_claims,
        take_back,
    )
    from hermes_doctor.planning.deleted_logs import save_deleted_logs
    from hermes_doctor.planning.install_service import service_installation
    from hermes_doctor.planning.logs_set_aside import add_rows, set_log_aside
    from hermes_doctor.planning.pairing import approve_pairing, move_pairing, unlock_pairing
    from hermes_doctor.planning.setting_edits import edit_config, edit_env, refuse_managed, reload
    from hermes_doctor.planning.store_repair import entry_lines, replaced_store, store_steps
    from hermes_doctor.planning.unit_dropin import drop_in, service_limit
    from hermes_doctor.probes.cron import Job, Target
    from hermes_doctor.probes.database_users import writers
    from hermes_doctor.probes.effective_settings import is_managed
    from hermes_doctor.probes.last_log_lines import Word
    from hermes_doctor.probes.links import Link
    from hermes_doctor.probes.network.provider_trial import Trial
    from hermes_doctor.probes.network.reach import Reached
    from hermes_doctor.probes.provider_routes import (
        Way,
        configured,
        credential_pool,
        is_unset,
        likely_variable,
        said,
        said_variable,
        users,
        variable,
        ways,
    )
    from hermes_doctor.probes.refusals import Refusal
    from hermes_doctor.probes.structure import Structure
    from hermes_doctor.processes.connection import Connection
    from hermes_doctor.processes.process_stat import Vitals
    from hermes_doctor.processes.runtime_files import Life, PlatformState, Runtime
    from hermes_doctor.redaction import masked_name, spoken
    from hermes_doctor.settings import references, spelling, urls, wrong_shapes, wrong_types
    from hermes_doctor.settings.access import Access
    from hermes_doctor.settings.admission import Entrance
    from hermes_doctor.settings.config_version import age
    from hermes_doctor.settings.credential_pool import Entry
    from hermes_doctor.settings.deprecated import older_settings
    from hermes_doctor.settings.document import named
    from hermes_doctor.settings.edit.edits import Assign, Drop, Edit, Mend, Put, Rename, Unset
    from hermes_doctor.settings.env_lines import (
        OddLine,
        differing,
        lines_of,
        odd_lines,
        odd_ports,
        repeated,
    )
    from hermes_doctor.settings.identity import is_id
    from hermes_doctor.settings.ignored_allowlists import unheard
    from hermes_doctor.settings.ignored_settings import PassedOver, passed_over, value_of
    from hermes_doctor.settings.inputs import World
    from hermes_doctor.settings.key_state import mended
    from hermes_doctor.settings.lookalike_characters import lookalikes, without_blanks
    from hermes_doctor.settings.platform_block import Block
    from hermes_doctor.settings.platform_credentials import Need, Wanted, unknown_platforms, wanted
    from hermes_doctor.settings.platforms import Platform
    from hermes_doctor.settings.ports import Door, doors, usual_ports, world_of
    from hermes_doctor.settings.provider_entries import Own, bare, own_provider, own_providers
    from hermes_doctor.settings.references import Unfilled
    from hermes_doctor.settings.resolved import Resolved, Route
    from hermes_doctor.settings.shadowed import shadowed
    from hermes_doctor.settings.sourced_text import Answer, Key, Source, Text
    from hermes_doctor.settings.spelling import is_seller
    from hermes_doctor.settings.unknown_keys import misspelt
    from hermes_doctor.settings.wrong_shapes import Misshapen
    from hermes_doctor.settings.wrong_types import Odd
    from hermes_doctor.sqlite.blueprint import Blueprint
    from hermes_doctor.sqlite.changed_parts import Changed
    from hermes_doctor.sqlite.completion import complete
    from hermes_doctor.sqlite.condition import Condition
    from hermes_doctor.sqlite.hot_journal import Cutoff
    from hermes_doctor.sqlite.missing_parts import Missing
    from hermes_doctor.sqlite.snapshot import set_aside_logs
    from hermes_doctor.sqlite.verdict import Damage
    from hermes_doctor.steps.base import (
        GatewayStep,
        MoveAside,
        MoveLog,
        Remove,
        ReplaceDatabase,
        ReplaceFile,
        ReplaceSpan,
        SaveLost,
        Service,
        SetMode,
        SetOwner,
        Step,
    )
    from hermes_doctor.steps.machine import EnableLinger, ResetFailed
    from hermes_doctor.stores.pairing import Pairing, PairingRequest
    from hermes_doctor.stores.store_file import StoreFile
    from hermes_doctor.supervisors.find import Supervision, Unit
    from hermes_doctor.supervisors.unit_file import seconds
    from hermes_doctor.system.space import Space

__all__ = [
    "CACHES",
    "Access",
    "Answer",
    "Assign",
    "Block",
    "Blueprint",
    "CannotFix",
    "Changed",
    "Check",
    "Condition",
    "Connection",
    "CouldNotLook",
    "Cutoff",
    "Damage",
    "Door",
    "Drop",
    "Edit",
    "EnableLinger",
    "Entrance",
    "Entry",
    "Environments",
    "Evidence",
    "Finding",
    "Fix",
    "Gateway",
    "GatewayStep",
    "Home",
    "Job",
    "Key",
    "Life",
    "Link",
    "Mend",
    "Misshapen",
    "Missing",
    "MoveAside",
    "MoveLog",
    "NamedTuple",
    "Need",
    "Odd",
    "OddLine",
    "Own",
    "Packages",
    "Pairing",
    "PairingRequest",
    "Partly",
    "PassedOver",
    "Platform",
    "PlatformState",
    "Probes",
    "Put",
    "Reached",
    "Refusal",
    "Remove",
    "Rename",
    "ReplaceDatabase",
    "ReplaceFile",
    "ReplaceSpan",
    "ResetFailed",
    "Resolved",
    "Route",
    "Runtime",
    "Safety",
    "SaveLost",
    "Service",
    "SetMode",
    "SetOwner",
    "Severity",
    "Skip",
    "Snapshot",
    "Source",
    "Space",
    "Step",
    "StoreFile",
    "Structure",
    "Supervision",
    "Target",
    "Text",
    "Trial",
    "Unfilled",
    "Unit",
    "Unset",
    "Vitals",
    "Wanted",
    "Way",
    "Word",
    "World",
    "add_rows",
    "add_saved_rows",
    "admit_user",
    "age",
    "approve_pairing",
    "bare",
    "bring_back",
    "check",
    "compact",
    "complete",
    "configured",
    "credential_pool",
    "database_repair",
    "differing",
    "do_edits",
    "doors",
    "drop_in",
    "edit_config",
    "edit_env",
    "entry_lines",
    "evict",
    "fix",
    "gateway_service",
    "is_id",
    "is_managed",
    "is_seller",
    "is_unset",
    "likely_variable",
    "lines_of",
    "listing",
    "lookalikes",
    "loss",
    "masked_name",
    "mend_rows",
    "mended",
    "mirror_user",
    "misspelt",
    "move_pairing",
    "named",
    "odd_lines",
    "odd_ports",
    "older_settings",
    "own_provider",
    "own_providers",
    "passed_over",
    "pattern",
    "read_json",
    "references",
    "refuse_managed",
    "release_claims",
    "reload",
    "repeated",
    "replaced_store",
    "responses",
    "said",
    "said_variable",
    "save_deleted_logs",
    "seconds",
    "service_installation",
    "service_limit",
    "service_plan",
    "set_aside_logs",
    "set_log_aside",
    "shadowed",
    "shown",
    "size",
    "snapshot",
    "spelling",
    "spoken",
    "store_steps",
    "take_back",
    "unheard",
    "unknown_platforms",
    "unlock_pairing",
    "urls",
    "users",
    "usual_ports",
    "value_of",
    "variable",
    "wanted",
    "ways",
    "without_blanks",
    "world_of",
    "writers",
    "wrong_shapes",
    "wrong_types",
]

_LATER = {
    "hermes_doctor.steps.machine": ("EnableLinger", "ResetFailed"),
    "hermes_doctor.planning.carried_edits": ("do_edits",),
    "hermes_doctor.settings.edit.edits": (
        "Assign",
        "Drop",
        "Edit",
        "Mend",
        "Put",
        "Rename",
        "Unset",
    ),
    "hermes_doctor.planning.allow_user": ("admit_user", "mirror_user"),
    "hermes_doctor.planning.pairing": ("approve_pairing", "move_pairing", "unlock_pairing"),
    "hermes_doctor.planning.setting_edits": ("edit_config", "edit_env", "refuse_managed", "reload"),
    "hermes_doctor.knowledge.services": ("service_plan",),
    "hermes_doctor.model": ("Gateway",),
    "hermes_doctor.probes.cron": ("Job", "Target"),
    "hermes_doctor.probes.last_log_lines": ("Word",),
    "hermes_doctor.probes.links": ("Link",),
    "hermes_doctor.redaction": (
        "masked_name",
        "spoken",
    ),
    "hermes_doctor.probes.database_users": ("writers",),
    "hermes_doctor.installation.packages": ("Packages",),
    "hermes_doctor.stores.pairing": ("Pairing", "PairingRequest"),
    "hermes_doctor.settings.platforms": ("Platform",),
    "hermes_doctor.probes.network.reach": ("Reached",),
    "hermes_doctor.probes.refusals": ("Refusal",),
    "hermes_doctor.processes.runtime_files": ("Life", "PlatformState", "Runtime"),
    "hermes_doctor.processes.sockets": ("Connection",),
    "hermes_doctor.settings.variables": ("is_managed",),
    "hermes_doctor.system.space": ("Space",),
    "hermes_doctor.stores.store_file": ("StoreFile",),
    "hermes_doctor.probes.structure": ("Structure",),
    "hermes_doctor.supervisors.find": ("Supervision", "Unit"),
    "hermes_doctor.supervisors.unit_file": ("seconds",),
    "hermes_doctor.installation.virtualenv": ("Environments",),
    "hermes_doctor.probes.network.provider_trial": ("Trial",),
    "hermes_doctor.processes.process_stat": ("Vitals",),
    "hermes_doctor.planning.add_saved_rows": ("add_saved_rows",),
    "hermes_doctor.planning.deleted_logs": ("save_deleted_logs",),
    "hermes_doctor.gateway.control": ("gateway_service",),
    "hermes_doctor.planning.unit_dropin": ("drop_in", "service_limit"),
    "hermes_doctor.planning.install_service": ("service_installation",),
    "hermes_doctor.settings.config_version": ("age",),
    "hermes_doctor.settings.ignored_allowlists": ("unheard",),
    "hermes_doctor.settings.document": ("named",),
    "hermes_doctor.settings.env_lines": (
        "OddLine",
        "differing",
        "lines_of",
        "odd_lines",
        "odd_ports",
        "repeated",
    ),
    "hermes_doctor.settings.unknown_keys": ("misspelt",),
    "hermes_doctor.settings.lookalike_characters": (
        "lookalikes",
        "without_blanks",
    ),
    "hermes_doctor.settings.shadowed": ("shadowed",),
    "hermes_doctor.settings.ignored_settings": (
        "PassedOver",
        "passed_over",
        "value_of",
    ),
    "hermes_doctor.settings.deprecated": ("older_settings",),
    "hermes_doctor.settings": ("wrong_types", "references", "wrong_shapes", "spelling", "urls"),
    "hermes_doctor.settings.access": ("Access",),
    "hermes_doctor.settings.platform_block": ("Block",),
    "hermes_doctor.settings.wrong_types": ("Odd",),
    "hermes_doctor.settings.platform_credentials": (
        "Need",
        "Wanted",
        "unknown_platforms",
        "wanted",
    ),
    "hermes_doctor.settings.provider_entries": ("Own", "bare", "own_provider", "own_providers"),
    "hermes_doctor.settings.credential_pool": ("Entry",),
    "hermes_doctor.settings.ports": ("Door", "doors", "usual_ports", "world_of"),
    "hermes_doctor.settings.references": ("Unfilled",),
    "hermes_doctor.settings.resolved": ("Resolved", "Route"),
    "hermes_doctor.settings.key_state": ("mended",),
    "hermes_doctor.settings.wrong_shapes": ("Misshapen",),
    "hermes_doctor.settings.spelling": ("is_seller",),
    "hermes_doctor.settings.sourced_text": ("Answer", "Key", "Source", "Text"),
    "hermes_doctor.probes.provider_routes": (
        "Way",
        "configured",
        "credential_pool",
        "is_unset",
        "likely_variable",
        "said",
        "said_variable",
        "users",
        "variable",
        "ways",
    ),
    "hermes_doctor.settings.inputs": ("World",),
    "hermes_doctor.settings.admission": ("Entrance",),
    "hermes_doctor.settings.identity": ("is_id",),
    "hermes_doctor.planning.logs_set_aside": ("add_rows", "set_log_aside"),
    "hermes_doctor.sqlite.snapshot": ("set_aside_logs",),
    "hermes_doctor.sqlite.blueprint": ("Blueprint",),
    "hermes_doctor.sqlite.completion": ("complete",),
    "hermes_doctor.sqlite.condition": ("Condition",),
    "hermes_doctor.sqlite.changed_parts": ("Changed",),
    "hermes_doctor.sqlite.hot_journal": ("Cutoff",),
    "hermes_doctor.sqlite.missing_parts": ("Missing",),
    "hermes_doctor.planning.database_repair": (
        "bring_back",
        "compact",
        "database_repair",
        "evict",
        "mend_rows",
        "release_claims",
        "take_back",
    ),
    "hermes_doctor.sqlite.verdict": ("Damage",),
    "hermes_doctor.steps.base": (
        "GatewayStep",
        "MoveAside",
        "MoveLog",
        "Remove",
        "ReplaceDatabase",
        "ReplaceFile",
        "ReplaceSpan",
        "SaveLost",
        "Service",
        "SetMode",
        "SetOwner",
        "Step",
    ),
    "hermes_doctor.planning.store_repair": ("entry_lines", "replaced_store", "store_steps"),
}
"""Names that are loaded when somebody first imports them from here.

A check imports at its top what the check of a healthy home loads anyway. A report with findings
loads every fix to name it, so a fix imports inside its function what only repairs need.
"""


def __getattr__(name: str) -> object:
    for module, names in _LATER.items():
        if name in names:
            loaded = importlib.import_module(module)
            if not hasattr(loaded, name):  # it is a module of this package
                importlib.import_module(f"{module}.{name}")
            found = globals()[name] = getattr(loaded, name)
            return found
    raise AttributeError(name)
