"""Find the causes that a text names."""

from __future__ import annotations

from hermes_doctor.diagnosis.plugins.log_causes.cause_index import Cause, Signs, index_of

PORT = Cause("port-in-use", "machine", 20, "X"), Signs(("EADDRINUSE",))
REFUSED = Cause("refused", "network", 44, "X"), Signs(("ECONNREFUSED",), ("ConnectError",))
RIGHTS = (
    Cause("rights", "machine", 45, "X"),
    Signs(("EACCES", "EPERM"), ("PermissionError",)),
)
BUSY = Cause("busy", "machine", 46, "X"), Signs(("EBUSY",))
COLUMN = (
    Cause("column", "data", 40, "X"),
    Signs((), (), ((r"no such column: (?P<column>\w{1,20})", (("no such column: ",),)),)),
)
INDEX = index_of([PORT, REFUSED, RIGHTS, BUSY, COLUMN])


def names(text: str) -> list[str]:
    """Return the causes that a text names."""
    return sorted(one.cause.name for one in INDEX.find(text))


def test_numbers_of_errors() -> None:
    """The number of any system, in the forms of Python, Rust and Windows."""
    assert names("[Errno 98] x") == names("[Errno 48] x") == ["port-in-use"]
    assert names("OSError(98, 'x')") == names("bind failed (os error 98)") == ["port-in-use"]
    assert names("[WinError 5] x") == ["rights"]
    assert names("[Errno 10061] x") == ["refused"]
    assert names("errno: -98") == []
    assert names("HTTP 98 [Error 98]") == []


def test_a_text_decides_before_a_number() -> None:
    """The same number means different things on different systems."""
    assert names("[Errno 61] No data available") == ["refused"]  # its text is not known
    assert names("[Errno 13] Address already in use") == ["port-in-use"]
    assert names("[Errno 111] File too large") == []


def test_numbers_of_other_errors() -> None:
    """The numbers of TLS and of HTTP are not those of the system."""
    assert names("SSLCertVerificationError(1, '[SSL: X]')") == []
    assert names("[Errno 1] [SSL: APPLICATION_DATA] x") == []
    assert names("Error code: 98") == []


def test_names_of_errors() -> None:
    """Node.js and Windows write the names."""
    assert names("listen EADDRINUSE :::3000") == names("WSAEADDRINUSE") == ["port-in-use"]
    assert names("XEADDRINUSE") == []


def test_texts_begin_at_a_word() -> None:
    """Other words that end alike are something else."""
    assert names("Permission denied") == ["rights"]
    assert names("Intermission: permission denied") == ["rights"]
    assert names("nopermission denied") == []


def test_classes_of_exceptions() -> None:
    """They are named in a line, in a `repr`, and not in a sentence."""
    assert names("ConnectError") == names("ConnectError: x") == names("ConnectError('')")
    assert names("ConnectError('')") == ["refused"]
    assert names("ConnectErrors") == names("the ConnectError page of the manual") == []


def test_words_say_more_than_classes() -> None:
    """A class is general, the text behind it is not."""
    assert names("PermissionError: [WinError 32] The process cannot access the file because it is "
                 "being used by another process") == ["busy"]  # fmt: skip
    assert names("ConnectError: no such column: x") == ["column"]


def test_fields_and_places() -> None:
    """A pattern takes fields; the place of the words is known."""
    [found] = INDEX.find("tick: no such column: tasks")
    assert (found.fields, found.end) == ({"column": "tasks"}, 27)


def test_a_pattern_is_tried_only_if_its_words_are_there() -> None:
    """Regular expressions are slow."""
    index = index_of([COLUMN])
    index.find("no such table: x")
    assert index.tried == 0
    index.find("no such column: x")
    assert index.tried == 1
