"""Facts on answers on every input: distance from a threshold, and a unique best label."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction

from transformist.circuit import Circuit, Fetched, Form, Head, Match, total
from transformist.laws import Grid, Range, hull
from transformist.model import MultiClass
from transformist.verify.certificate.cases import cases


def distance_from_zero(circuit: Circuit, form: Form) -> Fraction:
    """Return the least distance of a form from 0, by its range or by its grid."""
    within = span(circuit, form)
    if within.lo > 0:
        return Fraction(within.lo)
    if within.hi < 0:
        return -Fraction(within.hi)
    moving = Form(form.terms)
    grid, gap = circuit.grid(moving), circuit.least_multiple(moving)
    constant = abs(form.constant)
    if grid is None or gap is None:
        return Fraction(0)
    # The form is 0 where its moving part is −constant. The moving part is a multiple of
    # 1/(c D D′ …), a fraction whose denominator is at most `most`; `limit_denominator` finds the
    # nearest of these.
    if grid.counts:
        most = grid.c * (circuit.most_seen or 1) ** len(grid.counts)
        return abs(constant - constant.limit_denominator(most))
    # Without D it is a multiple of `gap`: the nearest ones are below and above the constant.
    rest = constant % gap
    return min(rest, gap - rest)


def has_one_best(circuit: Circuit, read_out: MultiClass, forms: list[Form]) -> bool:
    """Return True if no two labels are ever the largest together.

    They are those of a count, or one-hot; neighbours; never equal; or never both the largest in
    all cases.
    """
    whole = all(circuit.is_whole(form) and span(circuit, form).lo >= 0 for form in forms)
    if whole and span(circuit, total(forms)) == Range.of(1):
        return True
    if as_count(circuit, read_out, forms) or _as_nearest(circuit, read_out, forms):
        return True
    if all(distance_from_zero(circuit, a - b) > 0 for a, b in itertools.combinations(forms, 2)):
        return True
    known = cases(circuit, forms)
    return known is not None and all(case.count(max(case)) == 1 for case in known)


def apart(circuit: Circuit, forms: list[Form]) -> Fraction:
    """Return the least distance of two forms that are not equal; 0 if not known.

    The distance is that of `Circuit.least_multiple`. Over a common denominator Q the factors and
    constants are whole numbers, and so are those of a difference, g times whole numbers m without a
    common divisor. Its terms m · atom lie on multiples of 1/c, the sum on those of 1/(the least
    common multiple of the c), and the difference on those of g/Q times that.
    """
    numbers = sorted({number for form in forms for number in form.atoms})
    grids = [circuit.laws[number].grid for number in numbers]
    each = [[form.factors.get(n, Fraction(0)) for n in numbers] + [form.constant] for form in forms]
    Q = math.lcm(*(x.denominator for row in each for x in row))
    rows = [[int(x * Q) for x in row] for row in each]
    least: Fraction | None = None
    for i, j in itertools.combinations(range(len(forms)), 2):
        difference = [x - y for x, y in zip(rows[i], rows[j], strict=True)]
        g = math.gcd(*difference)
        if not g:
            continue
        parts = [(x // g, grid) for x, grid in zip(difference, grids, strict=False) if x]
        if any(grid is None for _, grid in parts):
            gap = circuit.least_multiple(forms[i] - forms[j])
        else:
            gap = _joined(parts).separation(circuit.most_seen)  # type: ignore[arg-type]
            gap = None if gap is None else gap * Fraction(g, Q)
        if not gap:
            return Fraction(0)
        least = gap if least is None else min(least, gap)
    return least or Fraction(0)


def _joined(parts: Iterable[tuple[int, Grid]]) -> Grid:
    """Return the grid of Σ m · number from each m, a whole number, and the grid of the number."""
    c, counts = 1, frozenset[str]()
    for m, grid in parts:
        c, counts = math.lcm(c, grid.c // math.gcd(grid.c, m)), counts | grid.counts
    return Grid(c, counts)


def _as_nearest(circuit: Circuit, read_out: MultiClass, forms: list[Form]) -> bool:
    """True if the labels are consecutive whole numbers k with the values 2 k y − k², y whole."""
    labels = read_out.labels
    if not all(type(label) is int for label in labels):
        return False
    numbers = [Fraction(label) for label in labels]  # type: ignore[arg-type]
    if any(b - a != 1 for a, b in itertools.pairwise(numbers)):
        return False
    k = next((number for number in numbers if number), None)
    if k is None:
        return False
    y = (forms[numbers.index(k)] + k**2) * (1 / (2 * k))
    agree = all(form == y * (2 * m) - m**2 for m, form in zip(numbers, forms, strict=True))
    return agree and circuit.is_whole(y)


def as_count(circuit: Circuit, read_out: MultiClass, forms: list[Form]) -> tuple[Form, Form] | None:
    """Return y and w if the label k has the value 2 k y − k² w, with w = 1/D and y/w whole."""
    labels = read_out.labels
    if not all(isinstance(label, int | Fraction) and type(label) is not bool for label in labels):
        return None
    known = [(Fraction(label), form) for label, form in zip(labels, forms, strict=True) if label]  # type: ignore[arg-type]
    if len(known) < 2:
        return None
    # f_k = 2 k y − k² w gives f_k/k − f_m/m = (m − k) w, and then y = (f_k + k² w)/(2 k).
    (k, first), (m, second) = known[:2]
    w = (first * (1 / k) - second * (1 / m)) * (1 / (m - k))
    y = (first + w * k**2) * (1 / (2 * k))
    pairs = zip(labels, forms, strict=True)
    agree = all(
        form == y * (2 * Fraction(label)) - w * Fraction(label) ** 2  # type: ignore[arg-type]
        for label, form in pairs
    )
    counts, grid = circuit.one_over(w), circuit.grid(y)
    if not agree or counts is None or grid is None or grid.counts != counts:
        return None
    step = Fraction(1, grid.c)
    numbers = [Fraction(label) for label in labels]  # type: ignore[arg-type]
    if any(b - a != step for a, b in itertools.pairwise(numbers)):
        return None
    # y D is a multiple of the step, so strictly between these two it is one of the labels.
    within = span(circuit, y).times(Fraction(circuit.most_seen or 1))
    return (y, w) if numbers[0] - step < within.lo and within.hi < numbers[-1] + step else None


def span(circuit: Circuit, form: Form) -> Range:
    """Return the range of a form at the symbols; values of one head are taken together."""
    by_head: dict[Head, list[tuple[int, Fraction]]] = {}
    fetched: dict[int, Form] = {}
    others = []
    for number, factor in form.terms:
        atom = circuit.atoms[number]
        if isinstance(atom, Fetched):
            fetched[number] = atom.value
            by_head.setdefault(atom.head, []).append((number, factor))
        else:
            others.append((number, factor))
    rows = list(circuit.rows(Form(tuple(others), form.constant)))
    for head, terms in by_head.items():
        value = total(fetched[number] * factor for number, factor in terms)
        law = head.law(circuit, value)
        brought = list(law.rows)
        if _leaves_bos_out(circuit, head):
            symbols = circuit.rows(value)[: len(circuit.alphabet)]
            brought = [hull(symbols)] * len(law.rows)
        rows = [row + more for row, more in zip(rows, brought, strict=True)]
    return hull(rows[: len(circuit.alphabet)])


def _leaves_bos_out(circuit: Circuit, head: Head) -> bool:
    """True if a symbol, which sees itself, never attends to BOS.

    The last of what matches is chosen, no product is negative, BOS has none, and its place is 0.
    """
    if not isinstance(head, Match) or head.choose != "rightmost":
        return False
    if not circuit.bos or head.mask not in ("none", "future"):
        return False
    return head.is_beneath(circuit)
