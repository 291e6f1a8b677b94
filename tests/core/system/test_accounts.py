"""What root runs as root: nothing that another user could have put there or named."""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home, find
from hermes_doctor.core.model import CannotFix, Gateway
from hermes_doctor.core.system import accounts
from hermes_doctor.hermes.installation.find import Installation, find_installation
from hermes_doctor.repair.gateway import manager_commands
from hermes_doctor.repair.gateway.detached import Detached, python_of
from hermes_doctor.repair.gateway.process_handle import read_origin
from tests.diagnosis.plugins.test_load import installed, listed, plugin
from tests.helpers import crash_server, support
from tests.helpers.crash_server import STRANGER
from tests.helpers.support import Done

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs things for others")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of root's that everybody can get to."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder).resolve()


@pytest.fixture
def theirs(place: Path) -> Path:
    """A folder of another user's, with an environment in which a program tells who runs it."""
    folder = place / "user"
    environment(folder / "env", place / "told")
    crash_server.chown(folder)
    return folder


def environment(folder: Path, told: Path) -> Path:
    """Something that looks like an installation of Hermes."""
    (folder / "lib/python3.11/site-packages/hermes_agent-0.19.0.dist-info").mkdir(parents=True)
    support.put(folder / "bin" / "python", f"#!/bin/sh\nid -u >{told}\n", 0o755)
    return folder


def noted(home: Path, env: Path, uid: int) -> None:
    """The notes of a gateway that ran from an environment."""
    said = {"pid": 2**22, "kind": "hermes-gateway", "argv": [f"{env}/bin/hermes", "gateway", "run"]}
    for name in ("gateway.pid", "gateway_state.json"):
        os.chown(support.put(home / name, json.dumps(said), 0o644), uid, uid)


def nobody(home: Path) -> Installation | None:
    """The installation that is found while nothing runs."""
    return find_installation(Home(home), list)


# -- a folder in which anybody may put files ------------------------------------------------------


@pytest.fixture
def sticky(place: Path, theirs: Path) -> Path:
    """One of root's, as /tmp is, to which a user's home leads; his notes lie in it."""
    folder = place / "sticky"
    folder.mkdir()
    folder.chmod(0o1777)
    (theirs / ".hermes").symlink_to(folder)
    os.lchown(theirs / ".hermes", STRANGER, STRANGER)
    noted(folder, theirs / "env", STRANGER)
    return folder


def test_sticky_is_nobodys_home(sticky: Path, theirs: Path, place: Path) -> None:
    """Root runs nothing there, changes nothing there, and says why in one line."""
    before = sorted(os.listdir(sticky))

    done = support.doctor("fix", "--apply", "--yes", "--home", theirs / ".hermes")

    assert not (place / "told").exists(), "root ran what another user named"
    assert done.code != 0 and "Traceback" not in done.err
    assert sorted(os.listdir(sticky)) == before
    with pytest.raises(CannotFix, match="Other users can write"):
        Detached(Home(sticky), nobody(sticky))


def test_notes_of_others(sticky: Path, theirs: Path) -> None:
    """A file in the home that names a program counts only from its owner, or root."""
    assert getattr(nobody(sticky), "where", None) != theirs / "env"
    noted(sticky, theirs / "env", 0)
    found = nobody(sticky)
    assert found is not None and found.where == theirs / "env"


def test_notes_by_a_link_of_others(sticky: Path, theirs: Path, place: Path) -> None:
    """Nor does a link of a stranger's to a file of root's."""
    noted(place, theirs / "env", 0)
    for name in ("gateway.pid", "gateway_state.json"):
        (sticky / name).unlink()
        (sticky / name).symlink_to(place / name)
        os.lchown(sticky / name, STRANGER, STRANGER)
    assert getattr(nobody(sticky), "where", None) != theirs / "env"


def test_a_link_of_others_to_a_home_of_root(place: Path, theirs: Path) -> None:
    """Whoever owns the link decides which home it is, so it is not root's to act in."""
    home = support.healthy(place / "home")
    (theirs / ".hermes").symlink_to(home)
    os.lchown(theirs / ".hermes", STRANGER, STRANGER)
    assert manager_commands.owner_of(Home(home)).uid == 0
    with pytest.raises(CannotFix, match=f"uid {STRANGER} can replace it through"):
        manager_commands.owner_of(find(theirs / ".hermes"))


# -- what root runs ---------------------------------------------------------------------------


def test_programs_of_others(place: Path, theirs: Path) -> None:
    """For a home of root's: neither an interpreter of another user's, nor one in his folders."""
    home = Home(support.healthy(place / "home"))
    where = theirs / "env"
    for uid in (STRANGER, 0):
        os.chown(where / "bin" / "python", uid, uid)
        service = Detached(home, Installation("0.19.0", where, running=False))
        for act in (service.refuse, service.ask_to_start):
            with pytest.raises(CannotFix, match=f"root does not run .*uid {STRANGER}"):
                act()
    with pytest.raises(CannotFix, match="root does not run"):
        manager_commands.run_command([str(where / "bin" / "python")])
    assert not (place / "told").exists()
    assert python_of(where, accounts.account(STRANGER)) == where / "bin" / "python"


@pytest.mark.parametrize("name", ["bin", "bin/python", "lib/python3.11/site-packages"])
def test_programs_that_others_may_write(place: Path, name: str) -> None:
    """A mode is enough to distrust it, on a folder, the file or the packages, sticky or not."""
    env = environment(place / "env", place / "told")
    root = accounts.account(0)
    assert python_of(env, root) == env / "bin" / "python"
    for mode in (0o777, 0o775, 0o1777):
        (env / name).chmod(mode)
        with pytest.raises(CannotFix, match="other users may write"):
            python_of(env, root)


# -- a home that is swapped ---------------------------------------------------------------------


def test_swapped_for_a_folder_of_root(place: Path, theirs: Path) -> None:
    """Between the plan and the start, its owner leads to a folder of root's: nothing starts."""
    home = support.healthy(theirs / ".hermes")
    crash_server.chown(home)
    service = Detached(Home(home), Installation("0.19.0", theirs / "env", running=False))
    service.refuse()
    sticky = place / "sticky"
    sticky.mkdir()
    sticky.chmod(0o1777)
    home.rename(theirs / "away")
    home.symlink_to(sticky)
    os.lchown(home, STRANGER, STRANGER)

    with pytest.raises(CannotFix, match="Another folder has replaced the home"):
        service.start(1)
    with pytest.raises(CannotFix, match="Another folder has replaced the home"):
        service.ask_to_start()

    assert not (place / "told").exists()
    with pytest.raises(CannotFix, match=f"uid {STRANGER} can replace it through"):
        manager_commands.owner_of(Home(home))


def test_his_own_is_run_as_him(place: Path, theirs: Path) -> None:
    """A home of his, by his own interpreter, with his rights and in that very folder."""
    home = support.healthy(theirs / ".hermes")
    told = support.put(theirs / "told", "", 0o644)
    support.put(theirs / "env/bin/python", f"#!/bin/sh\n(id -u; pwd -P) >{told}\n", 0o755)
    crash_server.chown(theirs)
    service = Detached(Home(home), Installation("0.19.0", theirs / "env", running=False))

    service.ask_to_start()

    assert service._process is not None and service._process.wait(20) == 0
    assert told.read_text().split() == [str(STRANGER), str(home)]


# -- a process of a stranger's ------------------------------------------------------------------


RUN = """
import os, sys
os.setgroups([]); os.setresgid(*[int(sys.argv[1])] * 3); os.setresuid(*map(int, sys.argv[1:4]))
print("up", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("uids", "counts"),
    [((STRANGER,) * 3, False), ((STRANGER, 0, 0), False), ((0, 0, 0), True)],
    ids=["a stranger", "a stranger with rights of root", "root"],
)
def test_processes_of_others(
    place: Path, theirs: Path, uids: tuple[int, int, int], counts: bool
) -> None:
    """Only processes of root or of the home's owner say which Hermes runs.

    The folder under /proc of one that has changed its user is root's, so that does not tell.
    """
    home = support.healthy(place / "home")
    words = [sys.executable, "-c", RUN, *map(str, uids)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"up\n"
        python = str(theirs / "env" / "bin" / "python")
        running = Gateway(process.pid, datetime.now(UTC), python=python)
        found = find_installation(Home(home), lambda: [running])
        uid = read_origin(process.pid).uid
        process.send_signal(signal.SIGKILL)
    assert (getattr(found, "where", None) == theirs / "env") is counts
    assert uid == uids[0]


OTHER = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A plugin folder whose own check is to be trusted."""
    return plugin(tmp_path / "mine")


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """What the evil code makes when it runs."""
    return tmp_path / "ran"


def evil(ran: Path) -> str:
    """Code of somebody else's."""
    return f"import os\nif not os.path.exists({str(ran)!r}): os.mkdir({str(ran)!r})\nWORD = 'x'\n"


def importing(folder: Path, name: str) -> None:
    """A trusted check that needs another file of its folder."""
    support.put(folder / "checks" / "needy.py", f"from . import {name}\n", 0o644)


def look(home: Path, mine: Path) -> Done:
    """Examine a home that the trusted check has something to say about."""
    support.put(home / "greeting.txt", "go away")
    return support.doctor("check", "--json", "--home", home, "--plugins", mine)


def refused(done: Done, name: str, why: str) -> None:
    """Insist that this file was named with the reason, and that all else went on."""
    broken = {one["id"]: one for one in done.json["checks"] if one["id"].startswith("plugin:")}
    assert broken[f"plugin:{name}"]["status"] == "crashed"
    assert why in broken[f"plugin:{name}"]["reason"]
    assert done.code == 1
    assert "MY-GREETING" in done.codes, "the trusted check of the same folder was not asked"
    assert "config-yaml" in [one["id"] for one in done.json["checks"]]


# -- files beside a trusted one ------------------------------------------------------------


def _module(folder: Path, code: str) -> Path:
    return support.put(folder / "helper.py", code, 0o666)


def _private(folder: Path, code: str) -> Path:
    return support.put(folder / "_helper.py", code, 0o666)


def _package(folder: Path, code: str) -> Path:
    support.put(folder / "helper" / "inner.py", code, 0o666)
    support.put(folder / "helper" / "__init__.py", "from . import inner\n", 0o644)
    (folder / "helper").chmod(0o755)
    return folder / "helper"


def _open_package(folder: Path, code: str) -> Path:
    support.put(folder / "helper" / "__init__.py", code, 0o644)
    (folder / "helper").chmod(0o777)
    return folder / "helper"


def _bytecode(folder: Path, code: str) -> Path:
    source = support.put(folder.parent / "elsewhere.py", code)
    py_compile.compile(str(source), cfile=str(folder / "helper.pyc"), doraise=True)
    (folder / "helper.pyc").chmod(0o666)
    return folder / "helper.pyc"


def _linked(folder: Path, code: str) -> Path:
    target = support.put(folder.parent / "elsewhere.py", code, 0o666)
    (folder / "helper.py").symlink_to(target)
    return folder / "helper.py"


SIBLINGS: dict[str, Callable[[Path, str], Path]] = {
    "a module": _module,
    "a private module": _private,
    "a file in a package": _package,
    "a package": _open_package,
    "bytecode without source": _bytecode,
    "a symlink": _linked,
}


@pytest.mark.sampled
@pytest.mark.parametrize("kind", SIBLINGS)
def test_a_sibling_that_others_may_write_to(home: Path, mine: Path, ran: Path, kind: str) -> None:
    """A trusted file cannot bring in one beside it that is not to be trusted."""
    path = SIBLINGS[kind](mine / "checks", evil(ran))
    importing(mine, path.name.partition(".")[0])

    done = look(home, mine)

    assert not ran.exists()
    refused(done, path.name, "other users may write")
    refused(done, "needy.py", "Error")


@pytest.mark.sampled
@needs_root
@pytest.mark.parametrize("name", ["helper.py", "_helper.py"])
def test_a_sibling_of_another_user(home: Path, mine: Path, ran: Path, name: str) -> None:
    """The same for a file that belongs to neither root nor the caller."""
    path = support.put(mine / "checks" / name, evil(ran), 0o644)
    os.chown(path, OTHER, OTHER)
    importing(mine, path.stem)

    done = look(home, mine)

    assert not ran.exists()
    refused(done, name, f"belongs to neither root nor you (uid {OTHER})")


def test_a_sibling_that_is_imported_late(home: Path, mine: Path, ran: Path) -> None:
    """Not even by a check that imports it when it is asked, long after loading."""
    support.put(mine / "checks" / "_helper.py", evil(ran), 0o666)
    late(mine)

    done = look(home, mine)

    assert not ran.exists()
    refused(done, "_helper.py", "other users may write")
    ended = {one["id"]: one["status"] for one in done.json["checks"]}
    assert ended["late"] == "crashed"


def late(mine: Path) -> None:
    """A check that imports a file of its folder only when it is asked."""
    text = (
        "from hermes_doctor.api import check\n"
        '@check(id="late", group="test", codes=["LATE"])\n'
        "def late(probes):\n"
        '    """Is it late?"""\n'
        "    from . import _helper\n"
        "    return []\n"
    )
    support.put(mine / "checks" / "late.py", text, 0o644)


def test_planted_bytecode_that_is_imported_late(home: Path, mine: Path, ran: Path) -> None:
    """Bytecode in a folder that others may write to does not run at a late import either."""
    source = support.put(mine / "checks" / "_helper.py", evil(ran), 0o644)
    cache = Path(importlib.util.cache_from_source(str(source)))
    cache.parent.mkdir()
    py_compile.compile(str(source), cfile=str(cache), doraise=True)
    times = source.stat()
    source.write_text("#" * times.st_size)
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    cache.parent.chmod(0o777)
    late(mine)

    look(home, mine)

    assert not ran.exists()


def test_no_bytecode_is_written_late(home: Path, mine: Path) -> None:
    """A late import writes nothing into the operator's folder."""
    support.put(mine / "checks" / "_helper.py", "WORD = 1\n", 0o644)
    late(mine)
    before = sorted(mine.rglob("*"))

    support.spawned("check", "--home", home, "--plugins", mine, env={"PYTHONDONTWRITEBYTECODE": ""})

    assert sorted(mine.rglob("*")) == before


# -- folders -------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["checks", "fixes"])
def test_a_symlinked_folder_of_checks(
    home: Path, mine: Path, ran: Path, tmp_path: Path, name: str
) -> None:
    """A checks/ or fixes/ that leads into a folder of others is refused; the rest goes on."""
    elsewhere = tmp_path / "elsewhere"
    more = plugin(tmp_path / "more", id="farewell", code="MY-FAREWELL", fix="say-goodbye")
    support.put(elsewhere / "evil.py", evil(ran), 0o644)
    elsewhere.chmod(0o777)
    (more / name).rename(more / "was")
    (more / name).symlink_to(elsewhere)
    support.put(home / "greeting.txt", "go away")

    done = support.doctor("check", "--json", "--home", home, "--plugins", more, "--plugins", mine)

    assert not ran.exists()
    refused(done, name, "other users may write")


@needs_root
def test_a_symlinked_plugin_folder_of_another_user(
    home: Path, mine: Path, ran: Path, tmp_path: Path
) -> None:
    """What counts is who owns the folder that --plugins leads to."""
    theirs = plugin(tmp_path / "theirs", id="farewell", code="MY-FAREWELL", fix="say-goodbye")
    support.put(theirs / "checks" / "evil.py", evil(ran), 0o644)
    os.chown(theirs, OTHER, OTHER)
    (tmp_path / "link").symlink_to(theirs)
    support.put(home / "greeting.txt", "go away")
    options = ("--plugins", tmp_path / "link", "--plugins", mine)

    done = support.doctor("check", "--json", "--home", home, *options)

    assert not ran.exists()
    refused(done, "link", f"belongs to neither root nor you (uid {OTHER})")


def test_a_page_of_others(home: Path, mine: Path, ran: Path) -> None:
    """A refused folder brings no page along either."""
    mine.chmod(0o777)

    page = support.doctor("explain", "MY-GREETING", "--plugins", mine)

    assert page.code == 2
    assert "Rude." not in page.out


# -- installed packages --------------------------------------------------------------------


def _opened(path: Path) -> str:
    path.chmod(0o666)
    return "other users may write"


def _given_away(path: Path) -> str:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(path, OTHER, OTHER)
    return "belongs to neither root nor you"


@pytest.mark.sampled
@pytest.mark.parametrize("spoil", [_opened, _given_away])
@pytest.mark.parametrize("form", ["a package", "a part of it", "a single file"])
def test_an_entry_point_whose_file_is_untrusted(
    tmp_path: Path, ran: Path, spoil: Callable[[Path], str], form: str
) -> None:
    """The file that an entry point would import is held to the rule before it runs."""
    site = tmp_path / "site"
    installed(site, "good")
    if form == "a package":
        path = installed(site, "acme", module=evil(ran)) / "__init__.py"
    elif form == "a part of it":
        package = installed(site, "acme", entry="acme.part")
        path = support.put(package / "part.py", evil(ran), 0o644)
    else:
        installed(site, "acme", entry="single")
        path = support.put(site / "single.py", evil(ran), 0o644)
    why = spoil(path)

    done = listed(site)

    assert not ran.exists()
    assert why in done.json["broken"][0]["why"]
    assert "good-check" in [one["id"] for one in done.json["items"]]


@pytest.mark.sampled
@pytest.mark.parametrize("name", [".", "checks"])
def test_an_installed_package_in_an_open_folder(tmp_path: Path, ran: Path, name: str) -> None:
    """The folder itself, and its checks: refused, and another package is still there."""
    site = tmp_path / "site"
    installed(site, "good")
    package = installed(site, "acme", module=evil(ran) if name == "." else "")
    support.put(package / "checks" / "evil.py", evil(ran), 0o644)
    (package / name).chmod(0o777)

    done = listed(site)

    assert not ran.exists()
    assert "other users may write" in done.json["broken"][0]["why"]
    ids = [one["id"] for one in done.json["items"]]
    assert "good-check" in ids
    assert "acme-check" not in ids


def test_a_symlinked_installed_package(tmp_path: Path, ran: Path) -> None:
    """What counts is the folder that the package really lies in."""
    site = tmp_path / "site"
    installed(site, "good")
    package = installed(site, "acme", module=evil(ran))
    package.rename(tmp_path / "acme")
    package.symlink_to(tmp_path / "acme")
    (tmp_path / "acme").chmod(0o777)

    done = listed(site)

    assert not ran.exists()
    assert "other users may write" in done.json["broken"][0]["why"]
    assert "good-check" in [one["id"] for one in done.json["items"]]


def test_planted_bytecode_of_an_installed_package(tmp_path: Path, ran: Path) -> None:
    """Bytecode of an installed package that others may write does not run unseen."""
    site = tmp_path / "site"
    package = installed(site, "acme", module=evil(ran))
    source = package / "__init__.py"
    cache = Path(importlib.util.cache_from_source(str(source)))
    cache.parent.mkdir()
    py_compile.compile(str(source), cfile=str(cache), doraise=True)
    times = source.stat()
    source.write_text("#" * times.st_size)
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    cache.parent.chmod(0o777)

    listed(site)

    assert not ran.exists()
