"""All steps of a model on one token, in one kernel.

A token of dyck-1 takes 0.9 µs here; one call of a kernel with ten arrays from Python takes 0.6. The
kernel stops before a step that it cannot do (one it has no code for, a query not met before, no
room left), and leaves that step's arrays untouched; it can begin at any step.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from transformist.engines.structured.decoding.addresses import at_address, matrix, pairs, vector
from transformist.engines.structured.decoding.token_table import (
    BY_KEY,
    BY_QUERY,
    CLEAR,
    COUNT,
    FINITE,
    LEFT,
    NETWORK,
    NEXT,
    PLACE,
    RECORD,
    SIGN,
    STEPS,
    SUM,
    WORDS,
)
from transformist.engines.structured.embedded import EXACT_SIZE
from transformist.engines.structured.groups import find
from transformist.engines.structured.heads.by_key import mix_by_key
from transformist.engines.structured.heads.by_query import mix_one
from transformist.engines.structured.kernel import kernel_alone, kernel_alone_part
from transformist.engines.structured.sparse import add_applied, apply

FUNCTIONS = ("1", "i", "i^2", "1/i", "-1/i", "(-1)^i")
"""Position functions that the kernel computes; their indices are their numbers."""

ONE, INDEX, SQUARE, INVERSE, MINUS_INVERSE, _ = range(len(FUNCTIONS))


@kernel_alone_part
def _position(function: int, i: int) -> float:
    """A position function at 1 ≤ i < `EXACT_SIZE`, rounded once to float64."""
    if function == ONE:
        return 1.0
    if function == INDEX:
        return np.float64(i)
    if function == SQUARE:
        return np.float64(i * i)
    if function == INVERSE:
        return 1.0 / np.float64(i)
    if function == MINUS_INVERSE:
        return -1.0 / np.float64(i)
    return np.float64(1 - 2 * (i % 2))


@kernel_alone_part
def _copy(x: Any, row: int, z: Any, into: int) -> None:
    """Copy a row into another."""
    for m in range(x.shape[1]):
        z[into, m] = x[row, m]


@kernel_alone_part
def _words(step: Any, z: Any, row: int, place: int) -> bool:
    """Write the vector of a symbol and its position to z; false if the position is too large."""
    # Below this size i² is a float64 number, and 1/i, rounded to float64 and then to the format, is
    # as if rounded once (`EXACT_SIZE`).
    if place >= EXACT_SIZE:
        return False
    _copy(matrix(step.vectors, z.dtype), row, z, 0)
    places, functions = vector(step.places, np.int64), vector(step.functions, np.int64)
    # Rounded to the format of the stream before it is added, as the reference does.
    for m in range(places.shape[0]):
        z[0, places[m]] += z.dtype.type(_position(functions[m], place))
    return True


@kernel_alone_part
def _map(own: Any, x: Any, out: Any) -> None:
    """Write W x + b to `out`."""
    starts, columns = vector(own.starts, np.uint64), vector(own.columns, np.uint64)
    apply(x, starts, columns, vector(own.values, x.dtype), vector(own.shift, x.dtype), out)


@kernel_alone_part
def _add_map(own: Any, x: Any, z: Any, into: Any) -> None:
    """Add W x + b to z, in the columns `into`."""
    starts, columns = vector(own.starts, np.uint64), vector(own.columns, np.uint64)
    values, shift = vector(own.values, x.dtype), vector(own.shift, x.dtype)
    add_applied(x, starts, columns, values, shift, z, into)


@kernel_alone_part
def _group(step: Any, sought: Any) -> int:
    """The group of a vector; −1 if it was not met before."""
    met, slots = matrix(step.met, sought.dtype), vector(step.slots, np.int32)
    for m in range(sought.shape[1]):
        met[0, m] = sought[0, m] + sought.dtype.type(0)  # −0 is 0
    return int(slots[find(met[0], matrix(step.found, met.dtype), slots)])


@kernel_alone_part
def _is_full(step: Any) -> bool:
    """True if keys are kept, and there is no room for one more."""
    return bool(step.is_kept and step.seen + step.taken >= step.keys.length)


@kernel_alone_part
def _is_small(step: Any, source: Any) -> bool:
    """True if the head reads numbers with which nothing can overflow."""
    sizes, larger = vector(step.sizes, np.float64), 0
    for m in range(sizes.shape[0]):
        larger += not abs(source[0, m]) <= sizes[m]
    return larger == 0


@kernel_alone_part
def _head(step: Any, z: Any) -> bool:
    """Evaluate a head; false, with nothing changed, if it cannot.

    The query, or under `BY_KEY` the key, must have been met before.
    """
    # All that can stop the kernel is looked at first; until then only buffers of one token change.
    source, ids = matrix(step.source, z.dtype), vector(step.ids, np.int32)
    if not _is_small(step, source) or _is_full(step):
        return False
    query, key = matrix(step.query_row, z.dtype), matrix(step.key_row, z.dtype)
    if not step.is_fixed:
        _map(step.query, source, query)
    _map(step.key, source, key)
    ids[0] = 0
    if not step.is_fixed:
        ids[0] = _group(step, key if step.code == BY_KEY else query)
    if ids[0] < 0:
        return False
    value = matrix(step.value_row, z.dtype)
    _map(step.value, source, value)
    if step.code == BY_QUERY:
        _mix_by_query(step, ids[0], key, value)
    else:
        _mix_by_key(step, query, ids, value)
    _keep(step, key, value)
    _give(step, z.dtype)
    return True


@kernel_alone_part
def _mix_by_query(step: Any, query: int, key: Any, value: Any) -> None:
    """Take a key and a value, and mix the values for one of the queries."""
    mix_one(
        step.order, step.kind, query, key, vector(step.starts, np.uint64),
        vector(step.columns, np.uint64), vector(step.queries, key.dtype),
        vector(step.root, key.dtype)[0], vector(step.scores, key.dtype), value,
        vector(step.top, np.float64), matrix(step.mass, np.float64), pairs(step.sums),
        matrix(step.mixed, np.float64),
    )  # fmt: skip


@kernel_alone_part
def _mix_by_key(step: Any, query: Any, ids: Any, value: Any) -> None:
    """Take one of few keys and its value, without a term, and mix the values for a query."""
    mix_by_key(
        step.order, step.kind, step.seen + step.taken, query, matrix(step.distinct, query.dtype),
        vector(step.root, query.dtype)[0], ids, vector(step.terms, np.float64), value,
        vector(step.top, np.float64), vector(step.chosen, np.int64), matrix(step.mass, np.float64),
        pairs(step.sums), vector(step.scores, np.float64), matrix(step.mixed, np.float64),
    )  # fmt: skip


@kernel_alone_part
def _keep(step: Any, key: Any, value: Any) -> None:
    """Append the key and the value to the past, if it is kept."""
    if step.is_kept:
        row = step.seen + step.taken
        _copy(key, 0, matrix(step.keys, key.dtype), row)
        _copy(value, 0, matrix(step.values, key.dtype), row)
    step.taken += 1


@kernel_alone_part
def _give(step: Any, dtype: Any) -> None:
    """Add the output of the head for the mixed values."""
    mixed, rounded = matrix(step.mixed, np.float64), matrix(step.rounded, dtype)
    for c in range(mixed.shape[1]):
        rounded[0, c] = mixed[0, c]
    _add_map(step.output, rounded, matrix(step.total, dtype), vector(step.into, np.int64))


@kernel_alone_part
def _sum(step: Any, z: Any) -> bool:
    """Add the sum of the heads of a sublayer to z."""
    total, into = matrix(step.total, z.dtype), vector(step.into, np.int64)
    for m in range(into.shape[0]):
        z[0, into[m]] += total[0, m]
    return True


@kernel_alone_part
def _network(step: Any, z: Any) -> bool:
    """Add the output of a network with ReLUs to z."""
    hidden = matrix(step.hidden, z.dtype)
    _map(step.first, z, hidden)
    for m in range(hidden.shape[1]):
        # The comparison is false for NaN, which stays and is refused later, as in the reference.
        if hidden[0, m] < 0:
            hidden[0, m] = 0
    _add_map(step.second, hidden, z, vector(step.into, np.int64))
    return True


@kernel_alone_part
def _are_finite(x: Any) -> bool:
    """True if a row has neither NaN nor an infinity."""
    beyond = 0
    for m in range(x.shape[1]):
        beyond += not math.isfinite(x[0, m])
    return beyond == 0


@kernel_alone_part
def _decision(step: Any, z: Any) -> int:
    """The number of the answer; −1 if a number overflows."""
    y = matrix(step.numbers, z.dtype)
    _map(step.read_out, z, y)
    if not _are_finite(y):
        return -1
    if step.code == SIGN:
        return 1 if y[0, 0] > 0 else 0
    largest = 0  # of equal numbers the first, as in the reference: the comparison is strict
    for m in range(1, y.shape[1]):
        if y[0, m] > y[0, largest]:
            largest = m
    return largest


@kernel_alone
def read_token(t: Any, z: Any, row: int) -> int:
    """Do the steps from the next one on; return the number of the answer, −1 at a stop.

    `t` has the numbers of a `TokenTable`, z is (1, d), and `row` is the symbol's in the vocabulary.
    """
    steps, found = at_address(t[STEPS], (t[COUNT],), RECORD), -1
    for number in range(t[NEXT], t[COUNT]):
        step, done = steps[number], False
        if step.code == BY_QUERY or step.code == BY_KEY:
            done = _head(step, z)
        elif step.code == NETWORK:
            done = _network(step, z)
        elif step.code == WORDS:
            done = _words(step, z, row, t[PLACE])
        elif step.code == CLEAR:
            matrix(step.total, z.dtype)[:] = 0
            done = True
        elif step.code == SUM:
            done = _sum(step, z)
        elif step.code == FINITE:
            done = _are_finite(z)
        elif step.code != LEFT:
            found = _decision(step, z)
            done = found >= 0
        if not done:
            t[NEXT] = number
            return -1
    # Only a token whose steps are all done counts as read.
    t[NEXT] = 0
    t[PLACE] += 1
    return found
