"""Implements `watch` without typer, so that typer need not be loaded."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.model import Report, Trouble
    from hermes_doctor.plugins.load import Plugins
    from hermes_doctor.watch.examination_apart import Separate
    from hermes_doctor.watch.rounds import Watch


def run(
    home: Path | None = None,
    interval: str | None = None,
    once: bool = False,
    heal: bool | None = None,
    also: Sequence[str] | None = None,
    after: int | None = None,
    budget: str | None = None,
    patience: str | None = None,
    notify_on: str | None = None,
    notify_command: str | None = None,
    notify_webhook: str | None = None,
    notify_hermes: str | None = None,
    json: bool = False,
    network: bool | None = None,
    only: Sequence[str] | None = None,
    skip: Sequence[str] | None = None,
    fail_on: str | None = None,
    plugins: Sequence[Path] | None = None,
    vault: Path | None = None,
    metrics: Path | None = None,
    heartbeat: str | None = None,
    heartbeat_fail: str | None = None,
) -> int:
    """Check regularly, or once; return the exit code."""
    typed = dict(locals())  # all options, before there is any other name
    from hermes_doctor import __version__
    from hermes_doctor.cli import separate_look, shared_options, watch_options
    from hermes_doctor.cli.check_run import exit_code, say_blind, threshold_for
    from hermes_doctor.cli.stderr import tell
    from hermes_doctor.model import CouldNotLook
    from hermes_doctor.terminal.lines import tilde
    from hermes_doctor.watch import assembly

    where, gone = _where(home)
    with contextlib.suppress(CouldNotLook):  # that is the first round's to say
        separate_look.owner_of(where.path)
    values = watch_options.complete(where.path, typed)
    threshold = threshold_for(fail_on, where.path)
    chosen, metrics = watch_options.assemble(values, vault), values["metrics"]
    watch_options.warn_of_open_files(chosen)
    found = shared_options.load_plugins(plugins)
    checks, codes = shared_options.select(found, values["only"], values["skip"])
    made = assembly.assemble(
        where,
        found,
        checks,
        codes,
        chosen,
        json=json,
        severities=shared_options.severities_for(where.path, found),
        options=shared_options.repeat_options(shared_options.named_home(home), plugins, vault),
        page_options=shared_options.repeat_options(plugins=plugins),
    )
    made.is_well = lambda report: not exit_code([report], {report.home: threshold})
    if metrics is not None:
        made.publish = _publisher(made, metrics)
    from hermes_doctor.supervisors.job_names import SERVICE_VARIABLE

    unknown = gone is not None and made.first_watch and not os.environ.get(SERVICE_VARIABLE)
    if not json and sys.stdout is not None and sys.stdout.isatty():
        tell(f"checking {tilde(where.path)}")
    if made.history is not None:
        made.history.read_runs = separate_look.ended_runs
    _repair_as_owner(made, where, found)
    if not once and not unknown:
        assembly.use_child_processes(made, found, _separate(where, found))
        made.run()
        return 0
    made.title = f"hermes-doctor {__version__} checked {tilde(where.path)} once"
    examine = made.examine
    made.examine = lambda: separate_look.look_at(where.path, examine, found)
    report = made.once(always_report=json or (sys.stdout is not None and sys.stdout.isatty()))
    if gone is not None and not once and not json:
        raise gone
    if report is None:
        return 2
    say_blind([report])
    return exit_code([report], {report.home: threshold})


def _separate(home: Home, plugins: Plugins) -> Separate:
    """Return what lets each round look as the home's owner if that is another user than root."""
    from hermes_doctor.cli import separate_look
    from hermes_doctor.watch.examination_apart import LIMIT

    return lambda work, otherwise: separate_look.look(
        home.path, work, plugins=plugins, limit=LIMIT, otherwise=otherwise
    )


def _repair_as_owner(watch: Watch, home: Home, plugins: Plugins) -> None:
    """Let the watch repair as the home's owner if that is another user than root."""
    if watch.healer is None:
        return
    from functools import partial

    from hermes_doctor.cli import separate_work
    from hermes_doctor.watch.heal import Healer
    from hermes_doctor.watch.healing_apart import RepairAsOwner

    if isinstance(healer := watch.healer, Healer):
        work = partial(separate_work.do, home, plugins=plugins, vault=healer.vault)
        healer.apart = RepairAsOwner(healer, work)


def _publisher(watch: Watch, given: Path) -> Callable[[Report | None], None]:
    """Return what writes the metrics after each round."""
    from datetime import UTC, datetime

    from hermes_doctor.cli import output_file
    from hermes_doctor.render import prometheus
    from hermes_doctor.supervisors.job_names import SERVICE_VARIABLE

    rules = output_file.rules_for([watch.home])
    if not os.environ.get(SERVICE_VARIABLE):
        output_file.find(
            given, rules
        )  # a service goes on without it, as if the folder were lost later

    def publish(report: Report | None) -> None:
        exhausted = watch.healer is not None and watch.healer.is_exhausted()
        repairs = prometheus.Repairs(watch.home.path, watch.memory.repaired, exhausted)
        made = (
            prometheus.of_missing_home(datetime.now(UTC), repairs)
            if report is None
            else prometheus.of_reports([report], repairs)
        )
        output_file.replace(given, made, output_file.WORLD_READABLE, rules)

    return publish


def _where(option: Path | None) -> tuple[Home, Trouble | None]:
    """The home, and a Trouble if it is missing, so that the watch can report it as away."""
    from hermes_doctor import home as homes
    from hermes_doctor.model import Trouble
    from hermes_doctor.system.files import user_home
    from hermes_doctor.watch.store import WatchStateFiles

    try:
        return homes.find(option), None
    except Trouble as trouble:
        named = option or Path(os.environ.get("HERMES_HOME", ""))
        path = (named if named.parts else user_home() / ".hermes").expanduser()
        home = homes.Home(path.resolve(), path)
        if not named.parts and WatchStateFiles(home).load("") is None:
            raise  # no home was named, and none was ever watched
        return home, trouble
