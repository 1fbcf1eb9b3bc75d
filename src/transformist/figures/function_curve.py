"""A recipe on numbers as a curve: what its weights compute, beside the function of its claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.claims import FunctionClaim, Recipe, ask
from transformist.errors import InvalidValue
from transformist.figures.canvas import COLOURS, GREY, VERMILION, drawn, require_kind

LARGEST = 1e30
"""Largest magnitude of an end of the interval.

Sums and products of two such numbers, at most 1e60, are finite in float64.
"""

POINTS = 241
"""First points of a curve: multiples of 1/240 of the interval, which hit corners at its eighths."""

ROUNDS, HALVED = 24, 8
"""Rounds in which points are added, and intervals that a round halves for each reason."""

SECOND = (Fraction(-1, 2), Fraction(0), Fraction(1, 2))
"""Second numbers of a recipe on two numbers, a curve for each.

They are measured from the middle of the interval, in halves of its length.
"""


def function(
    recipe: Recipe[Any], *, interval: tuple[float, float] = (-2, 2), **settings: Any
) -> Any:
    """Draw what the weights of a recipe compute beside what they approximate, and the difference.

    The points are closest where the functions bend or differ most. The largest difference that is
    told is the largest at a point; between points it may be larger.

    The recipe takes one or two numbers and has one output. The second number has three fixed values
    in the interval, with a curve for each.

    Args:
        recipe: a recipe with a `FunctionClaim`, such as `tf.recipe("relu-by-gelu")`.
        interval: the values of the first number.
        settings: parameters of the recipe.

    Returns:
        A matplotlib `Figure`; its label is a description in words.

    Raises:
        InvalidValue: for another recipe, an interval in which the recipe takes no input, and
            without matplotlib.

    """
    require_kind(recipe, Recipe, "function", "give one such as tf.recipe('relu-by-gelu')")
    claim = recipe.claim
    if not isinstance(claim, FunctionClaim):
        raise _refused(recipe, "one on lists of vectors, positions or strings")
    chosen = recipe.settings(settings)
    domain = ask(claim.domain, **chosen)
    if domain.dimension not in (1, 2):
        raise _refused(recipe, f"one on {domain.dimension} numbers")
    low, high = _ends(interval)
    model = recipe.build(**settings)
    x = [low + (high - low) * Fraction(k, POINTS - 1) for k in range(POINTS)]
    # Rationals: the domain is asked for each point exactly, and the claim's function is exact.
    # A curve of floats would miss the ends of a domain, and steps at them.
    middle, half = (low + high) / 2, (high - low) / 2
    others = [()] if domain.dimension == 1 else [(middle + half * each,) for each in SECOND]
    curves = []
    for other in others:
        cases = [case for each in x if (case := (each, *other)) in domain]
        if cases:
            outputs = len(ask(claim.reference, *cases[0], **chosen))
            if outputs != 1:
                raise _refused(recipe, f"one with {outputs} outputs")
            sampled = _sampled(
                cases,
                lambda new: _computed(model, new),
                lambda new: _claimed(claim, new, chosen),
                lambda case: case in domain,
            )
            curves.append((other, *sampled))
    if not curves:
        raise InvalidValue(
            f"the interval must have inputs of {recipe.name}, which takes {domain}",
            received=f"{interval!r:.60}, which has none at the points of the curve",
            where="function",
            remedy="give another interval",
        )
    return _draw(recipe, curves)


Case = tuple[Fraction, ...]
"""The numbers of one input."""


def _sampled(
    cases: list[Case],
    computed: Callable[[list[Case]], list[float]],
    claimed: Callable[[list[Case]], list[float]],
    is_input: Callable[[Case], bool],
) -> tuple[list[Case], list[float], list[float]]:
    """Return cases, with more of them where the functions bend or differ most, and both values.

    An approximation differs most near a bend, often in a far smaller part of the interval than a
    step of a grid. So intervals are halved again and again: those at whose ends a function or the
    difference deviates most from its chord, and those beside the largest difference.
    """
    known = dict(zip(cases, zip(computed(cases), claimed(cases), strict=True), strict=True))
    for _ in range(ROUNDS):
        order = sorted(known)
        if len(order) < 3:
            break
        x = np.array([float(case[0]) for case in order])
        y, z = np.array([known[case] for case in order]).T
        chosen: set[int] = set()
        for values in (_bends(x, y), _bends(x, z), _bends(x, y - z), np.abs(y - z)):
            # The interval k lies between the points k and k + 1.
            beside = np.maximum(values[:-1], values[1:])
            largest = np.argsort(-beside, kind="stable")[:HALVED]
            chosen |= {int(k) for k in largest if beside[k] > 0}
        new = []
        for k in sorted(chosen):
            middle = (x[k] + x[k + 1]) / 2  # a number of float64, which the weights get as it is
            case = (Fraction(middle), *order[k][1:])
            if x[k] < middle < x[k + 1] and case not in known and is_input(case):
                new.append(case)
        if not new:
            break
        known |= zip(new, zip(computed(new), claimed(new), strict=True), strict=True)
    order = sorted(known)
    return order, [known[case][0] for case in order], [known[case][1] for case in order]


def _bends(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """The distance of each point from the chord between its neighbours; 0 at the ends."""
    # Neighbours may be unevenly spaced: at share s of its interval the chord has y₀ + s (y₂ − y₀).
    share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    chord = y[:-2] + share * (y[2:] - y[:-2])
    return np.pad(np.abs(y[1:-1] - chord), 1)


def _ends(interval: Any) -> tuple[Fraction, Fraction]:
    """The two ends of an interval.

    Raises:
        InvalidValue: for anything but two numbers, the smaller first, neither beyond `LARGEST`.

    """
    try:
        low, high = (Fraction(end) for end in interval)
        if low < high and max(abs(low), abs(high)) <= LARGEST:
            return low, high
    except (TypeError, ValueError, ArithmeticError):
        pass
    raise InvalidValue(
        f"the interval must go from a number to a larger one, neither beyond {LARGEST:.0e}",
        received=f"{interval!r:.60}",
        where="function",
        remedy="give one such as (-2, 2)",
    )


def _computed(model: Any, cases: Sequence[tuple[Fraction, ...]]) -> list[float]:
    return [float(row[0]) for row in model(np.array(cases, dtype=float))]


def _claimed(
    claim: FunctionClaim, cases: Sequence[tuple[Fraction, ...]], chosen: Any
) -> list[float]:
    return [float(ask(claim.reference, *case, **chosen)[0]) for case in cases]


def _refused(recipe: Recipe[Any], received: str) -> InvalidValue:
    return InvalidValue(
        "a function that is drawn must take one or two numbers and give one",
        received=f"{recipe.name}, {received}",
        where="function",
        remedy="draw a recipe such as relu-by-gelu, greater-than-zero or multiply-by-gelu",
    )


def _draw(recipe: Recipe[Any], curves: Sequence[tuple[Any, Any, list[float], list[float]]]) -> Any:
    """Draw the two functions above, and their difference below."""
    told = []
    with drawn(4.6, 4.0) as figure:
        above, below = (
            figure.add_axes((0.14, 0.42, 0.82, 0.48)),
            figure.add_axes((0.14, 0.12, 0.82, 0.2)),
        )
        for number, (other, cases, computed, claimed) in enumerate(curves):
            x = [float(case[0]) for case in cases]
            colour = COLOURS[number % len(COLOURS)]
            name = f"x₂ = {float(other[0]):g}" if other else "weights"
            above.plot(
                x, claimed, color="#BBBBBB", linewidth=3.5, label="" if number else "claimed"
            )
            above.plot(x, computed, color=colour, linewidth=1.1, label=name)
            errors = [a - b for a, b in zip(computed, claimed, strict=True)]
            below.plot(x, errors, color=colour if other else VERMILION, linewidth=1)
            largest = max(map(abs, errors))
            told.append(f"{name}: largest difference {largest:.3g} at the points drawn")
        handles, labels = above.get_legend_handles_labels()
        shown = [(h, text) for h, text in zip(handles, labels, strict=True) if text]
        above.legend(*zip(*shown, strict=True), loc="best")
        above.set_title(f"{recipe.name} ({recipe.section})", loc="left", fontweight="bold")
        below.axhline(0, color="#BBBBBB", linewidth=0.6)
        most = "; ".join(each.removeprefix("weights: ") for each in told)
        figure.text(0.14, 0.335, most if len(told) == 1 else "", fontsize=6.5, color=GREY)
        below.set_ylabel("difference", color="black" if len(curves) > 1 else VERMILION)
        below.set_xlabel("x₁" if curves[0][0] else "x")
        figure.set_label(f"{recipe.name}, {recipe.claim.statement}. {'; '.join(told)}.")
    return figure
