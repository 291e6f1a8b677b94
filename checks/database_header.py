"""A database whose first bytes are gone is refused by SQLite as a whole."""

from collections.abc import Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check

_LOSSES = {
    "state.db": "The gateway goes on without any history and writes none.",
    "kanban.db": "No task of the board can be read or dispatched.",
    "response_store.db": "A gateway with the API server enabled cannot start.",
    "cron/executions.db": "No scheduled job runs.",
}


@check(id="database-header", group="databases", codes=["DB-NOTADB"])
def database_header(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does every database begin as a database does?"""
    databases = probes.databases()
    if not databases.paths and not databases.doubts:
        raise Skip("there is no database yet")
    yield from map(CouldNotLook, databases.doubts)
    for path in databases.paths:
        name = probes.home.name_of(path)
        try:
            header = probes.header(path)
        except CouldNotLook as doubt:
            yield doubt
            continue
        except FileNotFoundError:
            yield CouldNotLook(f"{name}: is gone, or a symlink that leads nowhere")
            continue
        if header.empty or header.in_log or (header.magic and header.page_size):
            continue
        only_magic = header.rest_is_sound and not header.magic
        if only_magic:
            found = "the 16 magic bytes are damaged; all the rest of the header is sound"
        elif header.magic:
            found = "the magic bytes are there, but the page size after them is nonsense"
        else:
            found = f"it begins with {header.looks_like}"
        yield Finding(
            code="DB-NOTADB",
            severity=Severity.CRITICAL,
            title=f"{name} is no longer a database to SQLite",
            subject=name,
            detail=(
                _LOSSES.get(name, "Whatever needs it fails.")
                + " Do not remove the file: "
                + (
                    "its rows are all there."
                    if only_magic
                    else "most rows can often be saved. Copy it away before anything else runs."
                )
            ),
            evidence=(Evidence(name, found),),
            fix="write-magic" if only_magic else None,
        )
