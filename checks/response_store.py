"""Check the API server's response cache for rows that make requests fail."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, responses

_BAD = f"SELECT count(*) FROM responses WHERE {responses.UNREADABLE}"
_DANGLING = f"SELECT count(*) FROM conversations WHERE {responses.DANGLING}"


@check(id="response-store", group="databases", codes=["RESPSTORE"], by_release=True)
def response_store(probes: Probes) -> Iterator[Finding]:
    """Can the API server read every answer that it keeps?"""
    path = probes.home / "response_store.db"
    if path not in probes.databases().paths:
        raise Skip("there is no response_store.db")
    try:
        found = probes.condition(path)
    except FileNotFoundError:
        raise Skip("response_store.db is gone") from None
    if found.damage or not found.readable or not found.catalog:
        raise Skip("response_store.db cannot be read")
    counts = {}
    for what, sql in (("bad", _BAD), ("dangling", _DANGLING)):
        answer = probes.ask(path, sql)
        counts[what] = answer.rows[0][0] if answer.rows else 0
    evidence = []
    if counts["bad"]:
        evidence.append(Evidence("response_store.db", f"responses: {counts['bad']} rows, no JSON"))
    if counts["dangling"]:
        what = f"conversations: {counts['dangling']} lead to answers that are gone"
        evidence.append(Evidence("response_store.db", what))
    if evidence:
        yield Finding(
            code="RESPSTORE",
            severity=Severity.WARNING,
            title="the API server keeps answers that it cannot give",
            subject="response_store.db",
            detail=(
                "Requests that go on from them fail. It is a cache: taking those rows out loses "
                "nothing that still works."
            ),
            evidence=tuple(evidence),
            fix="evict-responses",
            data=counts,
        )
