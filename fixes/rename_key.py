"""Rename a key of config.yaml to the name that Hermes reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Rename, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step

_READ_AT_EVERY_MESSAGE = ("model", "providers", "custom_providers")


@fix(
    id="rename-key",
    codes=["CFG-UNKNOWN-KEY", "CFG-IGNORED", "CFG-ALLOWLIST-KEY"],
    safety=Safety.CONFIRM,
)
def rename_key(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Rename the key in config.yaml; keep its value."""
    from hermes_doctor.api import edit_config, reload

    path, new = finding.data["path"], finding.data["new"]
    yield from edit_config(probes, f"rename it to {new}, which Hermes reads", Rename(path, new))
    yield from reload(probes, "model" if path[0] in _READ_AT_EVERY_MESSAGE else "platform")
