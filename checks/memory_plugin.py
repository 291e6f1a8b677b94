"""Check that the memory plugin in config.yaml is installed; Hermes logs nothing if it is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    pattern,
    shorten,
    spoken,
    text,
)

_BUNDLED = (
    "byterover",
    "hindsight",
    "holographic",
    "honcho",
    "mem0",
    "openviking",
    "retaindb",
    "supermemory",
)
"""The plugins that every release from 0.13.0 to 0.20.5 contains."""
_NOTHING = ("builtin", "built-in", "default", "none", "off", "false")
"""Words for the memory that Hermes has without a plugin."""
_NAME = pattern(r"[\w.-]{1,60}")
_POINT = "[hermes_agent.memory_providers]"


@check(id="memory-plugin", group="configuration", codes=["MEM-PROVIDER"], by_release=True)
def memory_plugin(probes: Probes) -> Iterator[Finding]:
    """Is the memory plugin in config.yaml installed?"""
    world = probes.resolved().world
    memory = world.raw.get("memory")
    said = memory.get("provider") if isinstance(memory, dict) else None
    name = said.strip() if isinstance(said, str) else ""
    if not name or name.lower() in _NOTHING:
        raise Skip("no memory plugin is set")
    if name in _BUNDLED or not _NAME.fullmatch(name):
        return
    by_package = world.release.since(0, 20, 1)
    if world.getenv("HERMES_ENABLE_PROJECT_PLUGINS") or _is_installed(probes, name, by_package):
        return
    shown = shorten(spoken(name), 23)
    yield Finding(
        code="MEM-PROVIDER",
        severity=Severity.WARNING,
        title=text('the memory plugin "{name}" is not installed', name=shown),
        subject=name,
        detail="The bot answers, but stores and finds nothing there. Hermes does not log this.",
        evidence=(
            Evidence(
                world.document.source("memory", "provider").place,
                text("memory.provider: {name}", name=shown),
            ),
        ),
        next=text(
            "Install it into {folder}, or choose another with `hermes memory setup`.",
            folder=f"plugins/{spoken(name)}",
        ),
        data={"name": name},
    )


def _is_installed(probes: Probes, name: str, by_package: bool) -> bool:
    """Whether Hermes finds the plugin: in the home, in its own code, or as a Python package.

    Also if that cannot be known.
    """
    found = probes.installation()
    if found is None:
        return True
    packages = probes.packages()
    places = [probes.home / "plugins", found.where / "plugins/memory"]
    places += [packages.folder / "plugins/memory"] if packages else []
    if any((Path(place) / name / "__init__.py").exists() for place in places):
        return True
    if packages is None or not by_package:
        return by_package
    infos = (one for one in packages.names if one.endswith(".dist-info"))
    return any(_names(packages.text(one, "entry_points.txt") or "", name) for one in infos)


def _names(points: str, name: str) -> bool:
    """Whether a list of entry points contains a memory plugin of this name."""
    lines = points.partition(_POINT)[2].partition("\n[")[0].splitlines()
    return any(line.partition("=")[0].strip() == name for line in lines)
