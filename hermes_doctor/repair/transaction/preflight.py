"""Check before a run writes anything whether it can succeed, and refuse it if not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.backup.vault.free_space import check_free_space
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.system import mounts, root_parent
from hermes_doctor.core.system.accounts import shared_folder
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.processes import gateway_processes
from hermes_doctor.hermes.processes.home_of import holds_lock_in
from hermes_doctor.repair.transaction import paths
from hermes_doctor.repair.transaction.gateway import GatewayPause
from hermes_doctor.repair.transaction.gateway_steps import starts_stopped, unsafe_start
from hermes_doctor.repair.transaction.stage import room_for
from hermes_doctor.repair.transaction.targets import Item, MachineActions, Refused, Target
from hermes_doctor.sqlite.files import sidecars


class Preflight(NamedTuple):
    """The checks that must pass before a run of a given kind changes a home."""

    home: Home
    vault: Vault
    kind: str

    def look(
        self,
        targets: Sequence[Target],
        gateway: GatewayPause,
        machine_actions: MachineActions,
    ) -> None:
        """Raise Trouble or Refused if the run, or one of its items, cannot be done."""
        st = os.stat(self.home.path)
        uid = st.st_uid
        if root_parent.operator() == 0 and (shared := shared_folder(self.home.path)):
            raise Trouble(
                "Other users may write to {folder}, so root must not work in it. "
                "Nothing was changed. To solve it: chmod go-w {folder}",
                folder=shared,
            )
        if root_parent.operator() not in (0, uid):
            raise Trouble(
                "{home} belongs to another user (uid {uid}). Nothing was "
                "changed. Run this as that user, or with sudo.",
                home=self.home.path,
                uid=uid,
            )
        if gateway and os.environ.get("_HERMES_GATEWAY"):
            raise Trouble(
                "This command runs inside the gateway, and the repair would restart the gateway "
                "and cut off its answer. Run it from your own shell."
            )
        try:
            excused = gateway.allowed_holders()
        except CannotFix as why:
            raise Trouble("{reason}. Nothing was changed.", reason=str(why).rstrip(".")) from why
        for target in targets:
            try:
                self._look_at(target, uid, at_work=bool(excused))
            except Trouble as why:
                self._refuse(targets, target.items, str(why))
        for reason, items in machine_actions.refused_actions():
            self._refuse(
                targets,
                items,
                f"{reason.rstrip('.')}. Nothing was changed.",
                machine_actions.items(),
            )
        self.refuse_holders(targets, excused)
        self._check_room(targets)

    def refuse_unsafe_start(self, items: Sequence[Item], targets: Sequence[Target]) -> None:
        """Refuse a start that would harm a database: its repair may have been declined."""
        starting = [n for n, item in enumerate(items) if starts_stopped(item.steps)]
        if self.kind != "fix" or not starting:
            return
        why = unsafe_start(Probes(self.home), {target.path for target in targets})
        if why:
            raise Refused(why, starting)

    def _check_room(self, targets: Sequence[Target]) -> None:
        """Check free space for the staged files and, if it is on the same disk, for the backup."""
        disks: dict[int, tuple[Path, list[Target]]] = {}
        for target in targets:
            if target.replaces:
                place = next(parent for parent in target.path.parents if parent.exists())
                disks.setdefault(os.stat(place).st_dev, (place, []))[1].append(target)
        vault = next(path for path in (self.vault.root, *self.vault.root.parents) if path.exists())
        backup = sum(
            target.change.expect.size
            for target in targets
            if target.replaces and not target.change.growing
        )
        for disk, (place, made) in disks.items():
            wanted = room_for(made)
            if not wanted and all(one.change.absent for one in made):
                continue
            check_free_space(place, wanted + (backup if os.stat(vault).st_dev == disk else 0))

    def _look_at(self, target: Target, uid: int, *, at_work: bool) -> None:
        """Check that one path is unchanged since the plan, that we may change it, and that we can.

        Files that the running gateway still writes are compared after it is stopped.
        """
        path, owner = target.path, target.change.expect.uid
        change = target.change
        moves = at_work and (target.is_database or change.growing or change.restored)
        if snapshot(path) != target.change.expect and not moves:
            raise Trouble(
                "Another program changed {path} just now. Nothing was changed. Try again.",
                path=path.name,
            )
        euid = root_parent.operator()
        if euid not in (0, owner) and target.change.expect.kind == "file":
            raise Trouble(
                "{path} belongs to uid {owner}, so you may not change it. Nothing "
                "was changed. Run this with sudo.",
                path=path.name,
                owner=owner,
            )
        paths.refuse_foreign_paths(self.home, [self.home.name_of(path)], "The plan")
        handed = target.change.owner is not None and not target.replaces
        foreign = target.change.expect.kind == "file" and owner != uid
        if euid == 0 and uid != 0 and foreign and not handed:
            raise Trouble(
                "{file} belongs to uid {owner}, not to the owner of the home. "
                "Nothing was changed. To solve it: chown {uid} {path}",
                file=path.name,
                owner=owner,
                uid=uid,
                path=path,
            )
        if mounts.is_immutable(path):
            raise Trouble(
                "{file} is marked immutable (lsattr shows i or a). Nothing was "
                "changed. To solve it: chattr -ia {path}",
                file=path.name,
                path=path,
            )
        if target.replaces and mounts.is_mount(path):
            raise Trouble(
                "{path} is a mount point, so it cannot be replaced. Nothing was "
                "changed. Change the file that is mounted there.",
                path=path,
            )
        _refuse_unwritable(path)

    def refuse_holders(self, targets: Sequence[Target], allowed_pids: Sequence[int]) -> None:
        """Refuse to replace a database that a process has open, or may open at any moment."""
        wanted = [target for target in targets if target.is_database]
        if not wanted:
            return
        held = gateway_processes.processes_using(
            p for t in wanted for p in (t.path, *sidecars(t.path))
        )
        try:
            gateways = gateway_processes.gateways_of(self.home)
            running = [gateway.pid for gateway in gateways if not self._is_kept_out(gateway.pid)]
        except CouldNotLook:
            running = []
        for target in wanted:
            mine = {p for path in (target.path, *sidecars(target.path)) for p in held.get(path, [])}
            pids = sorted((mine or set(running)) - set(allowed_pids))
            if not pids:
                continue
            who = ", ".join(str(pid) if pid else "of another container" for pid in pids)
            why = text(
                "{file} is in use by process {pids}. Nothing was changed. Stop the gateway (and "
                "any other Hermes on this home) first, then try again.",
                file=target.path.name,
                pids=who,
            )
            self._refuse(targets, [n for one in wanted for n in one.items], why)

    def _is_kept_out(self, pid: int) -> bool:
        """Whether a gateway that has started cannot work, because we hold the lock of the home."""
        ours, its = (holds_lock_in(one, self.home.path) for one in (os.getpid(), pid))
        return ours is True and its is False

    def _refuse(
        self,
        targets: Sequence[Target],
        items: Sequence[int],
        why: str,
        others: Sequence[int] = (),
    ) -> None:
        """Refuse these items, or the whole run if it has no others."""
        every = {n for target in targets for n in target.items} | set(others)
        if self.kind != "fix" or set(items) >= every:
            raise Trouble(why)
        raise Refused(why, items)


def _refuse_unwritable(path: Path) -> None:
    """Raise Trouble if no file can be written to this path."""
    folder = next(place for place in path.parents if place.exists())
    if not folder.is_dir():
        raise Trouble(
            "{folder} is not a folder, so {path} cannot be written there. "
            "Nothing was changed. Move it away first.",
            folder=folder,
            path=path.name,
        )
    if path.is_dir() and not path.is_symlink():
        raise Trouble(
            "{path} is now a folder. Nothing was changed. Move it away first, or leave it out.",
            path=path,
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Trouble(
            "Could not write to {folder}: the disk is read-only, or you lack permission. "
            "Nothing was changed. Correct that first.",
            folder=folder,
        )
