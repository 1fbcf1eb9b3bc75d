"""Last pass, slots to weights: the embedding, the heads, the networks and the read-out."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from transformist.assembly import units
from transformist.circuit import Fetched, Form, Head, PositionFeature
from transformist.compiler.allocate import Allocation, Placed
from transformist.compiler.answer_kinds import Answer
from transformist.compiler.source_map import SourceMap
from transformist.model import (
    BOS,
    NOTHING,
    Attention,
    Embedding,
    FeedForward,
    Layer,
    Span,
    Stream,
    Transformer,
)

LOG = logging.getLogger(__name__)

Values: TypeAlias = "list[tuple[Placed, list[Form]]]"
"""Numbers that are kept, each with the forms that a head fetches for it; it is their sum."""


@dataclass(frozen=True)
class Emission:
    """Sources of the weights.

    Attributes:
        allocation: where every number is.
        sharpness: 1/τ of each head.
        stream: the names of the slots.

    """

    allocation: Allocation
    sharpness: Mapping[Head, Fraction]
    stream: Stream

    def form(self, form: Form, time: int) -> tuple[dict[str, Fraction], Fraction]:
        """A form with the slots of the stream, and its constant."""
        key = form.linear, time
        found = self._named.get(key)
        if found is None:
            slots = self.stream.slots
            factors = self.allocation.reading(form, time)
            found = self._named[key] = {slots[slot]: each for slot, each in factors.items()}
        return found, form.constant

    @cached_property
    def _named(self) -> dict[tuple[Form, int], dict[str, Fraction]]:
        """Slots and factors of each form at a time; forms that differ by a constant share them."""
        return {}

    def sum(self, forms: list[Form], time: int) -> tuple[dict[str, Fraction], Fraction]:
        """The sum of forms that are kept each by itself."""
        factors: dict[str, Fraction] = {}
        shift = Fraction(0)
        for part, constant in (self.form(form, time) for form in forms):
            shift += constant
            for slot, factor in part.items():
                factors[slot] = factors.get(slot, Fraction(0)) + factor
        return factors, shift

    def slot(self, kept: Placed) -> str:
        """The name of the slot where a number is kept."""
        return self.stream.slots[kept.slot]


def emit(
    allocation: Allocation,
    sharpness: Mapping[Head, Fraction],
    answer: Answer,
    source_map: SourceMap,
) -> Transformer:
    """The weights.

    Args:
        allocation: where every number is kept, and when.
        sharpness: 1/τ of each head.
        answer: what is read out.
        source_map: what the atoms serve.

    """
    emission = Emission(allocation, sharpness, _stream(allocation, source_map))
    schedule = allocation.schedule
    circuit = schedule.circuit
    return Transformer(
        stream=emission.stream,
        embedding=_embedding(emission),
        layers=tuple(_layer(emission, number) for number in range(schedule.layers)),
        read_out=answer.read_out(lambda forms: _rows(emission, forms)),
        max_length=circuit.max_length,
    )


def _layer(emission: Emission, number: int) -> Layer:
    LOG.debug("weights of layer %d of %d", number, emission.allocation.schedule.layers)
    return Layer(_heads(emission, 2 * number), _network(emission, 2 * number + 1))


def _stream(allocation: Allocation, source_map: SourceMap) -> Stream:
    """A slot by the name of the first number that it holds; the spans tell the others."""
    schedule = allocation.schedule
    steps = _steps(allocation)
    names: dict[str, int] = {}
    slots = [""] * allocation.width
    spans = []
    for kept in allocation.kept:
        name = _unique(_name(allocation, kept, source_map), names)
        # A slot that is used again keeps its first name; its spans have the names of all numbers.
        slots[kept.slot] = slots[kept.slot] or name
        end = schedule.end if kept.emptied is None else kept.emptied
        source = "; ".join(source_map.written(kept.form))
        spans.append(Span(name, kept.slot, steps[kept.born], steps[end - 1], source))
    used = allocation.width - allocation.spare
    named = [slot or NOTHING for slot in slots[:used]]
    named += [_unique("spare", names) for _ in slots[used:]]
    return Stream(tuple(named), tuple(spans))


def _steps(allocation: Allocation) -> dict[int, int]:
    """Number of sublayers up to each time."""
    # A time at which nothing is computed has no sublayer, and is not counted.
    times = set(allocation.schedule.times.values())
    found, count = {-1: 0}, 0
    for time in range(allocation.schedule.end + 1):
        count += time in times
        found[time] = count
    return found


def _name(allocation: Allocation, kept: Placed, source_map: SourceMap) -> str:
    circuit = allocation.schedule.circuit
    if kept.form in source_map.called:
        return source_map.called[kept.form]
    parts = []
    for atom, factor in kept.form.terms:
        sign = "" if factor == 1 else "-" if factor == -1 else f"{factor} "
        parts.append(f"{sign}{circuit.names[atom]}")
    return " + ".join(parts)


def _unique(name: str, taken: dict[str, int]) -> str:
    """Return a name that is not taken; `taken` has the last number added to each name."""
    found, count = name, taken.get(name, 1)
    while found in taken:
        count += 1
        found = f"{name} ({count})"
    taken[name] = count
    taken.setdefault(found, 1)
    return found


def _embedding(emission: Emission) -> Embedding:
    circuit = emission.allocation.schedule.circuit
    start = [kept for kept in emission.allocation.kept if kept.born < 0]
    positions = {}
    words: list[dict[str, Fraction]] = [{} for _ in (*circuit.alphabet, *[BOS] * circuit.bos)]
    for kept in start:
        atoms = [circuit.atoms[atom] for atom in kept.form.atoms]
        if isinstance(atoms[0], PositionFeature):
            positions[emission.slot(kept)] = atoms[0].name
            continue
        slot = emission.slot(kept)
        rows = circuit.rows(kept.form)
        # The range of an embedded number at a kind of row is the number itself, so its lower end is
        # that too.
        for kind in rows.where(lambda row: bool(row.lo)):
            words[kind][slot] = Fraction(rows[kind].lo)
    symbols = (*circuit.alphabet, *[BOS] * circuit.bos)
    return Embedding.of(
        emission.stream,
        dict(zip(symbols, words, strict=True)),
        positions=positions,
        front=[BOS] * circuit.bos,
    )


def _heads(emission: Emission, time: int) -> tuple[Attention, ...]:
    circuit = emission.allocation.schedule.circuit
    fetched = {
        n: atom
        for n in emission.allocation.schedule.at(time)
        if isinstance(atom := circuit.atoms[n], Fetched)
    }
    heads: dict[Head, Values] = {atom.head: [] for atom in fetched.values()}
    for kept in emission.allocation.written.get(time, ()):
        # A number may be a sum of what several heads fetch: each head writes its part to the slot,
        # and the stream adds them up.
        parts: dict[Head, list[Form]] = {}
        for number, factor in kept.form.terms:
            parts.setdefault(fetched[number].head, []).append(fetched[number].value * factor)
        for head, forms in parts.items():
            heads[head].append((kept, forms))
    return tuple(_head(emission, head, time, values) for head, values in heads.items())


def _head(emission: Emission, head: Head, time: int, values: Values) -> Attention:
    circuit = emission.allocation.schedule.circuit
    pairs = head.scores
    # d_key is a power of 4, so that √d_key is a power of 2 and dividing by it does not round.
    size = 1
    while size < len(pairs):
        size *= 4
    # Queries alone are scaled: keys stay as they are stored, so that scaling rounds no key, and the
    # factor √d_key undoes the division of the score.
    scale = emission.sharpness[head] * _root(size)
    queries = [emission.form(query * scale, time) for query, _ in pairs]
    keys = [emission.form(key, time) for _, key in pairs]
    # Coordinates of zeros, which add nothing to a score.
    padding: list[tuple[dict[str, Fraction], Fraction]] = [({}, Fraction(0))] * (size - len(pairs))
    read = [emission.sum(parts, time) for _, parts in values]
    stream = emission.stream
    return Attention(
        W_Q=stream.reading(*(form for form, _ in (*queries, *padding))),
        b_Q=[shift for _, shift in (*queries, *padding)],
        W_K=stream.reading(*(form for form, _ in (*keys, *padding))),
        b_K=[shift for _, shift in (*keys, *padding)],
        W_V=stream.reading(*(form for form, _ in read)),
        b_V=[shift for _, shift in read],
        W_O=stream.writing(*(emission.slot(kept) for kept, _ in values)),
        weighting=circuit.weighting,
        mask=head.mask,
    )


def _root(size: int) -> int:
    """√d_key, a power of two."""
    return 1 << (size.bit_length() - 1) // 2


def _network(emission: Emission, time: int) -> FeedForward | None:
    circuit = emission.allocation.schedule.circuit
    allocation = emission.allocation
    hidden: list[Any] = []
    # An atom may be part of several sums that are kept: its units are computed once and write to
    # all.
    written: dict[int, dict[str, Fraction]] = {}
    for kept in allocation.written.get(time, ()):
        for term, factor in kept.form.terms:
            written.setdefault(term, {})[emission.slot(kept)] = factor
    for number in allocation.schedule.at(time):
        # All units of an atom follow each other: error bounds of steps count on their order.
        atom = circuit.atoms[number]
        for form, factor in atom.hidden_units:
            read, constant = emission.form(form, time)
            added = {slot: share * factor for slot, share in written.get(number, {}).items()}
            hidden.append((read, constant, added))
    for kept in allocation.emptied.get(time, ()):
        hidden += _emptying(emission, kept)
    return units(emission.stream, *hidden) if hidden else None


def _emptying(emission: Emission, kept: Placed) -> list[Any]:
    """Two hidden units that add −ReLU(x) + ReLU(−x), so that x, as it is stored, becomes 0."""
    slot = emission.slot(kept)
    return [({slot: 1}, 0, {slot: -1}), ({slot: -1}, 0, {slot: 1})]


def _rows(emission: Emission, forms: tuple[Form, ...]) -> dict[str, Any]:
    """The weights of a read-out that reads these forms."""
    end = emission.allocation.schedule.end
    read = [emission.form(form, end) for form in forms]
    return {
        "W_out": emission.stream.reading(*(form for form, _ in read)),
        "b_out": [shift for _, shift in read],
    }
