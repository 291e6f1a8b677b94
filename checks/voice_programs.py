"""Check that ffmpeg is installed if answers are sent as voice messages on Telegram."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check

_OWN_FORMAT = ("openai", "elevenlabs", "mistral", "gemini")
"""Providers whose audio is already in Telegram's own format."""


@check(
    id="voice-programs",
    group="platforms",
    codes=["PLATFORM-FFMPEG"],
    by_release=True,
    needs="platform:telegram",
)
def voice_programs(probes: Probes) -> Iterator[Finding]:
    """Is ffmpeg installed for voice messages on Telegram?"""
    found = probes.resolved()
    raw = found.world.raw
    voice, tts = (part if isinstance(part, dict) else {} for part in map(raw.get, ("voice", "tts")))
    always = voice.get("auto_tts") is True
    if not always and not tts.get("provider"):
        raise Skip("no voice settings")
    if str(tts.get("provider") or "edge").lower() in _OWN_FORMAT:
        return
    program = probes.program("ffmpeg")
    if program.path is None:
        path = ("voice", "auto_tts") if always else ("tts", "provider")
        yield Finding(
            code="PLATFORM-FFMPEG",
            severity=Severity.WARNING if always and program.sure else Severity.INFO,
            title="Telegram voice answers arrive as files: ffmpeg is missing",
            subject="ffmpeg",
            detail=(
                "Hermes needs ffmpeg for Telegram's voice format. Users have to download the audio "
                "file."
                if program.sure
                else "Hermes needs ffmpeg for Telegram's voice format. This PATH may differ from "
                "the one of the gateway."
            ),
            next=(
                "Install ffmpeg and restart the gateway, or set tts.provider to openai, which does "
                "not need it."
            ),
            evidence=(
                Evidence(found.world.document.source(*path).place, f"{'.'.join(path)} is set"),
                Evidence("PATH", "ffmpeg is not found"),
            ),
        )
