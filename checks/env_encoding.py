"""Check that .env is UTF-8 without a byte order mark, which would spoil the first name."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check


@check(id="env-encoding", group="configuration", codes=["ENV-BOM"])
def env_encoding(probes: Probes) -> Iterator[Finding]:
    """Can Hermes read .env from its first name on?"""
    env = probes.env()
    if env is None:
        raise Skip("there is no .env")
    mark, text = env.mark, env.text
    readable = mark is None and text is not None and b"\0" not in env.data
    if readable or not env.data:
        return
    if mark == "mangled":
        lost = env.first_name or "its first variable"
        title = f".env begins with what is left of a byte order mark, so {lost} is lost"
        what = "the first two characters are replacement characters; they join the first name"
    elif mark == "UTF-8-SIG":
        lost = env.first_name or "its first variable"
        title = f".env begins with a byte order mark, so {lost} is lost"
        what = "the first three bytes are EF BB BF; they become part of the first name"
    elif text is not None and "\0" not in text:
        title = f".env is written in {mark or 'UTF-16'}, which few releases of Hermes read"
        what = f"the bytes are {mark or 'UTF-16 without a mark'}"
    elif b"\0" in env.data:
        title = ".env holds NUL bytes"
        what = f"the first stands at byte {env.data.index(0)}"
    else:
        title = ".env is not UTF-8: names and values beyond ASCII are garbled"
        what = "the bytes are in an encoding that cannot be told for certain"
    curable = text is not None and "\0" not in text
    yield Finding(
        code="ENV-BOM",
        severity=Severity.ERROR if curable or b"\0" in env.data else Severity.WARNING,
        title=title,
        subject=".env",
        detail=(
            "Editors on Windows save files this way. A token or key on the first line is then "
            "missing although it is plainly there."
            if curable
            else "Save the file as UTF-8 in an editor; check the lines with other letters in them."
        ),
        evidence=(Evidence(".env", what),),
        fix="rewrite-env" if curable else None,
    )
