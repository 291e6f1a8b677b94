"""The exception classes of libraries, and those that causes name."""

from __future__ import annotations

from tools.exception_classes import BUILT_IN, classes_of, named_classes

SOURCE = '''
class Base(Exception):
    """The base of all."""
class ConnectTimeout(Base): ...
class Slow(timeouts.ConnectTimeout): ...
class SlowWarning(UserWarning): ...
class Adapter(BaseAdapter): ...
class Loop(Loop): ...
def work():
    class Inner(OSError): ...
'''
BROKEN = "class Template({{ base }}): pass"
SAY_NOTHING = frozenset({
    "ArithmeticError", "BaseException", "BaseExceptionGroup", "BlockingIOError",
    "ChildProcessError", "EOFError", "EnvironmentError", "Exception", "ExceptionGroup",
    "GeneratorExit", "IOError", "InterruptedError", "KeyboardInterrupt", "OSError",
    "ProcessLookupError", "RuntimeError", "SystemExit", "UnicodeTranslateError", "ValueError",
    "EncodingWarning",
})  # fmt: skip
"""Built-in classes whose name alone does not tell what is wrong."""


def test_the_classes_of_a_library() -> None:
    """Those that inherit from an exception, in any depth; no warnings and no other classes."""
    assert classes_of([SOURCE, BROKEN]) == {"Base", "ConnectTimeout", "Slow", "Inner"}


def test_the_built_in_exceptions() -> None:
    """Each names a cause, or says nothing by itself."""
    classes = {name for name in BUILT_IN if not name.endswith("Warning")}

    assert classes - named_classes() - SAY_NOTHING == set()


def test_a_small_list() -> None:
    """What the clients of Hermes raise when a connection fails is named."""
    assert named_classes() >= {
        "ConnectTimeout", "ReadTimeout", "PoolTimeout", "ReadError", "RemoteProtocolError",
        "ServerDisconnectedError", "ClientConnectorError", "ConnectionClosedError",
        "NameResolutionError", "SSLError", "NetworkError", "APIConnectionError",
    }  # fmt: skip
