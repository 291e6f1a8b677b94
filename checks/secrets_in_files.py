"""Check for keys and tokens in files that many people see."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.tools import count


@check(id="leaked-secrets", group="secrets", codes=["CRED-IN-LOGS"])
def leaked_secrets(probes: Probes) -> Iterator[Finding]:
    """Are the logs free of keys and tokens?"""
    if not (probes.home / "logs").is_dir():
        raise Skip("no log yet")
    found: dict[str, list[Evidence]] = {}
    for secret in probes.logs.secrets():
        place = f"{secret.log}:{secret.line}" if secret.line else secret.log
        found.setdefault(secret.name, []).append(
            Evidence(place, f"contains the value of {secret.name}")
        )
    redacts = probes.settings.effective().value("HERMES_REDACT_SECRETS").lower() not in (
        "false",
        "0",
        "no",
    )
    for name, evidence in found.items():
        yield Finding(
            code="CRED-IN-LOGS",
            severity=Severity.WARNING,
            title=text("the logs contain {name} in plain text", name=name),
            subject=name,
            detail=(
                "Everyone who sees the logs can use it."
                if redacts
                else "Everyone who sees the logs can use it. HERMES_REDACT_SECRETS is off, so "
                "Hermes does not mask secrets."
            ),
            evidence=tuple(evidence),
            next="Renew it, and delete these logs before you show them to anyone.",
        )


_MOST = 6


@check(id="clear-secrets", group="secrets", codes=["CRED-IN-CONFIG", "CRED-IN-GIT"])
def clear_secrets(probes: Probes) -> Iterator[Finding]:
    """Are keys and tokens only in files that Hermes keeps private?"""
    plain_secrets = probes.settings.plain_secrets()
    tracked = probes.files.tracked_secrets()
    if plain_secrets:
        yield Finding(
            code="CRED-IN-CONFIG",
            severity=Severity.INFO,
            title=text(
                "{keys} in plain text in config.yaml", keys=count(len(plain_secrets), "key")
            ),
            subject="config.yaml",
            detail="Nothing is broken, but everyone who sees the file sees its keys.",
            next=_step([plain_secret.path for plain_secret in plain_secrets]),
            evidence=tuple(
                Evidence(one.source.place, f"{one.path} is a key") for one in plain_secrets[:_MOST]
            ),
        )
    for name in tracked:
        if name != "config.yaml" or plain_secrets:
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
