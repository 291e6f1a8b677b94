"""Look at a home with the rights of its owner: as root, in a separate process that has become him.

If the owner may not read this tool and Python, root sends the process the modules that it imports.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hermes_doctor.core import home as homes, outgoing
from hermes_doctor.core.known_secrets import watch_home
from hermes_doctor.core.lazy import EMPTY
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.preferences import effective, places
from hermes_doctor.core.redaction import clean
from hermes_doctor.core.secret_forms import Secret
from hermes_doctor.core.system import files, privileges

if TYPE_CHECKING:
    from hermes_doctor.core.home import Home
    from hermes_doctor.core.model import Report
    from hermes_doctor.core.system.closed_folders import LentFolder
    from hermes_doctor.core.system.privileges import Privileges
    from hermes_doctor.core.system.separate_process import Action
    from hermes_doctor.diagnosis.plugins.load import Plugins
    from hermes_doctor.operations.history.observation import EndedRun

T = TypeVar("T")


def look(
    home: Path,
    work: Callable[[], T],
    modules: tuple[str, ...] = (),
    plugins: Plugins | None = None,
    *,
    limit: float = math.inf,
    otherwise: Callable[[], T] | None = None,
    repairs: bool = False,
    more: Mapping[str, Action] = EMPTY,
    keep: Sequence[int] = (),
    lent: Sequence[LentFolder] | None = None,
) -> T:
    """Return what `work` returns; as root in another user's home, it runs in a separate process.

    The result then consists of plain values, of those of `hermes_doctor.core.model` and the
    `modules`, and comes within `limit` seconds. In any other home, return what `otherwise` does, if
    given. If it `repairs` the home, root does for it also what `repair/gateway/root_actions.py`
    lists. `more` are actions of the command itself, `keep` open files that the process gets, and
    `lent` vaults of root's that it may use; without these, it may use the one of the settings.
    """
    user = owner_of(home)
    if user is None:
        return (otherwise or work)()
    from hermes_doctor.cli import lent_vaults
    from hermes_doctor.core import known_secrets
    from hermes_doctor.core.home import Home
    from hermes_doctor.core.system import modules_of_root, separate_process
    from hermes_doctor.hermes.knowledge import releases

    closed = _prepare(user, modules, plugins)
    # The other process reads the home's secrets, too: only it opens files there.
    outgoing.known.remove_source(home)

    def work_and_tell_secrets() -> tuple[T, list[tuple[str, str]]]:
        if closed:
            modules_of_root.install()
            known_secrets.ask_root_for_words()
            releases.ask_root()
        watch_home(home)
        try:
            result = work()
        except (CannotFix, CouldNotLook, Trouble) as why:  # root does not know what to hide
            raise type(why)(clean(str(why))) from None
        return result, [(one.value, one.name) for one in outgoing.known.all()]

    actions = {**_actions(home, user.uid, closed=closed, repairs=repairs), **more}
    with ExitStack() as until_the_end:
        until_the_end.enter_context(places.remembered())
        if lent is None:
            vault = effective.load().vault(home)
            lending = lent_vaults.lend(Home(home), user.uid, [vault], needed=False)
            lent = until_the_end.enter_context(lending)
        result, secrets = separate_process.run_as(
            *(user, work_and_tell_secrets, actions, modules, limit),
            writes=repairs,
            keep=keep,
            closed=None if user.can_reach else home,
            lent=lent,
        )
    outgoing.known.add(Secret(*secret) for secret in secrets)
    return result


def _actions(home: Path, owner: int, *, closed: bool, repairs: bool) -> dict[str, Action]:
    """What root does for a process of this user, to whom this tool may be closed."""
    from hermes_doctor.core import known_secrets
    from hermes_doctor.core.system import modules_of_root
    from hermes_doctor.diagnosis.probes import root_actions
    from hermes_doctor.hermes.knowledge import releases

    actions = dict(root_actions.actions(home, owner))
    if closed:
        actions["module"] = modules_of_root.send
        actions |= {"knowledge": releases.read_shipped, "used_words": known_secrets.judge_words}
    if repairs:
        from hermes_doctor.repair.gateway import root_actions as repairing

        actions |= repairing.actions(home, owner)
    return actions


def owner_of(home: Path) -> Privileges | None:
    """Return the user as whom root works in a home; None if this process works in it itself."""
    if os.geteuid() != 0 or sys.platform != "linux":
        return None
    from hermes_doctor.core.system import open_files

    files.judge = open_files.refuse_led_out
    try:
        user = privileges.owner_of_home(home)
    except PermissionError:  # a root that may not become others
        return None
    except OSError as error:
        raise CouldNotLook(files.reason(error, home)) from error
    return user


_prepared: dict[tuple[int, tuple[str, ...], bool], bool] = {}
"""By user, modules, and whether with plugins: whether the tool is closed to the user."""


def _prepare(user: Privileges, modules: tuple[str, ...], plugins: Plugins | None) -> bool:
    """Whether the user may not read the tool; what root cannot send is then loaded here."""
    wanted = (user.uid, modules, plugins is not None)
    if wanted not in _prepared:
        _prepared[wanted] = closed = not privileges.may_read(user, list(_own_files()))
        if closed:
            load_binary(modules)
        if closed and plugins is not None:
            _ = (plugins.rules, plugins.explanations, plugins.effects, plugins.fixes)
    return _prepared[wanted]


def know_secrets(home: Path) -> None:
    """Let the owner's process read what to hide, for a command that opens nothing else there."""
    import contextlib

    with contextlib.suppress(CouldNotLook):  # the owner cannot prevent the command by that
        look(home, lambda: None)


def find_home(option: Path | None) -> Home:
    """Find a home for a command that opens nothing there, and know its secrets."""
    home = homes.find(option)
    know_secrets(home.path)
    return home


def look_at(home: Path, examine: Callable[[], Report], plugins: Plugins) -> Report:
    """Return the report of an examination of a home; see `look`."""
    return look(home, examine, plugins=plugins)


def ended_runs(home: Home, known: Sequence[EndedRun]) -> list[EndedRun]:
    """Read the receipts of a home; see `look`."""
    from hermes_doctor.operations.history import observation

    return look(home.path, lambda: observation.ended_runs(home, known), (observation.__name__,))


def _own_files() -> Iterator[str]:
    """Yield Python, its library, and every file of this tool."""
    import hermes_doctor
    from hermes_doctor.diagnosis.plugins.built_in import builtin

    yield from (sys.executable, os.__file__, os.path.dirname(os.__file__))
    yield from (path for path in sys.path if os.path.exists(path))
    tops = (*hermes_doctor.__path__, str(builtin("checks")), str(builtin("fixes")))
    for top in tops:
        for base, folders, names in os.walk(top):
            folders[:] = [name for name in folders if name != "__pycache__"]
            yield base
            yield from (f"{base}/{name}" for name in names)


def load_binary(modules: Sequence[str] = ()) -> None:
    """Load what root cannot send to a process later: modules in C; also these."""
    import importlib

    from hermes_doctor.core.system import modules_of_root
    from hermes_doctor.diagnosis.plugins import load

    _ = load.load().fixes  # mounts the folders of checks and fixes
    modules_of_root.load_binary()
    for name in modules:
        importlib.import_module(name)
