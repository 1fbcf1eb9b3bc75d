"""Third pass, layers to slots: the slot of the residual stream that holds each number, and when.

What is kept of a sublayer are the sums of its atoms that are read later, where these are not more
than the atoms. A slot whose value is read no more is emptied by a feed-forward network, where there
is one in time, and used again. Without reuse, each number has a slot of its own.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

from transformist.circuit import Fetched, Form, Head
from transformist.compiler.schedule import EMBEDDING, Schedule, Site
from transformist.errors import BrokenInvariant

Key = TypeVar("Key")


@dataclass(frozen=True)
class Placed:
    """A number in the stream.

    Attributes:
        form: a sum of atoms of one time.
        born: the time at which it is written.
        last: the last time at which it is read.
        slot: the coordinate.
        emptied: when the slot is emptied for another, if it is.

    """

    form: Form
    born: int
    last: int
    slot: int
    emptied: int | None = None


@dataclass(frozen=True)
class Allocation:
    """Slots of the numbers of a schedule.

    Attributes:
        schedule: when they are computed.
        kept: all of them, in order of time.
        spare: slots after those of the numbers, which hold nothing.

    """

    schedule: Schedule
    kept: tuple[Placed, ...]
    spare: int = 0

    def __post_init__(self) -> None:
        by_slot: dict[int, list[Placed]] = {}
        for each in sorted(self.kept, key=lambda each: each.born):
            by_slot.setdefault(each.slot, []).append(each)
        # Neighbours are enough: a slot that is emptied before its next number is written is
        # emptied before all later numbers, too.
        for one, other in itertools.chain.from_iterable(map(itertools.pairwise, by_slot.values())):
            is_emptied = one.emptied is not None and one.last <= one.emptied < other.born
            if not is_emptied or one.born == other.born:
                raise BrokenInvariant(
                    "a slot must hold one number at a time, and be emptied between two",
                    received=f"{one} and {other}",
                    where="Allocation",
                )

    @cached_property
    def width(self) -> int:
        """d."""
        return 1 + max((each.slot for each in self.kept), default=0) + self.spare

    def reading(self, form: Form, time: int) -> dict[int, Fraction]:
        """The slots that a form is read from at a time, with factors; its constant is left out."""
        factors: dict[int, Fraction] = {}
        for site, part in self.schedule.parts(form):
            key = site, part
            if key not in self._kept_parts:
                self._kept_parts[key] = list(self._kept_of(site, part))
            for kept, factor in self._kept_parts[key]:
                if not kept.born < time <= kept.last:
                    raise BrokenInvariant(
                        "a number must be read while a slot holds it",
                        received=f"{kept} at {time}",
                        where="Allocation",
                    )
                before = factors.get(kept.slot)
                factors[kept.slot] = factor if before is None else before + factor
        # `parts` divides the form by its first factor, so each factor is multiplied by it.
        return {slot: factor * form.terms[0][1] for slot, factor in factors.items()}

    @cached_property
    def _kept_parts(self) -> dict[tuple[Site, Form], list[tuple[Placed, Fraction]]]:
        """The numbers that make up each part of a form, with factors."""
        return {}

    @cached_property
    def written(self) -> Mapping[int, Sequence[Placed]]:
        """The numbers that are written at each time."""
        found: dict[int, list[Placed]] = {}
        for each in self.kept:
            found.setdefault(each.born, []).append(each)
        return found

    @cached_property
    def emptied(self) -> Mapping[int, Sequence[Placed]]:
        """The numbers whose slots are emptied at each time."""
        found: dict[int, list[Placed]] = {}
        for each in self.kept:
            if each.emptied is not None:
                found.setdefault(each.emptied, []).append(each)
        return found

    @cached_property
    def _born(self) -> dict[int, dict[Form, Placed]]:
        """The numbers that are written at each time, by the directions of their forms."""
        found: dict[int, dict[Form, Placed]] = {}
        for each in self.kept:
            found.setdefault(each.born, {})[each.form.direction] = each
        return found

    def _kept_of(self, site: Site, part: Form) -> Iterator[tuple[Placed, Fraction]]:
        here = self._born[site[0]]
        if part.direction in here:
            kept = here[part.direction]
            yield kept, part.terms[0][1] / kept.form.terms[0][1]
            return
        for atom, share in part.terms:
            yield here[Form.atom(atom)], share


def allocate(schedule: Schedule, *, reuse: bool = True) -> Allocation:
    """Slots for what is read after it is computed.

    Args:
        schedule: when the numbers are computed.
        reuse: true for as few slots as the reuse of dead ones allows; false for a slot for each
            number. A network empties a slot exactly only where it reads the slot exactly, which
            a layer norm before the network prevents.

    """
    networks = sorted({time for time in schedule.times.values() if time % 2 and time > 0})
    kept: list[Placed] = []
    # `waiting` has the slots with the time of the first network that can empty each; a slot is
    # free for numbers that are written after this time. The numbers come in order of time, so a
    # free slot stays free until it is taken. The lowest free slot is taken first.
    holders: list[int] = []
    waiting: list[tuple[int, int]] = []
    free: list[int] = []
    for form, born, last in _lifetimes(schedule):
        while waiting and waiting[0][0] < born:
            heapq.heappush(free, heapq.heappop(waiting)[1])
        if free:
            slot = heapq.heappop(free)
            old = kept[holders[slot]]
            kept[holders[slot]] = replace(old, emptied=_emptying_time(networks, old))
            holders[slot] = len(kept)
        else:
            slot = len(holders)
            holders.append(len(kept))
        kept.append(Placed(form, born, last, slot))
        time = _emptying_time(networks, kept[-1]) if reuse else None
        if time is not None:
            heapq.heappush(waiting, (time, slot))
    return Allocation(schedule, tuple(kept))


def _emptying_time(networks: Sequence[int], number: Placed) -> int | None:
    """Time of the first network that can empty the slot of a number; `None` if there is none."""
    # A network reads the stream as it was before it writes: the last reader of a number may empty
    # its slot in the same step. The step that writes the number cannot.
    first = bisect_left(networks, max(number.last, number.born + 1))
    return networks[first] if first < len(networks) else None


def _lifetimes(schedule: Schedule) -> list[tuple[Form, int, int]]:
    """The sums that are kept, when they are written, and when they are read last."""
    reads = [*_reads(schedule), *((schedule.end, form) for form in schedule.outputs)]
    sums: dict[Site, dict[Form, int]] = {}
    atoms: dict[Site, dict[int, int]] = {}
    kept: dict[tuple[Site, Form], Form] = {}
    seen: dict[tuple[Site, Form], int] = {}  # the last time at which each part is read so far
    # Readers of multiples of one form share a slot, from which each reads with a factor of its own:
    # `normalized` gives the same form for all of them.
    for time, form in reads:
        for key in schedule.parts(form):
            site, part = key
            if seen.get(key, EMBEDDING) >= time:
                continue
            seen[key] = time
            direction = site, part.direction
            if direction not in kept:
                kept[direction] = part.normalized()[0]
            _extend(sums.setdefault(site, {}), kept[direction], time)
            lives = atoms.setdefault(site, {})
            for atom in part.atoms:
                _extend(lives, atom, time)
    scored: dict[Site, list[tuple[int, Form]]] = {}
    for time, form in _scores(schedule):
        for site, part in schedule.parts(form):
            scored.setdefault(site, []).append((time, part))
    found = []
    for site in sorted(sums):
        chosen = sums[site]
        # Sums of atoms are kept where they are no more than the atoms, and scores can read them.
        parts = scored.get(site, [])
        if len(chosen) > len(atoms[site]) or not _can_read(chosen, [part for _, part in parts]):
            chosen = {Form.atom(atom): last for atom, last in atoms[site].items()}
        # A sum that a head reads as keys may be kept already for other readers. Keep it until the
        # head reads it, even if the other readers come earlier.
        for time, part in parts:
            known = kept.get((site, part.direction))
            if known is not None and known in chosen:
                _extend(chosen, known, time)
        found += [(form, site[0], last) for form, last in chosen.items()]
    return found


def _reads(schedule: Schedule) -> Iterator[tuple[int, Form]]:
    """The forms that atoms read, with the times; those of a head once for each time."""
    heads: set[tuple[int, Head]] = set()
    for number, time in schedule.times.items():
        head, forms = schedule.circuit.sources(number)
        if head is not None and (time, head) not in heads:
            heads.add((time, head))
            yield from ((time, form) for form in head.forms)
        yield from ((time, form) for form in forms)


def _scores(schedule: Schedule) -> Iterator[tuple[int, Form]]:
    """The times and forms of queries and keys as read; keys of constant queries are one sum."""
    atoms = [(time, schedule.circuit.atoms[number]) for number, time in schedule.times.items()]
    heads = [(time, atom.head) for time, atom in atoms if isinstance(atom, Fetched)]
    for time, head in dict.fromkeys(heads):
        yield from ((time, form) for pair in head.scores for form in pair)


def _can_read(kept: Iterable[Form], parts: Iterable[Form]) -> bool:
    """True if each is a multiple of a sum that is kept, or its atoms are kept."""
    directions = {form.direction for form in kept}
    return all(
        part.direction in directions or all(Form.atom(atom) in directions for atom in part.atoms)
        for part in parts
    )


def _extend(lives: dict[Key, int], key: Key, time: int) -> None:
    lives[key] = max(lives.get(key, time), time)
