"""All that a check or a fix may import.

A check is a function that asks the probes one question and yields findings:

    @check(id="env-encoding", group="configuration", codes=["ENV-BOM"])
    def env_encoding(probes: Probes) -> Iterator[Finding]:
        \"\"\"Can Hermes read .env from its first line on?\"\"\"

A fix is a function that turns one finding into steps, writing nothing:

    @fix(id="rewrite-env", codes=["ENV-BOM"], safety=Safety.SAFE)
    def rewrite_env(probes: Probes, finding: Finding) -> Iterator[Step]:
        \"\"\"Rewrite .env as UTF-8 without a byte order mark.\"\"\"

A check that yields nothing found nothing wrong. With `needs="gateway"` it is skipped, and not even
loaded, unless a gateway runs; `plugins/needs.py` lists the needs. It raises `Skip(why)` if the
question does not apply for another reason, and raises or yields `CouldNotLook(why)` if there is no
answer. Anything else that it raises is reported as a crash, and the other checks go on. It reads
through `probes`, never with `open()`.

A finding has a `title` (the symptom), a `detail` (its effect, then its cause) and a `next` step.
Make them with `text("{platform} rejects the app secret", platform=label)`: whole sentences with
named values.

A fix yields `ReplaceSpan`, `ReplaceFile`, `ReplaceDatabase`, `MoveAside`, `Remove`, `SetMode`,
`SetOwner`, `GatewayStep` and others, and raises `CannotFix(why)` to decline. It imports them inside
its function, because the fixes of an operator's folder are all loaded for a report. Its `safety` is
`SAFE` (applied by `--apply`), `CONFIRM` (asks first) or `MANUAL` (only described). `then` names the
fix that comes next if this one is not enough. With `personal=True` it is applied only for the
person who is named, with `optional=True` only if its code is named. With `gives_up_data=True` it
says in `losses` what is lost, a watch never applies it, and `--yes` only if its code is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from hermes_doctor.home import CACHES, Home, loss
from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.message import ago, clock, count, duration, listed, sentences, shorten, text
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
from hermes_doctor.system.files import (
    Snapshot,
    list_folder as listing,
    moment,
    read_json,
    shown,
    size,
    snapshot,
)

# What most checks do not need is loaded when it is first used; see `__getattr__` below. Loading all
# of it costs `check` 52 ms more CPU. A name after `as` is the one that plugins have always used.
if TYPE_CHECKING:
    # -- The steps of a fix
    from hermes_doctor.steps.base import Step
    from hermes_doctor.steps.gateway import GatewayStep, GatewayControlProtocol as Service
    from hermes_doctor.steps.database import ReplaceDatabase, SaveLost
    from hermes_doctor.steps.files import (
        MoveAside,
        MoveLog,
        Remove,
        ReplaceFile,
        ReplaceSpan,
        SetMode,
        SetOwner,
    )
    from hermes_doctor.steps.free_space import FreeSpace
    from hermes_doctor.steps.machine import EnableLinger, EnableUnit, ResetFailed

    # -- Building blocks of fixes: each turns a finding into steps
    from hermes_doctor.gateway.control import gateway_control as gateway_service
    from hermes_doctor.knowledge.services import service_plan
    from hermes_doctor.planning.add_saved_rows import add_saved_rows
    from hermes_doctor.planning.add_unsaved_turns import add_retired_rows, add_unsaved_turns
    from hermes_doctor.planning.allow_user import admit_user, mirror_user
    from hermes_doctor.planning.finding_edits import apply_finding_edits as do_edits
    from hermes_doctor.planning.container_settings import change_container
    from hermes_doctor.planning.database_repair import (
        database_repair,
        start_empty,
        roll_back_transaction as take_back,
    )
    from hermes_doctor.sqlite.repairs.stuck_tasks import release_tasks as release_claims
    from hermes_doctor.sqlite.repairs.from_copy import restore_from_copy as bring_back
    from hermes_doctor.sqlite.repairs.indexes import compact
    from hermes_doctor.sqlite.repairs.responses import delete_bad_responses as evict
    from hermes_doctor.sqlite.repairs.rows import correct_rows as mend_rows
    from hermes_doctor.planning.deleted_logs import save_deleted_logs
    from hermes_doctor.planning.install_service import install_service as service_installation
    from hermes_doctor.planning.logs_set_aside import add_rows, set_log_aside
    from hermes_doctor.planning.pairing import approve_pairing, move_pairing, unlock_pairing
    from hermes_doctor.planning.setting_edits import (
        edit_config,
        edit_env,
        refuse_managed,
        restart_if_running as reload,
    )
    from hermes_doctor.planning.store_repair import (
        entry_lines,
        replace_store as replaced_store,
        repair_store as store_steps,
    )
    from hermes_doctor.provider_switch.plan import switch_steps
    from hermes_doctor.planning.unit_dropin import drop_in, service_limit
    from hermes_doctor.probes.database_users import LostFile, writers
    from hermes_doctor.probes.removable_files import backups_size
    from hermes_doctor.sqlite.completion import complete
    from hermes_doctor.sqlite.snapshot import set_aside_logs

    # -- Edits of config.yaml and .env
    from hermes_doctor.settings.edit.edits import (
        Assign,
        Drop,
        Edit,
        ReplaceLine as Mend,
        Put,
        Rename,
        Unset,
    )

    # -- Settings: what the gateway goes by, and what is wrong in them
    from hermes_doctor.probes.effective_settings import is_managed
    from hermes_doctor.probes.provider_routes import (
        RELAY_KEY,
        ConfiguredRoute as Way,
        each_once,
        ignored_relay,
        resolved_or_skip as configured,
        credential_pool,
        is_unset,
        likely_variable,
        redact_for_display as said,
        redact_variable_name as said_variable,
        severity_if_broken as users,
        variable,
        routes as ways,
    )
    from hermes_doctor.logs.secrets import redact_log_text as spoken
    from hermes_doctor.redaction import redact_name as masked_name
    from hermes_doctor.settings import (
        references,
        spelling,
        urls,
        wrong_shapes as shapes,
        wrong_types as kinds,
    )
    from hermes_doctor.settings.access import Access
    from hermes_doctor.settings.admission import PlatformAdmission as Entrance
    from hermes_doctor.settings.config_file import UNFOLDS
    from hermes_doctor.settings.config_version import config_version as age
    from hermes_doctor.settings.credential_pool import Credential as Entry
    from hermes_doctor.settings.deprecated import deprecated_settings as older_settings
    from hermes_doctor.settings.document import display_path as named
    from hermes_doctor.settings.model_vendors import openrouter_name, vendor_of
    from hermes_doctor.settings.env_parsers import line_of_expansion
    from hermes_doctor.settings.env_lines import (
        OddLine,
        differing_keys as differing,
        is_needed,
        lines_of,
        odd_lines,
        odd_ports,
        repeated_variables as repeated,
    )
    from hermes_doctor.settings.user_ids import is_id
    from hermes_doctor.settings.ignored_allowlists import ignored_allowlists as unheard
    from hermes_doctor.settings.ignored_settings import (
        IgnoredSetting as PassedOver,
        ignored_settings as passed_over,
        value_of,
    )
    from hermes_doctor.settings.inputs import SettingInputs as World
    from hermes_doctor.settings.key_state import strip_faults as mended
    from hermes_doctor.settings.lookalike_characters import lookalikes, without_blanks
    from hermes_doctor.settings.platform_block import Block
    from hermes_doctor.settings.platform_credentials import (
        NeededCredential as Need,
        PlatformSetup as Wanted,
        unknown_platforms,
        platform_setups as wanted,
    )
    from hermes_doctor.settings.platforms import Platform
    from hermes_doctor.settings.ports import (
        ListeningPort as Door,
        listening_ports as doors,
        usual_ports,
        inputs_of_home as world_of,
    )
    from hermes_doctor.settings.provider_entries import (
        ProviderEntry as Own,
        to_plain_types as bare,
        provider_entry as own_provider,
        entry_with_address as own_provider_at,
        selectable_entries as selectable_providers,
        provider_entries as own_providers,
    )
    from hermes_doctor.settings.references import UnresolvedReference as Unfilled
    from hermes_doctor.settings.resolved import Resolved, Route, SideTask
    from hermes_doctor.settings.shadowed import overridden_settings as shadowed
    from hermes_doctor.settings.sourced_text import ResolvedValue as Answer, Key, Source, Text
    from hermes_doctor.settings.spelling import is_seller
    from hermes_doctor.settings.unknown_keys import misspelt_keys as misspelt
    from hermes_doctor.settings.wrong_shapes import WrongShape as Misshapen
    from hermes_doctor.settings.wrong_types import WrongType as Odd
    from hermes_doctor.settings.yaml_mistakes import yaml_mistake

    # -- Other answers of the probes
    from hermes_doctor.installation.packages import Packages
    from hermes_doctor.installation.update_receipt import Receipt as UpdateReceipt
    from hermes_doctor.installation.update_run import UpdateRun
    from hermes_doctor.installation.virtualenv import Environments
    from hermes_doctor.model import Gateway
    from hermes_doctor.plugins.recorded_causes import RecordedCause, recorded_cause
    from hermes_doctor.probes.cron import CronJob as Job, UndeliverableTarget as Target
    from hermes_doctor.probes.last_log_lines import GatewayLogLine as Word
    from hermes_doctor.probes.links import PlatformConnections as Link
    from hermes_doctor.probes.network.provider_trial import Trial
    from hermes_doctor.probes.network.reach import HostResult as Reached
    from hermes_doctor.probes.refusals import Refusal
    from hermes_doctor.probes.earlier_platforms import PROGRAMS
    from hermes_doctor.probes.structure import Structure
    from hermes_doctor.records.last_ask import AskRecord, Attempt as AskAttempt
    from hermes_doctor.processes.connection import Connection
    from hermes_doctor.probes.compose import ComposeService
    from hermes_doctor.probes.next_start import NextStart
    from hermes_doctor.probes.other_gateways import OtherGateway
    from hermes_doctor.processes.process_stat import ProcessDetails as Vitals, start_moment
    from hermes_doctor.probes.unsaved_turns import KeptFile
    from hermes_doctor.processes.runtime_files import (
        GatewayLife as Life,
        PlatformState,
        Runtime,
        is_same_commit,
    )
    from hermes_doctor.sqlite.blueprint import Blueprint
    from hermes_doctor.sqlite.changed_parts import ChangedPart as Changed
    from hermes_doctor.backup.copy_content import (
        DAMAGED as DAMAGED_COPY,
        LOOKED as NO_COPY,
        evidence as copy_evidence,
    )
    from hermes_doctor.file_copies import DatabaseCopy
    from hermes_doctor.sqlite.condition import Condition
    from hermes_doctor.sqlite.first_page import FirstPageFault
    from hermes_doctor.sqlite.hot_journal import JournalVerdict as Cutoff
    from hermes_doctor.sqlite.missing_parts import MissingPart as Missing
    from hermes_doctor.sqlite.verdict import Damage
    from hermes_doctor.sqlite.wal import HEAD as LOG_HEAD
    from hermes_doctor.stores.pairing import Pairing, PairingRequest
    from hermes_doctor.stores.store_file import StoreFile
    from hermes_doctor.supervisors.find import Supervision
    from hermes_doctor.supervisors.unit import Unit
    from hermes_doctor.supervisors.unit_file import parse_time_span as seconds
    from hermes_doctor.system.space import Space, lacks_room

_found: dict[str, tuple[str, str]] = {}
_NOT_OURS = {"Iterable", "Iterator", "TYPE_CHECKING", "annotations"}


def __getattr__(name: str) -> object:
    """Load a name of the block above when it is first used."""
    import importlib

    if name == "__all__":
        return __dir__()
    place = _places().get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, original = place
    loaded = importlib.import_module(module)
    found = getattr(loaded, original, None)
    if found is None:
        found = importlib.import_module(f"{module}.{original}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Every name that a plugin may import, loaded or not."""
    names = {*globals(), *_places()} - _NOT_OURS
    return sorted(name for name in names if not name.startswith("_"))


def _places() -> dict[str, tuple[str, str]]:
    """Where each name of the block is defined; read from this file, so that it is listed once.

    Reading the lines takes 5 ms less than letting Python parse the file.
    """
    if not _found:
        with open(__file__, encoding="utf-8") as file:
            found = dict(_imports_for_type_checking(file))
        _found.update(found)  # in one step: another thread must not see a half-filled table
    return _found


def _imports_for_type_checking(lines: Iterable[str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each name that the block `if TYPE_CHECKING` imports, with its module and its origin."""
    inside, module = False, ""
    for line in lines:
        if not inside:
            inside = line.startswith("if TYPE_CHECKING:")
            continue
        if not line.startswith((" ", "\n")):
            return
        words = line.partition("#")[0].strip()
        if words.startswith("from "):
            module, _, words = words.removeprefix("from ").partition(" import ")
        for name in words.strip("()").split(","):
            original, _, alias = name.strip().partition(" as ")
            if original:
                yield alias or original, (module, original)
