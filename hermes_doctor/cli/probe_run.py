"""Implements `probe` without typer, so that it answers in a fraction of a second."""

from __future__ import annotations

from pathlib import Path

LIMIT = 5.0
"""Seconds after which it gives up."""


def run(question: str, home: Path | None = None) -> int:
    """Print the answer in one line; return 0 for yes and 1 for no."""
    from hermes_doctor import home as homes
    from hermes_doctor.examination import health
    from hermes_doctor.message import text
    from hermes_doctor.model import CouldNotLook, Trouble
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.redaction import clean
    from hermes_doctor.system.once import limited

    if question not in health.QUESTIONS:
        choices = ", ".join(health.QUESTIONS)
        raise Trouble(
            text("Unknown question {word!r}. Use {choices}.", word=question, choices=choices)
        )
    try:
        probes = Probes(homes.find(home))
        said = limited("probe", LIMIT, lambda: health.answer(probes, question))
    except Trouble as trouble:
        said = health.Answer(False, f"not {question}: {trouble}")
    except CouldNotLook as doubt:
        said = health.Answer(question == health.LIVE, text("could not check: {why}", why=doubt))
    print(clean(said.line), flush=True)  # noqa: T201
    return int(not said.holds)
