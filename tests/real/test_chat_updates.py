"""`/update` said to a real gateway that runs, while it is idle and while it writes an answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hermes_doctor.backup.records.updates import Update, UpdateRecords
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from tests.conftest import need_release
from tests.helpers import support
from tests.helpers.real import chat_partner, gateways, qq
from tests.helpers.real.release_homes import machine
from tools import real_home

pytestmark = pytest.mark.wide
ITSELF = "the update itself"
LEFT = "0.17.0"
"""What 0.19.0 becomes: there is no newer one, and QQ does not start in 0.18."""


@dataclass(frozen=True)
class Place:
    """A home with the hook in it, its own Hermes, and somebody to chat with."""

    home: Path
    hermes: chat_partner.Checkout
    platform: qq.Qq

    @property
    def last(self) -> Update | None:
        """The newest update."""
        return UpdateRecords(Home(self.home)).last()

    @contextmanager
    def chat(self, *first: Path) -> Iterator[chat_partner.Chat]:
        """The gateway, from up until ended."""
        with chat_partner.bot(self.hermes, self.home, self.platform, *first):
            yield chat_partner.Chat(self.platform)


@contextmanager
def placed(folder: Path, version: str, later: str, *hook: str) -> Iterator[Place]:
    """One whose hook was installed before its gateway starts."""
    for one in (version, later, chat_partner.FULL):
        need_release(one)
    home = real_home.make(version, folder / "home")
    hermes = chat_partner.checkout(folder / "hermes", version, later)
    done = support.doctor(
        "hook", "install", *hook, "--home", str(home), env=machine(folder, hermes.hermes.parent)
    )
    assert done.code == 0, done
    with qq.platform(folder) as platform:
        chat_partner.set_up(home, platform)
        yield Place(home, hermes, platform)


@pytest.mark.parametrize(
    ("version", "later", "busy"),
    [
        ("0.13.0", "0.14.0", True),
        (chat_partner.FULL, LEFT, True),
        (chat_partner.FULL, LEFT, False),
    ],
)
def test_an_update_has_its_backup_and_its_check(
    tmp_path: Path, version: str, later: str, busy: bool
) -> None:
    """In the middle of an answer Hermes asks no hook; what it runs is our launcher all the same."""
    with placed(tmp_path, version, later, "--no-shell") as place:
        with place.chat() as chat:
            if busy:
                chat.keep_busy()
            chat.say("/update")
            said = chat.hear(ITSELF)
            assert ("created and verified" in said.partition(ITSELF)[0]) is busy
            begun = place.last
            assert begun is not None
            assert begun.chat
            assert begun.backup is not None
            store = Vault(Home(place.home))
            assert store.verify(store.load(begun.backup)) == []
            assert len(UpdateRecords(Home(place.home)).ids()) == 1
        with place.chat():
            gateways.until(
                lambda: place.last is not None and place.last.stage == "checked",
                "the check by the gateway that was started after the update",
                chat_partner.PATIENCE,
            )
        ended = place.last
    assert ended is not None
    assert ended.id == begun.id
    assert ended.before is not None
    assert ended.after is not None
    assert (ended.before.version, ended.after.version) == (version, later)


@pytest.mark.parametrize("busy", [True, False])
def test_without_a_backup_there_is_none_and_the_chat_is_told_why(
    tmp_path: Path, busy: bool
) -> None:
    """A damaged history; what to type instead is for a shell, and whole."""
    with placed(tmp_path, chat_partner.FULL, LEFT, "--no-shell") as place:
        support.clobber(place.home / "state.db")
        with place.chat() as chat:
            if busy:
                chat.keep_busy()
            chat.say("/update")
            instead = f"update-guard --force --home {place.home} -- hermes update"
            chat.hear("Nothing was changed", "DB-NOTADB", instead)
            if busy:
                chat.hear("update failed")
            assert not any(ITSELF in one for one in chat.heard())
    assert place.last is None
    assert (place.hermes.root / "later").exists()


def test_without_a_hook_the_launcher_of_the_shell_sees_it_through(tmp_path: Path) -> None:
    """`hook install --no-chat`, and a gateway that was started from such a shell."""
    with placed(tmp_path, chat_partner.FULL, LEFT, "--no-chat") as place:
        first = tmp_path / ".local" / "share" / "hermes-doctor" / "bin"
        with place.chat(first) as chat:
            chat.keep_busy()
            chat.say("/update")
            chat.hear("created and verified", ITSELF, f"was updated to {LEFT}")
    ended = place.last
    assert ended is not None
    assert ended.stage == "checked"
    assert not ended.chat
