"""Determine which users a platform lets in, and whether strangers are offered pairing.

Ids from logs and from files that strangers can influence are added to allowlists. A text that could
be read there as two ids, as a wildcard or as anything else is rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.hermes.settings.document import ResolvedValue, Source, Text
from hermes_doctor.hermes.settings.inputs import SettingInputs, section
from hermes_doctor.hermes.settings.platforms import (
    GLOBAL_USERS,
    PLATFORM_PLACES,
    Access,
    access_reader,
)
from hermes_doctor.hermes.settings.resolved import Resolved

_OWN_POLICY = ("wecom", "weixin", "yuanbao", "qqbot", "whatsapp")
"""Platforms whose adapters apply `dm_policy` before the gateway decides."""
_OTHER_WAYS = {
    "discord": ("DISCORD_ALLOWED_ROLES",),
    "telegram": ("TELEGRAM_GROUP_ALLOWED_USERS", "TELEGRAM_GROUP_ALLOWED_CHATS"),
    "qqbot": ("QQ_GROUP_ALLOWED_USERS",),
    "simplex": ("SIMPLEX_GROUP_ALLOWED",),
}
"""Variables that let people in who are on no list of users."""
_BEHAVIOUR = "unauthorized_dm_behavior"
_POLICY_COUNTS, _OPEN_TRUSTED = (0, 16), (0, 17)


class PlatformAdmission(NamedTuple):
    """A platform that checks its users, with the users it lets in."""

    access: Access
    variable: str
    """The variable with the list of its users."""
    lists: tuple[Text, ...]
    """The lists that apply to it: its own and the one for all platforms."""
    everyone: ResolvedValue | None
    """The setting that lets everyone in."""
    unasked: bool
    """Everyone is let in although no setting says so: a bug of 0.16."""
    policed: tuple[str, ...] | None
    """The users on the adapter's own list; None if no such list decides."""
    elsewhere: tuple[Text, ...]
    """Roles and groups that are let in."""
    invites: bool
    """Whether strangers who send a direct message get a pairing code."""

    @property
    def name(self) -> str:
        """The platform's name."""
        return self.access.name

    @property
    def label(self) -> str:
        """The platform's display name."""
        return self.access.label

    @property
    def listed(self) -> list[str]:
        """All entries of its lists."""
        return [entry for one in self.lists for entry in split_ids(one)]

    @property
    def own(self) -> Text | None:
        """Its own list, if it has one."""
        return next((one for one in self.lists if one.source.name != GLOBAL_USERS), None)

    @property
    def open(self) -> Source | None:
        """The setting that opens it to everyone."""
        if self.everyone:
            return self.everyone.source
        return next((one.source for one in self.lists if "*" in split_ids(one)), None)

    def admits(self, user: str) -> bool:
        """Tell whether a user's direct messages are accepted; pairings are not counted."""
        listed = {user, user.partition("@")[0]} & {*self.listed}
        policed = user in (self.policed or ())
        return self.unasked or self.open is not None or bool(listed) or policed


def split_ids(text: str) -> list[str]:
    """Split a list of ids as Hermes does."""
    return [one.strip() for one in text.split(",") if one.strip()]


def platform_admissions(resolved: Resolved) -> Iterator[PlatformAdmission]:
    """Yield the platforms that would start and that check their users."""
    for access in resolved.platforms:
        variable = access_reader(resolved.world, access.name).lists[0]
        if variable:
            yield _door(resolved.world, access, variable)


def _door(inputs: SettingInputs, access: Access, variable: str) -> PlatformAdmission:
    lists = tuple(access_reader(inputs, access.name).user_lists())
    others = [inputs.getenv(name) for name in _OTHER_WAYS.get(access.name, ())]
    elsewhere = tuple(other for other in others if other)
    policy = _policy(inputs, access)
    policed = None
    if policy == "allowlist" and not lists:
        policed = tuple(split_ids((access.allow_from and access.allow_from.value) or ""))
    trusted = _POLICY_COUNTS <= inputs.release.version < _OPEN_TRUSTED
    return PlatformAdmission(
        access=access,
        variable=variable,
        lists=lists,
        everyone=access.everyone,
        unasked=trusted and access.name in _OWN_POLICY and not lists and policy in ("", "open"),
        policed=policed,
        elsewhere=elsewhere,
        invites=_invites(inputs, access, policy, [*lists, *elsewhere]),
    )


def _policy(inputs: SettingInputs, access: Access) -> str:
    """Return the adapter's own policy for direct messages, if the gateway uses it."""
    if inputs.release.version < _POLICY_COUNTS or access.name not in _OWN_POLICY:
        return ""
    said = access.dm_policy.value if access.dm_policy else ""
    if not said and access.name != "qqbot":
        said = inputs.getenv(f"{access.name.upper()}_DM_POLICY")
    return (said or "").strip().lower()


def _invites(inputs: SettingInputs, access: Access, policy: str, lists: Iterable[Text]) -> bool:
    """Tell whether a stranger gets a pairing code; the platform's own setting comes first."""
    for where in _blocks(inputs, access.name):
        if where.get(_BEHAVIOUR) in ("pair", "ignore"):
            return bool(where[_BEHAVIOUR] == "pair")
    if access.name == "email" and inputs.release.since(0, 18):
        return False
    general = inputs.raw.get(_BEHAVIOUR)
    if general is None and inputs.release.since(0, 19):
        general = section(inputs.raw, "gateway").get(_BEHAVIOUR)
    if general == "ignore":
        return False
    if policy in ("pairing", "allowlist", "disabled"):
        return policy == "pairing"
    roles = "DISCORD_ALLOWED_ROLES"
    return not any(one.source.name != roles for one in lists if one)


def _blocks(inputs: SettingInputs, name: str) -> Iterator[dict[Any, Any]]:
    """Yield the blocks of config.yaml in which this release looks for a platform's setting."""
    yield section(inputs.raw, name)
    if inputs.release.since(0, 16):
        yield section(inputs.raw, "platforms", name)
        yield section(inputs.raw, "gateway", "platforms", name)
        yield section(inputs.raw, "gateway", "platforms", name, "extra")
    yield section(inputs.raw, "platforms", name, "extra")


def is_sandboxed(inputs: SettingInputs) -> bool:
    """Tell whether commands run somewhere else than on this machine."""
    said = section(inputs.raw, "terminal").get("backend") or inputs.getenv("TERMINAL_ENV")
    return str(said or "local").strip().lower() != "local"


def ignored_mentions(inputs: SettingInputs, platform: str, user: str) -> Iterator[Source]:
    """Yield the places in config.yaml that name a user for a platform and that are not used."""
    count = {user_list.source.name for user_list in access_reader(inputs, platform).user_lists()}
    for path in PLATFORM_PLACES.values():
        for more in ((), ("extra",)):
            where = (*path, platform, *more)
            for key, value in section(inputs.raw, *where).items():
                plain = value if isinstance(value, list) else split_ids(str(value))
                source = inputs.document.source(*where, str(key))
                if source.name not in count and user in map(str, plain):
                    yield source


_NUMBER = r"\+?\d{5,20}"
_SHAPES = {
    "discord": r"\d{1,21}",
    "email": r"[\w.+%-]{1,64}@[A-Za-z0-9.-]{1,190}",
    "matrix": r"@[A-Za-z0-9._=/+-]{1,200}:[A-Za-z0-9.:-]{1,200}",
    "signal": rf"{_NUMBER}|[0-9a-fA-F]{{8}}(-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}",
    "slack": r"[A-Z][A-Z0-9]{2,20}",
    "sms": _NUMBER,
    "telegram": r"\d{1,16}",
    "whatsapp": rf"{_NUMBER}(:\d{{1,4}})?(@(s\.whatsapp\.net|lid|c\.us))?",
    "whatsapp_cloud": _NUMBER,
}
_ANY = r"[A-Za-z0-9][A-Za-z0-9@._:+=/-]{0,127}"
_FORMS = {name: pattern(shape) for name, shape in _SHAPES.items()}
_FORM = pattern(_ANY)


def is_id(platform: str, user: str) -> bool:
    """Tell whether this is a valid user id on the platform."""
    return user.isascii() and _FORMS.get(platform, _FORM).fullmatch(user) is not None


def normalise_id(platform: str, user: str, release: tuple[int, ...]) -> str:
    """Return an id in the form in which that release stores it when pairing."""
    if release < (0, 15):
        return user
    bare = user.strip()
    if platform != "whatsapp":
        return bare
    return bare.replace("+", "", 1).partition(":")[0].partition("@")[0] or bare
