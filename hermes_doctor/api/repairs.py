"""Functions that turn a finding into steps, or repair a database copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import import_on_first_use

if TYPE_CHECKING:
    from hermes_doctor.backup.vault.copy_content import DAMAGED_COPY, NO_COPY, copy_evidence
    from hermes_doctor.hermes.knowledge.releases import service_plan
    from hermes_doctor.operations.provider_switch.plan import switch_steps
    from hermes_doctor.repair.gateway.control import gateway_control
    from hermes_doctor.repair.planning.database_repair import (
        database_repair,
        roll_back_transaction,
        start_empty,
    )
    from hermes_doctor.repair.planning.deleted_logs import save_deleted_logs
    from hermes_doctor.repair.planning.install_service import install_service
    from hermes_doctor.repair.planning.logs_set_aside import add_rows, set_log_aside
    from hermes_doctor.repair.planning.missing_messages import (
        add_retired_rows,
        add_saved_rows,
        add_unsaved_turns,
    )
    from hermes_doctor.repair.planning.service_settings import (
        change_container,
        drop_in,
        service_limit,
    )
    from hermes_doctor.repair.planning.setting_edits import (
        apply_finding_edits,
        edit_config,
        edit_env,
        refuse_managed,
        restart_if_running,
    )
    from hermes_doctor.repair.planning.store_repair import entry_lines, repair_store, replace_store
    from hermes_doctor.repair.planning.user_access import (
        admit_user,
        approve_pairing,
        mirror_user,
        move_pairing,
        unlock_pairing,
    )
    from hermes_doctor.sqlite.completion import complete
    from hermes_doctor.sqlite.repairs.in_place import (
        compact,
        correct_rows,
        delete_bad_responses,
        release_tasks,
    )
    from hermes_doctor.sqlite.repairs.rescue import restore_from_copy
else:
    __getattr__, __all__ = import_on_first_use(
        __name__,
        {
            "hermes_doctor.backup.vault.copy_content": "DAMAGED_COPY NO_COPY copy_evidence",
            "hermes_doctor.hermes.knowledge.releases": "service_plan",
            "hermes_doctor.operations.provider_switch.plan": "switch_steps",
            "hermes_doctor.repair.gateway.control": "gateway_control",
            "hermes_doctor.repair.planning.missing_messages": "add_retired_rows add_saved_rows "
            "add_unsaved_turns",
            "hermes_doctor.repair.planning.user_access": "admit_user approve_pairing mirror_user "
            "move_pairing unlock_pairing",
            "hermes_doctor.repair.planning.service_settings": "change_container drop_in "
            "service_limit",
            "hermes_doctor.repair.planning.database_repair": "database_repair "
            "roll_back_transaction start_empty",
            "hermes_doctor.repair.planning.deleted_logs": "save_deleted_logs",
            "hermes_doctor.repair.planning.install_service": "install_service",
            "hermes_doctor.repair.planning.logs_set_aside": "add_rows set_log_aside",
            "hermes_doctor.repair.planning.setting_edits": "apply_finding_edits edit_config "
            "edit_env refuse_managed restart_if_running",
            "hermes_doctor.repair.planning.store_repair": "entry_lines repair_store replace_store",
            "hermes_doctor.sqlite.completion": "complete",
            "hermes_doctor.sqlite.repairs.rescue": "restore_from_copy",
            "hermes_doctor.sqlite.repairs.in_place": "compact correct_rows delete_bad_responses"
            " release_tasks",
        },
    )
