"""platform-adapters: what the installed Hermes can load."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.model import Finding
from hermes_doctor.hermes.installation.find import Installation
from tests.helpers import support
from tests.helpers.check_home import TELEGRAM
from tests.helpers.gateway_home import Scene, ask

QQ = "QQ_APP_ID=102081123\nQQ_CLIENT_SECRET=abcdef\n"
DISCORD = "DISCORD_BOT_TOKEN=abc.def.ghi\n"


class Packaged(Scene):
    """With an installation in a folder of the test's own."""

    def hermes_installation(self) -> Installation:
        """It lies beside the home."""
        return Installation(self.version, self.home.path.parent / "hermes", running=False)


@pytest.fixture
def packages(home: Path) -> Path:
    """The packages of a release that can fetch Telegram's library."""
    folder = home.parent / "hermes" / "lib" / "python3.11" / "site-packages"
    support.put(folder / "gateway" / "run.py", "")
    support.put(folder / "tools" / "lazy_deps.py", 'DEPS = {"platform.telegram": ()}\n')
    support.put(home.parent / "hermes" / "pyvenv.cfg", "include-system-site-packages = false\n")
    return folder


def found(
    home: Path, env: str, config: str = "", version: str = "0.19.0", *, running: bool = False
) -> list[Finding]:
    """What the check finds."""
    support.put(home / ".env", env)
    support.put(home / "config.yaml", config)
    return ask("platform-adapters", Packaged(home, {}, running=running, version=version))[1]


def test_missing_library(home: Path, packages: Path) -> None:
    """Nobody fetches aiohttp for QQ; Telegram's is fetched at the first start, if it may be."""
    [qq] = found(home, QQ)
    [telegram] = found(home, TELEGRAM)
    [sealed] = found(home, TELEGRAM, "security:\n  allow_lazy_installs: false\n")
    [switched] = found(home, f"{TELEGRAM}HERMES_DISABLE_LAZY_INSTALLS=1\n")

    assert (qq.code, qq.severity, qq.evidence[1].where) == ("PLATFORM-DEPS", "error", str(packages))
    assert (telegram.code, telegram.severity) == ("PLATFORM-DEPS", "error")
    assert "tries to install it" in telegram.detail
    python = home.parent / "hermes" / "bin" / "python"
    wanted = "'hermes-agent[messaging]==0.19.0'"
    assert f"`uv pip install --python {python} {wanted}`" in qq.next
    support.put(packages / "pip" / "__init__.py", "")
    [with_pip] = found(home, QQ)
    assert f"`{python} -m pip install {wanted}`" in with_pip.next
    assert sealed.severity == switched.severity == "error"


@pytest.mark.parametrize("name", ["aiohttp/__init__.py", "aiohttp.py", "aiohttp.cpython-311.so"])
def test_there(home: Path, packages: Path, name: str) -> None:
    """A folder, a file, or compiled."""
    support.put(packages / name, "")

    assert found(home, QQ) == []


def test_elsewhere(home: Path, packages: Path) -> None:
    """Where other places count as well, or nothing is known, nothing is said."""
    assert found(home, f"{QQ}HERMES_LAZY_INSTALL_TARGET=/opt/data/lazy\n") == []
    support.put(home.parent / "hermes" / "pyvenv.cfg", "include-system-site-packages = true\n")
    assert found(home, QQ) == []
    (packages / "gateway").rename(packages / "elsewhere")
    assert found(home, QQ) == []


def test_a_running_gateway_tells_itself(home: Path, packages: Path) -> None:
    """What it has loaded is another check's business."""
    assert found(home, QQ, running=True) == []


def test_no_manifest(home: Path, packages: Path) -> None:
    """The packages up to 0.15.1 lack them, so Hermes does not see the plugin."""
    support.put(packages / "discord" / "__init__.py", "")
    support.put(packages / "plugins" / "platforms" / "discord" / "adapter.py", "")

    [finding] = found(home, DISCORD, version="0.15.1")

    assert (finding.code, finding.severity) == ("PLUGIN-NOT-REGISTERED", "error")
    support.put(packages / "plugins" / "platforms" / "discord" / "plugin.yaml", "name: discord\n")
    assert found(home, DISCORD, version="0.15.1") == []


@pytest.mark.parametrize("name", ["discord-platform", "platforms/discord"])
def test_disabled(home: Path, packages: Path, name: str) -> None:
    """plugins.disabled keeps it from being loaded."""
    support.put(packages / "discord" / "__init__.py", "")
    support.put(packages / "plugins" / "platforms" / "discord" / "plugin.yaml", "name: discord\n")

    [finding] = found(home, DISCORD, f"plugins:\n  disabled:\n    - {name}\n")

    assert finding.code == "PLUGIN-NOT-REGISTERED"
    assert finding.evidence[1].where == "config.yaml:3"


def test_disabled_without_files(home: Path) -> None:
    """Also if the files of Hermes cannot be read, from the release on whose plugin it is."""
    disabled = "plugins:\n  disabled:\n    - discord-platform\n"

    [finding] = found(home, DISCORD, disabled, "0.17.0")

    assert (finding.code, finding.subject) == ("PLUGIN-NOT-REGISTERED", "discord")
    assert "plugins.disabled: discord-platform" in finding.evidence[1].what
    assert found(home, DISCORD, disabled, "0.14.0") == []
    assert found(home, DISCORD, "plugins:\n  disabled: []\n", "0.17.0") == []


def test_another_release_has_it(home: Path, packages: Path) -> None:
    """WhatsApp Cloud came with 0.17."""
    env = "WHATSAPP_CLOUD_PHONE_NUMBER_ID=1\nWHATSAPP_CLOUD_ACCESS_TOKEN=abcd\n"

    [finding] = found(home, env, version="0.16.0")

    assert (finding.code, finding.severity) == ("PLUGIN-NOT-REGISTERED", "error")
    assert "0.17.0" in finding.detail
    assert finding.evidence[0].where == ".env:1"
    assert found(home, env, version="0.17.0") == []


def test_nothing_set_up(home: Path, packages: Path) -> None:
    """No platform needs no library."""
    assert found(home, "") == []
