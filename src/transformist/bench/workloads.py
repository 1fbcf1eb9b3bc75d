"""Workloads: models, inputs, and the answers of plain algorithms."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from transformist.bench.every_string import EVERY
from transformist.catalogue import recipe
from transformist.compiler import compile as compiled
from transformist.language import program
from transformist.model import Transformer
from transformist.programs import PROGRAMS

LETTERS = "abcdefghijklmnopqrstuvwxyz"

Built = tuple[Transformer, str, Any]
"""A model, an input, and the right answer, or the right answers after each symbol."""


@program(alphabet=LETTERS)
def induction(x: Any) -> Any:
    """The symbol that followed the last earlier occurrence of each symbol, of 26."""
    previous = x.predecessor(default="none")
    return x.select(previous, mask="future").rightmost(x, default=x).next_token()


def brackets(n: int) -> Built:
    """Brackets opened to the middle, then closed.

    Example:
        >>> brackets(6)[1:]
        ('((()))', True)

    """
    model = recipe("dyck-1").build(max_length=n)
    return model, "(" * (n // 2) + ")" * (n // 2), n % 2 == 0


def walk(n: int) -> Built:
    """Drawn brackets that stay nested, and whether each prefix is balanced."""
    rnd, depth, x, answers = random.Random(0), 0, [], []
    for _ in range(n):
        x.append("(" if depth == 0 or rnd.random() < 0.5 else ")")
        depth += 1 if x[-1] == "(" else -1
        answers.append(depth == 0)
    return recipe("dyck-1").build(max_length=n), "".join(x), answers


def following(n: int, model: Transformer) -> Built:
    """Letters, and what followed the last earlier occurrence of each, or the letter itself."""
    x = "".join(random.Random(0).choices(LETTERS, k=n))
    last: dict[str, str] = {}
    answer = []
    for i, symbol in enumerate(x):
        if i:
            last[x[i - 1]] = symbol
        answer.append(last.get(symbol, symbol))
    return model, x, "".join(answer)


def induction_recipe(n: int) -> Built:
    """Induction by the recipe, with hard heads."""
    return following(n, recipe("induction-most-recent").build(alphabet=LETTERS))


def induction_program(n: int) -> Built:
    """Induction by the program, compiled with softmax."""
    return following(n, compiled(induction, max_length=n, arithmetic="float64"))


def backwards(n: int, weighting: str) -> Built:
    """The reversed input, each symbol looked up by its position.

    Example:
        >>> _, x, answer = backwards(3, "average-hard")
        >>> x == answer[::-1]
        True

    """
    model = compiled(PROGRAMS["reverse"], max_length=n, weighting=weighting, arithmetic="float64")
    x = "".join(random.Random(0).choices("abc", k=n))
    return model, x, x[::-1]


def nested(n: int) -> Built:
    """Two kinds of brackets, drawn, nested at most 8 deep."""
    rnd = random.Random(0)
    stack: list[str] = []
    x: list[str] = []
    n -= n % 2
    while len(x) < n:
        full = len(stack) in (8, n - len(x))
        if stack and (full or rnd.random() < 0.5):
            x.append(stack.pop())
        else:
            opened = rnd.choice("([")
            x.append(opened)
            stack.append(")" if opened == "(" else "]")
    return recipe("dyck-k-d").build(kinds=2, depth=8), "".join(x), True


WHOLE: Mapping[str, Callable[[int], Built]] = {
    "dyck-1": brackets,
    "induction": induction_recipe,
    "induction-softmax": induction_program,
    "quadratic-lookup": lambda n: backwards(n, "average-hard"),
    "quadratic-lookup-softmax": lambda n: backwards(n, "softmax"),
    "dyck-2-8": nested,
}
"""Whole inputs, with the answer."""

DECODED: Mapping[str, Callable[[int], Built]] = {
    "decode-dyck-1": walk,
    "decode-induction": induction_recipe,
}
"""Inputs that a decoder reads, with the answers after each symbol."""

CASES = (*WHOLE, *DECODED, *EVERY)
"""The names of all cases."""
