"""Logging calls of every kind, found in made-up source."""

from __future__ import annotations

from textwrap import dedent

from hermes_doctor.hermes.knowledge.logging_calls import LoggingCall
from tools.logging_source import calls_in

FILE = "gateway/platforms/x.py"
HEAD = "import logging\nlogger = logging.getLogger(__name__)\n"


def found(source: str, file: str = FILE) -> list[LoggingCall]:
    """The calls in a file that has a logger."""
    return calls_in(HEAD + dedent(source), file)


def templates(source: str) -> list[str]:
    """The templates of the calls in a file that has a logger."""
    return [one.template for one in found(source)]


def test_format_strings() -> None:
    """Each place of a format string becomes a slot with the expression that fills it."""
    assert templates('logger.info("%s of %d (%.1f%%) %-5r", a.b, len(c), d, e)') == [
        "{a.b} of {len(c)} ({d}%) {e}"
    ]
    assert templates('logger.info("100% sure")') == ["100% sure"]
    assert templates('logger.info("%(a)s, %(b)d", {"a": x, "b": y + 1})') == ["{x}, {y + 1}"]
    assert templates('logger.info("%s %s", *both)') == ["{both} {both}"]
    assert templates('logger.info("%*d", width, n)') == ["{n}"]
    assert templates('logger.info("%s and %s", one)') == ["{one} and {…}"]


def test_other_texts() -> None:
    """f-strings, concatenations, `%` and `format` give the same templates."""
    same = ["{a} is {b.c}"]

    assert templates('logger.info(f"{a} is {b.c:>5}")') == same
    assert templates('logger.info("%s" " is " + "%s", a, b.c)') == same
    assert templates('logger.info("%s is %s" % (a, b.c))') == same
    assert templates('logger.info("{} is {}".format(a, b.c))') == same
    assert templates('logger.info("{x} is {y:3}".format(x=a, y=b.c))') == same
    assert templates('logger.info(f"{{x}} {a}")') == ["{{x}} {a}"]
    assert templates('logger.info("{x}" + a)') == ["{{x}}{a}"]
    assert templates("logger.info(text)") == ["{text}"]


def test_alternatives() -> None:
    """A message that depends on a condition or on assignments is each of its texts."""
    assert templates('logger.info("on" if a else "off %s", b)') == ["on", "off {b}"]
    assert templates("""
        def f():
            said = "first %s"
            if a:
                said = f"second {b} %s"
            logger.info(said, c)
    """) == ["first {c}", "second {b} {c}"]


def test_text_in_a_value() -> None:
    """If a template has no words, those of the text that fills it are used."""
    assert templates("""
        def f(self):
            message = f"Login failed: {why}"
            logger.error("[%s] %s", self.tag, message)
    """) == ["[{self.tag}] Login failed: {why}"]


def test_long_expressions() -> None:
    """A long expression is cut, and has no braces."""
    [template] = templates('logger.info("%s", {"a": function_with_a_name(1), "b": another_one(2)})')

    assert template.startswith("{''a': function_with_a_name(1)")
    assert template.endswith("…}")
    assert len(template) == 50


def test_levels() -> None:
    """The method says the level, or the first argument of `log`; a variable says none."""
    source = """
        logger.debug("a")
        logger.warn("b")
        logger.exception("c")
        logger.fatal("d")
        logger.log(logging.ERROR, "e")
        logger.log(level, "f")
        logger.setLevel("g")
    """

    assert [(one.level, one.template) for one in found(source)] == [
        ("DEBUG", "a"), ("WARNING", "b"), ("ERROR", "c"), ("CRITICAL", "d"), ("ERROR", "e"),
        ("", "f"),
    ]  # fmt: skip


def test_loggers() -> None:
    """The name comes from `getLogger`, the module, the import or the accessor; else it is empty."""
    source = """
        import logging as _logging
        from agent.events import event_log
        other = _logging.getLogger("gateway.run")
        def lazy():
            import run_agent
            return run_agent
        class A:
            def __init__(self, log):
                self.logger = logging.getLogger(f"made.{self}")
                log.info("argument")
        logger.info("module")
        other.info("named")
        logging.info("root")
        logging.getLogger("direct").info("direct")
        event_log.info("imported")
        lazy().logger.info("accessor")
        self.logger.info("made up")
        math.log(1, "no logger")
        parser.error("no logger")
    """

    assert {one.template: one.logger for one in found(source)} == {
        "argument": "",
        "module": "gateway.platforms.x",
        "named": "gateway.run",
        "root": "root",
        "direct": "direct",
        "imported": "agent.events",
        "accessor": "run_agent",
        "made up": "",
    }
    assert found('logger.info("a")', "plugins/x/__init__.py")[0].logger == "plugins.x"


def test_functions_that_log() -> None:
    """A call of a function that hands its message to a logger is a logging call."""
    source = """
        def warn_once(key, text, *args):
            logger.warning(text, *args)
        class A:
            def _say(self, text):
                logger.info(text)
            def f(self):
                self._say("hello")
                warn_once("k", "lost %s", name)
    """

    assert [(one.level, one.function, one.template) for one in found(source)][2:] == [
        ("INFO", "A.f", "hello"),
        ("WARNING", "A.f", "lost {name}"),
    ]


def test_errors() -> None:
    """It is known which error a call shows, which types are caught, and whether it is traced."""
    source = """
        def f():
            try:
                g()
            except (OSError, sqlite3.Error) as bad:
                logger.error("a %s", bad)
                logger.exception("b")
                logger.error("c", exc_info=True)
                logger.error("d", exc_info=False)
                logger.error("e %s", other)
            except Exception as exc:
                logger.error("f %s", str(exc)[:200])
            logger.error("g %s", result.error)
    """
    said = {one.template[0]: (one.error, one.caught, one.traceback) for one in found(source)}

    assert said == {
        "a": ("bad", "OSError sqlite3.Error", False),
        "b": ("bad", "OSError sqlite3.Error", True),
        "c": ("bad", "OSError sqlite3.Error", True),
        "d": ("", "", False),
        "e": ("", "", False),
        "f": ("exc", "", False),
        "g": ("result.error", "", False),
    }


def test_each_once() -> None:
    """The same call in the same function is one entry; functions have their classes' names."""
    source = """
        class A:
            def f(self):
                logger.info("x")
                logger.info("x")
        logger.info("x")
    """

    assert [one.function for one in found(source)] == ["A.f", ""]
