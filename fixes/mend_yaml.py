"""Correct a known mistake that keeps config.yaml from parsing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="mend-yaml", codes=["CFG-YAML"], safety=Safety.CONFIRM)
def mend_yaml(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Correct the mistake in config.yaml so that it parses."""
    from hermes_doctor.api import ReplaceFile, yaml_mistake

    config = probes.config()
    if config is None or config.fault is None:
        return
    cause = yaml_mistake(config)
    if cause is None or cause.repaired is None:
        raise CannotFix(
            "The mistake in config.yaml is of an unknown kind. Correct the line by hand."
        )
    yield ReplaceFile(
        config.path,
        cause.repaired,
        why=cause.repair,
        expect=config.snapshot,
        before=config.data,
    )
