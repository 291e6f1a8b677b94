"""Who would be let in: the lists of a platform, its switches, and what strangers are told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings.access import GLOBAL_USERS, Access, reader
from hermes_doctor.settings.inputs import World, section
from hermes_doctor.settings.resolved import Resolved
from hermes_doctor.settings.sourced_text import Answer, Source, Text

_OWN_POLICY = ("wecom", "weixin", "yuanbao", "qqbot", "whatsapp")
"""Platforms whose adapters decide by `dm_policy` before the gateway does."""
_OTHER_WAYS = {
    "discord": ("DISCORD_ALLOWED_ROLES",),
    "telegram": ("TELEGRAM_GROUP_ALLOWED_USERS", "TELEGRAM_GROUP_ALLOWED_CHATS"),
    "qqbot": ("QQ_GROUP_ALLOWED_USERS",),
    "simplex": ("SIMPLEX_GROUP_ALLOWED",),
}
"""Variables that let some people in who are on no list of users."""
_BEHAVIOUR = "unauthorized_dm_behavior"
_POLICY_COUNTS, _OPEN_TRUSTED = (0, 16), (0, 17)
_PLACES: tuple[tuple[str, ...], ...] = ((), ("platforms",), ("gateway", "platforms"))


class Entrance(NamedTuple):
    """One platform on which people are asked for who they are."""

    access: Access
    variable: str
    """The variable that lists its users."""
    lists: tuple[Text, ...]
    """What is listed for it: its own list, and that for all platforms."""
    everyone: Answer | None
    """What lets anybody in."""
    unasked: bool
    """Anybody is let in although nothing says so: a fault of 0.16."""
    policed: tuple[str, ...] | None
    """Whom the adapter's own list lets in; None where no such list decides."""
    elsewhere: tuple[Text, ...]
    """Roles and groups that are let in."""
    invites: bool
    """Whether strangers who write directly are given a code to be paired with."""

    @property
    def name(self) -> str:
        """The platform."""
        return self.access.name

    @property
    def label(self) -> str:
        """The platform, for people."""
        return self.access.label

    @property
    def listed(self) -> list[str]:
        """All entries of its lists."""
        return [entry for one in self.lists for entry in entries(one)]

    @property
    def own(self) -> Text | None:
        """Its own list, if it has one."""
        return next((one for one in self.lists if one.source.name != GLOBAL_USERS), None)

    @property
    def open(self) -> Source | None:
        """What opens it to anybody."""
        if self.everyone:
            return self.everyone.source
        return next((one.source for one in self.lists if "*" in entries(one)), None)

    def admits(self, user: str) -> bool:
        """Whether somebody gets in who writes directly; pairings not counted."""
        listed = {user, user.partition("@")[0]} & {*self.listed}
        policed = user in (self.policed or ())
        return self.unasked or self.open is not None or bool(listed) or policed


def entries(text: str) -> list[str]:
    """The ids of a list as Hermes takes it apart."""
    return [one.strip() for one in text.split(",") if one.strip()]


def doors(found: Resolved) -> Iterator[Entrance]:
    """The platforms that would start and ask who somebody is."""
    for access in found.platforms:
        variable = reader(found.world, access.name).lists[0]
        if variable:
            yield _door(found.world, access, variable)


def _door(world: World, access: Access, variable: str) -> Entrance:
    lists = tuple(reader(world, access.name).user_lists())
    others = [world.getenv(name) for name in _OTHER_WAYS.get(access.name, ())]
    elsewhere = tuple(one for one in others if one)
    policy = _policy(world, access)
    policed = None
    if policy == "allowlist" and not lists:
        policed = tuple(entries((access.allow_from and access.allow_from.value) or ""))
    trusted = _POLICY_COUNTS <= world.release.version < _OPEN_TRUSTED
    return Entrance(
        access=access,
        variable=variable,
        lists=lists,
        everyone=access.everyone,
        unasked=trusted and access.name in _OWN_POLICY and not lists and policy in ("", "open"),
        policed=policed,
        elsewhere=elsewhere,
        invites=_invites(world, access, policy, [*lists, *elsewhere]),
    )


def _policy(world: World, access: Access) -> str:
    """The adapter's own policy for who writes directly, where the gateway goes by it."""
    if world.release.version < _POLICY_COUNTS or access.name not in _OWN_POLICY:
        return ""
    said = access.dm_policy.value if access.dm_policy else ""
    if not said and access.name != "qqbot":
        said = world.getenv(f"{access.name.upper()}_DM_POLICY")
    return (said or "").strip().lower()


def _invites(world: World, access: Access, policy: str, lists: Iterable[Text]) -> bool:
    """Whether a stranger is given a code; what is said for the platform counts first."""
    for where in _blocks(world, access.name):
        if where.get(_BEHAVIOUR) in ("pair", "ignore"):
            return bool(where[_BEHAVIOUR] == "pair")
    if access.name == "email" and world.release.since(0, 18):
        return False
    general = world.raw.get(_BEHAVIOUR)
    if general is None and world.release.since(0, 19):
        general = section(world.raw, "gateway").get(_BEHAVIOUR)
    if general == "ignore":
        return False
    if policy in ("pairing", "allowlist", "disabled"):
        return policy == "pairing"
    roles = "DISCORD_ALLOWED_ROLES"
    return not any(one.source.name != roles for one in lists if one)


def _blocks(world: World, name: str) -> Iterator[dict[Any, Any]]:
    """The parts of config.yaml in which this release looks for a setting of a platform."""
    yield section(world.raw, name)
    if world.release.since(0, 16):
        yield section(world.raw, "platforms", name)
        yield section(world.raw, "gateway", "platforms", name)
        yield section(world.raw, "gateway", "platforms", name, "extra")
    yield section(world.raw, "platforms", name, "extra")


def is_sandboxed(world: World) -> bool:
    """Whether commands run elsewhere than on this machine itself."""
    said = section(world.raw, "terminal").get("backend") or world.getenv("TERMINAL_ENV")
    return str(said or "local").strip().lower() != "local"


def unread(world: World, platform: str, user: str) -> Iterator[Source]:
    """Places in config.yaml that name somebody for a platform and that nothing reads."""
    count = {one.source.name for one in reader(world, platform).user_lists()}
    for path in _PLACES:
        for more in ((), ("extra",)):
            where = (*path, platform, *more)
            for key, value in section(world.raw, *where).items():
                plain = value if isinstance(value, list) else entries(str(value))
                source = world.document.source(*where, str(key))
                if source.name not in count and user in map(str, plain):
                    yield source
