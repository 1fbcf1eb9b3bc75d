"""What the laws ask of weights, so that nothing rounds that a line does not tell of.

A form is the product of all weights on the way; how it rounds depends on these. So numbers are kept
as whole multiples of each other, steps have a height that is a power of two, keys are read as they
are, and only queries have a common factor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from transformist.arithmetic import is_power_of_two
from transformist.circuit import (
    CAUSAL,
    SEES_BOS,
    At,
    Circuit,
    Form,
    Head,
    Match,
    PositionFeature,
    StepFunction,
    Uniform,
    content,
    rows_under,
)
from transformist.laws import Grid
from transformist.model import Attention, FeedForward
from transformist.verify.certificate.refusals import uncertifiable

Pairs: TypeAlias = "list[tuple[Form, Form]]"
"""Queries and keys, coordinate by coordinate, as they are read."""


def require(truth: object, invariant: str, received: object, where: str) -> None:
    """Refuse weights of which the laws do not tell.

    Raises:
        Uncertifiable: if it is not true.

    """
    if not truth:
        raise uncertifiable(invariant, f"{received}", where)


def of_slot(form: Form, where: str) -> None:
    """A number alone is in its slot times 2ᵏ; a sum has whole factors, but for a power of two.

    So no multiple of it has factors that a format holds where it holds not these, and what is read
    of a slot says how often it has been rounded.
    """
    if not form.terms:
        return
    factors = [abs(factor) for _, factor in form.terms]
    whole = is_power_of_two(content(factors)) and max(factors) >= 1
    require(whole, "a slot holds numbers times whole numbers, or times 2ᵏ", form, where)


def of_copy(network: FeedForward, units: tuple[int, ...], where: str) -> None:
    """A slot is copied, or taken away, as it is, and nothing else is added where it goes."""
    column = network.W_2[:, units[0]]
    slots = np.flatnonzero(column)
    alone = all(set(np.flatnonzero(network.W_2[slot])) == set(units) for slot in slots)
    plain = all(abs(column[slot]) == 1 and not network.b_2[slot] for slot in slots)
    require(alone and plain, "a slot is copied as it is, and alone", slots, where)


def of_step(
    circuit: Circuit,
    step: StepFunction,
    height: Fraction,
    network: FeedForward,
    units: tuple[int, ...],
    where: str,
) -> None:
    """A step has its zone between the values; its two units are as large as what it is made of.

    Zone and height are powers of two, the height from half of the zone to 1. The two units follow
    each other, so that no large one meets another where all are added from left to right, and
    there is no bias where they go.
    """
    least = circuit.least_multiple(step.form)
    require(least and least >= step.zone, "a step has its zone between values", step, where)
    at_bos = circuit.span_at_bos(step.form)
    beside = at_bos.hi <= step.zone / 4 or at_bos.lo >= 3 * step.zone / 4 or at_bos.is_point
    known = beside or not circuit.bos or step.is_decided_at_bos(circuit)
    require(known, "a step has its zone between values at BOS, too", step, where)
    plain = is_power_of_two(step.zone) and is_power_of_two(height)
    between = step.zone / 2 <= height <= 1
    require(plain and between, "a step has a zone and a height 2ᵏ", (step.zone, height), where)
    follow = units[1] == units[0] + 1
    require(follow, "the two units of a step follow each other", units, where)
    slots = np.flatnonzero(network.W_2[:, units[0]])
    require(not network.b_2[slots].any(), "a step goes where no bias is added", slots, where)


def of_head(circuit: Circuit, head: Attention, kind: Head, pairs: Pairs, where: str) -> None:
    """Keys are read as they are, queries times what all are; nothing else has a part in scores."""
    require(kind.mask == head.mask, "a head has its mask", head.mask, where)
    wanted, asked = kind.scores, [(q, k) for q, k in pairs if q != Form() != k]
    require(len(asked) == len(wanted), "all that is scored is told", len(asked), where)
    few = len(pairs) <= 4 * len(asked) or not asked  # √d_key is not much above what it divides
    require(few, "d_key is at most four times the coordinates that count", len(pairs), where)
    known = [k for q, k in wanted if q.is_constant]
    for key in (k for q, k in asked if q.is_constant):
        require(key.terms, "keys are not constant", key, where)
        as_is = any(_is_scaled(circuit, key, each) for each in known)
        require(as_is, "keys are read as they are", key, where)
    keys = {k for q, k in asked if not q.is_constant}
    known_keys = {k for q, k in wanted if not q.is_constant}
    received = ", ".join(str(key) for key in keys - known_keys)
    require(keys == known_keys, "keys are read as they are", received, where)
    weights = [abs(x) for W in (head.W_Q, head.b_Q, head.W_K, head.b_K) for x in np.ravel(W) if x]
    least = min(weights, default=1)
    require(least >= Fraction(1, 64), "weights of scores are at least 1/64", least, where)
    KINDS[type(kind)](circuit, head, kind, where)


def _is_scaled(circuit: Circuit, key: Form, wanted: Form) -> bool:
    """Whether a key is one that is wanted, but for a power of two, or for N of a share of N."""
    factor = wanted.factors.get(key.terms[0][0], Fraction(0)) / key.terms[0][1]
    plain = 2 * factor >= 1 and is_power_of_two(factor)
    return key * factor == wanted and (plain or factor == circuit.longest)


def _mean(_circuit: Circuit, head: Attention, _kind: Uniform, where: str) -> None:
    require(not head.weighting.takes_one, "a mean is of all that are seen", head.weighting, where)


def _match(circuit: Circuit, head: Attention, kind: Match, where: str) -> None:
    parts = 2 if kind.choose in ("mean", "any") else 1  # by halves, where all that match are meant
    queries = tuple(query * parts for query in kind.queries)
    for form in (*kind.keys, *queries):
        require(circuit.is_whole(form), "keys and queries are whole numbers", form, where)
    seen = kind.keys if circuit.bos and head.mask != "strict-past" else ()
    asking = queries if circuit.bos and head.mask not in CAUSAL else ()
    for form in (*seen, *asking):
        whole = circuit.grid_at_bos(form) == Grid(1)
        require(whole, "keys and queries are whole numbers at BOS, too", form, where)
    for key in kind.keys:
        require(key.terms, "keys are not constant", key, where)
    if kind.place is None:
        require(kind.scale == 1, "matches alone are in units of one", kind.scale, where)
        hard = kind.choose in ("leftmost", "rightmost")
        means = ("softmax", "average-hard")
        fits = head.weighting in ((f"{kind.choose}-hard",) if hard else means)
        require(fits, "the weighting chooses among matches", head.weighting, where)
        return
    ((number, factor),) = kind.place.terms
    units: Mapping[Any, Any] = {PositionFeature("i"): 1, PositionFeature("i/n"): circuit.longest}
    placed = factor == units.get(circuit.atoms[number]) and kind.choose in ("leftmost", "rightmost")
    require(placed, "the place is the position, or N times its share", kind.place, where)
    enough = not kind.keys or kind.scale >= circuit.longest + _places_between(circuit, kind)
    received = f"{kind.scale} beside N = {circuit.longest}"
    require(enough, "matches outweigh the place, so that no two scores are equal", received, where)


def _places_between(circuit: Circuit, head: Match) -> int:
    """By how much more than N a match has to count: 0 where the largest place differs by N − 1.

    Symbols have places from 1 to N, and BOS, where it is seen, has 0; it counts where it may match,
    or is not chosen for its place.
    """
    if not circuit.bos or head.mask == "strict-past":
        return 0
    return int(head.choose != "rightmost" or not head.is_beneath(circuit))


def _at(circuit: Circuit, _head: Attention, kind: At, where: str) -> None:
    for form, name in ((kind.place, "i"), (kind.square, "i^2")):
        is_it = form == Form.atom(circuit.number(PositionFeature(name)))
        require(is_it, "keys of a lookup are a place and its square", form, where)
    counts = frozenset[str]()
    if kind.unit != Form.of(1):
        atom: Any = circuit.atoms[kind.unit.atoms[0]]
        one = kind.unit == Form.atom(kind.unit.atoms[0]) and isinstance(
            getattr(atom, "head", None), Uniform
        )
        one = one and circuit.is_bos(atom.value) and atom.head.mask in SEES_BOS
        require(one, "the unit is 1 or 1/D", kind.unit, where)
        counts = frozenset({rows_under(atom.head.mask)})
    whole = circuit.grid(kind.index) == Grid(1, counts)
    require(whole, "what is looked up is a whole number, in its unit", kind.index, where)
    whole = not circuit.bos or kind.mask in CAUSAL or kind.is_whole_at_bos(circuit)
    require(whole, "what is looked up is a whole number at BOS, too", kind.index, where)


KINDS: Mapping[type[Any], Callable[[Circuit, Attention, Any, str], None]] = {
    Uniform: _mean,
    Match: _match,
    At: _at,
}
"""What is asked of each kind of head."""


def of_values(circuit: Circuit, kind: Head, values: Collection[Form], where: str) -> None:
    """What is fetched where BOS is seen is known there; all that match alike have one value."""
    if circuit.bos and kind.mask in SEES_BOS:
        for value in values:
            known = circuit.span_at_bos(value).is_point
            require(known, "what is read at BOS, which is seen, is known", value, where)
    if isinstance(kind, Match) and kind.choose == "any":
        require(are_alike(kind, values), "all that match have the same value", values, where)
        require(circuit.weighting == "average-hard", "ties are meant", circuit.weighting, where)


def are_alike(head: Match, values: Iterable[Form]) -> bool:
    """Whether all positions of the largest score have the same values: multiples of its one key."""
    if len(head.keys) != 1 or not head.queries[0].is_constant or not head.keys[0].terms:
        return False
    (key,) = head.keys
    return all(value.direction == key.direction for value in values if value.terms)
