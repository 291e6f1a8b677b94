"""The state of the model: the one that answers, its problem, and its fallback."""

from __future__ import annotations

from collections.abc import Iterable

from hermes_doctor.examination.part_problems import PartProblems, silences
from hermes_doctor.model import MODEL, Mark, Part
from hermes_doctor.probes.probes import Probes


def parts(probes: Probes, problems: PartProblems) -> Iterable[Part]:
    """The model that answers, or why it does not, and what is known of its fallback."""
    found = probes.resolved()
    if found.world.document.fault:
        yield Part(Mark.BAD, "unknown, config.yaml cannot be read")
        return
    from hermes_doctor import redaction

    def shown(value: str | None) -> str:
        return redaction.redact_words(value or "")

    route = found.used or found.main
    called = route.operators_name or (route.provider or route.requested).value
    provider = shown(called) or "no provider"
    model = shown(route.model.value)
    name = f"{provider}, {model}" if model else provider
    problem = problems.of(MODEL)
    if found.used is not None and found.used.path != MODEL:
        wrong = problems.words(problem) if problem else "not usable"
        wanted = shown(found.main.requested.value) or "the main provider"
        mark = Mark.BAD if problem and silences(problem) else Mark.LIMITED
        yield Part(mark, f"{wanted}: {wrong}; the fallback {name} is used")
        return
    if problem:
        mark = Mark.BAD if silences(problem) else Mark.LIMITED
        fallback, spare = problem.data.get("fallback"), problems.of_fallback()
        told = name if problem == spare else f"{name}: {problems.words(problem)}"
        rest = f"; the fallback {fallback} answers" if fallback else ""
        if spare:
            rest = f"; fallback {spare.data['about_fallback']}: {problems.words(spare)}"
        yield Part(mark, f"{told}{rest}")
        return
    if found.used is None:
        wants = (route.requested.value or "auto").lower()
        said = "no provider is set up" if wants == "auto" else f"{name}: cannot be used"
        yield Part(Mark.BAD, said)
        return
    spares = [shown(one.requested.value) for one in found.fallback if one.trouble is None]
    rest = f"; fallback {spares[0]}" if spares else "; no fallback"
    yield Part(Mark.GOOD, name + rest)
