"""Check for a rebuild of the search index that Hermes has started but not finished."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text


@check(id="search-rebuild", group="databases", codes=["DB-FTS-UNFINISHED"], limit=10)
def search_rebuild(probes: Probes) -> Iterator[Finding]:
    """Has Hermes finished rebuilding the search index?"""
    if not probes.databases().paths:
        raise Skip("no database yet")
    for name, _, found in probes.conditions():
        rebuild = found.rebuild
        if rebuild is None or found.flaws or (found.damage and found.damage.searches):
            continue  # damage is reported with its own repair
        total = rebuild.high_water
        if rebuild.progress is None:
            indexed = f"unknown how many of {total:,} messages are indexed"
        else:
            indexed = f"{rebuild.progress:,} of {total:,} messages are indexed"
        yield Finding(
            code="DB-FTS-UNFINISHED",
            severity=Severity.INFO,
            title=text("the search index of {name} is not finished", name=name),
            subject=name,
            detail="Searching older messages is slower until Hermes has finished. Nothing is lost.",
            evidence=(Evidence(name, indexed),),
            next="Run `hermes sessions optimize-storage` to finish it now.",
            data={"progress": rebuild.progress, "high_water": rebuild.high_water},
        )
