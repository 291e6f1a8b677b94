"""CFG-YAML: which bytes Hermes would ignore, and which it reads."""

from __future__ import annotations

import os
import zipfile
from datetime import datetime
from pathlib import Path

import pytest
import yaml

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CheckResult, CouldNotLook, Finding, Severity, Status
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.hermes_view import SettingsView
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import support


def look(home: Path) -> tuple[CheckResult, list[Finding]]:
    """What this one check says about a home."""
    checks = [check for check in load.load().checks if check.id == "config-yaml"]
    [result], findings = examine(Probes(Home(home)), checks)
    return result, findings


BROKEN = {
    "tab": (b"model:\n\tdefault: x\n", "config.yaml:2"),
    "two documents": (b"a: 1\n---\nb: 2\n", "config.yaml:2"),
    "list": (b"- a\n- b\n", "config.yaml:1"),
    "scalar": (b"just words\n", "config.yaml:1"),
    "latin-1": (b"a: 1\nname: caf\xe9\n", "config.yaml:2"),
    "gbk": ("a: 1\nname: 中文\n".encode("gbk"), "config.yaml:2"),
    "conflict": (b"<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> x\n", "config.yaml:"),
    "full-width colon": ("model：\n  default: x\n".encode(), "config.yaml:"),
    "open quote": (b'a: "never closed\nb: 1\n', "config.yaml:"),
    "control character": (b"a: 1\nb: \x07\n", "config.yaml:2"),
    "NUL": (b"a: 1\n\0\0\0\0", "config.yaml"),
    "UTF-16": ("a: 1\n".encode("utf-16"), "config.yaml:1"),
    "undefined alias": (b"a: *nowhere\n", "config.yaml:1"),
    "unknown tag": (b"a: !python/object:os.system x\n", "config.yaml:1"),
    "impossible date": (b"a: 2026-13-45\n", "config.yaml"),
    "unhashable key": (b"? [a, b]\n: 1\n? {a: b}\n: 2\n", "config.yaml"),
    "deep": (b"a: " + b"[" * 5000 + b"]" * 5000 + b"\n", "config.yaml"),
}


MENDED = {"tab", "full-width colon", "NUL", "UTF-16"}
"""What a rule mends."""


@pytest.mark.parametrize("case", BROKEN)
def test_broken(home: Path, case: str) -> None:
    """Everything that makes Hermes fall back to its defaults is critical, with its place."""
    data, where = BROKEN[case]
    support.put(home / "config.yaml", data)

    result, [finding] = look(home)

    assert result.status is Status.PROBLEM
    assert (finding.code, finding.severity) == ("CFG-YAML", Severity.CRITICAL)
    assert finding.subject == "config.yaml"
    assert finding.evidence[0].where.startswith(where)
    assert finding.evidence[0].what
    assert finding.since is not None
    assert finding.fix == ("mend-yaml" if case in MENDED else None), "there is no copy to restore"
    assert ("no older copy is valid" in finding.next) is (case not in MENDED)


READ = {
    "empty": b"",
    "comments only": b"# nothing\n",
    "null": b"~\n",
    "one document with a start mark": b"---\na: 1\n",
    "byte order mark": b"\xef\xbb\xbfa: 1\n",
    "carriage returns": b"a: 1\r\nb:\r\n  c: 2\r\n",
    "Chinese": "名字: 中文\n".encode(),
    "duplicate key": b"a: 1\na: 2\n",
}


@pytest.mark.parametrize("case", READ)
def test_read(home: Path, case: str) -> None:
    """What Hermes reads is fine."""
    support.put(home / "config.yaml", READ[case])

    result, findings = look(home)

    assert (result.status, findings) == (Status.OK, [])


def test_absent(home: Path) -> None:
    """Without the file the question does not apply."""
    (home / "config.yaml").unlink()

    result, findings = look(home)

    assert (result.status, findings) == (Status.SKIPPED, [])
    assert "no config.yaml" in (result.reason or "")


@pytest.mark.parametrize("kind", ["folder", "fifo", "dangling", "loop", "huge"])
def test_could_not_look(home: Path, kind: str) -> None:
    """Something else in its place is unknown with the reason, never ok."""
    path = home / "config.yaml"
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "loop":
        path.symlink_to("config.yaml")
    else:
        path.touch()
        os.truncate(path, 5 * 1024 * 1024)

    result, findings = look(home)

    assert (result.status, findings) == (Status.UNKNOWN, [])
    assert "config.yaml" in (result.reason or "")


def test_copies_offer_the_fix(home: Path) -> None:
    """The newest copy that parses is named, wherever it lies; one that does not parse is none."""
    support.put(home / "config.yaml", "a: [\n")
    old = support.put(home / "config.yaml.bak", "a: 1\n")
    os.utime(old, (1_700_000_000, 1_700_000_000))
    support.put(home / "config.yaml.broken", "a: [\n")

    _, [finding] = look(home)

    assert finding.fix == "restore-config"
    assert finding.evidence[-1].where == "config.yaml.bak"
    local = datetime.fromtimestamp(1_700_000_000).strftime("%Y-%m-%d %H:%M")
    assert finding.evidence[-1].what == f"valid copy from {local}"

    newer = support.put(home / "state-snapshots" / "s1" / "config.yaml", "a: 2\n")
    os.utime(newer, (1_750_000_000, 1_750_000_000))
    _, [finding] = look(home)
    assert finding.evidence[-1].where == "state-snapshots/s1/config.yaml"

    (home / "backups").mkdir()
    with zipfile.ZipFile(home / "backups" / "pre-update.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("config.yaml", (2026, 6, 1, 12, 0, 0)), "a: 3\n")
    (home / "backups" / "broken.zip").write_bytes(b"PK\x03\x04 not a zip")
    _, [finding] = look(home)
    assert finding.evidence[-1].where == "backups/pre-update.zip:config.yaml"


@pytest.mark.parametrize("copy", [b"", b"# nothing\n", b"- list\n", b"a: [\n", b"a: \xff\n"])
def test_useless_copies(home: Path, copy: bytes) -> None:
    """A copy without a setting in it is not worth restoring."""
    support.put(home / "config.yaml", "a: [\n")
    support.put(home / "config.yaml.bak", copy)

    _, [finding] = look(home)

    assert finding.fix is None


def test_evidence_quotes_no_value(home: Path) -> None:
    """The parser quotes names of the file; the finding does not."""
    for text in ("a: *canary_secret\n", "a: !canary_secret x\n", "a: %canary_secret\n"):
        support.put(home / "config.yaml", text)

        _, [finding] = look(home)

        assert "canary" not in str(finding)


@pytest.mark.parametrize(
    "text", ["model:\n  provider:\topenrouter\n", "a: b\t# c\n", "{u: http://x?y=1}\n", "[x?y]\n"]
)
def test_what_only_libyaml_accepts(home: Path, text: str) -> None:
    """The gateway reads with PyYAML's own parser; its verdict is the one that counts."""
    support.put(home / "config.yaml", text)
    try:
        rejected = not isinstance(yaml.safe_load(text), dict)
    except yaml.YAMLError:
        rejected = True

    assert ("CFG-YAML" in support.check(home).codes) is rejected


def test_copies_that_could_not_be_looked_at(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not to have looked is not to have found none."""

    def fail(_: Probes) -> None:
        raise CouldNotLook("it took too long")

    support.put(home / "config.yaml", b"a: [\n")
    monkeypatch.setattr(SettingsView, "config_copies", fail)

    result, [finding] = look(home)

    assert "Correct the file" in finding.next
    assert "no older copy" not in finding.next
    assert finding.fix is None
    assert "it took too long" in (result.reason or "")


CAUSES = {
    "a tab": (b"model:\n\tdefault: x\n", "tab", 2, "<TAB>default: x"),
    "a tab after the colon": (b"model:\n  provider:\topenrouter\n", "tab", 2, "provider:<TAB>"),
    "a colon in a value": (b"a: 1\nnote: see: this\n", "colon followed by a space", 2, "note: "),
    "deeper": (b"model: x\n  provider: y\n", "indented deeper", 2, "provider: y"),
    "an open quote": (b'a: 1\nb: "canary\nc: 2\n', "opens in line 2", 2, "b: "),
    "conflict markers": (b"a: 1\n<<<<<<< HEAD\nb: 1\n", "conflict", 2, ""),
    "two documents": (b"a: 1\n---\nb: 2\n", "second document", 2, "---"),
    "a full-width colon": ("a: 1\nb：2\nc: 3\n".encode(), "full-width colon", 2, ""),
    "odd blanks": ("m:\n\u00a0 a: x\n  b: y\n".encode(), "only look like spaces", 2, "a: "),
    "curly quotes": ("m: {a: “x, b: 1: 2”}\n".encode(), "curly quotes", 1, ""),
    "an at sign": (b"a: @canary\n", "begins with @", 1, "a: "),
    "a star": (b"a: *canary\n", "begins with *", 1, "a: "),
    "a backslash": (b'a: "C:\\Users"\n', "backslash", 1, "a: "),
    "a bracket": (b"a: [1, 2\nb: 3\n", "bracket", 2, "b: "),
    "a block that does not fit": (b"a:\n  b: 1\n c: 2\n", "same number of spaces", 3, "c: "),
    "UTF-16": ("a: 1\n".encode("utf-16"), "UTF-16", None, ""),
    "Latin-1": (b"a: caf\xe9\n", "save it as UTF-8", 1, "a: "),
    "NUL": (b"a: 1\n\0\0", "NUL bytes", 2, ""),
    "a list": (b"- a\n", "begins with a dash", 1, ""),
}


@pytest.mark.parametrize("case", CAUSES)
def test_usual_causes(home: Path, case: str) -> None:
    """The cause is said in words, and its line shown with what could be secret hidden."""
    data, words, line, shown = CAUSES[case]
    support.put(home / "config.yaml", data)

    _, [finding] = look(home)

    assert words in finding.detail
    assert "canary" not in str(finding)
    if line is not None:
        assert finding.evidence[-1].where == f"config.yaml:{line}"
        assert shown in finding.evidence[-1].what


def test_a_mend_comes_before_a_copy(home: Path) -> None:
    """A rule that keeps every edit is better than an older copy."""
    support.put(home / "config.yaml.bak", "a: 1\n")
    support.put(home / "config.yaml", b"model:\n\tdefault: x\n")

    _, [finding] = look(home)

    assert finding.fix == "mend-yaml"


@pytest.mark.parametrize("data", [b"a:\n\tb:\n\t  c: 1\n    d: 2\n", b"a: &x\n\tb: 1\nc: *x\n"])
def test_no_mend_that_guesses(home: Path, data: bytes) -> None:
    """Where the width of a tab decides what belongs to what, a person does."""
    support.put(home / "config.yaml", data)

    _, [finding] = look(home)

    assert finding.fix is None


@pytest.mark.parametrize(
    ("config", "title"),
    [
        ("- a\n- b\n", "config.yaml is a list, not settings"),
        ("model\n", "config.yaml contains no settings"),
    ],
)
def test_valid_without_settings(home: Path, config: str, title: str) -> None:
    """Valid YAML that is not a mapping is not called invalid."""
    support.put(home / "config.yaml", config)

    [finding] = look(home)[1]

    assert finding.title == title
