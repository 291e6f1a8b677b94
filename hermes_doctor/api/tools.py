"""Words for people, files, patterns, named tuples, and answers that may be unknown."""

from hermes_doctor.core.home import CACHES, loss
from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.message import ago, clock, count, duration, listed, sentences, shorten
from hermes_doctor.core.model import known_or
from hermes_doctor.core.system.files import Snapshot, list_folder, moment, read_json, shown, size

__all__ = [
    "CACHES",
    "NamedTuple",
    "Snapshot",
    "ago",
    "clock",
    "count",
    "duration",
    "known_or",
    "list_folder",
    "listed",
    "loss",
    "moment",
    "pattern",
    "read_json",
    "sentences",
    "shorten",
    "shown",
    "size",
]
