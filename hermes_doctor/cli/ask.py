"""The `ask` command: one real message, as the proof that the bot can answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hermes_doctor.cli import exits, option_values, separate_work
from hermes_doctor.cli.option_declarations import HomeOption, JsonOption, refuse_nan
from hermes_doctor.cli.option_values import load_plugins, named_home, repeat_options
from hermes_doctor.cli.progress_bars import print_document, waiting
from hermes_doctor.core import home as homes
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system.privileges import as_owner_of
from hermes_doctor.core.terminal.lines import BLANK, row
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hermes_doctor.backup.records.journal import Journal
    from hermes_doctor.core.home import Home

EPILOG = """\b
Examples:
  hermes-doctor ask
  hermes-doctor ask "What is the capital of France?"
  hermes-doctor ask --timeout 120 --json

\b
If the gateway runs and its API server is on, the question goes through the
gateway and appears in the message history. Otherwise it goes to the model
provider, with the address, model, key and headers that Hermes would use.
It may cost a little. No other command asks unless you add --ask.

\b
Exit codes:
  0  answered
  1  refused, or no proper answer in time
  2  could not ask (no home, no provider, no key); nothing was sent
"""
TIMEOUT = 60.0
AskOption = Annotated[
    bool, typer.Option("--ask", help="At the end, ask the bot one question; it may cost a little.")
]


def ask(
    question: str | None = typer.Argument(
        None, metavar="[TEXT]", help="The question; by default a short harmless one."
    ),
    timeout: float = typer.Option(
        TIMEOUT,
        min=1,
        max=600,
        callback=refuse_nan,
        help="Wait at most this many seconds for each answer.",
    ),
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Ask the bot one question; it may cost a little."""

    where, named = homes.find(home), option_values.named_home(home)
    exits.set_interrupt_text(
        "The question may have been sent, but hermes-doctor did not wait for the answer."
    )

    def work() -> int:
        done = ask_once(where, named, question, timeout=timeout, json=json)
        if json:
            print_document(done)
        return int(not done["ok"])

    return separate_work.run(where, work, option_values.load_plugins(None), writes=False)


def ask_once(
    where: Home,
    option: Path | None,
    question: str | None = None,
    *,
    timeout: float = TIMEOUT,
    json: bool,
) -> dict[str, Any]:
    """Ask one question, show it unless `json`, and return the document.

    The result is kept for the next `check`, unless it says nothing about the bot.
    """
    from hermes_doctor.backup.records import last_ask
    from hermes_doctor.diagnosis.examination import report
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.operations.asking import ask, plan
    from hermes_doctor.render import ask as rendered

    with waiting("looking for the gateway and its model", quiet=json):
        planned = plan.make(
            Probes(where, network=True), plan.QUESTION if question is None else question
        )
    if not json:
        show(rendered.plan_lines(planned))
    if sys.stdout is not None:
        sys.stdout.flush()  # what is sent to whom is shown before it is sent
    with waiting("waiting for the answer", quiet=json), as_owner_of(where / "config.yaml"):
        result = ask.carry_out(planned, timeout)
    not_kept = last_ask.save(where, result.record) if result.says_something else None
    advice = None
    if not result.record.is_fine:  # the checks that use the result of an `ask` give it
        probes = Probes(where)
        probes.health.asked = result.record
        checks = [check for check in load_plugins(None).checks if check.needs == "ask"]
        advice = next(iter(report.examine(probes, checks)[1]), None)
    if not json:
        options = repeat_options(named_home(option))
        show(rendered.result_lines(result, advice, options, not_kept))
    return rendered.document(where.path, planned, result, advice, not_kept)


class LastQuestion:
    """The question at the end of a command that changes something, if the operator wants one."""

    def __init__(
        self, where: Home, option: Path | None, *, wanted: bool, apply: bool, json: bool
    ) -> None:
        if wanted and not apply:
            raise Trouble("--ask asks after a change. Nothing was changed. Add --apply, too.")
        self.where = where
        self.option = option
        self.wanted = wanted
        self.json = json
        self.document: dict[str, Any] | None = None
        """What the command prints with --json; the question is added to it."""
        self.failed = False
        """Whether there was a question and no proper answer."""
        self.skipped = False
        """Whether the change was refused, declined or rolled back, so that nothing is asked."""

    def note_result(self, runs: Sequence[Journal], *, declined: bool = False) -> None:
        """Note how the change ended. If there was nothing to change, the question is asked."""
        kept = any(item.is_applied for run in runs for item in run.items)
        self.skipped = not kept and (bool(runs) or declined)

    def end(self, code: int) -> int:
        """Ask, print the document with --json, and return the exit code of the command.

        The caller no longer holds the lock of the home: an answer can take a minute.
        """
        asked = self._ask() if self.wanted and not self.skipped else None
        if self.document is not None:
            more = {} if asked is None else {"ask": asked}
            print_document(self.document | more)
        elif self.wanted and self.skipped:
            typer.echo("No question was asked, because the change was not made.")
        return code or int(self.failed)

    def _ask(self) -> dict[str, Any]:
        """Ask and show it. What was changed before stays."""
        if not self.json:
            show([BLANK])
        try:
            done = ask_once(self.where, self.option, json=self.json)
        except Trouble as trouble:
            self.failed = True
            if not self.json:
                show([row(("✗ ", "error"), str(trouble), hang=2)])
            return {"ok": False, "error": {"message": str(trouble), "exit_code": 2}}
        self.failed = not done["ok"]
        return done
