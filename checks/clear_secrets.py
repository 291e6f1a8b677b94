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
            next=_step([one.path for one in found]),
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


def _step(paths: list[str]) -> str:
    """Return where the keys at these paths belong, so that Hermes still reads them."""
    kinds = {_kind(path) for path in paths}
    if kinds == {"provider"}:
        return (
            "Move each key into .env as NAME=KEY, and write `api_key: ${NAME}` in its place. Then "
            "restart the gateway."
        )
    if kinds == {"fallback"}:
        return (
            "Move each key into .env as NAME=KEY, and write `key_env: NAME` in place of the line. "
            "Then restart the gateway."
        )
    if kinds == {"other"}:
        return "Set the variable of the platform in .env, and delete the line in config.yaml."
    return (
        "Move each key into .env. Run `hermes-doctor explain CRED-IN-CONFIG` to see what to write "
        "in its place."
    )


def _kind(path: str) -> str:
    section = path.replace("[", ".").split(".")[0]
    if section in ("model", "providers", "custom_providers", "auxiliary"):
        return "provider"
    return "fallback" if section in ("fallback_providers", "fallback_model") else "other"
