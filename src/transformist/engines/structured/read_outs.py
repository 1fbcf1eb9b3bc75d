"""Answers from the final vectors: where few of them are distinct, one for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.engines.structured.ranges import first_largest
from transformist.engines.structured.residual import ResidualStream
from transformist.engines.structured.row_by_row import Many
from transformist.engines.structured.rows import Few, require_finite
from transformist.engines.structured.sparse import SparseMap
from transformist.model import Binary, MultiClass, ReadOut, Transformer


def read(model: Transformer, out: SparseMap, z: ResidualStream, n: int, a: Floating) -> Any:
    """The answer from the final vectors, `out` being the affine map of the read-out."""
    read_out, at = model.read_out, model.rows_read(n)
    y = z.image(out)
    if isinstance(y, Few) and isinstance(read_out, BY_VECTOR):
        few = Few.of(y.table, y.ids[at])
        require_finite(few, a)
        answers = _listed(_decided(read_out, few.table, n, a), few.ids)
    else:
        rows = y.at(at)
        if not y.are_finite:  # at a row that may not be read
            require_finite(Many(rows), a)
        answers = _decided(read_out, rows, n, a)
    return read_out.join(answers) if read_out.at == "every" else answers[0]


def _listed(each: Sequence[Any], at: NDArray[Any]) -> list[Any]:
    """Some of a few objects, by their numbers."""
    objects = np.empty(len(each), object)
    objects[:] = each
    listed: list[Any] = objects[at].tolist()
    return listed


BY_VECTOR = (Binary, MultiClass)
"""Read-outs whose answer is decided by the vector alone, and no object that can be changed."""


def read_rows(
    read_out: ReadOut, out: SparseMap, rows: NDArray[Any], n: int, a: Floating
) -> list[Any]:
    """An answer a row, for final vectors of inputs of length n."""
    y = out(rows)
    require_finite(Many(y), a)
    return _decided(read_out, y, n, a)


def _decided(read_out: ReadOut, y: NDArray[Any], n: int, a: Floating) -> list[Any]:
    """An answer a row, for what the affine map of a read-out gives, which is finite."""
    return DECISIONS.get(type(read_out), _by_the_model)(read_out, y, n, a)


def _by_the_model(read_out: Any, y: NDArray[Any], n: int, a: Floating) -> list[Any]:
    answers: list[Any] = read_out.decide(y, a.numbers(y), n, a)
    return answers


def _labels(read_out: MultiClass, y: NDArray[Any], _n: int, _a: Floating) -> list[Any]:
    return _listed(read_out.labels, first_largest(y))


DECISIONS: Mapping[type, Callable[[Any, NDArray[Any], int, Floating], list[Any]]] = {
    MultiClass: _labels
}
"""What is faster than the read-out itself, for a million positions."""
