"""The `probe` command: one question of a container manager, answered by the exit code."""

from __future__ import annotations

import typer

from hermes_doctor.cli.option_declarations import HomeOption, complete_question

EPILOG = """\b
Questions:
  live     process, lock and event loop work; if not, restart the gateway
  ready    it is live and started, and its platforms are connected
  started  it is live, and its start is finished

\b
Examples:
  hermes-doctor probe live
  HEALTHCHECK CMD ["hermes-doctor", "probe", "live"]

\b
Exit codes:
  0  yes; for `live` also if it could not be checked
  1  no, or the home does not exist
  2  wrong option
"""


def probe(
    question: str = typer.Argument(
        metavar="live|ready|started", help="What to ask.", autocompletion=complete_question
    ),
    home: HomeOption = None,
) -> int:
    """Report the gateway's health to Docker or Kubernetes."""
    from hermes_doctor.cli.probe_run import run

    return run(question, home)
