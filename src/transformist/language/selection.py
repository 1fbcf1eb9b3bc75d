"""Subexpression that matches keys to queries."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from transformist.errors import is_name
from transformist.language.across import require_mask, spans, with_default
from transformist.language.node import Column, Node
from transformist.language.places import refusal
from transformist.language.pointwise import RELATIONS, require_kinds
from transformist.language.types import Number, Type, quotient

CHOICES = ("rightmost", "leftmost", "mean")
"""The choices among several matches."""


@dataclass(frozen=True, eq=False, repr=False)
class Select(Node):
    """The value of one position, or the mean, among the positions j of the mask with keyⱼ = queryᵢ.

    The children are keys, queries and values. The result is the value at the last such j
    (`rightmost`), at the first (`leftmost`), or the mean over all of them (`mean`). Without such a
    j it is the default.
    """

    choose: str
    mask: str
    default: Any

    @cached_property
    def type(self) -> Type:
        require_mask(self.mask)
        if self.choose not in CHOICES:
            raise refusal(
                f"the choice of a selection must be one of {', '.join(CHOICES)}",
                received=repr(self.choose),
                remedy="choose one of these",
            )
        keys, queries, values = self.children
        if keys.type.noun != queries.type.noun:
            raise refusal(
                "keys must be of the type of the queries",
                received=f"keys that are {keys.type.noun}, for queries that are "
                f"{queries.type.noun}",
                remedy="map or compare one of them, so that both are of one type",
            )
        if self.choose == "mean":
            require_kinds("a mean", (values,), Number)
            return Number()
        return with_default(values.type, self.default)

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        # Positions with one key are a list in increasing order, and a mask leaves an interval of
        # positions: two bisections find the matches of a query, and a difference of sums from the
        # left their sum. So n queries take n log n steps, not n².
        keys, queries, values = columns
        places: dict[Any, list[int]] = {}
        for j, key in enumerate(keys):
            places.setdefault(key, []).append(j)
        sums = {key: self._sums(values, listed) for key, listed in places.items()}
        chosen = []
        for query, (start, end) in zip(queries, spans(self.mask, len(x)), strict=True):
            # Key and query are equal as Python values: 1 and Fraction(1) are.
            listed = places.get(query, [])
            first, last = bisect_left(listed, start), bisect_left(listed, end)
            if first == last:
                chosen.append(self.default)
            elif self.choose == "mean":
                total = sums[query][last] - sums[query][first]
                chosen.append(quotient(total, last - first))
            else:
                chosen.append(values[listed[last - 1 if self.choose == "rightmost" else first]])
        return chosen

    def _sums(self, values: Column, places: list[int]) -> list[Any]:
        """Sums of the first 0, 1, 2, … of the values at these places, for a mean."""
        if self.choose != "mean":
            return []
        return list(accumulate((values[j] for j in places), initial=0))

    def over_nothing(self, *values: Any) -> Any:
        return self.default


@dataclass(frozen=True, eq=False, repr=False)
class SelectByRelation(Select):
    """A selection among the positions j of the mask with keyⱼ < queryᵢ, or another relation.

    Attributes:
        relation: of keyⱼ to queryᵢ: `==`, `!=`, `<`, `<=`, `>` or `>=`.

    """

    relation: str

    @cached_property
    def type(self) -> Type:
        if not is_name(self.relation, tuple(RELATIONS)):
            raise refusal(
                f"the relation of keys to queries must be one of {' '.join(RELATIONS)}",
                received=f"{self.relation!r:.40}",
                remedy="choose one of these",
            )
        found = super().type
        values: list[Any] = [
            value for each in self.children[:2] for value in each.type.values or ()
        ]
        if self.relation in ("==", "!="):
            return found
        try:
            sorted(values)
        except TypeError:
            raise refusal(
                "keys and queries that are compared must have an order in Python",
                received=f"the values {', '.join(f'{each!r:.20}' for each in values[:6])}"
                + ", …" * (len(values) > 6),
                remedy="map them to numbers",
            ) from None
        return found

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        keys, queries, values = columns
        compare, chosen = RELATIONS[self.relation], []
        for query, (start, end) in zip(queries, spans(self.mask, len(x)), strict=True):
            at = [j for j in range(start, end) if compare(keys[j], query)]
            if not at:
                chosen.append(self.default)
            elif self.choose == "mean":
                chosen.append(quotient(sum(values[j] for j in at), len(at)))
            else:
                chosen.append(values[at[-1 if self.choose == "rightmost" else 0]])
        return chosen
