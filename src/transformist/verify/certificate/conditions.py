"""Conditions on weights under which every rounding appears in the lines of a certificate.

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
    ALWAYS_THERE,
    CAUSAL,
    SEES_BOS,
    At,
    AtCoded,
    Circuit,
    Embedded,
    Form,
    Head,
    Match,
    PositionCode,
    PositionFeature,
    StepFunction,
    Uniform,
    content,
    rows_under,
)
from transformist.laws import Grid
from transformist.model import Attention, FeedForward, Mask
from transformist.position_features import WAVELENGTHS
from transformist.verify.certificate.refusals import uncertifiable

Pairs: TypeAlias = "list[tuple[Form, Form]]"
"""Queries and keys, coordinate by coordinate."""


def require(truth: object, invariant: str, received: object, where: str) -> None:
    """Refuse weights to which the laws do not apply.

    Raises:
        Uncertifiable: if it is not true.

    """
    if not truth:
        raise uncertifiable(invariant, f"{received}", where)


def of_slot(form: Form, where: str) -> None:
    """Require a power of two before a number alone in a slot, and whole factors in a sum, times 2ᵏ.

    So no multiple of it has factors that a format holds where it holds not these, and what is read
    of a slot says how often it has been rounded.
    """
    if not form.terms:
        return
    factors = [abs(factor) for _, factor in form.terms]
    whole = is_power_of_two(content(factors)) and max(factors) >= 1
    require(whole, "a slot must hold numbers times whole numbers, or times 2ᵏ", form, where)


def of_copy(network: FeedForward, units: tuple[int, ...], where: str) -> None:
    """Require that a slot is copied, or subtracted, with weight 1, and alone where it goes."""
    column = network.W_2[:, units[0]]
    slots = np.flatnonzero(column)
    alone = all(set(np.flatnonzero(network.W_2[slot])) == set(units) for slot in slots)
    plain = all(abs(column[slot]) == 1 and not network.b_2[slot] for slot in slots)
    require(alone and plain, "a slot must be copied with weight 1, and alone", slots, where)


def of_step(
    circuit: Circuit,
    step: StepFunction,
    height: Fraction,
    network: FeedForward,
    units: tuple[int, ...],
    where: str,
) -> None:
    """Require that the zone of a step lies between the values, and that its units do not round.

    Zone and height are powers of two, the height from half of the zone to 1. The two units follow
    each other, so that no large one meets another where all are added from left to right, and
    there is no bias where they go.
    """
    least = circuit.least_multiple(step.form)
    require(least and least >= step.zone, "the zone of a step must lie between values", step, where)
    at_bos = circuit.span_at_bos(step.form)
    beside = at_bos.hi <= step.zone / 4 or at_bos.lo >= 3 * step.zone / 4 or at_bos.is_point
    known = beside or not circuit.bos or step.is_decided_at_bos(circuit)
    require(known, "the zone of a step must lie between values at BOS, too", step, where)
    plain = is_power_of_two(step.zone) and is_power_of_two(height)
    between = step.zone / 2 <= height <= 1
    require(
        plain and between,
        "the zone and the height of a step must be powers of two",
        (step.zone, height),
        where,
    )
    follow = units[1] == units[0] + 1
    require(follow, "the two units of a step must follow each other", units, where)
    slots = np.flatnonzero(network.W_2[:, units[0]])
    require(not network.b_2[slots].any(), "no bias must be added where a step goes", slots, where)


def of_head(circuit: Circuit, head: Attention, kind: Head, pairs: Pairs, where: str) -> None:
    """Require keys with weight 1, queries with one common factor, and nothing else."""
    require(kind.mask == head.mask, "a head must have the mask of its kind", head.mask, where)
    wanted, asked = kind.scores, [(q, k) for q, k in pairs if q != Form() != k]
    require(
        len(asked) == len(wanted),
        "a score must have exactly the products of its kind",
        len(asked),
        where,
    )
    few = len(pairs) <= 4 * len(asked) or not asked  # √d_key is not much above what it divides
    require(few, "d_key must be at most four times the coordinates that count", len(pairs), where)
    known = [k for q, k in wanted if q.is_constant]
    for key in (k for q, k in asked if q.is_constant):
        require(key.terms or key in known, "keys must not be constant", key, where)
        as_is = not key.terms or any(_is_scaled(circuit, key, each) for each in known)
        require(as_is, "keys must be read with weight 1", key, where)
    keys = {k for q, k in asked if not q.is_constant}
    known_keys = {k for q, k in wanted if not q.is_constant}
    received = ", ".join(str(key) for key in keys - known_keys)
    require(keys == known_keys, "keys must be read with weight 1", received, where)
    matrices = (head.W_Q, head.b_Q, head.W_K, head.b_K)
    least = min((min(abs(W[np.nonzero(W)]), default=1) for W in matrices), default=1)
    require(least >= Fraction(1, 64), "weights of scores must be at least 1/64", least, where)
    KINDS[type(kind)](circuit, head, kind, where)


def _is_scaled(circuit: Circuit, key: Form, wanted: Form) -> bool:
    """True if a key is the wanted one times a power of two, or times N for a share of N."""
    factor = wanted.factors.get(key.terms[0][0], Fraction(0)) / key.terms[0][1]
    plain = 2 * factor >= 1 and is_power_of_two(factor)
    return key * factor == wanted and (plain or factor == circuit.longest)


def _mean(_circuit: Circuit, head: Attention, _kind: Uniform, where: str) -> None:
    require(
        not head.weighting.takes_one, "a mean must be of all admissible rows", head.weighting, where
    )


def _match(circuit: Circuit, head: Attention, kind: Match, where: str) -> None:
    parts = 2 if kind.choose in ("mean", "any") else 1  # by halves, where all that match are meant
    queries = tuple(query * parts for query in kind.queries)
    for form in (*kind.keys, *queries):
        require(circuit.is_whole(form), "keys and queries must be whole numbers", form, where)
    seen = kind.keys if circuit.bos and head.mask != "strict-past" else ()
    asking = queries if circuit.bos and head.mask not in CAUSAL else ()
    for form in (*seen, *asking):
        whole = circuit.grid_at_bos(form) == Grid(1)
        require(whole, "keys and queries must be whole numbers at BOS, too", form, where)
    for key in kind.keys:
        require(key.terms, "keys must not be constant", key, where)
    if kind.place is None:
        require(kind.scale == 1, "matches without a position must have scale 1", kind.scale, where)
        hard = kind.choose in ("leftmost", "rightmost")
        means = ("softmax", "average-hard")
        fits = head.weighting in ((f"{kind.choose}-hard",) if hard else means)
        require(fits, "the weighting must choose among matches", head.weighting, where)
        return
    ((number, factor),) = kind.place.terms
    units: Mapping[Any, Any] = {PositionFeature("i"): 1, PositionFeature("i/n"): circuit.longest}
    placed = factor == units.get(circuit.atoms[number]) and kind.choose in ("leftmost", "rightmost")
    require(placed, "the place must be the position, or N times its share", kind.place, where)
    # What does not match is at least `scale` below a match, and its place makes up for at most N −
    # 1, or N where BOS at place 0 competes. From a scale of N, or N + 1, on at least 1 is left.
    enough = not kind.keys or kind.scale >= circuit.longest + _places_between(circuit, kind)
    received = f"{kind.scale} beside N = {circuit.longest}"
    require(
        enough,
        "matches must outweigh the position, so that no two scores are equal",
        received,
        where,
    )


def _places_between(circuit: Circuit, head: Match) -> int:
    """Excess over N of the weight that a match needs: 0 where positions differ by at most N − 1.

    Symbols have places from 1 to N, and BOS, where it is seen, has 0; it counts where it may match,
    or is not chosen for its place.
    """
    if not circuit.bos or head.mask == "strict-past":
        return 0
    return int(head.choose != "rightmost" or not head.is_beneath(circuit))


def _at(circuit: Circuit, _head: Attention, kind: At, where: str) -> None:
    for form, name in ((kind.place, "i"), (kind.square, "i^2")):
        # (2 q j − j²) w is largest at j = q only if the two keys are j and j² of one and the same
        # j.
        is_it = form == Form.atom(circuit.number(PositionFeature(name)))
        require(is_it, "keys of a lookup must be a position and its square", form, where)
    counts = frozenset[str]()
    if kind.unit != Form.of(1):
        atom: Any = circuit.atoms[kind.unit.atoms[0]]
        one = kind.unit == Form.atom(kind.unit.atoms[0]) and isinstance(
            getattr(atom, "head", None), Uniform
        )
        one = one and circuit.is_bos(atom.value) and atom.head.mask in SEES_BOS
        require(one, "the scale of a lookup must be 1 or 1/D", kind.unit, where)
        counts = frozenset({rows_under(atom.head.mask)})
    whole = circuit.grid(kind.index) == Grid(1, counts)
    require(whole, "a lookup's index must be a whole number times its scale", kind.index, where)
    whole = not circuit.bos or kind.mask in CAUSAL or kind.is_whole_at_bos(circuit)
    require(whole, "a lookup's index must be a whole number at BOS, too", kind.index, where)


def waves_of(circuit: Circuit) -> Mapping[int, int]:
    """The wavelength of each sine and cosine among the atoms."""
    numbers = ((circuit.find(PositionFeature(name)), L) for name, L in WAVELENGTHS.items())
    return {number: wavelength for number, wavelength in numbers if number is not None}


def longest_wave(circuit: Circuit, keys: Iterable[Form]) -> int:
    """The longest wavelength in keys."""
    waves = waves_of(circuit)
    return max((waves.get(atom, 2) for key in keys for atom in key.atoms), default=2)


def code_of(
    circuit: Circuit, keys: Iterable[Form], index: tuple[int, int], mask: str
) -> AtCoded | None:
    """Return the head that finds a position by the code with the wavelengths of keys, if it can be.

    Every sine and cosine that it reads must be an atom, and BOS too where it has a key or query.
    """
    if not circuit.bos:
        return None
    reads_bos = index not in ALWAYS_THERE or (mask not in CAUSAL and index != (1, 0))
    bos = circuit.find(Embedded((Fraction(0),) * len(circuit.alphabet) + (Fraction(1),)))
    if reads_bos and bos is None:
        return None
    missing = list[str]()

    def feature(name: str) -> Form:
        number = circuit.find(PositionFeature(name))
        if number is None:
            missing.append(name)
        return Form() if number is None else Form.atom(number)

    # The longest wavelength 2^F that is read belongs to a code of the positions 0 to 2^F − 1.
    code = PositionCode(longest_wave(circuit, keys) - 1)
    found = AtCoded.by(code, index, mask, feature, Form() if bos is None else Form.atom(bos))
    return None if missing else found


def _at_coded(circuit: Circuit, _head: Attention, kind: AtCoded, where: str) -> None:
    is_code = kind == code_of(circuit, kind.keys, (kind.slope, kind.offset), kind.mask)
    require(is_code, "queries and keys must be codes of positions", kind.keys, where)
    # Then every row has a target: BOS, i − 1 or i, where these are the index; elsewhere a symbol
    # with the code of the index, of which there is one at most, or BOS.
    fits = kind.mask in (Mask.NONE, Mask.FUTURE)
    require(fits, "a head of codes must have mask none or future", kind.mask, where)
    longest = longest_wave(circuit, kind.keys) - 1
    require(circuit.longest <= longest, "a code must tell all positions apart", longest, where)


KINDS: Mapping[type[Any], Callable[[Circuit, Attention, Any, str], None]] = {
    Uniform: _mean,
    Match: _match,
    At: _at,
    AtCoded: _at_coded,
}
"""Conditions on each kind of head."""


def of_values(circuit: Circuit, kind: Head, values: Collection[Form], where: str) -> None:
    """Require a known value at BOS where BOS is seen, and one value at rows that match alike."""
    if circuit.bos and kind.mask in SEES_BOS:
        for value in values:
            # The grid of what is fetched holds BOS too, and that needs its value.
            known = circuit.span_at_bos(value).is_point
            require(known, "a value at BOS that a head may fetch must be known", value, where)
    if isinstance(kind, Match) and kind.choose == "any":
        require(
            are_alike(kind, values), "all rows that match must have the same value", values, where
        )
        require(circuit.weighting == "average-hard", "ties are meant", circuit.weighting, where)


def are_alike(head: Match, values: Iterable[Form]) -> bool:
    """True if all positions of the largest score have the same values: multiples of its one key."""
    # Rows with the largest score have the same key if there is one key and the query is a constant
    # other than 0. A value that is a multiple of this key is then the same at all of them.
    if len(head.keys) != 1 or not head.queries[0].is_constant or not head.keys[0].terms:
        return False
    (key,) = head.keys
    return all(value.direction == key.direction for value in values if value.terms)
