"""The `config` command: what the next message would really use, and where each value is set."""

from __future__ import annotations

import typer

from hermes_doctor.cli.options import HomeOption, JsonOption

EPILOG = """\b
Examples:
  hermes-doctor config
  hermes-doctor config --home /opt/data
  hermes-doctor config --json | jq '.next.key'

\b
Only files are read: no Hermes code is run and nothing is sent. Keys are shown
by name only.

\b
Exit codes:
  0  shown
  2  could not run (wrong option, no home, a file that cannot be read)
"""


def config(home: HomeOption = None, json: JsonOption = False) -> int:
    """Show the settings that the next message will use."""
    from hermes_doctor import __version__, home as homes
    from hermes_doctor.message import text
    from hermes_doctor.model import CouldNotLook, Trouble
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.render import config as rendered, document
    from hermes_doctor.terminal.show import show

    probes = Probes(homes.find(home))
    try:
        found = probes.resolved()
        installed = probes.installation()
    except CouldNotLook as error:
        raise Trouble(text("Could not read the settings: {reason}.", reason=error)) from None
    version = installed.version if installed else None
    if json:
        made = rendered.document(probes.home.path, __version__, version, found)
        typer.echo(document.dump(made))
    else:
        show(rendered.lines(probes.home.path, version, found))
    return 0
