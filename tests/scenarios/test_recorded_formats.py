"""What an earlier commit wrote stays usable: backups, receipts, watches, plugins, commands, JSON.

Every test runs once for each archive in `tests/data/formats`. The tests use the command line and
`hermes_doctor.api` and no other module of the package, so modules can be moved without a change
here.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from importlib.metadata import entry_points
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import recorded_formats, support
from tests.helpers.recorded_formats import Recording

ARCHIVES = sorted(recorded_formats.KEPT.glob("*.tar.xz"))
ABOUT = {path: recorded_formats.about(path) for path in ARCHIVES}
Unpack = Callable[..., Recording]


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def archive(request: pytest.FixtureRequest) -> Path:
    """One of the archives."""
    path: Path = request.param
    return path


@pytest.fixture
def unpack(archive: Path, tmp_path: Path) -> Unpack:
    """Unpacks folders of the archive; they are at another path than when they were recorded."""

    def unpack(*names: str) -> Recording:
        return recorded_formats.unpacked(archive, tmp_path / "moved", *names)

    return unpack


def doctor(recording: Recording, *words: str | Path) -> support.Done:
    """Run the command without anything of the user who runs the tests."""
    return support.doctor(*words, env=dict(recording.env))


def test_there_is_an_archive() -> None:
    """Without one, all other tests of this file would be skipped."""
    assert ARCHIVES


# -- backups -------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("home", ["repaired", "large"])
def test_backups_restore_the_recorded_bytes(unpack: Unpack, home: str) -> None:
    """A whole backup, one that shares copies with it, and one that stores changed blocks."""
    recording = unpack(home)
    place = recording.home(home)
    listed = doctor(recording, "backup", "list", "--json", "--home", place).json["backups"]
    first, second, *_ = [one["id"] for one in listed]
    assert len(listed) == len(list(place.glob("backups/doctor/2*")))
    verified = doctor(recording, "backup", "verify", "--all", "--json", "--home", place)
    assert verified.code == 0, verified.out
    assert [one["id"] for one in verified.json["backups"]] == [one["id"] for one in listed]

    for backup, when in ((first, "first"), (second, "second")):
        for path in [one for one in place.iterdir() if one.is_file() and one.name != "config.yaml"]:
            path.unlink()
        done = doctor(recording, "backup", "restore", backup, "--yes", "--home", place)
        assert done.code == 0, done.err
        assert recorded_formats.contents(place) == recording.files(home, when)


def test_the_recording_has_shared_copies_and_blocks(unpack: Unpack) -> None:
    """Otherwise the test above would prove less than it says."""
    recording = unpack("repaired", "large")
    vault = recording.home("repaired") / "backups" / "doctor"
    manifests = [json.loads(path.read_bytes()) for path in vault.glob("*/manifest.json")]
    copies = [path for path in vault.glob("2*/files/*") if path.lstat().st_nlink > 1]

    assert any(one["shares"] for one in manifests)
    assert {path.name for path in copies} >= {"kanban.db", "config.yaml"}
    assert list(recording.home("large").glob("backups/doctor/2*/blocks"))


# -- receipts ------------------------------------------------------------------------------


def test_undo_of_a_recorded_receipt(unpack: Unpack) -> None:
    """It restores settings, modes, and a database with its write-ahead log."""
    recording = unpack("repaired")
    home = recording.home("repaired")
    before, after = (recording.files("repaired", when) for when in ("second", "after"))
    changed = {name for name in before if before[name] != after.get(name)}
    assert changed >= {"config.yaml", ".env", "auth.json", "state.db", "state.db-wal"}
    assert recorded_formats.contents(home) == after

    done = doctor(recording, "undo", "--yes", "--home", home)

    assert done.code == 0, done.err
    assert recorded_formats.contents(home) == before


def test_undo_of_a_receipt_with_a_vault_elsewhere(unpack: Unpack) -> None:
    """The receipt names the vault, so `undo` needs no option."""
    recording = unpack("elsewhere", "vault")
    home = recording.home("elsewhere")
    assert recorded_formats.contents(home) == recording.files("elsewhere", "after")
    assert not list(home.glob("backups/doctor/2*"))

    done = doctor(recording, "undo", "--yes", "--home", home)

    assert done.code == 0, done.err
    assert recorded_formats.contents(home) == recording.files("elsewhere", "before")


# -- unfinished runs -----------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "state", "becomes"), [("halfway", "before", "old"), ("unverified", "after", "new")]
)
def test_the_next_command_ends_an_unfinished_run(
    unpack: Unpack, name: str, state: str, becomes: str
) -> None:
    """What was half replaced is reversed; what was replaced but not verified is verified."""
    recording = unpack(name)
    home = recording.home(name)
    [receipt] = home.glob("backups/doctor/runs/*/run.json")
    assert json.loads(receipt.read_bytes())["state"] == (
        "committing" if becomes == "old" else "verifying"
    )
    assert recorded_formats.contents(home) != recording.files(name, state)

    done = doctor(
        recording, "fix", "CRON-JOBS-CORRUPT", "--apply", "--yes", "--json", "--home", home
    )

    [text] = done.json["repair"]["recovered"]
    assert receipt.parent.name in text
    assert recorded_formats.contents(home) == recording.files(name, state)
    ended = json.loads(receipt.read_bytes())["state"]
    assert ended == ("rolled-back" if becomes == "old" else "done")


def test_a_recovered_run_can_be_undone(unpack: Unpack) -> None:
    """The recorded receipt becomes an ordinary one."""
    recording = unpack("unverified")
    home = recording.home("unverified")

    done = doctor(recording, "undo", "--yes", "--home", home)

    assert done.code == 0, done.err
    assert recorded_formats.contents(home) == recording.files("unverified", "before")


# -- updates -------------------------------------------------------------------------------


def test_rollback_of_a_recorded_update(unpack: Unpack) -> None:
    """The record names the backup, which restores the settings from before the update."""
    recording = unpack("updated")
    home = recording.home("updated")
    config = home / "config.yaml"
    before, after = (recording.files("updated", when) for when in ("before", "after"))
    assert before["config.yaml"] != after["config.yaml"]
    [record] = home.glob("backups/doctor/updates/*.json")
    last = doctor(recording, "hook", "status", "--json", "--home", home).json["last"]
    assert (last["id"], last["stage"]) == (record.stem, "checked")

    done = doctor(recording, "rollback", "--yes", "--home", home)

    assert done.code == 0, done.err
    now = recorded_formats.contents(home)
    assert {name: now[name] for name in before} == before
    assert "timezone" not in config.read_text()


# -- watches -------------------------------------------------------------------------------


FOUND_SINCE = ("CFG-MODEL", "CFG-FALLBACK-NONE")
"""Codes that the recorded home gets from checks that are newer than the recording."""


def watch(recording: Recording, budget: str) -> list[tuple[str, str | None]]:
    """One more round of the recorded watch; its events, by kind and code."""
    home = recording.home("watched")
    bounds = ("--heal", "--after", "1", "--budget", budget)
    words = ("watch", "--once", "--json", "--home", home, "--plugins", recording.plugins, *bounds)
    done = doctor(recording, *words)
    events = [json.loads(line) for line in done.out.splitlines()]
    assert events, done.err
    told = [(one["event"], one["code"]) for one in events]
    return [(event, code) for event, code in told if code not in FOUND_SINCE]


def test_a_watch_resumes(unpack: Unpack) -> None:
    """Known problems are not new, the budget stays spent, and this was said before."""
    recording = unpack("watched", "state", "plugins")
    home = recording.home("watched")
    recorded_formats.move_watch(recording.folder, home, same_boot=True)

    # It knows notices by their text: one whose words have changed since is sent once more.
    assert watch(recording, "2/30m") in ([("quiet", None)], [("waits", None)])
    assert watch(recording, "2/30m") == [("quiet", None)]
    assert recorded_formats.contents(home) == recording.files("watched", "last")


def test_a_watch_remembers_what_failed(unpack: Unpack) -> None:
    """With a larger budget it repairs the one problem, but does not try the failed fix again."""
    recording = unpack("watched", "state", "plugins")
    home = recording.home("watched")
    recorded_formats.move_watch(recording.folder, home, same_boot=True)

    assert watch(recording, "9/30m") == [("healed", "MY-GREETING")]
    assert watch(recording, "9/30m") == [("gone", "MY-GREETING")]
    assert (home / "greeting.txt").read_text() == "welcome"


def test_a_watch_resumes_after_a_restart_of_the_machine(unpack: Unpack) -> None:
    """Known problems are still not new; times of another boot mean nothing, so it tries again."""
    recording = unpack("watched", "state", "plugins")
    home = recording.home("watched")
    state = recorded_formats.move_watch(recording.folder, home, same_boot=False)
    known = json.loads(state.read_bytes())
    state.write_text(json.dumps(known | {"boot": "another"}))

    told = watch(recording, "2/30m")

    assert ("healed", "MY-GREETING") in told
    assert ("failed", "MY-STAIN") in told
    assert not {kind for kind, _ in told} & {"start", "found", "new"}


def test_the_deeds_of_a_watch_are_listed(unpack: Unpack) -> None:
    """`watch status` reads the same file."""
    recording = unpack("watched", "state")
    home = recording.home("watched")
    recorded_formats.move_watch(recording.folder, home, same_boot=True)

    none = "#!/bin/sh\necho 'no crontab for you' >&2\nexit 1\n"
    support.put(recording.folder / "bin" / "crontab", none, 0o755)
    env = {**recording.env, "PATH": f"{recording.folder / 'bin'}:{os.environ['PATH']}"}

    told = support.doctor("watch", "status", "--cron", "--home", home, env=env)

    assert "ENV-BOM" in told.out, told.err
    assert "MY-STAIN" in told.out


# -- what today's commit writes ------------------------------------------------------------


def test_new_files_have_the_recorded_names_and_fields(unpack: Unpack) -> None:
    """Receipts and manifests: other programs, and an older version of this one, may read them."""
    recording = unpack("sick", "repaired")
    old, new = recording.home("repaired"), recording.home("sick")
    doctor(recording, "backup", "create", "--home", new)
    doctor(recording, "fix", "--apply", "--yes", "--home", new)

    assert layout(old) - {"ID/files/SOUL.md"} <= layout(new)
    for pattern in ("runs/*/run.json", "2*/manifest.json"):
        was, is_now = (
            [json.loads(path.read_bytes()) for path in home.glob(f"backups/doctor/{pattern}")]
            for home in (old, new)
        )
        assert missing_fields(was, is_now) == set()
        assert {one["schema"] for one in was} == {one["schema"] for one in is_now}


def layout(home: Path) -> set[str]:
    """The names in a vault, without the names of runs and backups."""
    vault = home / "backups" / "doctor"
    names = (str(path.relative_to(vault)) for path in vault.rglob("*"))
    return {re.sub(r"\d{8}-\d{6}-\w+", "ID", name) for name in names}


def missing_fields(old: Any, new: Any) -> set[str]:
    """The fields of an old document that a new one lacks."""
    return set(shape(old)) - set(shape(new))


def test_states_that_are_written_again_have_the_recorded_fields(unpack: Unpack) -> None:
    """The state and the lease of a watch, and the record of an update."""
    recording = unpack("watched", "state", "plugins", "updated")
    home = recording.home("watched")
    state = recorded_formats.move_watch(recording.folder, home, same_boot=True)
    [update] = recording.home("updated").glob("backups/doctor/updates/*.json")
    paths = (state, home / "backups" / "doctor" / "watch.lease", update)
    before = [json.loads(path.read_bytes()) for path in paths]

    watch(recording, "9/30m")
    doctor(recording, "rollback", "--yes", "--home", recording.home("updated"))

    for path, known in zip(paths, before, strict=True):
        now = json.loads(path.read_bytes())
        assert now != known, f"{path.name} was not written again"
        assert set(now) >= set(known)
        assert now.get("schema") == known.get("schema")


# -- plugins -------------------------------------------------------------------------------


def test_an_operators_plugins_still_load(unpack: Unpack) -> None:
    """A check, a fix and a log rule, which import nothing but the public names."""
    recording = unpack("sick", "plugins")
    home, plugins = recording.home("sick"), recording.plugins
    for path in plugins.rglob("*.py"):
        assert imported(path) <= {"hermes_doctor.api", "collections.abc"}
    support.put(home / "greeting.txt", "go away")
    line = f"{datetime.now():%Y-%m-%d %H:%M:%S},004 WARNING my.kettle: Kettle blue is cold\n"
    support.put(home / "logs" / "gateway.log", line)
    options = ("--home", home, "--plugins", plugins)

    done = doctor(recording, "check", "--json", *options)

    assert {"MY-GREETING", "MY-KETTLE"} <= set(done.codes)
    assert not [one for one in done.json["checks"] if one["status"] == "crashed"]
    assert support.finding(done, "MY-KETTLE")["title"] == "The kettle blue is cold"
    before = recorded_formats.contents(home)
    assert doctor(recording, "fix", "MY-GREETING", "--apply", *options).code == 0
    assert (home / "greeting.txt").read_text() == "welcome"
    assert doctor(recording, "undo", "--yes", "--home", home).code == 0
    assert recorded_formats.contents(home) == before
    page = doctor(recording, "explain", "MY-KETTLE", "--plugins", plugins)
    assert page.out.startswith("# MY-KETTLE")


def imported(path: Path) -> set[str]:
    """The modules that a file imports."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    plain = {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}
    return plain | {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}


def test_an_installed_package_still_offers_plugins(unpack: Unpack, tmp_path: Path) -> None:
    """Through the entry point `hermes_doctor.plugins`."""
    recording = unpack("sick", "plugins")
    site = tmp_path / "site"
    site.mkdir(mode=0o755)
    recording.plugins.rename(site / "my_plugins")
    support.put(site / "my_plugins" / "__init__.py", "", 0o644)
    info = site / "my_plugins-1.0.dist-info"
    support.put(info / "METADATA", "Metadata-Version: 2.1\nName: my-plugins\nVersion: 1.0\n", 0o644)
    support.put(info / "entry_points.txt", "[hermes_doctor.plugins]\nmine = my_plugins\n", 0o644)
    info.chmod(0o755)
    support.put(recording.home("sick") / "greeting.txt", "go away")

    done = support.spawned(
        *("check", "--json", "--home", recording.home("sick")),
        env={**recording.env, "PYTHONPATH": str(site)},
    )

    assert "MY-GREETING" in done.codes


RENAMED = {
    "Block",
    "is_managed",
    "references",
    "responses",
    "spelling",
    "value_of",
    "wrong_shapes",
    "wrong_types",
}
"""Public names that got a plainer one before the first release."""


def test_the_public_names_for_plugins_stay(archive: Path) -> None:
    """All of them can be imported, also those that are loaded when they are first used.

    Some moved to the topic `tools` before the first release.
    """
    tools = importlib.import_module("hermes_doctor.api.tools")
    for topic, names in ABOUT[archive]["api"].items():
        places = importlib.import_module(topic), tools
        missing = {name for name in names if not any(hasattr(place, name) for place in places)}
        assert missing <= RENAMED


# -- the command line ----------------------------------------------------------------------


def test_the_command_has_its_names() -> None:
    """`hermes-doctor` is installed, and `python -m hermes_doctor` is the same."""
    [script] = entry_points(group="console_scripts", name="hermes-doctor")
    assert callable(script.load())
    installed = Path(sys.executable).with_name("hermes-doctor")
    said = subprocess.run([installed, "--version"], capture_output=True, text=True, check=True)

    assert said.stdout == support.spawned("--version").out
    assert re.fullmatch(r"hermes-doctor \d+\.\d+\.\d+\S*\n", said.stdout)


def test_commands_and_options_stay(archive: Path) -> None:
    """Every recorded command takes every recorded option; more may be added."""
    commands = ABOUT[archive]["commands"]
    assert len(commands) > 20
    help_of: dict[str, str] = {}
    for words, known in sorted(commands.items()):  # a group comes before its commands
        above, _, name = words.rpartition(" ")
        pairs = [(one, option) for option in known["options"] for one in option["names"]]
        given = [[one, "1"] if option["value"] else [one] for one, option in pairs]
        done = support.doctor(*words.split(), "--help", *chain.from_iterable(given))
        assert done.code == 0, f"{words}: {done.err}"
        help_of[words] = done.out
        if name and not known["hidden"]:
            listed = re.split(r"\n(?:Commands|Diagnose):", help_of[above])[-1]
            assert re.search(rf"^  {re.escape(name)}\b", listed, re.MULTILINE), words
        for one, option in pairs:
            shown = re.search(rf"(^|\s){re.escape(one)}\b", done.out, re.MULTILINE)
            assert option["hidden"] or shown, f"{words} {one}"


def test_an_unknown_option_is_noticed() -> None:
    """The test above would see that an option is gone: `--help` does not hide the error."""
    assert support.doctor("check", "--help", "--no-such-option").code == 2


# -- documents -----------------------------------------------------------------------------


def recorded_documents() -> Iterator[Any]:
    """Each command whose document was recorded."""
    for path in ARCHIVES:
        for number, one in enumerate(ABOUT[path]["documents"]):
            words = " ".join(word for word in one["words"] if not word[0].isdigit())
            name = f"{path.name.removesuffix('.tar.xz')} {one['home']}: {words}"
            yield pytest.param(path, number, id=name)


REMOVED = {
    *{("id", "service-task"), ("code", "GW-WIN-SCHTASK")},  # the tool does not run on Windows
    ("code", "DC-CONNECT-TIMEOUT"),  # PLATFORM-TIMEOUT now, as for every platform
}
"""What is gone on purpose."""


@pytest.mark.sampled
@pytest.mark.parametrize(("path", "number"), list(recorded_documents()))
def test_documents_keep_their_fields_and_codes(path: Path, number: int, tmp_path: Path) -> None:
    """The same command on the same home prints all recorded fields, codes and names."""
    known = ABOUT[path]["documents"][number]
    recording = recorded_formats.unpacked(path, tmp_path / "moved", known["home"])
    where = ("--home", recording.home(known["home"])) if known["home"] else ()
    settings = recording.home(known["home"] or "") / "config.yaml"
    if known["words"][0] in ("check", "fix") and known["home"] in ("sick", "repaired"):
        # The name of the recorded model lacks its vendor, which a newer check reports.
        settings.write_bytes(settings.read_bytes().replace(b": test-model", b": acme/test-model"))

    done = doctor(recording, *known["words"], *where)

    lines = done.out.splitlines() if known["words"][0] == "watch" else [done.out]
    printed = [json.loads(line) for line in lines]
    only_shown = known["words"][0] == "fix" and "--apply" not in known["words"]
    assert done.code == (0 if only_shown else known["code"]), done.err  # a plan was 1 before
    old, new = shape(known["printed"]), shape(printed)
    assert {field: kinds for field, kinds in old.items() if field not in new} == {}
    changed = {
        f: (old[f], new[f]) for f in old if new[f] - old[f] - {"null"} and old[f] != {"null"}
    }
    assert changed == {}
    assert names(known["printed"]) - names(printed) - REMOVED == set()


def shape(value: Any, field: str = "") -> dict[str, set[str]]:
    """The fields of a document at every depth, each with the kinds of values that it has."""
    found = {field: {KINDS[type(value)]}}
    below = value.items() if isinstance(value, dict) else ()
    parts = [(f"{field}.{name}", one) for name, one in below]
    parts += [(f"{field}[]", one) for one in value] if isinstance(value, list) else []
    for name, one in parts:
        for deeper, kinds in shape(one, name).items():
            found.setdefault(deeper, set()).update(kinds)
    return found


KINDS: dict[type, str] = {
    **{dict: "object", list: "list", str: "text", bool: "boolean"},
    **{int: "number", float: "number", type(None): "null"},
}


def names(value: Any) -> set[tuple[str, str]]:
    """All codes, ids of checks and fixes, events and schemas that a document names."""
    if isinstance(value, list):
        return set().union(*map(names, value))
    if not isinstance(value, dict):
        return set()
    found = set().union(*map(names, value.values()))
    for field in ("code", "schema", "event", "check", "fix", "severity", "outcome", "safety"):
        if isinstance(value.get(field), str):
            found.add((field, value[field]))
    if isinstance(value.get("id"), str) and not value["id"][0].isdigit():
        found.add(("id", value["id"]))
    return found


def test_ordinary_users_and_root_read_the_same(archive: Path, unpack: Unpack) -> None:
    """For root, nothing in a home with its own vault is changed when it is unpacked."""
    recording = unpack("repaired")
    [receipt] = recording.home("repaired").glob("backups/doctor/runs/*/run.json")
    text = receipt.read_text()

    assert str(recorded_formats.PLACE) in text
    assert str(recording.folder) not in text
    assert f'"uid": {os.geteuid()},' in text
