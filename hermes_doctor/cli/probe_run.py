"""Implements `probe` without typer, so that it answers in a fraction of a second."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.core import home as homes
from hermes_doctor.core.home import CONTAINER_HOME
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.preferences import effective, places
from hermes_doctor.core.redaction import clean

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.examination.container_probe import Answer

LIMIT = 8.0
"""Seconds on the clock after which it gives up, before its caller does."""


def run(question: str, home: Path | None = None) -> int:
    """Print the answer in one line; return 0 for yes and 1 for no."""
    from hermes_doctor.diagnosis.examination import container_probe

    if question not in container_probe.QUESTIONS:
        choices = ", ".join(container_probe.QUESTIONS)
        raise Trouble("Unknown question {word!r}. Use {choices}.", word=question, choices=choices)
    answers: list[Answer] = []
    asking = threading.Thread(target=lambda: answers.append(_ask(question, home)), daemon=True)
    asking.start()
    asking.join(LIMIT)
    late = text("it took longer than {seconds} s", seconds=f"{LIMIT:g}")
    answer = answers[0] if answers else container_probe.unseen(question, late)
    try:
        # `clean` may read the home's secrets, which root has not yet left to the home's owner.
        print(clean(answer.line) if answers else answer.line, flush=True)  # noqa: T201
    except OSError:  # nobody reads it: the exit code is the answer
        sys.stdout = None
    return int(not answer.yes)


def _ask(question: str, option: Path | None) -> Answer:
    """Answer, whatever happens: an error of this tool must not restart a gateway."""
    from hermes_doctor.cli import separate_look
    from hermes_doctor.diagnosis.examination import container_probe
    from hermes_doctor.diagnosis.examination.check_threads import describe_crash
    from hermes_doctor.diagnosis.probes.probes import Probes

    try:
        effective.load()
    except Trouble as trouble:  # a mistake in config.toml says nothing about the gateway
        return container_probe.unseen(question, trouble)
    try:
        home = homes.find(option)
        return separate_look.look(
            home.path,
            lambda: container_probe.answer(Probes(home), question),
            (container_probe.__name__,),
        )
    except Trouble as trouble:
        if isinstance(trouble, places.InsideHome) or _is_closed(option):
            return container_probe.unseen(question, trouble)
        return container_probe.Answer(False, f"not {question}: {trouble}")
    except CouldNotLook as doubt:
        return container_probe.unseen(question, doubt)
    except Exception as error:  # noqa: BLE001 (see above)
        return container_probe.unseen(question, f"a bug in hermes-doctor, {describe_crash(error)}")


def _is_closed(option: Path | None) -> bool:
    """Whether there is such a home, and we may not read it."""
    named = option or (chosen.value if (chosen := effective.load().find("home")) else None)
    folders = [Path(named)] if named else [Path("~/.hermes"), CONTAINER_HOME]
    paths = [folder.expanduser() for folder in folders]
    return any(os.path.isdir(path) and not os.access(path, os.R_OK | os.X_OK) for path in paths)
