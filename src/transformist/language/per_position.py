"""What a program's function holds: a value at each position, of any type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from transformist.errors import UnknownName
from transformist.language.across import Lookup, Shift
from transformist.language.calls import with_checked_calls
from transformist.language.leaves import Constant, Position
from transformist.language.matches import Matches
from transformist.language.node import Node
from transformist.language.outputs import Tag
from transformist.language.places import here, refusal, refused_truth
from transformist.language.pointwise import Table
from transformist.language.selection import Select
from transformist.language.tables import tabulated
from transformist.language.tracing import Tracing, constant, described, kind_of
from transformist.language.types import Boolean, Category, Number, Type

if TYPE_CHECKING:
    from transformist.language.quantities import Numbers

Own = TypeVar("Own", bound="PerPosition")
_LOOP = "write an operation across positions, such as prefix_mean, any, all_so_far or predecessor"


def _no(what: str, remedy: str) -> Callable[..., NoReturn]:
    def refuse(self: PerPosition, *_: object) -> NoReturn:
        raise refusal(
            f"a sequence stands for every input, and {what} is not defined on it",
            received=described(self),
            remedy=remedy,
        )

    return refuse


def _not_of_type(sign: str) -> Callable[..., Any]:
    def refuse(self: PerPosition, *others: object) -> NoReturn:
        beside = f" with {described(others[0])}" if others else ""
        raise refusal(
            f"{sign} is not defined on {self.node.type.noun}",
            received=f"{described(self)}{beside}",
            remedy=_OPERATORS[type(self.node.type)],
        )

    return refuse


_OPERATORS = {
    Number: "a number has + - * and comparisons; comparisons beside & and | go in parentheses",
    Boolean: "a Boolean has & | ^ ~ == != and * with a number; b.where(1, 0) makes a number of it",
    Category: "a category has == and !=; x.map({…}) makes a number of it",
}


_MAKE = {
    Number: "x.map({…}) or b.where(1, 0) makes a number",
    Boolean: "a comparison makes a Boolean",
    Category: 'b.where("yes", "no") makes a category',
}


@with_checked_calls
class PerPosition:
    """A value at each position of the input.

    Operators and methods make new ones; nothing is computed. `node` is the subexpression.
    """

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, node: Node, tracing: Tracing) -> None:
        self.node = node
        self.tracing = tracing

    def __repr__(self) -> str:
        return f"<{self.node.type.noun} at each position>"

    def __getattr__(self, name: str) -> Any:
        """Refuse what sequences of this type do not have."""
        if name.startswith("_") or name in ("node", "tracing"):
            raise AttributeError(name)
        known = [each for each in dir(type(self)) if not each.startswith("_")]
        noun, place = self.node.type.noun, str(here())
        for kind, wrapper in self.tracing.wrappers.items():
            if hasattr(wrapper, name):
                raise UnknownName(
                    f"no operation on {noun} has this name",
                    received=repr(name),
                    where=place,
                    remedy=f"it is one on {kind.noun}: {_MAKE[kind]}",
                )
        raise UnknownName.among(f"operation on {noun}", name, known, place)

    def _make(self, kind: type[Node], children: tuple[Node, ...], *attributes: Any) -> Any:
        kept = tuple(map(self.tracing.node, children))
        return self.tracing.sequence(kind(kept, *attributes))

    def _operand(self, other: Any, kind: type[Type]) -> Node:
        """The node of a sequence of this program, or of a constant.

        Raises:
            InvalidValue: for a sequence of another program, or what is not of the type.

        """
        if not isinstance(other, PerPosition):
            return constant(other, kind)
        if other.tracing is not self.tracing:
            raise refusal(
                "an operation must be between sequences of one program",
                received=f"{described(other)}, of another",
                remedy="compute both from the arguments of one function",
            )
        if not isinstance(other.node.type, kind):
            return constant(other, kind)
        return other.node

    def _default(self, default: Any, node: Node | None = None) -> Any:
        """The value of a default; 0 or False where it is left out and there is one."""
        kind = type((node or self.node).type)
        if default is None:
            if kind is Category:
                raise refusal(
                    "where there is no such position, a category must have a default",
                    received="none",
                    remedy="give default=…, a symbol or any other value such as 'none'",
                )
            return False if kind is Boolean else 0
        return constant(default, kind).value

    def _matched(
        self, keys: Node, queries: Node, values: Node, default: Any, choose: str, mask: str
    ) -> Any:
        """A selection; where its default is a sequence, a choice between the two."""
        if not isinstance(default, PerPosition):
            how = (choose, mask, self._default(default, values))
            return self._make(Select, (keys, queries, values), *how)
        otherwise = self._operand(default, type(values.type))
        true = Constant((), Boolean, True)
        found = self._make(Select, (keys, queries, true), "rightmost", mask, False)
        how = (choose, mask, _some(values.type))
        chosen = self._make(Select, (keys, queries, values), *how)
        return found.where(chosen, self.tracing.sequence(otherwise))

    @property
    def alphabet(self) -> tuple[Any, ...]:
        """The symbols of the input."""
        return self.tracing.alphabet

    def position(self, name: str = "i") -> Numbers:
        """A function of the position, by name: i (from 1), n, i/n, (-1)^i, and others.

        Those without a value at 0, as 1/i, are interpreted, but not compiled: BOS stands there.

        Raises:
            InvalidValue: for another name.

        """
        return self._make(Position, (), name)  # type: ignore[no-any-return]

    def predecessor(self: Own, k: int = 1, *, default: Any = None) -> Own:
        """The value k positions before; the default where there is none."""
        return self._shifted(k, default, 1)

    def successor(self: Own, k: int = 1, *, default: Any = None) -> Own:
        """The value k positions after; the default where there is none."""
        return self._shifted(k, default, -1)

    def _shifted(self: Own, k: int, default: Any, sign: int) -> Own:
        if type(k) is not int or k < 1:
            raise refusal(
                "k must be a whole number of at least 1",
                received=f"{k!r:.40}",
                remedy="give how many positions away it is",
            )
        return self._make(Shift, (self.node,), sign * k, self._default(default))  # type: ignore[no-any-return]

    def lookup(self: Own, index: Any, *, default: Any = None) -> Own:
        """The value at the position that a number gives, from 1; the default beyond 1 to n."""
        at = self._operand(index, Number)
        return self._make(Lookup, (self.node, at), self._default(default))  # type: ignore[no-any-return]

    def first(self: Own, *, default: Any = None) -> Own:
        """The value at position 1; the default is that of the empty input."""
        return self._nearest(True, "leftmost", "future", default)

    def last(self: Own, *, default: Any = None) -> Own:
        """The value at position n; the default is that of the empty input."""
        return self._nearest(True, "rightmost", "none", default)

    def nearest_left(self: Own, predicate: Any, *, default: Any = None) -> Own:
        """The value at the last position before this one where the Boolean holds."""
        return self._nearest(predicate, "rightmost", "strict-future", default)

    def nearest_right(self: Own, predicate: Any, *, default: Any = None) -> Own:
        """The value at the first position after this one where the Boolean holds."""
        return self._nearest(predicate, "leftmost", "strict-past", default)

    def _nearest(self: Own, predicate: Any, choose: str, mask: str, default: Any) -> Own:
        keys, queries = self._operand(predicate, Boolean), Constant((), Boolean, True)
        return self._matched(keys, queries, self.node, default, choose, mask)  # type: ignore[no-any-return]

    def select(self, keys: Any, *, mask: str = "none") -> Matches:
        """The positions whose key equals the value here, among those that the mask leaves.

        Args:
            keys: a sequence of the type of this one.
            mask: none for all positions, future for those up to here, strict-future for those
                before, past for those from here on, strict-past for those after.

        """
        return Matches(self, self._operand(keys, type(self.node.type)), mask)

    def table(self, *others: Any, values: Any) -> Any:
        """A function of this and other Booleans and categories, by its values.

        Args:
            others: its other arguments.
            values: a mapping from each tuple of arguments (from each value, of one argument), or
                a list in the order of their product, the last the fastest: for Booleans the values
                at 0…00, 0…01, …; "0110" is a list of Booleans.

        Raises:
            InvalidValue: where one is missing or too many, or they are not of one type.

        """
        nodes = (self.node, *(self._operand(each, kind_of(each)) for each in others))
        table = tabulated(nodes, values)
        return self._make(Table, table.children, table.rows, table.result)

    def tag(self) -> Tag:
        """The output that is the value at every position.

        Symbols are joined to a string where each is one character; there is a list elsewhere.
        Numbers are ints where they are whole, and `Fraction`.
        """
        output = Tag(self.node)
        self.tracing.output(output)
        return output

    def __bool__(self) -> NoReturn:
        raise refused_truth()

    __len__ = _no("len", 'write x.position("n") for the length')
    __iter__ = _no("a loop over its positions", _LOOP)
    __getitem__ = _no(
        "an index", "write x.lookup(i, default=…) for the value at position i, from 1"
    )
    __contains__ = _no("in", 'write (x == "a").any()')
    __float__ = _no("float", "it is exact as it is: leave float out")
    __int__ = __index__ = _no("int", "it is exact as it is: leave int out")
    __round__ = __floor__ = __ceil__ = __trunc__ = _no("rounding", "compare it with constants")
    __pow__ = __rpow__ = _not_of_type("**")
    __mod__ = __rmod__ = _not_of_type("%")
    __floordiv__ = __rfloordiv__ = _not_of_type("//")
    __truediv__ = __rtruediv__ = _not_of_type("/")
    __matmul__ = __rmatmul__ = _not_of_type("@")
    __lshift__ = __rlshift__ = _not_of_type("<<")
    __rshift__ = __rrshift__ = _not_of_type(">>")
    __add__ = __radd__ = _not_of_type("+")
    __sub__ = __rsub__ = _not_of_type("-")
    __mul__ = __rmul__ = _not_of_type("*")
    __and__ = __rand__ = _not_of_type("&")
    __or__ = __ror__ = _not_of_type("|")
    __xor__ = __rxor__ = _not_of_type("^")
    __lt__ = _not_of_type("<")
    __le__ = _not_of_type("<=")
    __gt__ = _not_of_type(">")
    __ge__ = _not_of_type(">=")
    __neg__ = __pos__ = _not_of_type("a sign")
    __abs__ = _not_of_type("abs")
    __invert__ = _not_of_type("~")


def _some(type_: Type) -> Any:
    """A value of the type, where it does not matter which."""
    return 0 if isinstance(type_, Number) else type_.values[0]
