"""Generate random YAML files as people write them: comments, odd spacing, every kind of quotes."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import assume, strategies as st

from hermes_doctor.hermes.settings.config_yaml import parse

WORDS = st.text("abcdefghijklmnopqrstuvwxyz_0123456789-./", min_size=1, max_size=12)
LETTERS = st.text(
    st.characters(
        codec="utf-8", categories=("L", "N", "P", "S", "Zs"), exclude_characters="\ufeff"
    ),
    max_size=20,
)
KEYS = st.sampled_from(
    [
        "model",
        "provider",
        "default",
        "base_url",
        "platforms",
        "qqbot",
        "extra",
        "名字",
        "key env",
        "x",
    ]
)
SCALARS = (
    WORDS
    | LETTERS
    | st.integers(-(10**9), 10**9)
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | st.sampled_from(
        ["no", "0123", "1e3", "null", "~", "a: b", "a #b", "'", '"', "\\", "${X}", "- x"]
    )
)
NEW = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
COMMENTS = st.sampled_from(["", "", "", "  # why: because", " #x", "  # 注释 key: value"])


@st.composite
def scalars(draw: st.DrawFn) -> str:
    """Generate a value on one line, in one of its notations."""
    value = draw(SCALARS)
    style = draw(st.sampled_from([None, "'", '"']))
    said: str = yaml.dump(value, default_style=style, allow_unicode=True, width=1 << 20)
    return said.removesuffix("\n").removesuffix("\n...")


@st.composite
def flows(draw: st.DrawFn) -> str:
    """Generate a mapping or a list in flow style."""
    keys = draw(st.lists(KEYS, max_size=3, unique=True))
    inner = [draw(scalars()) for _ in keys]
    gap = draw(st.sampled_from(["", " "]))
    if draw(st.booleans()):
        return "[" + gap + ", ".join(inner) + gap + "]"
    return (
        "{"
        + gap
        + f",{gap or ' '}".join(f"{k}: {v}" for k, v in zip(keys, inner, strict=True))
        + gap
        + "}"
    )


@st.composite
def mappings(draw: st.DrawFn, depth: int = 0) -> list[str]:
    """Generate the lines of a mapping."""
    step = draw(st.sampled_from([2, 2, 4]))
    lines: list[str] = []
    for key in draw(st.lists(KEYS, min_size=1, max_size=4, unique=draw(st.integers(0, 5)) > 0)):
        if draw(st.integers(0, 5)) == 0:
            lines += draw(st.sampled_from([[""], ["# a line of its own"], ["", "# 说明: x"]]))
        name = draw(st.sampled_from([key, key, f'"{key}"', f"'{key}'"]))
        comment = draw(COMMENTS)
        kind = draw(st.sampled_from(["scalar", "scalar", "flow", "null", "text", "map", "list"]))
        margin = " " * step
        if kind == "map" and depth < 3:
            lines += [
                f"{name}:{comment}",
                *(margin + one if one else one for one in draw(mappings(depth + 1))),
            ]
        elif kind == "list" and depth < 3:
            dent = draw(st.sampled_from(["", margin]))
            lines.append(f"{name}:{comment}")
            for _ in range(draw(st.integers(1, 3))):
                if draw(st.booleans()):
                    lines.append(f"{dent}- {draw(scalars())}{draw(COMMENTS)}")
                else:
                    inner = [one for one in draw(mappings(3)) if one and not one.startswith("#")]
                    lines += [
                        dent + ("- " if n == 0 else "  ") + one for n, one in enumerate(inner)
                    ]
        elif kind == "text":
            lines += [
                f"{name}: {draw(st.sampled_from(['|', '>', '|-', '>-', '|+']))}",
                margin + "one",
                margin + "two",
            ]
        elif kind == "null":
            lines.append(f"{name}:{comment}")
        elif kind == "flow":
            lines.append(f"{name}: {draw(flows())}{comment}")
        else:
            lines.append(f"{name}: {draw(scalars())}{comment}")
    return lines


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Generate a whole file."""
    lines = draw(mappings())
    if draw(st.integers(0, 4)) == 0:
        lines = ["---", *lines]
    if draw(st.integers(0, 3)) == 0:
        lines = ["# head", "", *lines, "", "# tail"]
    newline = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    end = draw(st.sampled_from([newline, newline, "", newline * 2]))
    mark = draw(st.sampled_from(["", "", "", "\ufeff"]))
    made = (mark + newline.join(lines) + end).encode()
    assume(parse(made)[0])
    return made


def paths(values: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return every path in the settings."""
    found = [path] if path else []
    if isinstance(values, dict):
        for key, value in values.items():
            if isinstance(key, str):
                found += paths(value, (*path, key))
    elif isinstance(values, list):
        for number, value in enumerate(values):
            found += paths(value, (*path, number))
    return found
