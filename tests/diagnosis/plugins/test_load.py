"""Plugins: an operator's folder and an installed package load by the code of the built-ins."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_doctor.core.model import PARTS, Effect
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.plugins.load import read_effects
from tests.helpers import support

CHECK = '''\
"""The greeting must be friendly."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check


@check(id="{id}", group="greetings", codes=["{code}"])
def greeting(probes: Probes) -> Iterator[Finding]:
    """Is the greeting friendly?"""
    path = probes.home / "greeting.txt"
    if path.exists() and path.read_text() == "go away":
        yield Finding(
            code="{code}",
            severity=Severity.{severity},
            title="greeting.txt is rude",
            subject="greeting.txt",
            evidence=(Evidence("greeting.txt:1", "it says go away"),),
            fix="{fix}",
        )
'''
FIX = '''\
"""Be friendly."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, ReplaceFile, Safety, Step, fix, snapshot


@fix(id="{fix}", codes=["{code}"], safety=Safety.{safety})
def be_friendly(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Replace the greeting by a friendly one."""
    path = probes.home / "greeting.txt"
    yield ReplaceFile(
        path, b"welcome", why="be friendly", expect=snapshot(path), before=path.read_bytes()
    )
'''
PAGE = "# {code}: rude\n\n## What it is\n\nRude.\n"


def plugin(
    folder: Path,
    *,
    id: str = "greeting",
    code: str = "MY-GREETING",
    fix: str = "be-friendly",
    severity: str = "ERROR",
    safety: str = "SAFE",
) -> Path:
    """A folder with a check, its fix and its page, as CONTRIBUTING shows them."""
    words = {"id": id, "code": code, "fix": fix, "severity": severity, "safety": safety}
    name = id.replace("-", "_")
    support.put(folder / "checks" / f"{name}.py", CHECK.format(**words), 0o644)
    support.put(folder / "fixes" / f"fix_{name}.py", FIX.format(**words), 0o644)
    support.put(folder / "docs" / "failures" / f"{code}.md", PAGE.format(**words), 0o644)
    for place in (folder, *folder.rglob("*")):
        if place.is_dir():
            place.chmod(0o755)
    return folder


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """One plugin folder."""
    return plugin(tmp_path / "mine")


@pytest.fixture
def rude(home: Path) -> Path:
    """A home with the plugin's fault in it."""
    support.put(home / "greeting.txt", "go away")
    return home


def ids(loaded: load.Plugins) -> set[str]:
    """The ids of checks and fixes together."""
    return {one.id for one in loaded.checks} | {one.id for one in loaded.fixes}


BUILT_IN = ids(load.load())


def test_built_ins() -> None:
    """The built-in checks and fixes load, and nothing is broken."""
    loaded = load.load()

    assert loaded.broken == ()
    assert {"config-yaml", "restore-config"} <= ids(loaded)


def test_operator_folders(tmp_path: Path, mine: Path) -> None:
    """--plugins is repeatable, and the built-ins stay."""
    more = plugin(tmp_path / "more", id="farewell", code="MY-FAREWELL", fix="say-goodbye")

    loaded = load.load([mine, more])

    assert loaded.broken == ()
    assert ids(loaded) == BUILT_IN | {"greeting", "be-friendly", "farewell", "say-goodbye"}
    assert loaded.fix("be-friendly") is not None
    assert loaded.fix("unheard-of") is None


def test_whole_way(rude: Path, mine: Path) -> None:
    """An operator's own check is found, explained, planned, fixed, verified and undone."""
    sick = support.contents(rude)
    options = ("--home", rude, "--plugins", mine)

    done = support.doctor("check", "--json", *options)
    assert (done.code, done.codes) == (1, ["MY-GREETING"])
    found = support.finding(done, "MY-GREETING")
    assert found["check"] == "greeting"
    assert found["fix"]["id"] == "be-friendly"
    assert str(mine) in found["fix"]["command"]
    page = support.doctor("explain", "my-greeting", "--plugins", mine)
    assert (page.code, page.out.splitlines()[0]) == (0, "# MY-GREETING: rude")
    assert "be-friendly" in support.doctor("list", "fixes", "--plugins", mine).out
    assert "rude" in support.doctor("list", "codes", "--plugins", mine).out
    assert support.doctor("fix", *options).code == 0
    assert support.contents(rude) == sick
    assert support.doctor("fix", "MY-GREETING", "--apply", *options).code == 0
    assert (rude / "greeting.txt").read_text() == "welcome"
    assert support.doctor("check", *options).code == 0
    assert support.doctor("undo", "--yes", "--home", rude).code == 0
    assert support.contents(rude) == sick


def test_a_fix_that_does_not_help(rude: Path, mine: Path) -> None:
    """A fix that the check does not confirm is taken back, and the exit code says so."""
    path = mine / "fixes" / "fix_greeting.py"
    path.write_text(path.read_text().replace('b"welcome"', 'b"go away"'))
    sick = support.contents(rude)

    done = support.doctor("fix", "--apply", "--json", "--home", rude, "--plugins", mine)

    assert done.code == 1
    assert done.json["repair"]["runs"][0]["state"] == "rolled-back"
    assert support.contents(rude) == sick


def test_a_fix_that_crashes(rude: Path, mine: Path) -> None:
    """A fix that raises while planning is named; the other fixes are still planned and applied."""
    path = mine / "fixes" / "fix_greeting.py"
    text = path.read_text()
    path.write_text(text.replace("    yield", "    raise RuntimeError('canary')\n    yield"))
    support.put(rude / ".env", b"\xef\xbb\xbfA=1\n")
    support.put(rude / "config.yaml", support.CONFIG_WITHOUT_FALLBACK)

    done = support.doctor("fix", "--apply", "--json", "--home", rude, "--plugins", mine)

    assert done.code == 1
    assert done.codes == ["MY-GREETING"]
    refusals = {one["code"]: one["refusal"] for one in done.json["repair"]["plan"]}
    assert "RuntimeError at fix_greeting.py" in refusals["MY-GREETING"]
    assert "canary" not in done.out
    assert (rude / ".env").read_bytes() == b"A=1\n"


def test_a_warning_that_asks_first(rude: Path, mine: Path) -> None:
    """A fix that nobody agreed to is something left: exit 1, also for a warning."""
    plugin(mine, severity="WARNING", safety="CONFIRM")
    options = ("--home", rude, "--plugins", mine)

    done = support.doctor("fix", "--apply", *options)

    assert "no terminal is open" in done.out
    assert (rude / "greeting.txt").read_text() == "go away"
    assert done.code == 1


def test_a_fix_by_hand(rude: Path, mine: Path) -> None:
    """A manual fix is shown, never applied, not even with --yes."""
    plugin(mine, safety="MANUAL")
    options = ("--home", rude, "--plugins", mine)

    shown = support.doctor("fix", *options)
    done = support.doctor("fix", "--apply", "--yes", *options)

    assert "Needs you: MY-GREETING" in shown.out
    assert done.code == 1
    assert "MY-GREETING" in done.out
    assert (rude / "greeting.txt").read_text() == "go away"


def test_unknown_fix(rude: Path, mine: Path) -> None:
    """A finding that names a fix which is not there offers none."""
    (mine / "fixes" / "fix_greeting.py").unlink()

    done = support.check(rude, "--plugins", str(mine))

    assert support.finding(done, "MY-GREETING")["fix"] is None
    done = support.doctor("fix", "--apply", "--home", rude, "--plugins", mine)
    assert done.code == 1


def test_hints_work_when_pasted(rude: Path, tmp_path: Path) -> None:
    """Every command that a report prints repeats what it needs, quoted: also `explain`."""
    mine = plugin(tmp_path / "my plugins", fix="be-friendly")
    (mine / "fixes" / "fix_greeting.py").unlink()
    text = support.doctor("check", "--home", rude, "--plugins", mine).out
    hints = re.findall(r"(hermes-doctor explain .*?) {2}", text)
    assert hints

    for hint in hints:
        done = subprocess.run(
            hint.replace("hermes-doctor", f"{sys.executable} -m hermes_doctor", 1),
            shell=True,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr


BROKEN = {
    "syntax": ("def (:\n", "SyntaxError"),
    "raises": ("raise RuntimeError('it does not work')\n", "RuntimeError at broken.py:1"),
    "exits": ("import sys\nsys.exit(0)\n", "SystemExit"),
    "imports": ("import there_is_no_such_module\n", "ModuleNotFoundError"),
    "NUL": ("\0", "SyntaxError"),
    "encoding": ("# -*- coding: nonsense -*-\n", "SyntaxError"),
    "bad id": (CHECK.format(id="Bad Id", code="X-Y", fix="f", severity="INFO"), "ValueError"),
    "bad code": (CHECK.format(id="good", code="x y", fix="f", severity="INFO"), "ValueError"),
    "no docstring": (
        "from hermes_doctor.api import check\n"
        "@check(id='a', group='b', codes=['C'])\ndef a(probes): yield\n",
        "ValueError",
    ),
    "no code": (
        "from hermes_doctor.api import check\n"
        "@check(id='a', group='b', codes=[])\ndef a(probes):\n    '''Q?'''\n    yield\n",
        "ValueError",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files(mine: Path, case: str) -> None:
    """A file that does not load is reported with the reason, and the rest still runs."""
    text, why = BROKEN[case]
    support.put(mine / "checks" / "broken.py", text, 0o644)

    loaded = load.load([mine])

    [broken] = loaded.broken
    assert broken.path == mine / "checks" / "broken.py"
    assert why in broken.why
    assert "\n" not in broken.why
    assert "greeting" in ids(loaded)


def test_broken_files_are_reported(home: Path, mine: Path) -> None:
    """`check` shows them as crashed and does not exit with 0; `list` names them."""
    support.put(mine / "checks" / "broken.py", "import sys\nsys.exit(0)\n", 0o644)
    options = ("--home", home, "--plugins", mine)

    done = support.doctor("check", "--json", *options)

    [result] = [one for one in done.json["checks"] if one["id"] == "plugin:broken.py"]
    assert result["status"] == "crashed"
    assert "SystemExit" in result["reason"]
    assert {one["id"] for one in done.json["checks"]} >= {"config-yaml", "greeting"}
    assert done.code == 1, "its question was not asked"
    assert "broken.py crashed: not loaded" in support.doctor("check", *options).out
    assert "broken.py: SystemExit" in support.doctor("list", "--plugins", mine).out


def test_duplicate_ids(tmp_path: Path, mine: Path) -> None:
    """The second of an id is refused, whether the first is built in or the operator's."""
    other = plugin(tmp_path / "other", code="MY-OTHER", fix="restore-config")

    loaded = load.load([mine, other])

    assert len(loaded.broken) == 2
    assert all("is taken by" in one.why for one in loaded.broken)
    assert len([one for one in loaded.checks if one.id == "greeting"]) == 1
    built_in = loaded.fix("restore-config")
    assert built_in is not None
    assert built_in.codes == ("CFG-YAML",)


def test_not_a_plugin_folder(tmp_path: Path) -> None:
    """A folder that is not there, is a file, or holds neither checks nor fixes is reported."""
    (tmp_path / "empty").mkdir(mode=0o755)
    support.put(tmp_path / "file", "x", 0o644)

    loaded = load.load([tmp_path / "empty", tmp_path / "gone", tmp_path / "file"])

    assert [one.path.name for one in loaded.broken] == ["empty", "gone", "file"]
    assert ids(loaded) == BUILT_IN


@pytest.mark.parametrize("name", [".", "checks", "checks/greeting.py"])
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_others_may_write(mine: Path, name: str, mode: int) -> None:
    """A folder or file that the group or everybody may write to is refused with the remedy."""
    path = mine / name
    path.chmod(path.stat().st_mode | mode)

    loaded = load.load([mine])

    assert "greeting" not in ids(loaded)
    assert loaded.broken
    assert "other users may write" in loaded.broken[0].why
    assert "chmod go-w" in loaded.broken[0].why
    assert ids(loaded) >= BUILT_IN


def test_parents_count(tmp_path: Path) -> None:
    """A folder above that others may write to lets them swap ours; a sticky one does not."""
    shared = tmp_path / "shared"
    mine = plugin(shared / "mine")
    shared.chmod(0o777)
    assert "greeting" not in ids(load.load([mine]))

    shared.chmod(0o1777)
    assert "greeting" in ids(load.load([mine]))


@pytest.mark.parametrize("name", [".", "checks", "checks/greeting.py"])
def test_owned_by_another(mine: Path, name: str) -> None:
    """What belongs to neither root nor the caller is refused with the uid."""
    if os.geteuid() == 0:
        os.chown(mine / name, 54321, 54321)
        loaded = load.load([mine])
    else:  # without root nobody can give a file away: let the caller be somebody else
        real, os.geteuid = os.geteuid, lambda: 54321
        try:
            loaded = load.load([mine])
        finally:
            os.geteuid = real

    assert "greeting" not in ids(loaded)
    assert "belongs to neither root nor you" in loaded.broken[0].why


def test_symlinked_folder(tmp_path: Path, mine: Path) -> None:
    """What counts is the folder that a symlink leads to."""
    (tmp_path / "link").symlink_to(mine)
    assert "greeting" in ids(load.load([tmp_path / "link"]))

    mine.chmod(0o777)
    assert "greeting" not in ids(load.load([tmp_path / "link"]))


def test_symlinked_file(tmp_path: Path, mine: Path) -> None:
    """A file that is a symlink to one that others may write to is refused."""
    target = support.put(tmp_path / "target.py", "raise RuntimeError('ran')\n", 0o666)
    (mine / "checks" / "linked.py").symlink_to(target)

    loaded = load.load([mine])

    [broken] = loaded.broken
    assert "other users may write" in broken.why


def test_helpers_are_distrusted_too(mine: Path, tmp_path: Path) -> None:
    """A module that a trusted file imports from its folder is held to the same rule."""
    ran = tmp_path / "ran"
    helper = support.put(
        mine / "checks" / "_helper.py", f"import os\nos.mkdir({str(ran)!r})\n", 0o644
    )
    support.put(mine / "checks" / "user.py", "from . import _helper\n", 0o644)
    helper.chmod(0o666)

    load.load([mine])

    assert not ran.exists()


def test_planted_bytecode(mine: Path, tmp_path: Path) -> None:
    """Bytecode in a folder that others may write to never runs in place of the source."""
    import importlib.util
    import py_compile

    ran = tmp_path / "ran"
    source = mine / "checks" / "greeting.py"
    good, times = source.read_text(), source.stat()
    evil = f"import os\nos.mkdir({str(ran)!r})\n"
    source.write_text(evil + "#" * (len(good) - len(evil)))
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    cache = Path(importlib.util.cache_from_source(str(source)))
    cache.parent.mkdir()
    py_compile.compile(str(source), cfile=str(cache), doraise=True)
    source.write_text(good)
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    cache.parent.chmod(0o777)

    load.load([mine])

    assert not ran.exists()


def test_no_bytecode_is_written(home: Path, mine: Path) -> None:
    """Loading writes nothing into the operator's folder."""
    before = sorted(mine.rglob("*"))

    support.spawned("check", "--home", home, "--plugins", mine, env={"PYTHONDONTWRITEBYTECODE": ""})

    assert sorted(mine.rglob("*")) == before


def test_files_can_share_code(mine: Path) -> None:
    """Files of one folder can import one another, relatively."""
    support.put(mine / "checks" / "_shared.py", "WORD = 'shared'\n", 0o644)
    text = (mine / "checks" / "greeting.py").read_text()
    support.put(
        mine / "checks" / "greeting.py",
        text.replace('"""The greeting must be friendly."""', "from ._shared import WORD", 1),
        0o644,
    )

    loaded = load.load([mine])

    assert (loaded.broken, "greeting" in ids(loaded)) == ((), True)


@pytest.mark.sampled
@pytest.mark.parametrize("names", [["checks"], ["fixes"], ["checks", "fixes", "hermes_doctor"]])
def test_hostile_folder_is_not_loaded(home: Path, tmp_path: Path, names: list[str]) -> None:
    """Nothing in the current folder is loaded, whatever its name."""
    here = tmp_path / "here"
    ran = tmp_path / "ran"
    for name in names:
        for file in ("__init__.py", "config_yaml.py", "evil.py", "cli.py"):
            support.put(here / name / file, f"import os\nos.mkdir({str(ran)!r})\n", 0o644)
    command = (
        "import sys; sys.argv[0] = 'hermes-doctor'; from hermes_doctor.cli.main import main; main()"
    )

    done = subprocess.run(
        [sys.executable, "-P", "-c", command, "check", "--json", "--home", str(home)],
        cwd=here,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert not ran.exists()
    assert '"config-yaml"' in done.stdout


# -- installed packages ------------------------------------------------------------------------


def installed(target: Path, name: str, *, module: str = "", entry: str | None = None) -> Path:
    """A package in a folder of packages, as pip would leave it."""
    package = plugin(
        target / name, id=f"{name}-check", code=f"{name.upper()}-CODE", fix=f"{name}-fix"
    )
    support.put(package / "__init__.py", module, 0o644)
    info = target / f"{name}-1.0.dist-info"
    support.put(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", 0o644)
    points = f"[hermes_doctor.plugins]\n{name} = {entry or name}\n"
    support.put(info / "entry_points.txt", points, 0o644)
    target.chmod(0o755)
    return package


def listed(target: Path, *args: str) -> support.Done:
    """`list --json` with the packages of that folder."""
    return support.spawned("list", *args, "--json", env={"PYTHONPATH": str(target)})


def test_installed_package(home: Path, tmp_path: Path) -> None:
    """A package that names our entry point brings its checks, fixes and pages along."""
    installed(tmp_path / "site", "acme")

    done = listed(tmp_path / "site")

    assert (done.code, done.json["broken"]) == (0, [])
    assert "acme-check" in [one["id"] for one in done.json["items"]]
    assert "acme-fix" in [one["id"] for one in listed(tmp_path / "site", "fixes").json["items"]]
    page = support.spawned("explain", "ACME-CODE", env={"PYTHONPATH": str(tmp_path / "site")})
    assert page.out.startswith("# ACME-CODE: rude")
    support.put(home / "greeting.txt", "go away")
    done = support.spawned(
        "fix", "--apply", "--json", "--home", home, env={"PYTHONPATH": str(tmp_path / "site")}
    )
    assert done.code == 0
    assert (home / "greeting.txt").read_text() == "welcome"


def test_package_installed_by_pip(tmp_path: Path) -> None:
    """The same through pip itself, into a folder of its own."""
    source = plugin(tmp_path / "source" / "acme", id="acme-check", code="ACME-CODE", fix="acme-fix")
    support.put(source / "__init__.py", "")
    support.put(
        tmp_path / "source" / "pyproject.toml",
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "acme"\nversion = "1.0"\n'
        '[project.entry-points."hermes_doctor.plugins"]\nacme = "acme"\n',
    )
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"),
            *("--no-build-isolation", "--target", str(tmp_path / "site")),
            str(tmp_path / "source"),
        ],
        check=True,
        capture_output=True,
        env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )

    done = listed(tmp_path / "site")

    assert (done.json["broken"], "acme-check" in done.out) == ([], True)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("raise RuntimeError('no')\n", "RuntimeError"),
        ("import sys\nsys.exit(0)\n", "SystemExit"),
        ("def (:\n", "SyntaxError"),
    ],
)
def test_installed_package_that_does_not_load(tmp_path: Path, module: str, why: str) -> None:
    """It is reported, and neither the built-ins nor another package go with it."""
    installed(tmp_path / "site", "bad", module=module)
    installed(tmp_path / "site", "good")

    done = listed(tmp_path / "site")

    assert done.code == 0
    names = [one["id"] for one in done.json["items"]]
    assert {"config-yaml", "good-check"} <= set(names)
    [broken] = done.json["broken"]
    assert why in broken["why"]


def test_installed_package_that_others_may_write_to(tmp_path: Path) -> None:
    """An installed package is held to the same rule as a folder."""
    package = installed(tmp_path / "site", "acme")
    (package / "checks").chmod(0o777)

    done = listed(tmp_path / "site")

    assert "acme-check" not in [one["id"] for one in done.json["items"]]
    assert "other users may write" in done.json["broken"][0]["why"]


def test_entry_point_that_leads_nowhere(tmp_path: Path) -> None:
    """An entry point without a module is reported."""
    installed(tmp_path / "site", "acme", entry="there_is_no_such_module")

    done = listed(tmp_path / "site")

    assert done.code == 0
    assert "ModuleNotFoundError" in done.json["broken"][0]["why"]


ROOT = Path(__file__).parents[3]


def test_lines_that_are_not_effects_are_ignored(tmp_path: Path) -> None:
    """A comment, an unknown part, a line without words, bytes that are not text."""
    assert read_effects(tmp_path) == {}
    (tmp_path / "effects.txt").write_bytes(
        b"# CODE part words\nA model no key\nB weather rain\nC model\n\n\xff\xfe\nD data a b c\n"
    )

    assert read_effects(tmp_path) == {"A": Effect("model", "no key"), "D": Effect("data", "a b c")}


def test_every_code_of_the_table_exists() -> None:
    """Each has a page, a known part and a few words; none is listed twice."""
    text = (ROOT / "checks" / "signatures" / "effects.txt").read_text()
    rows = [line.split(None, 2) for line in text.splitlines() if not line.startswith("#")]
    pages = {page.stem for page in (ROOT / "docs" / "failures").glob("*.md")}

    assert len(rows) == len({code for code, _, _ in rows})
    for code, part, words in rows:
        assert code in pages
        assert part in PARTS
        assert 2 < len(words) <= 45, words


def test_an_operator_can_add_effects(tmp_path: Path) -> None:
    """A folder of one's own is read last, so it also changes built-in effects."""
    support.put(tmp_path / "signatures" / "effects.txt", "MY-CODE platform out of tea\n")

    assert load.load([tmp_path]).effects["MY-CODE"] == Effect("platform", "out of tea")
    assert "GW-DOWN" in load.load([tmp_path]).effects
