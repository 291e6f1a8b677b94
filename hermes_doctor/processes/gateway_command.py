"""Decide from a command line whether it runs a gateway, and for which profile."""

from __future__ import annotations

from pathlib import Path


def runs_command(argv: list[str], command: str) -> bool:
    """Whether this command line runs that Hermes command."""
    words = _without_profile(_after_entry(argv) or [])
    return next((word for word in words if not word.startswith("-")), None) == command


def is_gateway(argv: list[str]) -> bool:
    """Whether this command line runs a gateway: Python, Hermes' entry, `gateway [run|restart]`.

    The command lines of shells, ssh, tmux and editors that only mention a gateway do not start
    with Python.
    """
    words = _after_entry(argv)
    if words is None:
        return False
    rest = [word for word in _without_profile(words) if not word.startswith("-")]
    return rest[:1] == ["gateway"] and rest[1:2] in ([], ["run"], ["restart"])


def _after_entry(argv: list[str]) -> list[str] | None:
    """Return the words after Hermes' entry point; None if this is not a Hermes command line."""
    if not argv:
        return None
    first = Path(argv[0]).name
    if first == "hermes":
        return argv[1:]
    if not first.startswith("python"):
        return None
    rest = argv[1:]
    while rest and rest[0].startswith("-") and rest[0] != "-m":
        if rest[0] == "-c":  # another program, which may contain any words
            return None
        rest = rest[2:] if rest[0] in ("-W", "-X") else rest[1:]
    if rest[:1] == ["-m"]:
        return rest[2:] if rest[1:2] == ["hermes_cli.main"] else None
    if rest and Path(rest[0]).name in ("hermes", "hermes-script.py"):
        return rest[1:]
    return None


def _without_profile(words: list[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in ("-p", "--profile"):
            skip = True
        else:
            kept.append(word)
    return kept


def profile_in(argv: list[str]) -> str | None:
    """Return the profile that a command line names."""
    for n, word in enumerate(argv):
        if word in ("-p", "--profile") and n + 1 < len(argv):
            return argv[n + 1]
        if word.startswith("--profile="):
            return word.partition("=")[2]
    return None
