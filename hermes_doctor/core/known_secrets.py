"""Read the secrets of a home, so that the gate `outgoing` can hide them wherever they appear.

The files are read as lines, not as settings: config.yaml and auth.json may be broken, .env may have
a wrong encoding, and a secret in them is still one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

import hermes_doctor
from hermes_doctor.core import outgoing
from hermes_doctor.core.lazy import pattern
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.redaction import is_chat_id
from hermes_doctor.core.secret_forms import MOST, Secret, is_distinct
from hermes_doctor.core.setting_lines import is_secret_name, is_setting_name
from hermes_doctor.core.system import privileges, root_parent
from hermes_doctor.core.system.files import MEGABYTE, first_names, read_head

_ENV = (".env", ".op.env")
_YAML = ("config.yaml",)
_JSON = ("auth.json", "webhook_subscriptions.json", "gateway.json")
_LIMIT = MEGABYTE // 2
_PROFILES = 200
_LINE = pattern(r"[ \t#]*(?:export[ \t]+)?([A-Za-z_][\w.-]{0,99})[ \t]*[=:][ \t]*(.*)")
_PAIR = pattern(
    r"""["']?([A-Za-z_][\w.-]{0,99})["']?[ \t]*[:=](?:[ \t]+|(?=["'])|$)"""
    r"""("(?:[^"\\\n]|\\.){0,4096}"|'(?:[^'\n]|''){0,4096}'|[^\s,{}\[\]][^,{}\[\]\n]{0,4096})?"""
)
_IN_JSON = pattern(r'"([^"\\\n]{1,99})"\s*:\s*"((?:[^"\\]|\\.){1,8192})"')
_WORD = pattern(r"\d{6,12}:[\w-]{20,}|[A-Za-z0-9_.+-]{16,}={0,2}")
_KEY = pattern(
    r"(?i:(?:sk|pk|rk|gh[a-z]|xox[a-z]|hf|gsk|nvapi|glpat|xai|github_pat)[-_](?=\S*\d)\S{6,}"
    r"|eyj[\w.-]{12,}|(?:aiza|akia)[\w-]{12,})|\d{6,12}:[\w-]{20,}"
    r"|(?=[\w+=-]*\d)(?=[\w+=-]*[G-Zg-z])(?=[\w+=-]*?[A-Za-z0-9]{16})[\w+=-]{16,}"
)
"""A word that is a key by its form, whatever its name is. Digests and names of models are none."""
_AUTH = pattern(r"(?i)(?:bearer|basic|bot|token)\s+(\S.*)")
_URL = pattern(r"[a-z][a-z0-9+.-]*://(?:[^\s/@:]*:([^\s@]+)@)?([^\s]*)")
_ORDINARY = pattern(r"(?:[a-z]+|[A-Z][a-z]*|[A-Z]+)(?:[-_./ ][A-Za-z]{1,20}){0,5}")
"""A value that looks like a word or a name, such as `ollama` or `lm-studio`."""
_COMMENT = pattern(r"\s+#.*$")
_DESCRIBES = pattern(
    r"(?i)([_.-](type|mode|method|error|message|reason|source|status|endpoint|store|helper|domain)"
    r"|language_code|country_code|tokenizer|hotkeys?|keybindings?)$|(^|[_.-])bypass[_.-]"
)
"""Names of settings that say something about a secret, such as `auth_mode`, or only sound like it.

Their values are still hidden in a line of a settings file, but not everywhere."""
_LIST = pattern(r"(?i)(keys|tokens|secrets|passwords|credentials|cookies)$")
"""The name of several secrets, each with any name."""
_MIXED = pattern(r"(?=.*\d)(?=.*[A-Za-z])")


class HomeSecrets:
    """A source of secrets: the files of one home. They are read again when one has changed."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._seen: dict[Path, tuple[int, ...]] = {}

    def __call__(self) -> Iterator[list[Secret]]:
        """Yield the secrets of each file that has changed since the last call."""
        for path in self._files():
            state = _state(path)
            if state != self._seen.get(path, ()):
                self._seen[path] = state
                yield known_of(_of_file(path), self._shown())

    def _files(self) -> Iterator[Path]:
        homes = [self._home]  # a gateway can serve the profiles of its home
        if self._home.parent.name == "profiles":
            homes.append(self._home.parent.parent)
        with contextlib.suppress(OSError, CouldNotLook):
            names = first_names(self._home / "profiles", _PROFILES)
            homes += [self._home / "profiles" / name for name in names]
        for home in homes:
            for name in (*_ENV, *_YAML, *_JSON):
                yield home / name

    def _shown(self) -> bytes:
        """What every report shows of this home anyway, and so cannot hide."""
        return _encoded(f"/{self._home}/{os.uname().nodename}/".lower())


def watch_home(home: Path) -> None:
    """Hide the secrets of this home, and those of our own environment.

    In a home of another user, root opens no file for that: a process of that user does.
    """
    outgoing.known.add_source("environment", _own_environment)
    if not _is_of_another_user(home):
        outgoing.known.add_source(home, HomeSecrets(home))


def _is_of_another_user(home: Path) -> bool:
    """Whether a process of that user looks at the home for us and says what to hide."""
    try:
        return sys.platform == "linux" and privileges.owner_of_home(home) is not None
    except Trouble:  # others may write to it, so that root refuses to work there
        return True
    except OSError:  # it is gone, or this root may not become others
        return False


def add_environment(variables: Mapping[str, str]) -> None:
    """Hide the secrets of a process, such as the gateway."""
    outgoing.known.add(known_of(_of_variables(variables)))


def known_of(secrets: Iterable[Secret], shown: bytes = b"") -> list[Secret]:
    """Those that are hidden everywhere: distinct, and neither words of ours nor in `shown`."""
    kept = []
    words: dict[str, Secret] = {}
    for secret in secrets:
        folded = secret.value.lower()
        if not is_distinct(secret.value) or _has_word(shown, folded):
            continue
        if len(folded) <= 32 and _ORDINARY.fullmatch(secret.value):
            words[folded] = secret
        else:
            kept.append(secret)
    used = _used_words(words) if words else ()
    return kept + [one for word, one in words.items() if word not in used]


def _has_word(text: bytes, word: str) -> bool:
    sought = _encoded(word)
    if sought not in text:
        return False
    return bool(re.search(rb"(?<![a-z0-9])%b(?![a-z0-9])" % re.escape(sought), text))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _used_words(words: Iterable[str]) -> set[str]:
    """Those that Hermes or this tool uses: names of providers and models, words of a page.

    This reads about 3 MB, so it is asked only for a value that looks like a word, and once.
    """
    wanted = set(words)
    left = {word for word in wanted if word not in judged}
    if left:
        if len(judged) > _MOST_JUDGED:
            judged.clear()
        judged.update(_by_root(left) if _by_root else judge_words(left))
    return {word for word in wanted if judged.get(word)}


def judge_words(words: Iterable[str]) -> dict[str, bool]:
    """Say of each word whether Hermes or this tool uses it."""
    left = set(map(str, words))
    found = dict.fromkeys(left, False)
    for text in _read_own_texts():
        used = {word for word in left if _has_word(text, word)}
        found |= dict.fromkeys(used, True)
        left -= used
        if not left:
            break
    return found


_by_root: Callable[[Iterable[str]], Mapping[str, bool]] | None = None


def ask_root_for_words() -> None:
    """Let root judge words from now on: this process may not read what we say."""
    global _by_root

    def ask(words: Iterable[str]) -> Mapping[str, bool]:
        found: Mapping[str, bool] = root_parent.ask_root("used_words", [*words])
        return found

    _by_root = ask


judged: dict[str, bool] = {}
"""By word: whether Hermes or this tool uses it. What we say does not change while we run."""
_MOST_JUDGED = 1000


def adopt_judged(words: Mapping[str, bool]) -> None:
    """Know what another process of this tool has found out about words."""
    if len(judged) + len(words) <= 2 * _MOST_JUDGED:
        judged.update({str(word): bool(used) for word, used in words.items()})


def _read_own_texts() -> Iterator[bytes]:
    """Yield our texts in lower case; decoding them would take three times as long."""
    here = Path(hermes_doctor.__file__).parent
    folders = [here / "hermes" / "knowledge"]
    for root in (here, here.parent):
        folders += [root / "checks" / "signatures", root / "docs" / "failures"]
    for folder in filter(os.path.isdir, folders):
        for name in os.listdir(folder):
            if name.endswith((".json", ".md")):
                with open(f"{folder}/{name}", "rb", buffering=0) as file:
                    yield file.read().lower()


def _state(path: Path) -> tuple[int, ...]:
    try:
        st = os.stat(path)
    except (OSError, ValueError):
        return ()
    return st.st_dev, st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns


def _of_file(path: Path) -> list[Secret]:
    try:
        data, _ = read_head(path, _LIMIT)
    except (OSError, CouldNotLook):
        return []
    text = data.replace(b"\0", b"").decode("utf-8", "replace").lstrip("\ufeff\ufffd")
    parse = _of_env if path.name in _ENV else _of_yaml if path.name in _YAML else _of_json
    found: dict[str, Secret] = {}
    for secret in chain(parse(text), _of_words(text)):
        if is_distinct(secret.value):
            found.setdefault(secret.value, secret)
        if len(found) >= MOST:
            break
    return [*found.values()]


def _own_environment() -> list[list[Secret]]:
    return [known_of(_of_variables(os.environ))]


def _of_variables(variables: Mapping[str, str]) -> Iterator[Secret]:
    for name, value in variables.items():
        yield from _of_setting(name, value)


def _of_env(text: str) -> Iterator[Secret]:
    """Values may be quoted, go on over several lines, and have a comment behind them."""
    name, quote = "", ""
    for line in text.replace("\r", "\n").split("\n"):
        if quote:
            yield from _of_block(name, line)
            quote = "" if line.rstrip().endswith(quote) else quote
            continue
        line_match = _LINE.match(line)
        if not line_match:
            continue
        name, value = line_match[1], line_match[2].strip()
        if value[:1] in ("'", '"') and value.count(value[0]) == 1:
            quote = value[0]
            value = value[1:]
        for one in _unquoted(value):
            yield from _of_setting(name, one)


def _of_yaml(text: str) -> Iterator[Secret]:
    """Every pair of a name and a value; lines below a name without a value belong to it.

    If these lines are settings with names of their own, such as `enabled: true` below `webhook:`,
    their names decide, unless the name above is one for a list of secrets.
    """
    name, depth, plain = "", -1, False
    for line in text.replace("\r", "\n").split("\n"):
        bare = line.lstrip(" \t-")
        indent = len(line) - len(bare)
        pairs = [*_PAIR.finditer(line)]
        inside = bool(name) and indent > depth
        if bare and not inside:
            name = ""
        if inside and bare and (plain or not (pairs and pairs[0].start() == indent)):
            yield from _of_block(name, bare)
        for pair in pairs:
            value = (pair[2] or "").strip()
            if not name and is_secret_name(pair[1]) and (not value or value[0] in "|>"):
                name, depth, plain = pair[1], indent, bool(value)
            listed = inside and not plain and _LIST.search(name) and _MIXED.search(value)
            for one in _unquoted(value):
                yield from _of_setting(name if listed else pair[1], one)


def _of_json(text: str) -> Iterator[Secret]:
    for match in _IN_JSON.finditer(text):
        yield from _of_setting(match[1], _unescaped(match[2]))


def _of_words(text: str) -> Iterator[Secret]:
    """Keys anywhere in a file: in a comment, as an item of a list, on a line of their own."""
    for match in _WORD.finditer(text):
        if _KEY.fullmatch(match[0]) and not is_chat_id(match[0]):
            yield Secret(match[0])


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def _of_block(name: str, line: str) -> Iterator[Secret]:
    """A line of a value with several lines; short ones could be anything."""
    if is_secret_name(name):
        for one in _unquoted(line.strip()):
            if len(one) >= 8:
                yield from _of_setting(name, one)


def _unquoted(value: str) -> Iterator[str]:
    """A value as it is written and as it is read: without quotes, escapes and a comment."""
    bare = (_COMMENT.sub("", value) if "#" in value else value).strip().rstrip(",")
    for text in dict.fromkeys((value, bare)):
        yield text
        if len(text) > 2 and text[0] == text[-1] and text[0] in "\"'":
            inner = text[1:-1]
            yield inner
            yield _unescaped(inner) if text[0] == '"' else inner.replace("''", "'")


def _of_setting(name: str, value: str) -> Iterator[Secret]:
    """The secrets in a value: all of it, a password in an address, the key after a scheme."""
    value = value.strip()
    if len(value) < 6:
        return
    if "://" in value:
        yield from _of_address(name, value)
        return
    if is_secret_name(name) and not _DESCRIBES.search(name):
        yield Secret(value, name)
        if " " in value and (scheme := _AUTH.fullmatch(value)):
            yield Secret(scheme[1].strip(), name)
    elif _KEY.fullmatch(value) and not is_setting_name(name) and not is_chat_id(value):
        yield Secret(value, name)


def _of_address(name: str, value: str) -> Iterator[Secret]:
    if is_secret_name(name) and not _DESCRIBES.search(name):
        yield Secret(value, name)
    match = _URL.search(value)
    if match is None:
        return
    if match[1]:
        yield Secret(match[1], "password")
    for part in re.split(r"[/?&#=]", match[2])[1:]:
        if _KEY.fullmatch(part):
            yield Secret(part, name)
