"""Check for a rebuild of the search index that Hermes has started but not finished."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text


@check(id="search-rebuild", group="databases", codes=["DB-FTS-UNFINISHED"], limit=10)
def search_rebuild(probes: Probes) -> Iterator[Finding]:
    """Has Hermes finished rebuilding the search index?"""
    if not probes.databases().paths:
        raise Skip("there is no database yet")
    for name, _, found in probes.conditions():
        rebuild = found.rebuild
        if rebuild is None or found.flaws or (found.damage and found.damage.searches):
            continue  # damage is reported with its own repair
        total = rebuild.high_water
        indexed = f"{rebuild.progress} of {total} messages are indexed again"
        if rebuild.progress is None:
            indexed = f"none of {total} messages is known to be indexed again"
        yield Finding(
            code="DB-FTS-UNFINISHED",
            severity=Severity.INFO,
            title=text("Hermes has not finished the search index of {name}", name=name),
            subject=name,
            detail="Older messages are found more slowly until then; nothing is lost. Run "
            "`hermes sessions optimize-storage` to finish it. hermes-doctor leaves it alone.",
            evidence=(Evidence(name, indexed),),
            data={"progress": rebuild.progress, "high_water": rebuild.high_water},
        )
