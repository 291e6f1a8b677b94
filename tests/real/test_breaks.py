"""Platforms that are broken in certain releases, asked of these releases themselves."""

from __future__ import annotations

import pytest

from hermes_doctor.hermes.knowledge.releases import load_knowledge
from tests.conftest import need_release
from tests.helpers import support
from tests.helpers.real.release_homes import MakeHome, Patient
from tools import lessons

pytestmark = pytest.mark.real
CONNECT = """
import asyncio
from gateway.config import PlatformConfig
from gateway.platforms.qqbot.adapter import QQAdapter
adapter = QQAdapter(PlatformConfig(enabled=True, extra={"app_id": "1", "client_secret": "x"}))
try:
    asyncio.wait_for(adapter.connect(is_reconnect=False), 0.1)
except TypeError as error:
    print(error)
"""


@pytest.mark.wide
@pytest.mark.parametrize("version", ["0.15.1", "0.18.2", "0.19.0"])
def test_knowledge(version: str) -> None:
    """What is known of a release is what its files say."""
    need_release(version)
    known = {
        name: {"file": fault["file"], "lacks": fault["lacks"]}
        for name, faults in load_knowledge("breaks").items()
        for fault in faults
        if version in fault["releases"]
    }

    assert lessons.learn(version, "breaks") == {"breaks": known}


@pytest.mark.parametrize(("version", "broken"), [("0.18.2", True), ("0.19.0", False)])
def test_qq(version: str, broken: bool, hermes_home: MakeHome) -> None:
    """The release that is said to be broken refuses the call; the one that cures it does not."""
    patient = Patient(version, hermes_home(version))
    support.put(patient.home / ".env", "QQ_APP_ID=102000001\nQQ_CLIENT_SECRET=x\n")

    assert ("is_reconnect" in patient.ask(CONNECT)) is broken
    codes = patient.check("--only", "release-breaks").codes
    assert codes == (["QQ-IS-RECONNECT"] if broken else [])


@pytest.mark.wide
def test_discord(hermes_home: MakeHome) -> None:
    """The package 0.15.1 has no manifest for Discord."""
    patient = Patient("0.15.1", hermes_home("0.15.1"))
    support.put(patient.home / ".env", "DISCORD_BOT_TOKEN=abcdefghijkl\n")

    finding = patient.finding("PLUGIN-NOT-REGISTERED")

    assert "0.15.2" in finding["next"]
