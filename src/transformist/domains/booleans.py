"""Boolean representations: what stands for false and for true (section 3.1, Table 4).

Each is two sets of the form {t v : t in an interval}. Their properties follow from the ends of the
intervals and the vectors, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from transformist.arithmetic import Arithmetic, Floating
from transformist.domains.vectors import Case, Reals
from transformist.errors import InvalidValue


@dataclass(frozen=True)
class RealInterval:
    """The numbers from one end to another, each end there or not, or infinite.

    Example:
        >>> positive = RealInterval(least=Fraction(0), with_least=False)
        >>> Fraction(0) in positive, Fraction(1) in positive
        (False, True)

    """

    least: Fraction | float = -math.inf
    most: Fraction | float = math.inf
    with_least: bool = True
    with_most: bool = True

    def __contains__(self, t: Fraction) -> bool:
        above = self.least <= t if self.with_least else self.least < t
        return above and (t <= self.most if self.with_most else t < self.most)

    @property
    def ends(self) -> tuple[Fraction, ...]:
        """Those that are finite."""
        return tuple({Fraction(end) for end in (self.least, self.most) if math.isfinite(end)})

    @property
    def closure(self) -> RealInterval:
        """With both ends."""
        return RealInterval(self.least, self.most)

    def times(self, c: Fraction) -> RealInterval:
        """{c t : t in the interval}, for c ≠ 0."""
        if c > 0:
            return RealInterval(self.least * c, self.most * c, self.with_least, self.with_most)
        return RealInterval(self.most * c, self.least * c, self.with_most, self.with_least)

    def common(self, other: RealInterval) -> RealInterval | None:
        """Intersection; `None` if it is empty."""
        # An end of the intersection belongs to it if it belongs to both, where it is inside of one
        # it does.
        least, most = max(self.least, other.least), min(self.most, other.most)
        with_least = all(t.with_least or t.least < least for t in (self, other))
        with_most = all(t.with_most or t.most > most for t in (self, other))
        if least < most or (least == most and with_least and with_most):
            return RealInterval(least, most, with_least, with_most)
        return None


@dataclass(frozen=True)
class Multiples:
    """{t v : t in an interval}, v ≠ 0.

    Attributes:
        interval: of t; not empty.
        direction: v.

    """

    interval: RealInterval
    direction: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        if not any(self.direction) or self.interval.common(self.interval) is None:
            raise InvalidValue(
                "the vector of multiples must not be 0, and the interval of factors not empty",
                received=f"{self.direction} by {self.interval}",
                where="Multiples",
                remedy="give 0 as the interval from 0 to 0",
            )

    def __str__(self) -> str:
        t = self.interval
        if t.least == t.most:
            return _shown(self.of_size(abs(Fraction(t.least)) * max(map(abs, self.direction))))
        low = ("[" if t.with_least and math.isfinite(t.least) else "(") + _end(t.least)
        high = _end(t.most) + ("]" if t.with_most and math.isfinite(t.most) else ")")
        return ("" if self.direction == (1,) else f"{_shown(self.direction)} · ") + f"{low}, {high}"

    @property
    def dimension(self) -> int:
        return len(self.direction)

    def __contains__(self, case: Case) -> bool:
        t = self._factor(case)
        return t is not None and t in self.interval

    def _factor(self, case: Case) -> Fraction | None:
        """t with case = t v, `None` where there is none."""
        k = next(k for k, entry in enumerate(self.direction) if entry)
        t = Fraction(case[k]) / self.direction[k]
        return t if tuple(case) == tuple(t * entry for entry in self.direction) else None

    @property
    def closure(self) -> Multiples:
        """With its ends."""
        return Multiples(self.interval.closure, self.direction)

    def of_size(self, size: Fraction) -> Case:
        """The member whose largest coordinate is `size` in magnitude; 0 where that is the only one.

        Raises:
            InvalidValue: where there is none.

        """
        # |t v| has the largest coordinate |t| max |vₖ|.
        t = size / max(map(abs, self.direction))
        if self.interval.least == self.interval.most == 0:
            t = Fraction(0)
        for factor in (t, -t):
            if factor in self.interval:
                return tuple(factor * entry for entry in self.direction)
        raise InvalidValue(
            f"a member of {self.interval} times {self.direction} must have the size",
            received=str(size),
            where="Multiples",
            remedy="give the size of one",
        )

    def common(self, other: Multiples) -> Multiples | None:
        """Intersection, `None` if it is empty: along one line an interval, else at most 0."""
        c = self._factor(tuple(map(Fraction, other.direction)))
        if c is None:
            zero = Fraction(0)
            if zero in self.interval and zero in other.interval:
                return Multiples(RealInterval(zero, zero), self.direction)
            return None
        both = self.interval.common(other.interval.times(c))
        return None if both is None else Multiples(both, self.direction)

    def squared_distance(self, other: Multiples) -> Fraction:
        """inf |x − y|² for x here and y there."""
        # It is 0 if the closures meet. Otherwise |t v − s w|², convex in t and s, has its minimum
        # over the closed intervals where t or s is an end: at a minimum inside, t v − s w would be
        # orthogonal to v and w, and so 0.
        if self.closure.common(other.closure) is not None:
            return Fraction(0)
        return min(*self._from_ends(other), *other._from_ends(self), key=float)

    def _from_ends(self, other: Multiples) -> Iterator[Fraction]:
        """The squared distance of each end of this set from the other one, whose ends are in it."""
        for t in self.interval.ends:
            x = tuple(t * entry for entry in self.direction)
            yield sum(((a - b) ** 2 for a, b in zip(x, other.nearest(x), strict=True)), Fraction(0))

    def nearest(self, x: Case) -> Case:
        """The point of the closure that is nearest to x: at t = x · v/|v|², or an end."""
        v = self.direction
        t = sum(a * b for a, b in zip(x, v, strict=True)) / sum(b * b for b in v)
        t = Fraction(min(max(t, self.interval.least), self.interval.most))
        return tuple(t * entry for entry in v)

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """The only member; else drawn ones, and some very near to the ends and very far."""
        t = self.interval
        if t.least == t.most:
            return [tuple(Fraction(t.least) * entry for entry in self.direction)]
        low, high = (Fraction(end) if math.isfinite(end) else None for end in (t.least, t.most))
        # An open interval has no last member: the nearest numbers of the format to its ends are
        # tried.
        near, far = Fraction(1, 2**64), Fraction(2**61)
        if isinstance(arithmetic, Floating):
            near, far = Fraction(arithmetic.smallest), Fraction(arithmetic.largest) / 8
        marks = [far, -far, *(end + sign * near for end in t.ends for sign in (1, -1))]
        stored = map(Fraction, arithmetic.numbers(arithmetic.array(marks)).tolist())
        drawn = Reals(1, low, high, points=t.ends).cases(arithmetic, count - len(marks), seed)
        factors = dict.fromkeys([*stored, *(value for (value,) in drawn)])
        members = [tuple(s * entry for entry in self.direction) for s in factors if s in t]
        return [case for case in members if _holds(arithmetic, case)]


def _holds(arithmetic: Arithmetic, case: Case) -> bool:
    return tuple(map(Fraction, arithmetic.numbers(arithmetic.array([case]))[0].tolist())) == case


def _shown(vector: tuple[int, ...] | Case) -> str:
    return str(vector[0]) if len(vector) == 1 else f"[{', '.join(map(str, vector))}]"


def _end(end: Fraction | float) -> str:
    return str(end) if math.isfinite(end) else ("∞" if end > 0 else "−∞")


@dataclass(frozen=True)
class BooleanRepresentation:
    """The vectors that stand for false and those that stand for true; a domain of both.

    Attributes:
        name: kebab-case, stable.
        false, true: two sets without a common member.

    """

    name: str
    false: Multiples
    true: Multiples

    def __post_init__(self) -> None:
        sides = (self.false, self.true)
        if self.false.dimension != self.true.dimension or self.false.common(self.true) is not None:
            raise InvalidValue(
                "false and true must be disjoint sets of vectors of one width",
                received=" and ".join(map(str, sides)),
                where=self.name,
                remedy="leave a common end out of one of them",
            )

    def __str__(self) -> str:
        return f"{self.false} for false and {self.true} for true"

    @property
    def dimension(self) -> int:
        return self.false.dimension

    def __contains__(self, case: Case) -> bool:
        return case in self.false or case in self.true

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """Half of them false, half of them true."""
        sides = (self.false, self.true)
        return [case for side in sides for case in side.cases(arithmetic, count // 2, seed)]

    @property
    def meeting(self) -> Case | None:
        """The one point that both closures have, or `None`."""
        # They never have two in common: the sets are convex and disjoint, so on one line one lies
        # beside the other and they share at most an end, and on two lines at most 0.
        both = self.false.closure.common(self.true.closure)
        if both is None:
            return None
        return tuple(Fraction(both.interval.least) * entry for entry in both.direction)

    @property
    def continuous_operations(self) -> bool:
        """True if every Boolean operation is a continuous function on false ∪ true."""
        # This holds if and only if the sets are separated: neither meets the closure of the other.
        # If separated, each is open in their union, and a function that is constant on every
        # product of them is continuous. If not, the point p where they meet lies in one of them,
        # say in false. A negation that is continuous at p maps a sequence of true that converges
        # to p to one of false, whose limit, the image of p, is in true and in the closure of
        # false. But only p is in both closures, and p is false. (Sets that are not convex may
        # interleave: x + 1 is a continuous negation of [0, 1) ∪ [2, 3) ∪ … and its complement in
        # [0, ∞).)
        p = self.meeting
        return p is None or p not in self

    @property
    def squared_gap(self) -> Fraction:
        """The square of the distance of false from true, inf |x − y|²."""
        return self.false.squared_distance(self.true)

    @property
    def gap(self) -> float:
        """The distance of false from true."""
        return math.sqrt(self.squared_gap)

    @property
    def minimum_gap(self) -> bool:
        """True if the distance of false from true is positive."""
        return self.squared_gap > 0

    @property
    def fixed_mean(self) -> bool:
        """True if the mean of a vector that holds m ≥ 1 such Booleans does not depend on them."""
        # This holds if and only if all members t v of both sets have one sum of coordinates, t Σ v.
        return self._is_fixed(sum, 1)

    @property
    def fixed_variance(self) -> bool:
        """True if the variance of a vector of m ≥ 2 such Booleans does not depend on them."""
        # This holds if and only if all members have one sum of coordinates, S, and one sum of
        # squares, Q = t² |v|². With w coordinates each, the variance is ΣQ/(mw) − (ΣS/(mw))². For
        # members x and y let a = Q(y) − Q(x) and d = S(y) − S(x), and let the other m − 2 Booleans
        # be x. From (x, x) to (x, y) the variance grows by a/(mw) − (2 (ΣS) d + d²)/(mw)², from
        # there to (y, y) by a/(mw) − (2 (ΣS + d) d + d²)/(mw)², where ΣS is that of the start. Both
        # are 0 only if their difference 2d²/(mw)² is, so d = 0, and then a = 0.
        return self.fixed_mean and self._is_fixed(lambda v: sum(x * x for x in v), 2)

    def _is_fixed(self, total: Callable[[tuple[int, ...]], int], power: int) -> bool:
        """True if t^power · total(v) is one number for both sets."""
        found: set[Fraction] = set()
        for side in (self.false, self.true):
            by, t = total(side.direction), side.interval
            if by and t.least != t.most:
                return False
            found.add(Fraction(t.least) ** power * by if by else Fraction(0))
        return len(found) == 1

    @property
    def properties(self) -> dict[str, bool]:
        """The columns of Table 4."""
        return {
            "continuous operations": self.continuous_operations,
            "minimum gap": self.minimum_gap,
            "fixed mean": self.fixed_mean,
            "fixed variance": self.fixed_variance,
        }


def _point(t: int, direction: tuple[int, ...] = (1,)) -> Multiples:
    return Multiples(RealInterval(Fraction(t), Fraction(t)), direction)


_ABOVE, _BELOW = (
    RealInterval(Fraction(0), with_least=False),
    RealInterval(most=Fraction(0), with_most=False),
)
_DOWN, _UP = (1, -1), (-1, 1)

_REPRESENTATIONS = (
    BooleanRepresentation("nonpositive-positive", Multiples(_BELOW.closure), Multiples(_ABOVE)),
    BooleanRepresentation("zero-one", _point(0), _point(1)),
    BooleanRepresentation("minus-one-one", _point(-1), _point(1)),
    BooleanRepresentation("negative-positive", Multiples(_BELOW), Multiples(_ABOVE)),
    BooleanRepresentation("zero-at-least-one", _point(0), Multiples(RealInterval(Fraction(1)))),
    BooleanRepresentation("pair", _point(1, _DOWN), _point(1, _UP)),
    BooleanRepresentation("scaled-pair", Multiples(_ABOVE, _DOWN), Multiples(_ABOVE, _UP)),
)


def boolean_representations() -> tuple[BooleanRepresentation, ...]:
    """The rows of Table 4, with their four properties (section 3.1).

    One of them, `pair`, has all four; the paper says of the table that no representation has all
    the properties one wants. `pair` takes two coordinates, and is printed there with the signs of
    its text exchanged and in one cell with `scaled-pair`, [δ, −δ] and [−δ, δ] with any δ > 0.

    Example:
        >>> for each in boolean_representations():
        ...     marks = " ".join("no yes".split()[has] for has in each.properties.values())
        ...     print(f"{each.name:20}  {each.false!s:16}  {each.true!s:16}  {marks}")
        nonpositive-positive  (−∞, 0]           (0, ∞)            no no no no
        zero-one              0                 1                 yes yes no no
        minus-one-one         -1                1                 yes yes no no
        negative-positive     (−∞, 0)           (0, ∞)            yes no no no
        zero-at-least-one     0                 [1, ∞)            yes yes no no
        pair                  [1, -1]           [-1, 1]           yes yes yes yes
        scaled-pair           [1, -1] · (0, ∞)  [-1, 1] · (0, ∞)  yes no yes no

    """
    return _REPRESENTATIONS
