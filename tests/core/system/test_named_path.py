"""A path that the user named, without links of other users."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system.named_path import open_folder_of
from tests.helpers.crash_server import STRANGER


def where(path: Path) -> Path:
    with open_folder_of(path) as place:
        st = os.fstat(place.fd)
        assert (st.st_dev, st.st_ino) == (os.stat(place.path.parent).st_dev, st.st_ino)
        assert st.st_ino == os.stat(place.path.parent).st_ino
        assert len(place.folders) == len(place.path.parts) - 1
        return place.path


def test_own_links_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of folders and files, absolute and relative, one after the other."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "to-b").symlink_to(tmp_path / "a" / "b")
    (tmp_path / "a" / "up").symlink_to("../to-b/..")
    (tmp_path / "file").symlink_to("a/up/b/../real")
    monkeypatch.chdir(tmp_path)

    assert where(tmp_path / "to-b" / "x") == tmp_path / "a" / "b" / "x"
    assert where(tmp_path / "to-b" / ".." / "x") == tmp_path / "a" / "x"
    assert where(tmp_path / "file") == tmp_path / "a" / "real"
    assert where(Path("a/up/x")) == tmp_path / "a" / "x"
    assert where(Path("x")) == tmp_path / "x"


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("loop/x", OSError),
        ("missing/x", FileNotFoundError),
        ("file/x", NotADirectoryError),
        ("folder/..", IsADirectoryError),
    ],
)
def test_what_is_no_place_for_a_file(tmp_path: Path, path: str, error: type[OSError]) -> None:
    """The error says which."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")

    with pytest.raises(error), open_folder_of(tmp_path / path):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes links of other users")
@pytest.mark.parametrize("link", ["folder", "folder/file"])
def test_links_of_others_are_not_followed(tmp_path: Path, link: str) -> None:
    """Root follows none of another user's, and nobody follows one of a third user's."""
    (tmp_path / "secret").mkdir()
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / "secret")
    os.chown(tmp_path / link, STRANGER, STRANGER, follow_symlinks=False)

    with pytest.raises(Trouble, match=rf"link that belongs to another user \(uid {STRANGER}\)"):
        where(tmp_path / "folder" / "file")


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    """Whether it was found or not."""
    (tmp_path / "link").symlink_to(tmp_path)
    before = len(os.listdir("/proc/self/fd"))

    where(tmp_path / "link" / "x")
    with pytest.raises(FileNotFoundError), open_folder_of(tmp_path / "link" / "a" / "b"):
        pass

    assert len(os.listdir("/proc/self/fd")) == before
