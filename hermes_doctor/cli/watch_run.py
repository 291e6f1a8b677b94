"""Implements `watch` without typer, so that typer need not be loaded.

`watch install` and `settings` also complete its options with config.toml and the defaults here.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.cli import option_values, separate_look, separate_work
from hermes_doctor.cli.option_values import select
from hermes_doctor.core import home as homes
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook, Severity, Trouble
from hermes_doctor.core.preferences import effective
from hermes_doctor.core.system.files import user_home
from hermes_doctor.core.terminal.lines import tilde

if TYPE_CHECKING:
    from hermes_doctor.core.model import Report
    from hermes_doctor.core.preferences.effective import Preferences, Setting
    from hermes_doctor.diagnosis.plugins.load import Plugins
    from hermes_doctor.operations.watch.assembly import WatchOptions
    from hermes_doctor.operations.watch.examination_apart import Separate
    from hermes_doctor.operations.watch.rounds import Watch


def run(
    home: Path | None = None,
    once: bool = False,
    json: bool = False,
    fail_on: str | None = None,
    plugins: Sequence[Path] | None = None,
    vault: Path | None = None,
    **options: Any,
) -> int:
    """Check regularly, or once; return the exit code. `options` are named as in DEFAULTS."""
    from hermes_doctor import __version__
    from hermes_doctor.cli.check_run import exit_code, say_blind, threshold_for
    from hermes_doctor.cli.progress_bars import tell
    from hermes_doctor.operations.watch import assembly

    where, gone = _where(home)
    with contextlib.suppress(CouldNotLook):  # that is the first round's to say
        separate_look.owner_of(where.path)
    values = complete(where.path, options)
    threshold = threshold_for(fail_on, where.path)
    chosen, metrics = assemble(values, vault), values["metrics"]
    warn_of_open_files(chosen)
    found = option_values.load_plugins(plugins)
    checks, codes = option_values.select(found, values["only"], values["skip"])
    watch = assembly.assemble(
        where,
        found,
        checks,
        codes,
        chosen,
        json=json,
        severities=option_values.severities_for(where.path, found),
        options=option_values.repeat_options(option_values.named_home(home), plugins, vault),
        page_options=option_values.repeat_options(plugins=plugins),
    )
    watch.is_well = lambda report: not exit_code([report], {report.home: threshold})
    if metrics is not None:
        watch.publish = _publisher(watch, metrics)
    from hermes_doctor.core.home import SERVICE_VARIABLE

    unknown = gone is not None and watch.first_watch and not os.environ.get(SERVICE_VARIABLE)
    if not json and sys.stdout is not None and sys.stdout.isatty():
        tell(f"checking {tilde(where.path)}")
    _work_as_owner(watch, where, found)
    if not once and not unknown:
        look = _separate_look(where, found)
        assembly.use_child_processes(watch, found, look, examine_unchanged=chosen.network)
        watch.run()
        return 0
    watch.title = f"hermes-doctor {__version__} checked {tilde(where.path)} once"
    examine = watch.examine
    watch.examine = lambda: separate_look.look_at(where.path, examine, found)
    report = watch.once(always_report=json or (sys.stdout is not None and sys.stdout.isatty()))
    if gone is not None and not once and not json:
        raise gone
    if report is None:
        return 2
    say_blind([report])
    return exit_code([report], {report.home: threshold})


def _work_as_owner(watch: Watch, home: Home, plugins: Plugins) -> None:
    """Let the watch read runs and repair as the home's owner if that is another user than root."""
    if watch.history is not None:
        watch.history.read_runs = separate_look.ended_runs
    if watch.healer is None:
        return
    from hermes_doctor.operations.watch.heal import Healer
    from hermes_doctor.operations.watch.healing_apart import RepairAsOwner

    if isinstance(healer := watch.healer, Healer):
        repair = partial(separate_work.do, home, plugins=plugins, vault=healer.vault)
        healer.apart = RepairAsOwner(healer, repair)


def _separate_look(home: Home, plugins: Plugins) -> Separate:
    """Return what lets each round look as the home's owner if that is another user than root."""
    from hermes_doctor.operations.watch.examination_apart import LIMIT

    return lambda work, otherwise: separate_look.look(
        home.path, work, plugins=plugins, limit=LIMIT, otherwise=otherwise
    )


def _publisher(watch: Watch, given: Path) -> Callable[[Report | None], None]:
    """Return what writes the metrics after each round."""
    from datetime import UTC, datetime

    from hermes_doctor.cli import output_file
    from hermes_doctor.core.home import SERVICE_VARIABLE
    from hermes_doctor.render import prometheus

    rules = output_file.rules_for([watch.home])
    if not os.environ.get(SERVICE_VARIABLE):
        # a service goes on without it, as if the folder were lost later
        output_file.find(given, rules)

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
    from hermes_doctor.operations.watch.store import WatchStateFiles

    try:
        return homes.find(option), None
    except Trouble as trouble:
        named = option or Path(os.environ.get("HERMES_HOME", ""))
        path = (named if named.parts else user_home() / ".hermes").expanduser()
        home = homes.Home(path.resolve(), path)
        if not named.parts and WatchStateFiles(home).load("") is None:
            raise  # no home was named, and none was ever watched
        return home, trouble


DEFAULTS: dict[str, Any] = {
    "interval": "30s",
    "heal": False,
    "also": (),
    "after": 3,
    "budget": "3/30m",
    "patience": "10m",
    "notify_on": "error",
    "notify_command": None,
    "notify_webhook": None,
    "notify_hermes": None,
    "network": False,
    "only": (),
    "skip": (),
    "metrics": None,
    "heartbeat": None,
    "heartbeat_fail": None,
}


def complete(home: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options as typed; what was not typed comes from config.toml, else it has its default.

    Of what is given, only the names in DEFAULTS count.
    """
    chosen = effective.load().watch(home)
    _validate(chosen)
    values = DEFAULTS | {name: one.value for name, one in chosen.items()}
    typed = {name: given[name] for name in DEFAULTS if given.get(name) not in (None, [])}
    if not (values | typed)["heal"]:
        values["also"] = ()  # what a file says of it needs healing; typed, it is a mistake
    return values | typed


def assemble(
    values: Mapping[str, Any], vault: Path | None, fail_on: str | None = None
) -> WatchOptions:
    """The options as the watch wants them; raise Trouble if they contradict each other."""
    from hermes_doctor.operations.watch import assembly

    if values["also"] and not values["heal"]:
        raise Trouble("--also needs --heal.")
    ways = assembly.NotifyOptions(
        values["notify_on"],
        values["notify_command"],
        values["notify_webhook"],
        values["notify_hermes"],
    )
    healing = assembly.HealOptions(
        values["after"], values["budget"], values["patience"], tuple(values["also"]), vault
    )
    return assembly.WatchOptions(
        values["interval"],
        values["network"],
        ways,
        healing if values["heal"] else None,
        values["metrics"],
        values["heartbeat"],
        values["heartbeat_fail"],
        fail_on,
    )


def warn_of_open_files(chosen: WatchOptions) -> None:
    """Print which files with secret addresses other users can read."""
    import shlex
    import sys

    from hermes_doctor.operations.watch.secret_options import readable_by_others

    for path in readable_by_others(chosen.secrets):
        hint = f"chmod go-r {shlex.quote(str(path))}"
        told = f"hermes-doctor: Other users can read {path}, which may hold a secret. Run: {hint}"
        print(told, file=sys.stderr)  # noqa: T201


def check_files(preferences: Preferences, home: Path, plugins: Plugins) -> None:
    """Raise Trouble if the options of the watch in a file would be refused, for any home."""
    from hermes_doctor.operations.watch import assembly

    for place in (home, *preferences.homes()):
        values = complete(place, {})
        try:
            assembly.validate(assemble(values, None), Home(place), plugins)
            select(plugins, values["only"], values["skip"])
        except Trouble as trouble:
            files = " and ".join(str(file.path) for file in preferences.files)
            wrong = "The options of the watch of {home} in {files}: {why}"
            raise Trouble(wrong, home=place, files=files, why=trouble) from None


def _validate(chosen: Mapping[str, Setting]) -> None:
    """Raise Trouble that names the file and line of a wrong value."""
    if not chosen:
        return
    from hermes_doctor.operations.watch.assembly import SHORTEST
    from hermes_doctor.repair.schedule import jobs

    def severity(given: str) -> None:
        if given.lower() not in [*Severity]:
            raise Trouble("use {choices}.", choices=", ".join(Severity))

    rules: dict[str, Callable[[str], object]] = {
        "interval": lambda given: jobs.parse_seconds(given, "interval", least=SHORTEST),
        "patience": lambda given: jobs.parse_seconds(given, "patience"),
        "budget": jobs.parse_budget,
        "notify_on": severity,
    }
    for name, rule in rules.items():
        if name in chosen:
            try:
                rule(chosen[name].value)
            except Trouble as trouble:
                origin = chosen[name].origin
                raise Trouble("{origin}: {why}", origin=origin, why=trouble) from None
