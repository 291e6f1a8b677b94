"""Check that .env can be read, and that each of its lines does what the operator means."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, settings, text
from hermes_doctor.api.providers import Resolved
from hermes_doctor.api.stores import redact_name

_CONVERTS = (0, 19)
"""The first release that rewrites a .env in UTF-16 as UTF-8 when it starts. It is also known to
read the keys of built-in providers despite a byte order mark."""
_MARK = ("mangled", "UTF-8-SIG")


@check(id="env-encoding", group="configuration", codes=["ENV-BOM"], needs="env")
def env_encoding(probes: Probes) -> Iterator[Finding]:
    """Is .env saved as UTF-8 without a byte order mark?"""
    env = probes.settings.env()
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
        evidence=(Evidence(".env", _first_bytes(env.data, mark, curable=curable)),),
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
    installed, resolved = probes.hermes.installation(), probes.settings.resolved()
    if installed is None or installed.release < _CONVERTS:
        return False
    key, provider = resolved.main.key, resolved.main.provider
    built_in = provider and (provider.value in ("openrouter", *resolved.world.release.registry))
    return bool(built_in and key and key.name == name)


def _is_converted(probes: Probes, mark: str | None, content: str) -> bool:
    """Return whether the installed release reads this UTF-16 file without a loss."""
    installed = probes.hermes.installation()
    if installed is None or installed.release < _CONVERTS:
        return False
    return mark.startswith("UTF-16") if mark else content.isascii()


def _first_bytes(data: bytes, mark: str | None, *, curable: bool) -> str:
    if mark == "mangled":
        return "the first two characters are the rest of a mark (U+FFFD)"
    if mark == "UTF-8-SIG":
        return "the first three bytes are EF BB BF"
    if curable:
        return text("saved as {encoding}", encoding=mark or "UTF-16 without a mark")
    if b"\0" in data:
        return text("the first NUL is at byte {position}", position=data.index(0))
    return "the encoding is unknown"


@check(id="env-lines", group="configuration", codes=["ENV-LINE"], needs="env")
def env_lines(probes: Probes) -> Iterator[Finding]:
    """Does Hermes read every line of .env as intended?"""
    env = probes.settings.env()
    if env is None:
        raise Skip("no .env")
    resolved = probes.settings.resolved()
    for odd_line in settings.odd_lines(env, resolved.world):
        lost = odd_line.other if odd_line.kind == "joined" else odd_line.name
        silences = _silences(resolved, odd_line, lost)
        yield Finding(
            code="ENV-LINE",
            severity=_severity(odd_line, silences=silences),
            title=_title(odd_line),
            subject=redact_name(lost),
            detail=_detail(odd_line, redact_name(lost), silences=silences),
            next="" if odd_line.new is not None else "Add = and the value, or delete the line.",
            evidence=(Evidence(f".env:{odd_line.number}", _masked_line(odd_line)),),
            fix="mend-env-line" if odd_line.new is not None else None,
            data={"line": odd_line.number},
        )


def _silences(resolved: Resolved, odd_line: settings.OddLine, lost: str) -> bool:
    """Whether the bot or a platform fails without the variable, and it is set nowhere else."""
    if odd_line.mended or odd_line.kind == "valueless":
        return False
    value = resolved.world.variables.get(lost)
    if value and value.source.line != odd_line.number:
        return False
    return settings.is_needed(resolved, lost)


def _severity(odd_line: settings.OddLine, *, silences: bool) -> Severity:
    if silences:
        return Severity.ERROR
    return Severity.INFO if odd_line.mended or not odd_line.known else Severity.WARNING


def _title(odd_line: settings.OddLine) -> str:
    name = redact_name(odd_line.name)
    if odd_line.kind == "colon":
        return text(
            ".env line {line}: colon instead of = after {name}", line=odd_line.number, name=name
        )
    if odd_line.kind == "space":
        return text(
            ".env line {line}: space instead of = after {name}", line=odd_line.number, name=name
        )
    if odd_line.kind == "quote":
        return text(
            ".env line {line}: quote of {name} is not closed", line=odd_line.number, name=name
        )
    if odd_line.kind == "joined":
        return text(".env line {line} has two variables", line=odd_line.number)
    if odd_line.kind == "lower":
        return text(".env line {line}: {name} in lower case", line=odd_line.number, name=name)
    return text(".env line {line}: {name} without a value", line=odd_line.number, name=name)


def _detail(odd_line: settings.OddLine, lost: str, *, silences: bool) -> str:
    if odd_line.mended:
        return "Hermes splits the line itself and rewrites the file at its next start."
    if silences:
        return text(
            "The bot cannot answer where it needs {variable}, because Hermes does not read it.",
            variable=lost,
        )
    if odd_line.kind == "quote":
        return "Hermes drops the line, or reads the next lines as part of the value."
    if odd_line.kind == "joined":
        return text(
            "Hermes reads the whole line as the value of {first} and does not read {second}.",
            first=redact_name(odd_line.name),
            second=lost,
        )
    return "Hermes ignores the line."


def _masked_line(odd_line: settings.OddLine) -> str:
    """Return the line without its values."""
    name = redact_name(odd_line.name)
    if odd_line.kind == "colon":
        return f"{name}: ..."
    if odd_line.kind == "space":
        return f"{name} ..."
    if odd_line.kind == "quote":
        return text("{name}= with a quote that does not end", name=name)
    if odd_line.kind == "joined":
        return f"{name}=... {redact_name(odd_line.other)}=..."
    if odd_line.kind == "lower":
        return text("{name} in lower case", name=name)
    return name


@check(id="env-duplicates", group="configuration", codes=["ENV-DUP"], needs="env")
def env_duplicates(probes: Probes) -> Iterator[Finding]:
    """Is every variable in .env set only once?"""
    env = probes.settings.env()
    if env is None:
        raise Skip("no .env")
    resolved = probes.settings.resolved()
    for repeated_variable in settings.repeated_variables(env, resolved.world):
        name = redact_name(repeated_variable.name)
        yield Finding(
            code="ENV-DUP",
            severity=(
                Severity.INFO
                if repeated_variable.same
                else Severity.ERROR
                if repeated_variable.erased and settings.is_needed(resolved, repeated_variable.name)
                else Severity.WARNING
            ),
            title=(
                text(
                    ".env line {line} erases {variable}",
                    line=repeated_variable.counts,
                    variable=name,
                )
                if repeated_variable.erased
                else text(
                    "{variable} is set {number} times in .env",
                    variable=name,
                    number=len(repeated_variable.lines) + 1,
                )
            ),
            subject=name,
            detail=(
                "Hermes uses this empty line and ignores the value above it."
                if repeated_variable.erased
                else "All lines have the same value, so nothing is broken."
                if repeated_variable.same
                else text(
                    "Hermes uses only line {line}; the values are not the same.",
                    line=repeated_variable.counts,
                )
            ),
            next=(
                text(
                    "Delete line {line}, or the line with the value if you do not want it.",
                    line=repeated_variable.counts,
                )
                if repeated_variable.erased
                else ""
            ),
            evidence=(
                *(
                    Evidence(f".env:{line}", f"{name}=... (ignored)")
                    for line in repeated_variable.lines
                ),
                Evidence(f".env:{repeated_variable.counts}", f"{name}=... (used)"),
            ),
            fix=None
            if repeated_variable.erased
            else "comment-out",  # the empty line may be intended
            data={"lines": repeated_variable.lines, "name": repeated_variable.name},
        )


@check(id="env-blanks", group="configuration", codes=["ENV-BLANK"], by_release=True, needs="env")
def env_blanks(probes: Probes) -> Iterator[Finding]:
    """Does .env keep the variables that the gateway starts with?"""
    world = probes.settings.resolved().world
    for name, value in world.readings.dotenv.values.items():
        if value.strip() or not world.started_with.get(name, "").strip():
            continue
        shown = redact_name(name)
        known = name in world.release.names
        yield Finding(
            code="ENV-BLANK",
            severity=Severity.ERROR if known else Severity.WARNING,
            title=text(".env erases {variable} with an empty line", variable=shown),
            subject=shown,
            detail=(
                "What needs it fails: even an empty line in .env overrides the value from the "
                "service, container or shell that starts the gateway."
            ),
            evidence=(
                Evidence(f".env:{value.source.line}", f"{shown}="),
                Evidence("environment of the gateway", text("{name} is set", name=shown)),
            ),
            fix="drop-blank",
            data={"name": name},
        )


@check(id="env-expansion", group="configuration", codes=["ENV-EXPANDS"], needs="env")
def env_expansion(probes: Probes) -> Iterator[Finding]:
    """Do the variables in .env expand to a reasonable size?"""
    env = probes.settings.env()
    if env is None:
        raise Skip("no .env")
    line = settings.line_of_expansion(env)
    if line is None:
        return
    yield Finding(
        code="ENV-EXPANDS",
        severity=Severity.ERROR,
        title="the variables in .env expand to more than 4 MB",
        subject=".env",
        detail=(
            "Hermes expands them when it starts and at every message, which can use up the memory "
            "of the machine."
        ),
        next="Write the value in this line without `${NAME}`, or delete the line.",
        evidence=(Evidence(f".env:{line}", "the limit is passed here"),),
    )


@check(id="env-ports", group="configuration", codes=["ENV-PORT"], by_release=True)
def env_ports(probes: Probes) -> Iterator[Finding]:
    """Is every port in .env a valid number?"""
    resolved = probes.settings.resolved()
    if not resolved.platforms:
        raise Skip("no platform is set up")
    for odd_port in settings.odd_ports(resolved):
        yield Finding(
            code="ENV-PORT",
            severity=Severity.CRITICAL if odd_port.fatal else Severity.WARNING,
            title=(
                text("gateway cannot start: {variable} is not a port", variable=odd_port.name)
                if odd_port.fatal
                else text("{variable} is not a valid port", variable=odd_port.name)
            ),
            subject=odd_port.name,
            detail=(
                "Nobody gets an answer, because this release stops at the invalid number."
                if odd_port.fatal
                else text(
                    "Requests may not reach {platform}, because Hermes cannot use this value.",
                    platform=odd_port.platform,
                )
            ),
            next=text(
                "Set {variable} to a number from 1 to 65535, or delete the line. Then restart the "
                "gateway.",
                variable=odd_port.name,
            ),
            evidence=(Evidence(odd_port.source.place, "not a number from 1 to 65535"),),
        )


_CAUSES = {
    "comment": (
        "the comment after {variable} becomes part of the key",
        "Hermes sends the comment to the provider, which then rejects the key (401).",
        "comment after the value",
    ),
    "reference": (
        "a variable inside {variable} is not filled in",
        "Hermes sends the name of the variable to the provider, which then rejects the key (401).",
        "${NAME} in the value",
    ),
    "quotes": (
        "quotes or escapes become part of {variable}",
        "Hermes sends them to the provider, which then rejects the key (401).",
        "quotes or escapes in the value",
    ),
}
"""Title, detail and evidence for each cause."""


@check(
    id="env-readings", group="configuration", codes=["ENV-AMBIGUOUS"], by_release=True, needs="env"
)
def env_readings(probes: Probes) -> Iterator[Finding]:
    """Does Hermes read the same keys from .env everywhere?"""
    resolved = probes.settings.resolved()
    routes = [resolved.main, resolved.used, *resolved.fallback]
    keys = [route.key for route in routes if route and route.key]
    used = {(key.source.via or key.source).name: key for key in keys}
    for differing_key in settings.differing_keys(resolved.world):
        if differing_key.name in used and used[differing_key.name].faults:
            continue  # faults of keys in use have their own code
        title, detail, what = _CAUSES[differing_key.cause]
        yield Finding(
            code="ENV-AMBIGUOUS",
            severity=Severity.ERROR if differing_key.name in used else Severity.INFO,
            title=text(title, variable=differing_key.name),
            subject=differing_key.name,
            detail=detail if differing_key.name in used else "Nothing uses this key now.",
            evidence=(Evidence(f".env:{differing_key.line}", f"{differing_key.name}: {what}"),),
            fix="write-plainly",
        )


@check(id="env-shadows", group="configuration", codes=["ENV-SHADOWS-CONFIG"], by_release=True)
def env_shadows(probes: Probes) -> Iterator[Finding]:
    """Does Hermes use the platform settings in config.yaml?"""
    resolved = probes.settings.resolved()
    document = resolved.world.document
    if document.fault or not document.values:
        raise Skip("config.yaml has no readable settings")
    for overridden_setting in settings.overridden_settings(resolved):
        name = settings.display_path(overridden_setting.path)
        inside = overridden_setting.source.kind == "env"
        yield Finding(
            code="ENV-SHADOWS-CONFIG",
            severity=Severity.WARNING,
            title=text(
                "{variable} overrides {setting}", variable=overridden_setting.variable, setting=name
            ),
            subject=name,
            detail=(
                "The values differ. Hermes uses the one in .env and ignores config.yaml."
                if inside
                else "The values differ. Hermes uses the one in the environment of the gateway and "
                "ignores config.yaml."
            ),
            next=(
                "If the value in .env is right, delete the setting in config.yaml instead."
                if inside
                else "If config.yaml is right, remove the variable from the service or container."
            ),
            evidence=(
                Evidence(
                    overridden_setting.source.place,
                    text("{name} (used)", name=overridden_setting.variable),
                ),
                Evidence(
                    document.source(*overridden_setting.path).place,
                    text("{name} (ignored)", name=name),
                ),
            ),
            fix="comment-out" if inside else None,
            data={"name": overridden_setting.variable, "lines": ()},
        )
