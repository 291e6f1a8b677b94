"""Correct the settings that choose provider, model, address and key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hermes_doctor.api import Finding, Fix, Probes, Safety, Step, fix
from hermes_doctor.api.edits import Drop, Put, Rename, Unset
from hermes_doctor.api.repairs import apply_finding_edits, switch_steps


def edit_fix(
    id: str, codes: Sequence[str], title: str, why: str, safety: Safety = Safety.CONFIRM
) -> Fix:
    """Declare a fix that makes the edits which its finding names."""

    def plan(probes: Probes, finding: Finding) -> Iterator[Step]:
        yield from apply_finding_edits(probes, finding, why)

    return Fix(id, tuple(codes), safety, title, plan)


correct_provider = edit_fix(
    "correct-provider",
    ["CFG-PROVIDER-UNKNOWN", "CFG-BUILTIN-NAME", "CFG-FALLBACK-DEAD"],
    "Correct the name of the provider, or enable it.",
    why="correct the provider",
)
drop_variable = edit_fix(
    "drop-variable",
    ["ENV-IGNORED"],
    "Remove a variable from .env that Hermes ignores.",
    why="remove it, because Hermes uses config.yaml",
)
name_key = edit_fix(
    "name-key",
    ["PROVIDER-KEY", "CRED-STRANGER"],
    "Name the variable that has the key of the provider.",
    why="name the variable with the key",
)
rewrite_setting = edit_fix(
    "rewrite-setting",
    [
        "CFG-KEY-ENV",
        "CFG-UNRESOLVED",
        "CFG-TYPE",
        "CFG-CONTEXT-LENGTH",
        "CFG-PROVIDERS-SHAPE",
        "CFG-FALLBACK-STR",
    ],
    "Write the setting in the form that Hermes reads.",
    why="use the form that Hermes reads",
    safety=Safety.SAFE,
)
set_model = edit_fix(
    "set-model", ["CFG-MODEL"], "Set the model, or its successor.", why="set the model"
)
strip_prefix = edit_fix(
    "strip-prefix",
    ["CFG-MODEL-PREFIX"],
    "Remove the provider from the name of the model.",
    why="remove the provider from the name of the model",
)
use_own_provider = edit_fix(
    "use-own-provider",
    ["CFG-PROVIDER-LEFT"],
    "Use the provider that the model name contains.",
    why="set the provider and remove it from the name of the model",
    safety=Safety.SAFE,
)


@fix(id="mend-address", codes=["CFG-BASE-URL"], safety=Safety.CONFIRM)
def mend_address(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Correct the address of the model provider."""
    what = "correct the address"
    for edit in finding.data["edits"]:
        if isinstance(edit, Put) and edit.value == "custom":
            what = "set the provider to custom, so that Hermes uses your address"
        elif isinstance(edit, Rename):
            what = "give the address the name that Hermes reads"
        elif isinstance(edit, Drop):
            what = "delete the address that Hermes ignores"
        elif isinstance(edit, Unset):
            what = "remove the variable that overrides your address"
    yield from apply_finding_edits(probes, finding, what)


@fix(id="use-configured-provider", codes=["CFG-PROVIDER-LEFT"], safety=Safety.CONFIRM)
def use_configured_provider(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Use the provider that config.yaml already describes."""
    yield from switch_steps(probes, finding.data["provider"], finding.data["model"])
