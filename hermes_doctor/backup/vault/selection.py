"""Select files of a home by the name of a group (such as `history`) or by glob."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from hermes_doctor.core.home import SIDECARS
from hermes_doctor.core.lazy import NamedTuple

STORES: Mapping[str, tuple[str, ...]] = {
    "config": ("config.yaml", "SOUL.md"),
    "env": (".env",),
    "auth": ("auth.json", ".anthropic_oauth.json", "auth"),
    "history": ("state.db",),
    "sessions": ("sessions",),
    "kanban": ("kanban.db", "kanban"),
    "cron": ("cron",),
    "pairing": ("pairing", "platforms/pairing", "feishu_comment_pairing.json"),
    "webhooks": ("webhook_subscriptions.json",),
    "channels": ("channel_directory.json", "channel_aliases.json"),
    "memories": ("memories", "memory_store.db"),
    "skills": ("skills",),
    "whatsapp": ("whatsapp", "platforms/whatsapp"),
    "weixin": ("weixin", "platforms/weixin"),
    "matrix": ("matrix", "platforms/matrix"),
}
"""The files and folders of each store."""
SECRET_STORES = ("env", "auth", "pairing", "webhooks", "whatsapp", "weixin", "matrix")
"""Stores without which users have to log in, pair or scan a code again."""
READ_ON_DEMAND = ("skills/*", "memories/*", "SOUL.md", "pairing/*", "platforms/pairing/*")
"""Files that a gateway reads when needed and never overwrites from memory."""


PROCESS_FILES = frozenset(
    {
        "gateway_state.json",
        "gateway.pid",
        "gateway.lock",
        "gateway.heartbeat",
        "auth.lock",
        "cron.pid",
        "processes.json",
        "ticker_heartbeat",
        "ticker_last_success",
    }
)
"""Files that describe former processes: restored, they would be wrong. Hermes does not import them
either. So are hidden lock files and those of databases."""
GATEWAY_FILES = (
    "logs", "state", "sessions", "gateway-starts.log", "channel_directory.json",
    "response_store.db", "gateway/restart_loop.json",
)  # fmt: skip
"""What a gateway writes by itself all the time: that it changed is not the work of a person."""


def matches(name: str, glob: str) -> bool:
    """Whether a path, or a folder of it, matches a glob; `*` also matches slashes."""
    for end in SIDECARS:
        if name.endswith(".db" + end):
            name = name.removesuffix(end)
    glob = glob.rstrip("/").removeprefix("./")
    while name and not fnmatchcase(name, glob):
        name = name.rpartition("/")[0]
    return bool(name)


class Choice(NamedTuple):
    """The operator's choice of files to include in or exclude from a backup."""

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def wants(self, name: str, *, anyway: bool) -> bool:
        """Whether a path is wanted; included paths always are, others if `anyway` is set."""
        if anyway and not self.exclude:
            return True
        if any(matches(name, glob) for glob in self.include):
            return True
        return anyway and not any(matches(name, glob) for glob in self.exclude)

    def may_want_in(self, folder: str) -> bool:
        """Whether something below a folder that is left out may be included explicitly."""
        parts = PurePosixPath(folder).parts
        for glob in self.include:
            asked = PurePosixPath(glob.rstrip("/").removeprefix("./")).parts
            if asked[:1] and ("*" in asked[0] or matches(folder, glob)):
                return True
            if all(fnmatchcase(a, b) for a, b in zip(parts, asked, strict=False)):
                return True
        return False

    @property
    def words(self) -> tuple[str, ...]:
        """The choice as it is written to the manifest."""
        return (*(f"+{one}" for one in self.include), *(f"-{one}" for one in self.exclude))


def of_store(store: str, names: Iterable[str]) -> list[str]:
    """The paths that belong to a store."""
    return [name for name in names if any(matches(name, glob) for glob in STORES[store])]


def select_paths(words: Sequence[str], names: Sequence[str]) -> tuple[set[str], list[str]]:
    """The paths that words select (paths, folders, globs, stores), and words that select none."""
    selected: set[str] = set()
    unknown = []
    for word in words:
        mine = [name for name in names if matches(name, word)]
        if word in STORES:
            mine += of_store(word, names)
        selected |= {name for name in mine if name == word or not is_process_file(name)}
        if not mine:
            unknown.append(word)
    return selected, unknown


def is_process_file(name: str) -> bool:
    """Whether a file is useful only to the process that wrote it."""
    last = PurePosixPath(name).name
    return last in PROCESS_FILES or (last.endswith(".lock") and (last[0] == "." or ".db." in last))


def is_read_on_demand(name: str) -> bool:
    """Whether a running gateway uses a changed file at once."""
    return any(matches(name, glob) for glob in READ_ON_DEMAND)


def is_gateway_file(name: str) -> bool:
    """Whether a running gateway changes a file all the time."""
    return is_process_file(name) or any(matches(name, glob) for glob in GATEWAY_FILES)


def describe_important(names: Iterable[str]) -> list[str]:
    """Name the databases and the stores with secrets among paths that are left out."""
    names = list(names)
    databases = [name for name in names if name.endswith(".db")]
    stores = [store for store in SECRET_STORES if of_store(store, names)]
    return [*(f"{name} (a database)" for name in databases), *(f"{s} (secrets)" for s in stores)]
