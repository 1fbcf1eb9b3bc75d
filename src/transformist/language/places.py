"""Places in a user's file, and refusals that name them.

Python keeps, for each instruction, the lines and columns of the expression it was compiled from. So
the frame of the user's function gives the very expression that it evaluates, and the syntax tree
around the instruction tells `and`, `if` and chained comparisons apart, all of which ask for one
truth value by the same method.
"""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from transformist.errors import InvalidValue

LONGEST_QUOTE = 70
"""The largest number of characters quoted of the user's source."""

LONGEST_VALUE = 20
"""The largest number of characters in the value of a loop's variable, as shown."""


@dataclass(frozen=True)
class Place:
    """A piece of the user's source.

    Attributes:
        file: the name of the file, without its directories.
        line: from 1.
        text: the expression that is written there, or the line.
        assigned: the variable that the expression is assigned to, if a loop repeats it.
        loops: the values of the variables of the loops that repeat it, comprehensions among them:
            k=2, a='b'.

    """

    file: str
    line: int
    text: str
    assigned: str = ""
    loops: str = ""

    def __str__(self) -> str:
        repeated = f" [{self.loops}]" if self.loops else ""
        text = f": {self.text}{repeated}" if self.text else ""
        return f"{self.file}, line {self.line}{text}"

    @property
    def name(self) -> str:
        """Name of the value of this expression: its text or, in a loop, its variable, as y[k=2]."""
        if not self.loops:
            return self.text
        return f"{self.assigned}[{self.loops}]" if self.assigned else f"{self.text} [{self.loops}]"


def user_frame() -> FrameType:
    """The nearest frame outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame):
        frame = frame.f_back
    return frame


def _is_ours(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    # Frames of this package, and of functools, which wraps its methods, are passed over.
    if path == "<string>":  # what dataclasses generate
        return str(frame.f_globals.get("__name__", "")).startswith(__package__ or "")
    return _is_of_the_package(path) or path == functools.__file__


@functools.cache
def _is_of_the_package(path: str) -> bool:
    return Path(path).parent == _PACKAGE


_PACKAGE = Path(__file__).parent


def here() -> Place:
    """The place of the expression that the user's code evaluates at this moment."""
    return _place(user_frame())


def _place(frame: FrameType) -> Place:
    path = frame.f_code.co_filename
    line, last, start, end = _position(frame)
    linecache.checkcache(path)  # the file may have changed since
    text = linecache.getline(path, line)
    if last == line and start is not None:
        text = text.encode()[start:end].decode()  # columns count bytes of UTF-8
    return Place(Path(path).name, line, _quoted(text))


def _position(frame: FrameType) -> tuple[int, int | None, int | None, int | None]:
    # f_lasti counts bytes, and an instruction has two; co_positions has one entry for each.
    found = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    line, last, start, end = found
    return line or frame.f_lineno, last, start, end


def _quoted(text: str) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= LONGEST_QUOTE else f"{joined[: LONGEST_QUOTE - 1]}…"


def here_in(program: CodeType) -> Place:
    """The place of the present expression, with the loops of the program that repeat it.

    Args:
        program: the code of the program's function; loops outside this function do not count.

    """
    frame = user_frame()
    frames = [frame]
    while frames[-1].f_code is not program:
        if frames[-1].f_back is None:
            return _place(frame)
        frames.append(frames[-1].f_back)
    # A loop of the program also repeats the functions that it calls. So the loops of every frame
    # count, from the program's frame inwards. A variable with the same value in two frames is named
    # once.
    values = [each for outer in reversed(frames) if not _is_ours(outer) for each in _values(outer)]
    place = _place(frame)
    if not values:
        return place
    line, last, start, end = _position(frame)
    assigned = _statements(frame).assigned.get((line, start, last, end), "")
    return replace(place, assigned=assigned, loops=", ".join(dict.fromkeys(values)))


def _values(frame: FrameType) -> Iterator[str]:
    """The variables of the loops around the instruction, each with its value."""
    line, _, start, _ = _position(frame)
    at = (line, start or 0)
    for loop in _statements(frame).loops:
        if loop.line < frame.f_code.co_firstlineno:
            continue  # a loop around the function's definition
        if any(begin <= at < end for begin, end in loop.repeats):
            for name in loop.names:
                value = frame.f_locals.get(name)
                # Sequences are left out: all of one type have the same text. The `repr` of a
                # user's object may raise.
                if name in frame.f_locals and not _has_sequences(value):
                    text = ""
                    with suppress(Exception):
                        text = f"={value!r:.{LONGEST_VALUE}}"
                    yield name + text


def _has_sequences(value: object) -> bool:
    """True for a sequence of the program, and for a list or tuple of some."""
    items = value if isinstance(value, list | tuple) else (value,)
    return any(hasattr(each, "tracing") for each in items)


@dataclass(frozen=True)
class Loop:
    """A `for` statement, or one `for` of a comprehension or generator expression.

    Attributes:
        line: the line where the statement or the whole expression begins.
        names: the variables that it sets.
        repeats: beginnings and ends of the parts of the source that are repeated with these values.

    """

    line: int
    names: tuple[str, ...]
    repeats: tuple[tuple[tuple[int, int], tuple[int, int]], ...]


def _loops(node: ast.AST) -> Iterator[Loop]:
    """The loops that a statement or expression makes, the outer before the inner."""
    if isinstance(node, ast.For):
        body = _begin(node.body[0]), _end(node.body[-1])
        yield Loop(node.lineno, _set_by(node.target), (body,))
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        elements = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        for k, part in enumerate(node.generators):
            # [element for … in … if condition for … in …]: the variables of a `for` have their
            # values in the element, in its conditions, and in all that the later `for` contain.
            later = [each for more in node.generators[k + 1 :] for each in (more.iter, *more.ifs)]
            repeated: list[ast.expr] = [*elements, *part.ifs, *later]
            regions = tuple((_begin(each), _end(each)) for each in repeated)
            yield Loop(node.lineno, _set_by(part.target), regions)


def _set_by(target: ast.expr) -> tuple[str, ...]:
    """The names that a loop's target sets."""
    return tuple(each.id for each in ast.walk(target) if isinstance(each, ast.Name))


@dataclass(frozen=True)
class Statements:
    """Parts of a file that give values to variables.

    Attributes:
        loops: the loops, the outer before the inner.
        assigned: the variable that each expression is assigned to, by the position of the
            expression: its first line and column, and its last line and column.

    """

    loops: tuple[Loop, ...]
    assigned: Mapping[tuple[int | None, ...], str]


def _statements(frame: FrameType) -> Statements:
    path = frame.f_code.co_filename
    lines = linecache.getlines(path)
    # `linecache` makes a new list where the file has changed.
    if path not in _PARSED or _PARSED[path][0] is not lines:
        _PARSED[path] = lines, _read("".join(lines))
    return _PARSED[path][1]


_PARSED: dict[str, tuple[list[str], Statements]] = {}
"""By file: its lines and its statements."""


def _read(source: str) -> Statements:
    try:
        nodes = list(ast.walk(ast.parse(source)))  # breadth first: the outer before the inner
    except (SyntaxError, ValueError):
        return Statements((), {})
    assigned: dict[tuple[int | None, ...], str] = {}
    # The statements x = …, x: T = … and (x := …). An augmented assignment x += … has an operator
    # (`op`) and is left out: its right side is not the result that x gets.
    for node in (each for each in nodes if not hasattr(each, "op")):
        value = getattr(node, "value", None)
        for target in [*getattr(node, "targets", ()), getattr(node, "target", None)]:
            if isinstance(target, ast.Name) and isinstance(value, ast.expr):
                at = (value.lineno, value.col_offset, value.end_lineno, value.end_col_offset)
                assigned[at] = target.id
    return Statements(tuple(loop for node in nodes for loop in _loops(node)), assigned)


def refusal(
    invariant: str, *, received: str, remedy: str, where: Place | None = None
) -> InvalidValue:
    """Exception for a place of the user's source; `here` when it is left out."""
    return InvalidValue(invariant, received=received, where=str(where or here()), remedy=remedy)


def name_of(value: object) -> str | None:
    """The variable that holds a value in the user's code."""
    for name, held in user_frame().f_locals.items():
        if held is value:
            return name
    return None


_WHERE = "b.where(x, y), which is x where b holds and y elsewhere"

_INSTEAD: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.And: ("and", "write & for and, each side in parentheses"),
    ast.Or: ("or", "write | for or, each side in parentheses"),
    ast.Not: ("not", "write ~ for not"),
    ast.If: ("if", f"write {_WHERE}"),
    ast.IfExp: ("if", f"write {_WHERE}"),
    ast.While: ("while", "write prefix_mean, all_so_far or another operation across positions"),
    ast.Assert: ("assert", "assert something about the program's answers, outside of it"),
    ast.comprehension: ("if", f"write {_WHERE}"),
    ast.match_case: ("match", "write x.map(f) for a value of each case"),
    ast.Compare: ("a chained comparison", "write (a < b) & (b < c) for a < b < c"),
}
"""Each construct that asks for one truth value, and the text to write instead."""


def refused_truth() -> InvalidValue:
    """Exception for the construct in the user's source that asks for one truth value."""
    frame = user_frame()
    if (asked := _place(frame)).text.startswith(("max(", "min(")):
        return refusal(
            "a sequence has a value at each position, not one truth value",
            received=f"Python's own {asked.text[:3]}",
            where=asked,
            remedy=f"write x.{asked.text[:3]}(y) for {asked.text[:3]}(x, y), x a number",
        )
    kind, text = _construct(frame)
    word, remedy = _INSTEAD.get(
        kind, ("bool()", f"write & | ~ for and, or, not; and for if {_WHERE}")
    )
    place = _place(frame)
    line = Place(place.file, place.line, _quoted(text) if text else place.text)
    return refusal(
        "a sequence has a value at each position, not one truth value",
        received=word if kind in _INSTEAD else f"{word}, and, or, not, if or while",
        where=line,
        remedy=remedy,
    )


def _construct(frame: FrameType) -> tuple[type[ast.AST], str]:
    """The kind and the text of the smallest construct around the instruction."""
    source = "".join(linecache.getlines(frame.f_code.co_filename))
    line, _, start, _ = _position(frame)
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ast.AST, ""
    at = (line, start or 0)
    # The instruction asks for a truth value inside the condition of some construct; of those that
    # contain it the smallest is the one that begins last, and of these the one that ends first.
    around = [each for each in _constructs(tree) if _begin(each[1]) <= at < _end(each[2])]
    if not around:
        return ast.AST, ""
    kind, _, region = max(around, key=lambda each: (_begin(each[1]), [-v for v in _end(each[2])]))
    inner = [each for each in _constructs(region) if each[2] is region]
    return (inner[0][0] if inner else kind), ast.get_source_segment(source, region) or ""


def _constructs(tree: ast.AST) -> Iterator[tuple[type[ast.AST], ast.AST, ast.expr | ast.pattern]]:
    """Each construct that asks for truth values: its kind, its beginning, and its condition."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BoolOp):
            yield type(node.op), node, node
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield ast.Not, node, node
        elif isinstance(node, ast.If | ast.While | ast.Assert):
            yield type(node), node, node.test
        elif isinstance(node, ast.IfExp):
            # Where the condition is a plain name, the jump carries the position of the whole.
            yield ast.IfExp, node, node.test
        elif isinstance(node, ast.comprehension):
            yield from ((ast.comprehension, each, each) for each in node.ifs)
        elif isinstance(node, ast.match_case):
            yield ast.match_case, node.pattern, node.pattern
        elif isinstance(node, ast.Compare) and len(node.ops) > 1:
            yield ast.Compare, node, node


def _begin(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr | ast.pattern | ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def definition(code: CodeType) -> Place:
    """The place where a function begins, below its decorators."""
    path, line = code.co_filename, code.co_firstlineno
    lines = linecache.getlines(path)
    names = (k for k in range(line, len(lines) + 1) if f"def {code.co_name}" in lines[k - 1])
    return Place(Path(path).name, next(names, line), f"def {code.co_name}")
