"""The `probe` command: one question of a container manager, answered by the exit code."""

from __future__ import annotations

from typing import Annotated

import typer

from hermes_doctor.cli.options import HomeOption

EPILOG = """\b
Questions:
  live     process, lock and event loop: restart the gateway if not
  ready    also the platforms: the bot can answer people
  started  the gateway has finished its start

\b
Examples:
  hermes-doctor probe live
  HEALTHCHECK CMD ["hermes-doctor", "probe", "live"]

\b
Exit codes:
  0  yes; for `live` also: nothing is known to be broken
  1  no, or the home does not exist
  2  wrong option
"""


def probe(
    question: Annotated[str, typer.Argument(metavar="live|ready|started", help="What to ask.")],
    home: HomeOption = None,
) -> int:
    """Answer one question of Docker, Kubernetes or systemd."""
    from hermes_doctor.cli.probe_run import run

    return run(question, home)
