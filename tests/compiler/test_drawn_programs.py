"""Random programs over the whole language: each is refused, or its weights give its meaning."""

import ast
import random
from collections import Counter

import pytest

from drawn_programs import (
    OPERATIONS,
    SETTINGS,
    Case,
    Expression,
    drawn,
    expression,
    filled,
    outcome,
    program_of,
)
from transformist.errors import TransformistError
from transformist.language.across import Mask
from transformist.language.leaves import NAMES
from transformist.language.node import Node
from transformist.language.per_position import WRAPPERS, Matches
from transformist.language.pointwise import RELATIONS
from transformist.language.selection import SelectByRelation
from transformist.language.types import Number


def kinds_of_nodes():
    """The kinds of subexpressions of the language."""
    kinds, waiting = set(), [Node]
    while waiting:
        more = waiting.pop().__subclasses__()
        kinds.update(more)
        waiting += more
    return kinds


OPERATORS = {
    "__add__": ast.Add, "__sub__": ast.Sub, "__mul__": ast.Mult, "__truediv__": ast.Div,
    "__floordiv__": ast.FloorDiv, "__mod__": ast.Mod, "__and__": ast.BitAnd, "__or__": ast.BitOr,
    "__xor__": ast.BitXor, "__neg__": ast.USub, "__pos__": ast.UAdd, "__invert__": ast.Invert,
    "__eq__": ast.Eq, "__ne__": ast.NotEq, "__lt__": ast.Lt, "__le__": ast.LtE, "__gt__": ast.Gt,
    "__ge__": ast.GtE,
}  # fmt: skip
"""Operators of Python, by the names of their methods."""

MASKED = ("mean", "count", "any", "all")
"""Methods of sequences whose first argument is a mask; `mean` of matches takes values."""

OFTEN = 3
"""An operation occurs at least this many times among 2000 drawn programs."""


def operations_of_the_language():
    """Methods, operators, masks, positions, relations of selections, and whole functions."""
    found = {("mask", str(mask)) for mask in Mask} | {("position", name) for name in NAMES}
    for kind in WRAPPERS.values():
        methods = {name for name in dir(kind) if not name.startswith("_")}
        found |= methods | {name for name in OPERATORS if name in vars(kind)}
    found |= {name for name in vars(Matches) if not name.startswith("_")}
    for relation in {*RELATIONS} - {"=="}:
        found |= {(relation, "listed"), (relation, "whole"), (relation, "whole", "mean")}
    return found | {(sign, of) for sign in ("%", "//") for of in ("sum", "product")}


def operations_in(body):
    """Methods, operators, masks, positions, and whole functions in the text of an expression."""
    signs = {sign: name for name, sign in OPERATORS.items()}
    for node in ast.walk(ast.parse(body.text, mode="eval")):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.BinOp | ast.UnaryOp):
            yield signs.get(type(node.op))
        elif isinstance(node, ast.Compare):
            yield from (signs.get(type(each)) for each in node.ops)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            names = {each.arg: each.value for each in node.keywords}
            mask = names.get("mask") or (node.func.attr in MASKED and node.args and node.args[0])
            if isinstance(mask, ast.Constant):
                yield "mask", mask.value
            if node.func.attr == "position":
                yield "position", node.args[0].value
    for each in body.below():
        for sign in ("%", "//"):
            if sign in each.template and "lambda" not in each.template:
                yield from whole_arguments(sign, each.template)


def whole_arguments(sign, template):
    """Yield the sign with "sum" or "product" for each of these on its left in a template."""
    number = template.partition(sign)[0]
    if "*" in number:
        yield sign, "product"
    if "+" in number or "-" in number:
        yield sign, "sum"


def relations_in(nodes):
    """Relations of selections, with the kind of their keys and queries, and with the choice."""
    for node in nodes:
        if isinstance(node, SelectByRelation):
            if all(is_unlisted_whole(each.type) for each in node.children[:2]):
                yield node.relation, "whole"
                yield node.relation, "whole", node.choose
            else:
                yield node.relation, "listed"


def is_unlisted_whole(kind):
    return isinstance(kind, Number) and kind.whole is not None and kind.values is None


def test_each_operation_occurs_in_the_drawn_programs():
    """The draws are those of `test_drawn_programs_are_refused_or_right`."""
    draw, counts = random.Random(0), Counter()
    for _ in range(2000):
        case = drawn(draw)
        try:
            nodes = program_of(case.body.text, case.alphabet).nodes
        except TransformistError:
            continue
        counts.update(operations_in(case.body))
        counts.update(relations_in(nodes))
    wanted = operations_of_the_language()
    seldom = {each: counts[each] for each in wanted if counts[each] < OFTEN}
    assert not seldom, seldom


REMAINDERS = (
    ("$0", "W"), ("($0 * $0)", "W"), ("($0 * $1)", "WW"), ("($0 + $1)", "WW"),
    ("(1 - 2 * $0 - $1 * $2)", "WWW"), ("($0 * ($1 + 3 * $2))", "WWW"),
    ("(5 * $0 * $0 - 3 * $1 + $2)", "WWW"),
)  # fmt: skip


@pytest.mark.trials(6, 300)
def test_drawn_remainders_and_quotients_are_those_of_the_number(trials):
    """The interpreter evaluates remainders as they are traced: from the parts of the number.

    So a mistake there is the same in the model, and comparing the two does not show it.
    """
    draw, count = random.Random(4), 0
    while count < trials:
        template, kinds = draw.choice(REMAINDERS)
        parts = tuple(expression(each, draw.choice((0, 1, 2)), draw) for each in kinds)
        number = Expression("W", template, parts).text
        divisor = draw.choice((1, 2, 3, 7, -2, -5, 64, 65, 100))
        text = f"tf.outputs(x={number}.tag(), rest=({number} % {divisor}).tag(), "
        try:
            program = program_of(f"{text}whole=({number} // {divisor}).tag())")
        except TransformistError:
            continue
        count += 1
        for x in ("a", "ab", "babba", "".join(draw.choices("ab", k=12))):
            found = program(x)
            expected = [divmod(each, divisor) for each in found["x"]]
            assert [*zip(found["whole"], found["rest"], strict=True)] == expected, (text, x)


def require_refused_or_right(case):
    what, found = outcome(case)
    assert what != "wrong", f"{case}: {found}"
    return what, found


@pytest.mark.trials(1, 4)
def test_each_operation_on_little_is_refused_or_right(trials):
    draw = random.Random(2)
    counts, seen = Counter(), set()
    for kind, template, kinds in OPERATIONS:
        for _ in range(trials):
            body = Expression("output", "$0.tag()", (filled(template, kind, kinds, 1, draw),))
            what, found = require_refused_or_right(Case(body, *draw.choice(SETTINGS), 5))
            counts[what] += 1
            seen.update(map(type, found if what == "right" else ()))
    print(dict(counts))
    assert counts["right"] > sum(counts.values()) / 2
    assert seen == kinds_of_nodes()


@pytest.mark.trials(60, 1000)
def test_drawn_programs_are_refused_or_right(trials):
    draw = random.Random(0)
    counts = Counter()
    while sum(counts.values()) < trials:
        what, _ = require_refused_or_right(drawn(draw))
        counts[what] += what != "no program"
    print(dict(counts))
    assert counts["right"] > trials / 2
