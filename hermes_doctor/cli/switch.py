"""The `switch-provider` command: change the model provider, proved by a request or rolled back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from hermes_doctor.cli import exits, separate_work
from hermes_doctor.cli.ask import AskOption, LastQuestion
from hermes_doctor.cli.option_declarations import (
    HomeOption,
    JsonOption,
    VaultOption,
    YesOption,
    complete_protocol,
)
from hermes_doctor.cli.option_values import absolute, named_home, repeat_options
from hermes_doctor.cli.progress_bars import print_document, waiting
from hermes_doctor.cli.restore_common import recover_first, say_if_interrupted
from hermes_doctor.core import home as homes
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.terminal.lines import row
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_doctor.backup.records.journal import Journal
    from hermes_doctor.core.home import Home
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.operations.provider_switch.plan import Proof, SwitchPlan
    from hermes_doctor.operations.provider_switch.target import SwitchRequest

EPILOG = """\b
Examples:
  hermes-doctor switch-provider openkey \\
      --base-url https://openkey.cloud/v1 --model gpt-4o-mini
  hermes-doctor switch-provider openkey --model gpt-4o-mini --apply
  hermes-doctor switch-provider deepseek --model deepseek-chat --apply --yes
  hermes-doctor switch-provider openrouter --model openai/gpt-4o-mini --apply
  hermes-doctor switch-provider relay --base-url http://127.0.0.1:8000/v1 \\
      --model local --no-fallback --no-test --apply

\b
The key is never an option: it is asked for without showing it, or read as
one line from a pipe, unless its variable is already set.

\b
Exit codes:
  0  the plan is shown; with --apply: switched and tested, or already in use
  1  with --apply: you answered no, the test failed and the switch was rolled
     back, or --ask got no answer
  2  could not run; nothing was changed
"""


def switch_provider(
    name: str = typer.Argument(help="A built-in provider, one from config.yaml, or a new name."),
    base_url: str | None = typer.Option(None, help="Set its address; required for a new provider."),
    key_env: str | None = typer.Option(
        None, help="Read its key from this variable instead of NAME_API_KEY."
    ),
    model: str | None = typer.Option(
        None, help="Use this model; required if the provider does not serve the current one."
    ),
    api_mode: str | None = typer.Option(
        None,
        help="Use this protocol instead of the one that Hermes guesses.",
        autocompletion=complete_protocol,
    ),
    ask_key: bool = typer.Option(
        False, "--ask-key", help="Ask for a key even if its variable is set."
    ),
    no_fallback: bool = typer.Option(
        False, "--no-fallback", help="Do not add the current provider as fallback."
    ),
    no_test: bool = typer.Option(
        False, "--no-test", help="Switch without a test request to the provider."
    ),
    apply: bool = typer.Option(False, "--apply", help="Carry out the plan."),
    yes: YesOption = False,
    ask: AskOption = False,
    home: HomeOption = None,
    json: JsonOption = False,
    vault: VaultOption = None,
) -> int:
    """Switch to another model provider and test it."""
    from hermes_doctor.diagnosis.plugins import load
    from hermes_doctor.operations.provider_switch.target import SwitchRequest

    where, home, vault = homes.find(home), named_home(home), absolute(vault)
    wish = SwitchRequest(name, base_url, key_env, model, api_mode, fallback=not no_fallback)
    asking = SwitchSession(where, wish, ask_key=ask_key, tested=not no_test)
    question = LastQuestion(where, home, wanted=ask, apply=apply, json=json)
    if not apply:
        command = _command(asking, home, vault)
        show = lambda: _show(asking, command, json=json)  # noqa: E731
        return separate_work.run(where, show, writes=False, vault=vault)
    plugins = load.load()

    def work() -> int:
        from hermes_doctor.backup.records.home_lock import lock_home

        with lock_home(where), recover_first(where, plugins, json=json) as ended:
            code = _apply(asking, vault, home, question, yes=yes, json=json)
            code = code or int(any(run.partial for run in ended))
        return question.end(code)

    return separate_work.run(where, work, plugins, vault=vault)


class SwitchSession:
    """One call of the command: the home and the options."""

    def __init__(self, home: Home, request: SwitchRequest, *, ask_key: bool, tested: bool) -> None:
        self.home = home
        self.request = request
        self.ask_key = ask_key
        self.tested = tested

    def look(self) -> Probes:
        """New probes with nothing cached, which also ask the supervisor of a stopped gateway."""
        from hermes_doctor.diagnosis.probes.probes import Probes

        return Probes(self.home, network=True)

    def plan(self, *, typed: bool) -> SwitchPlan:
        """Plan the switch; prompt for a missing key if `typed`, else only name its variable."""
        from hermes_doctor.operations.provider_switch import plan, target

        probes = self.look()
        try:
            world = probes.settings.resolved().world
            wanted = plan.missing_key_variable(probes, self.request)
            if self.ask_key:
                wanted = target.find_target(world, self.request).variable
                if wanted is None:
                    raise CannotFix("its key is not stored in a variable; name one with --key-env")
            if wanted and typed:
                return plan.plan(probes, self.request, _typed(wanted, world.release.is_usable))
            switch = plan.plan(probes, self.request, plan.PLACEHOLDER_KEY if wanted else None)
        except (CannotFix, CouldNotLook) as why:
            raise Trouble(
                "Could not switch: {reason}. Nothing was changed.", reason=str(why).rstrip(".")
            ) from None
        if not wanted:
            return switch
        given = self.ask_key and world.release.is_usable(world.getenv(wanted))
        note = (
            f"--apply asks for a new {wanted}."
            if given
            else f"{wanted} is not set; --apply asks for it."
        )
        return switch._replace(notes=(*switch.notes, note), asked_for="" if given else wanted)


def _typed(variable: str, is_usable: Callable[[str], bool]) -> str:
    """Read the key from a prompt without echo or from a pipe."""
    if sys.stdin.isatty():
        import getpass

        said = getpass.getpass(f"{variable} (not shown while you type): ")
    else:
        said = sys.stdin.readline(8192)
    key = said.strip().removeprefix("Bearer ").strip()
    if not key:
        raise Trouble(
            "No key was given for {variable}. Nothing was changed. Type it when "
            "asked, or send it through a pipe as one line.",
            variable=variable,
        )
    if not key.isascii() or not key.isprintable() or any(char in key for char in " \"'`"):
        raise Trouble(
            "This is not a key: it contains spaces, quotes or unusual characters. "
            "Nothing was changed."
        )
    if not is_usable(key):
        raise Trouble("This is not a key: it is a placeholder or too short. Nothing was changed.")
    return key


def _show(asking: SwitchSession, command: str, *, json: bool) -> int:
    """Show the plan only."""
    from hermes_doctor.render import provider_switch

    with waiting("planning", quiet=json):
        switch = asking.plan(typed=False)
    if json:
        print_document(provider_switch.document(asking.home.path, switch, None, None))
    elif not switch.steps:
        name = asking.request.name
        show([row(("✓ ", "good"), f"{name} is already in use. Nothing to do.")])
    else:
        show(provider_switch.plan_lines(switch, tested=asking.tested))
        show([row("Nothing is changed yet. All files are backed up before they are changed.")])
        show([row("Next: ", (command, "command"))])
    return 0


def _command(asking: SwitchSession, home: Path | None, vault: Path | None) -> str:
    import shlex

    wish = asking.request
    words = ["hermes-doctor", "switch-provider", wish.name]
    options = {
        "--base-url": wish.base_url,
        "--key-env": wish.key_env,
        "--model": wish.model,
        "--api-mode": wish.api_mode,
    }
    words += [word for name, value in options.items() if value for word in (name, value)]
    words += ["--ask-key"] if asking.ask_key else []
    words += [] if wish.fallback else ["--no-fallback"]
    words += [] if asking.tested else ["--no-test"]
    return f"{shlex.join([*words, '--apply'])}{repeat_options(named_home(home), vault=vault)}"


def _apply(
    asking: SwitchSession,
    vault: Path | None,
    home: Path | None,
    question: LastQuestion,
    *,
    yes: bool,
    json: bool,
) -> int:
    """Show the plan, ask, and apply it."""
    from hermes_doctor.cli.option_declarations import confirm
    from hermes_doctor.operations.provider_switch.plan import Proof
    from hermes_doctor.render import provider_switch, repair

    where = asking.home
    with waiting("planning", quiet=json):
        switch = asking.plan(typed=False)
    if not switch.steps:
        name = asking.request.name
        if not json:
            show([row(("✓ ", "good"), f"{name} is already in use. Nothing was changed.")])
        else:
            question.document = provider_switch.document(where.path, switch, None, None)
        return 0
    if not json:
        show(provider_switch.plan_lines(switch, tested=asking.tested))
    if not yes and (json or not sys.stdin.isatty()):
        raise Trouble(
            "A switch changes files and asks first. Nothing was changed. To confirm: add --yes"
        )
    if not yes and not confirm(
        text(
            "Switch to {provider}? The current settings are backed up first.",
            provider=asking.request.name,
        )
    ):
        question.note_result([], declined=True)
        return 1
    switch = asking.plan(typed=True)
    proof = Proof(switch, asking.look, tested=asking.tested)
    with waiting("switching and testing", quiet=json):
        run = _run(where, switch, proof, vault)
    exits.note_change()
    if not json:
        show(repair.receipt_lines(run, repeat_options(named_home(home))))
        tested = f"Test: {proof.test_result}."
        show([row(tested if asking.tested else "The provider was not tested (--no-test).", hang=2)])
        if run.state == "done" and not question.wanted:
            command = f"hermes-doctor check --network{repeat_options(named_home(home))}"
            show([row("Next: ", (command, "command"))])
    else:
        tested = proof.test_result
        question.document = provider_switch.document(where.path, switch, run, tested)
    question.note_result([run])
    return int(run.state != "done" or run.leaves_files)


def _run(where: Home, switch: SwitchPlan, proof: Proof, vault: Path | None) -> Journal:
    from hermes_doctor.backup.records.journal import ItemRecord
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.repair.transaction.run import Run
    from hermes_doctor.repair.transaction.targets import Item

    name = switch.after.requested.value or ""
    installed = Probes(where).hermes.installation()
    record = ItemRecord(
        fix="switch-provider",
        code="",
        subject=f"switch to {name}",
        check="switch-provider",
        steps=[step.sentence() for step in switch.steps],
    )
    run = Run(
        where,
        Vault(where, vault),
        kind="fix",
        reason=f"before the switch to {name}",
        hermes=installed.version if installed else None,
    )
    with say_if_interrupted(run):
        return run.apply([Item(record, switch.steps)], proof)
