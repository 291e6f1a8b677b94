"""Record what this commit writes, to prove in tests that later commits can continue with it.

    python -m tools.record_formats [NAME]

must be run by root. It writes tests/data/formats/NAME.tar.xz; NAME is the version of this tool
unless it is given. The archive has these folders:

    sick        a home with a problem of each kind, before any repair
    repaired    the same after two backups and a `fix --apply`
    halfway     the same, killed while a `fix --apply` replaced files
    unverified  the same, killed after it had replaced all files and before it verified them
    elsewhere   the same, repaired with `--vault`; its backups are in `vault`
    large       a file that is large enough for a second backup to store only its changed blocks
    updated     a home with the record of an update by `update-guard`
    watched     a home that `watch --heal` worked on; the watch's state is in `state`
    plugins     an operator's own checks, fixes and log rules

and about.json, which contains the files' digests before and after, the output of each command with
`--json`, and all commands, options, codes and names of `hermes_doctor.api`.

An archive is a promise to users who have such files. When a format gets a new field, record under
a new name and keep the old archive. Never record again under an old name to make a test pass.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import typer

from hermes_doctor import __version__, api
from hermes_doctor.cli import commands
from tests.helpers import crash_server, fake_environments, recorded_formats, support
from tests.helpers.recorded_formats import PLACE
from tools import operator_plugins

MOST = 300_000
"""Maximum size of an archive in bytes."""
SETTLED = 62
"""Seconds after which a backup shares the copy of a file that has not changed since."""
LARGE = 17 * 1024**2
HEAL = ("--heal", "--after", "1", "--budget", "2/30m", "--notify-command", "true")
APPLY = ("fix", "--apply", "--yes")

Files = dict[str, dict[str, recorded_formats.Files]]


def main() -> None:
    """Record everything, and write the archive."""
    parser = argparse.ArgumentParser(description="Record what this commit writes.")
    parser.add_argument("name", nargs="?", default=__version__, help="the name of the archive")
    name = parser.parse_args().name
    if os.geteuid():
        raise SystemExit("Run this as root: the tests expect that root recorded the files.")
    target = recorded_formats.KEPT / f"{name}.tar.xz"
    if target.exists():
        raise SystemExit(f"{target.name} exists already. Keep it, and record under another name.")
    PLACE.mkdir(mode=0o700)
    try:
        about = record()
        target.parent.mkdir(parents=True, exist_ok=True)
        pack(about, target)
    finally:
        shutil.rmtree(PLACE)
        shutil.rmtree(_scratch(), ignore_errors=True)
    print(f"{target.name}: {target.stat().st_size} bytes")


def record() -> dict[str, Any]:
    """Create all homes below PLACE, and return the contents of about.json."""
    files: Files = {}
    operator_plugins.write(PLACE / "plugins")
    crash_server.sick(PLACE / "sick")
    repaired(files)
    elsewhere(files)
    cut_off(files)
    large(files)
    updated(files)
    watched(files)
    return {
        "version": __version__,
        "files": files,
        "documents": documents(),
        "commands": dict(sorted(described(typer.main.get_command(commands.app)))),
        "api": public_names(),
    }


def public_names() -> dict[str, list[str]]:
    """Return the names that a plugin may import, by module."""
    topics = [api.__name__, *(f"{api.__name__}.{one.name}" for one in iter_modules(api.__path__))]
    return {topic: sorted(importlib.import_module(topic).__all__) for topic in topics}


# -- homes ---------------------------------------------------------------------------------


def run(*words: str | Path, code: int = 0, folder: Path = PLACE) -> support.Done:
    """Run the command as a user would."""
    done = support.spawned(*words, env=recorded_formats.environment(folder), timeout=120)
    if done.code != code:
        raise RuntimeError(f"{words} ended with {done.code}: {done.out}{done.err}")
    return done


def repaired(files: Files) -> None:
    """Make two backups, of which the second shares files with the first, and a repair."""
    home = crash_server.clone(PLACE / "sick", PLACE / "repaired")
    known = files["repaired"] = {"first": recorded_formats.contents(home)}
    run("backup", "create", "--home", home)
    time.sleep(SETTLED)
    support.put(home / "SOUL.md", "You are friendly.\n", 0o644)
    known["second"] = recorded_formats.contents(home)
    run("backup", "create", "--reason", "with a soul", "--home", home)
    run(*APPLY, "--home", home)
    known["after"] = recorded_formats.contents(home)


def elsewhere(files: Files) -> None:
    """Make a repair whose receipt names a vault outside the home."""
    home = crash_server.clone(PLACE / "sick", PLACE / "elsewhere")
    known = files["elsewhere"] = {"before": recorded_formats.contents(home)}
    run(*APPLY, "--home", home, "--vault", PLACE / "vault")
    known["after"] = recorded_formats.contents(home)


def cut_off(files: Files) -> None:
    """Kill a repair at every call that changes the disk, and keep two of the resulting homes."""
    sick, home = PLACE / "sick", PLACE / "killed"
    before = recorded_formats.contents(sick)
    halfway: list[int] = []
    server = crash_server.serving(alone=True)

    def killed(at: int) -> str:
        shutil.rmtree(home, ignore_errors=True)
        crash_server.clone(sick, home)
        server(*APPLY, "--home", home, cuts=[crash_server.Cut(at, "kill")])
        return next((str(one["state"]) for one in crash_server.journals(home)), "")

    whole = server(*APPLY, "--home", crash_server.clone(sick, home))
    after = recorded_formats.contents(home)
    for at in range(len(whole.calls)):
        state = killed(at)
        if state == "committing" and _mixed(recorded_formats.contents(home), before, after):
            halfway.append(at)
        elif state == "verifying":
            break
    home.rename(PLACE / "unverified")
    killed(halfway[len(halfway) // 2])
    home.rename(PLACE / "halfway")
    for name in ("halfway", "unverified"):
        files[name] = {"before": before, "after": after}


def _mixed(
    now: recorded_formats.Files, before: recorded_formats.Files, after: recorded_formats.Files
) -> bool:
    """Return whether some files are old and some are new."""
    changed = [name for name in before if before[name] != after.get(name)]
    new = [name for name in changed if now.get(name) == after.get(name)]
    return bool(new) and len(new) < len(changed)


def large(files: Files) -> None:
    """Make a second backup that stores only the blocks that changed."""
    home = PLACE / "large"
    support.put(home / "config.yaml", support.CONFIG)
    path = support.put(home / "memories" / "long.txt", b"the same line\n" * (LARGE // 14))
    known = files["large"] = {"first": recorded_formats.contents(home)}
    run("backup", "create", "--home", home)
    support.clobber(path, b"another line \n" * 100, LARGE // 2)
    known["second"] = recorded_formats.contents(home)
    time.sleep(2)
    run("backup", "create", "--home", home)
    if not list(home.glob("backups/doctor/*/blocks")):
        raise RuntimeError("the second backup has no blocks")


def updated(files: Files) -> None:
    """Update a setting; Hermes is a virtual environment that names a release."""
    home = support.healthy(PLACE / "updated")
    root = fake_environments.make(home)
    known = files["updated"] = {"before": _settings(home)}
    line = f"echo 'timezone: UTC' >> {home}/config.yaml"
    run("update-guard", "--home", home, "--", "sh", "-c", line)
    known["after"] = _settings(home)
    for link in [one for one in root.rglob("*") if one.is_symlink()]:
        link.unlink()  # the links point to the Python of this machine
    shutil.rmtree(root / "bin")
    cfg = "home = /usr/bin\ninclude-system-site-packages = false\n"
    support.put(root / "pyvenv.cfg", cfg)


def _settings(home: Path) -> recorded_formats.Files:
    return {
        name: known for name, known in recorded_formats.contents(home).items() if "/" not in name
    }


def watched(files: Files) -> None:
    """Run watch rounds that repair two problems, fail at one, and have no budget for the last."""
    home = support.healthy(PLACE / "watched")
    support.put(home / "greeting.txt", "go away")
    support.put(home / "stain.txt", "a stain")
    words = ("watch", "--once", "--home", home, "--plugins", PLACE / "plugins", *HEAL)
    run(*words, code=1)
    support.put(home / ".env", b"\xef\xbb\xbf" + support.ENV.encode())
    run(*words, code=1)
    support.put(home / "greeting.txt", "go away")
    for _ in range(2):
        run(*words, code=1)
    [state] = (PLACE / "state" / "hermes-doctor").glob("watch-*.json")
    known = json.loads(state.read_bytes())
    for name in ("standing", "repairs", "failures", "said", "notified", "deeds"):
        if not known[name]:
            raise RuntimeError(f"the state of the watch has no {name}")
    files["watched"] = {"last": recorded_formats.contents(home)}


# -- documents -----------------------------------------------------------------------------


def _scratch() -> Path:
    return PLACE.with_name(f"{PLACE.name}-scratch")


def documents() -> list[dict[str, Any]]:
    """Return the output and the exit code of each command with `--json` on a recorded home."""
    [first, *_] = sorted(one.name for one in (PLACE / "repaired/backups/doctor").glob("2*"))
    asked: list[tuple[str, tuple[str, ...]]] = [
        ("sick", ("check", "--json")),
        ("sick", ("fix", "--json")),
        ("sick", (*APPLY, "--json")),
        ("sick", ("backup", "create", "--json")),
        ("halfway", ("check", "--json")),
        ("halfway", ("fix", "ENV-BOM", "--apply", "--yes", "--json")),
        ("unverified", ("check", "--json")),
        ("unverified", ("undo", "--yes", "--json")),
        ("repaired", ("check", "--json")),
        ("repaired", ("undo", "--yes", "--json")),
        ("repaired", ("backup", "list", "--json")),
        ("repaired", ("backup", "verify", "--all", "--json")),
        ("repaired", ("backup", "restore", first, "--yes", "--json")),
        ("repaired", ("backup", "prune", first, "--yes", "--json")),
        ("repaired", ("timeline", "--since", "2020-01-01", "--json")),
        ("repaired", ("config", "--json")),
        ("repaired", ("undo", "no-such-run", "--yes", "--json")),
        ("updated", ("hook", "status", "--json")),
        ("updated", ("rollback", "--yes", "--json")),
        ("sick", ("watch", "--once", "--json")),
        ("", ("list", "checks", "--json")),
        ("", ("list", "fixes", "--json")),
        ("", ("list", "codes", "--json")),
    ]
    return [asking(home, words) for home, words in asked]


def asking(home: str, words: tuple[str, ...]) -> dict[str, Any]:
    """Run one command on a copy of a home, and return its output, by line if it prints events."""
    scratch = _scratch()
    shutil.rmtree(scratch, ignore_errors=True)
    where: tuple[str | Path, ...] = ()
    if home:
        where = ("--home", crash_server.clone(PLACE / home, scratch / home))
    if home == "updated":
        for path in (scratch / home).glob("backups/doctor/updates/*.json"):
            path.write_text(path.read_text().replace(str(PLACE), str(scratch)))
    done = support.spawned(*words, *where, env=recorded_formats.environment(scratch), timeout=120)
    lines = done.out.splitlines() if words[0] == "watch" else [done.out]
    printed = [json.loads(line) for line in lines]
    return {"home": home, "words": words, "code": done.code, "printed": printed}


def described(command: Any, words: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every command with its options, also hidden ones, which installed hooks call."""
    options = [
        {
            "names": list(one.opts) + list(one.secondary_opts),
            "value": not (one.is_flag or one.count),
            "hidden": one.hidden,
        }
        for one in command.params
        if one.param_type_name == "option"
    ]
    yield words, {"options": options, "hidden": command.hidden}
    for name, below in getattr(command, "commands", {}).items():
        yield from described(below, f"{words} {name}".strip())


# -- the archive ---------------------------------------------------------------------------


def pack(about: dict[str, Any], target: Path) -> None:
    """Write the archive, without names of this machine and its users."""
    with tarfile.open(target, "w:xz", preset=9, format=tarfile.PAX_FORMAT) as archive:
        data = json.dumps(about, indent=1, sort_keys=True).encode()
        entry = tarfile.TarInfo(recorded_formats.ABOUT)
        entry.size = len(data)
        _refuse_names(data, recorded_formats.ABOUT)
        archive.addfile(entry, io.BytesIO(data))
        for path in sorted(PLACE.iterdir()):
            if path.name != "user":
                archive.add(path, path.name, filter=_without_names)
    size = target.stat().st_size
    if size > MOST:
        target.unlink()
        raise RuntimeError(f"{target.name} has {size} bytes, which is too much for a repository")


def _without_names(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    if entry.isfile():
        _refuse_names((PLACE / entry.name).read_bytes(), entry.name)
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _refuse_names(data: bytes, name: str) -> None:
    here = str(Path(__file__).parents[1])
    for word in (os.uname().nodename, f"{Path.home()}/", here, sys.prefix):
        if word.encode() in data:
            raise RuntimeError(f"{name} contains {word!r}, which is a name of this machine")


if __name__ == "__main__":
    os.umask(0o022)
    subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "hermes_doctor"], check=True)
    main()
