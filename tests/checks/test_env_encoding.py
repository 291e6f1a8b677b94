"""ENV-BOM: encodings of .env that Hermes does not read."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CheckResult, Finding, Severity, Status
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import support
from tests.helpers.gateway_home import Scene, ask

TEXT = "TELEGRAM_BOT_TOKEN=canary-token\nSECOND=two\n"


def look(home: Path) -> tuple[CheckResult, list[Finding]]:
    """What this one check says about a home."""
    checks = [check for check in load.load().checks if check.id == "env-encoding"]
    [result], findings = examine(Probes(Home(home)), checks)
    return result, findings


CURABLE = {
    "mark": (codecs.BOM_UTF8 + TEXT.encode(), "byte order mark"),
    "UTF-16 LE": (codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), "UTF-16"),
    "UTF-16 BE": (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), "UTF-16"),
    "UTF-32 LE": (codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"), "UTF-32"),
    "UTF-32 BE": (codecs.BOM_UTF32_BE + TEXT.encode("utf-32-be"), "UTF-32"),
    "UTF-16 LE without a mark": (TEXT.encode("utf-16-le"), "UTF-16"),
    "UTF-16 BE without a mark": (TEXT.encode("utf-16-be"), "UTF-16"),
    "UTF-16 LE with Chinese": (codecs.BOM_UTF16_LE + "A=中文\n".encode("utf-16-le"), "UTF-16"),
}


@pytest.mark.parametrize("case", CURABLE)
def test_curable(home: Path, case: str) -> None:
    """Where the encoding is certain there is a fix, and no value is shown."""
    data, words = CURABLE[case]
    support.put(home / ".env", data)

    result, [finding] = look(home)

    assert result.status is Status.PROBLEM
    assert (finding.code, finding.severity) == ("ENV-BOM", Severity.ERROR)
    assert (finding.subject, finding.fix) == (".env", "rewrite-env")
    assert words in finding.title
    assert finding.evidence[0].where == ".env"
    assert "canary" not in str(finding)


def test_an_exported_variable_is_lost_too(home: Path) -> None:
    """The mark stands before `export`."""
    support.put(home / ".env", codecs.BOM_UTF8 + b"export TELEGRAM_BOT_TOKEN=x\nB=1\n")

    _, [finding] = look(home)

    assert finding.severity is Severity.ERROR
    assert "TELEGRAM_BOT_TOKEN" in finding.detail


@pytest.mark.parametrize("text", ["", "# mine\nA=1\n", "\nA=1\n", " # a=b\r\nA=1\r\n"])
def test_a_mark_that_spoils_nothing(home: Path, text: str) -> None:
    """If the first line sets no variable, Hermes reads them all."""
    support.put(home / ".env", codecs.BOM_UTF8 + text.encode())

    _, [finding] = look(home)

    assert (finding.severity, finding.fix) == (Severity.INFO, "rewrite-env")
    assert "does not read" not in finding.detail


BY_HAND = {
    "stray NUL": (b"A=1\nB=\x00\xffcanary\n", Severity.ERROR, "NUL"),
    "only NULs": (b"\0" * 64, Severity.ERROR, "NUL"),
    "GBK": ("NAME=中文 canary\n".encode("gbk"), Severity.WARNING, "not UTF-8"),
    "Latin-1": ("NAME=café canary\n".encode("latin-1"), Severity.WARNING, "not UTF-8"),
    "UTF-16 cut off": (codecs.BOM_UTF16_LE + b"A\0=\0x", Severity.ERROR, ""),
    "mark and then GBK": (codecs.BOM_UTF8 + "A=中文\n".encode("gbk"), Severity.WARNING, ""),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_by_hand(home: Path, case: str) -> None:
    """Where the encoding is not certain the finding has no fix and says what to do."""
    data, severity, words = BY_HAND[case]
    support.put(home / ".env", data)

    _, [finding] = look(home)

    assert (finding.severity, finding.fix) == (severity, None)
    assert words in finding.title
    assert "UTF-8" in finding.next
    assert "canary" not in str(finding)


def test_nul_place(home: Path) -> None:
    """The evidence names the byte where the first NUL stands."""
    support.put(home / ".env", b"A=1\nB=\x00\n")

    _, [finding] = look(home)

    assert finding.evidence[0].what == "the first NUL is at byte 6"


@pytest.mark.parametrize("data", [b"", b"A=1\n", "A=中文 😀\n".encode(), b"A=1\r\nB=2\r\n", b"\n"])
def test_healthy(home: Path, data: bytes) -> None:
    """Plain UTF-8 is fine, whatever the line endings."""
    support.put(home / ".env", data)

    result, findings = look(home)

    assert (result.status, findings) == (Status.OK, [])


def test_mark_in_the_middle(home: Path) -> None:
    """A mark that is not at the start is an invisible character of a value, not this fault."""
    support.put(home / ".env", b"A=1\n" + codecs.BOM_UTF8 + b"B=2\n")

    result, findings = look(home)

    assert (result.status, findings) == (Status.OK, [])


def test_absent(home: Path) -> None:
    """Without the file the question does not apply."""
    (home / ".env").unlink()

    result, findings = look(home)

    assert (result.status, findings) == (Status.SKIPPED, [])


def test_could_not_look(home: Path) -> None:
    """A folder in its place is unknown."""
    (home / ".env").unlink()
    (home / ".env").mkdir()

    result, findings = look(home)

    assert (result.status, findings) == (Status.UNKNOWN, [])


@pytest.mark.parametrize(
    ("case", "version", "severity"),
    [
        ("UTF-16 LE", "0.19.0", Severity.INFO),
        ("UTF-16 BE", "0.19.0", Severity.INFO),
        ("UTF-16 LE without a mark", "0.19.0", Severity.INFO),
        ("UTF-16 LE", "0.18.2", Severity.ERROR),
        ("UTF-32 LE", "0.19.0", Severity.ERROR),
        ("mark", "0.19.0", Severity.ERROR),
    ],
)
def test_releases_that_convert(home: Path, case: str, version: str, severity: Severity) -> None:
    """Hermes 0.19 rewrites UTF-16 itself, and nothing else."""
    support.put(home / ".env", CURABLE[case][0])

    _, [finding] = ask("env-encoding", Scene(home, {}, running=False, version=version))

    assert finding.severity is severity
