"""config.toml: what it may contain, and how each mistake is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from hermes_doctor.core.model import Severity, Trouble
from hermes_doctor.core.preferences import config_toml

WHOLE = """\
home = "/srv/hermes"
language = "en"
fail_on = "warning,unknown"
plugins = ["/etc/hermes-doctor/plugins"]
vault = "/srv/backups"

[severity]
GW-LINGER = "off"
net-tcp = "warning"

[watch]
interval = "1m"
heal = true
also = ["reset-gateway"]
after = 5
metrics = "/srv/metrics/hermes.prom"

[homes."/srv/second"]
fail_on = "critical"

[homes."/srv/second".severity]
GW-LINGER = "error"

[homes."/srv/second".watch]
interval = "5m"
"""


def load(folder: Path, content: str) -> config_toml.ConfigFile:
    """The file with this content."""
    path = folder / "config.toml"
    path.write_text(content)
    path.chmod(0o600)
    found = config_toml.load(path)
    assert found
    return found


def test_everything_that_a_file_may_contain(tmp_path: Path) -> None:
    """Values are converted, codes are written in capitals, and each has its line."""
    found = load(tmp_path, WHOLE)

    assert found.values["home",] == Path("/srv/hermes")
    assert found.values["plugins",] == [Path("/etc/hermes-doctor/plugins")]
    assert found.values["severity", "GW-LINGER"] is None
    assert found.values["severity", "NET-TCP"] is Severity.WARNING
    assert found.values["watch", "after"] == 5
    assert found.values["homes", "/srv/second", "watch", "interval"] == "5m"
    assert found.origin(("severity", "NET-TCP")).endswith("config.toml:9")
    assert found.origin(("homes", "/srv/second", "fail_on")).endswith("config.toml:19")


def test_no_file(tmp_path: Path) -> None:
    """It is not needed."""
    assert config_toml.load(tmp_path / "config.toml") is None


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        ('fail_on = "error"\nfailon = "error"', 2, "unknown key failon. Did you mean fail_on?"),
        ("[watch]\nintervall = 1", 2, "unknown key watch.intervall. Did you mean interval?"),
        ("x = 1", 1, "unknown key x. Known here: home, language"),
        ('[homes."/srv/h"]\nhome = "/x"', 2, 'unknown key homes."/srv/h".home'),
        ('[homes."/srv/h".watch]\n\nfoo = 1', 3, 'unknown key homes."/srv/h".watch.foo'),
        ("[severity]\nNET-TCP = 'loud'", 2, "severity.NET-TCP: use critical, error"),
        ("[severity]\nNET-TCP = 3", 2, "severity.NET-TCP: use critical, error"),
        ('fail_on = "never"', 1, "fail_on: use one of critical, error"),
        ('fail_on = ""', 1, "fail_on: needs a text in quotes"),
        ("fail_on = 1", 1, "fail_on: needs a text in quotes"),
        ('home = "here"', 1, "home: needs an absolute path"),
        ('home = "~nobody-at-home/x"', 1, "home: could not find the home folder"),
        ('plugins = "/x"', 1, "plugins: needs a list"),
        ('language = "tlh"', 1, "language: use en"),
        ("[watch]\nheal = 1", 2, "watch.heal: needs true or false"),
        ("[watch]\nafter = true", 2, "watch.after: needs a number"),
        ("[watch]\nafter = 0", 2, "watch.after: needs a number"),
        ("watch = 1", 1, "watch needs a table: [watch]."),
        ("homes = 1", 1, "homes needs a table: [homes]."),
        ('[homes]\n"/srv/h" = 1', 2, 'needs a table: [homes."/srv/h"]'),
        ("[homes.here]\nfail_on = 'error'", 1, "homes.here: needs an absolute path"),
        ('plugins = [\n  "/x",\n  1,\n]', 4, "plugins: needs a text in quotes"),
        ('fail_on = "error"\nFAIL_ON = "info"', 2, "unknown key FAIL_ON."),
        ('[severity]\nA-B = "off"\na-b = "info"', 3, "severity.A-B is set twice."),
        ('[homes."/x"]\n[homes."/x/"]', 2, 'homes."/x/": this home is listed twice.'),
        ('home = "~\\u0000/x"', 1, "home: could not find the home folder"),
        ('[homes."~\\u0000y"]', 1, "could not find the home folder"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, content: str, line: int, said: str) -> None:
    """With the file, the line, what is wrong, and what is right."""
    with pytest.raises(Trouble) as caught:
        load(tmp_path, content)
    assert str(caught.value).startswith(f"{tmp_path}/config.toml:{line}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_not_toml(tmp_path: Path) -> None:
    """The message of the parser names the line."""
    with pytest.raises(Trouble, match=r"config\.toml: not valid TOML: .*line 2"):
        load(tmp_path, "x = 1\ny = \nz = 2")
    (tmp_path / "config.toml").write_bytes(b"home = '/x'\n\n# \xff")
    with pytest.raises(Trouble, match=r"config\.toml:3: this is not UTF-8"):
        config_toml.load(tmp_path / "config.toml")
    with pytest.raises(Trouble, match="not valid TOML"):
        load(tmp_path, "x = " + "[" * 5000)


@given(st.text() | st.binary().map(lambda one: one.decode("latin-1")))
@settings(max_examples=150, deadline=None)
def test_any_text(tmp_path_factory: pytest.TempPathFactory, content: str) -> None:
    """It is read or refused, and never anything else."""
    path = tmp_path_factory.mktemp("any") / "config.toml"
    path.write_text(content, errors="replace", encoding="utf-8")
    try:
        found = config_toml.load(path)
    except Trouble as trouble:
        assert str(trouble).startswith(str(path))
    else:
        assert found is not None and isinstance(found.values, dict)
