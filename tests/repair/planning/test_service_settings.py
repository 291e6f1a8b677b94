"""Edits of Compose files: minimal, or refused with what to add by hand."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermes_doctor.core.model import CannotFix
from hermes_doctor.render.diff import redacted_diff
from hermes_doctor.repair.planning.service_settings import EditCompose, change_container
from tests.helpers import compose_homes, support
from tests.helpers.compose_homes import InContainer, container, override, project

TZ = {"environment": {"TZ": "Asia/Shanghai"}}


def edited(folder: Path, wanted: dict[str, Any], **changes: Any) -> bytes:
    """The Compose file with these settings."""
    probes = InContainer(folder / "data", container(folder, **changes))
    [step] = change_container(probes, wanted, "for a test")
    texts = step.texts()
    assert texts is not None
    return texts[2]


def refusal(folder: Path, wanted: dict[str, Any], **changes: Any) -> str:
    """Why the file is not edited."""
    probes = InContainer(folder / "data", container(folder, **changes))
    with pytest.raises(CannotFix) as why:
        list(change_container(probes, wanted, "for a test"))
    return str(why.value)


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        ({"mem_limit": "2g"}, "    mem_limit: 2g\n"),
        (TZ, "      TZ: Asia/Shanghai\n"),
        (
            {"ulimits": {"nofile": {"soft": 65536, "hard": 65536}}},
            "    ulimits:\n      nofile:\n        soft: 65536\n        hard: 65536\n",
        ),
    ],
)
def test_only_lines_are_added(tmp_path: Path, wanted: dict[str, Any], line: str) -> None:
    """Comments, order and every other byte stay."""
    before = project(tmp_path).read_bytes()
    after = edited(tmp_path, wanted)

    assert after.replace(line.encode(), b"", 1) == before
    service = yaml.safe_load(after)["services"]["gateway"]
    assert wanted.items() <= service.items() or service["environment"]["TZ"] == "Asia/Shanghai"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- HERMES_UID=1000\n", "- HERMES_UID=1000\n      - TZ=Asia/Shanghai\n"),
        ("{A: b}  # c\n", "{A: b, TZ: Asia/Shanghai}  # c\n"),
        ("*common\n", None),
    ],
)
def test_variables_in_other_forms(tmp_path: Path, old: str, new: str | None) -> None:
    """A list, braces, or an anchor, which is not changed: it is also used elsewhere."""
    head = "x-common: &common\n  A: b\nservices:\n  gateway:\n    image: i\n    environment:"
    gap = "\n      " if old.startswith("-") else " "
    text = f"{head}{gap}{old}  other:\n    environment: *common\n"
    project(tmp_path, text)
    if new is None:
        told = refusal(tmp_path, TZ)
        assert "`environment: {TZ: Asia/Shanghai}`" in told and "an anchor" in told
    else:
        assert edited(tmp_path, TZ).decode() == text.replace(old, new, 1)


def test_the_file_that_describes_the_service_is_edited(tmp_path: Path) -> None:
    """Of several, the first that has the service; the command names them all."""
    base = support.put(tmp_path / "base.yml", "services:\n  database:\n    image: p\n")
    project(tmp_path)
    more = support.put(tmp_path / "more.yml", "services:\n  gateway:\n    cpus: 1\n")
    files = ",".join(map(str, (base, tmp_path / "compose.yaml", more)))
    labels = {"com.docker.compose.project.config_files": files}
    probes = InContainer(tmp_path / "data", container(tmp_path, Config__Labels=labels))
    [step] = change_container(probes, {"mem_limit": "2g"}, "for a test")
    [note] = step.notes()

    assert step.changes()[0].path == tmp_path / "compose.yaml"
    assert f"docker compose -f {base} -f {tmp_path}/compose.yaml -f {more} up -d gateway" in note


@pytest.mark.parametrize(
    ("wanted", "text", "after"),
    [
        ({"mem_limit": "2g"}, "    mem_limit: 0\n", "    mem_limit: 2g\n"),
        (
            TZ,
            "    environment:\n      A: b\n",
            "    environment:\n      A: b\n      TZ: Asia/Shanghai\n",
        ),
    ],
)
def test_the_last_file_that_sets_the_key_is_edited(
    tmp_path: Path, wanted: dict[str, Any], text: str, after: str
) -> None:
    """An edit of an earlier file has no effect, as the last one decides."""
    project(tmp_path)
    labels = override(tmp_path, text)
    probes = InContainer(tmp_path / "data", container(tmp_path, Config__Labels=labels))
    [step] = change_container(probes, wanted, "for a test")
    texts = step.texts()

    assert step.changes()[0].path == tmp_path / "compose.override.yaml"
    assert texts is not None and texts[2].decode() == f"services:\n  gateway:\n{after}"


def test_the_file_that_is_not_understood_is_named(tmp_path: Path) -> None:
    """The override extends a service; the first file does not."""
    project(tmp_path)
    labels = override(tmp_path, "    extends: {service: x}\n")
    told = refusal(tmp_path, {"mem_limit": "2g"}, Config__Labels=labels)
    assert told.startswith("compose.override.yaml: its service extends another one.")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("include: [a.yml]\nservices:\n  gateway:\n    image: i\n", "it includes other files"),
        ("services:\n  gateway:\n    extends: {service: x}\n", "extends another one"),
        ("services:\n  gateway: !reset null\n", "does not parse"),
        ("services:\n  other:\n    image: i\n", "no longer has the service gateway"),
    ],
)
def test_refused_with_what_to_add(tmp_path: Path, text: str, words: str) -> None:
    """What is not understood is not edited; the operator gets the lines."""
    project(tmp_path, text)
    told = refusal(tmp_path, {"mem_limit": "2g"})
    assert words in told and "`mem_limit: 2g`" in told


def test_missing_or_not_ours(tmp_path: Path) -> None:
    """One sentence says so."""
    file = project(tmp_path)
    if os.geteuid() == 0:
        os.chown(file, 12345, 12345)
        assert "compose.yaml belongs to uid 12345, the home to uid 0." in refusal(tmp_path, TZ)
    file.unlink()
    assert "is missing. Add this to its service yourself:" in refusal(tmp_path, TZ)
    labels = {"com.docker.compose.service": ""}
    assert "not made by Docker Compose" in refusal(tmp_path, TZ, Config__Labels=labels)


def test_no_secret_is_shown(tmp_path: Path) -> None:
    """New lines are shown as they are; a changed line is left to the diff that masks values."""
    project(tmp_path)
    probes = InContainer(tmp_path / "data", container(tmp_path))
    [step] = change_container(probes, TZ, "for a test")
    assert list(step.lines()) == ["+      TZ: Asia/Shanghai"]
    text = "services:\n  gateway:\n    environment: {KEY: sk-canary-0123456789}\n"
    support.put(tmp_path / "compose.yaml", text)
    probes = InContainer(tmp_path / "data", container(tmp_path))
    [step] = change_container(probes, TZ, "for a test")
    texts = step.texts()
    assert not step.lines() and texts is not None
    shown = [step.sentence(), *redacted_diff(*texts)]
    assert len(shown) > 3 and "sk-canary" not in "".join(shown)


def test_one_word_for_a_new_container(tmp_path: Path) -> None:
    """To recreate a container is called so in the plan, in the result and in a refusal."""
    project(tmp_path)
    probes = InContainer(tmp_path / "data", container(tmp_path))
    [step] = change_container(probes, TZ, "for a test")
    assert step.sentence().endswith("; it takes effect when you recreate the container")
    assert step.notes()[0].startswith(
        "To apply it (this recreates the container and restarts the bot): cd "
    )
    assert isinstance(step, EditCompose)
    assert replace(step, at_once=True).notes() == [
        "compose.yaml has changed, so the next `docker compose up -d` recreates the container."
    ]
    labels = {"com.docker.compose.service": ""}
    assert refusal(tmp_path, TZ, Config__Labels=labels).endswith(
        "Recreate the container with the setting."
    )


def test_set_already(tmp_path: Path) -> None:
    """There is nothing to edit, only to apply."""
    project(tmp_path, compose_homes.PLAIN.replace("    volumes", "    mem_limit: 2g\n    volumes"))
    assert "has this already. Run `cd " in refusal(tmp_path, {"mem_limit": "2g"})
