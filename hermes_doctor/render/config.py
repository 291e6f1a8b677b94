"""Shows the settings that a gateway really uses, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes_doctor.core import redaction
from hermes_doctor.core.message import count
from hermes_doctor.core.terminal.lines import BLANK, Line, Span, row, tilde
from hermes_doctor.hermes.settings.document import BUILT_IN, DEFAULT, Key, ResolvedValue, Source
from hermes_doctor.hermes.settings.platforms import Access
from hermes_doctor.hermes.settings.resolved import Resolved, Route, SideTask

SCHEMA = "hermes-doctor/config/1"
_WIDTH = 10
_BAD = ("missing", "placeholder", "masked", "unresolved")


def redact_value(value: str | None) -> str:
    """Redact a value that should not be a secret, in case it looks like one."""
    text = value or ""
    is_address = "://" in text or "@" in text
    return redaction.redact_address(text) if is_address else redaction.redact_words(text)


def lines(
    home: Path, hermes: str | None, resolved: Resolved, mistake: str = "", options: str = ""
) -> Iterator[Line]:
    """All lines, beginning with what the next message uses.

    `mistake` says what is wrong in config.yaml; `options` are those for the commands at the end.
    """
    said = f"Hermes {hermes}" if hermes else "Hermes not found"
    if hermes != _dotted(resolved.release):
        said += f", read with the rules of {_dotted(resolved.release)}"
    yield row((tilde(home), "strong"), f"  {said}")
    fault = resolved.world.document.fault
    if fault:
        at = f" line {fault.line}" if fault.line else ""
        what = "is not valid YAML, so Hermes ignores the file and uses its defaults."
        yield row(("✗ ", "error"), f"config.yaml{at} {what}", hang=2)
        yield row(mistake or f"The error is: {fault.what}", indent=2)
    yield BLANK
    yield row(("The next message", "strong"))
    yield from _next(resolved)
    yield BLANK
    yield row(("Fallback", "strong"))
    if not resolved.fallback:
        yield row(("none: if the provider fails, the message gets no answer", "faint"), indent=2)
    for number, route in enumerate(resolved.fallback, 1):
        yield from _entry(number, route)
    yield BLANK
    yield row(("Side tasks", "strong"))
    yield from _tasks(resolved.tasks)
    yield BLANK
    yield row(("Platforms", "strong"))
    if not resolved.platforms:
        yield row(("none: the gateway would start no platform", "warning"), indent=2)
    for platform in resolved.platforms:
        yield from _platform(platform)
    if resolved.doubts:
        yield BLANK
    for doubt in resolved.doubts:
        yield row(("? ", "warning"), f"could not check: {doubt}", hang=2)
    yield BLANK
    yield row("Next: ", *_command(resolved, options), hang=6)


def _command(resolved: Resolved, options: str) -> tuple[Span, ...]:
    """What to type: repair what keeps messages from an answer, else change the provider."""
    if resolved.world.document.fault:
        return ((f"hermes-doctor fix{options}", "command"),)
    if resolved.used is None or resolved.main.trouble:
        return ((f"hermes-doctor check{options}", "command"),)
    command = f"hermes-doctor switch-provider NAME{options}"
    return (command, "command"), ("  use another provider", "faint")


def _next(resolved: Resolved) -> Iterator[Line]:
    main = resolved.main
    if main.trouble:
        yield from _answered("provider", main.requested)
        yield row(("✗ ", "error"), redaction.redact_words(main.trouble.why), indent=2, hang=2)
    if resolved.used is None:
        yield row(("✗ ", "error"), "no message gets an answer", indent=2, hang=2)
        return
    if resolved.used.path != "model":
        yield row(f"{resolved.used.path} is used instead:", indent=2)
    yield from _route(resolved.used)


def _route(route: Route) -> Iterator[Line]:
    yield from _answered("provider", route.requested, route.provider)
    yield from _answered("model", route.model)
    if route.base_url:
        yield from _answered("address", route.base_url)
    if route.api_mode:
        yield from _answered("protocol", route.api_mode)
    if route.key:
        yield from _key("key", route.key)


def _answered(
    label: str, answer: ResolvedValue, became: ResolvedValue | None = None
) -> Iterator[Line]:
    value = redact_value(answer.value) or "(empty)"
    if became and became.value != answer.value:
        value += f" → {redact_value(became.value)}"
    yield _told(label, value, _place(answer.source))
    # blanks and a slash at the end make no difference to Hermes
    used = (answer.value or "").strip().rstrip("/")
    for other in answer.shadows:
        same = (other.value or "").strip().rstrip("/") == used
        said = "ignored, same value" if same else f"ignored: {redact_value(other.value)}"
        yield _told("", said, _place(other.source), "faint")


def _key(label: str, key: Key) -> Iterator[Line]:
    style = "error" if key.state in _BAD else ""
    if key.source.kind == DEFAULT:
        where = "" if key.state == "not needed" else "not set"
        unnamed = key.name == BUILT_IN.name
        named = "none was found" if unnamed else f"{redaction.redact_words(key.name)} is missing"
        named = named if key.state == "missing" else "not needed"
        yield _told(label, named, "" if unnamed else where, style)
    else:
        state = "" if key.state == "usable" else f" ({key.state})"
        hidden = redaction.describe_hidden("x" * key.length, key.name) if key.length else ""
        named = f"{redaction.redact_words(key.name)} {hidden}".rstrip()
        yield _told(label, f"{named}{state}", key.source.place, style)
    for other in key.shadows:
        named = redaction.redact_words(other.name)
        yield _told("", f"ignored: {named}", other.source.place, "faint")


def _place(source: Source) -> str:
    return redaction.redact_words(str(source))


def _told(label: str, value: str, where: str, style: str = "") -> Line:
    place = [(f"  {where}", "faint")] if where else []
    return row(f"{label:<{_WIDTH}} ", (value, style), *place, indent=2, hang=_WIDTH + 1)


def _entry(number: int, route: Route) -> Iterator[Line]:
    name = f"{redact_value(route.requested.value)}  {redact_value(route.model.value)}"
    if route.trouble:
        why = redaction.redact_words(route.trouble.why)
        yield row(f"{number}  ", (name, "error"), f"  {why}", indent=2, hang=3)
        return
    key = route.key
    said = f"key {redaction.redact_words(key.name)} ({key.state})" if key else ""
    address = redact_value(route.base_url.value) if route.base_url else ""
    yield row(f"{number}  ", name, (f"  {address}  {said}", "faint"), indent=2, hang=3)


def _tasks(tasks: tuple[SideTask, ...]) -> Iterator[Line]:
    own = [task for task in tasks if task.provider.value != "auto" or task.model]
    rest = len(tasks) - len(own)
    for task in own:
        model = redact_value(task.model.value) if task.model else "its default model"
        value = f"{redact_value(task.provider.value)}  {model}"
        source = task.model.source if task.model else task.provider.source
        name = f"{redaction.redact_words(task.name)}: "
        yield row(name, value, (f"  {source.place}", "faint"), indent=2, hang=4)
    if rest:
        text = f"the other {rest} use the main model" if own else f"all {rest} use the main model"
        yield row((text, "faint"), indent=2)


def _platform(access: Access) -> Iterator[Line]:
    label = "Weixin (WeChat)" if access.label == "Weixin" else access.label
    yield row((label, "strong"), (f"  enabled by {access.because}", "faint"), indent=2, hang=4)
    for token in access.tokens:
        for line in _key("login", token):
            yield line._replace(indent=4)
    yield _who(access)._replace(indent=4)
    for label, answer in (("direct", access.dm_policy), ("groups", access.group_policy)):
        for line in _answered(label, answer) if answer else ():
            yield line._replace(indent=4)


def _who(access: Access) -> Line:
    number = count_users(access.users)
    if access.name == "api_server":
        return _told("who", "anybody with its key", "the key decides, not a list of users")
    if access.everyone:
        return _told("who", "anybody", _place(access.everyone.source), "warning")
    if access.users is None:
        return _told("who", "only paired users", "no allowlist is set")
    said = "anybody" if number is None else count(number, "user")
    return _told("who", said, _place(access.users.source))


def count_users(users: ResolvedValue | None) -> int | None:
    """How many users a list names; None if it allows everybody."""
    named = {word.strip() for word in ((users and users.value) or "").split(",")} - {""}
    return None if "*" in named else len(named)


def document(home: Path, version: str, hermes: str | None, resolved: Resolved) -> dict[str, Any]:
    """The settings as JSON data."""
    fault = resolved.world.document.fault
    return {
        "schema": SCHEMA,
        "version": version,
        "home": str(home),
        "hermes": {"version": hermes},
        "rules_of": _dotted(resolved.release),
        "fault": {"what": fault.what, "line": fault.line} if fault else None,
        "main": _route_document(resolved.main),
        "used": resolved.used.path if resolved.used else None,
        "next": _route_document(resolved.used) if resolved.used else None,
        "fallback": [_route_document(route) for route in resolved.fallback],
        "auxiliary": [
            {
                "task": redaction.redact_words(task.name),
                **_answers(task, "provider model base_url api_mode"),
                "key": _key_document(task.key),
            }
            for task in resolved.tasks
        ],
        "platforms": [_platform_document(platform) for platform in resolved.platforms],
        "unknown": list(resolved.doubts),
    }


def _route_document(route: Route) -> dict[str, Any]:
    trouble = route.trouble
    return {
        "path": route.path,
        **_answers(route, "requested provider model base_url api_mode"),
        "key": _key_document(route.key),
        "trouble": trouble and {"kind": trouble.kind, "why": redaction.redact_words(trouble.why)},
    }


def _platform_document(access: Access) -> dict[str, Any]:
    return {
        "name": access.name,
        "because": access.because,
        "tokens": [_key_document(token) for token in access.tokens],
        "users": {
            "count": count_users(access.users),
            "everyone": access.everyone is not None or count_users(access.users) is None,
            "source": _source_document(access.users.source) if access.users else None,
            "open_by": _source_document(access.everyone.source) if access.everyone else None,
        },
        **_answers(access, "dm_policy group_policy"),
        "home_channel": access.home_channel is not None,
    }


def _answers(settings: Route | SideTask | Access, names: str) -> dict[str, Any]:
    """Some of these settings as JSON data, each under its own name."""
    return {name: _answer_document(getattr(settings, name)) for name in names.split()}


def _answer_document(answer: ResolvedValue | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    return {
        "value": redact_value(answer.value),
        "source": _source_document(answer.source),
        "shadows": [_answer_document(shadow) for shadow in answer.shadows],
    }


def _key_document(key: Key | None) -> dict[str, Any] | None:
    if key is None:
        return None
    return {
        "name": redaction.redact_words(key.name),
        "state": key.state,
        "source": _source_document(key.source),
        "shadows": [_key_document(shadow) for shadow in key.shadows],
    }


def _source_document(source: Source) -> dict[str, Any]:
    return {
        "kind": source.kind,
        "name": redaction.redact_words(source.name),
        "file": source.file,
        "line": source.line,
        "via": _source_document(source.via) if source.via else None,
    }


def _dotted(release: tuple[int, ...]) -> str:
    return ".".join(map(str, release))
