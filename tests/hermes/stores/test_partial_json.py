"""A text that breaks off, at every place where it can."""

from __future__ import annotations

import json
import random

import pytest

from hermes_doctor.hermes.stores.catalogue import stores
from hermes_doctor.hermes.stores.damage import examine_bytes
from hermes_doctor.hermes.stores.entries import difference, entries_by_name
from hermes_doctor.hermes.stores.json_repairs import repair_bytes
from hermes_doctor.hermes.stores.partial_json import close_truncated
from tests.helpers.store_files import WHOLE, text
from tests.helpers.store_kinds import store

KINDS = {"cron/jobs.json": "jobs", "auth.json": "auth", "sessions/sessions.json": "sessions"}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("indent", [None, 2])
def test_every_place(name: str, indent: int | None) -> None:
    """Whatever is kept is as it was, nothing whole is left out, and nothing is made up."""
    kind = store(KINDS[name])
    data = json.dumps(WHOLE[name], indent=indent).encode()
    whole = entries_by_name(WHOLE[name], kind)
    most = 0
    for end in range(len(data)):
        made = repair_bytes(data[:end], kind)
        kept = entries_by_name(made.values, kind) if made else {}
        assert kept == {key: whole[key] for key in list(whole)[: len(kept)]}
        assert len(kept) >= most, "what was whole before is whole now"
        most = len(kept)
        if made:
            assert made.cut_off
            assert set(made.lost).isdisjoint(kept)
    assert most == len(whole)


@pytest.mark.parametrize(
    "broken", ['{"a": {} "b": {}}', '{"a": {}, b: {}}', '{"a" {}}', "nothing", '{"a": {"b": x}} ']
)
def test_broken_in_the_middle(broken: str) -> None:
    """What does not break off is left alone."""
    assert close_truncated(broken, [()]) is None


def test_deep_nesting() -> None:
    """A text that would take the whole stack is broken, and that is all."""
    hostile = '{"a":' * 100_000

    assert close_truncated(hostile, [("a",)]) is None
    found = examine_bytes(hostile.encode(), store("approved"))
    assert found.damage is not None
    assert repair_bytes(hostile.encode(), store("approved")) is None


@pytest.mark.parametrize("name", WHOLE)
def test_sound(name: str) -> None:
    """Every store as Hermes writes it is sound to its description."""
    fitting = [one for one in stores() if examine_bytes(text(name), one).damage is None]

    assert fitting
    assert repair_bytes(text(name), fitting[0]) is None, "there is nothing to mend"


@pytest.mark.parametrize(
    ("data", "how"),
    [
        (b"\xef\xbb\xbf" + text("auth.json"), "byte order mark"),
        (text("auth.json") + b"\0" * 4096, "NUL bytes"),
        (text("auth.json") + b'"x": 1}', "after its end"),
        (text("auth.json").decode().encode("utf-16"), "UTF-8"),
        (text("auth.json").replace(b'"nous"', b'"no\x01us"'), "control"),
    ],
)
def test_nothing_is_lost(data: bytes, how: str) -> None:
    """Flaws around the entries go, the entries stay."""
    kind = store("auth")

    made = repair_bytes(data, kind)

    assert made is not None
    assert made.lossless
    assert how in made.description
    wanted = entries_by_name(WHOLE["auth.json"], kind)
    assert list(entries_by_name(made.values, kind).values()) == list(wanted.values())


@pytest.mark.parametrize(
    ("flaw", "data"),
    [
        ("torn", b'{"jobs": [], "a": "\x01", "b": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        ("deep", b'{"jobs": [], "b": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        ("deep", b'{"jobs": [], "a": ' + b"9" * 5000 + b"}"),
        ("without", b'{"updated_at": 1}'),
        ("holder", b'{"jobs": null}'),
        ("holder", b'{"jobs": {"a": {"id": "a"}}}'),
        ("number", b"7"),
        ("field", b'{"jobs": [{"id": "a", "next_run_at": "soon"}]}'),
        ("field", b'{"jobs": [{"id": "a", "schedule": "every 5m"}]}'),
        ("field", b'{"jobs": [{"name": "a"}]}'),
        (None, b'{"jobs": [{"name": "a", "next_run_at": "soon", "enabled": false}]}'),
        (None, b'{"jobs": [{"id": "a", "next_run_at": null}]}'),
    ],
)
def test_shapes_of_jobs(flaw: str | None, data: bytes) -> None:
    """What every look for jobs fails over is told from what is merely not there."""
    found = examine_bytes(data, store("jobs"))

    assert (found.damage and found.damage.kind) == flaw


@pytest.mark.parametrize("data", [b'{"providers": ["nous"]}', b'{"credential_pool": [{}]}'])
def test_logins_in_a_list(data: bytes) -> None:
    """Hermes takes a file without an object of logins for empty."""
    found = examine_bytes(data, store("auth"))

    assert found.damage is not None
    assert found.damage.kind == "without"


@pytest.mark.parametrize(
    "jobs",
    [
        '{"a": {"id": "a"}, "b": {"id": "b"}}',
        '[{"id": "a", "next_run_at": 7}, {"id": "b"}]',
        '[{"id": "a", "schedule": "every 5m"}, {"id": "b"}]',
        '[{"job_id": "a"}, {"id": "b"}]',
    ],
)
def test_jobs_are_put_right(jobs: str) -> None:
    """Every job stays, and what Hermes stumbles over is gone."""
    made = repair_bytes(f'{{"jobs": {jobs}}}'.encode(), store("jobs"))

    assert made is not None
    assert made.lossless
    assert [job["id"] for job in made.values["jobs"]] == ["a", "b"]


def test_half_a_character() -> None:
    """Half of a pair of numbers for one character cannot be written but as a number."""
    data = b'{"jobs": [{"id": "a", "name": "\x01 \\ud800"}]}'

    made = repair_bytes(data, store("jobs"))

    assert made is not None
    assert made.values == json.loads(data, strict=False)


@pytest.mark.parametrize("indent", [None, 2])
def test_two_documents(indent: int | None) -> None:
    """Of two lists in one file nothing is left out: the later one counts, the other fills it up."""
    first, later = ({"jobs": [{"id": one} for one in ids]} for ids in ("ab", "bc"))
    data = (json.dumps(first, indent=indent) + json.dumps(later, indent=indent)).encode()

    made = repair_bytes(data, store("jobs"))

    assert made is not None
    assert [job["id"] for job in made.values["jobs"]] == ["b", "c", "a"]
    cut = repair_bytes(data[:-1], store("jobs"))
    assert cut is not None
    assert (cut.lossless, cut.lost) == (False, ("c",))


@pytest.mark.parametrize("name", KINDS)
def test_broken_entry(name: str) -> None:
    """One entry that cannot be read costs no other, and is named."""
    kind, whole = store(KINDS[name]), entries_by_name(WHOLE[name], store(KINDS[name]))
    data = text(name).replace(b"zQ", b"\xfe\xff", 1)

    made = repair_bytes(data, kind)

    assert made is not None
    assert not made.lossless
    assert entries_by_name(made.values, kind) == dict([*whole.items()][1:])
    assert len(made.lost) == 1


def test_letters_of_an_old_editor() -> None:
    """What is Latin-1 in all likelihood is kept, and asked about."""
    data = '{"jobs": [{"id": "a", "name": "caf\u00e9 fr\u00fch"}]}'.encode("latin-1")

    made = repair_bytes(data, store("jobs"))

    assert made is not None
    assert not made.lossless
    assert made.values["jobs"][0]["name"] == "caf\u00e9 fr\u00fch"


@pytest.mark.sampled
@pytest.mark.parametrize("name", WHOLE)
def test_any_bytes(name: str) -> None:
    """Whatever a disk or an editor makes of a store is judged, and mended to something sound."""
    dice = random.Random(name)
    data = text(name)
    for _ in range(150):
        broken = bytearray(data)
        for _ in range(dice.randrange(1, 4)):
            at = dice.randrange(len(broken) or 1)
            broken[at : at + dice.randrange(9)] = dice.randbytes(dice.randrange(9))
        for kind in stores():
            found = examine_bytes(bytes(broken), kind)
            made = repair_bytes(bytes(broken), kind)
            assert made is None or (found.damage and examine_bytes(made.data, kind).damage is None)
            assert not found.damage or found.damage.what.isascii(), "it quotes nothing of the file"


def test_many_of_one_name() -> None:
    """One name over and over is told apart without counting from the start each time."""
    entries = {"jobs": [{"id": "a", "name": "same"}] * 50_000}

    assert len(entries_by_name(entries, store("jobs"))) == 50_000


def test_difference_of_many() -> None:
    """What is lost is counted where it is too much to be listed."""
    whole: dict[str, object] = {f"user {number}": {} for number in range(100)}
    lost = tuple(f"lost {number}" for number in range(50))

    lines = list(difference(whole, whole, lost, store("approved")))

    assert lines[5] == "  … 95 more are kept"
    assert lines[-1] == "- … 10 more"
