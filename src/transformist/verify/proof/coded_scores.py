"""Scores of codes of positions, as tables of a score for each pair of rows.

Queries and keys that are sums of sines and cosines of the position, and of constants, are functions
of the row alone: the row r is BOS for r = 0, and the symbol at position r else. So all scores of a
head are known, exactly but for the rounding of this module, and the distances below the best key
are found by going through the pairs of rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from transformist.model import Mask
from transformist.position_features import SIGN, WAVES, position
from transformist.verify.proof.ideal import Form, Ideal
from transformist.verify.proof.row_functions import MOST_ROWS
from transformist.verify.proof.upwards import Floats

ROWS_AT_ONCE = 2**8
"""Queries whose scores are computed together: at most 2⁸ · `MOST_ROWS` numbers, 8 MiB."""


def values_at_rows(ideal: Ideal, form: Form) -> list[Fraction] | None:
    """Return the values of a form at the rows, if it is a sum of codes and constants.

    The rows are 0 to N, or 1 to N in a model without BOS. The constant may be another one at BOS.
    """
    numbers = {ideal.known(name): name for name in (*WAVES, SIGN)}
    waves = [(x, numbers.get(number)) for number, x in form.items() if number >= ideal.kinds]
    symbols = range(ideal.kinds if ideal.bos is None else ideal.kinds - 1)
    constants = {form.get(kind, Fraction(0)) for kind in symbols}
    if any(name is None for _, name in waves) or len(constants) > 1:
        return None
    constant = next(iter(constants), Fraction(0))
    values = []
    for row in range(0 if ideal.bos is not None else 1, ideal.longest + 1):
        own = form.get(ideal.kinds - 1, Fraction(0)) if row == 0 else constant
        values.append(own + sum(x * position(str(name), row, row) for x, name in waves))
    return values


def have_codes(ideal: Ideal, pairs: Sequence[tuple[Form, Form]]) -> bool:
    """True if a query or a key has a sine or a cosine of positions."""
    codes = {ideal.known(name) for name in WAVES} - {None}
    return any(codes & {*form} for form in itertools.chain(*pairs))


def distances_below_best(
    ideal: Ideal, pairs: Sequence[tuple[Form, Form]], mask: Mask, count: int
) -> Floats | None:
    """Return lower bounds of the distances of scores below the best one, before the root of d_key.

    Args:
        ideal: the unknowns.
        pairs: query and key of each coordinate.
        mask: the head's mask.
        count: the number of distances.

    Returns:
        (count, kinds): entry m − 1 is the least m-th distance, over all queries of the kind, in
        rising order, infinite where there are no m other keys; 0 or less where the best key is not
        known to be the only one. `None` if no query or key is a code, or some are no functions of
        the row, or the best key changes too often as the input grows.

    """
    if ideal.longest > MOST_ROWS or not have_codes(ideal, pairs):
        return None
    columns = [
        [values_at_rows(ideal, form) for form in forms] for forms in zip(*pairs, strict=True)
    ]
    if any(column is None for each in columns for column in each):
        return None
    q, k = (np.array(each, dtype=object).T.astype(float) for each in columns)
    rows = np.arange(len(q)) + (ideal.bos is None)
    # A score of c products, of numbers that are rounded to float64, is off by at most
    # (2c + 2) 2⁻⁵³ Σ |q| |k|; 2⁻⁵⁰ (c + 1) covers a difference of two, and the sum of bounds.
    off = 2.0**-50 * (q.shape[1] + 1) * float(np.abs(q).max(axis=0) @ np.abs(k).max(axis=0))
    is_bos = np.arange(ideal.kinds) == ideal.bos
    found = np.full((count, ideal.kinds), np.inf)
    for start in range(0, len(q), ROWS_AT_ONCE):
        own = rows[start : start + ROWS_AT_ONCE]
        admitted = mask.admissible(own[:, None], rows[None, :])
        scores = np.where(admitted, q[start : start + ROWS_AT_ONCE] @ k.T, -np.inf)
        ends = _ends(scores, own - rows[0], mask)
        if ends is None:
            return None
        below = np.full((len(own), count), np.inf)
        for end in ends.T:
            seen = np.where(np.arange(len(k)) <= end[:, None], scores, -np.inf)
            below = np.minimum(below, _rising(seen, count))
        for row, each in zip(own.tolist(), below - off, strict=True):
            of_kinds = is_bos if row == 0 else ~is_bos
            found[:, of_kinds] = np.minimum(found[:, of_kinds], each[:, None])
    return found


MOST_BEST = 8
"""Most best keys of one query, over all lengths of the input, which bounds the running time.

A head that looks up a position has at most two: BOS, until that position is there.
"""


def _ends(scores: Any, own: Any, mask: Mask) -> Any:
    """(queries, lengths): last keys of inputs, among which are those with the least distances.

    The row i is in the inputs whose last row is i or later, and a mask that does not look ahead
    admits the same keys in all of them. Else longer inputs have more keys. While the best key stays
    the same, more keys make each m-th distance less or leave it. So the least are at the last input
    before the best key changes, and at the longest input. Fewer ends than `MOST_BEST` are repeated.

    Returns:
        `None` if a query has more best keys.

    """
    last = scores.shape[1] - 1
    if not mask.looks_ahead:
        return np.full((len(own), 1), last)
    best = np.maximum.accumulate(scores, axis=1)
    is_end = np.full(scores.shape, True)
    is_end[:, :-1] = best[:, 1:] > best[:, :-1]
    is_end &= np.arange(last + 1) >= own[:, None]
    most = int(is_end.sum(axis=1).max())
    if most > MOST_BEST:
        return None
    return np.stack([np.resize(np.flatnonzero(each), most) for each in is_end])


def _rising(scores: Any, count: int) -> Any:
    """(queries, count): the least distances below the best score, in rising order.

    Scores that are not seen are −∞.
    """
    most = min(count + 1, scores.shape[1])
    first = -np.sort(np.partition(-scores, most - 1, axis=1)[:, :most], axis=1)
    top = np.where(np.isinf(first[:, :1]), 0.0, first[:, :1])  # no key is seen: −∞
    distances = top - first[:, 1:]
    padding = np.full((len(first), count - distances.shape[1]), np.inf)
    return np.concatenate([distances, padding], axis=1)
