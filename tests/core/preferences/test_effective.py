"""Which value applies: environment before files, one home before all, the user before everyone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core import home as homes
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Severity, Trouble
from hermes_doctor.core.preferences import effective, places


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two empty folders for the files, and no variables."""
    monkeypatch.setattr(places, "SYSTEM", tmp_path / "etc")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in effective.VARIABLES.values():
        monkeypatch.delenv(name, raising=False)


def write(folder: Path, content: str) -> None:
    """Write config.toml into one of the folders."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(content)
    (folder / "config.toml").chmod(0o600)


def test_without_files() -> None:
    """Nothing is set."""
    found = effective.load()
    assert found.files == () and found.plugins() == []
    assert found.find("home") is None and found.watch(Path("/x")) == {}


def test_who_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One home, then the user's file, then everyone's; the environment before all of them."""
    home = tmp_path / "home"
    etc, own = tmp_path / "etc", tmp_path / "config" / "hermes-doctor"
    write(etc, f'fail_on = "info"\nvault = "/etc-vault"\n[homes."{home}"]\nfail_on = "critical"')
    assert effective.load().find("fail_on", home=tmp_path).value == "info"  # type: ignore[union-attr]
    write(own, 'fail_on = "warning"')

    found = effective.load()
    assert found.find("fail_on", home=tmp_path).value == "warning"  # type: ignore[union-attr]
    of_home = found.fail_on(home)
    assert of_home and of_home.value == "critical" and of_home.origin == f"{etc}/config.toml:4"
    assert found.vault(home) == Path("/etc-vault")

    monkeypatch.setenv("HERMES_DOCTOR_FAIL_ON", "error")
    of_home = effective.load().fail_on(home)
    assert of_home and (of_home.value, of_home.origin) == ("error", "HERMES_DOCTOR_FAIL_ON")


def test_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has the type of its key; a wrong one is a line that names it."""
    monkeypatch.setenv("HERMES_DOCTOR_PLUGINS", "/a:/b")
    monkeypatch.setenv("HERMES_DOCTOR_VAULT", "/v")
    found = effective.load()
    assert found.plugins() == [Path("/a"), Path("/b")]
    assert found.vault(Path("/h")) == Path("/v")
    for name in ("FAIL_ON", "LANGUAGE", "VAULT", "PLUGINS"):
        with monkeypatch.context() as wrong:
            wrong.setenv(f"HERMES_DOCTOR_{name}", "what")
            with pytest.raises(Trouble, match=f"^HERMES_DOCTOR_{name}: "):
                found.find(name.lower())


def test_severities(tmp_path: Path) -> None:
    """Those of a home are added to those of all; `off` is None; an unknown code is an error."""
    home = tmp_path / "home"
    write(
        tmp_path / "etc",
        '[severity]\nA = "off"\nB = "info"\n'
        f'[homes."{home}".severity]\nB = "error"\nC = "warning"\n',
    )
    found = effective.load()
    assert {code: one.value for code, one in found.severities(home).items()} == {
        "A": None,
        "B": Severity.ERROR,
        "C": Severity.WARNING,
    }
    assert set(found.severities(tmp_path)) == {"A", "B"}
    found.check_codes({"A", "B", "C"})
    with pytest.raises(Trouble, match=r"config\.toml:6: unknown code 'C'\. See: .* list codes"):
        found.check_codes({"A", "B"})


def test_a_link_to_the_home_is_the_home(tmp_path: Path) -> None:
    """The home of a table is resolved, as that of a report is."""
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    write(tmp_path / "etc", f'[homes."{tmp_path}/link".watch]\ninterval = "5m"')
    assert effective.load().watch(home)["interval"].value == "5m"


def test_the_home_of_a_file(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used if neither --home nor HERMES_HOME names one; an error names file and line."""
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    write(tmp_path / "etc", f'home = "{home}"')
    assert homes.find(None).path == home
    other = tmp_path / "other"
    assert homes.find(home).path == home
    write(tmp_path / "etc", f'\nhome = "{other}"')
    with pytest.raises(Trouble, match=r"etc/config\.toml:2 names .*other, which does not exist"):
        homes.find(None)
    monkeypatch.setenv("HERMES_HOME", str(home))
    assert homes.find(None).path == home


def test_the_vault_of_a_file(home: Path, tmp_path: Path) -> None:
    """Every part of the tool uses it, unless a vault is named."""
    assert Vault(Home(home)).root == home / "backups" / "doctor"
    write(tmp_path / "etc", f'vault = "{tmp_path}/vault"')
    assert Vault(Home(home)).root == tmp_path / "vault"
    assert Vault(Home(home), tmp_path / "third").root == tmp_path / "third"
