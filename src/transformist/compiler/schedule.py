"""Second pass, circuit to layers: the time at which each atom is computed.

Times count sublayers: −1 is the embedding, 2l the attention of layer l, 2l + 1 its feed-forward
network. Heads come as early as they can, ReLUs as late, so that sums of them share a slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from transformist.circuit import Circuit, Embedded, Fetched, Form, Head, PositionFeature
from transformist.errors import BrokenInvariant

EMBEDDING = -1

Site: TypeAlias = tuple[int, bool]
"""The time at which atoms are computed, and whether each is kept alone."""


@dataclass(frozen=True)
class Schedule:
    """When the atoms of a circuit are computed.

    Attributes:
        circuit: the atoms.
        outputs: the forms that are read out.
        times: of the atoms that serve the outputs, by their numbers.

    """

    circuit: Circuit
    outputs: tuple[Form, ...]
    times: dict[int, int]

    def __post_init__(self) -> None:
        of_heads: dict[Head, int] = {}
        for number, time in self.times.items():
            # Embedded numbers are at −1, heads at even times, networks at odd ones.
            late = _last_read(self.circuit, number, self.times, of_heads) >= time
            parity = {Embedded: -1, PositionFeature: -1, Fetched: time - time % 2}
            fits = parity.get(type(self.circuit.atoms[number]), time - (time + 1) % 2) == time
            if late or not fits:
                raise BrokenInvariant(
                    "an atom must be computed in a sublayer of its kind, after those that it reads",
                    received=f"atom {number} at {time}",
                    where="Schedule",
                )

    @cached_property
    def layers(self) -> int:
        """Number of layers."""
        return max(self.times.values(), default=EMBEDDING) // 2 + 1

    @property
    def end(self) -> int:
        """The time of the read-out."""
        return 2 * self.layers

    def at(self, time: int) -> tuple[int, ...]:
        """The atoms that are computed at a time."""
        return tuple(self._by_time.get(time, ()))

    def parts(self, form: Form) -> Sequence[tuple[Site, Form]]:
        """Parts of a form over its first factor: all terms of a site, or one atom kept alone."""
        if form.is_constant:
            return ()
        direction = form.direction
        found = self._parts.get(direction)
        if found is None:
            found = self._parts[direction] = list(self._parts_of(direction))
        return found

    def _parts_of(self, form: Form) -> Iterator[tuple[Site, Form]]:
        known, sites = self._sites, dict[Site, list[tuple[int, Fraction]]]()
        for term in form.terms:
            sites.setdefault(known[term[0]], []).append(term)
        if len(sites) == 1 and not next(iter(sites))[1]:
            yield next(iter(sites)), self._distinct_parts.setdefault(form, form)
            return
        for site in sorted(sites):
            of_site = sites[site]
            for terms in [(term,) for term in of_site] if site[1] else [tuple(of_site)]:
                part = Form(terms)
                yield site, self._distinct_parts.setdefault(part, part)

    @cached_property
    def _sites(self) -> dict[int, Site]:
        atoms = self.circuit.atoms
        return {number: (time, atoms[number].is_kept_alone) for number, time in self.times.items()}

    @cached_property
    def _parts(self) -> dict[Form, list[tuple[Site, Form]]]:
        return {}

    @cached_property
    def _distinct_parts(self) -> dict[Form, Form]:
        """The one object for all equal parts, so that their values are computed once."""
        return {}

    @cached_property
    def _by_time(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for number, time in self.times.items():
            found.setdefault(time, []).append(number)
        return found


def schedule(circuit: Circuit, outputs: tuple[Form, ...], heads: str) -> Schedule:
    """The fewest layers that the dependencies allow; with one head a layer, in order.

    Args:
        circuit: the atoms.
        outputs: the forms that are read out.
        heads: `many` or `one` a layer.

    """
    needed = _needed(circuit, outputs)
    # The earliest times give the number of layers. Within it networks move towards their readers.
    early = _earliest(circuit, needed, heads)
    end = 2 * (max(early.values(), default=EMBEDDING) // 2 + 1)
    return Schedule(circuit, outputs, _latest(circuit, needed, early, end))


def _needed(circuit: Circuit, outputs: Iterable[Form]) -> list[int]:
    """The atoms that serve the outputs, in order."""
    found, heads = {atom for form in outputs for atom in form.atoms}, set[Head]()
    # An atom reads only atoms before it, so one walk from the last to the first finds all.
    for number in range(len(circuit.atoms) - 1, -1, -1):
        if number in found:
            head, forms = circuit.sources(number)
            found.update(*(form.atoms for form in forms))
            # Values fetched by one head share its queries and keys, which count once.
            if head is not None and head not in heads:
                heads.add(head)
                found |= circuit.atoms_of(head)
    return sorted(found)


def _last_read(
    circuit: Circuit, number: int, times: Mapping[int, int], of_heads: dict[Head, int]
) -> int:
    """Time of the last atom that an atom reads, −2 if none; `of_heads` keeps that of each head."""
    head, forms = circuit.sources(number)
    alone = max((times[each] for form in forms for each in form.atoms), default=EMBEDDING - 1)
    if head is None:
        return alone
    if head not in of_heads:
        read = circuit.atoms_of(head)
        of_heads[head] = max((times[each] for each in read), default=EMBEDDING - 1)
    return max(alone, of_heads[head])


def _earliest(circuit: Circuit, needed: list[int], heads: str) -> dict[int, int]:
    times: dict[int, int] = {}
    taken: dict[int, object] = {}
    of_heads: dict[Head, int] = {}
    for number in needed:
        atom = circuit.atoms[number]
        ready = max(_last_read(circuit, number, times, of_heads), EMBEDDING) + 1
        if isinstance(atom, Embedded | PositionFeature):
            times[number] = EMBEDDING
        elif isinstance(atom, Fetched):
            time = ready + ready % 2  # the next even time
            # Atoms of one head may share its time: it fetches all of them at once.
            while heads == "one" and taken.setdefault(time, atom.head) != atom.head:
                time += 2
            times[number] = time
        else:
            times[number] = ready + (ready + 1) % 2  # the next odd time
    return times


def _latest(
    circuit: Circuit,
    needed: list[int],
    early: dict[int, int],
    end: int,
) -> dict[int, int]:
    """The times, with each ReLU as late as its readers allow."""
    deadline = dict.fromkeys(needed, end)
    times: dict[int, int] = {}
    deadlines: dict[Head, int] = {}
    for number in reversed(needed):
        atom = circuit.atoms[number]
        time = early[number]
        if not isinstance(atom, Embedded | PositionFeature | Fetched):
            # Networks are at odd times: the last one before the first reader.
            # `deadline` is the time of the first reader. Atoms are met after all that read them,
            # since an atom reads only earlier ones, and the walk goes backwards.
            latest = deadline[number] - 1
            time = latest - (latest + 1) % 2
        times[number] = time
        head, forms = circuit.sources(number)
        read = {each for form in forms for each in form.atoms}
        # What a head reads must be there before the earliest time at which it fetches something.
        if head is not None and time < deadlines.get(head, end + 1):
            deadlines[head] = time
            read |= circuit.atoms_of(head)
        for each in read:
            deadline[each] = min(deadline[each], time)
    return dict(sorted(times.items()))
