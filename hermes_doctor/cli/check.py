"""The `check` command: what is wrong, since when, why, and what to type now."""

from __future__ import annotations

from pathlib import Path

import typer

from hermes_doctor.cli.check_run import run
from hermes_doctor.cli.option_declarations import (
    DeepOption,
    HomeOption,
    JsonOption,
    NetworkOption,
    OnlyOption,
    PluginsOption,
    SkipOption,
    complete_format,
    complete_severity,
)

EPILOG = """\b
Examples:
  hermes-doctor check
  hermes-doctor check -v
  hermes-doctor check --json
  hermes-doctor check --only databases --fail-on warning
  hermes-doctor check --deep
  hermes-doctor check --network
  hermes-doctor check --all-homes --fail-on error,unknown,crashed
  hermes-doctor check --record
  hermes-doctor check --format nagios
  hermes-doctor check --format prometheus --output /srv/metrics/hermes.prom

\b
Exit codes:
  0  no problem at or above --fail-on
  1  problems, or a check crashed
  2  could not run (wrong option, no home, no time or memory left), or no
     check could read the home
  With --format nagios: 0 no problem, 1 warnings, 2 errors,
  3 could not check
"""


def check(
    home: HomeOption = None,
    all_homes: bool = typer.Option(
        False, "--all-homes", help="Check every profile and the home of every running gateway."
    ),
    json: JsonOption = False,
    deep: DeepOption = False,
    network: NetworkOption = False,
    only: OnlyOption = None,
    skip: SkipOption = None,
    fail_on: str | None = typer.Option(
        None,
        help="Exit with 1 from this severity on: critical, error, warning or info. "
        "Add `,unknown` or `,crashed` to include such checks. [default: error]",
        autocompletion=complete_severity,
    ),
    plugins: PluginsOption = None,
    verbose: bool = typer.Option(
        False, "--verbose", "-v", help="Show all evidence, notes, passed and skipped checks."
    ),
    format: str | None = typer.Option(
        None,
        help="Print text, json, prometheus, nagios, junit or github. [default: text]",
        autocompletion=complete_format,
    ),
    output: Path | None = typer.Option(
        None, metavar="FILE", help="Write to this file and replace its content in one step."
    ),
    record: bool = typer.Option(
        False, "--record", help="Add the result to the history; see `history`."
    ),
    force: bool = typer.Option(
        False, "--force", help="With --output: replace a file that hermes-doctor did not write."
    ),
) -> int:
    """Show what is wrong and what to do; change nothing."""
    return run(**locals())
