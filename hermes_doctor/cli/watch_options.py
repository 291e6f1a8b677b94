"""Completes the options of `watch` and `watch install` with config.toml and the defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_doctor.plugins.load import Plugins
    from hermes_doctor.preferences.effective import Preferences, Setting
    from hermes_doctor.watch.assembly import WatchOptions

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
    from hermes_doctor.preferences import effective

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
    from hermes_doctor.model import Trouble
    from hermes_doctor.watch import assembly

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

    from hermes_doctor.watch.secret_options import readable_by_others

    for path in readable_by_others(chosen.secrets):
        hint = f"chmod go-r {shlex.quote(str(path))}"
        told = f"hermes-doctor: Other users can read {path}, which may hold a secret. Run: {hint}"
        print(told, file=sys.stderr)  # noqa: T201


def check_files(found: Preferences, home: Path, plugins: Plugins) -> None:
    """Raise Trouble if the options of the watch in a file would be refused, for any home."""
    from hermes_doctor.cli.shared_options import select
    from hermes_doctor.home import Home
    from hermes_doctor.message import text
    from hermes_doctor.model import Trouble
    from hermes_doctor.watch import assembly

    for place in (home, *found.homes()):
        values = complete(place, {})
        try:
            assembly.validate(assemble(values, None), Home(place), plugins)
            select(plugins, values["only"], values["skip"])
        except Trouble as trouble:
            files = " and ".join(str(file.path) for file in found.files)
            wrong = "The options of the watch of {home} in {files}: {why}"
            raise Trouble(text(wrong, home=place, files=files, why=trouble)) from None


def _validate(chosen: Mapping[str, Setting]) -> None:
    """Raise Trouble that names the file and line of a wrong value."""
    if not chosen:
        return
    from hermes_doctor.message import text
    from hermes_doctor.model import Severity, Trouble
    from hermes_doctor.schedule import durations
    from hermes_doctor.watch.assembly import SHORTEST

    def severity(given: str) -> None:
        if given.lower() not in [*Severity]:
            raise Trouble(text("use {choices}.", choices=", ".join(Severity)))

    rules: dict[str, Callable[[str], object]] = {
        "interval": lambda given: durations.parse_seconds(given, "interval", least=SHORTEST),
        "patience": lambda given: durations.parse_seconds(given, "patience"),
        "budget": durations.parse_budget,
        "notify_on": severity,
    }
    for name, rule in rules.items():
        if name in chosen:
            try:
                rule(chosen[name].value)
            except Trouble as trouble:
                origin = chosen[name].origin
                raise Trouble(text("{origin}: {why}", origin=origin, why=trouble)) from None
