"""Check that the model of each side task has a provider that Hermes can use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    configured,
    said,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import SideTask

_TEXT_ONLY = ("deepseek-chat", "deepseek-reasoner", "deepseek-v3", "deepseek-r1")
"""The beginnings of models that never take images, whatever provider serves them."""
_LOGINS = ("anthropic", "copilot", "copilot-acp", "lmstudio", "bedrock", "vertex", "azure-foundry")
"""Providers whose login may be outside the home, or that need no key."""


@check(id="side-models", group="configuration", codes=["CFG-MODEL-AUX"], by_release=True)
def side_models(probes: Probes) -> Iterator[Finding]:
    """Can the model of every side task do its task?"""
    tasks = [one for one in configured(probes).tasks if one.provider.source.file]
    if not tasks:
        raise Skip("no side task has its own settings")
    for task in tasks:
        model = (task.model.value or "" if task.model else "").rpartition("/")[2].lower()
        if task.trouble and task.provider.value not in _LOGINS:
            yield _unusable(task, task.trouble.kind)
        elif task.name == "vision" and model.startswith(_TEXT_ONLY):
            yield Finding(
                code="CFG-MODEL-AUX",
                severity=Severity.WARNING,
                title=text("the model for pictures takes only text: {model}", model=model[:17]),
                subject="auxiliary.vision",
                detail="The bot answers text, but every picture fails.",
                evidence=(
                    Evidence(task.provider.source.place, text("model: {model}", model=said(model))),
                ),
                next="Set auxiliary.vision.model in config.yaml to a model that takes images.",
            )


def _unusable(task: SideTask, kind: str) -> Finding:
    provider = task.provider.value or ""
    return Finding(
        code="CFG-MODEL-AUX",
        severity=Severity.WARNING,
        title=(
            text("unknown provider for the side task {task}", task=said(task.name))
            if kind in ("unknown", "disabled")
            else text("the side task {task} has no usable login", task=said(task.name))
        ),
        subject=f"auxiliary.{task.name}",
        detail=(
            "The bot answers, but this task fails or uses another provider. A service that "
            "hermes-doctor cannot read may set the key."
        ),
        evidence=(
            Evidence(task.provider.source.place, f"{said(task.name)}.provider: {said(provider)}"),
        ),
        next=text(
            "Set the key of the provider in .env, or another auxiliary.{task}.provider.",
            task=said(task.name),
        ),
    )
