"""Tell whether a YAML file is so plain that both parsers of PyYAML read it alike.

The gateway uses PyYAML's own parser, which takes 58 ms for the settings that Hermes has by default
(15 KB). libyaml takes 8 ms, and recognizing a plain file takes 4 ms. The two differ in rare forms,
so libyaml reads only files of lines like these: comments, `key: value` and `- value`, where the
values are plain or simply quoted.
"""

from __future__ import annotations

from hermes_doctor.core.lazy import pattern

_FORBIDDEN = r"\x00-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff"
_COMMENT = rf"#[^{_FORBIDDEN}]*"
_KEY = r"\w[\w./-]{0,99}"
_INNER = r"\w/.~$@+=,*()%;-"
_PLAIN = rf"[\w/.~$@+=](?:[{_INNER}]|:(?=[{_INNER}])| (?=[{_INNER}]))*"
_QUOTED = rf"""'[^'{_FORBIDDEN}]*'|"[^"\\{_FORBIDDEN}]*\""""
_VALUE = rf"(?:{_PLAIN}|{_QUOTED}|-\d[\d.]*|\[\]|\{{\}})"
_LINE = pattern(
    rf" *(?:{_COMMENT})?| *(?:- )*(?:{_KEY}:(?: +{_VALUE})?|- {_VALUE})(?: +{_COMMENT}| *)"
)


def is_plain_yaml(text: str) -> bool:
    """Whether both parsers read the text alike, unless it is nested hundreds of levels deep."""
    is_plain_line = _LINE.fullmatch
    return all(map(is_plain_line, text.split("\n")))
