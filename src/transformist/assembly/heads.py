"""Attention heads: on a stream, with ties broken, hard ones made soft (5.1, 5.6, 5.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from transformist.arithmetic import rational
from transformist.assembly.routing import expect
from transformist.errors import InvalidValue
from transformist.model import (
    Attention,
    LinearForm,
    Parameter,
    Stream,
    exact_product,
    parameter,
)


def attend(
    stream: Stream,
    read: Sequence[LinearForm],
    write: Sequence[LinearForm],
    query: Sequence[LinearForm] = ({},),
    key: Sequence[LinearForm] = ({},),
    weighting: str = "average-hard",
    mask: str = "none",
) -> Attention:
    """A head on a stream: it adds to slots the values of forms at the positions it attends to.

    Args:
        stream: the slots.
        read: the forms that are fetched.
        write: the slots, or forms, they are added to, as many.
        query: the forms that position i brings to the score; with query and key left out all
            scores are 0, and a mean is fetched (5.1.2).
        key: the forms of position j that they are multiplied with, as many.
        weighting: as for every head.
        mask: as for every head.

    Example: the value of the last position.
        >>> stream = Stream(("place", "x", "last"))
        >>> last = attend(stream, ["x"], ["last"], query=["place"], key=["place"])
        >>> last([[1, 7, 0], [2, 5, 0]]).tolist()
        [[0.0, 0.0, 5.0], [0.0, 0.0, 5.0]]

    """
    return Attention(
        W_Q=stream.reading(*query),
        W_K=stream.reading(*key),
        W_V=stream.reading(*read),
        W_O=stream.writing(*write),
        weighting=weighting,
        mask=mask,
    )


def tie_break(head: Attention) -> Attention:
    """The head with one more term in its scores, γ t(j), which parts equal ones (section 5.6).

    It reads vectors of two more coordinates, γ and t(i) after the others, and its scores are
    (q · k + γ t(j)) / √(d_key + 1). With t(j) one of −1/j, j/n (rightmost) and 1/j, −j/n
    (leftmost), and 0 < γ at most the gap of the dot products q · k, average-hard attention becomes
    unique-hard: no two terms are equal, and all lie within less than 1 of each other.

    Example:
        >>> head = Attention(W_Q=[[1, 0, 0]], W_K=[[0, 1, 0]], W_V=[[0, 0, 1]])
        >>> last = tie_break(head)
        >>> last([[1, 1, 7, 1, "1/2"], [1, 1, 5, 1, 1]]).tolist()
        [[5.0], [5.0]]

    """
    expect(head, Attention, "tie_break")
    # Two terms differ by less than γ, as all t(j) lie within less than 1 of each other, and γ is at
    # most the gap: a smaller dot product stays smaller, and equal ones are parted by t.
    none = np.zeros((head.W_Q.shape[0], 2))
    return replace(
        head,
        W_Q=np.block([[head.W_Q, none], [np.zeros((1, head.width)), np.array([[1, 0]])]]),
        W_K=np.block([[head.W_K, none], [np.zeros((1, head.width)), np.array([[0, 1]])]]),
        W_V=np.concatenate([head.W_V, np.zeros((head.W_V.shape[0], 2))], axis=1),
        b_Q=np.append(head.b_Q, 0),
        b_K=np.append(head.b_K, 0),
        weighting="average-hard",
    )


def soften(head: Attention, sharpness: object) -> Attention:
    """Softmax for hard attention (section 5.7): W_Q and b_Q times 1/τ.

    Args:
        head: whose scores have one maximum in each row, above the others by a gap.
        sharpness: 1/τ, such as `bounds.sharpness` derives from the gap, N and the admitted error,
            or `bounds.underflow_sharpness` from the gap and a number format.

    Raises:
        InvalidValue: if the argument is not a head, or the sharpness is not positive.

    Example:
        >>> from transformist.bounds import sharpness
        >>> last = Attention(W_Q=[[1]], W_K=[[1]], W_V=[[1]], weighting="average-hard")
        >>> soft = soften(last, sharpness((1, 1), max_length=3, tolerance="1/8"))
        >>> soft([[1], [0], [0]], "float32").round(2).tolist()[0]
        [0.9100000262260437]

    """
    expect(head, Attention, "soften")
    if not _is_positive(sharpness):
        raise InvalidValue(
            "the sharpness 1/τ must be a positive number",
            received=f"sharpness = {sharpness}",
            where="soften",
            remedy="derive it with bounds.sharpness",
        )
    return replace(
        head,
        W_Q=_scaled(head.W_Q, sharpness),
        b_Q=_scaled(head.b_Q, sharpness),
        weighting="softmax",
    )


def _is_positive(value: Any) -> bool:
    try:
        return rational(value) > 0
    except (TypeError, ValueError, ArithmeticError):
        return False


def _scaled(W: Parameter, factor: object) -> Parameter:
    """The weights times a number, without rounding; zeros, which are many, stay as they are."""
    entries = W != 0
    # As a matrix of one column times a vector of one number, which `exact_product` multiplies
    # exactly.
    products = exact_product(W[entries].reshape(-1, 1), [factor])
    scaled = np.zeros(W.shape, dtype=products.dtype)
    scaled[entries] = products
    return parameter(scaled)
