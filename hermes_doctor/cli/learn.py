"""The `learn` command: ask the installed Hermes what hermes-doctor does not know about it."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import typer

from hermes_doctor.cli import separate_look
from hermes_doctor.cli.option_declarations import HomeOption, JsonOption, refuse_nan
from hermes_doctor.cli.progress_bars import print_document, waiting
from hermes_doctor.core import home as homes
from hermes_doctor.core.message import text
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system.signals import interruptible
from hermes_doctor.core.terminal.lines import row
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.hermes.installation.find import Installation

EPILOG = """\b
Examples:
  hermes-doctor learn
  hermes-doctor learn --home /opt/data --json
  hermes-doctor learn --timeout 300     on a slow machine

\b
Exit codes:
  0    learned, or nothing to learn
  1    Hermes does not start or does not answer in time
  2    could not run (wrong option, no home, no Hermes)
  130  interrupted; nothing was stored
"""
SCHEMA = "hermes-doctor/learn/1"
NO_HERMES = (
    "No installed Hermes was found, so there is nothing to ask. If it is in a container, "
    "run hermes-doctor there."
)


def learn(
    home: HomeOption = None,
    timeout: float = typer.Option(
        120,
        metavar="SECONDS",
        min=1,
        max=3600,
        callback=refuse_nan,
        help="Give up after this many seconds.",
    ),
    json: JsonOption = False,
) -> int:
    """Learn a Hermes release that is newer than this tool.

    The installed Hermes creates its databases and default settings in an empty temporary folder,
    as the owner of the home and without network. Its answers are stored outside the home.
    """
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.hermes.installation import find
    from hermes_doctor.hermes.installation.details import read_details
    from hermes_doctor.operations.learning import learn as learning
    from hermes_doctor.operations.learning.isolation import DoesNotStart

    until = time.monotonic() + timeout
    place = homes.find(home)

    def read() -> tuple[Installation | None, bool, str | None]:
        with closing(Probes(place)) as probes:
            installation, unknown = probes.hermes.installation(), probes.can_learn()
        return installation, unknown, read_details(installation).revision if installation else None

    installed, unknown, commit = separate_look.look(place.path, read, (find.__name__,))
    if installed is None:
        raise Trouble(NO_HERMES)
    hermes = {"hermes": {"version": installed.version, "commit": commit}}
    if not unknown:
        message = text("hermes-doctor already knows Hermes {version}.", version=installed.version)
        return _end(json, "known", hermes, message)
    try:
        with interruptible(), waiting(f"asking Hermes {installed.version}", quiet=json):
            lecture = learning.learn(place, installed, commit, until, timeout)
    except DoesNotStart as why:
        message = text(
            "Hermes {version} could not be asked, so nothing was learned: {reason}.",
            version=installed.version,
            reason=str(why).rstrip("."),
        )
        return _end(json, "failed", {"error": {"message": message, "exit_code": 1}}, message)
    facts = {"databases": lecture.databases, "settings": lecture.settings}
    message = text(
        "Learned Hermes {version} in {seconds:.0f} s: {databases} databases and {settings} "
        "settings. See: hermes-doctor check",
        version=installed.version,
        seconds=lecture.seconds,
        **facts,
    )
    more = {"path": str(lecture.path), **facts, "seconds": round(lecture.seconds, 1)}
    return _end(json, "learned", hermes | more, message)


def _end(json: bool, status: str, facts: dict[str, Any], said: str) -> int:
    """Print how it ended; return the exit code."""
    from hermes_doctor import __version__

    failed = status == "failed"
    if json:
        head = {"schema": SCHEMA, "version": __version__, "status": status}
        print_document(head | facts)
    elif failed:
        show([row(f"hermes-doctor: {said}")], sys.stderr)
    else:
        show([row(said)])
    return int(failed)
