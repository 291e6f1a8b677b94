"""`make attack` counts runs and broken promises, and says how to repeat a round."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import budget
from tools import attack

ATTACKS = """
from tests.helpers import budget

def test_holds():
    assert budget.tries(7, 70) == 7

def test_depends_on_the_seed():
    assert budget.seed % 2 == 0, "an odd seed"
"""


@pytest.fixture
def attacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One class with two tests; one of them fails with every odd seed."""
    path = tmp_path / "test_attacks.py"
    path.write_text(ATTACKS)
    monkeypatch.setattr(attack, "CLASSES", {"kills": (str(path),)})


@pytest.mark.usefixtures("attacks")
@pytest.mark.parametrize(("seed", "code"), [(2, 0), (3, 1)])
def test_one_round(
    seed: int,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every case counts; the exit code says whether all promises held."""
    monkeypatch.setattr("sys.argv", ["attack", "--seed", str(seed)])

    assert attack.main() == code

    said = capsys.readouterr().out
    assert "8 runs in 1 rounds" in said
    assert ("1 promises broken" in said) == bool(code)
    assert (f"python -m tools.attack --only 'kills' --seed {seed}" in said) == bool(code)


@pytest.mark.wide
@pytest.mark.usefixtures("attacks")
def test_it_ends_in_time(capsys: pytest.CaptureFixture[str]) -> None:
    """Rounds follow each other, each with another seed."""
    results = attack.attack(["kills"], 0.2, None)

    assert results["kills"].rounds >= 2
    assert results["kills"].runs > 8


@pytest.mark.wide
def test_no_time_for_one_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No promise is broken by that, and none has held."""
    path = tmp_path / "test_attacks.py"
    path.write_text("import time\ndef test_long():\n    time.sleep(99)\n")
    monkeypatch.setattr(attack, "CLASSES", {"kills": (str(path),)})

    result = attack.attack(["kills"], 0.1, 1)["kills"]

    assert (result.runs, result.unfinished, result.broken) == (0, 1, [])
    assert "not tried" in attack._line("kills", result)


def test_every_class_names_tests_that_exist() -> None:
    """A file that was renamed would no longer attack."""
    for words in attack.CLASSES.values():
        for word in words:
            file, _, function = word.partition("::")
            text = (attack.ROOT / file).read_text()
            assert f"def {function or 'test_'}" in text, word


def test_dice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in each run; in an attack, the same for the same seed."""
    usual = budget.chance(4).random()
    assert budget.chance(4).random() == usual

    monkeypatch.setattr(budget, "seed", 1)
    first = budget.chance(4).random()
    assert first not in (usual, budget.chance(5).random())
    assert budget.chance(4).random() == first
    assert len(budget.sample(range(100), 9)) == 9

    monkeypatch.setattr(budget, "seed", 2)
    assert budget.chance(4).random() != first


def test_each_class_gets_its_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that needs more is cut off; what one does not need goes to the next ones."""
    allowed: list[float] = []
    monkeypatch.setattr(
        attack, "_round", lambda _name, _seed, seconds, _result: allowed.append(seconds)
    )

    results = attack.attack(["kills", "probe", "learn"], 3, 1)

    assert [round(seconds / 10) for seconds in allowed] == [6, 9, 18]
    assert "not tried" in attack._line("kills", results["kills"])
