"""The commands mute, unmute and mutes, and what they change in check and fix."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.cli import check_run, mute
from hermes_doctor.cli.commands import app
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.preferences import places
from tests.helpers import support
from tests.helpers.support import Done

MARK = b"\xef\xbb\xbf"
Doctor = Callable[..., Done]


@pytest.fixture
def sick(home: Path) -> Path:
    """A home whose .env has a byte order mark (ENV-BOM) and whose state.db is not a database."""
    support.put(home / ".env", MARK + (home / ".env").read_bytes())
    return home


@pytest.fixture
def doctor(sick: Path, tmp_path: Path) -> Doctor:
    """Runs a command for that home, with a folder of its own for the mutes."""

    def run(*args: str | Path) -> Done:
        env = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HERMES_HOME": str(sick)}
        return support.doctor(*args, env=env)

    return run


def test_mute_and_unmute(doctor: Doctor, sick: Path, tmp_path: Path) -> None:
    """The exit code of a check depends on it."""
    assert doctor("check", "--only", "ENV-BOM").code == 1
    done = doctor("mute", "env-bom", "--because", "we   know")
    path = tmp_path / "config" / "hermes-doctor" / "mutes.json"
    assert done.code == 0 and done.err == ""
    assert done.out.splitlines() == [
        f"Muted ENV-BOM until it changes. Stored in {path}.",
        "It ends when the problem disappears, gets worse or affects something new.",
        f"To end it now: hermes-doctor unmute ENV-BOM --home {sick}",
    ]
    seen = doctor("check", "--only", "ENV-BOM")
    assert seen.code == 0 and "· Muted: ENV-BOM. See: hermes-doctor mutes" in seen.out
    assert "ran and found 1 muted problem." in seen.out
    listed = doctor("mutes")
    assert "ENV-BOM  until it changes  since" in listed.out and "we know" in listed.out
    assert doctor("unmute", "ENV-BOM").out == "Unmuted ENV-BOM.\n"
    assert doctor("check", "--only", "ENV-BOM").code == 1
    assert doctor("mutes").out == "Nothing is muted.\n"


def test_a_new_mute_is_shown_at_the_top(doctor: Doctor, tmp_path: Path) -> None:
    """A program that runs as the operator can mute what it likes, and claim that it is long ago."""
    doctor("mute", "ENV-BOM", "--sticky")
    path = tmp_path / "config" / "hermes-doctor" / "mutes.json"
    stored = json.loads(path.read_text())
    stored["mutes"][0]["at"] = "2020-01-01T00:00:00+00:00"
    path.write_text(json.dumps(stored))
    os.utime(path, (0, 0))

    seen = doctor("check", "--only", "ENV-BOM").out.splitlines()

    [line] = [one for one in seen if one.startswith("! muted since ")]
    assert seen.index(line) == 3, seen
    assert " ago): .env starts with" in line and "ENV-BOM" in line


@pytest.mark.parametrize("rule", ["root", "all"])
def test_only_root_may_mute(
    sick: Path,
    tmp_path: Path,
    rule: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The file for all users can say so: what any user mutes or switches off has no effect then."""
    etc, own = tmp_path / "etc", tmp_path / "config" / "hermes-doctor"
    support.put(etc / "config.toml", f'mutes = "{rule}"\n')
    monkeypatch.setattr(places, "SYSTEM", etc)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def check() -> int:
        return check_run.run(sick, only=["ENV-BOM"])

    if rule == "root":
        with pytest.raises(Trouble, match=f"Only root may mute problems here: {etc}/config.toml"):
            app(["mute", "ENV-BOM", "--home", str(sick)], standalone_mode=False)
        assert not own.exists()
    else:
        app(["mute", "ENV-BOM", "--home", str(sick)], standalone_mode=False)
    alone = check()
    forged: dict[str, object] = {
        "home": str(sick),
        "code": "ENV-BOM",
        "subject": None,
        "severities": None,
    }
    forged |= {"worst": "critical", "checks": [], "until": None, "sticky": True, "because": ""}
    forged |= {"at": "2026-01-01T00:00:00+00:00", "options": []}
    text = json.dumps({"schema": "hermes-doctor/mutes/1", "mutes": [forged]})
    support.put(own / "mutes.json", text)
    forged_mute = check()
    capsys.readouterr()
    mute.mutes()
    listed = capsys.readouterr().out
    (own / "mutes.json").unlink()
    support.put(own / "config.toml", '[severity]\nENV-BOM = "off"\n')
    off = check()
    (own / "config.toml").unlink()
    support.put(etc / "mutes.json", text)
    of_root = check()

    assert (alone, forged_mute, off) == ((1, 1, 1) if rule == "root" else (0, 0, 0))
    assert ("Ignored, because only root may mute here: " in listed) == (rule == "root")
    assert of_root == 0


def test_a_user_cannot_allow_it_again(doctor: Doctor, tmp_path: Path) -> None:
    """In his own file the rule is a mistake."""
    support.put(tmp_path / "config" / "hermes-doctor" / "config.toml", 'mutes = "all"\n')

    done = doctor("check")

    assert done.code == 2
    assert "mutes may only be set in /etc/hermes-doctor/config.toml" in done.err


def test_check_changes_no_mute(doctor: Doctor, sick: Path, tmp_path: Path) -> None:
    """Looking changes nothing, even if the problem is gone."""
    doctor("mute", "ENV-BOM")
    path = tmp_path / "config" / "hermes-doctor" / "mutes.json"
    before = path.read_bytes()
    support.put(sick / ".env", (sick / ".env").read_bytes().removeprefix(MARK))
    doctor("check")
    assert path.read_bytes() == before


def test_the_watch_ends_it(doctor: Doctor, sick: Path) -> None:
    """One round that does not find the problem is enough."""
    doctor("mute", "ENV-BOM")
    assert doctor("watch", "--once", "--fail-on", "critical").code == 0
    assert json.loads(doctor("mutes", "--json").out)["mutes"]
    support.put(sick / ".env", (sick / ".env").read_bytes().removeprefix(MARK))
    done = doctor("watch", "--once")
    assert "the mute of ENV-BOM has ended: the problem is gone" in done.out
    assert json.loads(doctor("mutes", "--json").out) == {
        "schema": "hermes-doctor/mutes/1",
        "mutes": [],
    }


def test_subjects(doctor: Doctor) -> None:
    """One that is not there is refused, with those that are."""
    done = doctor("mute", "ENV-BOM/config.yaml")
    assert done.code == 2
    assert "ENV-BOM has no subject 'config.yaml' now. It has: .env." in done.err
    assert doctor("mute", "ENV-BOM/.env", "--for", "12h").code == 0
    assert doctor("check", "--only", "ENV-BOM").code == 0
    assert doctor("unmute", "ENV-BOM/other").code == 2
    assert doctor("unmute", "ENV-BOM").out == "Unmuted ENV-BOM/.env.\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["mute", "ENV-BON"], "Unknown code 'ENV-BON'. Did you mean ENV-BOM?"),
        (["mute", "CFG-YAML"], "CFG-YAML is not found now. Add --sticky to mute it"),
        (["mute", "ENV-BOM", "--for", "soon"], "--for needs a time from 60s to 366d"),
        (["mute", "ENV-BOM", "--for", "2y"], "--for needs a time"),
        (["unmute", "ENV-BOM"], "Nothing is muted in "),
        (["unmute", "--all"], "Nothing is muted in "),
        (["mute", "ENV-BOM/"], "Name the subject after the /, or leave out the /."),
        (["mute", "ENV-BOM", "--because", "x" * 201], "--because takes at most 200 characters"),
        (["unmute"], "Name a code to unmute, or give --all."),
        (["unmute", "ENV-BOM", "--all"], "Name a code to unmute, or give --all."),
    ],
)
def test_what_is_refused(doctor: Doctor, args: list[str], said: str) -> None:
    """In one line, with exit code 2."""
    done = doctor(*args)
    assert (done.code, done.out) == (2, "")
    assert said in done.err and done.err.count("\n") == 1


def test_a_critical_problem_needs_a_time(doctor: Doctor, sick: Path) -> None:
    """It must not be forgotten."""
    support.clobber(sick / "state.db")
    done = doctor("mute", "DB-NOTADB")
    assert done.code == 2
    assert "DB-NOTADB is critical. Say for how long to mute it, such as --for 2h." in done.err
    assert doctor("mute", "DB-NOTADB", "--for", "2h").code == 0
    doctor("mute", "ENV-BOM")
    assert doctor("check", "--only", "DB-NOTADB").code == 0


def test_sticky_before_it_is_there(doctor: Doctor, sick: Path) -> None:
    """Any later problem with the code is muted, unless it is critical."""
    done = doctor("mute", "CFG-YAML", "--sticky")
    assert "until it gets worse (sticky)" in done.out
    assert "If it is critical when it appears, it is not muted." in done.out
    assert "It ends when the problem gets worse or affects something new." in done.out
    support.put(sick / "config.yaml", "a: [\n")
    assert "Muted" not in doctor("check", "--only", "CFG-YAML").out
    doctor("mute", "CFG-YAML", "--sticky", "--for", "1h")
    assert "Muted: CFG-YAML" in doctor("check", "--only", "CFG-YAML").out


def test_fix_leaves_it_alone_unless_it_is_named(doctor: Doctor, sick: Path) -> None:
    """`fix` says what it left out."""
    doctor("mute", "ENV-BOM")
    done = doctor("fix", "--apply", "--yes")
    assert "Left out, because muted: ENV-BOM. Name the code to repair it." in done.out
    assert (sick / ".env").read_bytes().startswith(MARK)
    assert doctor("fix", "ENV-BOM", "--apply", "--yes").code == 0
    assert not (sick / ".env").read_bytes().startswith(MARK)


def test_a_damaged_file_mutes_nothing(doctor: Doctor, tmp_path: Path) -> None:
    """A check says so on stderr, and goes on."""
    doctor("mute", "ENV-BOM")
    path = tmp_path / "config" / "hermes-doctor" / "mutes.json"
    path.write_text("{")
    done = doctor("check", "--only", "ENV-BOM")
    assert done.code == 1
    assert done.err == (
        f"hermes-doctor: Nothing is muted. {path} is damaged. "
        "Delete it and mute again what you need.\n"
    )
    assert doctor("mutes").code == doctor("unmute", "--all").code == 2


def test_a_file_that_others_can_write(doctor: Doctor, tmp_path: Path) -> None:
    """They could have muted anything."""
    doctor("mute", "ENV-BOM")
    path = tmp_path / "config" / "hermes-doctor" / "mutes.json"
    path.chmod(0o666)
    done = doctor("check", "--only", "ENV-BOM")
    assert done.code == 1 and "Refused to read" in done.err


def test_a_mute_that_is_over(doctor: Doctor, tmp_path: Path) -> None:
    """It is listed as such, and mutes nothing."""
    doctor("mute", "ENV-BOM", "--for", "1h")
    path = tmp_path / "config" / "hermes-doctor" / "mutes.json"
    data = json.loads(path.read_text())
    data["mutes"][0]["until"] = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    path.write_text(json.dumps(data))
    assert "(over)" in doctor("mutes").out
    assert doctor("check", "--only", "ENV-BOM").code == 1


def test_files_inside_the_home(sick: Path, tmp_path: Path) -> None:
    """An agent that works there could change them."""
    env = {"XDG_CONFIG_HOME": str(sick / "config"), "HERMES_HOME": str(sick)}
    done = support.doctor("mute", "ENV-BOM", env=env)
    assert done.code == 2 and "it is inside the Hermes home" in done.err
    support.put(sick / "own.toml", '[severity]\nENV-BOM = "off"\n', 0o600)
    outside = tmp_path / "config" / "hermes-doctor"
    outside.mkdir(parents=True)
    (outside / "config.toml").symlink_to(sick / "own.toml")
    env["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    done = support.doctor("check", env=env)
    assert done.code == 2 and "it is inside the Hermes home" in done.err
    asked = support.doctor("probe", "live", env=env)
    assert asked.code == 0 and asked.out.startswith("perhaps live, could not check: Refused"), asked


def test_control_characters(doctor: Doctor) -> None:
    """They do not reach the terminal."""
    done = doctor("mute", "NET-TCP/a\x1b[31mb\nc", "--sticky")
    assert done.code == 0 and "\x1b" not in done.out and done.out.count("\n") == 4


def test_a_home_that_is_gone(doctor: Doctor, sick: Path) -> None:
    """Its mutes can be ended."""
    import shutil

    doctor("mute", "ENV-BOM")
    shutil.rmtree(sick)
    assert doctor("unmute", "--all").out == "Unmuted ENV-BOM.\n"
