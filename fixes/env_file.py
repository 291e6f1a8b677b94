"""Correct .env."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import CannotFix, Finding, Probes, ReplaceFile, Safety, Step, fix, text
from hermes_doctor.api.edits import Assign, Put, ReplaceLine, Unset
from hermes_doctor.api.providers import strip_faults
from hermes_doctor.api.repairs import edit_config, edit_env, refuse_managed, restart_if_running
from hermes_doctor.api.settings import differing_keys, lines_of, odd_lines
from hermes_doctor.api.tools import pattern


@fix(id="comment-out", codes=["ENV-DUP", "ENV-SHADOWS-CONFIG"], safety=Safety.CONFIRM)
def comment_out(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Comment out duplicate or overriding lines of .env."""
    env = probes.settings.env()
    if env is None:
        return
    if env.text is None:
        raise CannotFix("The file .env is not UTF-8. Save it as UTF-8 first.")
    name, wanted = finding.data["name"], finding.data["lines"]
    found = lines_of(env, probes.settings.resolved().world, name)
    if found is None:
        raise CannotFix("The value has several lines in .env. Remove it by hand.")
    edits = [
        ReplaceLine(number, old, f"# {old}")
        for number, old in found
        if number in wanted or not wanted
    ]
    yield from edit_env(probes, "comment out the line", *edits)
    if not wanted:
        yield from restart_if_running(probes, "platform", "access")


@fix(id="drop-blank", codes=["ENV-BLANK"], safety=Safety.SAFE)
def drop_blank(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Remove the line without a value from .env."""
    name = finding.data["name"]
    if name in probes.settings.resolved().world.readings.dotenv.again:
        raise CannotFix(
            "{name} is set more than once in .env. Remove the wrong line by hand.",
            name=finding.subject,
        )
    yield from edit_env(probes, "remove the line without a value", Unset(name))
    yield from restart_if_running(probes, "platform")


@fix(id="fill-in-token", codes=["PLATFORM-CREDENTIALS"], safety=Safety.CONFIRM)
def fill_in_token(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write the credential into .env under its own name."""
    name, other = finding.data["variable"], finding.data["other"]
    value = probes.settings.resolved().world.getenv(other)
    if not value:
        raise CannotFix("{name} was removed. Write the credential into .env yourself.", name=other)
    yield from edit_env(
        probes,
        text("set {name} to the value of {other}", name=name, other=other),
        Assign(name, str(value)),
    )
    yield from restart_if_running(probes, "platform")


_WEBHOOK_SECRET = "TELEGRAM_WEBHOOK_SECRET"


@fix(id="make-webhook-secret", codes=["WEBHOOK-SECRET"], safety=Safety.CONFIRM)
def make_webhook_secret(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Create a secret for the Telegram webhook in .env."""
    import secrets

    why = f"set {_WEBHOOK_SECRET} to a new random secret"
    yield from edit_env(probes, why, Assign(_WEBHOOK_SECRET, secrets.token_hex(32)))
    yield from restart_if_running(probes, "platform")


@fix(id="mend-env-line", codes=["ENV-LINE"], safety=Safety.SAFE)
def mend_env_line(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Correct the malformed line of .env."""
    env = probes.settings.env()
    if env is None:
        return
    for odd_line in odd_lines(env, probes.settings.resolved().world):
        if odd_line.number == finding.data["line"] and odd_line.new is not None:
            yield from edit_env(
                probes, "correct the line", ReplaceLine(odd_line.number, odd_line.old, odd_line.new)
            )
            yield from restart_if_running(probes, "platform")
            return


_ONLY_THE_KEY = "keep only the key"
_START_OF_LINE = pattern(r"(?P<margin>\s*)(?:export\s+)?(?P<name>[^=\s]+)\s*=\s*")
_COMMENT = pattern(r"\s(#.*)$")


@fix(id="mend-key", codes=["CRED-SHAPE"], safety=Safety.SAFE)
def mend_key(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Remove quotes, comments or `Bearer` from a key."""
    world = probes.settings.resolved().world
    name, kind = finding.data.get("name", ""), finding.data.get("kind")
    if kind == "config":
        path, value = world.document.text(name)
        yield from edit_config(probes, _ONLY_THE_KEY, Put(path, _key(value)))
    else:
        written = world.readings.own.values.get(name)
        if written is None or written.source.line is None:
            raise CannotFix("{name} was removed from .env. Run the check again.", name=name)
        if name in world.readings.dotenv.values:
            yield from edit_env(probes, _ONLY_THE_KEY, Assign(name, _key(written)))
        else:
            env = probes.settings.env()
            old = env.line(written.source.line) if env else ""
            new = _line_with_key(name, old, _key(written))
            yield from edit_env(probes, _ONLY_THE_KEY, ReplaceLine(written.source.line, old, new))
    yield from restart_if_running(probes, "key")


def _line_with_key(name: str, old: str, key: str) -> str:
    """Return the line with the bare key; a comment behind it moves to a line above."""
    head = _START_OF_LINE.match(old)
    if head is None or head["name"] != name:
        raise CannotFix(
            "The line of {name} in .env has an unusual form. Correct it by hand.", name=name
        )
    comment = _COMMENT.search(old[head.end() :].partition(key)[2])
    above = f"{head['margin']}{comment[1]}\n" if comment else ""
    return f"{above}{head[0]}{key}"


def _key(value: str | None) -> str:
    found = strip_faults(value or "")
    if found is None:
        raise CannotFix("It is not clear which part is the key. Copy the key again.")
    return found


@fix(id="remove-nul", codes=["ENV-BOM"], safety=Safety.CONFIRM)
def remove_nul(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Remove NUL bytes from .env."""
    env = probes.settings.env()
    if env is None or b"\0" not in env.data:
        return
    rest = env.without_nul()
    if rest is None:
        raise CannotFix("The rest of .env is not plain text. Write it again by hand.")
    refuse_managed(probes)
    yield ReplaceFile(
        env.path,
        rest,
        why="remove the NUL bytes; a variable after them gets its own line",
        expect=env.snapshot,
        before=env.data,
    )


@fix(id="rewrite-env", codes=["ENV-BOM"], safety=Safety.SAFE)
def rewrite_env(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Rewrite .env as UTF-8."""
    env = probes.settings.env()
    if env is None or (env.mark is None and env.text is not None and b"\0" not in env.data):
        return
    if env.text is None or "\0" in env.text:
        raise CannotFix("The encoding of .env is unclear. Save it as UTF-8 with your editor.")
    refuse_managed(probes)
    yield ReplaceFile(
        env.path,
        env.text.encode("utf-8"),
        why="rewrite it as UTF-8 without a byte order mark",
        expect=env.snapshot,
        before=env.data,
    )


@fix(id="set-home-channel", codes=["CRON-DELIVERY"], safety=Safety.CONFIRM)
def set_home_channel(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Send job results to the only approved user."""
    name, chat = finding.data["variable"], finding.data["chat"]
    yield from edit_env(probes, "send results to the only approved user", Assign(name, chat))
    yield from restart_if_running(probes, "platform")


@fix(id="write-plainly", codes=["ENV-AMBIGUOUS"], safety=Safety.SAFE)
def write_plainly(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write the key in .env in plain form."""
    for differing_key in differing_keys(probes.settings.resolved().world):
        if differing_key.name == finding.subject:
            yield from edit_env(
                probes,
                "write the key in plain form",
                Assign(differing_key.name, differing_key.value),
            )
            yield from restart_if_running(probes, "key")
