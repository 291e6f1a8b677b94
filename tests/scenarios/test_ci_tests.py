"""The run of CI tries a few failed tests once more, and hides no failure."""

from pathlib import Path

import pytest

from tools import ci_tests

CONFTEST = 'def pytest_addoption(parser): parser.addoption("--all", action="store_true")\n'
BUSY_ONCE = """
from pathlib import Path
def test_busy_once():
    seen = Path("seen")
    assert seen.exists() or seen.write_text("")
def test_sound():
    with Path("times").open("a") as file:
        file.write("x")
"""
BROKEN = "def test_broken(): assert False\n"
MANY_BUSY = """
import pytest
from pathlib import Path
@pytest.mark.parametrize("number", range(6))
def test_busy_once(number):
    seen = Path(f"seen{number}")
    assert seen.exists() or seen.write_text("")
"""


@pytest.mark.parametrize(
    ("tests", "code"),
    [(BUSY_ONCE, 0), (BUSY_ONCE + BROKEN, 1), (MANY_BUSY, 1), ("import nothing_of_this_name", 2)],
)
def test_what_is_tried_again(
    tests: str, code: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A test that passes alone is named; one that is broken, or many at once, fail the run."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_all.py").write_text(tests)
    assert ci_tests.run(["-p", "no:xdist"], tmp_path) == code
    out = capfd.readouterr().out
    named = "passed alone:\n  test_all.py::test_busy_once" in out
    assert named is (code == 0)
    if code == 0:
        assert (tmp_path / "times").read_text() == "x", "only what failed is run again"
