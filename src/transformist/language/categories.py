"""Sequences of categories, such as the tokens of the input."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from transformist.language.booleans import Booleans
from transformist.language.calls import with_checked_calls
from transformist.language.outputs import NextToken
from transformist.language.per_position import PerPosition
from transformist.language.places import refusal
from transformist.language.pointwise import Table, rows_of
from transformist.language.tables import tabulated
from transformist.language.tracing import described, listed
from transformist.language.types import Boolean, Category
from transformist.model import EOS


@with_checked_calls
class Categories(PerPosition):
    """One of finitely many values at each position."""

    @property
    def _values(self) -> tuple[Any, ...]:
        return self.node.type.values  # type: ignore[return-value]

    def __eq__(self, other: object) -> Booleans:  # type: ignore[override]
        if not isinstance(other, PerPosition):
            return self.isin([other])
        node = self._operand(other, Category)
        rows_of(self.node.type, node.type)
        pairs = itertools.product(self._values, node.type.values or ())
        rows = tuple(a == b for a, b in pairs)
        return self._make(Table, (self.node, node), rows, Boolean())  # type: ignore[no-any-return]

    def __ne__(self, other: object) -> Booleans:  # type: ignore[override]
        return ~(self == other)

    def isin(self, symbols: Iterable[Any]) -> Booleans:
        """Whether it is one of these.

        Raises:
            InvalidValue: for what it never is.

        """
        wanted = listed(symbols)
        for symbol in wanted:
            if not isinstance(symbol, Hashable) or symbol not in self._values:  # such as an array
                raise refusal(
                    f"{described(self)}, is one of {' '.join(map(repr, self._values))}",
                    received=f"{symbol!r:.40}",
                    remedy="compare it with one of these, or add it to the alphabet",
                )
        rows = tuple(value in wanted for value in self._values)
        return self._make(Table, (self.node,), rows, Boolean())  # type: ignore[no-any-return]

    def map(self, values: Mapping[Any, Any], *, categories: bool = False) -> Any:
        """A number, a Boolean or a category for each value.

        Args:
            values: from each value that this can have: all Booleans, all numbers (whole, floats
                as they are, `Fraction`), or all categories, such as strings.
            categories: whether numbers stand for categories, as in an alphabet of numbers.

        Raises:
            InvalidValue: where one is missing or too many, or they are not of one type.

        """
        table = tabulated((self.node,), values, categories)
        return self._make(Table, table.children, table.rows, table.result)

    def next_token(self) -> NextToken:
        """The output that is, at every position, the prediction of the symbol after it.

        Raises:
            InvalidValue: where it can be something else than a symbol of the alphabet or EOS.

        """
        known = (*self.alphabet, EOS)
        unknown = [value for value in self._values if value not in known]
        if unknown:
            raise refusal(
                "what is predicted must be a symbol of the alphabet, or 'EOS'",
                received=f"{described(self)} that can be {' '.join(map(repr, unknown))}",
                remedy="give another default, or map it to a symbol",
            )
        output = NextToken(self.node)
        self.tracing.output(output)
        return output
