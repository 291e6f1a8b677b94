"""Check for installations of Hermes that are half upgraded, duplicated or have merge conflicts."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Environments, Evidence, Finding, Probes, Severity, Skip, check, text

_CODES = ["UPD-VENV-BROKEN", "UPD-TWO-VENVS", "UPD-CONFLICT-MARKERS", "UPD-STASH"]


@check(id="hermes-install", group="supervision", codes=_CODES)
def hermes_install(probes: Probes) -> Iterator[Finding]:
    """Can the Hermes that is installed be started at all?"""
    known = probes.environments()
    if not known.found:
        raise Skip("no virtual environment of Hermes was found")
    for one in known.found:
        if one.faults:
            yield Finding(
                code="UPD-VENV-BROKEN",
                severity=Severity.ERROR,
                title=text("Hermes cannot start from {root}", root=one.root),
                subject=str(one.root),
                detail=(
                    text(
                        "{used_by} starts it from there. An update was cut off, or parts "
                        "were removed. Install Hermes into that same environment again.",
                        used_by=one.used_by,
                    )
                ),
                evidence=tuple(Evidence(where, what) for where, what in one.faults),
            )
    if known.unfinished is not None:
        yield Finding(
            code="UPD-VENV-BROKEN",
            severity=Severity.WARNING,
            title="an update of Hermes did not come to its end",
            subject=str(known.unfinished.parent),
            detail="Code and packages may be of two versions. Run `hermes update` again.",
            evidence=(Evidence(str(known.unfinished), "is there"),),
        )
    versions = {version for _, version in known.rivals}
    users = {one.root for one in known.found} & {root for root, _ in known.rivals}
    if len(known.rivals) > 1 and (len(versions) > 1 or len(users) > 1):
        yield Finding(
            code="UPD-TWO-VENVS",
            severity=Severity.WARNING,
            title="two virtual environments of one Hermes, and they differ",
            subject=str(known.rivals[0][0].parent),
            detail=(
                "An update feeds one of them while the service or the command runs the other. Keep "
                "the one that the service starts, install Hermes there, rename the other."
            ),
            evidence=tuple(
                Evidence(str(root), f"Hermes {version or 'is not in it'}{_used(known.found, root)}")
                for root, version in known.rivals
            ),
        )
    if known.conflicts:
        yield Finding(
            code="UPD-CONFLICT-MARKERS",
            severity=Severity.ERROR,
            title="a merge was left half-done in Hermes' own code",
            subject=str(known.conflicts[0].parent),
            detail=(
                "Python stops at the first of these lines with `SyntaxError`. Look at `git stash "
                "list` and `git status` there; `git reset --hard HEAD` keeps what is stashed."
            ),
            evidence=tuple(Evidence(str(path), "holds <<<<<<<") for path in known.conflicts),
        )
    yield from _git(known)


def _git(known: Environments) -> Iterator[Finding]:
    """Report unfinished git operations, and local changes that updates stashed and left so."""
    git = known.git
    if git is None or not (git.stashes or git.unfinished_operation or git.unmerged):
        return
    stuck = bool(git.unfinished_operation or git.unmerged)
    evidence = []
    if git.unfinished_operation:
        evidence.append(Evidence(".git", f"is in the middle of {git.unfinished_operation}"))
    if git.unmerged:
        evidence.append(Evidence(".git/index", f"{git.unmerged} files are not merged"))
    if git.stashes:
        evidence.append(
            Evidence(".git/logs/refs/stash", f"{git.stashes} of hermes-update-autostash")
        )
    yield Finding(
        code="UPD-STASH",
        severity=Severity.WARNING if stuck or git.stashes > 1 else Severity.INFO,
        title=(
            "git was left in the middle of something, so updates of Hermes fail"
            if stuck
            else "updates put own changes to the code aside, and did not put them back"
        ),
        subject=str(known.checkout),
        detail=(
            "See `git status` there and finish or abort it."
            if stuck
            else "See `git stash list` and `git stash show -p` there; keep what you need as a "
            "patch, then `git stash drop` the rest. Else every update begins with it again."
        ),
        evidence=tuple(evidence),
    )


def _used(found: tuple[object, ...], root: object) -> str:
    users = [getattr(one, "used_by", "") for one in found if getattr(one, "root", None) == root]
    return f", used by {users[0]}" if users else ""
