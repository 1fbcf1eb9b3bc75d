"""Answers from the final vectors, computed once for each distinct one if they are few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.engines.structured.residual import ResidualStream
from transformist.engines.structured.row_by_row import Many
from transformist.engines.structured.sparse_model import SparseModel
from transformist.engines.structured.stream_vectors import Few, require_finite
from transformist.model import Binary, MultiClass, ReadOut, Transformer


def read(model: Transformer, own: SparseModel, z: ResidualStream, n: int, a: Floating) -> Any:
    """The answer from the final vectors."""
    read_out, at = model.read_out, model.rows_read(n)
    source = z.rows(own.read_out.read)
    if isinstance(source, Few) and isinstance(read_out, BY_VECTOR):
        few = Few.of(source.table, source.ids[at])
        answers = _listed(_by_vectors(read_out, own, few.table, n, a), few.ids)
    else:
        answers = _by_vectors(read_out, own, source.at(at), n, a)
    return read_out.join(answers, n) if read_out.reads_several else answers[0]


BY_VECTOR = (Binary, MultiClass)
"""Read-outs whose answer depends on the vector alone, and cannot be changed by its receiver."""


def _listed(each: Sequence[Any], at: NDArray[Any]) -> list[Any]:
    """A list of objects, by their numbers."""
    objects = np.empty(len(each), object)
    objects[:] = each
    listed: list[Any] = objects[at].tolist()
    return listed


def read_rows(
    read_out: ReadOut, own: SparseModel, rows: NDArray[Any], n: int, a: Floating
) -> list[Any]:
    """One answer for each row, for final vectors of inputs of length n."""
    return _by_vectors(read_out, own, rows[:, own.read_out.read], n, a)


def _by_vectors(
    read_out: ReadOut, own: SparseModel, vectors: NDArray[Any], n: int, a: Floating
) -> list[Any]:
    """One answer for each vector of the coordinates that the affine map reads."""
    if isinstance(read_out, MultiClass) and own.labels is not None:
        numbers = own.labels.largest(vectors)
        if len(numbers) < len(read_out.labels):
            return [read_out.labels[number] for number in numbers.tolist()]
        return _listed(read_out.labels, numbers)
    y = own.read_out.on_what_it_reads(vectors)
    require_finite(Many(y), a)
    answers: list[Any] = read_out.decide(y, a.numbers(y), n, a)
    return answers
