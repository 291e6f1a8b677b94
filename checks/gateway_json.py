"""Check for an old gateway.json that is invalid or still sets what config.yaml does not."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, named, text

_BEATEN = {"default_reset_policy": "session_reset"}
"""Keys of gateway.json that have another name in config.yaml."""
_FORGIVING = (0, 19)
"""The first release that ignores a file that holds a list; earlier ones fail to start."""


@check(id="gateway-json", group="configuration", codes=["CFG-GATEWAY-JSON"], by_release=True)
def gateway_json(probes: Probes) -> Iterator[Finding]:
    """Is config.yaml the only place of the gateway's settings?"""
    old = probes.old_settings()
    if old is None:
        raise Skip("there is no gateway.json")
    if old.values is None:
        installed = probes.installation()
        release = installed.release if installed else None
        fatal = not old.mapping and release is not None and release < _FORGIVING
        yield Finding(
            code="CFG-GATEWAY-JSON",
            severity=Severity.CRITICAL if fatal else Severity.WARNING,
            title=(
                "gateway.json is no mapping: this release cannot start its gateway"
                if fatal
                else "gateway.json holds no settings that can be read, so nothing in it counts"
            ),
            subject="gateway.json",
            detail="Move what you need of it into config.yaml and the file out of the home.",
            evidence=(Evidence("gateway.json", "cannot be read as settings"),),
        )
        return
    config = probes.config()
    written = (config.values if config else None) or {}
    counts = [key for key in old.values if _BEATEN.get(key, key) not in written]
    platforms = old.values.get("platforms")
    if "platforms" in written and isinstance(platforms, dict):
        mine = written["platforms"] if isinstance(written["platforms"], dict) else {}
        counts += [f"platforms.{name}" for name in platforms if name not in mine]
    if not counts:
        return
    said = ", ".join(named((key,)) for key in counts[:6])
    more = f" and {len(counts) - 6} more" if len(counts) > 6 else ""
    yield Finding(
        code="CFG-GATEWAY-JSON",
        severity=Severity.INFO,
        title=text("gateway.json of an older set-up still sets {said}{more}", said=said, more=more),
        subject="gateway.json",
        detail=(
            "Hermes reads it first and config.yaml over it. Move what you need into config.yaml, "
            "so that there is one place to look, and the file out of the home."
        ),
        evidence=(Evidence("gateway.json", f"{said}{more}: not in config.yaml"),),
    )
