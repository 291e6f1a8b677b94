"""The examples in docs/monitoring.md are what the command prints."""

from __future__ import annotations

import re
from pathlib import Path

from hermes_doctor.cli import demo_home
from hermes_doctor.cli.check_run import FORMATS
from tests.helpers import support

PAGE = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text()


def test_the_example_of_a_plugin(tmp_path: Path) -> None:
    """On the home of `hermes-doctor demo`, without the performance data."""
    home = tmp_path / ".hermes"
    demo_home.make(home)
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}

    done = support.doctor("check", "--format", "nagios", "--home", home, env=env)

    [example] = re.findall(
        r"^\$ hermes-doctor check --format nagios.*\n((?:.+\n)+?)```", PAGE, re.M
    )
    assert [line.partition("|")[0].rstrip() for line in done.out.splitlines()] == [
        line.rstrip() for line in example.splitlines()
    ]


def test_every_format_is_named() -> None:
    """The table has them all, in the order of the option."""
    assert tuple(re.findall(r"^\| `(\w+)` \| ", PAGE, re.M))[: len(FORMATS)] == FORMATS


def test_every_metric_is_named(home: Path, tmp_path: Path) -> None:
    """The table has each metric with its labels."""
    support.clobber(home / "state.db")
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    target = tmp_path / "out"
    support.doctor("watch", "--once", "--home", home, "--metrics", target, env=env)

    for name, labels in re.findall(r"^(hermes_doctor_\w+)\{(.*)\}", target.read_text(), re.M):
        named = re.findall(r'(\w+)="', labels)
        row = f"| `{name}` | {', '.join(f'`{one}`' for one in named)} |"
        assert row in PAGE or f"`{name}{{{named[0]}}}`" in PAGE, name
