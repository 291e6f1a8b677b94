"""Secrets where none belongs: text over several lines, and a key in the place of a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.render import diff
from tests.helpers import support

CANARY = "canaryQ7x9Wv2Lk4"
QUOTED = {
    "double": f'keys:\n  - "one\n    port: 4242 {CANARY}\n    {CANARY}"\n',
    "single": f"keys:\n  - 'one\n    enabled: {CANARY}\n    model: {CANARY}'\n",
    "nested": f'keys:\n  - - "one\n      port: 4242\n      provider: {CANARY}"\n',
    "alone": f'keys:\n  - "\n    model: {CANARY}\n    "\n',
    "a pair in a list": f'keys:\n  - name: "one\n      model: {CANARY}\n      port: 4242"\n',
    "blank lines": f"keys:\n  - 'one\n\n    model: {CANARY}\n\n    port: 4242'\n",
}
REST = "port: 8\nmodel: shown\n"


@pytest.mark.parametrize("kind", QUOTED)
def test_quoted_items_over_several_lines(kind: str) -> None:
    """What stands between quotes is hidden to its end, and what follows is shown again."""
    text = QUOTED[kind] + REST

    made = "\n".join(diff.redacted_diff("config.yaml", b"", text.encode()))

    assert CANARY not in made
    assert "4242" not in made
    assert "+port: 8" in made
    assert "+model: shown" in made


@pytest.mark.sampled
@pytest.mark.parametrize("kind", QUOTED)
def test_the_plan_of_a_broken_config(home: Path, kind: str) -> None:
    """The same through the command: the diff of the copy that is restored."""
    support.put(home / "config.yaml.bak", support.CONFIG + "x: 1\n")
    broken = "model:\n\tdefault: x\n" + QUOTED[kind] + REST
    support.put(home / "config.yaml", broken)

    for form in ((), ("--json",)):
        done = support.doctor("fix", "CFG-YAML", *form, "--home", home)

        assert done.code == 0, done.err
        assert "config.yaml" in done.out
        assert CANARY not in done.out + done.err
        assert "4242" not in done.out


FIRST = {
    "a token": "sk-or-v1-CANARY0123456789abcdef",
    "a token and a value": "ghp_CANARY0123456789abcdefghijklmnop=1",
    "capitals": "AKIACANARY0123456789=x",
    "long capitals": "CANARY0123456789ABCDEF0123=x",
    "base64": "Q0FOQVJZQ0FOQVJZ==",
    "a name, and a key for it": "xoxb_CANARY_0123456789=1",
    "exported": "export sk_CANARY0123456789abcdef=1",
    "a password alone": "canary7",
    "a password with an equals sign": "canary7=x",
    "nothing but equals signs behind": "CANARY7==",
    "quoted": "'sk-CANARY0123456789abcdef'=1",
}


MARKS = {"BOM": b"\xef\xbb\xbf", "mangled": "\ufffd\ufffd".encode()}


@pytest.mark.sampled
@pytest.mark.parametrize("kind", FIRST)
@pytest.mark.parametrize("mark", MARKS)
def test_a_key_in_the_place_of_the_first_name(home: Path, kind: str, mark: str) -> None:
    """ENV-BOM names the variable that Hermes does not see, but not a key that stands there.

    A key without "=" sets no variable, so nothing is lost.
    """
    support.put(home / ".env", MARKS[mark] + FIRST[kind].encode() + b"\nSECOND=two\n")
    is_lost = "=" in FIRST[kind]

    commands: list[tuple[str, ...]] = [("check",), ("check", "--json"), ("fix",), ("fix", "--json")]
    for command in commands:
        done = support.doctor(*command, "--home", home)

        assert done.code == int(is_lost and command[0] != "fix"), done.out + done.err
        assert not is_lost or ".env" in done.out
        assert "CANARY" not in (done.out + done.err).upper(), command
        assert "Q0FOQVJZ" not in done.out + done.err, command


def test_a_plain_first_name_is_shown(home: Path) -> None:
    """A name that is one helps, and stays."""
    support.put(home / ".env", b"\xef\xbb\xbfOPENROUTER_API_KEY=x\n")

    assert "OPENROUTER_API_KEY" in support.check(home).out
