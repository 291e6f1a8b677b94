"""What is known of platforms, held against the releases themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.hermes.knowledge.releases import load_knowledge
from tests.conftest import need_release
from tools import lessons, real_home, releases

pytestmark = pytest.mark.real
NEWEST = releases.ALL[-1]
FROM_LIBRARIES = {
    "gateway.discord.gg",
    "wss-primary.slack.com",
    "api.dingtalk.com",
    "oapi.dingtalk.com",
    "pubsub.googleapis.com",
    "web.whatsapp.com",
}
"""Hosts that the vendors' own libraries know, not Hermes."""
PROVIDERS = """
import json
from hermes_cli.auth import PROVIDER_REGISTRY
print(json.dumps({name: one.inference_base_url for name, one in PROVIDER_REGISTRY.items()}))
"""

ADDED_LATER = ("buzz", "a2a")
"""Platforms of releases after that one, which exist only as checkouts."""


@pytest.mark.wide
@pytest.mark.parametrize("version", ["0.13.0", NEWEST])
def test_enabling(version: str) -> None:
    """The release says today what the file says of it."""
    need_release(version)
    known = {
        name: {key: value for key, value in form.items() if key != "releases"}
        for name, forms in load_knowledge("enabling").items()
        for form in forms
        if version in form["releases"]
    }

    assert lessons.learn(version, "enabling") == {"enabling": known}


@pytest.fixture(scope="module")
def code() -> str:
    """All the code of the newest release's platforms."""
    need_release(NEWEST)
    [package] = (releases.python_of(NEWEST).parent.parent / "lib").glob("python3*/site-packages")
    folders = [package / "gateway", package / "plugins" / "platforms"]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    return "\n".join(Path(path).read_text(errors="replace") for path in files)


def test_hosts(code: str) -> None:
    """Every host is in the code, or is a library's."""
    hosts = {
        host.partition(":")[0]
        for facts in load_knowledge("platforms")["platforms"].values()
        for host in facts.get("hosts", ())
    }

    assert {host for host in hosts if host not in code} <= FROM_LIBRARIES


def known() -> list[dict[str, Any]]:
    """The platforms that the newest release from the package index has."""
    platforms = load_knowledge("platforms")["platforms"]
    return [facts for name, facts in platforms.items() if name not in ADDED_LATER]


@pytest.mark.wide
def test_variables_and_ports(code: str) -> None:
    """Every variable and every port is in the code."""
    for facts in known():
        listens = facts.get("listens", {})
        names = [*facts["variables"], *facts.get("proxy_variables", ())]
        names += [one.partition(":")[0] for one in facts.get("address_variables", ())]
        names += listens.get("port_variables", [])
        for name in names:
            assert re.search(rf"\b{name}\b", code), name
        assert str(listens.get("port", "")) in code


def test_locks(code: str) -> None:
    """The scopes of the locks are those that the adapters use."""
    for facts in known():
        if facts.get("lock"):
            assert re.search(rf"""["']{facts["lock"]}["']""", code), facts["lock"]


def test_libraries(code: str) -> None:
    """The libraries are those that the adapters import."""
    for facts in load_knowledge("platforms")["platforms"].values():
        if facts.get("library"):
            assert re.search(rf"(import|from) {facts['library']}\b", code), facts["library"]


def test_providers(tmp_path: Path) -> None:
    """The addresses of the providers are those of the newest release."""
    import json

    need_release(NEWEST)
    said = json.loads(real_home.run(NEWEST, tmp_path, PROVIDERS).splitlines()[-1])
    known = load_knowledge("providers")

    assert len(set(known) & set(said)) > 25
    for name in set(known) & set(said):
        assert known[name]["base_url"] == said[name], name
