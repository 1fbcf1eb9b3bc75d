"""From weights back to a circuit: what each slot holds, in terms of what a transformer computes.

Nothing is taken from where the weights come from. Every slot is an affine form of atoms; a head is
read as a mean, a match or a lookup from its scores, two hidden units that saturate as a step.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from transformist.compiler.circuit import Circuit, Embedded, Feature, Fetched, Relu, Step
from transformist.compiler.forms import Form, total
from transformist.compiler.heads import BEHIND, At, Head, Match, Uniform, rows_under
from transformist.errors import InvalidValue
from transformist.laws import Grid
from transformist.model import (
    BOS,
    Attention,
    FeedForward,
    PositionFunctions,
    Transformer,
    rationals,
)


class Unlawful(InvalidValue):
    """A model of which too little is known for a certificate."""


def unlawful(invariant: str, received: str, where: str) -> Unlawful:
    """The refusal."""
    return Unlawful(
        invariant,
        received=received,
        where=where,
        remedy="certify a compiled program, or a recipe built of means, matches and steps",
    )


@dataclass(eq=False)
class Lifted:
    """A circuit that was read off weights.

    Attributes:
        circuit: the atoms.
        sharpness: 1/τ of each head.
        state: what each slot holds at the end.

    """

    circuit: Circuit
    sharpness: dict[Head, Fraction] = field(default_factory=dict)
    state: list[Form] = field(default_factory=list)


def lift(model: Transformer, max_length: int) -> Lifted:
    """Read the circuit of a transformer off its weights.

    Args:
        model: a transformer of ReLU networks without norms, its inputs behind BOS or nothing.
        max_length: N, which what is known of the numbers depends on.

    Raises:
        Unlawful: where a part is not what a circuit is made of.

    """
    embedding = model.embedding
    if embedding.back or embedding.front not in ((), (BOS,)) or model.final_norm is not None:
        raise unlawful(
            "inputs stand behind BOS or nothing, and there are no norms",
            f"special symbols {(*embedding.front, *embedding.back)}",
            "embedding",
        )
    heads = [head for layer in model.layers for head in layer.heads]
    scored = [head.weighting for head in heads if _pairs_matter(head)]
    weightings = set(scored) or {head.weighting for head in heads} or {"softmax"}
    if len(weightings) > 1:
        raise unlawful(
            "heads with scores have one weighting", " and ".join(sorted(weightings)), "heads"
        )
    circuit = Circuit(model.alphabet, bool(embedding.front), max_length, weightings.pop())
    lifted = Lifted(circuit)
    lifted.state = _embedded(model, circuit)
    for number, layer in enumerate(model.layers):
        if any(layer.pre_norms) or any(layer.post_norms):
            raise unlawful("a layer has no norms", "a norm", f"layer {number}")
        if layer.heads:
            added = [
                _head(lifted, model, head, f"layer {number} head {k}")
                for k, head in enumerate(layer.heads)
            ]
            _add(lifted, model, [total(forms) for forms in zip(*added, strict=True)])
        if layer.feed_forward is not None:
            network = layer.feed_forward
            emptied = {slot for slot in range(model.width) if _empties(network, slot)}
            _add(lifted, model, _network(lifted, network, f"layer {number}"), emptied)
    return lifted


def _empties(network: FeedForward, slot: int) -> bool:
    """Whether all that is added to a slot is −ReLU(x) + ReLU(−x), x what it holds: exactly −x."""
    units = np.flatnonzero(network.W_2[slot] != 0)
    reads = {(int(network.W_1[j, slot]), int(network.W_2[slot, j])) for j in units}
    alone = all(np.count_nonzero(network.W_1[j]) == 1 for j in units)
    exact = all(abs(network.W_1[j, slot]) == abs(network.W_2[slot, j]) == 1 for j in units)
    none = not any(network.b_1[j] for j in units) and not network.b_2[slot]
    return len(units) == 2 and alone and exact and none and reads == {(1, -1), (-1, 1)}


def _add(
    lifted: Lifted, model: Transformer, added: list[Form], emptied: Collection[int] = ()
) -> None:
    """The residual connection: a slot is written when it is empty, or emptied, which is exact."""
    for slot, (old, new) in enumerate(zip(lifted.state, added, strict=True)):
        taken_away = slot in emptied and new == -old
        if old != Form() and new != Form() and not taken_away:
            raise unlawful(
                "a slot holds one number until it is emptied",
                f"a number that is added to {model.stream.slots[slot]}, which holds another",
                "residual connection",
            )
    lifted.state = [old + new for old, new in zip(lifted.state, added, strict=True)]


def _pairs_matter(head: Attention) -> bool:
    """Whether its scores may differ."""
    reads_query = np.any(head.W_Q != 0, axis=1) | (head.b_Q != 0)
    return bool(np.any(reads_query & np.any(head.W_K != 0, axis=1)))


def _embedded(model: Transformer, circuit: Circuit) -> list[Form]:
    embedding = model.embedding
    order = [*model.alphabet, *embedding.front]
    rows = [embedding.symbols.index(symbol) for symbol in order]
    vectors = rationals(embedding.vectors)[rows]
    positions = embedding.positions
    if not isinstance(positions, PositionFunctions | None):
        raise unlawful(
            "positions are functions by their names", type(positions).__name__, "embedding"
        )
    names = positions.names if positions is not None else (None,) * model.width
    forms = []
    for slot, name in enumerate(names):
        values = tuple(Fraction(value) for value in vectors[:, slot])
        form = Form.of(values[0])
        if len(set(values)) > 1:
            form = circuit.add(Embedded(values), model.stream.slots[slot])
        forms.append(form if name is None else form + circuit.add(Feature(name), name))
    return forms


def read(matrix: Any, shift: Any, state: list[Form]) -> list[Form]:
    """The rows of W z + b as forms, in which nothing cancels.

    Raises:
        Unlawful: where slots that hold the same atom take each other away.

    """
    weights, shifts = rationals(matrix), rationals(shift)
    forms = []
    for row, constant in zip(weights, shifts, strict=True):
        parts = [state[slot] * row[slot] for slot in np.flatnonzero(row != 0)]
        form = total(parts) + Fraction(constant)
        for atom in {atom for part in parts for atom in part.atoms}:
            apart = sum(abs(part.factors.get(atom, Fraction(0))) for part in parts)
            if apart != abs(form.factors.get(atom, Fraction(0))):
                raise unlawful(
                    "what is read of two slots does not cancel", f"{form}", "a row of weights"
                )
        forms.append(form)
    return forms


# Heads


def _head(lifted: Lifted, model: Transformer, head: Attention, where: str) -> list[Form]:
    """What a head adds to each slot."""
    state = lifted.state
    kind, sharpness = _kind(lifted, head, where)
    values = read(head.W_V, head.b_V, state)
    if lifted.circuit.bos and head.mask in BEHIND:
        keys = kind.keys if isinstance(kind, Match) else ()
        for form in (*values, *keys):
            at_bos = lifted.circuit.span_at_bos(form)
            if not at_bos.is_point or (form in keys and Fraction(at_bos.lo).denominator > 1):
                raise unlawful("what is read at BOS, which is seen, is known", f"{form}", where)
    is_hard = lifted.circuit.weighting != "softmax"
    if is_hard and isinstance(kind, Match) and kind.choose == "mean" and _are_alike(kind, values):
        kind = replace(kind, choose="any")
    lifted.sharpness[kind] = min(sharpness, lifted.sharpness.get(kind, sharpness))
    output = np.eye(len(values)) if head.W_O is None else rationals(head.W_O)
    added = []
    for slot, (row, constant) in enumerate(zip(output, rationals(head.b_O), strict=True)):
        name = model.stream.slots[slot]
        parts = [
            lifted.circuit.add(Fetched(kind, values[m]), f"{where}: {name}") * Fraction(row[m])
            for m in np.flatnonzero(row != 0)
        ]
        added.append(total(parts) + Fraction(constant))
    return added


def _are_alike(head: Match, values: list[Form]) -> bool:
    """Whether all positions of the largest score have the same values: multiples of its one key."""
    if len(head.keys) != 1 or not head.queries[0].is_constant or not head.keys[0].terms:
        return False
    (key,) = head.keys
    factors = [value.terms[0][1] / key.terms[0][1] for value in values if value.terms]
    rest = [value for value in values if value.terms]
    return all(
        (value - key * factor).is_constant for value, factor in zip(rest, factors, strict=True)
    )


def _kind(lifted: Lifted, head: Attention, where: str) -> tuple[Head, Fraction]:
    """What a head is, and its 1/τ, from the dot products of its queries and keys."""
    queries = read(head.W_Q, head.b_Q, lifted.state)
    keys = read(head.W_K, head.b_K, lifted.state)
    pairs = [(q, k) for q, k in zip(queries, keys, strict=True) if not k.is_constant]
    by_key = total(key * query.constant for query, key in pairs if query.is_constant)
    asked = [(query, key) for query, key in pairs if not query.is_constant and query != Form()]
    if by_key.is_constant and not asked:
        if head.weighting in ("rightmost-hard", "leftmost-hard"):
            choose = head.weighting.removesuffix("-hard")
            return Match((), (), choose, head.mask), Fraction(1)
        return Uniform(head.mask), Fraction(1)
    root = math.isqrt(head.W_Q.shape[0])
    if root**2 != head.W_Q.shape[0] or root & (root - 1):
        raise unlawful("√d_key is a power of two", f"d_key = {head.W_Q.shape[0]}", where)
    circuit = lifted.circuit
    square = _feature(circuit, "i^2")
    if square is not None and any(square in key.factors for _, key in (*asked, (None, by_key))):
        return _lookup(circuit, head, asked, by_key, square, root, where)
    return _match(circuit, head, asked, by_key, root, where)


def _feature(circuit: Circuit, name: str) -> int | None:
    """The number of a position function, where it is there."""
    for number, atom in enumerate(circuit.atoms):
        if atom == Feature(name):
            return number
    return None


def _lookup(
    circuit: Circuit,
    head: Attention,
    asked: list[tuple[Form, Form]],
    by_key: Form,
    square: int,
    root: int,
    where: str,
) -> tuple[Head, Fraction]:
    """Scores a (2 q j − w j²): of the place j a form of the query, and of its square another."""
    place = _feature(circuit, "i")
    known = {place, square}
    of_place = of_square = Form()
    for query, key in [*asked, (Form.of(1), by_key)]:
        if place is None or not set(key.atoms) <= known:
            raise unlawful("keys of a lookup are a place and its square", f"{key}", where)
        of_place += query * key.factors.get(place, 0)
        of_square -= query * key.factors.get(square, 0)
    unit, scale = Form.of(1), of_square.constant
    if of_square.terms:
        unit, scale = of_square.normalized()
    if scale <= 0 or of_square != unit * scale or place is None:
        raise unlawful("the square of a place lowers a score", f"{of_square}", where)
    index = of_place * (Fraction(1, 2) / scale)
    at = At(index, Form.atom(place), Form.atom(square), head.mask, unit)
    whole = circuit.is_whole(index)
    if unit.terms:
        counts, grid = one_over(circuit, unit), circuit.grid(index)
        whole = counts is not None and grid == Grid(1, counts)
    if not whole:
        raise unlawful("what is looked up is a whole number", f"{index}", where)
    return at, scale / root


def _match(
    circuit: Circuit,
    head: Attention,
    asked: list[tuple[Form, Form]],
    by_key: Form,
    root: int,
    where: str,
) -> tuple[Head, Fraction]:
    """Scores c (D Σ k q ± j), k and q whole numbers, with D above N where the place counts."""
    place, position = None, Fraction(0)
    for name in ("i", "i/n"):
        number = _feature(circuit, name)
        if number is not None and number in by_key.factors:
            place, position = Form.atom(number), by_key.factors[number]
            by_key -= place * position
            break
    keys = [_content(circuit, key, where) for _, key in asked]
    queries = [_content(circuit, query, where) for query, _ in asked]
    rest = _content(circuit, by_key, where) if by_key.terms else (Form(), Fraction(0))
    products = [k * q for (_, k), (_, q) in zip(keys, queries, strict=True)]
    gap = _common([*products, rest[1]])
    c = abs(position) or gap
    if place is not None and circuit.atoms[place.atoms[0]] == Feature("i/n"):
        place, c = place * circuit.longest, c / Fraction(circuit.longest)
    scale = gap / c if gap else Fraction(1)
    if place is not None and gap and scale <= circuit.longest:
        raise unlawful(
            "matches outweigh the place, so that no two scores are equal",
            f"{scale} beside N = {circuit.longest}",
            where,
        )
    pairs = [
        (key, query * (product / gap))
        for (key, _), (query, _), product in zip(keys, queries, products, strict=True)
    ]
    if rest[1]:
        pairs.append((rest[0], Form.of(rest[1] / gap)))
    choose = "mean"
    if place is not None:
        choose = "rightmost" if position > 0 else "leftmost"
    elif head.weighting in ("rightmost-hard", "leftmost-hard"):
        choose = head.weighting.removesuffix("-hard")
    matched = Match(
        tuple(key for key, _ in pairs), tuple(q for _, q in pairs), choose, head.mask, place, scale
    )
    return matched, c / root


def _content(circuit: Circuit, form: Form, where: str) -> tuple[Form, Fraction]:
    """A form of whole numbers and the number that it was divided by."""
    content = _common([*form.factors.values(), form.constant])
    whole = form * (1 / content)
    if not circuit.is_whole(whole):
        raise unlawful("keys and queries are whole numbers, times a factor", f"{form}", where)
    return whole, content


def _common(values: list[Fraction]) -> Fraction:
    """The greatest number that all of these are whole multiples of; 0 of none but 0."""
    found = Fraction(0)
    for value in values:
        found = Fraction(
            math.gcd(found.numerator * value.denominator, abs(value.numerator) * found.denominator),
            found.denominator * value.denominator,
        )
    return found


# Networks


def _network(lifted: Lifted, network: FeedForward, where: str) -> list[Form]:
    """What a network adds to each slot: steps, where two of its units saturate, and ReLUs."""
    if network.activation != "relu":
        raise unlawful("networks are of ReLUs", network.activation, where)
    inputs = read(network.W_1, network.b_1, lifted.state)
    writes = rationals(network.W_2).T
    added = [Form.of(value) for value in rationals(network.b_2)]
    used: set[int] = set()
    for j in range(len(inputs)):
        if j in used:
            continue
        form, unit = _unit(lifted, network, inputs, writes, j, used, where)
        for slot in np.flatnonzero(writes[j] != 0):
            added[slot] += form * (unit * Fraction(writes[j][slot]))
    return added


def _unit(
    lifted: Lifted,
    network: FeedForward,
    inputs: list[Form],
    writes: Any,
    j: int,
    used: set[int],
    where: str,
) -> tuple[Form, Fraction]:
    """A hidden unit, with another that takes it to its end, or that is its other half of a slot."""
    circuit, name = lifted.circuit, f"{where} unit {j}"
    for k in range(j + 1, len(inputs)):
        if k in used or not np.array_equal(writes[j], -writes[k]):
            continue
        row, other = network.W_1[j], network.W_1[k]
        is_slot = (
            np.count_nonzero(row) == 1 and abs(row).max() == 1 and not network.b_1[[j, k]].any()
        )
        if is_slot and np.array_equal(row, -other):
            used.add(k)
            return inputs[j], Fraction(1)  # ReLU(x) − ReLU(−x) = x
        if np.array_equal(row, other) and inputs[k].constant != inputs[j].constant:
            used.add(k)
            return _step(circuit, inputs[j], inputs[k], name)
    return circuit.add(Relu(inputs[j]), name), Fraction(1)


def _step(circuit: Circuit, first: Form, second: Form, name: str) -> tuple[Form, Fraction]:
    """ReLU(x − a) − ReLU(x − b): from a to b it goes from 0 to b − a."""
    sign = 1 if first.constant > second.constant else -1
    lower, upper = (first, second) if sign > 0 else (second, first)
    height = lower.constant - upper.constant
    middle, zone = lower + height / 2, 2 * height  # zone/4 is where it begins
    content = _common([*middle.factors.values(), middle.constant]) or Fraction(1)
    least = separation(circuit, middle)
    if least is not None and least >= zone:
        return circuit.add(Step(middle * (1 / content), zone / content), name), height * sign
    both = circuit.add(Relu(lower), name) - circuit.add(Relu(upper), f"{name}, the other")
    return both, Fraction(sign)


def one_over(circuit: Circuit, form: Form) -> frozenset[str] | None:
    """The name of D, where a form is 1/D: the mean of what is 1 at BOS alone."""
    if form.constant or len(form.terms) != 1 or form.terms[0][1] != 1:
        return None
    atom = circuit.atoms[form.terms[0][0]]
    is_mean = isinstance(atom, Fetched) and isinstance(atom.head, Uniform)
    if not is_mean or not circuit.is_bos(atom.value):  # type: ignore[union-attr]
        return None
    return frozenset({rows_under(atom.head.mask)})  # type: ignore[union-attr]


def separation(circuit: Circuit, form: Form) -> Fraction | None:
    """The least magnitude of a form but 0: that of what it is a multiple of."""
    content = _common([*form.factors.values(), form.constant])
    if not content:
        return None
    least = circuit.separation(form * (1 / content))
    return None if least is None else least * content
