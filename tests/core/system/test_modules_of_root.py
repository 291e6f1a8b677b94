"""A process that may not read the tool gets the code of its modules from root."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import modules_of_root
from hermes_doctor.core.system.privileges import Privileges
from hermes_doctor.core.system.separate_process import run_as
from tests.helpers.crash_server import STRANGER

USER = Privileges(STRANGER, STRANGER, (STRANGER,), Path("/"), can_reach=True)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")


@pytest.mark.parametrize(
    "name",
    ["pytest", "tests.helpers.support", "no_such_module", "json.no_such", "math", "sys", "."],
)
def test_other_modules_are_not_sent(name: str) -> None:
    """Neither other packages, which may be private, nor what has no Python code."""
    assert modules_of_root.send(name) is None


@as_root
def test_a_module_is_imported_from_what_root_sends() -> None:
    """Its file need not be readable; root does not import it."""
    left = ("hermes_doctor.render.junit", "colorsys", "xmlrpc", "xmlrpc.client")
    for name in left:
        sys.modules.pop(name, None)

    def work() -> list[str]:
        sys.path.clear()
        modules_of_root.install()
        import colorsys
        import xmlrpc.client

        from hermes_doctor.render import junit

        assert colorsys.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)
        return [junit.__name__, str(xmlrpc.__path__), xmlrpc.client.__file__ or ""]

    made = run_as(USER, work, {"module": modules_of_root.send})

    assert made[0] == "hermes_doctor.render.junit"
    assert made[2].endswith("xmlrpc/client.py")
    assert not {"colorsys", "xmlrpc.client"} & set(sys.modules)


@as_root
def test_a_copy_of_the_process_asks_nothing() -> None:
    """It would take the answers of its parent."""

    def work() -> int:
        modules_of_root.install()
        pid = os.fork()
        if not pid:
            os._exit(
                int(
                    modules_of_root.is_asking() or bool(modules_of_root.Finder.find_spec("x", None))
                )
            )
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert run_as(USER, work, {}) == 0


@as_root
def test_without_an_answer_of_root() -> None:
    """The import fails with a reason."""

    def work() -> None:
        modules_of_root.install()
        import wave  # noqa: F401

    sys.modules.pop("wave", None)
    with pytest.raises(CouldNotLook, match="root does not do module"):
        run_as(USER, work, {})
