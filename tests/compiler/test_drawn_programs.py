"""Random programs over the whole language: each is refused, or its weights give its meaning."""

import random
from collections import Counter

import pytest

from drawn_programs import OPERATIONS, SETTINGS, Case, Expression, drawn, filled, outcome
from transformist.language.node import Node


def kinds_of_nodes():
    """The kinds of subexpressions of the language."""
    kinds, waiting = set(), [Node]
    while waiting:
        more = waiting.pop().__subclasses__()
        kinds.update(more)
        waiting += more
    return kinds


def require_refused_or_right(case):
    what, found = outcome(case)
    assert what != "wrong", f"{case}: {found}"
    return what, found


@pytest.mark.trials(1, 12)
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


@pytest.mark.trials(60, 2000)
def test_drawn_programs_are_refused_or_right(trials):
    draw = random.Random(0)
    counts = Counter()
    while sum(counts.values()) < trials:
        what, _ = require_refused_or_right(drawn(draw))
        counts[what] += what != "no program"
    print(dict(counts))
    assert counts["right"] > trials / 2
