"""Rules for what takes its value from another position: neighbours, lookups, selections.

The channel of a kind turns a value whose default is 0 into what is fetched of it. All types are
fetched alike: less the default, which is added again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

from transformist.circuit import (
    SEES_BOS,
    At,
    Fetched,
    Form,
    Head,
    Match,
    PositionFeature,
    at_bos,
    total,
)
from transformist.compiler.lower.binary_code import code
from transformist.compiler.lower.builder import Builder, Scale
from transformist.compiler.lower.means import at_count
from transformist.compiler.lower.rule import Asking, Channel, Rule
from transformist.language.across import Count, Lookup, Shift
from transformist.language.leaves import Constant
from transformist.language.node import Node
from transformist.language.pointwise import RELATIONS, Choice
from transformist.language.selection import Select, SelectByRelation
from transformist.language.types import Boolean, Category, Number, Polynomial
from transformist.laws import INFINITY
from transformist.model import Mask
from transformist.rounding import power_of_two_at_most

_TRUE = Constant((), Boolean, True)

FetchingNode: TypeAlias = "Shift | Lookup | Select"


def _by_head(build: Builder, node: Node, head: Head) -> Channel:
    """The channel of a head, whose value is 0 at BOS."""
    name = build.name(node)

    def fetch(value: Form) -> Form:
        quiet = build.quiet(value, name)
        if build.circuit.span(quiet).diameter == INFINITY:
            build.require_sharpness(node)
        return quiet if quiet == Form() else build.add(Fetched(head, quiet), name)

    return fetch


# By the place


def _shift(_ask: Asking, build: Builder, node: Shift) -> Channel:
    """The next position to the left or right by its place, others by their number."""
    k = node.k
    coded = _coded(build, node, (1, -k), Mask.NONE)
    if coded is not None:
        return coded
    if k in (1, -1):
        mask, choose = {1: ("strict-future", "rightmost"), -1: ("strict-past", "leftmost")}[k]
        # Under rightmost-hard attention the last position of the mask is chosen among equal scores.
        # Other weightings need scores that grow with the place.
        place = None
        if (build.circuit.weighting, k) != ("rightmost-hard", 1):
            place = build.place(node)
        return _by_head(build, node, Match((), (), choose, mask, place))
    return _looking_up(build, node, build.feature("i", node) - k)


def _lookup(ask: Asking, build: Builder, node: Lookup) -> Channel:
    asked = node.children[1]
    if isinstance(asked, Count) and asked.mask in SEES_BOS:  # at most n, or i
        return _by_head(build, node, at_count(ask, build, asked))
    index = ask.number(asked)
    if not build.circuit.is_whole(index):
        raise build.refuse(
            asked,
            "a position that is looked up must be a whole number",
            received="a number that need not be whole",
            remedy="compute it from i, n and whole numbers",
        )
    # A count up to here is at most i: the ends of the type say so, the range of the form does not.
    whole = asked.type.whole if isinstance(asked.type, Number) else None
    looks_back = whole is not None and whole.hi.is_at_most(Polynomial(1, 0, 0))
    return _looking_up(build, node, index, node.mask, looks_back=looks_back)


def _looking_up(
    build: Builder, node: Node, index: Form, mask: str = "none", *, looks_back: bool = False
) -> Channel:
    """A head finds BOS, at 0, for an index up to 0; beyond the last position the default is taken.

    The last position is n, or i under mask future. A lookup whose index is never beyond i takes a
    mask that sees no later position, if the target has one.
    """
    # No position has a number up to 0: the value is always the default.
    if build.circuit.span(index).hi <= 0:
        return lambda _value: Form()
    line = _line(build, index)
    coded = None if line is None else _coded(build, node, line, mask)
    if coded is not None:
        return coded
    place = build.feature("i", node)
    square = build.feature("i^2", node)
    if looks_back or build.circuit.span(index - place).hi <= 0:
        return _by_head(build, node, At(index, place, square, build.lookup_mask()))
    # For an index beyond the last position that the mask leaves, the last position has the largest
    # score; its value must be replaced by the default.
    fetched = _by_head(build, node, At(index, place, square, mask))
    beyond = index - (place if mask == "future" else build.length(node))
    if build.circuit.span(beyond).hi <= 0:
        return fetched
    name = build.name(node)
    valid = build.step(1 - beyond, Fraction(1), f"{name}: up to n")
    return lambda value: build.gated(valid, fetched(value), name)


def _line(build: Builder, index: Form) -> tuple[int, int] | None:
    """Slope and offset of an index that is i + c, c or c − i for a whole number c; else `None`."""
    if index.constant.denominator > 1:
        return None
    offset = int(index.constant)
    if not index.terms:
        return 0, offset
    ((atom, slope), *others) = index.terms
    of_place = build.circuit.atoms[atom] == PositionFeature("i")
    return (int(slope), offset) if of_place and abs(slope) == 1 and not others else None


def _coded(build: Builder, node: Node, index: tuple[int, int], mask: str) -> Channel | None:
    """The channel of a lookup by a sinusoidal code of positions.

    The index q is slope · i + offset. A code of the longest wavelength L tells a position j from q
    if |q − j| < L. Symbols have j from 1 to N. If q ≤ i, the head takes a mask that sees no later
    position, if the target has one; then −N < q − j < N.

    Returns:
        `None` if there is no such code, or the mask does not see BOS, which stands for an index
        outside the input.

    """
    if build.code is None or mask not in SEES_BOS:
        return None
    (slope, offset), longest = index, build.circuit.max_length or 0
    lo, hi = sorted(slope * i + offset for i in (1, longest))
    if hi < 1 or lo > longest or ((slope, mask) == (1, Mask.FUTURE) and offset > 0):
        return lambda _value: Form()
    if slope == 1 and offset <= 0:
        mask = build.lookup_mask()
    furthest = longest if mask == Mask.FUTURE and slope == 1 else max(hi - 1, longest - lo)
    head = build.at_coded(index, mask, furthest)
    return None if head is None else _by_head(build, node, head)


# By keys and queries


@dataclass(frozen=True)
class Comparing:
    """Keys and queries whose products tell matches from other positions.

    Attributes:
        pairs: keys, which are 0 at BOS, and queries, as many of each.
        most: the sum Σ keyⱼ · queryᵢ where j matches; elsewhere the sum is lower by at least 1.
        ties_others: True if the sum is 0 at every j that does not match.
        match: a function from the keys at the position that a head finds to a form that is 1 if
            this position matches, else 0.

    """

    pairs: tuple[tuple[Form, Form], ...]
    most: Form
    ties_others: bool
    match: Callable[[list[Form]], Form]


def _select(ask: Asking, build: Builder, node: Select) -> Channel:
    """BOS takes what matches nothing; where it is not seen, the value or the match is a gate."""
    if _takes_all(node) and node.choose == "leftmost" and node.mask in (Mask.NONE, Mask.FUTURE):
        first = _coded(build, node, (0, 1), node.mask)
        if first is not None:
            return first
    name = build.name(node)
    comparing = _comparing(ask, build, node)
    if node.mask in SEES_BOS:
        has_sink = not (_takes_all(node) and node.choose != "mean")
        return _by_head(build, node, _matching(build, node, comparing, has_sink=has_sink))
    head = _matching(build, node, comparing, has_sink=False)
    fetch = _by_head(build, node, head)
    if _takes_all(node):
        return fetch
    # The sum of products is 1 at a match if keys and queries are one-hot; not so for codes.
    if comparing.ties_others and all(query.is_constant for query in head.queries):
        match = total(k * q.constant for k, q in zip(head.keys, head.queries, strict=True))
        return lambda value: fetch(build.gated(match, value, name))
    find = fetch if node.choose != "mean" else _by_head(build, node, _one_of(build, node, head))
    found = comparing.match([find(key) for key in head.keys])
    return lambda value: build.gated(found, fetch(value), name)


def _takes_all(node: Select) -> bool:
    """True if all positions that the mask leaves match."""
    return type(node) is Select and node.children[0] == node.children[1] == _TRUE


def _matching(build: Builder, node: Select, comparing: Comparing, *, has_sink: bool) -> Match:
    """The head of a selection."""
    pairs = comparing.pairs
    circuit = build.circuit
    if node.choose == "mean":
        build.require_means(node, "the mean of what matches")
    place = None
    forms = [form for pair in pairs for form in pair]
    are_tied = circuit.weighting == "rightmost-hard" and all(map(circuit.is_clean, forms))
    if node.choose == "leftmost" or (node.choose == "rightmost" and not are_tied):
        place = build.place(node)
    is_seen = circuit.bos and node.mask in SEES_BOS
    is_kept_out = is_seen and not pairs and node.choose == "leftmost"
    if is_seen and (has_sink or is_kept_out):
        # The sum of BOS is 1/2 below that of a match and above all others; or −1, below every sum.
        sink = comparing.most - Fraction(1, 2) if has_sink else Form.of(-1)
        pairs = (*pairs, (at_bos(circuit), sink))
    if circuit.max_length is None and place is not None and pairs:
        raise build.needs_length(node, "the weight of a match beside the place")
    if node.choose == "mean":
        build.require_sharpness(node)
    scale, centre = Fraction(1), Form()
    if place is not None:
        scale, centre = _beside_places(build, comparing.most, has_half=is_seen and has_sink)
    return Match(
        keys=tuple(key for key, _ in pairs),
        queries=tuple(query for _, query in pairs),
        choose=node.choose,
        mask=node.mask,
        place=place,
        scale=scale,
        centre=centre if pairs else Form(),
    )


def _beside_places(build: Builder, most: Form, *, has_half: bool) -> tuple[Fraction, Form]:
    """Return the scale of a match beside places, and the centre of the scores.

    Places differ by at most N < P. With the scale 2P half a match outweighs the places. Where
    positions have a sinusoidal code, whole matches have the scale P, and the score of a match at
    place 0 is subtracted from all scores. Then the scores of matches are whole numbers from −P to
    P, which a format of p bits holds for P ≤ 2ᵖ. For a last match of one-hot keys and queries, with
    the scale P, this also holds for rows without a match, from −P to N − P. For a first match
    they have scores from −P − N to −P. With the scale 2P all of these are lower by P.
    """
    reach = build.circuit.reach
    if build.code is None:
        return Fraction(2 * reach), Form()
    scale = Fraction(2 * reach if has_half else reach)
    return scale, most * scale


def _one_of(build: Builder, node: Select, head: Match) -> Match:
    """The head that finds the last of what matches; where places are not told apart, the mean."""
    if not build.tells_places_apart:
        return head
    scale = Fraction(2 * build.circuit.reach)
    return replace(head, choose="rightmost", place=build.place(node), scale=scale)


def _comparing(ask: Asking, build: Builder, node: Select) -> Comparing:
    """One-hot keys and queries if either has listed values, else binary codes of whole numbers."""
    keys, queries, _ = node.children
    name = build.name(node)
    if isinstance(node, SelectByRelation):
        return _by_relation(ask, build, node)
    if _takes_all(node):
        return _one_hot(build, [], name)
    if queries == _TRUE:
        key = build.quiet(_equals(ask, build, keys, True), name)
        return _one_hot(build, [(key, Form.of(1))], name)
    if keys.type.values is None and queries.type.values is None:
        return _by_code(ask, build, node)
    known = [each.type.values for each in (queries, keys) if each.type.values is not None]
    pairs = [
        (
            build.quiet(_equals(ask, build, keys, value), name),
            _equals(ask, build, queries, value),
        )
        for value in known[0]
        # A value that only keys or only queries have matches nothing.
        if value in known[-1]
    ]
    # A form is 0 if no key, or no query, ever has the value: such a pair is left out.
    return _one_hot(build, [pair for pair in pairs if Form() not in pair], name)


def _one_hot(build: Builder, pairs: Sequence[tuple[Form, Form]], name: str) -> Comparing:
    """Keys and queries whose sum of products is 1 where both have the same value, else 0."""

    def match(found: list[Form]) -> Form:
        return total(
            build.conjunction(key + query - 1, f"{name}: found")
            for key, (_, query) in zip(found, pairs, strict=True)
        )

    return Comparing(tuple(pairs), Form.of(1), ties_others=True, match=match)


_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The relation of y to x, for that of x to y."""


def _by_relation(ask: Asking, build: Builder, node: SelectByRelation) -> Comparing:
    """A product [keyⱼ = v] · [v < queryᵢ] for each value v of the keys.

    If the queries have listed values and the keys do not, or if both are whole numbers and the
    queries have fewer values, the products are [keyⱼ < v] · [queryᵢ = v]. `<` stands for any of the
    relations. Where the relation holds, exactly one product is 1, since the key has one value;
    elsewhere all are 0.
    """
    keys, queries, _ = node.children
    name, pairs = build.name(node), list[tuple[Form, Form]]()
    are_unlisted = keys.type.values is None and queries.type.values is None
    is_of_keys, values = _compared_values(ask, build, node)
    for value in values:
        if is_of_keys:
            key = _equals(ask, build, keys, value)
            query = _related(ask, build, queries, _MIRRORED[node.relation], value)
        else:
            key = _related(ask, build, keys, node.relation, value)
            query = _equals(ask, build, queries, value)
        if are_unlisted:
            # A step of x has an error that grows with |x|; a step of that step has not. A score
            # adds the errors of as many products as there are values.
            key, query = (build.step(bit, Fraction(1), f"{name}: bit") for bit in (key, query))
        pairs.append((build.quiet(key, name), query))
    return _one_hot(build, [pair for pair in pairs if Form() not in pair], name)


MOST_COMPARED_VALUES = 256
"""Most values of whole numbers that are compared by an order; the score has a product for each.

The keys of every single head need at least R − 2 coordinates for R values. Let keys and queries
have the values 1 to R, and let all keys k < q, the matches of q, have the same score c(q), as a
mean or a choice by place asks for; other keys have less. The R × R matrix c(q) − score(q, k) is
then 0 for k < q and positive for k ≥ q: it is triangular without a 0 on its diagonal, so its rank
is R. The matrix of the c(q) has rank 1, so that of the scores has rank at least R − 1, and d_key
is at least this rank. The same holds for >. For <= and >= the diagonal is 0, which leaves R − 2;
for != the matrix is a diagonal one. For == the codes of `binary_code` do, because keys that do
not match may differ in score.
"""


def _compared_values(
    ask: Asking, build: Builder, node: SelectByRelation
) -> tuple[bool, Sequence[Any]]:
    """The values of the keys, and True; or the values of the queries, and False."""
    keys, queries, _ = node.children
    for is_of_keys, each in ((True, keys), (False, queries)):
        if each.type.values is not None:
            return is_of_keys, each.type.values
    ranges = [(True, _range(ask, build, keys)), (False, _range(ask, build, queries))]
    is_of_keys, fewest = min(ranges, key=lambda pair: len(pair[1]))
    if len(fewest) > MOST_COMPARED_VALUES:
        raise build.refuse_length(
            node,
            f"keys or queries that are compared by {node.relation} must have at most "
            f"{MOST_COMPARED_VALUES} values: a score has one product for each",
            received=f"{len(fewest):,} values for max_length = {build.circuit.max_length}",
            remedy="give a smaller max_length, use a mask to compare positions, or compare one of "
            "them with constants",
        )
    return is_of_keys, fewest


def _range(ask: Asking, build: Builder, node: Node) -> range:
    """The whole numbers that a whole number cannot be shown not to be."""
    span = build.circuit.span(_whole(ask, build, node))
    known = range(math.ceil(span.lo), math.floor(span.hi) + 1)
    ends = node.type.whole if isinstance(node.type, Number) else None
    longest = build.circuit.max_length
    if ends is None or longest is None:
        return known
    told = ends.up_to(longest)
    return range(max(known.start, told.start), min(known.stop, told.stop))


def _related(ask: Asking, build: Builder, node: Node, relation: str, value: Any) -> Form:
    """1 where the relation holds between the value of a node and this value, else 0."""
    compare, columns = RELATIONS[relation], ask.by_symbol(node)
    name = f"{build.name(node)} {relation} {value}"
    if columns is not None:
        return build.embedded([compare(each, value) for each in columns], name)
    if isinstance(node.type, Boolean | Category):
        return total(ask.literal(node, each) for each in node.type.values if compare(each, value))
    form = ask.number(node) - value
    zone = _zone(build, node, value, form)
    above = Form() if relation in ("<", ">=") else build.step(form, zone, name)
    below = Form() if relation in (">", "<=") else build.step(-form, zone, name)
    return {
        ">": above,
        "<": below,
        ">=": 1 - below,
        "<=": 1 - above,
        "!=": above + below,
        "==": 1 - above - below,
    }[relation]


def _by_code(ask: Asking, build: Builder, node: Select) -> Comparing:
    """Binary codes with the bits b of a key and c of a query, and the score Σ b (2 c − 1).

    A bit adds c to the score where b = c, and c − 1 where b ≠ c. So the score is Σ c minus the
    number of bits in which the codes differ.
    """
    keys, queries, _ = node.children
    name = build.name(node)
    forms = [_whole(ask, build, each) for each in (keys, queries)]
    spans = [build.circuit.span(form) for form in forms]
    least = min(math.floor(each.lo) for each in spans)
    values = max(math.ceil(each.hi) for each in spans) - least + 1
    bits, others = (
        [bit for _, bit in code(build, form - least, values, build.name(each))]
        for form, each in zip(forms, (keys, queries), strict=True)
    )

    def match(found: list[Form]) -> Form:
        differ = [
            build.conjunction(x - y, f"{name}: differs")
            for bit, other in zip(found, others, strict=True)
            for x, y in ((bit, other), (other, bit))
        ]
        return build.conjunction(1 - total(differ), f"{name}: found")

    pairs = tuple((bit, other * 2 - 1) for bit, other in zip(bits, others, strict=True))
    return Comparing(pairs, total(others), ties_others=False, match=match)


def _whole(ask: Asking, build: Builder, node: Node) -> Form:
    """The form of a whole number with known bounds; other numbers are refused."""
    form = ask.number(node)
    if not build.circuit.is_whole(form):
        raise build.refuse(
            node,
            "keys and queries that are numbers must be whole, or one of them have listed values",
            received="a number that need not be whole",
            remedy="compute it from i, n, counts and whole numbers, or compare it with constants",
        )
    if build.circuit.span(form).diameter == INFINITY:
        raise build.needs_length(node, "the number of values of a key")
    return form


def _equals(ask: Asking, build: Builder, node: Node, value: Any) -> Form:
    """[the Boolean, category or number of listed values is this value]."""
    if isinstance(node.type, Boolean | Category):
        return ask.literal(node, value)
    name = build.case(node, value)
    columns = ask.by_symbol(node)
    if columns is not None:
        return build.embedded_case(columns, value, name)
    form = ask.number(node) - value
    zone = _zone(build, node, value, form)
    return 1 - build.step(form, zone, name) - build.step(-form, zone, name)


def _zone(build: Builder, node: Node, value: Any, form: Form) -> Fraction:
    """A power of two that is at most |number − value| wherever the two differ."""
    if node.type.values is None:
        return build.zone(node, form)
    # Any power of two below the least distance to another value serves: a step is decided by zone/4
    # and 3 zone/4, between which no value lies.
    gaps = [abs(each - value) for each in node.type.values if each != value]
    multiple = build.circuit.least_multiple(form)  # a listed value need not be one that occurs
    known = [each for each in (*gaps, multiple) if each]
    return power_of_two_at_most(min(known, default=Fraction(1)))


def own_default(ask: Asking, build: Builder, node: Choice) -> Channel | None:
    """For a selection whose default is the value here: the last position up to here is here."""
    found, chosen, own = node.children
    if not (type(found) is type(chosen) is Select):
        return None
    keys, queries, values = chosen.children
    same = found.children == (keys, queries, _TRUE) and found.mask == chosen.mask
    last = (chosen.choose, chosen.mask) in (("rightmost", "future"), ("leftmost", "past"))
    if not (same and last and values == own and found.default is False):
        return None
    comparing = _comparing(ask, build, chosen)
    # With codes a row without a match still has a best score, and another row than this one could
    # have it. With one-hot keys all scores are 0 there, and the place decides: the last position up
    # to here is this one.
    if not comparing.ties_others:
        return None
    head = _matching(build, chosen, comparing, has_sink=False)
    name = build.name(node)
    return lambda value: build.add(Fetched(head, build.quiet(value, name)), name)


CHANNELS: Mapping[type[Node], Callable[[Asking, Builder, Any], Channel]] = {
    Shift: _shift,
    Lookup: _lookup,
    Select: _select,
    SelectByRelation: _select,
}
"""The function that gives the channel of each kind."""


# The rules: a value less its default, by the channel


def _values(node: FetchingNode) -> Node:
    """The subexpression whose value is fetched."""
    return node.children[2 if isinstance(node, Select) else 0]


def _bit(ask: Asking, _build: Builder, node: FetchingNode) -> Form:
    default = int(node.default)
    return default + ask.channel(node)(ask.boolean(_values(node)) - default)


def _literal(ask: Asking, _build: Builder, node: FetchingNode, value: Any) -> Form:
    default = int(node.default == value)
    return default + ask.channel(node)(ask.literal(_values(node), value) - default)


def _number(ask: Asking, _build: Builder, node: FetchingNode, _scale: Scale) -> Form:
    default = Fraction(node.default)
    return default + ask.channel(node)(ask.number(_values(node)) - default)


FETCHING: Mapping[type[Node], Rule[Any]] = dict.fromkeys(
    CHANNELS, Rule(boolean=_bit, literal=_literal, number=_number)
)
"""The rules of what speaks of one other position."""
