"""Interval arithmetic: balls that hold the real value, by way of Arb (python-flint).

Every operation encloses the real result of its operands, whatever they are within their balls. A
choice (which score is largest, whether a number is positive) is made where the balls decide it and
refused elsewhere. The precision is that of the midpoints; it is flint's own setting only while an
operation runs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic.given import exact_numbers
from transformist.arithmetic.protocol import Array, Flags
from transformist.deferred import Library
from transformist.errors import InvalidValue, NotFinite, Undecided

if TYPE_CHECKING:
    import flint
else:
    flint = Library("flint")

F = TypeVar("F", bound=Callable[..., Any])


class Balls:
    """An array of balls, [midpoint ± radius] each, over a common root that is kept apart.

    The root is that of attention scores, q · k / √d_key: it changes neither their order nor their
    ties, which the dot products alone decide.
    """

    __slots__ = ("root", "values")

    def __init__(self, values: NDArray[Any], root: int = 1) -> None:
        self.values = np.asarray(values, dtype=object)  # numpy unwraps a lone one
        self.root = root

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    def __getitem__(self, index: Any) -> Balls:
        return Balls(self.values[index], self.root)

    def __repr__(self) -> str:
        over = f", over √{self.root}" if self.root != 1 else ""
        return f"Balls({_shown(self.values).tolist()}{over})"


def _at_precision(method: F) -> F:
    # flint has one precision for the whole process. It is set around every operation, and so two
    # systems of different `bits` can be used in turn.
    @functools.wraps(method)
    def run(self: Interval, *given: Any, **named: Any) -> Any:
        with flint.ctx.workprec(self.bits):
            return method(self, *given, **named)

    return run  # type: ignore[return-value]


@dataclass(frozen=True)
class Interval:
    """Balls with midpoints of `bits` bits.

    Attributes:
        bits: the precision, at least 2.

    Raises:
        InvalidValue: for a precision that is not a whole number from 2 to 2²⁰.

    Example: e to 20 digits, with its radius.
        >>> from transformist.arithmetic import INTERVAL
        >>> INTERVAL.shown(INTERVAL.exp(INTERVAL.array([0, 1])))
        [1, '[2.7182818284590452354 +/- 3.98e-20]']

    """

    bits: int = 128

    largest = None
    saturates = False
    most_scores = 2**20

    def __post_init__(self) -> None:
        if type(self.bits) is not int or not 2 <= self.bits <= 2**20:
            raise InvalidValue(
                "an interval precision must be a whole number of bits from 2 to 1,048,576",
                received=f"bits = {self.bits!r}",
                where="Interval",
                remedy="give one such as 128",
            )

    name = "interval"

    @property
    def unit_roundoff(self) -> Fraction:
        """0: rounding is counted in the radius of a ball."""
        return Fraction(0)

    @_at_precision
    def array(self, values: Any) -> Array:
        """The numbers as balls, of radius 0 where the midpoint holds them."""
        if isinstance(values, Balls):
            return values
        return Balls(_ball(exact_numbers(values)))

    @_at_precision
    def near(self, values: Callable[[int], Any]) -> Array:
        """Balls of radius 2⁻ᵇ, b the precision, around the rationals."""
        around = flint.arb(0, flint.arb(2) ** -self.bits)
        return Balls(_ball(exact_numbers(values(self.bits))) + around)

    def numbers(self, x: Array) -> NDArray[Any]:
        """The midpoints, an object array of `Fraction`.

        Raises:
            NotFinite: where nothing is known of a value, or it is beyond 2^(2²⁰).

        """
        return np.asarray(_midpoint(self._readable(x)), dtype=object)

    def radius(self, x: Array) -> NDArray[Any]:
        """The radii, an object array of `Fraction`.

        Raises:
            NotFinite: as `numbers`.

        """
        return np.asarray(_radius(self._readable(x)), dtype=object)

    def shown(self, x: Array) -> Any:
        """Whole and short numbers as they are, p/q; balls as decimals [m +/- r] that hold them."""
        return np.asarray(_shown(self._readable(x)), dtype=object).tolist()

    def concatenate(self, parts: list[Array], axis: int) -> Array:
        return Balls(np.concatenate([self._plain(part) for part in parts], axis=axis))

    @_at_precision
    def add(self, x: Array, y: Array) -> Array:
        return Balls(self._plain(x) + self._plain(y))

    @_at_precision
    def subtract(self, x: Array, y: Array) -> Array:
        """x − y; scores over one root keep it."""
        if x.root == y.root:
            return Balls(x.values - y.values, x.root)
        return Balls(self._plain(x) - self._plain(y))

    @_at_precision
    def multiply(self, x: Array, y: Array) -> Array:
        return Balls(self._plain(x) * self._plain(y))

    @_at_precision
    def divide(self, x: Array, y: Array) -> Array:
        return Balls(self._plain(x) / self._plain(y))

    @_at_precision
    def affine(self, x: Array, W: Array, b: Array | None = None) -> Array:
        """W x + b for every vector x along the last axis; what no row of W reads takes no part."""
        read = ~np.all(_zero(W.values), axis=0).astype(bool)
        rows = math.prod(x.shape[:-1])
        vectors = self._plain(x)[..., read].reshape(rows, int(read.sum()))
        product = _matmul(vectors, W.values[:, read].T).reshape(*x.shape[:-1], W.shape[0])
        return Balls(product if b is None else product + b.values)

    @_at_precision
    def matmul(self, x: Array, y: Array) -> Array:
        """The matrix product (..., r, k), (..., k, c) → (..., r, c)."""
        return Balls(_matmul(self._plain(x), self._plain(y)))

    @_at_precision
    def scores(self, q: Array, k: Array) -> Array:
        """q · k over √d_key, the root kept apart."""
        # Divided by an irrational √d_key, equal exact scores would become overlapping balls, and a
        # tie could never be decided: dot products of exact numbers stay exact.
        keys = np.swapaxes(self._plain(k), -1, -2)
        return Balls(_matmul(self._plain(q), keys), root=q.shape[-1])

    @_at_precision
    def sum(self, x: Array) -> Array:
        return Balls(np.add.reduce(self._plain(x), axis=-1, keepdims=True, initial=flint.arb(0)))

    @_at_precision
    def maximum(self, x: Array, among: Flags) -> Array:
        lowest = _where(among, x.values, flint.arb.neg_inf())
        largest = _larger.reduce(lowest, axis=-1, keepdims=True, initial=flint.arb.neg_inf())
        return Balls(_where(np.any(among, axis=-1, keepdims=True), largest, flint.arb(0)), x.root)

    @_at_precision
    def maximal(self, x: Array, among: Flags) -> Flags:
        """The admissible entries equal to the largest.

        Raises:
            Undecided: where two of which either may be the larger are not both exact.

        """
        rows = x.values.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        admissible = np.broadcast_to(among, x.shape).reshape(rows.shape)
        found = [self._largest(row, may) for row, may in zip(rows, admissible, strict=True)]
        return np.array(found, dtype=bool).reshape(x.shape)

    def _largest(self, row: NDArray[Any], among: Flags) -> list[bool]:
        # No candidate is surely above `best`: x > y of balls is transitive, `best` is the last of a
        # chain in which each ball is surely above the one before, and a candidate that was passed
        # over was not surely above the best so far. So a candidate is surely below `best`, or it
        # overlaps, and then `_equals` decides or refuses.
        candidates = [ball for ball, may in zip(row, among, strict=True) if may]
        if not candidates:
            return [False] * len(row)
        best = functools.reduce(lambda x, y: y if y > x else x, candidates)
        return [
            bool(may) and (ball is best or self._equals(ball, best))
            for ball, may in zip(row, among, strict=True)
        ]

    def _equals(self, ball: flint.arb, best: flint.arb) -> bool:
        """True if a ball that is not above the best one is equal to it."""
        if ball < best:
            return False
        if ball.is_exact() and best.is_exact():
            return bool(ball == best)
        raise self._undecided("which of two numbers is larger", f"{ball} and {best}")

    @_at_precision
    def relu(self, x: Array) -> Array:
        return Balls(_relu(self._plain(x)))

    @_at_precision
    def sqrt(self, x: Array) -> Array:
        """√x for x ≥ 0; of a ball that reaches below 0, of its part that does not."""
        return Balls(_root(self._plain(x)))

    @_at_precision
    def exp(self, x: Array) -> Array:
        return Balls(_exp(self._plain(x)))

    @_at_precision
    def root_two_over_pi(self) -> Array:
        return Balls(np.array([(2 / flint.arb.pi()).sqrt()], dtype=object))

    @_at_precision
    def tanh(self, x: Array) -> Array:
        return Balls(_tanh(self._plain(x)))

    @_at_precision
    def normal_cdf(self, x: Array) -> Array:
        """Φ(x) = erfc(−x/√2)/2."""
        return Balls(_erfc(-self._plain(x) / flint.arb(2).sqrt()) / 2)

    def keep(self, x: Array, where: Flags) -> Array:
        return Balls(_where(where, x.values, flint.arb(0)), x.root)

    def positive(self, x: Array) -> Flags:
        """x > 0.

        Raises:
            Undecided: for a ball that holds 0 and positive numbers.

        """
        above = np.asarray(x.values > 0, dtype=bool)
        below = np.asarray(x.values <= 0, dtype=bool)
        if not (above | below).all():
            ball = x.values[~(above | below)].ravel()[0]
            raise self._undecided("whether a number is positive", str(ball))
        return above

    @_at_precision
    def _plain(self, x: Balls) -> NDArray[Any]:
        """The balls themselves, the common root divided out."""
        return x.values if x.root == 1 else np.asarray(x.values / flint.arb(x.root).sqrt())

    @_at_precision
    def _readable(self, x: Balls) -> NDArray[Any]:
        """The balls; one with a midpoint below 2^(−2¹²) is replaced by a ball about 0 around it."""
        balls = self._plain(x)
        if not all(ball.abs_upper() < _huge() for ball in balls.ravel()):
            raise NotFinite(
                "every ball must be finite, and below 2^(2^20)",
                received="one of which nothing is known, or a larger one",
                where=self.name,
                remedy="scale the values down, or evaluate with more bits",
            )
        return np.asarray(_away_from_zero(balls), dtype=object)

    def _undecided(self, choice: str, received: str) -> Undecided:
        return Undecided(
            f"the balls of {self.name} must decide {choice}",
            received=received,
            remedy="evaluate with more bits, or in exact where the numbers are rational",
        )


def _matmul(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """The matrix product, by flint's own, one of the batch after the other."""
    (r, k), c = x.shape[-2:], y.shape[-1]
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    left, right = np.broadcast_to(x, (*batch, r, k)), np.broadcast_to(y, (*batch, k, c))
    product = np.full((*batch, r, c), flint.arb(0), dtype=object)
    for index in np.ndindex(batch if product.size and k else (0,)):
        matrix = flint.arb_mat(r, k, left[index].ravel().tolist())
        entries = (matrix * flint.arb_mat(k, c, right[index].ravel().tolist())).entries()
        product[index] = np.array(entries, dtype=object).reshape(r, c)
    return product


@functools.cache
def _tiny() -> flint.arb:
    """A smaller number is not written out as a fraction, which would be very long."""
    return flint.arb(2) ** -(2**12)


@functools.cache
def _huge() -> flint.arb:
    """A number from this on is not written out as a fraction either."""
    return flint.arb(2) ** 2**20


def _where(mask: Flags, values: NDArray[Any], other: flint.arb) -> NDArray[Any]:
    return np.where(mask, values, np.array(other, dtype=object))


def _to_ball(value: Any) -> flint.arb:
    if isinstance(value, float):
        return flint.arb(value)
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


_ZERO = Fraction(0)


def _fraction(ball: flint.arb) -> Fraction:
    """The value of an exact ball."""
    if ball.is_zero():  # as most entries of one-hot vectors are
        return _ZERO
    mantissa, exponent = map(int, ball.man_exp())
    return Fraction(mantissa << exponent) if exponent > 0 else Fraction(mantissa, 1 << -exponent)


def _about_zero(ball: flint.arb) -> flint.arb:
    """A ball with a midpoint that is 0 or can be written out: where it cannot, one about 0."""
    if ball.is_zero():
        return ball
    midpoint = ball.mid()
    if midpoint.is_zero() or abs(midpoint) >= _tiny():
        return ball
    return flint.arb(0, ball.abs_upper().max(_tiny()))


def _not_tiny(radius: flint.arb) -> flint.arb:
    """A radius, or the least that is written out."""
    return radius if radius.is_zero() or radius >= _tiny() else _tiny()


def _in_decimals(ball: flint.arb) -> int | Fraction | str:
    if not ball.is_exact():
        return str(ball.str(20))
    value = _fraction(ball)
    return int(value) if value.denominator == 1 else value


def _square_root(ball: flint.arb) -> flint.arb:
    # The real number under a root is at least 0 (a variance, plus ε ≥ 0), although its ball may
    # reach below: the root lies between 0 and that of the upper end.
    if ball > 0 or ball.is_zero():
        return ball.sqrt()
    return flint.arb(0).union(ball.upper().sqrt())


_ball = np.frompyfunc(_to_ball, 1, 1)
_midpoint = np.frompyfunc(lambda ball: _fraction(ball.mid()), 1, 1)
_away_from_zero = np.frompyfunc(_about_zero, 1, 1)
_radius = np.frompyfunc(lambda ball: _fraction(_not_tiny(ball.rad())), 1, 1)
_zero = np.frompyfunc(lambda ball: ball.is_zero(), 1, 1)  # without loading flint here
_shown = np.frompyfunc(_in_decimals, 1, 1)
_larger = np.frompyfunc(lambda x, y: x.max(y), 2, 1)
_relu = np.frompyfunc(lambda ball: ball.nonnegative_part(), 1, 1)
_root = np.frompyfunc(_square_root, 1, 1)
_exp = np.frompyfunc(lambda ball: ball.exp(), 1, 1)
_tanh = np.frompyfunc(lambda ball: ball.tanh(), 1, 1)
_erfc = np.frompyfunc(lambda ball: ball.erfc(), 1, 1)

INTERVAL = Interval()
