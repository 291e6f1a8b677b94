"""What is said about config.yaml and .env is what real Hermes does, before and after each fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.hermes.knowledge import parse_release as numbers
from hermes_doctor.hermes.knowledge.releases import load_knowledge
from tests.conftest import RELEASES, need_release
from tests.helpers import support
from tests.helpers.real import resolver_questions
from tests.helpers.real.made_homes import Made
from tests.helpers.real.misread_files import CASES, Case
from tests.helpers.real.release_homes import Patient
from tools import lessons, releases

pytestmark = pytest.mark.real


@pytest.mark.wide
@pytest.mark.parametrize("version", RELEASES)
def test_every_fix(version: str, tmp_path: Path) -> None:
    """Found, sick to Hermes itself; and after the fix Hermes reads what was meant."""
    need_release(version)
    cases = {name: case for name, case in CASES.items() if version in case.only}
    homes = {name: _home(tmp_path / str(n), case) for n, (name, case) in enumerate(cases.items())}
    wrong = []
    copies = _copies(tmp_path / "before", cases, homes)
    for name, case in cases.items():
        done = Patient(version, homes[name]).doctor("fix", case.code, "--apply", "--yes", "--json")
        runs = [item for run in done.json["repair"]["runs"] for item in run["items"]]
        if [item["fix"] for item in runs] != ([case.fix] if case.fix else []):
            wrong.append(f"{name}: done {runs}")
        if (case.code in done.codes) is bool(case.fix):
            wrong.append(f"{name}: found {done.codes}")
    copies += _copies(tmp_path / "after", cases, homes)
    answers = iter(resolver_questions.theirs(version, tmp_path, copies))
    for name, answer in zip(cases, answers, strict=False):
        if not cases[name].sick(answer):
            wrong.append(f"{name}: Hermes sees no fault: {answer}")
    for name, answer in zip(cases, answers, strict=True):
        if cases[name].fix and not cases[name].sound(answer):
            wrong.append(f"{name}: not sound after the fix: {answer}")
    assert not wrong, "\n".join(wrong)


def _home(folder: Path, case: Case) -> Path:
    home = support.healthy(folder / "home")
    support.put(home / "config.yaml", case.config)
    support.put(home / ".env", case.env)
    for name, text in case.more.items():
        support.put(home / name, text)
    return home


def _copies(
    folder: Path, cases: dict[str, Case], homes: dict[str, Path]
) -> list[tuple[Path, Made]]:
    """Copies of the homes for Hermes to answer about: it may write into them."""
    return [
        (support.copy_home(homes[name], folder / str(n)), case.made())
        for n, (name, case) in enumerate(cases.items())
    ]


@pytest.mark.wide
@pytest.mark.parametrize("version", ["0.13.0", releases.ALL[-1]])
def test_keys(version: str) -> None:
    """The release says today what the file says of it; what beats what is asked above."""
    need_release(version)
    here = numbers(version)
    known = {
        topic: {
            name: form["is"]
            for name, forms in entries.items()
            for form in forms
            if numbers(form["from"]) <= here <= numbers(form["to"])
        }
        for topic, entries in load_knowledge("keys").items()
    }
    said = lessons.learn(version, "keys")["keys"]

    assert said == {topic: known[topic] for topic in said}
    assert {"keys", "read"} <= {*said}


@pytest.mark.parametrize("version", RELEASES)
def test_what_an_update_takes(version: str, tmp_path: Path) -> None:
    """Without a number, releases since 0.16.0 make ANTHROPIC_TOKEN blank, and older ones do not."""
    need_release(version)
    home = support.healthy(tmp_path / "home")
    support.put(home / "config.yaml", "model: x  # mine\n")
    support.put(home / ".env", "ANTHROPIC_TOKEN=abcdefgh\n")
    patient = Patient(version, home)
    script = (
        "import os\nfrom pathlib import Path\nfrom hermes_cli.config import migrate_config\n"
        "migrate_config(interactive=False, quiet=True)\n"
        "print((Path(os.environ['HERMES_HOME']) / '.env').read_text())\n"
    )

    kept = "abcdefgh" in patient.ask(script)

    found = [one for one in patient.check().json["findings"] if one["code"] == "CFG-VERSION-OLD"]
    assert [one["severity"] for one in found] == ([] if kept else ["warning"])
    assert kept == (version == "0.13.0")
