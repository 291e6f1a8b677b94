"""The block in the shells' start-up files: there once, gone without a trace."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hermes_doctor.core.model import Trouble
from hermes_doctor.operations.updates import launcher, shell_startup


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without any file yet."""
    home = tmp_path / "user"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SHELL", "/bin/bash")
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    return home


TEXTS = [b"", b"alias x=y\n", b"no end of line", b"\r\nodd\r\n", b"caf\xe9 = 1\n", b"a\n\n\n"]


@pytest.mark.parametrize("text", TEXTS)
def test_installing_and_removing_gives_back_every_byte(user: Path, text: bytes) -> None:
    """Whatever the file looked like."""
    for name in (".bashrc", ".profile", ".zshrc"):
        (user / name).write_bytes(text)
        (user / name).chmod(0o640)
    changed = shell_startup.install()
    assert {one.name for one in changed} == {".bashrc", ".profile", ".zshrc"}
    assert shell_startup.install() == []
    assert all(one.read_bytes().startswith(text) for one in changed)
    shell_startup.remove()
    for one in changed:
        assert one.read_bytes() == text
        assert one.stat().st_mode & 0o777 == 0o640


def test_files_of_the_user_beside_it_stay(user: Path) -> None:
    """Some people prepare the next version of a file as NAME.new; nothing of ours is left."""
    names = {".bashrc", ".profile", ".bashrc.new", ".profile.new", ".bashrc.tmp", ".bashrc.part"}
    for name in names:
        (user / name).write_text(f"# the user's own {name}\n")

    shell_startup.install()
    shell_startup.remove()

    assert {one.name for one in user.iterdir()} == names
    for name in names:
        assert (user / name).read_text() == f"# the user's own {name}\n"


def test_a_file_that_was_made_for_it_goes_with_it(user: Path) -> None:
    """Nothing is left of it."""
    assert [one.name for one in shell_startup.install()] == [".profile", ".bashrc"]
    assert shell_startup.doubts() == []
    shell_startup.remove()
    assert list(user.iterdir()) == []


def test_what_was_written_after_it_stays(user: Path) -> None:
    """Another program appends to the same file."""
    shell_startup.install()
    with (user / ".bashrc").open("a") as file:
        file.write("export LATER=1\n")
    shell_startup.remove()
    assert (user / ".bashrc").read_text() == "export LATER=1\n"


def test_a_link_stays_a_link(user: Path) -> None:
    """Dotfiles are often kept elsewhere."""
    (user / "dots").mkdir()
    (user / "dots" / "bashrc").write_text("x=1\n")
    (user / ".bashrc").symlink_to("dots/bashrc")
    shell_startup.install()
    assert (user / ".bashrc").is_symlink()
    assert shell_startup.BEGIN in (user / "dots" / "bashrc").read_text()


def test_a_link_to_nothing_is_refused(user: Path) -> None:
    """What it leads to may only be away, as on another disk."""
    (user / ".bashrc").symlink_to("dots/bashrc")
    with pytest.raises(Trouble, match="which does not exist"):
        shell_startup.install()
    assert [one.name for one in user.iterdir()] == [".bashrc"]


def test_a_block_without_its_end_is_left_alone(user: Path) -> None:
    """Whatever else was cut off with it is not ours to remove."""
    (user / ".bashrc").write_text(f"a\n{shell_startup.BEGIN}\nprecious\n")
    shell_startup.remove()
    assert "precious" in (user / ".bashrc").read_text()


@pytest.mark.parametrize("more", ["", "{begin}\nx\n{end}\n"])
def test_nothing_is_written_beside_a_block_without_its_end(user: Path, more: str) -> None:
    """No second block: removing that would take what lies between."""
    text = f"a\n{shell_startup.BEGIN}\nprecious\n"
    text += more.format(begin=shell_startup.BEGIN, end=shell_startup.END)
    (user / ".bashrc").write_text(text)
    (user / ".profile").write_text("")
    with pytest.raises(Trouble, match="without its end"):
        shell_startup.install()
    assert (user / ".profile").read_text() == ""
    shell_startup.remove()
    assert (user / ".bashrc").read_text() == text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write to what is another's")
@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_root_does_not_write_into_what_is_anothers(user: Path, kind: str) -> None:
    """`sudo -E` keeps the HOME of the one who called it."""
    file = user / ".bashrc"
    if kind == "link":
        (user / "away").mkdir()
        os.chown(user / "away", 12345, 12345)
        (user / "away" / "x").write_text("")
        file.symlink_to(user / "away" / "x")
    else:
        file.write_text("")
        os.chown(user if kind == "folder" else file, 12345, 12345)
    with pytest.raises(Trouble, match="belongs to uid 12345"):
        shell_startup.install()
    assert file.read_text() == ""
    if kind == "folder":
        with pytest.raises(Trouble, match="belongs to uid 12345"):
            launcher.install()


@pytest.mark.parametrize("shell", [one for one in ("sh", "bash", "zsh") if shutil.which(one)])
def test_a_shell_that_reads_it_finds_the_launcher(user: Path, shell: str) -> None:
    """Asked of the shell itself."""
    (user / ".profile").write_text("")
    shell_startup.install()
    launcher.install()
    done = subprocess.run(
        [shell, "-c", ". ~/.profile; command -v hermes"],
        env={"HOME": str(user), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == str(launcher.folder() / "hermes")


AFTER = [
    'export PATH="$HOME/.local/bin:$PATH"',
    "  PATH=/opt/bin:$PATH",
    "typeset -x PATH=/opt/bin:$PATH",
    "path=(~/bin $path)",
]


@pytest.mark.parametrize("line", AFTER)
def test_what_comes_before_it_later_is_seen_and_put_right(user: Path, line: str) -> None:
    """Installers append such lines; every other byte stays."""
    shell_startup.install()
    with (user / ".bashrc").open("a") as file:
        file.write(f"{line}\n")
    [why] = shell_startup.doubts()
    assert "a later line changes PATH" in why
    assert [one.name for one in shell_startup.install()] == [".bashrc"]
    assert shell_startup.doubts() == []
    assert (user / ".bashrc").read_text().startswith(f"{line}\n")
    shell_startup.remove()
    assert (user / ".bashrc").read_text() == f"{line}\n"


HARMLESS = ["export PATH=$PATH:/opt/bin", 'PATH="${PATH}:/x"', "# PATH=/x:$PATH", "MYPATH=/x"]


@pytest.mark.parametrize("line", HARMLESS)
def test_what_comes_behind_it_is_no_doubt(user: Path, line: str) -> None:
    """The launcher is still the first."""
    shell_startup.install()
    with (user / ".bashrc").open("a") as file:
        file.write(f"{line}\n")
    assert shell_startup.doubts() == []
    assert shell_startup.install() == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("alias hermes=/opt/hermes\n", "alias"),
        ("hermes() { /opt/hermes; }\n", "function"),
        ("return 0\n", "exits before"),
        ("exec fish\n", "exits before"),
    ],
)
def test_what_no_line_can_put_right(user: Path, text: str, why: str) -> None:
    """It is said."""
    (user / ".bashrc").write_text(text)
    shell_startup.install()
    [said] = shell_startup.doubts()
    assert why in said


def test_the_usual_lines_are_no_doubt(user: Path) -> None:
    """What distributions put into a `.bashrc`."""
    text = 'case $- in\n  *i*) ;;\n  *) return;;\nesac\n[ -z "$PS1" ] && return\nexec 3>&1\n'
    (user / ".bashrc").write_text(text + "alias ll='ls -l'\nPATH=$HOME/bin:$PATH\n")
    shell_startup.install()
    assert shell_startup.doubts() == []


def test_only_what_the_users_own_shell_reads_counts(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines in the file of another shell help nobody."""
    (user / ".zshrc").write_text("")
    shell_startup.install()
    (user / ".bashrc").write_text("")
    [why] = shell_startup.doubts()
    assert ".bashrc" in why
    monkeypatch.setenv("SHELL", "/bin/zsh")
    assert shell_startup.doubts() == []
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    [why] = shell_startup.doubts()
    assert "start-up files of tcsh" in why


def test_what_changes_the_path_of_fish_later(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own file is read after ours."""
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    (user / ".config" / "fish").mkdir(parents=True)
    shell_startup.install()
    assert shell_startup.doubts() == []
    (user / ".config" / "fish" / "config.fish").write_text("fish_add_path ~/.local/bin\n")
    [why] = shell_startup.doubts()
    assert "config.fish" in why
    shell_startup.remove()
    assert [one.name for one in (user / ".config" / "fish").iterdir()] == ["config.fish"]


def test_two_blocks_go_both(user: Path) -> None:
    """A file that was put together from two."""
    shell_startup.install()
    text = (user / ".bashrc").read_text()
    (user / ".bashrc").write_text(f"a\n{text}b\n{text}c\n")
    shell_startup.remove()
    assert (user / ".bashrc").read_text() == "a\nb\nc\n"


def test_a_shell_of_a_login_finds_the_launcher(user: Path) -> None:
    """bash reads no `.bashrc` then, and there may be nothing else."""
    (user / ".bashrc").write_text("")
    shell_startup.install()
    launcher.install()
    done = subprocess.run(
        ["bash", "-l", "-c", "command -v hermes"],
        env={"HOME": str(user), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == str(launcher.folder() / "hermes")
