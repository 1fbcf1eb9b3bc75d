"""What is known of each kind of atom at BOS, whatever the input: the grid that it lies on there.

By induction: a step is 0 or 1 at BOS if what it reads of BOS is on a grid as coarse as its zone. A
head that sees symbols there chooses one of them, or all that match, as a symbol does, if its query
and the keys it sees are whole numbers at BOS: then scores are as far apart, and what it fetches is
on the grid of all that it may fetch. This, which `preconditions` ask of all steps and heads, is why
bounds of errors hold at BOS as they do at symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from transformist.circuit.atoms import Fetched, Kept, Relu, StepFunction
from transformist.circuit.forms import content
from transformist.circuit.heads import CAUSAL, At, Match, Uniform, rows_under
from transformist.laws import Grid

if TYPE_CHECKING:
    from transformist.circuit.circuit import Circuit


def is_decided_at_bos(circuit: Circuit, step: StepFunction) -> bool:
    """Whether the form is at most 0, or at least the zone, at BOS as it is at symbols.

    It lies on a grid, or is made of means without a mask, which are the same at every row.
    """
    atoms = [circuit.atoms[number] for number in step.form.atoms]
    if all(isinstance(atom, Fetched) and atom.head == Uniform("none") for atom in atoms):
        return True
    common = content([*step.form.factors.values(), step.form.constant])
    grid = circuit.grid_at_bos(step.form * (1 / common))
    least = None if grid is None else grid.separation(circuit.most_seen)
    return least is not None and least * common >= step.zone


def _step(circuit: Circuit, _number: int, atom: StepFunction) -> Grid | None:
    return Grid(1) if is_decided_at_bos(circuit, atom) else None


def _fetched(circuit: Circuit, number: int, atom: Fetched) -> Grid | None:
    """Under causal masks BOS sees itself, or nothing, of which a head brings 0."""
    mask = atom.head.mask
    if mask in CAUSAL:
        return Grid(1) if mask.startswith("strict") else circuit.grid_at_bos(atom.value)
    return FETCHED[type(atom.head)](circuit, number, atom)


def _mean(circuit: Circuit, number: int, atom: Fetched) -> Grid | None:
    """Without a mask BOS sees what symbols see; with others itself and all symbols, or these."""
    if atom.head.mask == "none":
        return circuit.laws[number].grid
    grid = circuit.grid(atom.value)
    if atom.head.mask == "past" and grid is not None:
        own = circuit.grid_at_bos(atom.value)
        grid = None if own is None else grid | own
    return None if grid is None or grid.counts else grid.divided(rows_under(atom.head.mask))


def is_whole_at_bos(circuit: Circuit, head: At) -> bool:
    """Whether what is looked up is a whole number at BOS, too, in a unit that is not 0 there."""
    units: Mapping[str, Grid] = {"none": Grid(1).divided(rows_under("none")), "future": Grid(1)}
    unit: Any = None if head.unit.is_constant else circuit.atoms[head.unit.atoms[0]]
    whole = Grid(1) if unit is None else units.get(unit.head.mask)
    index = circuit.grid_at_bos(head.index)
    return index is not None and whole is not None and index | whole == whole


def _found(circuit: Circuit, number: int, _atom: Fetched) -> Grid | None:
    """What it brings to symbols, since what it reads of BOS is whole there, too."""
    return circuit.laws[number].grid


FETCHED: Mapping[type[Any], Callable[[Circuit, int, Fetched], Grid | None]] = {
    Uniform: _mean,
    Match: _found,
    At: _found,
}
"""Of what each kind of head fetches where BOS sees symbols."""

AT_BOS: Mapping[type[Any], Callable[[Circuit, int, Any], Grid | None]] = {
    Relu: lambda circuit, _number, atom: circuit.grid_at_bos(atom.form),
    StepFunction: _step,
    Fetched: _fetched,
    Kept: lambda circuit, _number, atom: circuit.grid_at_bos(atom.form),
}
"""The grid at BOS of what may be several numbers there, of each kind."""
