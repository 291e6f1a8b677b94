"""Files that would take too much time, memory or stack to read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.hermes.settings import config_yaml

LAUGHS = "a0: &a0 lol\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
CHAIN = "x0: &a0 [v]\n" + "".join(f"x{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 300))
MERGES = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)
)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (LAUGHS, "its aliases unfold to more than 100,000 values"),
        (MERGES, "its aliases unfold to more than 100,000 values"),
        (CHAIN, "nested more than 100 levels deep"),
        ("a: " + "[" * 100_000 + "]" * 100_000, "nested more than 100 levels deep"),
    ],
)
def test_aliases_and_nesting(text: str, what: str) -> None:
    """They are faults, because Hermes cannot use such a file either."""
    started = time.process_time()

    values, fault = config_yaml.parse(text.encode())

    assert values is None
    assert fault is not None
    assert fault.what == what
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "text",
    [
        "x:\n" + "".join(f"  k{n}: &a{n} v{n}\n" for n in range(50_000)),
        "".join(f"k{n}: v\n" for n in range(60_000)),
    ],
)
def test_too_many_values(home: Path, text: str) -> None:
    """The file may be valid, but is not read."""
    (home / "config.yaml").write_text(text)

    with pytest.raises(CouldNotLook, match=r"config.yaml: too many values to read"):
        config_yaml.read(Home(home))


def test_ordinary_aliases(home: Path) -> None:
    """A few aliases and merges are read."""
    (home / "config.yaml").write_text("a: &a {k: v}\nb: *a\nc:\n  <<: *a\n  d: 1\n")

    found = config_yaml.read(Home(home))

    assert found is not None
    assert found.values == {"a": {"k": "v"}, "b": {"k": "v"}, "c": {"k": "v", "d": 1}}
