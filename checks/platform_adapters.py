"""Check that the installed release has the adapter and the library of each configured platform."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, snapshot, text
from hermes_doctor.api.gateway import Packages
from hermes_doctor.api.settings import Platform, unknown_platforms

_OFF = "HERMES_DISABLE_LAZY_INSTALLS"
_PLUGINS_SINCE = {
    "discord": (0, 15), "mattermost": (0, 15), "ntfy": (0, 15), "homeassistant": (0, 17),
    "dingtalk": (0, 18), "email": (0, 18), "feishu": (0, 18), "matrix": (0, 18), "slack": (0, 18),
    "sms": (0, 18), "telegram": (0, 18), "wecom": (0, 18), "whatsapp": (0, 18),
}  # fmt: skip
"""The release from which on a plugin, which can be disabled, has the adapter of a platform."""
_TARGET = "HERMES_LAZY_INSTALL_TARGET"


@check(
    id="platform-adapters",
    group="platforms",
    codes=["PLATFORM-DEPS", "PLUGIN-NOT-REGISTERED"],
    by_release=True,
    needs="hermes",
)
def platform_adapters(probes: Probes) -> Iterator[Finding]:
    """Can Hermes load every platform that is set up?"""
    installation = probes.hermes.installation()
    if installation is None:
        raise Skip("no Hermes found")
    yield from _unknown(probes, installation.version)
    if probes.gateway.running():
        return  # a running gateway reports what it has loaded
    packages = probes.hermes.packages()
    if packages is None or "gateway" not in packages.names:
        yield from _disabled_ones(probes, installation.version)
        raise Skip("the files of Hermes are not in its Python environment")
    for platform in probes.settings.platforms():
        why = _not_loaded(probes, packages, platform)
        if why:
            cures = [one.cure for one in probes.settings.breaks() if one.platform == platform.name]
            yield _unregistered(platform, why, cures)
        elif platform.library and not packages.has(platform.library):
            yield from _missing(probes, packages, platform, installation.version)


def _unknown(probes: Probes, version: str) -> Iterator[Finding]:
    """Report platforms that another release has but this one does not."""
    for unknown_platform in unknown_platforms(probes.settings.resolved().world):
        yield Finding(
            code="PLUGIN-NOT-REGISTERED",
            severity=Severity.ERROR,
            title=text(
                "Hermes {version} does not support {platform}",
                version=version,
                platform=unknown_platform.label,
            ),
            subject=unknown_platform.name,
            detail=text(
                "Nobody on {platform} gets an answer. Hermes has supported it since {release}.",
                platform=unknown_platform.label,
                release=unknown_platform.since,
            ),
            evidence=(
                Evidence(unknown_platform.place, f"{unknown_platform.variable} is set"),
                Evidence(f"Hermes {version}", f"no {unknown_platform.name}"),
            ),
            next=text(
                "Run `hermes update`, or remove the variables of {platform}.",
                platform=unknown_platform.label,
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
        return Evidence(str(plugin), "no plugin.yaml, so Hermes does not find the plugin")
    return _disabled(probes, platform)


def _disabled_ones(probes: Probes, version: str) -> Iterator[Finding]:
    """Report platforms whose plugins are disabled, where the files of Hermes cannot be read."""
    release = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    for platform in probes.settings.platforms():
        since = _PLUGINS_SINCE.get(platform.name)
        why = _disabled(probes, platform) if since and release >= since else None
        if why:
            yield _unregistered(platform, why, [])


def _disabled(probes: Probes, platform: Platform) -> Evidence | None:
    """Return the entry of plugins.disabled that names the plugin of a platform."""
    world = probes.settings.resolved().world
    disabled = world.raw.get("plugins")
    names = disabled.get("disabled") if isinstance(disabled, dict) else None
    for name in names if isinstance(names, list) else ():
        if name in (f"{platform.name}-platform", f"platforms/{platform.name}"):
            place = world.source(name, "plugins", "disabled").place
            return Evidence(place, f"plugins.disabled: {name}")
    return None


def _unregistered(platform: Platform, why: Evidence, cures: list[str]) -> Finding:
    disabled = why.what.startswith("plugins.disabled")
    return Finding(
        code="PLUGIN-NOT-REGISTERED",
        severity=Severity.ERROR,
        title=text("Hermes does not load {platform}", platform=platform.label),
        subject=platform.name,
        detail=(
            text(
                "Nobody on {platform} gets an answer. Its plugin is disabled.",
                platform=platform.label,
            )
            if disabled
            else text(
                "Nobody on {platform} gets an answer. This package of Hermes lacks its plugin.",
                platform=platform.label,
            )
        ),
        evidence=(Evidence(platform.because, f"sets up {platform.label}"), why),
        next=(
            "Remove it from plugins.disabled, then restart the gateway."
            if disabled
            else cures[0]
            if cures
            else "Update Hermes, or install it with git, then restart the gateway."
        ),
    )


def _missing(
    probes: Probes, packages: Packages, platform: Platform, version: str
) -> Iterator[Finding]:
    library = platform.library or ""
    world = probes.settings.resolved().world
    if not packages.alone or world.getenv(_TARGET):
        return  # the library may be installed elsewhere
    lazy = _is_lazy(probes, packages, platform)
    yield Finding(
        code="PLATFORM-DEPS",
        severity=Severity.ERROR,
        title=text(
            "{platform}: the library {library} is missing",
            platform=platform.label,
            library=library,
        ),
        subject=platform.name,
        detail=(
            text(
                "Nobody on {platform} gets an answer without it. Hermes tries to install it at "
                "its next start, which needs access to PyPI.",
                platform=platform.label,
            )
            if lazy
            else text(
                "Nobody on {platform} gets an answer: Hermes cannot load it without the library.",
                platform=platform.label,
            )
        ),
        evidence=(
            Evidence(platform.because, f"sets up {platform.label}"),
            Evidence(str(packages.folder), f"no {library}"),
        ),
        next=text(
            "Run `{command}`, then restart the gateway.",
            command=packages.install_command(library, version),
        ),
    )


def _is_lazy(probes: Probes, packages: Packages, platform: Platform) -> bool:
    """Return whether this release installs the library itself and is allowed to."""
    world = probes.settings.resolved().world
    security = world.raw.get("security")
    allowed = security.get("allow_lazy_installs", True) if isinstance(security, dict) else True
    if not allowed or world.getenv(_OFF) == "1":
        return False
    listed = packages.text("tools", "lazy_deps.py") or ""
    return f'"platform.{platform.name}"' in listed
