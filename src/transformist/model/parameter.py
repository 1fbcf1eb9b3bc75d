"""Parameters: read-only arrays of exact numbers, checked when made, rounded once per arithmetic."""

from __future__ import annotations

import math
from dataclasses import Field, dataclass, field, fields
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import EXACT, Arithmetic, Array, exact_numbers
from transformist.errors import InputTooLarge, NotFinite, ShapeMismatch
from transformist.model.definition import Definition

Parameter: TypeAlias = Any
"""Given as nested lists or an array; kept as a read-only array, float64 where every entry is
exactly a float64, and of `Fraction` elsewhere."""


def parameter(values: Any, where: str = "parameter") -> Parameter:
    """`values` as a read-only array of the exact numbers that were given.

    Args:
        values: nested lists or an array of integers, floats or rationals.
        where: the name to use in a refusal.

    Raises:
        ShapeMismatch, NotFinite, InvalidValue: as `exact_numbers`.

    """
    exact = exact_numbers(values, where)
    # The caller's array may change later; what is kept is a copy that nobody can write to.
    if exact is values:
        exact = exact.copy()
    exact.setflags(write=False)
    return exact


def exact_product(left: Any, right: Any) -> Parameter:
    """The product of two matrices, or of a matrix and a vector on either side, without rounding.

    Example:
        >>> exact_product([["1/3", 1]], [[3], [1]])
        array([[2.]])
        >>> exact_product([["1/3", 1]], [3, 1]), exact_product([2], [["1/3", 1]])
        (array([2.]), array([Fraction(2, 3), Fraction(2, 1)], dtype=object))

    Raises:
        ShapeMismatch: where the columns of the left are not as many as the rows of the right.

    """
    x, y = EXACT.array(left), EXACT.array(right)
    if not (x.shape and y.shape) or x.shape[-1] != y.shape[-2 if len(y.shape) > 1 else -1]:
        raise ShapeMismatch(
            "the left factor of a product must have as many columns as the right one has rows",
            received=f"shapes {x.shape} and {y.shape}",
            where="matrix product",
            remedy="make the inner sizes equal",
        )
    return parameter(EXACT.matmul(x, y).weights())


def rationals(values: Any) -> NDArray[Any]:
    """The values as an object array of `Fraction`, whose sums and products do not round."""
    exact = exact_numbers(values)
    array = np.empty(exact.size, dtype=object)
    # `tolist` gives Python numbers, whose conversion to `Fraction` is exact; a scalar of numpy is
    # not taken as it is by `Fraction` in every format.
    array[:] = [Fraction(value) for value in exact.ravel().tolist()]
    return array.reshape(exact.shape)


@dataclass(frozen=True, eq=False)
class Parameterized(Definition):
    """A definition with parameters: a frozen value whose arrays are checked when it is made.

    A field declared with `weights(...)` becomes a `Parameter`; `shapes` says how they must fit.
    """

    _rounded: dict[Arithmetic, SimpleNamespace] = field(
        init=False, repr=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for each in self._weights():
            value = getattr(self, each.name)
            if value is not None:
                object.__setattr__(self, each.name, parameter(value, f"{self._kind}.{each.name}"))

    @property
    def _kind(self) -> str:
        return type(self).__name__

    @classmethod
    def _weights(cls) -> list[Field[Any]]:
        return [each for each in fields(cls) if each.metadata.get("weights")]

    def rounded(self, arithmetic: Arithmetic) -> SimpleNamespace:
        """The weights as arrays of `arithmetic`, by the names of the fields, rounded once."""
        # Rounded once for each arithmetic, and kept: a weight is one number in every evaluation.
        if arithmetic not in self._rounded:
            exact = {each.name: getattr(self, each.name) for each in self._weights()}
            self._rounded[arithmetic] = SimpleNamespace(
                **{
                    name: None if weights is None else self._round(weights, arithmetic)
                    for name, weights in exact.items()
                }
            )
        return self._rounded[arithmetic]

    def _round(self, weights: Parameter, arithmetic: Arithmetic) -> Array:
        try:
            return arithmetic.array(weights)
        except NotFinite as error:
            raise NotFinite(
                error.invariant.replace("every number", "every weight"),
                received=error.received,
                where=self._kind,
                remedy="evaluate in a wider format, or build it with other parameters",
            ) from None

    def _fill(self, name: str, size: int) -> None:
        """Zeros for a weight that was left out."""
        if getattr(self, name) is None:
            object.__setattr__(self, name, parameter(np.zeros(size)))

    def _require(self, name: str, shape: tuple[int | str, ...], why: str) -> None:
        """Refuse a weight whose shape differs from `shape`; a letter in `shape` is any size ≥ 1."""
        given = getattr(self, name)
        if given is None:
            raise ShapeMismatch(
                f"{name} must be given",
                received="None",
                where=self._kind,
                remedy=f"give {name}, or leave it out where it has a default",
            )
        actual = given.shape
        fits = len(actual) == len(shape) and all(
            size >= 1 if isinstance(wanted, str) else size == wanted
            for size, wanted in zip(actual, shape, strict=True)
        )
        if not fits:
            wanted = ", ".join(str(size) for size in shape)
            raise ShapeMismatch(
                f"{name} must have shape ({wanted}){',' if why else ''} {why}".strip(),
                received=f"shape {actual}",
                where=self._kind,
                remedy=f"reshape {name}",
            )


def vectors(x: Any, a: Arithmetic, width: int, where: str) -> Array:
    """`x` as an array of `a` whose last axis has length `width`.

    Raises:
        ShapeMismatch: when it has another length.

    """
    array = a.array(x)
    if not array.shape or array.shape[-1] != width:
        raise ShapeMismatch(
            f"vectors must have width {width}",
            received=f"an array of shape {tuple(array.shape)}",
            where=where,
            remedy=f"give {width} numbers a vector",
        )
    return array


def sequences(x: Any, a: Arithmetic, width: int, where: str) -> Array:
    """`x` as an array of `a` of shape (..., n, width): lists of vectors.

    Raises:
        ShapeMismatch: when the vectors have another width, or there is a vector but no list.
        InputTooLarge: when a list is longer than the dense reference attends over.

    """
    array = vectors(x, a, width, where)
    if len(array.shape) < 2:
        raise ShapeMismatch(
            f"the input must be a list of vectors of width {width}, one for each position",
            received="a single vector",
            where=where,
            remedy="put it in a list",
        )
    n = array.shape[-2]
    if n * n > a.most_scores:
        raise InputTooLarge(
            f"an input must take at most {a.most_scores:,} attention scores in {a.name}",
            received=f"{n} vectors, which take {n * n:,}",
            where=where,
            remedy=f"give at most {math.isqrt(a.most_scores)} vectors",
        )
    return array


def weights(**options: Any) -> Any:
    """Declare a field of a `Parameterized` definition to hold weights."""
    return field(metadata={"weights": True}, **options)
