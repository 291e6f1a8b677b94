"""Write hermes_doctor/knowledge/keys.json: which settings each release knows.

python -m tools.learn_keys            all releases, a few minutes
python -m tools.learn_keys 0.19.0     prints the answers of one release
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hermes_doctor.settings.closest_word import closest_word
from tools import learn_providers, lessons

TARGET = Path(__file__).parent.parent / "hermes_doctor" / "knowledge" / "keys.json"
LESSON = Path(__file__).parent / "key_lesson.py"


def ask(version: str, *, bridges: bool = True) -> learn_providers.Lesson:
    """Return one release's answers; of the words in its code, keep those that resemble a key."""
    said: dict[str, Any] = lessons.ask(version, LESSON, bridges)
    known = {key.rpartition(".")[2] for key in said["keys"]}
    said["read"] = [
        word for word in said["read"] if word not in known and closest_word(word, known)
    ]
    return learn_providers.by_entry({"releases": [version], **said})


if __name__ == "__main__":
    lessons.learn(ask, lambda said: learn_providers.document(learn_providers.combine(said)), TARGET)
