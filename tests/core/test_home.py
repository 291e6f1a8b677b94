"""Which home is looked at, and what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core import home as homes
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from tests.helpers import support


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which HOME and the container's place are, both without a home yet."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("HERMES_HOME", raising=False)
    monkeypatch.delenv("SUDO_USER", raising=False)
    monkeypatch.setattr(homes, "CONTAINER_HOME", tmp_path / "opt" / "data")
    (tmp_path / "user").mkdir()
    return tmp_path


def test_order(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--home, then HERMES_HOME, then ~/.hermes, then the container's place."""
    container = support.healthy(places / "opt" / "data")
    assert homes.find(None).path == container
    user = support.healthy(places / "user" / ".hermes")
    assert homes.find(None).path == user
    named = support.healthy(places / "named")
    monkeypatch.setenv("HERMES_HOME", str(named))
    assert homes.find(None).path == named
    option = support.healthy(places / "option")
    assert homes.find(option).path == option


def test_empty_variable(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty HERMES_HOME is as good as none."""
    monkeypatch.setenv("HERMES_HOME", "")
    user = support.healthy(places / "user" / ".hermes")

    assert homes.find(None).path == user


def test_tilde(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HERMES_HOME may begin with a tilde, as in a unit file."""
    user = support.healthy(places / "user" / "data")
    monkeypatch.setenv("HERMES_HOME", "~/data")

    assert homes.find(None).path == user


def test_an_empty_folder_is_no_home(places: Path) -> None:
    """An empty ~/.hermes is passed over; an empty --home is refused."""
    (places / "user" / ".hermes").mkdir()
    container = support.healthy(places / "opt" / "data")

    assert homes.find(None).path == container
    with pytest.raises(Trouble, match="contains no file of Hermes"):
        homes.find(places / "user" / ".hermes")


@pytest.mark.parametrize("marker", homes.MARKERS)
def test_one_marker_is_enough(tmp_path: Path, marker: str) -> None:
    """A home in ruins is still a home: any one of its parts tells."""
    (tmp_path / marker).mkdir(parents=True)

    assert homes.find(tmp_path).path == tmp_path


def test_errors(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every refusal is one line that says what was looked at and points to the demo."""
    file = support.put(places / "file", "x")
    said = []
    for option in (places / "nowhere", file, places / "user"):
        with pytest.raises(Trouble) as trouble:
            homes.find(option)
        assert "--home" in str(trouble.value)
        assert str(option) in str(trouble.value)
        said.append(str(trouble.value))
    monkeypatch.setenv("HERMES_HOME", str(places / "gone"))
    with pytest.raises(Trouble, match="HERMES_HOME names") as trouble:
        homes.find(None)
    said.append(str(trouble.value))
    monkeypatch.delenv("HERMES_HOME")
    with pytest.raises(Trouble, match="No Hermes home found") as trouble:
        homes.find(None)
    said.append(str(trouble.value))
    assert all(
        place in said[-1]
        for place in ("HERMES_HOME", str(places / "user" / ".hermes"), str(homes.CONTAINER_HOME))
    )
    for text in said:
        assert "hermes-doctor demo" in text
        assert "\n" not in text


def test_sudo_points_to_the_caller(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under sudo the home of the user who called is named."""
    theirs = support.healthy(places / "theirs" / ".hermes")
    monkeypatch.setattr(homes, "_homes_of_others", lambda environ: [theirs])

    with pytest.raises(Trouble, match=f"--home {theirs}"):
        homes.find(None)


@pytest.mark.parametrize("args", [["check"], ["fix"], ["undo"], ["backup", "list"]])
def test_command_without_a_home(tmp_path: Path, args: list[str]) -> None:
    """Exit 2, one line on stderr, nothing on stdout, for every command that needs a home."""
    done = support.doctor(*args, env={"HOME": str(tmp_path)})

    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert done.err.startswith("hermes-doctor: No Hermes home found.")
    assert str(tmp_path / ".hermes") in done.err
    assert "/opt/data" in done.err
    assert "hermes-doctor demo" in done.err


def test_the_bare_command_offers_the_demo_without_a_home(tmp_path: Path) -> None:
    """The front page ends with it; with a home it does not."""
    none = support.doctor(env={"HOME": str(tmp_path)})
    support.healthy(tmp_path / ".hermes")
    one = support.doctor(env={"HOME": str(tmp_path)})

    assert (none.code, one.code) == (0, 0)
    assert none.out.startswith(one.out)
    rest = none.out.removeprefix(one.out).strip()
    assert rest.startswith("No Hermes home found.")
    assert rest.endswith("hermes-doctor demo")


@pytest.mark.parametrize("name", ["new\nline", "esc\x1b[31m", "x" * 300, "loop"])
def test_odd_names(tmp_path: Path, name: str) -> None:
    """Whatever the option names, the answer is one line without a traceback."""
    if name == "loop":
        (tmp_path / "loop").symlink_to("loop")

    done = support.doctor("check", "--home", tmp_path / name)

    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "\x1b" not in done.err


def test_environment_of_the_command(home: Path, tmp_path: Path) -> None:
    """The command itself obeys HERMES_HOME and HOME."""
    done = support.doctor("check", "--json", env={"HERMES_HOME": str(home)})
    assert done.json["home"] == str(home)

    (tmp_path / "user").mkdir()
    home.rename(tmp_path / "user" / ".hermes")
    done = support.doctor("check", "--json", env={"HOME": str(tmp_path / "user")})
    assert done.json["home"] == str(tmp_path / "user" / ".hermes")


def test_profiles(home: Path) -> None:
    """A profile is a home of its own, and knows its name."""
    coder = support.healthy(home / "profiles" / "coder")
    (home / "profiles" / "not-a-folder").write_text("x")
    (home / "profiles" / "empty").mkdir()

    assert Home(coder).profile == "coder"
    assert Home(home).profile is None
    found = [one.path for one in homes.all_homes(Home(home), [])]
    assert found == [home, coder]
    assert [one.path for one in homes.all_homes(Home(coder), [])] == [home, coder]


def test_all_homes_once_each(home: Path, tmp_path: Path) -> None:
    """A home that is found by several ways is looked at once; one that is gone not at all."""
    link = tmp_path / "link"
    link.symlink_to(home)
    other = support.healthy(tmp_path / "other")

    found = homes.all_homes(Home(home), [link, other, other, tmp_path / "gone"])

    assert [one.path for one in found] == [home, other]
    assert [one.path for one in homes.all_homes(None, [other])] == [other]


def test_all_homes_command(home: Path) -> None:
    """--all-homes reports each home with hints that name it; the worst decides the exit code."""
    coder = support.healthy(home / "profiles" / "coder")
    support.put(coder / ".env", b"\xef\xbb\xbfA=1\n")

    done = support.doctor("check", "--all-homes", "--json", "--home", home)

    assert done.code == 1
    document = done.json
    assert document["schema"] == "hermes-doctor/reports/1"
    assert document["summary"]["status"] == "problem"
    mine = {one["home"]: one for one in document["homes"]}
    assert mine[str(home)]["findings"] == []
    [finding] = [one for one in mine[str(coder)]["findings"] if one["code"] == "ENV-BOM"]
    assert finding["fix"]["command"].endswith(f"--home {coder}")
    text = support.doctor("check", "--all-homes", "--home", home).out
    # Gateways that others run on this machine have homes, too, which come and go.
    named = [line for line in text.splitlines() if line.startswith("hermes-doctor 0.")]
    assert sum(str(home) in line for line in named) == len(
        [one for one in mine if str(home) in one]
    )


def test_names(home: Path) -> None:
    """Paths are shown relative to the home where they lie inside."""
    one = Home(home)

    assert one.name_of(home / "a" / "b") == "a/b"
    assert one.name_of(Path("/etc/x")) == "/etc/x"
    assert one.vault == home / "backups" / "doctor"
    assert one.runs == home / "backups" / "doctor" / "runs"


def test_option_of_a_pasted_command(places: Path) -> None:
    """A home in the usual place needs none; any other is named, in quotes if needed."""
    assert Home(places / "user" / ".hermes").option == ""
    assert Home(places / "opt" / "data").option == ""
    assert Home(places / "my bot").option == f" --home '{places}/my bot'"
