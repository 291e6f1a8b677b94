"""Find the logging calls in the source of a release, with the templates of their messages.

A template is the text of a message with a named slot for each value: `{error}`. Braces of the
text itself are doubled. Format strings, f-strings, concatenations and `.format` become the same
template.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import product

from hermes_doctor.hermes.knowledge.logging_calls import ANY, LoggingCall, module_of

LEVELS = {
    "debug": "DEBUG", "info": "INFO", "warning": "WARNING", "warn": "WARNING", "error": "ERROR",
    "exception": "ERROR", "critical": "CRITICAL", "fatal": "CRITICAL",
}  # fmt: skip
ALTERNATIVES = 4
"""More texts than this for one expression become a slot."""
SLOT_LENGTH = 48
ERROR_NAMES = re.compile(r"(?:^|[._])(?:e|ex|exc|err|error|exception)\Z")
_LOGGER_NAME = re.compile(r"_?(?:\w+_)?(?:log|logger)\Z", re.IGNORECASE)
_FORMAT = re.compile(r"%(?:\((\w+)\))?[#0\- +]*(\*|\d+)?(?:\.(?:\*|\d+))?[hlL]?([a-zA-Z%])")
_SLOTS = re.compile(r"(?<!\{)(?:\{\{)*\{[^{}]+\}")
_FIELD = re.compile(r"\{\{|\}\}|\{([^{}:!]*)(?:![rsa])?(?::[^{}]*)?\}")


@cache
def calls_in(source: str, file: str) -> list[LoggingCall]:
    """Return the logging calls of a file in their order, each once.

    It is remembered, because most files are the same in two releases.
    """
    reader = _File(ast.parse(source), file)
    return list(dict.fromkeys(reader.calls()))


@dataclass
class _Scope:
    """A function with what its body says about names."""

    name: str
    node: ast.AST
    parameters: list[str] = field(default_factory=list)

    @cached_property
    def texts(self) -> dict[str, list[ast.expr]]:
        """The values that are assigned to each name."""
        found: dict[str, list[ast.expr]] = {}
        for inner in ast.walk(self.node):
            if isinstance(inner, ast.Assign):
                for target in inner.targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, []).append(inner.value)
        return found


@dataclass
class _Wrapper:
    """A function that hands its parameter to a logger as the message."""

    parameter: int
    logger: str
    level: str


class _File:
    def __init__(self, tree: ast.Module, file: str) -> None:
        self.tree = tree
        self.file = file
        self.module = module_of(file)
        self.loggers: dict[str, str] = {}
        """The name of the logger that a variable or attribute is bound to."""
        self.accessors: dict[str, str] = {}
        """Functions that return another module, whose `logger` is used."""
        self.wrappers: dict[str, _Wrapper] = {}
        self._bind()

    def calls(self) -> Iterator[LoggingCall]:
        found = list(self._walk(self.tree, _Scope("", self.tree), "", ""))
        if self.wrappers:  # now that they are known, calls of them are found, too
            found = list(self._walk(self.tree, _Scope("", self.tree), "", ""))
        yield from found

    def _bind(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                named = self._named_logger(node.value)
                for target in targets:
                    if named is not None and isinstance(target, ast.Name | ast.Attribute):
                        self.loggers[ast.unparse(target)] = named
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for one in node.names:
                    if _LOGGER_NAME.match(one.name):
                        self.loggers.setdefault(one.asname or one.name, node.module)
            elif isinstance(node, ast.FunctionDef):
                imported = [one for one in node.body if isinstance(one, ast.Import)]
                last = node.body[-1]
                if imported and isinstance(last, ast.Return) and isinstance(last.value, ast.Name):
                    self.accessors[node.name] = last.value.id

    def _named_logger(self, value: ast.expr) -> str | None:
        """Return the name of the logger that `getLogger(…)` gives; None for anything else."""
        if isinstance(value, ast.BoolOp):
            return self._named_logger(value.values[-1])
        if not isinstance(value, ast.Call) or not ast.unparse(value.func).endswith("getLogger"):
            return None
        if not value.args:
            return "root"
        [name, *_] = value.args
        if isinstance(name, ast.Constant):
            return str(name.value)
        return self.module if ast.unparse(name) == "__name__" else ANY

    def _logger(self, receiver: ast.expr) -> str | None:
        """Return the name of the logger that a call goes to; None if it is no logger."""
        text = ast.unparse(receiver)
        if text in self.loggers:
            return self.loggers[text]
        if (named := self._named_logger(receiver)) is not None:
            return named
        if text in ("logging", "_logging"):
            return "root"
        if not _LOGGER_NAME.match(text.rpartition(".")[2]):
            return None
        owner = text.partition(".")[0]
        return self.accessors.get(owner.removesuffix("()"), ANY)

    def _walk(self, node: ast.AST, scope: _Scope, error: str, caught: str) -> Iterator[LoggingCall]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            scope = self._inner(node, scope)
            error = caught = ""
        elif isinstance(node, ast.ExceptHandler):
            error, caught = node.name or "", _types(node.type)
        elif isinstance(node, ast.Call):
            yield from self._call(node, scope, error, caught)
        for child in ast.iter_child_nodes(node):
            yield from self._walk(child, scope, error, caught)

    def _inner(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, outer: _Scope
    ) -> _Scope:
        scope = _Scope(f"{outer.name}.{node.name}".lstrip("."), node)
        if isinstance(node, ast.ClassDef):
            return scope
        scope.parameters = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
        return scope

    def _call(
        self, node: ast.Call, scope: _Scope, error: str, caught: str
    ) -> Iterator[LoggingCall]:
        found = self._message(node)
        if found is None:
            return
        logger, level, message, values = found
        if isinstance(message, ast.Name) and message.id in scope.parameters:
            wrapper = _Wrapper(scope.parameters.index(message.id), logger, level)
            self.wrappers[scope.name.rpartition(".")[2]] = wrapper
        given = {one.arg: one.value for one in node.keywords if one.arg}
        traced = given.get("exc_info")
        traceback = ast.unparse(node.func).endswith(".exception") if traced is None else not (
            isinstance(traced, ast.Constant) and not traced.value
        )  # fmt: skip
        for template, text in self._templates(message, values, scope):
            used = error or _error_in(values, text)
            named = used if traceback or _names(used, template) else ""
            where = caught if named == error or (traceback and not named) else ""
            yield LoggingCall(
                self.file, scope.name, logger, level, template, named, where, traceback
            )

    def _templates(
        self, message: ast.expr, values: list[ast.expr], scope: _Scope
    ) -> Iterator[tuple[str, list[_Part]]]:
        """Yield the templates of a message, each with the parts it was made of.

        If a template would be only slots, the texts that were assigned to their variables say more.
        """
        for text in self._texts(message, scope):
            template = _filled(text, values) if values else _joined(text)
            choices = [[_Part(_slot(one), is_slot=True)] for one in values]
            if re.search(r"[^\W\d_]", _SLOTS.sub("", template)):
                yield template, text
                continue
            texts = [
                self._texts(one, scope) if isinstance(one, ast.Name) else [choice]
                for one, choice in zip(values, choices, strict=True)
            ]
            every = list(product(*texts)) if texts else []
            if not 0 < len(every) <= ALTERNATIVES or len(_SLOTS.findall(template)) != len(values):
                yield template, text
                continue
            for chosen in every:
                yield _replaced(template, chosen), text

    def _message(self, node: ast.Call) -> tuple[str, str, ast.expr, list[ast.expr]] | None:
        """Return logger, level, message and values of a call that logs."""
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        if isinstance(function, ast.Attribute) and (name in LEVELS or name == "log"):
            logger = self._logger(function.value)
            if logger is not None:
                arguments, level = list(node.args), LEVELS.get(name, ANY)
                if name == "log" and arguments:
                    level = _level(arguments.pop(0))
                if arguments and level is not None:
                    return logger, level, arguments[0], arguments[1:]
                return None
        if isinstance(function, ast.Name):
            name = function.id
        wrapper = self.wrappers.get(name)
        if wrapper is None:
            return None
        place = wrapper.parameter
        if isinstance(function, ast.Attribute) and ast.unparse(function.value) in ("self", "cls"):
            place -= 1
        if not 0 <= place < len(node.args):
            return None
        return wrapper.logger, wrapper.level, node.args[place], list(node.args[place + 1 :])

    def _texts(self, node: ast.expr, scope: _Scope, depth: int = 3) -> list[list[_Part]]:
        """Return what a message may be: texts and slots."""
        slot = [_Part(_slot(node), is_slot=True)]
        if isinstance(node, ast.Constant):
            return [[_Part(str(node.value))]]
        if isinstance(node, ast.JoinedStr):
            choices = [
                self._texts(one.value, scope, 0)
                if isinstance(one, ast.FormattedValue) and isinstance(one.value, ast.IfExp)
                else [[_Part(_slot(one.value), is_slot=True)]]
                if isinstance(one, ast.FormattedValue)
                else [[_Part(str(one.value))]]
                for one in node.values
                if isinstance(one, ast.FormattedValue | ast.Constant)
            ]
            return _combined(choices, slot)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            sides = [self._texts(side, scope, depth) for side in (node.left, node.right)]
            return _combined(sides, slot)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            right = node.right
            values = list(right.elts) if isinstance(right, ast.Tuple) else [right]
            return [_parts(_filled(one, values)) for one in self._texts(node.left, scope, depth)]
        if isinstance(node, ast.IfExp):
            both = self._texts(node.body, scope, depth) + self._texts(node.orelse, scope, depth)
            return both if len(both) <= ALTERNATIVES else [slot]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if node.func.attr == "format" and isinstance(owner, ast.Constant):
                return [_parts(_formatted(str(owner.value), node))]
            if node.func.attr == "join" and isinstance(owner, ast.Constant):
                return [slot]
        if isinstance(node, ast.Name) and depth and (assigned := scope.texts.get(node.id)):
            found = [text for one in assigned for text in self._texts(one, scope, depth - 1)]
            if len(found) <= ALTERNATIVES:
                return found
        return [slot]


@dataclass(frozen=True)
class _Part:
    """A piece of a message: text, or the name of a slot."""

    text: str
    is_slot: bool = False


def _combined(choices: list[list[list[_Part]]], slot: list[_Part]) -> list[list[_Part]]:
    """Return every combination of the choices; the slot if there are too many."""
    count = 1
    for texts in choices:
        count *= len(texts)
    if count > ALTERNATIVES:
        choices = [one if len(one) == 1 else [[_Part("…", is_slot=True)]] for one in choices]
    return [[part for text in one for part in text] for one in product(*choices)] or [slot]


def _slot(node: ast.expr) -> str:
    """Return a short name for an expression, without braces."""
    text = re.sub(r"[{}\n]", "'", ast.unparse(node))
    return text if len(text) <= SLOT_LENGTH else f"{text[: SLOT_LENGTH - 1]}…"


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _replaced(template: str, chosen: tuple[list[_Part], ...]) -> str:
    """Put texts into the slots of a template, in their order."""
    left = iter(chosen)
    return _SLOTS.sub(lambda _: _joined(next(left)), template)


def _joined(parts: list[_Part]) -> str:
    return "".join(f"{{{one.text}}}" if one.is_slot else _escaped(one.text) for one in parts)


def _filled(parts: list[_Part], values: list[ast.expr]) -> str:
    """Put the names of the values into the places of a format string."""
    left = list(values)
    named: dict[str, ast.expr] = {}
    if values and isinstance(values[0], ast.Dict):
        keys = (str(getattr(key, "value", "")) for key in values[0].keys)
        named = dict(zip(keys, values[0].values, strict=True))

    def value(match: re.Match[str]) -> str:
        name, width, kind = match.groups()
        if kind == "%":
            return "\0%"
        if name:
            return f"\0{_slot(named[name]) if name in named else name}\1"
        if width == "*" and left:
            left.pop(0)
        if left and isinstance(left[0], ast.Starred):
            return f"\0{_slot(left[0].value)}\1"
        return f"\0{_slot(left.pop(0)) if left else '…'}\1"

    said = ""
    for part in parts:
        if part.is_slot:
            said += f"{{{part.text}}}"
            continue
        text = _escaped(_FORMAT.sub(value, part.text).replace("\0%", "%"))
        said += text.replace("\0", "{").replace("\1", "}")
    return said


def _formatted(text: str, call: ast.Call) -> str:
    """Put the names of the arguments into the fields of a text for `format`."""
    given = {one.arg: one.value for one in call.keywords if one.arg}
    left = iter(call.args)

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return match[0]
        argument = given.get(name) if name else next(left, None)
        return f"{{{name if argument is None else _slot(argument)}}}"

    return _FIELD.sub(value, text)


def _parts(template: str) -> list[_Part]:
    """Take a template apart again."""
    return [
        _Part(piece[1:-1], is_slot=True)
        if piece.startswith("{") and not piece.startswith("{{")
        else _Part(piece.replace("{{", "{").replace("}}", "}"))
        for piece in re.split(r"(?<!\{)(\{[^{}]+\})(?!\})", template)
        if piece
    ]


def _level(node: ast.expr) -> str:
    """Return the level that `log` is called with; empty if it is a variable."""
    name = ast.unparse(node).rpartition(".")[2]
    return LEVELS.get(name.lower(), ANY) if name.isupper() else ANY


def _types(node: ast.expr | None) -> str:
    """Return the types that a handler catches, unless it catches all."""
    if node is None:
        return ""
    names = node.elts if isinstance(node, ast.Tuple) else [node]
    said = [ast.unparse(one) for one in names]
    return "" if {"Exception", "BaseException"} & set(said) else " ".join(said)


def _names(name: str, template: str) -> bool:
    """Tell whether a template has a slot with this name in it."""
    slots = [one.text for one in _parts(template) if one.is_slot]
    return bool(name) and any(re.search(rf"(?<![\w.]){re.escape(name)}\b", one) for one in slots)


def _error_in(values: list[ast.expr], text: list[_Part]) -> str:
    """Return the slot that is an error by its name."""
    slots = [_slot(one) for one in values] + [one.text for one in text if one.is_slot]
    return next((one for one in slots if ERROR_NAMES.search(one)), "")
