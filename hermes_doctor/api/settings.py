"""What the settings say, and what is wrong in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import import_on_first_use

if TYPE_CHECKING:
    from hermes_doctor.hermes.settings import misspellings, provider_mistakes, urls
    from hermes_doctor.hermes.settings.admission import PlatformAdmission, is_id
    from hermes_doctor.hermes.settings.config_yaml import UNFOLDS
    from hermes_doctor.hermes.settings.document import display_path
    from hermes_doctor.hermes.settings.env_file import line_of_expansion
    from hermes_doctor.hermes.settings.env_lines import (
        OddLine,
        differing_keys,
        is_needed,
        lines_of,
        odd_lines,
        odd_ports,
        repeated_variables,
    )
    from hermes_doctor.hermes.settings.ineffective_settings import (
        IgnoredSetting,
        config_version,
        deprecated_settings,
        ignored_allowlists,
        ignored_settings,
        overridden_settings,
        referenced_value,
    )
    from hermes_doctor.hermes.settings.inputs import SettingInputs, whole_number
    from hermes_doctor.hermes.settings.misspellings import misspelt_keys
    from hermes_doctor.hermes.settings.platform_setup import (
        ListeningPort,
        NeededCredential,
        PlatformBlock,
        PlatformSetup,
        inputs_of_home,
        listening_ports,
        platform_setups,
        unknown_platforms,
        usual_ports,
    )
    from hermes_doctor.hermes.settings.platforms import Access, Platform
    from hermes_doctor.hermes.settings.provider_mistakes import (
        UnresolvedReference,
        WrongShape,
        WrongType,
    )
    from hermes_doctor.hermes.settings.yaml_mistakes import lookalikes, without_blanks, yaml_mistake
else:
    __getattr__, __all__ = import_on_first_use(
        __name__,
        {
            "hermes_doctor.hermes.settings": "misspellings provider_mistakes provider_mistakes "
            "provider_mistakes urls",
            "hermes_doctor.hermes.settings.platforms": "Access Platform",
            "hermes_doctor.hermes.settings.admission": "PlatformAdmission is_id",
            "hermes_doctor.hermes.settings.config_yaml": "UNFOLDS",
            "hermes_doctor.hermes.settings.document": "display_path",
            "hermes_doctor.hermes.settings.env_file": "line_of_expansion",
            "hermes_doctor.hermes.settings.env_lines": "OddLine differing_keys is_needed lines_of "
            "odd_lines odd_ports repeated_variables",
            "hermes_doctor.hermes.settings.ineffective_settings": "IgnoredSetting config_version "
            "deprecated_settings ignored_allowlists ignored_settings overridden_settings "
            "referenced_value",
            "hermes_doctor.hermes.settings.inputs": "SettingInputs whole_number",
            "hermes_doctor.hermes.settings.misspellings": "misspelt_keys",
            "hermes_doctor.hermes.settings.platform_setup": "ListeningPort NeededCredential "
            "PlatformBlock PlatformSetup inputs_of_home listening_ports platform_setups "
            "unknown_platforms usual_ports",
            "hermes_doctor.hermes.settings.provider_mistakes": "UnresolvedReference WrongShape "
            "WrongType",
            "hermes_doctor.hermes.settings.yaml_mistakes": "lookalikes without_blanks yaml_mistake",
        },
    )
