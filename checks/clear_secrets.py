"""Find keys in plain text in config.yaml, and files with keys in a git repository."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, text

_MOST = 6


@check(id="clear-secrets", group="secrets", codes=["CRED-IN-CONFIG", "CRED-IN-GIT"])
def clear_secrets(probes: Probes) -> Iterator[Finding]:
    """Are keys and tokens kept where only Hermes looks?"""
    found = probes.in_config()
    tracked = probes.tracked()
    if found:
        more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
        yield Finding(
            code="CRED-IN-CONFIG",
            severity=Severity.INFO,
            title=text(
                "config.yaml holds {number} key{value} as they are",
                number=len(found),
                value="s" * (len(found) > 1),
            ),
            subject="config.yaml",
            detail=(
                text(
                    "It works. Whoever is shown the file has them: move each into .env "
                    "as a variable; for a provider write `key_env: NAME` in place of "
                    "`api_key`, and for a platform set its variable and take the line "
                    "out{value}.",
                    value=more and f" ({more.strip()})",
                )
            ),
            evidence=tuple(
                Evidence(one.source.place, f"{one.path} is written out") for one in found[:_MOST]
            ),
        )
    for name in tracked:
        if name != "config.yaml" or found:
            yield Finding(
                code="CRED-IN-GIT",
                severity=Severity.WARNING,
                title=text("{name} with its keys is kept in a git repository", name=name),
                subject=name,
                detail=(
                    text(
                        "Every copy of the repository has them, its history too. Take the "
                        "file out with `git rm --cached {name}`, name it in .gitignore, "
                        "and renew the keys if the repository ever left this machine.",
                        name=name,
                    )
                ),
                evidence=(Evidence(".git/index", f"lists {name}"),),
            )
