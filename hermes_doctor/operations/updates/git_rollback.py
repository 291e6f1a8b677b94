"""Sets a checkout of Hermes back to a commit without moving branches or losing changes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import limits, root_parent
from hermes_doctor.core.system.accounts import Account, refuse_untrusted
from hermes_doctor.hermes.installation.details import InstallationDetails
from hermes_doctor.hermes.installation.find import git_folder
from hermes_doctor.repair.gateway.manager_commands import login_environment

LIMIT = 120.0
_WHO = ("-c", "user.name=hermes-doctor", "-c", "user.email=hermes-doctor@localhost")
"""`git stash` needs an author, and many servers have none configured."""
_MESSAGE = "hermes-doctor: before a rollback"
_BUSY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")


class CheckoutPlan(NamedTuple):
    """The commands that check out the old commit, and notes on where everything else is kept."""

    commands: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


def is_clean(checkout: str, user: Account) -> bool | None:
    """Whether no tracked file is changed; None if git cannot say."""
    try:
        return not _git(checkout, user, "status", "--porcelain", "--untracked-files=no")
    except CannotFix:
        return None


def commit_of(checkout: str, user: Account) -> str | None:
    """The commit that is checked out, according to git; None if git cannot say."""
    return _commit(checkout, "HEAD", user)


def checkout_rollback(
    before: InstallationDetails, now: InstallationDetails | None, name: str, user: Account
) -> CheckoutPlan:
    """The commands of the rollback; raise CannotFix if git is in the middle of something."""
    checkout, revision = before.checkout, before.revision
    if checkout is None or revision is None:
        raise CannotFix("The previous commit of the checkout is unknown. Check it out yourself.")
    _refuse_half_done(checkout, user)
    moved = now is None or now.revision != revision
    elsewhere = before.branch is not None and (now is None or now.branch != before.branch)
    if not moved and not elsewhere and before.clean is not True:
        return CheckoutPlan()  # changes by hand were there before the update, too
    dirty = is_clean(checkout, user) is False
    blocked = _in_the_way(checkout, revision, user) if moved else []
    git = ("git", "-C", checkout, *_WHO)
    commands: list[tuple[str, ...]] = []
    notes = []
    if moved:
        kept = _free_name(checkout, name, user)
        commands.append((*git, "branch", kept, "HEAD"))
        notes.append(f"the current commits are kept in branch {kept}")
    if dirty:
        commands.append((*git, "stash", "push", "--message", _MESSAGE))
    if blocked:
        literal = [f":(literal){path}" for path in blocked]
        commands.append((*git, "stash", "push", "--all", "--message", _MESSAGE, "--", *literal))
    if dirty or blocked:
        notes.append(f"your changes are kept in git's stash: git -C {checkout} stash list")
    if before.branch and _commit(checkout, f"refs/heads/{before.branch}", user) == revision:
        if moved or elsewhere:
            commands.append((*git, "checkout", "--quiet", before.branch))
    elif moved:
        commands.append((*git, "checkout", "--quiet", "--detach", revision))
        if before.branch:
            notes.append(
                f"branch {before.branch} is not moved; the checkout is detached at {revision[:12]}"
            )
    return CheckoutPlan(tuple(commands), tuple(notes))


def unmerged_files(checkout: str, user: Account) -> list[str]:
    """Files with merge conflicts."""
    lines = _lines(checkout, user, "ls-files", "--unmerged")
    return sorted({line.partition("\t")[2] for line in lines})


def _refuse_half_done(checkout: str, user: Account) -> None:
    names = unmerged_files(checkout, user)
    if names:
        shown = " ".join(names[:5]) + (" …" if len(names) > 5 else "")
        raise CannotFix(
            "A git merge is unfinished in {folder}: {files}. Resolve the conflicts, "
            "then: git -C {folder} add {files}",
            folder=checkout,
            files=shown,
        )
    for name in _BUSY:
        if (git_folder(Path(checkout)) / name).exists():
            raise CannotFix(
                "A git operation is unfinished in {folder} ({name}). Finish it first, "
                "see: git -C {folder} status",
                folder=checkout,
                name=name,
            )


def _in_the_way(checkout: str, revision: str, user: Account) -> list[str]:
    """Untracked files that the checkout would overwrite."""
    ours = set(_lines(checkout, user, "ls-files", "--others", "-z", end="\0"))
    theirs = _lines(checkout, user, "ls-tree", "-r", "--name-only", "-z", revision, end="\0")
    return sorted(ours.intersection(theirs))


def _free_name(checkout: str, name: str, user: Account) -> str:
    """The name of a branch that does not exist yet, or that is at the current commit."""
    head = _commit(checkout, "HEAD", user)
    for number in range(1, 1000):
        branch = f"hermes-doctor/before-rollback-{name}" + (f"-{number}" if number > 1 else "")
        if _commit(checkout, f"refs/heads/{branch}", user) in (None, head):
            return branch
    raise CannotFix(
        "Too many branches hermes-doctor/before-rollback-{name} exist. Delete some.", name=name
    )


def _commit(checkout: str, name: str, user: Account) -> str | None:
    try:
        words = ("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return _git(checkout, user, *words).strip() or None
    except CannotFix:
        return None


def _lines(checkout: str, user: Account, *words: str, end: str = "\n") -> list[str]:
    return [line for line in _git(checkout, user, *words).split(end) if line]


def _git(checkout: str, user: Account, *words: str) -> str:
    """The output of a read-only git command, run as the home's owner."""
    folder = git_folder(Path(checkout))
    for place in (
        Path(checkout),
        folder,
        folder / "config",
        folder / "hooks",
    ):  # these name programs
        if place == Path(checkout) or os.path.lexists(place):
            refuse_untrusted(place, user)
    command = ["git", "-C", checkout, "-c", "core.fsmonitor=false", *words]
    if root_parent.is_separate():  # git runs programs that the checkout names
        code, said = root_parent.ask_root("git", command)
    else:
        code, said = run_git(command, user)
    if code:
        raise CannotFix(
            "git {command} failed in {folder} with exit code {code}.",
            command=words[0],
            folder=checkout,
            code=code,
        )
    return str(said)


def run_git(command: Sequence[str], user: Account) -> tuple[int, str]:
    """Run git as this user, without a terminal; return its exit code and output."""
    env = dict(os.environ) if user.is_us else login_environment(user)
    options: dict[str, object] = user.options()
    try:
        with limits.lifted():
            done = subprocess.run(
                command,
                env={**env, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LIMIT,
                start_new_session=True,
                check=False,
                **options,  # type: ignore[call-overload]
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotFix(
            "Could not run git ({reason}). Install git or correct the PATH.",
            reason=type(error).__name__,
        ) from None
    return done.returncode, os.fsdecode(done.stdout)
