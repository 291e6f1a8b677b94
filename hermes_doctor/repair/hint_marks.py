"""Tell an edit of config.yaml from the marks that Hermes itself writes there.

After some messages, Hermes marks under `onboarding.seen` that a user has seen a hint. To do so it
writes the whole file again, without comments.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from hermes_doctor.model import CouldNotLook
from hermes_doctor.settings.config_file import LIMIT, parse
from hermes_doctor.system.files import read


def digest_without_marks(path: Path) -> str | None:
    """A digest of the settings in a config.yaml, without the marks; None if it cannot be parsed."""
    try:
        data, _ = read(path, LIMIT)
    except (CouldNotLook, OSError):
        return None
    values, fault = parse(data)
    if values is None or fault is not None:
        return None
    hints = values.get("onboarding")
    if isinstance(hints, dict):
        rest = {key: value for key, value in hints.items() if key != "seen"}
        values = {**values, "onboarding": rest}
        if not rest:
            del values["onboarding"]
    plain = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()
