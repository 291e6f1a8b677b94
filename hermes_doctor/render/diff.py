"""Shows how a settings file changes, with secrets redacted."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor import redaction, setting_lines
from hermes_doctor.message import count

MOST_LINES = 40


def redacted_diff(label: str, before: bytes, after: bytes) -> Iterator[str]:
    """Yield a unified diff of two versions of a settings file, redacted line by line."""
    import difflib

    old = before.decode("utf-8", "replace").splitlines()
    new = after.decode("utf-8", "replace").splitlines()
    old_shown, new_shown = setting_lines.redact_lines(old), setting_lines.redact_lines(new)
    made = [f"--- {label} (now)", f"+++ {label} (after)"]
    for group in difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(1):
        first, last = group[0], group[-1]
        made.append(
            f"@@ -{first[1] + 1},{last[2] - first[1]} +{first[3] + 1},{last[4] - first[3]} @@"
        )
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                made += [" " + text for text in old_shown[i1:i2]]
            else:
                made += ["-" + text for text in old_shown[i1:i2]]
                made += ["+" + text for text in new_shown[j1:j2]]
    for number, text in enumerate(made if len(made) > 2 else []):
        if number >= MOST_LINES:
            yield f"… {count(len(made) - number, 'more line')}"
            return
        yield redaction.clean(text)
