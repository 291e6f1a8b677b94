"""Check what the gateway needs on this machine: a working folder, programs and plugins."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, snapshot, text
from hermes_doctor.api.providers import Text
from hermes_doctor.api.stores import redact_log_text
from hermes_doctor.api.tools import pattern, shorten

_ANYWHERE = ("", ".", "auto", "cwd")
_NAMES = ("TERMINAL_CWD", "MESSAGING_CWD")


@check(id="working-folder", group="configuration", codes=["CFG-CWD"], by_release=True)
def working_folder(probes: Probes) -> Iterator[Finding]:
    """Can the gateway use its working folder?"""
    world = probes.settings.resolved().world
    terminal = world.raw.get("terminal")
    terminal = terminal if isinstance(terminal, dict) else {}
    backend = terminal.get("backend") or world.getenv("TERMINAL_ENV") or "local"
    if backend != "local":
        raise Skip("commands run on another machine or in a container")
    written = terminal.get("cwd")
    named: list[Text] = [written] if isinstance(written, str) else []  # type: ignore[list-item]
    named += [world.getenv(name) for name in _NAMES]
    chosen = next((one for one in named if one.strip() not in _ANYWHERE), None)
    if chosen is None:
        raise Skip("no folder is set, so Hermes uses the home of its user")
    path = _folder(probes, chosen.strip())
    if path is None:
        return
    fault = _fault(probes, path)
    if fault:
        sure = bool(probes.gateway.running()) or _is_native(probes)
        yield Finding(
            code="CFG-CWD",
            severity=Severity.WARNING if sure else Severity.INFO,
            title=text(fault),
            subject=chosen.source.name,
            detail=(
                "Commands of the bot fail or run in another folder."
                if sure
                else "Commands of the bot fail or run in another folder, unless the gateway runs "
                "in a container that has this folder."
            ),
            evidence=(
                Evidence(
                    chosen.source.place,
                    text("{name}: {folder}", name=chosen.source.name, folder=path),
                ),
            ),
            next=(
                "Create the folder for the gateway's user, or set terminal.cwd in config.yaml to "
                "another folder, then restart the gateway."
            ),
        )


def _folder(probes: Probes, said: str) -> Path | None:
    """Return the folder as the gateway sees it; None if only the gateway knows."""
    if said.startswith("~"):
        home = probes.settings.resolved().world.getenv("HOME") or _home(probes.gateway.user().uid)
        return Path(home) / said[2:] if home and said[1:2] in ("", "/") else None
    return Path(said) if os.path.isabs(said) else None


def _home(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        return ""


def _is_native(probes: Probes) -> bool:
    """Return whether the gateway would see the same files as this process, not a container's."""
    installation = probes.hermes.installation()
    return installation is not None and snapshot(installation.where).kind != "absent"


def _fault(probes: Probes, path: Path) -> str | None:
    gateways = probes.gateway.running()
    root = Path(f"/proc/{gateways[0].pid}/root") if gateways else Path("/")
    seen = root / path.relative_to("/") if root.is_dir() else path
    if not os.path.lexists(seen):
        return "the working folder of the bot does not exist"
    if not seen.is_dir():
        return "the working folder of the bot is not a folder"
    user = probes.gateway.user()
    for folder in reversed([path, *path.parents]):
        try:
            st = os.stat(root / folder.relative_to("/") if root.is_dir() else folder)
        except OSError:
            return None
        if not user.may_enter(st):
            return "the gateway may not enter the working folder of the bot"
    return None


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
    resolved = probes.settings.resolved()
    raw = resolved.world.raw
    voice, tts = (part if isinstance(part, dict) else {} for part in map(raw.get, ("voice", "tts")))
    always = voice.get("auto_tts") is True
    if not always and not tts.get("provider"):
        raise Skip("no voice settings")
    if str(tts.get("provider") or "edge").lower() in _OWN_FORMAT:
        return
    program = probes.settings.program("ffmpeg")
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
                Evidence(resolved.world.document.source(*path).place, f"{'.'.join(path)} is set"),
                Evidence("PATH", "ffmpeg is not found"),
            ),
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
    world = probes.settings.resolved().world
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
    shown = shorten(redact_log_text(name), 23)
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
            folder=f"plugins/{redact_log_text(name)}",
        ),
        data={"name": name},
    )


def _is_installed(probes: Probes, name: str, by_package: bool) -> bool:
    """Whether Hermes finds the plugin: in the home, in its own code, or as a Python package.

    Also if that cannot be known.
    """
    installation = probes.hermes.installation()
    if installation is None:
        return True
    packages = probes.hermes.packages()
    places = [probes.home / "plugins", installation.where / "plugins/memory"]
    places += [packages.folder / "plugins/memory"] if packages else []
    if any((Path(place) / name / "__init__.py").exists() for place in places):
        return True
    if packages is None or not by_package:
        return by_package
    infos = (one for one in packages.names if one.endswith(".dist-info"))
    return any(_names(packages.text(info, "entry_points.txt") or "", name) for info in infos)


def _names(points: str, name: str) -> bool:
    """Whether a list of entry points contains a memory plugin of this name."""
    lines = points.partition(_POINT)[2].partition("\n[")[0].splitlines()
    return any(line.partition("=")[0].strip() == name for line in lines)
