"""Check that the installed release has the adapter and the library of each configured platform."""

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
    snapshot,
    text,
    unknown_platforms,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Packages, Platform

_EXTRAS = {
    "lark_oapi": "feishu",
    "dingtalk_stream": "dingtalk",
    "mautrix": "matrix",
    "microsoft_teams": "teams",
}
"""The extra of Hermes' package that installs a library; the others are in `messaging`."""
_OFF = "HERMES_DISABLE_LAZY_INSTALLS"
_TARGET = "HERMES_LAZY_INSTALL_TARGET"


@check(
    id="platform-adapters",
    group="platforms",
    codes=["PLATFORM-DEPS", "PLUGIN-NOT-REGISTERED"],
    by_release=True,
)
def platform_adapters(probes: Probes) -> Iterator[Finding]:
    """Can the installed Hermes load every platform that is set up?"""
    found = probes.installation()
    if found is None:
        raise Skip("no Hermes is found")
    yield from _unknown(probes, found.version)
    if probes.gateways():
        return  # a running gateway reports what it has loaded
    packages = probes.packages()
    if packages is None or "gateway" not in packages.names:
        raise Skip("the files of Hermes are not in the environment that it runs from")
    for platform in probes.platforms():
        why = _not_loaded(probes, packages, platform)
        if why:
            cures = [one.cure for one in probes.breaks() if one.platform == platform.name]
            yield _unregistered(platform, why, cures)
        elif platform.library and not packages.has(platform.library):
            yield from _missing(probes, packages, platform, found.version)


def _unknown(probes: Probes, version: str) -> Iterator[Finding]:
    """Report platforms that another release has but this one does not."""
    for one in unknown_platforms(probes.resolved().world):
        yield Finding(
            code="PLUGIN-NOT-REGISTERED",
            severity=Severity.WARNING,
            title=text("Hermes {version} has no {label}", version=version, label=one.label),
            subject=one.name,
            detail=(
                text(
                    "Its variables are set, and nothing reads them: {label} is there "
                    "from {since} on. Update Hermes (`hermes update`), or take the "
                    "variables out.",
                    label=one.label,
                    since=one.since,
                )
            ),
            evidence=(
                Evidence(one.place, f"{one.variable} is set"),
                Evidence(f"Hermes {version}", f"no {one.name}"),
            ),
        )


def _not_loaded(probes: Probes, packages: Packages, platform: Platform) -> Evidence | None:
    """Return what keeps Hermes from loading the plugin of a platform; None if nothing does."""
    plugin = packages.folder / "plugins" / "platforms" / platform.name
    own = packages.folder / "gateway" / "platforms"
    built_in = (own / f"{platform.name}.py", own / platform.name)
    if snapshot(plugin).kind == "absent" or any(snapshot(p).kind != "absent" for p in built_in):
        return None
    if snapshot(plugin / "plugin.yaml").kind == "absent":
        return Evidence(str(plugin), "holds no plugin.yaml, so Hermes does not see it")
    world = probes.resolved().world
    disabled = world.raw.get("plugins")
    names = disabled.get("disabled") if isinstance(disabled, dict) else None
    for name in names if isinstance(names, list) else ():
        if name in (f"{platform.name}-platform", f"platforms/{platform.name}"):
            place = world.source(name, "plugins", "disabled").place
            return Evidence(place, f"plugins.disabled names {name}")
    return None


def _unregistered(platform: Platform, why: Evidence, cures: list[str]) -> Finding:
    return Finding(
        code="PLUGIN-NOT-REGISTERED",
        severity=Severity.ERROR,
        title=text("{platform} is set up, and Hermes does not load it", platform=platform.label),
        subject=platform.name,
        detail=(
            "Take it out of plugins.disabled. "
            if "disabled" in why.what
            else text(
                "The package was made without it. {cures} ",
                cures=cures[0] if cures else "Update Hermes, or install it by git.",
            )
        )
        + "Then restart the gateway.",
        evidence=(Evidence(platform.because, "switches it on"), why),
    )


def _missing(
    probes: Probes, packages: Packages, platform: Platform, version: str
) -> Iterator[Finding]:
    library = platform.library or ""
    world = probes.resolved().world
    if not packages.alone or world.getenv(_TARGET):
        return  # the library may be installed elsewhere
    lazy = _is_lazy(probes, packages, platform)
    extra = _EXTRAS.get(library, "messaging")
    python = f"{packages.folder.parents[2]}/bin/python"
    advice = (
        "Hermes installs it at the first start, for which it needs PyPI."
        if lazy
        else "Install it into the environment of the gateway and restart the gateway: "
        f"{python} -m pip install 'hermes-agent[{extra}]=={version}'"
    )
    yield Finding(
        code="PLATFORM-DEPS",
        severity=Severity.INFO if lazy else Severity.ERROR,
        title=text(
            "{platform} needs {library}, which is not installed",
            platform=platform.label,
            library=library,
        )
        + (" yet" if lazy else ""),
        subject=platform.name,
        detail=advice,
        evidence=(
            Evidence(platform.because, "switches it on"),
            Evidence(str(packages.folder), f"no {library}"),
        ),
    )


def _is_lazy(probes: Probes, packages: Packages, platform: Platform) -> bool:
    """Return whether this release installs the library itself and is allowed to."""
    world = probes.resolved().world
    security = world.raw.get("security")
    allowed = security.get("allow_lazy_installs", True) if isinstance(security, dict) else True
    if not allowed or world.getenv(_OFF) == "1":
        return False
    listed = packages.text("tools", "lazy_deps.py") or ""
    return f'"platform.{platform.name}"' in listed
