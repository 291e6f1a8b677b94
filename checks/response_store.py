"""Check the API server's response cache for rows that make requests fail."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, count, responses

_BAD = f"SELECT count(*) FROM responses WHERE {responses.UNREADABLE}"
_DANGLING = f"SELECT count(*) FROM conversations WHERE {responses.DANGLING}"


@check(
    id="response-store",
    group="databases",
    codes=["RESPSTORE"],
    by_release=True,
    needs="response_store.db",
)
def response_store(probes: Probes) -> Iterator[Finding]:
    """Can the API server read all answers in its cache?"""
    path = probes.home / "response_store.db"
    try:
        found = probes.condition(path)
    except FileNotFoundError:
        raise Skip("response_store.db was removed during the check") from None
    if found.damage or not found.readable or not found.catalog:
        raise Skip("response_store.db cannot be read; another check reports it")
    counts = {}
    for what, sql in (("bad", _BAD), ("dangling", _DANGLING)):
        answer = probes.ask(path, sql)
        counts[what] = answer.rows[0][0] if answer.rows else 0
    evidence = []
    if counts["bad"]:
        what = f"responses: {count(counts['bad'], 'row')} without valid JSON"
        evidence.append(Evidence("response_store.db", what))
    if counts["dangling"]:
        what = f"conversations: {count(counts['dangling'], 'row')} whose answer is missing"
        evidence.append(Evidence("response_store.db", what))
    if evidence:
        yield Finding(
            code="RESPSTORE",
            severity=Severity.WARNING,
            title="the API server has saved answers that it cannot read",
            subject="response_store.db",
            detail=(
                "API requests that continue these conversations fail. The file is a cache; "
                "removing the damaged rows loses nothing that still works."
            ),
            evidence=tuple(evidence),
            fix="evict-responses",
            data=counts,
        )
