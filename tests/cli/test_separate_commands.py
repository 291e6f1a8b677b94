"""As root in another user's home full of traps: commands that back up, ask, guard and mute."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_separate_look import opened_by_root
from tests.cli.test_separate_work import sick
from tests.helpers import crash_server, support

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
ID = "20261115-031500-1234f"
COMMANDS = (
    ("backup", "create", "--daily", "2"),
    ("backup", "list"),
    ("backup", "list", "--hermes"),
    ("backup", "verify"),
    ("backup", "verify", "--deep", "--all"),
    ("backup", "verify", "--hermes"),
    ("backup", "prune", "--keep", "1", "--yes"),
    ("backup", "restore", "NEWEST", "config.yaml", "--yes"),
    ("backup", "schedule", "status"),
    ("switch-provider", "openrouter", "--model", "acme/other"),
    ("switch-provider", "openrouter", "--model", "acme/other", "--no-test", "--apply", "--yes"),
    ("ask", "--timeout", "1"),
    ("learn",),
    ("mute", "CFG-YAML"),
    ("unmute", "CFG-YAML"),
    ("history",),
    ("hook", "install", "--no-shell"),
    ("hook", "install", "--no-shell", "--dry-run"),
    ("hook", "status"),
    ("hook", "remove", "--no-shell"),
    ("hook", "run", "pre-update", "--force"),
    ("hook", "run", "post-update"),
    ("update-guard", "--force", "--", "true"),
    ("rollback", "--yes"),
    ("watch", "status"),
    ("watch", "install", "--dry-run", "--cron"),
)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody can get to."""
    with support.reachable_folder() as folder:
        yield folder


def newest(home: Path) -> str:
    """The id of the newest backup."""
    return max(one.name for one in (home / "backups" / "doctor").glob("2*"))


@pytest.mark.needs("strace")
@pytest.mark.sampled(one_of=4)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_root_opens_nothing(place: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    """Neither in the home nor where its links lead; the owner's process opens it."""
    home = sick(place, traps=True)
    if command[:2] in (("backup", "verify"), ("backup", "restore"), ("backup", "prune")):
        assert support.doctor("backup", "create", "--home", home).code in (0, 1)
    words = tuple(newest(home) if word == "NEWEST" else word for word in command)

    by_root, by_others = opened_by_root(words, home, tmp_path / "log")

    tops = (str(home), str(place / "secret"))
    assert [path for path in by_root if path.startswith(tops)] == []
    if command[0] not in ("unmute", "history", "watch"):
        assert [path for path in by_others if path.startswith(str(home))], "nothing was looked at"
    assert {*crash_server.strangers(home)} <= {"auth.json"}, "the one that was root's"
