"""The steps of a model on one token, in one kernel.

A step is a record in a table: its code, some whole numbers, and where its arrays are. What the
kernel does not take, or not as things stand (a query that was not met, no room left), it leaves
untouched, and says at which step it stopped; it can go on from any.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from transformist.engines.structured.decoding.addresses import FIELD, matrix, pairs, vector
from transformist.engines.structured.embedded import EXACT_SIZE
from transformist.engines.structured.groups import find
from transformist.engines.structured.heads.by_key import mix_by_key
from transformist.engines.structured.heads.by_query import mix_by_query
from transformist.engines.structured.kernel import kernel_alone, kernel_alone_part
from transformist.engines.structured.sparse import add_applied, apply

NEXT, PLACE, COUNT, FIRST = range(4)
"""Of the table: the step to begin with, the token's position, how many steps; then the steps."""

LEFT, WORDS, CLEAR, BY_QUERY, BY_KEY, SUM, NETWORK, FINITE, SIGN, LARGEST = range(10)
"""What a step does; one that is left is not done here."""

ORDER, KIND, IS_KEPT, IS_FIXED, SEEN, TAKEN = range(1, 7)
"""Numbers of a head, after the code: how it mixes, whether keys are kept, whether the query is
fixed, how many rows it had seen, and how many it has taken here since."""

ARRAYS = 7
"""Where the arrays of a record begin."""

MAP = 4 * FIELD
"""What an affine map takes: starts, columns, values, shift."""

QUERY, KEY, VALUE, OUTPUT = (ARRAYS + MAP * number for number in range(4))
(
    SOURCE, TOTAL, INTO, ASKED, HELD, WORTH, MIXED, ROUNDED, MET, IDS, FOUND, SLOTS, KEYS, VALUES,
    READ, SIZES, OWN,
) = (ARRAYS + 4 * MAP + FIELD * number for number in range(17))  # fmt: skip
"""The maps of a head, its row, what it writes, buffers, groups, the keys and values so far, the
coordinates that it reads, and how large they can be without an overflow."""

(
    STARTS, COLUMNS, QUERIES, QUERY_ROOT, QUERY_SCORES, ROW, QUERY_TAKEN, QUERY_TOP, QUERY_MASS,
    QUERY_SUMS, QUERY_END,
) = (OWN + FIELD * number for number in range(11))  # fmt: skip
"""Of `by query`."""

TERMS, DISTINCT, KEY_ROOT, KEY_TOP, KEY_PLACES, KEY_MASS, KEY_SUMS, SCORES, KEY_END = (
    OWN + FIELD * number for number in range(9)
)
"""Of `by key`."""

ROOM = max(QUERY_END, KEY_END)
"""How many numbers a record has room for."""

FUNCTIONS = ("1", "i", "i^2", "1/i", "-1/i", "(-1)^i")
"""Position functions that are computed here, by their numbers."""

ONE, INDEX, SQUARE, INVERSE, MINUS_INVERSE, _ = range(len(FUNCTIONS))


@kernel_alone_part
def _position(function: int, i: int) -> float:
    """A position function at i ≥ 1, below `EXACT_SIZE`: rounded once to float64."""
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
    """A row, put into another."""
    for m in range(x.shape[1]):
        z[into, m] = x[row, m]


@kernel_alone_part
def _words(t: Any, at: int, z: Any, row: int) -> bool:
    """The vector of a symbol with its position."""
    place = t[PLACE]
    if place >= EXACT_SIZE:
        return False
    table = matrix(t, at + ARRAYS, z.dtype)
    columns = vector(t, at + ARRAYS + FIELD, np.int64)
    functions = vector(t, at + ARRAYS + 2 * FIELD, np.int64)
    _copy(table, row, z, 0)
    for m in range(columns.shape[0]):
        z[0, columns[m]] += z.dtype.type(_position(functions[m], place))
    return True


@kernel_alone_part
def _map(t: Any, at: int, x: Any, out: Any) -> None:
    """out = W x + b."""
    starts, columns = vector(t, at, np.uint64), vector(t, at + FIELD, np.uint64)
    values, shift = vector(t, at + 2 * FIELD, x.dtype), vector(t, at + 3 * FIELD, x.dtype)
    apply(x, starts, columns, values, shift, out)


@kernel_alone_part
def _add_map(t: Any, at: int, x: Any, z: Any, into: Any) -> None:
    """z + W x + b in the columns `into`."""
    starts, columns = vector(t, at, np.uint64), vector(t, at + FIELD, np.uint64)
    values, shift = vector(t, at + 2 * FIELD, x.dtype), vector(t, at + 3 * FIELD, x.dtype)
    add_applied(x, starts, columns, values, shift, z, into)


@kernel_alone_part
def _group(t: Any, at: int, met: Any) -> int:
    """The number of a vector that was met before, −1 of another."""
    slots = vector(t, at + SLOTS, np.int32)
    for m in range(met.shape[1]):
        met[0, m] += met.dtype.type(0)  # −0 is 0
    return int(slots[find(met[0], matrix(t, at + FOUND, met.dtype), slots)])


@kernel_alone_part
def _is_full(t: Any, at: int) -> bool:
    """Whether keys are kept, and there is no room for one more."""
    return bool(t[at + IS_KEPT] == 1 and t[at + SEEN] + t[at + TAKEN] >= t[at + KEYS + 1])


@kernel_alone_part
def _is_small(t: Any, at: int, source: Any) -> bool:
    """Whether what a head reads is such that nothing overflows."""
    read, sizes = vector(t, at + READ, np.int64), vector(t, at + SIZES, np.float64)
    larger = 0
    for m in range(read.shape[0]):
        larger += not abs(source[0, read[m]]) <= sizes[read[m]]
    return larger == 0


@kernel_alone_part
def _by_query(t: Any, at: int, z: Any) -> bool:
    """A head whose queries were met before."""
    source, ids = matrix(t, at + SOURCE, z.dtype), vector(t, at + IDS, np.int32)
    if not _is_small(t, at, source):
        return False
    ids[0] = 0
    if t[at + IS_FIXED] == 0:
        asked = matrix(t, at + ASKED, z.dtype)
        _map(t, at + QUERY, source, asked)
        ids[0] = _group(t, at, asked)
    if ids[0] < 0 or _is_full(t, at):
        return False
    held, worth = matrix(t, at + HELD, z.dtype), matrix(t, at + WORTH, z.dtype)
    _map(t, at + KEY, source, held)
    _map(t, at + VALUE, source, worth)
    row = vector(t, at + ROW, np.int32)
    mix_by_query(
        t[at + ORDER], t[at + KIND], ids, 0, held, row, vector(t, at + STARTS, np.uint64),
        vector(t, at + COLUMNS, np.uint64), vector(t, at + QUERIES, z.dtype),
        vector(t, at + QUERY_ROOT, z.dtype)[0], matrix(t, at + QUERY_SCORES, z.dtype), worth, row,
        vector(t, at + QUERY_TAKEN, np.int64), 0.0, vector(t, at + QUERY_TOP, np.float64),
        matrix(t, at + QUERY_MASS, np.float64), pairs(t, at + QUERY_SUMS),
        matrix(t, at + MIXED, np.float64),
    )  # fmt: skip
    _end_of_head(t, at, held, worth)
    return True


@kernel_alone_part
def _by_key(t: Any, at: int, z: Any) -> bool:
    """A head whose keys were met before, the query varying in all columns."""
    source, held = matrix(t, at + SOURCE, z.dtype), matrix(t, at + HELD, z.dtype)
    if not _is_small(t, at, source):
        return False
    met, ids = matrix(t, at + MET, z.dtype), vector(t, at + IDS, np.int32)
    _map(t, at + KEY, source, held)
    _copy(held, 0, met, 0)
    ids[0] = _group(t, at, met)
    if ids[0] < 0 or _is_full(t, at):
        return False
    asked, worth = matrix(t, at + ASKED, z.dtype), matrix(t, at + WORTH, z.dtype)
    _map(t, at + QUERY, source, asked)
    _map(t, at + VALUE, source, worth)
    mix_by_key(
        t[at + ORDER], t[at + KIND], t[at + SEEN] + t[at + TAKEN], asked,
        matrix(t, at + DISTINCT, z.dtype), vector(t, at + KEY_ROOT, z.dtype)[0], ids,
        vector(t, at + TERMS, np.float64), worth,
        vector(t, at + KEY_TOP, np.float64), vector(t, at + KEY_PLACES, np.int64),
        matrix(t, at + KEY_MASS, np.float64), pairs(t, at + KEY_SUMS),
        vector(t, at + SCORES, np.float64), matrix(t, at + MIXED, np.float64),
    )  # fmt: skip
    _end_of_head(t, at, held, worth)
    return True


@kernel_alone_part
def _end_of_head(t: Any, at: int, held: Any, worth: Any) -> None:
    """The key and the value are kept, where they are, and the mixed values written."""
    if t[at + IS_KEPT] == 1:
        row = t[at + SEEN] + t[at + TAKEN]
        _copy(held, 0, matrix(t, at + KEYS, held.dtype), row)
        _copy(worth, 0, matrix(t, at + VALUES, held.dtype), row)
    t[at + TAKEN] += 1
    mixed, rounded = matrix(t, at + MIXED, np.float64), matrix(t, at + ROUNDED, held.dtype)
    for c in range(mixed.shape[1]):
        rounded[0, c] = mixed[0, c]
    into = vector(t, at + INTO, np.int64)
    _add_map(t, at + OUTPUT, rounded, matrix(t, at + TOTAL, held.dtype), into)


@kernel_alone_part
def _sum(t: Any, at: int, z: Any) -> bool:
    """What the heads of a sublayer give, added."""
    total = matrix(t, at + ARRAYS, z.dtype)
    written = vector(t, at + ARRAYS + FIELD, np.int64)
    for m in range(written.shape[0]):
        z[0, written[m]] += total[0, m]
    return True


@kernel_alone_part
def _network(t: Any, at: int, z: Any) -> bool:
    """A network with ReLUs, added."""
    hidden = matrix(t, at + ARRAYS + 2 * MAP, z.dtype)
    _map(t, at + ARRAYS, z, hidden)
    for m in range(hidden.shape[1]):
        if hidden[0, m] < 0:
            hidden[0, m] = 0
    written = vector(t, at + ARRAYS + 2 * MAP + FIELD, np.int64)
    _add_map(t, at + ARRAYS + MAP, hidden, z, written)
    return True


@kernel_alone_part
def _are_finite(x: Any) -> bool:
    """Whether a row has neither NaN nor an infinity."""
    beyond = 0
    for m in range(x.shape[1]):
        beyond += not math.isfinite(x[0, m])
    return beyond == 0


@kernel_alone_part
def _decision(t: Any, at: int, z: Any) -> int:
    """Which answer is read out, −1 where a number overflows."""
    y = matrix(t, at + ARRAYS + MAP, z.dtype)
    _map(t, at + ARRAYS, z, y)
    if not _are_finite(y):
        return -1
    if t[at] == SIGN:
        return 1 if y[0, 0] > 0 else 0
    largest = 0
    for m in range(1, y.shape[1]):
        if y[0, m] > y[0, largest]:
            largest = m
    return largest


@kernel_alone
def read_token(t: Any, z: Any, row: int) -> int:
    """The steps from the next one on: which answer is read out, or −1 where one is left."""
    found = -1
    for number in range(t[NEXT], t[COUNT]):
        at = FIRST + ROOM * number
        code = t[at]
        done = False
        if code == BY_QUERY:
            done = _by_query(t, at, z)
        elif code == NETWORK:
            done = _network(t, at, z)
        elif code == WORDS:
            done = _words(t, at, z, row)
        elif code == CLEAR:
            matrix(t, at + ARRAYS, z.dtype)[:] = 0
            done = True
        elif code == SUM:
            done = _sum(t, at, z)
        elif code == BY_KEY:
            done = _by_key(t, at, z)
        elif code == FINITE:
            done = _are_finite(z)
        elif code != LEFT:
            found = _decision(t, at, z)
            done = found >= 0
        if not done:
            t[NEXT] = number
            return -1
    t[NEXT] = 0
    t[PLACE] += 1
    return found
