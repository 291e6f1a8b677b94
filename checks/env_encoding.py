"""Check that .env is UTF-8 without a byte order mark, which spoils a name in the first line."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text

_CONVERTS = (0, 19)
"""The first release that rewrites a .env in UTF-16 as UTF-8 when it starts. It is also known to
read the keys of built-in providers despite a byte order mark."""
_MARK = ("mangled", "UTF-8-SIG")


@check(id="env-encoding", group="configuration", codes=["ENV-BOM"], needs="env")
def env_encoding(probes: Probes) -> Iterator[Finding]:
    """Is .env saved as UTF-8 without a byte order mark?"""
    env = probes.env()
    if env is None:
        raise Skip("no .env")
    mark, content = env.mark, env.text
    zeros = b"\0" in env.data
    if not env.data or (mark is None and content is not None and not zeros):
        return
    curable = content is not None and "\0" not in content
    plain = zeros and not curable and env.without_nul() is not None
    converted = curable and _is_converted(probes, mark, content or "")
    severity = (
        Severity.INFO if converted else Severity.ERROR if curable or zeros else Severity.WARNING
    )
    if mark in _MARK and curable:
        title = text(".env starts with a byte order mark")
        severity, detail = _marked(probes, env.lost_name)
    elif curable:
        title = text(".env is saved as {encoding}, not UTF-8", encoding=mark or "UTF-16")
        detail = (
            text("Hermes rewrites it as UTF-8 at its next start.")
            if converted
            else text(
                "Hermes cannot read it, so tokens and keys are missing. Some editors on Windows "
                "save files this way."
            )
        )
    elif zeros:
        title = text(".env contains NUL bytes")
        detail = text(
            "Older releases of Hermes cannot start with it. A power cut or a full disk often "
            "leaves such bytes."
        )
    else:
        title = text(".env is not UTF-8")
        detail = text("Hermes reads names and values with letters beyond ASCII wrongly.")
    yield Finding(
        code="ENV-BOM",
        severity=severity,
        title=title,
        subject=".env",
        detail=detail,
        next=(
            ""
            if curable
            else "Check each value that the repair shows; a part of it may be lost."
            if plain
            else "Save the file as UTF-8 in an editor, and check each line."
        ),
        evidence=(Evidence(".env", _evidence(env.data, mark, curable=curable)),),
        fix="rewrite-env" if curable else "remove-nul" if plain else None,
    )


def _marked(probes: Probes, lost: str | None) -> tuple[Severity, str]:
    """Judge a byte order mark by the variable whose name it spoils."""
    if lost is None:
        return Severity.INFO, text("Hermes reads every variable, because line 1 does not set one.")
    if lost and _is_used_anyway(probes, lost):
        return Severity.WARNING, text(
            "The model gets {variable}, but other parts of Hermes do not read it, because the "
            "mark becomes part of its name.",
            variable=lost,
        )
    if lost:
        return Severity.ERROR, text(
            "Hermes does not read {variable}, because the mark becomes part of its name.",
            variable=lost,
        )
    return Severity.ERROR, text(
        "Hermes does not read the first variable, because the mark becomes part of its name."
    )


def _is_used_anyway(probes: Probes, name: str) -> bool:
    """Return whether this is the key of a built-in provider, which this release still finds."""
    installed, found = probes.installation(), probes.resolved()
    if installed is None or installed.release < _CONVERTS:
        return False
    key, provider = found.main.key, found.main.provider
    built_in = provider and (provider.value in ("openrouter", *found.world.release.registry))
    return bool(built_in and key and key.name == name)


def _is_converted(probes: Probes, mark: str | None, content: str) -> bool:
    """Return whether the installed release reads this UTF-16 file without a loss."""
    installed = probes.installation()
    if installed is None or installed.release < _CONVERTS:
        return False
    return mark.startswith("UTF-16") if mark else content.isascii()


def _evidence(data: bytes, mark: str | None, *, curable: bool) -> str:
    if mark == "mangled":
        return "the first two characters are the rest of a mark (U+FFFD)"
    if mark == "UTF-8-SIG":
        return "the first three bytes are EF BB BF"
    if curable:
        return text("saved as {encoding}", encoding=mark or "UTF-16 without a mark")
    if b"\0" in data:
        return text("the first NUL is at byte {position}", position=data.index(0))
    return "the encoding is unknown"
