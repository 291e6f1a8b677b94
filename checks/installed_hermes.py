"""Check the installed Hermes: that it is there, known and fits the settings."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.gateway import Environments
from hermes_doctor.api.tools import count

_CODES = ["UPD-VENV-BROKEN", "UPD-TWO-VENVS", "UPD-CONFLICT-MARKERS", "UPD-STASH"]


@check(id="hermes-install", group="supervision", codes=_CODES, needs="environment")
def hermes_install(probes: Probes) -> Iterator[Finding]:
    """Can the installed Hermes start?"""
    known = probes.hermes.environments()
    for environment in known.found:
        if environment.faults:
            yield Finding(
                code="UPD-VENV-BROKEN",
                severity=Severity.ERROR,
                title="Hermes cannot start: its Python environment is broken",
                subject=str(environment.root),
                detail=text(
                    "{user} starts Hermes from it. An update was interrupted, or files were "
                    "deleted.",
                    user=environment.used_by,
                ),
                evidence=tuple(Evidence(where, what) for where, what in environment.faults),
                next=text("Install Hermes into {folder} again.", folder=environment.root),
            )
    if known.unfinished is not None:
        yield Finding(
            code="UPD-VENV-BROKEN",
            severity=Severity.WARNING,
            title="an update of Hermes did not finish",
            subject=str(known.unfinished.parent),
            detail="Code and packages may be from two different releases.",
            evidence=(Evidence(str(known.unfinished), "this file is left"),),
            next="Run `hermes update` again.",
        )
    versions = {version for _, version in known.rivals}
    users = {one.root for one in known.found} & {root for root, _ in known.rivals}
    if len(known.rivals) > 1 and (len(versions) > 1 or len(users) > 1):
        yield Finding(
            code="UPD-TWO-VENVS",
            severity=Severity.WARNING,
            title="Hermes has two different Python environments",
            subject=str(known.rivals[0][0].parent),
            detail="An update changes one of them while the service or the command uses the other.",
            evidence=tuple(
                Evidence(
                    str(root), f"Hermes {version or 'is not installed'}{_used(known.found, root)}"
                )
                for root, version in known.rivals
            ),
            next=(
                "Keep the one that the service starts, install Hermes there and rename the other."
            ),
        )
    if known.conflicts:
        yield Finding(
            code="UPD-CONFLICT-MARKERS",
            severity=Severity.ERROR,
            title="Hermes cannot start: its code has merge conflicts",
            subject=str(known.conflicts[0].parent),
            detail="Python stops with `SyntaxError`, so a gateway that starts now cannot answer.",
            evidence=tuple(Evidence(str(path), "contains <<<<<<<") for path in known.conflicts),
            next=(
                "Run `git status` in that folder, then `git reset --hard HEAD`; it keeps stashed "
                "changes."
            ),
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
        evidence.append(Evidence(".git", f"{git.unfinished_operation} is not finished"))
    if git.unmerged:
        evidence.append(Evidence(".git/index", f"{count(git.unmerged, 'file')} not merged"))
    if git.stashes:
        evidence.append(
            Evidence(".git/logs/refs/stash", f"{git.stashes} × hermes-update-autostash")
        )
    yield Finding(
        code="UPD-STASH",
        severity=Severity.WARNING if stuck or git.stashes > 1 else Severity.INFO,
        title=(
            "updates of Hermes fail: an unfinished git command"
            if stuck
            else "updates set your changes to Hermes' code aside"
        ),
        subject=str(known.checkout),
        detail=(
            "Hermes stays on its old release: a git command in its code was interrupted."
            if stuck
            else "Your changes are in a git stash and have no effect."
        ),
        evidence=tuple(evidence),
        next=(
            text("Run `git status` in {folder} and finish or abort it.", folder=known.checkout)
            if stuck
            else text(
                "In {folder}, look at `git stash show -p`, save what you need, then run "
                "`git stash drop`.",
                folder=known.checkout,
            )
        ),
    )


def _used(found: tuple[object, ...], root: object) -> str:
    users = [getattr(one, "used_by", "") for one in found if getattr(one, "root", None) == root]
    return f", used by {users[0]}" if users else ""


@check(
    id="release-breaks",
    group="platforms",
    codes=["QQ-IS-RECONNECT"],
    by_release=True,
    needs="hermes",
)
def release_breaks(probes: Probes) -> Iterator[Finding]:
    """Can the installed Hermes start every configured platform?"""
    installed = probes.hermes.installation()
    if installed is None:
        raise Skip("no Hermes installation found")
    labels = {platform.name: platform.label for platform in probes.settings.platforms()}
    for one in probes.settings.breaks():
        if not one.packed:  # platform-adapters reports files missing from the package
            yield Finding(
                code="QQ-IS-RECONNECT",
                severity=Severity.ERROR,
                title=text(
                    "Hermes {version} cannot start {platform}",
                    version=installed.version,
                    platform=labels.get(one.platform, one.platform),
                ),
                subject=one.platform,
                detail=(
                    "Nobody on this platform gets an answer. The code of this release has a bug "
                    "that no setting avoids."
                ),
                evidence=(
                    Evidence(
                        one.file, text("the argument {argument} is missing", argument=one.lacks)
                    ),
                ),
                next=text("Update Hermes to {release} or newer.", release=one.cured_by)
                if one.cured_by
                else "Ask the Hermes project for a release that fixes it.",
                data={"platform": one.platform},
            )


@check(id="hermes-newer", group="doctor", codes=["HERMES-NEWER"])
def hermes_newer(probes: Probes) -> Iterator[Finding]:
    """Does hermes-doctor know this release of Hermes?"""
    newer = probes.newer()
    if newer is None:
        return
    installed, can_learn = probes.hermes.installation(), probes.can_learn()
    version = f"Hermes {installed.version}" if installed else "no Hermes found here"
    yield Finding(
        code="HERMES-NEWER",
        severity=Severity.INFO,
        title=newer,
        subject="Hermes",
        detail=(
            "hermes-doctor does not check settings, providers, platforms and the structure of "
            "files here. Damage is still reported."
        ),
        evidence=(Evidence("installation", version),),
        next=(
            "Run `hermes-doctor learn`: it asks this Hermes what hermes-doctor does not know."
            if can_learn
            else "Update hermes-doctor."
        ),
        data={"suggests": ("hermes-doctor learn", "ask this newer Hermes, so that all checks run")}
        if can_learn
        else {},
    )
