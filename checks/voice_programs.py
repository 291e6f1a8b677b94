"""Check that ffmpeg is installed if answers are sent as voice messages on Telegram."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check

_OWN_FORMAT = ("openai", "elevenlabs", "mistral", "gemini")
"""Providers whose audio is already in Telegram's own format."""


@check(id="voice-programs", group="platforms", codes=["PLATFORM-FFMPEG"], by_release=True)
def voice_programs(probes: Probes) -> Iterator[Finding]:
    """Is ffmpeg there where answers are to be spoken on Telegram?"""
    found = probes.resolved()
    if not any(one.name == "telegram" for one in found.platforms):
        raise Skip("Telegram is not set up")
    raw = found.world.raw
    voice, tts = (part if isinstance(part, dict) else {} for part in map(raw.get, ("voice", "tts")))
    always = voice.get("auto_tts") is True
    if not always and not tts.get("provider"):
        raise Skip("nothing is said about voices")
    if str(tts.get("provider") or "edge").lower() in _OWN_FORMAT:
        return
    program = probes.program("ffmpeg")
    if program.path is None:
        path = ("voice", "auto_tts") if always else ("tts", "provider")
        yield Finding(
            code="PLATFORM-FFMPEG",
            severity=Severity.WARNING if always and program.sure else Severity.INFO,
            title="the gateway does not find ffmpeg, so answers come as files, not as voices",
            subject="ffmpeg",
            detail=(
                "Install ffmpeg, or put its folder into PATH of the gateway's service, and restart "
                "the gateway. Or choose a voice that needs none: tts.provider: openai."
            ),
            evidence=(
                Evidence(found.world.document.source(*path).place, f"{'.'.join(path)} is set"),
                Evidence("PATH", "no ffmpeg"),
            ),
        )
