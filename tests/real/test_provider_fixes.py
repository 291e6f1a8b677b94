"""After every fix, real Hermes resolves what we said that it would; before, it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.model import Severity
from hermes_doctor.hermes.knowledge import parse_release
from tests.conftest import RELEASES, need_release
from tests.helpers import settings_verdicts
from tests.helpers.provider_mistakes import MISTAKES, Mistake
from tests.helpers.real import resolver_questions
from tests.helpers.real.made_homes import Made
from tools import real_home

pytestmark = pytest.mark.real
UNASKED = ("128K", "an address beside the provider's own")
"""What is wrong here is none of the fields that are compared, or only a setting is ignored."""


def answer(real: dict[str, Any], mistake: Mistake) -> tuple[Any, Any, Any]:
    """Address, model and key of what the mistake is about."""
    if mistake.of_fallback:
        link = real["fallback"][0] if real["fallback"] else {}
        return link.get("base_url"), link.get("model"), link.get("key")
    used = real["used"]
    return used.get("base_url"), real["model"], used.get("key")


@pytest.mark.wide
@pytest.mark.parametrize("version", RELEASES)
def test_hermes_resolves_what_we_said(version: str, tmp_path: Path) -> None:
    """Address, model and key, for every mistake that has a fix."""
    need_release(version)
    fitting = {
        name: one
        for name, one in MISTAKES.items()
        if one.after is not None and one.fits(parse_release(version))
    }
    homes: list[tuple[Path, Made]] = []
    for number, one in enumerate(fitting.values()):
        sick, well = tmp_path / f"{number}" / "sick", tmp_path / f"{number}" / "well"
        settings_verdicts.mend(settings_verdicts.write(well, one), version, one)
        made = Made(None, None, None)
        homes += [(settings_verdicts.write(sick, one), made), (well, made)]

    real = resolver_questions.theirs(version, tmp_path, homes)

    wrong = []
    for number, (name, one) in enumerate(fitting.items()):
        assert one.after is not None
        said = (one.after.url, one.after.model, resolver_questions.hashed(one.after.key))
        before, after = (answer(real[2 * number + n], one) for n in (0, 1))
        if after != said:
            wrong.append(f"{name}: after the fix {after}, not {said}")
        if before == said and one.severity is not Severity.INFO and name not in UNASKED:
            wrong.append(f"{name}: Hermes was right before")
    assert not wrong, "\n".join(wrong)


DEFAULTS = """
from hermes_cli.config import DEFAULT_CONFIG, save_config
save_config(dict(DEFAULT_CONFIG))
"""


@pytest.mark.parametrize("version", RELEASES)
def test_the_default_configuration(version: str, tmp_path: Path) -> None:
    """What a release writes by itself, with a platform's token beside it, is no mistake."""
    need_release(version)
    home = tmp_path / "home"
    home.mkdir()
    real_home.run(version, home, DEFAULTS)
    text = (home / "config.yaml").read_text()
    mistake = Mistake("", text, "OPENROUTER_API_KEY=sk-or-v1-12345678\nTELEGRAM_BOT_TOKEN=1:abcd\n")
    codes = {one.code for one in MISTAKES.values()}

    findings = settings_verdicts.look(settings_verdicts.write(home, mistake), version, *codes)

    assert [one for one in findings if one.severity is not Severity.INFO] == []
