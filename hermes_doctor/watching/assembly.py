"""Puts a watch together out of what the operator asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from hermes_doctor import __version__, examination
from hermes_doctor.api import Check
from hermes_doctor.home import Home
from hermes_doctor.model import Report, Severity, Trouble
from hermes_doctor.plugins import Plugins
from hermes_doctor.probes import Probes
from hermes_doctor.render.lines import tilde
from hermes_doctor.watching import spans
from hermes_doctor.watching.channels import Channel, Command, Hermes, Webhook
from hermes_doctor.watching.clocks import span
from hermes_doctor.watching.healing import Healer
from hermes_doctor.watching.ledger import Ledger
from hermes_doctor.watching.memory import Store
from hermes_doctor.watching.notices import Notices
from hermes_doctor.watching.rounds import Watch
from hermes_doctor.watching.telling import Teller

SHORTEST = 1.0
ONE_ROUND = 120.0
"""Seconds that a single round waits for its notices: nobody else would send them."""


class Ways(NamedTuple):
    """How to notify, and from which severity on."""

    on: str
    command: str | None
    webhook: str | None
    hermes: str | None


class Healing(NamedTuple):
    """Within which bounds to heal."""

    after: int
    budget: str
    patience: str
    also: tuple[str, ...]
    vault: Path | None


def assemble(
    home: Home,
    plugins: Plugins,
    checks: Sequence[Check],
    codes: frozenset[str],
    *,
    interval: str,
    network: bool,
    json: bool,
    options: str,
    page_options: str,
    notices: Ways,
    healing: Healing | None,
    waits: bool,
) -> Watch:
    """The watch; Trouble where something was asked for that cannot be."""

    def look() -> Report:
        probes = Probes(home, network=network)
        try:
            report = examination.report(
                probes, plugins, checks, options=options, page_options=page_options
            )
        finally:
            probes.close()
        shown = tuple(finding for finding in report.findings if finding.code in codes)
        return replace(report, findings=shown)

    seconds = spans.seconds(interval, "--interval", least=SHORTEST)
    made = Watch(
        home=home,
        look=look,
        tell=Teller(home.path, json=json),
        store=Store(home),
        interval=seconds,
        after=healing.after if healing else 1,
        notices=_notices(notices, home, waits=waits),
    )
    heals = ""
    if healing is not None:
        healer = _healer(made, plugins, healing, options)
        budget = healer.ledger.budget
        heals = f", heals ({budget.most} in {span(budget.period)} at most)"
        made.enable(healer)
    made.title = (
        f"hermes-doctor {__version__} watches {tilde(home.path)} every {span(seconds)}{heals}"
    )
    return made


def _healer(watch: Watch, plugins: Plugins, asked: Healing, options: str) -> Healer:
    known = {name for fix in plugins.fixes for name in (fix.id, *fix.codes)}
    agreed = frozenset(_known(word, known) for word in asked.also)
    ledger = Ledger(spans.budget(asked.budget), watch.memory.repairs, watch.memory.failures)
    return Healer(
        home=watch.home,
        plugins=plugins,
        store=watch.store,
        ledger=ledger,
        clock=watch.clock,
        signals=watch.signals,
        after=asked.after,
        patience=spans.seconds(asked.patience, "--patience"),
        agreed=agreed,
        vault=asked.vault,
        options=options,
    )


def _known(word: str, known: set[str]) -> str:
    for name in (word.lower(), word.upper()):
        if name in known:
            return name
    raise Trouble(f"--also takes a code or a fix; nothing that has a fix is called {word!r}.")


def _notices(ways: Ways, home: Home, *, waits: bool) -> Notices | None:
    try:
        threshold = Severity(ways.on.lower())
    except ValueError:
        listed = ", ".join(severity.value for severity in Severity)
        raise Trouble(f"--notify-on takes {listed}, not {ways.on!r}.") from None
    channels: list[Channel] = []
    if ways.command:
        channels.append(Command(ways.command))
    if ways.webhook:
        channels.append(Webhook(address(ways.webhook)))
    if ways.hermes:
        channels.append(Hermes(home, ways.hermes))
    if not channels:
        return None
    made = Notices(channels, str(home.path), threshold)
    if waits:
        made.patience = ONE_ROUND
    return made


def address(said: str) -> str:
    """A webhook's address, or what the file after an @ holds."""
    if not said.startswith("@"):
        return said
    from hermes_doctor.files import read
    from hermes_doctor.model import CouldNotLook

    try:
        return read(Path(said[1:]).expanduser(), 4096)[0].decode("utf-8", "replace").strip()
    except (OSError, CouldNotLook):
        raise Trouble("--notify-webhook names a file that cannot be read.") from None
