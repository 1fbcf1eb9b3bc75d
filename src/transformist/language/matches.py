"""The positions that a selection finds for each query, before it is said what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from transformist.errors import UnknownName
from transformist.language.calls import with_checked_calls
from transformist.language.node import Node
from transformist.language.places import here
from transformist.language.tracing import constant, kind_of
from transformist.language.types import Boolean, Number

if TYPE_CHECKING:
    from transformist.language.booleans import Booleans
    from transformist.language.per_position import PerPosition
    from transformist.language.quantities import Numbers


def _no(sign: str) -> Callable[..., NoReturn]:
    def refuse(self: Matches, *_: object) -> NoReturn:
        raise UnknownName(
            "what a selection matches must first be made values",
            received=f"{sign} on {self!r}",
            where=str(here()),
            remedy="write .rightmost(y), .leftmost(y), .mean(y) or .any() after select",
        )

    return refuse


@with_checked_calls
class Matches:
    """At each position i, the positions j that the mask leaves with keyⱼ = queryᵢ."""

    def __init__(self, queries: PerPosition, keys: Node, mask: str) -> None:
        self._queries, self._keys, self._mask = queries, keys, mask

    def __repr__(self) -> str:
        return "<the positions that a selection matches>"

    def __getattr__(self, name: str) -> Any:
        """Refuse what there is not of matches."""
        if name.startswith("_") or name in ("node", "tracing"):
            raise AttributeError(name)
        known = [each for each in dir(type(self)) if not each.startswith("_")]
        raise UnknownName.among("operation on what a selection matches", name, known, str(here()))

    __bool__ = _no("its truth")
    __len__ = _no("len")
    __iter__ = _no("a loop")
    __getitem__ = _no("an index")
    __contains__ = _no("in")
    __float__ = _no("float")
    __add__ = __radd__ = _no("+")
    __sub__ = __rsub__ = _no("-")
    __mul__ = __rmul__ = _no("*")
    __truediv__ = __rtruediv__ = _no("/")
    __floordiv__ = __rfloordiv__ = _no("//")
    __mod__ = __rmod__ = _no("%")
    __pow__ = __rpow__ = _no("**")
    __matmul__ = __rmatmul__ = _no("@")
    __and__ = __rand__ = _no("&")
    __or__ = __ror__ = _no("|")
    __xor__ = __rxor__ = _no("^")
    __lt__ = _no("<")
    __le__ = _no("<=")
    __gt__ = _no(">")
    __ge__ = _no(">=")
    __neg__ = __pos__ = _no("a sign")
    __invert__ = _no("~")
    __abs__ = _no("abs")

    def rightmost(self, values: Any, *, default: Any = None) -> Any:
        """The value at the last match; the default, a constant or a sequence, where none is."""
        return self._choose("rightmost", self._node(values), default)

    def leftmost(self, values: Any, *, default: Any = None) -> Any:
        """The value at the first match; the default, a constant or a sequence, where none is."""
        return self._choose("leftmost", self._node(values), default)

    def mean(self, values: Any, *, default: Any = 0) -> Numbers:
        """The mean of the values at the matches (a Boolean is 1 or 0); the default for none."""
        if kind_of(values) is Boolean:
            node = self._queries._operand(values, Boolean)
            values = self._queries.tracing.sequence(node).where(1, 0)
        return self._choose("mean", self._queries._operand(values, Number), default)  # type: ignore[no-any-return]

    def any(self) -> Booleans:
        """Whether there is a match."""
        return self._choose("rightmost", constant(True, Boolean), False)  # type: ignore[no-any-return]

    def _node(self, values: Any) -> Node:
        return self._queries._operand(values, kind_of(values))

    def _choose(self, choose: str, values: Node, default: Any) -> Any:
        queries = self._queries
        return queries._matched(self._keys, queries.node, values, default, choose, self._mask)
