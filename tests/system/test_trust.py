"""Code that somebody else could have written never runs, whatever way it would be reached."""

from __future__ import annotations

import importlib.util
import os
import py_compile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.support import Done
from tests.plugins.test_load import installed, listed, plugin

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
