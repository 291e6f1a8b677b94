"""Plugins reached through a stranger's folder, that print, or that end what they should not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.diagnosis.plugins.test_load import plugin
from tests.helpers import crash_server, support
from tests.helpers.support import Done

NOISE = "print('noise')\nimport sys\nsys.stdout.write('{more noise\\n')\n"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A plugin folder that is to be trusted."""
    return plugin(tmp_path / "mine")


@pytest.fixture
def rude(home: Path) -> Path:
    """A home that its check has something to say about."""
    support.put(home / "greeting.txt", "go away")
    return home


def ended(done: Done, id: str) -> tuple[str, str]:
    """How a check ended, and why."""
    [one] = [one for one in done.json["checks"] if one["id"] == id]
    return one["status"], one["reason"]


def check(home: Path, *folders: Path) -> Done:
    """`check --json` with these plugins; its document must be valid."""
    options = [word for folder in folders for word in ("--plugins", folder)]
    done = support.doctor("check", "--json", "--home", home, *options)
    assert done.json["schema"] == "hermes-doctor/report/1"
    assert "Traceback" not in done.err
    return done


# -- symlinks ------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a stranger's folder")
@pytest.mark.parametrize("kind", ["absolute", "relative", "dots", "of a file"])
def test_a_chain_through_a_stranger_s_folder(
    rude: Path, mine: Path, tmp_path: Path, kind: str
) -> None:
    """He can lead the second link elsewhere at any moment: where it leads now is no matter."""
    stranger = tmp_path / "stranger"
    stranger.mkdir(mode=0o755)
    link, given, name = tmp_path / "link", tmp_path / "link", "link"
    if kind == "of a file":
        real = mine / "checks" / "greeting.py"
        moved = real.rename(tmp_path / "greeting.py")
        (stranger / "second").symlink_to(moved)
        real.symlink_to(stranger / "second")
        given, name = mine, "greeting.py"
    else:
        (stranger / "second").symlink_to(mine if kind == "absolute" else "../mine")
        dots = stranger / "second" / ".." / "mine"
        link.symlink_to(
            {"absolute": stranger / "second", "dots": dots}.get(kind, "stranger/second")
        )
    crash_server.chown(stranger)

    done = check(rude, given)

    status, why = ended(done, f"plugin:{name}")
    assert status == "crashed"
    assert f"belongs to neither root nor you (uid {crash_server.STRANGER})" in why
    assert "MY-GREETING" not in done.codes
    assert ended(done, "config-yaml")[0] == "ok"


def test_a_chain_of_trusted_links(rude: Path, mine: Path, tmp_path: Path) -> None:
    """Links that only root or the caller can change are as good as the folder itself."""
    (tmp_path / "second").symlink_to("mine")
    (tmp_path / "first").symlink_to(tmp_path / "second")

    assert "MY-GREETING" in check(rude, tmp_path / "first").codes


def test_a_chain_without_end(rude: Path, tmp_path: Path) -> None:
    """A link that leads to itself is named, and stops nobody."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    done = check(rude, tmp_path / "loop")

    assert ended(done, "plugin:loop")[0] == "crashed"
    assert ended(done, "config-yaml")[0] == "ok"


# -- that print ----------------------------------------------------------------------------


def test_prints_on_import(rude: Path, mine: Path) -> None:
    """What a file says while it is loaded is not part of the answer."""
    for folder in ("checks", "fixes"):
        support.put(mine / folder / "noisy.py", NOISE, 0o644)

    done = check(rude, mine)

    assert "MY-GREETING" in done.codes
    listed = support.doctor("list", "--json", "--plugins", mine)
    assert listed.json["broken"] == []
    assert "noise" in done.err


def test_prints_in_a_check(rude: Path, mine: Path) -> None:
    """Nor what a check says, while others run beside it."""
    path = mine / "checks" / "greeting.py"
    noisy = path.read_text().replace("    path = probes", "    print('noise')\n    path = probes")
    support.put(path, noisy, 0o644)

    done = check(rude, mine)

    assert "MY-GREETING" in done.codes
    assert "noise" in done.err


@pytest.mark.sampled
@pytest.mark.parametrize("args", [(), ("--apply", "--yes")], ids=["plan", "apply"])
def test_prints_in_a_fix(rude: Path, mine: Path, args: tuple[str, ...]) -> None:
    """Nor what a fix says while it plans."""
    path = mine / "fixes" / "fix_greeting.py"
    noisy = path.read_text().replace("    path = probes", "    print('noise')\n    path = probes")
    support.put(path, noisy, 0o644)

    done = support.doctor("fix", "--json", *args, "--home", rude, "--plugins", mine)

    assert done.json["schema"] == "hermes-doctor/report/1"
    assert done.code == 0


# -- that end what they should not ---------------------------------------------------------

ENDINGS = ("KeyboardInterrupt", "SystemExit", "GeneratorExit")


@pytest.mark.sampled
@pytest.mark.parametrize("error", ENDINGS)
@pytest.mark.parametrize("folder", ["checks", "fixes"])
def test_raises_on_import(rude: Path, mine: Path, error: str, folder: str) -> None:
    """Nobody pressed a key: the file is broken, and all the others are asked."""
    support.put(mine / folder / "rude.py", f"raise {error}\n", 0o644)

    done = check(rude, mine)

    assert done.code == 1
    status, why = ended(done, "plugin:rude.py")
    assert status == "crashed"
    assert "not loaded" in why
    assert "MY-GREETING" in done.codes


@pytest.mark.sampled
@pytest.mark.parametrize("error", ENDINGS)
def test_raises_in_a_check(rude: Path, mine: Path, error: str) -> None:
    """The check has crashed, and nothing else has."""
    other = plugin(mine.parent / "other", id="other", code="OTHER", fix="other-fix")
    path = other / "checks" / "other.py"
    support.put(
        path, path.read_text().replace("    path = probes", f"    raise {error}\n    path = probes")
    )
    path.chmod(0o644)

    done = check(rude, mine, other)

    assert done.code == 1
    assert ended(done, "other")[0] == "crashed"
    assert "MY-GREETING" in done.codes


@pytest.mark.sampled
@pytest.mark.parametrize(
    "error",
    [
        "KeyboardInterrupt",
        "SystemExit",
        "GeneratorExit",
    ],
)
def test_raises_in_a_fix(rude: Path, mine: Path, error: str) -> None:
    """A fix that ends like that is no plan: nothing is done. (It runs where a Ctrl-C arrives, and
    cannot be told from one.)"""
    path = mine / "fixes" / "fix_greeting.py"
    support.put(
        path, path.read_text().replace("    path = probes", f"    raise {error}\n    path = probes")
    )
    path.chmod(0o644)

    done = support.doctor("fix", "--apply", "--yes", "--json", "--home", rude, "--plugins", mine)

    assert done.code == (130 if error == "KeyboardInterrupt" else 1), done.err
    assert done.json["schema"] == "hermes-doctor/report/1"
    assert (rude / "greeting.txt").read_text() == "go away"
