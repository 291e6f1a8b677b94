"""What is known of platforms, networks and providers: complete, consistent, dated."""

from __future__ import annotations

import ipaddress
from datetime import date

import pytest

from hermes_doctor.diagnosis.probes.links import network_of
from hermes_doctor.hermes.knowledge.releases import load_knowledge, shipped_releases
from hermes_doctor.hermes.settings.urls import endpoint

KNOWN = shipped_releases()
PLATFORMS = load_knowledge("platforms")["platforms"]
ENABLING = load_knowledge("enabling")
NETWORKS = load_knowledge("networks")


def test_the_same_platforms() -> None:
    """What is learnt and what is written by hand are about the same platforms."""
    assert set(PLATFORMS) == set(ENABLING)


@pytest.mark.parametrize("name", PLATFORMS)
def test_facts(name: str) -> None:
    """Every platform has what the probes need."""
    facts = PLATFORMS[name]

    assert facts["label"]
    assert facts["link"] in ("held", "polled", "listening", "bridge")
    assert facts.get("network") in (None, *NETWORKS)
    assert all(endpoint(host) for host in facts.get("hosts", ()))
    assert facts["link"] != "listening" or facts["listens"]["port"]
    for form in ENABLING[name]:
        assert form["by"] or (not facts["variables"] and form["on"]), "nothing switches it on"
        assert {variable for names in form["by"] for variable in names} <= set(facts["variables"])
        assert set(form["releases"]) <= set(KNOWN)


def test_every_release_is_asked() -> None:
    """The newest release that the tools know is in it."""
    asked = {release for forms in ENABLING.values() for one in forms for release in one["releases"]}

    assert asked == set(KNOWN)


def test_networks_have_a_source() -> None:
    """Each list says where it comes from and when it was taken, and holds ranges only."""
    for network in NETWORKS.values():
        assert network["label"]
        for part in network["lists"]:
            assert part["source"]
            assert date.fromisoformat(part["date"])
            for text in part["ranges"]:
                ipaddress.ip_network(text)


@pytest.mark.parametrize(
    ("ip", "network"),
    [
        ("43.128.0.1", "tencent"),
        ("43.128.255.254", "tencent"),
        ("43.159.77.1", "tencent"),
        ("43.127.255.255", None),
        ("109.244.7.7", "tencent"),
        ("203.205.239.1", "tencent"),
        ("2402:4e00::1", "tencent"),
        ("149.154.167.220", "telegram"),
        ("149.154.176.1", None),
        ("91.108.21.1", "telegram"),
        ("185.76.151.9", "telegram"),
        ("2001:67c:4e8:f004::9", "telegram"),
        ("2001:67c:4e9::1", None),
        ("198.18.0.5", "tunnel"),
        ("127.0.0.1", None),
        ("nonsense", None),
        ("fe80::1%eth0", None),
    ],
)
def test_networks(ip: str, network: str | None) -> None:
    """Addresses at the edges."""
    assert network_of(ip) == network


def test_providers() -> None:
    """Every provider has an address, and no alias means two of them."""
    known = load_knowledge("providers")
    aliases = [alias for facts in known.values() for alias in facts.get("aliases", ())]

    assert all(endpoint(facts["base_url"]) for facts in known.values())
    assert len(set(aliases)) == len(aliases)
    assert not set(aliases) & set(known)
