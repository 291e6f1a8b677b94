"""A secret is found however it is written, and nothing else is."""

from __future__ import annotations

import base64
import html
import json
import shlex
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings, strategies as st

from hermes_doctor.core.secret_forms import Secret, SecretForms, is_distinct
from tests.helpers import budget

VALUE = "pa ss/w\"o'r&d\\é%Kx9#1"
ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "upper case": str.upper,
    "lower case": str.lower,
    "JSON": json.dumps,
    "JSON in UTF-8": lambda v: json.dumps(v, ensure_ascii=False),
    "JSON in JSON": lambda v: json.dumps(json.dumps(v)),
    "JSON with a slash": lambda v: json.dumps(v).replace("/", "\\/"),
    "repr": repr,
    "repr of bytes": lambda v: repr(v.encode()),
    "ascii": ascii,
    "URL": lambda v: quote(v, safe=""),
    "path of a URL": quote,
    "form": quote_plus,
    "small hexadecimal digits of a URL": lambda v: quote(v, safe="").lower(),
    "HTML": html.escape,
    "HTML without quotes": lambda v: html.escape(v, quote=False),
    "XML": lambda v: html.escape(v).replace("&#x27;", "&apos;"),
    "shell": shlex.quote,
    "base64": lambda v: base64.b64encode(v.encode()).decode(),
    "base64 of a login": lambda v: base64.b64encode(b"bot:" + v.encode()).decode(),
    "base64 at the third offset": lambda v: base64.b64encode(b"me:xx" + v.encode() + b"!").decode(),
    "base64 for addresses": lambda v: base64.urlsafe_b64encode(v.encode()).decode(),
    "hexadecimal": lambda v: v.encode().hex(),
    "large hexadecimal": lambda v: v.encode().hex().upper(),
    "two lines": lambda v: f"{v[:9]}\n    {v[9:]}",
    "two lines that were cleaned": lambda v: f"{v[:9]}�{v[9:]}",
    "two lines in JSON": lambda v: json.dumps(f"{v[:4]}\n{v[4:]}"),
    "cut off": lambda v: f"{v[:-6]}…",
    "cut off with dots": lambda v: f"{v[:-6]}...",
    "cut off at the end": lambda v: v[:-6],
    "the end of it": lambda v: f"…{v[6:]}",
}


@pytest.mark.parametrize("how", ENCODINGS)
@pytest.mark.parametrize("value", [VALUE, "hunter2", "sk-or-v1-0123456789abcdefXYZ", "Ünïcödé-4"])
def test_every_form(how: str, value: str) -> None:
    """The words around it stay."""
    if len(value) < 18 and ("cut" in how or "end of" in how or "two lines" in how):
        pytest.skip("too short to be cut")
    written = ENCODINGS[how](value)
    forms = SecretForms([Secret(value, "EMAIL_PASSWORD")])

    shown = forms.mask(f"login failed: {written}")

    assert written not in shown
    assert shown.startswith("login failed: ")
    assert f"({len(value)}-character password)" in shown
    assert forms.mask(shown) == shown


@pytest.mark.parametrize(
    "value",
    ["", "true", "1234", "100016", "4009123", "aaaaaaaa", "******", "${KEY}", "$KEY_NAME",
     "<your key>", "your-api-key", "sk-or-…1234", "/run/secrets/key", "-character", "x" * 5000,
     "(12-character key)", "      "],
)  # fmt: skip
def test_what_is_not_distinct(value: str) -> None:
    """A word, a short number or a place is not searched for: it would eat what is not secret."""
    assert not is_distinct(value)
    text = f"error {value} of 1234 and true"
    assert SecretForms([Secret(value, "KEY")]).mask(text) == text


@pytest.mark.parametrize(
    "text",
    ["error 100016 at api.openrouter.ai", "model acme/hunter2000", "xhunter2", "hunter", "hunter…",
     "gateway: [x], {y}; 'z'!", "a…b...c", "line one\nline two", ""],
)  # fmt: skip
def test_what_is_kept(text: str) -> None:
    """A short value is only found as a word of its own."""
    assert SecretForms([Secret("hunter2", "KEY")]).mask(text) == text


def test_a_usual_beginning_is_not_a_part() -> None:
    """A text that ends with a word with which a secret begins is kept."""
    forms = SecretForms([Secret("telegram-48x", "KEY")])
    assert forms.mask("could not reach telegram") == "could not reach telegram"
    assert forms.mask("could not reach telegram…") == "could not reach telegram…"


_SECRETS = st.lists(
    st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=6, max_size=40)
    .filter(lambda v: v == v.strip() and is_distinct(v)),
    min_size=1, max_size=4,
)  # fmt: skip
_AROUND = st.text(st.sampled_from(" .:,'\"()[]{}=\nab01é…"), max_size=12)


@settings(max_examples=budget.examples(200), deadline=None)
@given(_SECRETS, st.sampled_from(sorted(ENCODINGS)), _AROUND, _AROUND, st.data())
def test_never_in_a_masked_text(
    values: list[str], how: str, before: str, after: str, data: st.DataObject
) -> None:
    """Whatever the secrets are and whatever is around them; masking again changes nothing."""
    forms = SecretForms(Secret(value, "KEY") for value in values)
    value = data.draw(st.sampled_from(values))
    written = value if "cut" in how or "end of" in how or "lines" in how else ENCODINGS[how](value)
    text = f"{before} {written} {after}"

    shown = forms.mask(text)

    assert written.lower() not in shown.lower()
    assert forms.mask(shown) == shown


@settings(max_examples=budget.examples(200), deadline=None)
@given(st.text(max_size=200))
def test_harmless_text_is_kept(text: str) -> None:
    """Text without a secret stays as it is."""
    assert SecretForms([Secret("qZ7#canary-Kx9pLm2Tw", "KEY")]).mask(text) == text


@pytest.mark.parametrize(
    ("value", "left"), [("Kx9pLm2Tw#ca-xyz", 7), ("Kx9pLm2Tw#canary-0123456789abc", 11)]
)
def test_what_is_left_of_one_that_was_cut_off(value: str, left: int) -> None:
    """A few characters of its beginning or its end, such as those that tell the kind of a key."""
    forms = SecretForms([Secret(value, "KEY")])
    for size in range(1, len(value)):
        for text, part in (
            (f"a {value[:size]}…", value[:size]),
            (f"…{value[-size:]} a", value[-size:]),
        ):
            assert (part in forms.mask(text)) == (size <= left)
