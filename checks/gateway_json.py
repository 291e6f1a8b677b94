"""Check for an old gateway.json that is invalid or still sets what config.yaml does not."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, listed, named

_RENAMED = {"default_reset_policy": "session_reset"}
"""Keys of gateway.json that have another name in config.yaml."""
_FORGIVING = (0, 19)
"""The first release that ignores a file that holds a list; earlier ones fail to start."""


@check(
    id="gateway-json",
    group="configuration",
    codes=["CFG-GATEWAY-JSON"],
    by_release=True,
    needs="gateway.json",
)
def gateway_json(probes: Probes) -> Iterator[Finding]:
    """Are all gateway settings in config.yaml?"""
    old = probes.old_settings()
    assert old is not None
    if old.values is None:
        installed = probes.installation()
        release = installed.release if installed else None
        fatal = not old.mapping and release is not None and release < _FORGIVING
        yield Finding(
            code="CFG-GATEWAY-JSON",
            severity=Severity.CRITICAL if fatal else Severity.WARNING,
            title=(
                "gateway.json is not a mapping, so the gateway cannot start"
                if fatal
                else "gateway.json cannot be read"
            ),
            subject="gateway.json",
            detail=(
                "This release does not start until the file is gone or correct."
                if fatal
                else "Hermes ignores every setting in it."
            ),
            evidence=(
                Evidence("gateway.json", "not valid JSON" if old.mapping else "not a mapping"),
            ),
            next="Move what you need from gateway.json to config.yaml, then delete gateway.json.",
        )
        return
    config = probes.config()
    written = (config.values if config else None) or {}
    extra = [key for key in old.values if _RENAMED.get(key, key) not in written]
    platforms = old.values.get("platforms")
    if "platforms" in written and isinstance(platforms, dict):
        mine = written["platforms"] if isinstance(written["platforms"], dict) else {}
        extra += [f"platforms.{name}" for name in platforms if name not in mine]
    if not extra:
        return
    names = listed([named((key,)) for key in extra])
    yield Finding(
        code="CFG-GATEWAY-JSON",
        severity=Severity.INFO,
        title="an old gateway.json still sets what config.yaml does not",
        subject="gateway.json",
        detail="Hermes reads gateway.json first; config.yaml overrides it.",
        evidence=(Evidence("gateway.json", f"only here: {names}"),),
        next="Move these settings to config.yaml, then delete gateway.json.",
    )
