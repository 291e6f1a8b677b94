"""The `config` command: what the next message would really use, and where each value is set."""

from __future__ import annotations

import typer

from hermes_doctor.cli import separate_look
from hermes_doctor.cli.option_declarations import HomeOption, JsonOption
from hermes_doctor.cli.option_values import named_home, repeat_options
from hermes_doctor.cli.progress_bars import waiting
from hermes_doctor.core import home as homes
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.terminal import lines
from hermes_doctor.core.terminal.show import show

EPILOG = """\b
Examples:
  hermes-doctor config
  hermes-doctor config --home /opt/data
  hermes-doctor config --json | jq '.next.key'

\b
Only files are read: no Hermes code is run and nothing is sent. Of a key, only
its name and length are shown.

\b
Exit codes:
  0  shown
  2  could not run (wrong option, no home, a file that cannot be read)
"""


def config(home: HomeOption = None, json: JsonOption = False) -> int:
    """Show the settings that the next message will use."""
    from hermes_doctor import __version__
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.hermes.settings.yaml_mistakes import yaml_mistake
    from hermes_doctor.render import config as rendered, document

    place = homes.find(home)
    options = repeat_options(named_home(home))

    def read() -> str | tuple[lines.Line, ...]:
        probes = Probes(place)
        with waiting("reading the settings", quiet=json):
            resolved = probes.settings.resolved()
            installed = probes.hermes.installation()
        version = installed.version if installed else None
        if json:
            return document.dump(rendered.document(place.path, __version__, version, resolved))
        config = probes.settings.config()
        mistake = yaml_mistake(config) if config and config.fault else None
        told = mistake.what if mistake else ""
        return tuple(rendered.lines(place.path, version, resolved, told, options))

    try:
        made = separate_look.look(place.path, read, (lines.__name__,))
    except CouldNotLook as error:
        raise Trouble("Could not read the settings: {reason}.", reason=error) from None
    if isinstance(made, str):
        typer.echo(made)
    else:
        show(made)
    return 0
