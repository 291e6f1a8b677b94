"""Whose connection is whose."""

from __future__ import annotations

import pytest

from hermes_doctor.diagnosis.probes import links
from hermes_doctor.diagnosis.probes.links import PlatformConnections, assign
from hermes_doctor.hermes.processes.sockets import Connection
from hermes_doctor.hermes.settings import platforms
from hermes_doctor.hermes.settings.inputs import Settings
from hermes_doctor.hermes.settings.network_endpoints import Endpoint
from tests.helpers.gateway_home import QQ, TELEGRAM, to

DISCORD = {"DISCORD_BOT_TOKEN": "x"}
WEIXIN = {"WEIXIN_TOKEN": "x", "WEIXIN_ACCOUNT_ID": "y"}
ALL = QQ | TELEGRAM | DISCORD | WEIXIN | {"API_SERVER_KEY": "x" * 20}


def sort(
    variables: dict[str, str],
    *table: Connection,
    addresses: dict[str, frozenset[str]] | None = None,
    others: tuple[Endpoint, ...] = (),
) -> dict[str, PlatformConnections]:
    """The links of the platforms that these variables switch on, by name."""
    settings = Settings(variables, frozenset(), {}, ())
    found = platforms.find(settings, (0, 19, 0))
    return {
        one.platform.name: one
        for one in assign(found, table, addresses=addresses, providers=others)
    }


def hows(made: dict[str, PlatformConnections]) -> dict[str, str | None]:
    """How sure each is."""
    return {name: one.how for name, one in made.items()}


def test_each_to_its_own() -> None:
    """Two of Tencent's share its network; the listening platform holds no connection."""
    made = sort(ALL, to("43.128.1.1"), to("149.154.167.220"), to("162.159.1.1"))

    assert hows(made) == {
        "qqbot": "network",
        "weixin": "network",
        "telegram": "network",
        "discord": "likely",
    }
    assert [one.remote for one in made["discord"].connections] == [("162.159.1.1", 443)]


def test_asked_addresses_make_sure() -> None:
    """What the names lead to, where it was asked, is no guess any more."""
    table = [to("162.159.1.1"), to("104.18.9.9")]
    asked = {"gateway.discord.gg": frozenset({"162.159.1.1"})}

    made = sort(DISCORD, *table, addresses=asked)

    assert made["discord"].how == "address"
    assert [one.remote for one in made["discord"].connections] == [("162.159.1.1", 443)]


def test_providers_are_left_out() -> None:
    """A model's address, asked or written as a number, is no platform's."""
    asked = {"openrouter.ai": frozenset({"104.18.9.9"})}
    ends = (Endpoint("openrouter.ai", 443), Endpoint("10.0.0.7", 443))

    made = sort(DISCORD, to("104.18.9.9"), to("10.0.0.7"), addresses=asked, others=ends)

    assert made["discord"].how is None


def test_callers_are_not_connections_of_ours() -> None:
    """Whoever called our API server has nothing to do with a platform."""
    listens = Connection(("0.0.0.0", 8642), None, "LISTEN")
    called = Connection(("10.0.0.1", 8642), ("43.128.1.1", 443), "ESTABLISHED")

    assert hows(sort(QQ, listens, called)) == {"qqbot": None}


@pytest.mark.parametrize("state", ["SYN_SENT", "CLOSE_WAIT", "TIME_WAIT", "FIN_WAIT2"])
def test_only_established_counts(state: str) -> None:
    """What is not up yet, or no more, is no connection; attempts are counted."""
    made = sort(QQ, to("43.128.1.1", state=state))["qqbot"]

    assert (made.how, made.trying) == (None, int(state == "SYN_SENT"))


def test_moved_away_from_its_network() -> None:
    """A platform whose address the operator has set is not looked for in its usual network."""
    variables = WEIXIN | {"WEIXIN_BASE_URL": "http://10.0.0.9:99"}

    assert hows(sort(variables, to("10.0.0.9", 99))) == {"weixin": "address"}
    assert sort(variables, to("10.0.0.9", 98))["weixin"].how == "elsewhere"


def test_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that comes back within a moment was never lost; one that does not is."""
    monkeypatch.setattr(links, "PATIENCE", 0.6)
    tables = iter([[], [], [to("43.128.1.1")]])

    def look() -> list[Connection]:
        return next(tables, [])

    def those(table: list[Connection]) -> list[PlatformConnections]:
        return list(sort(QQ, *table).values())

    assert [one.how for one in links.wait_for_links(look, those, {"qqbot"})] == ["network"]
    assert [one.how for one in links.wait_for_links(look, those, {"qqbot"})] == [None]
    assert [one.how for one in links.wait_for_links(look, those, set())] == [None]
