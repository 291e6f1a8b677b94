"""The file that a monitor reads is replaced at once, or stays as it was."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hermes_doctor.cli import check_run, output_file
from hermes_doctor.cli.check_run import FORMATS
from hermes_doctor.core.model import CheckResult, Status, Trouble
from tests.helpers import support
from tests.helpers.crash_server import STRANGER
from tests.helpers.example_reports import report

OLD = "hermes-doctor 0.1.0 wrote this"


def test_the_file_is_replaced_at_once(tmp_path: Path) -> None:
    """Who has the old file open goes on reading it; nothing else is left in the folder."""
    path = tmp_path / "out"
    path.write_text(OLD)
    path.chmod(0o640)
    with path.open() as old:
        output_file.replace(path, "new\n")
        assert old.read() == OLD

    assert path.read_text() == "new\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["out"]


def test_a_new_file_can_be_read_by_the_collector(tmp_path: Path) -> None:
    """It has the mode that the operator's umask gives."""
    umask = os.umask(0o022)
    try:
        output_file.replace(tmp_path / "out", "new\n")
    finally:
        os.umask(umask)

    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o644


def test_behind_a_link_the_file_is_replaced(tmp_path: Path) -> None:
    """The link stays."""
    (tmp_path / "link").symlink_to(tmp_path / "file")

    output_file.replace(tmp_path / "link", "new\n")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new\n"


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("folder", "is not a file"),
        ("pipe", "is not a file"),
        ("missing/out", "its folder does not exist"),
        ("file/out", "its folder does not exist"),
        ("loop", "its links form a loop"),
        ("loop/out", "its links form a loop"),
        ("null\0character", "Cannot write to"),
    ],
)
def test_where_no_file_can_be(tmp_path: Path, place: str, said: str) -> None:
    """One line says where and why, before anything is done."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(Trouble, match=said):
        output_file.find(tmp_path / place)


def test_a_user_who_does_not_exist() -> None:
    """An unknown user after `~` gives one clear line."""
    with pytest.raises(Trouble, match="Cannot write to"):
        output_file.find(Path("~nobody-has-this-name/out"))


def test_whatever_the_umask_is(tmp_path: Path) -> None:
    """The service that writes metrics has a strict one, and another user reads them."""
    umask = os.umask(0o077)
    try:
        output_file.replace(tmp_path / "out", "new\n", output_file.WORLD_READABLE)
    finally:
        os.umask(umask)

    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o644


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other groups")
def test_the_group_stays(tmp_path: Path) -> None:
    """A collector may read the file through its group."""
    path = tmp_path / "out"
    path.write_text(OLD)
    os.chown(path, -1, 12345)

    output_file.replace(path, "new\n")

    assert path.stat().st_gid == 12345


def test_a_long_name(tmp_path: Path) -> None:
    """The temporary file has a short name of its own."""
    path = tmp_path / ("x" * 255)

    output_file.replace(path, "new\n")

    assert path.read_text() == "new\n"


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file stays, and the command says that it could not write."""
    (tmp_path / "out").write_text(OLD)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Trouble, match="No space left on device"):
        output_file.replace(tmp_path / "out", "new\n")

    assert (tmp_path / "out").read_text() == OLD
    assert os.listdir(tmp_path) == ["out"]


# -- what the user named by mistake -------------------------------------------------------------


def written_to(home: Path, place: Path, *more: str) -> support.Done:
    return support.doctor("check", "--only", "disk-space", "--home", home, "--output", place, *more)


@pytest.mark.parametrize("name", ["state.db", ".env", "config.yaml", "new", "logs/new"])
@pytest.mark.parametrize("way", ["", "link", "linked folder"])
def test_nothing_is_written_into_a_home(home: Path, tmp_path: Path, name: str, way: str) -> None:
    """Whatever way leads there, and also with --force."""
    (home / "logs").mkdir(exist_ok=True)
    place = home / name
    if way == "link":
        place = tmp_path / "link"
        place.symlink_to(home / name)
    elif way:
        (tmp_path / "folder").symlink_to((home / name).parent)
        place = tmp_path / "folder" / Path(name).name
    before = support.contents(home)

    for more in ((), ("--force",)):
        done = written_to(home, place, *more)

        assert done.code == 2, done.out
        assert "inside the Hermes home" in done.err
        assert support.contents(home) == before


def test_nothing_is_written_into_another_home(home: Path, tmp_path: Path) -> None:
    """Nor into the root home of a profile."""
    other = support.healthy(tmp_path / "other" / "home")
    profile = support.healthy(home / "profiles" / "work")
    before = support.contents(other), support.contents(home)

    for mine, place in ((home, other / "x"), (profile, home / "x"), (home, profile / "x")):
        done = written_to(mine, place)
        assert done.code == 2, done.out
        assert "inside the Hermes home" in done.err

    assert (support.contents(other), support.contents(home)) == before


def test_a_folder_that_only_resembles_a_home(home: Path, tmp_path: Path) -> None:
    """Many projects have such files, and copies of backups may be anywhere."""
    folder = tmp_path / "project"
    for name in ("config.yaml", ".env", "state.db", "backups/doctor/x"):
        support.put(folder / name, "")

    assert written_to(home, folder / "report").code == 0


@pytest.mark.parametrize("hard_link", [False, True])
def test_a_file_of_somebody_else_is_replaced_only_by_force(
    home: Path, tmp_path: Path, hard_link: bool
) -> None:
    """The user may have named the wrong one; a second name of a file of the home counts as one."""
    place = tmp_path / "thesis.txt"
    if hard_link:
        os.link(home / "config.yaml", place)
    else:
        place.write_text("years of work")
    before, config = place.read_bytes(), (home / "config.yaml").read_bytes()

    refused = written_to(home, place)

    assert refused.code == 2, refused.out
    assert f"{place} exists and was not written by hermes-doctor" in refused.err
    assert "--force" in refused.err
    assert place.read_bytes() == before

    assert written_to(home, place, "--force").code == 0
    assert place.read_text().startswith("hermes-doctor ")
    assert (home / "config.yaml").read_bytes() == config


@pytest.mark.parametrize("format", FORMATS)
def test_what_it_wrote_it_replaces(home: Path, tmp_path: Path, format: str) -> None:
    """In every format, for healthy homes and others, of one home or several; an empty file too."""
    place = tmp_path / "out"
    place.write_text("")
    for broken in (False, True):
        if broken:
            (home / "config.yaml").write_text("model: [")
        for many in ((), ("--all-homes",)):
            words = ("--format", format, "--output", place, *many)
            done = support.doctor("check", "--home", home, *words)
            assert done.code in (0, 1, 2) and not done.err.startswith("hermes-doctor: /"), done.err
            assert place.read_text() or format == "github"
            assert output_file.find(place) == place


@pytest.mark.parametrize("format", FORMATS)
def test_a_report_of_a_home_that_nobody_can_read(tmp_path: Path, format: str) -> None:
    """It begins in another way, and is replaced by the next one all the same."""
    blind = report(checks=(CheckResult("look", "data", Status.UNKNOWN, reason="closed"),))
    assert blind.why_blind
    none: dict[Path, frozenset[str]] = {blind.home: frozenset()}
    page = check_run.formatted(format, [blind], none, all_homes=False, verbose=False)
    (tmp_path / "out").write_text(page)

    assert output_file.find(tmp_path / "out") == tmp_path / "out"


def test_force_without_a_file(home: Path) -> None:
    """It has no effect, so it is a mistake."""
    done = support.doctor("check", "--home", home, "--force")

    assert done.code == 2
    assert "Add --output FILE" in done.err


@pytest.mark.parametrize("inside", [True, False])
def test_metrics_replace_nothing_else(home: Path, tmp_path: Path, inside: bool) -> None:
    """The watch says so before it starts."""
    place = home / ".env" if inside else tmp_path / "thesis.txt"
    place.write_text("A=1\n")

    done = support.doctor("watch", "--once", "--home", home, "--metrics", place)

    assert done.code == 2, done.out
    assert ("inside the Hermes home" if inside else "Name another file, or delete it") in done.err
    assert place.read_text() == "A=1\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes links of other users")
@pytest.mark.parametrize("command", ["check", "watch"])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_root_follows_no_link_of_another_user(
    home: Path, tmp_path: Path, command: str, kind: str
) -> None:
    """A file that only root may read is not replaced, not even an empty one."""
    secret = tmp_path / "root" / "out"
    secret.parent.mkdir(mode=0o700)
    secret.write_text("")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    link, target = (theirs / "out", secret) if kind == "file" else (theirs / "in", secret.parent)
    link.symlink_to(target)
    for path in (theirs, link):
        os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    place = link if kind == "file" else link / "out"
    words = {
        "check": ("check", "--format", "prometheus", "--output", place),
        "watch": ("watch", "--once", "--metrics", place),
    }

    done = support.doctor(*words[command], "--home", home)

    assert done.code == 2, done.out
    assert "is a link that belongs to another user" in done.err
    assert secret.read_text() == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of others")
def test_a_file_of_another_user_in_a_folder_for_all(tmp_path: Path) -> None:
    """He could change afterwards what we report."""
    tmp_path.chmod(0o1777)
    (tmp_path / "out").write_text("")
    os.chown(tmp_path / "out", STRANGER, STRANGER)

    with pytest.raises(Trouble, match="belongs to another user"):
        output_file.find(tmp_path / "out")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become others")
def test_an_ordinary_user_follows_no_link_of_a_third(tmp_path: Path) -> None:
    """It would lead him to his own file, which he did not mean."""
    for folder in (*tmp_path.parents, tmp_path):
        if folder.owner() == "root" and folder != Path("/") and not folder.stat().st_mode & 1:
            folder.chmod(0o755)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "out").write_text("")
    (tmp_path / "out").symlink_to(mine / "out")
    os.chown(tmp_path / "out", 34567, 34567, follow_symlinks=False)
    for path in (mine, mine / "out"):
        os.chown(path, STRANGER, STRANGER)

    child = os.fork()
    if not child:
        os.setresuid(STRANGER, STRANGER, STRANGER)
        try:
            output_file.find(mine / "out")
            output_file.find(tmp_path / "out")
        except Trouble as trouble:
            os._exit(7 if "belongs to another user" in str(trouble) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_swapped_folder_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the write, somebody puts a link in place of the folder."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "out").write_text("a secret")
    fsync = os.fsync

    def swap(fd: int) -> None:
        (tmp_path / "folder").rename(tmp_path / "moved")
        (tmp_path / "folder").symlink_to(tmp_path / "secret")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", swap)
    output_file.replace(tmp_path / "folder" / "out", "new\n")

    assert (tmp_path / "secret" / "out").read_text() == "a secret"
    assert (tmp_path / "moved" / "out").read_text() == "new\n"
