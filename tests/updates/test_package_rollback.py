"""Every kind of installation gets the packages of before from what manages it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_doctor.gateway.manager_commands import owner_of
from hermes_doctor.home import Home
from hermes_doctor.installation import details
from hermes_doctor.installation.details import InstallationDetails
from hermes_doctor.installation.find import installation_at
from hermes_doctor.model import CannotFix
from hermes_doctor.updates import package_rollback
from tests.helpers import fake_environments, support

OLD = {"hermes-agent": "0.18.2", "idna": "3.10", "pip": "26.0"}
NEW = {"hermes-agent": "0.19.0", "idna": "3.15", "pip": "26.1"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with an environment, and a uv on the PATH."""
    home = support.healthy(tmp_path / "home")
    fake_environments.make(home)
    support.put(tmp_path / "tools" / "uv", "#!/bin/sh\n").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    return home


def installed(home: Path, kind: str, **more: object) -> InstallationDetails:
    where = str(home / "hermes-agent" / "venv")
    one = InstallationDetails("0.18.2", where, kind, packages=OLD, python="3.11")
    return replace(one, **more)  # type: ignore[arg-type]


def back(home: Path, before: InstallationDetails, **now: object) -> list[str]:
    after = replace(before, version="0.19.0", packages=NEW)
    after = replace(after, **now)  # type: ignore[arg-type]
    made = package_rollback.package_rollback(Home(home), before, after, owner_of(Home(home)))
    return [" ".join(words).replace(f"{before.where}/bin/", "") for words in made]


def test_by_pip_or_by_uv(here: Path) -> None:
    """pip stays as it is; an environment without one is uv's, whoever made it."""
    wanted = "idna==3.10 hermes-agent==0.18.2"
    by_pip = f"python -m pip install --no-deps --quiet {wanted}"
    by_uv = f"uv pip install --quiet --python python --no-deps {wanted}"
    assert back(here, installed(here, "pip")) == [by_pip]
    assert back(here, installed(here, "uv")) == [by_uv]
    bare = {name: version for name, version in NEW.items() if name != "pip"}
    assert back(here, installed(here, "git"), packages=bare) == [by_uv]


def test_a_tool_keeps_what_was_installed_with_it(here: Path) -> None:
    """`uv tool install --force` would leave out every --with."""
    [command] = back(here, installed(here, "uv-tool"))
    assert command.startswith("uv pip install")
    first, second = back(here, installed(here, "pipx"))
    assert first == "pipx install --force hermes-agent==0.18.2"
    assert second == "pipx runpip hermes-agent install --no-deps --quiet idna==3.10"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (details.EDITABLE, "--editable /src"),
        (details.COPIED, "/src"),
        ("hermes-agent @ git+https://x/y@abc", "hermes-agent @ git+https://x/y@abc"),
    ],
)
def test_from_where_it_was_installed(here: Path, source: str, expected: str) -> None:
    """The checkout is installed anew, or the environment names the version of the update."""
    before = installed(here, "git", source=source, checkout="/src", revision="1" * 40)
    [command] = back(here, before)
    assert command.endswith(f"idna==3.10 {expected}")
    assert back(here, before, packages=OLD, revision="1" * 40) == []


def test_an_environment_that_is_gone_is_made_anew(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every package; without uv it is said what is missing."""
    before = installed(here, "uv", where=str(here / "gone"))
    made = package_rollback.package_rollback(Home(here), before, None, owner_of(Home(here)))
    assert [" ".join(words) for words in made] == [
        f"uv venv --quiet --allow-existing --python 3.11 {here}/gone",
        f"uv pip install --quiet --python {here}/gone/bin/python --no-deps "
        "idna==3.10 hermes-agent==0.18.2",
    ]
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(package_rollback, "_uv", lambda *_: None)
    with pytest.raises(CannotFix, match=r"lost its Python.* Python 3\.11"):
        package_rollback.package_rollback(Home(here), before, None, owner_of(Home(here)))


def test_what_has_only_its_name_left_is_installed_again(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version is that of before, so nothing else would bring the files back."""
    said = ("idna has lost files: idna/core.py", "gateway.run cannot be compiled (line 2)")
    monkeypatch.setattr("hermes_doctor.updates.requirements.unmet_requirements", lambda *_: said)
    by_pip = "python -m pip install --no-deps --quiet"
    wanted = "--force-reinstall idna==3.10 hermes-agent==0.18.2"
    assert back(here, installed(here, "pip"), packages=OLD) == [f"{by_pip} {wanted}"]
    both = back(here, installed(here, "pip"), packages=OLD | {"idna": "3.15"})
    assert both == [f"{by_pip} idna==3.10", f"{by_pip} --force-reinstall hermes-agent==0.18.2"]
    checkout = installed(here, "git", source=details.EDITABLE, checkout="/src")
    assert back(here, checkout, packages=OLD) == [f"{by_pip} --force-reinstall idna==3.10"]
    assert back(here, installed(here, "pipx"), packages=OLD) == [
        f"pipx runpip hermes-agent install --no-deps --quiet {wanted}"
    ]


def test_neither_pip_nor_uv_is_said_before_anything_is_changed(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when git has gone back already."""
    monkeypatch.setattr(package_rollback, "_uv", lambda *_: None)
    with pytest.raises(CannotFix, match="has no pip"):
        back(here, installed(here, "git"), packages={"hermes-agent": "0.19.0"})


@pytest.mark.parametrize("editable", [True, False])
def test_what_the_installer_wrote_down(here: Path, tmp_path: Path, editable: bool) -> None:
    """Also of an environment that does not lie in its checkout."""
    source = support.put(tmp_path / "my src" / "pyproject.toml", 'name = "hermes-agent"\n').parent
    root = here / "hermes-agent" / "venv"
    info = fake_environments.packages(root) / "hermes_agent-0.18.2.dist-info"
    said = {"url": (source).as_uri(), "dir_info": {"editable": True} if editable else {}}
    support.put(info / "direct_url.json", json.dumps(said))
    seen = look(root)
    assert seen.source == (details.EDITABLE if editable else details.COPIED)
    assert seen.checkout == str(source)


@pytest.mark.parametrize("text", ["[]", '{"url": 5}', "{", '{"vcs_info": {}}', "[" * 9999])
def test_odd_words_of_an_installer(here: Path, text: str) -> None:
    """They say nothing."""
    root = here / "hermes-agent" / "venv"
    info = fake_environments.packages(root) / "hermes_agent-0.18.2.dist-info"
    support.put(info / "direct_url.json", text)
    assert look(root).source == ""


@pytest.mark.parametrize("packed", [False, True])
def test_a_linked_worktree_has_a_commit(tmp_path: Path, packed: bool) -> None:
    """`.git` is a file there, and the branches lie with the first one."""
    first, linked = tmp_path / "first", tmp_path / "linked"
    support.put(first / "pyproject.toml", 'name = "hermes-agent"\nversion = "0.18.2"\n')

    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        command = ["git", "-C", str(first), *who, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q", "-b", "trunk")
    git("add", ".")
    git("commit", "-qm", "old")
    git("worktree", "add", "-q", "-b", "mine", str(linked))
    if packed:
        git("pack-refs", "--all")
    seen = look(linked)
    assert seen.revision == git("rev-parse", "HEAD")
    assert (seen.branch, seen.kind) == ("mine", "git")


def look(place: Path) -> InstallationDetails:
    found = installation_at(place)
    assert found is not None
    return details.read_details(found)
