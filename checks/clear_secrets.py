"""Find keys in plain text in config.yaml, and files with keys in a git repository."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, count, text

_MOST = 6


@check(id="clear-secrets", group="secrets", codes=["CRED-IN-CONFIG", "CRED-IN-GIT"])
def clear_secrets(probes: Probes) -> Iterator[Finding]:
    """Are keys and tokens only in files that Hermes keeps private?"""
    found = probes.in_config()
    tracked = probes.tracked()
    if found:
        yield Finding(
            code="CRED-IN-CONFIG",
            severity=Severity.INFO,
            title=text("{keys} in plain text in config.yaml", keys=count(len(found), "key")),
            subject="config.yaml",
            detail="Nothing is broken, but everyone who sees the file sees its keys.",
            next=(
                "Move each key into .env. Then write `key_env: NAME` instead of `api_key` for a "
                "provider, or delete the line for a platform."
            ),
            evidence=tuple(
                Evidence(one.source.place, f"{one.path} is a key") for one in found[:_MOST]
            ),
        )
    for name in tracked:
        if name != "config.yaml" or found:
            yield Finding(
                code="CRED-IN-GIT",
                severity=Severity.WARNING,
                title=text("git tracks {file} with its keys", file=name),
                subject=name,
                detail="Every copy of the repository has the keys, also in its history.",
                next=text(
                    "Run `git rm --cached {file}`, add {file} to .gitignore, and replace the keys "
                    "if the repository has left this machine.",
                    file=name,
                ),
                evidence=(Evidence(".git/index", text("lists {file}", file=name)),),
            )
