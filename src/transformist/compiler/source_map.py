"""Map from the atoms of a circuit back to the program: their subexpressions, and names of sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from transformist.circuit import Atom, Circuit, Form, MarginOwner
from transformist.language.node import Node
from transformist.language.places import Place


@dataclass(eq=False)
class SourceMap:
    """Which part of a program each atom is there for.

    Attributes:
        places: where subexpressions are written.
        served: the subexpression that each atom serves, first.
        called: what sums of atoms are called.

    """

    places: Mapping[Node, Place]
    served: dict[MarginOwner, Node] = field(default_factory=dict)
    called: dict[Form, str] = field(default_factory=dict)

    def add(self, circuit: Circuit, atom: Atom, name: str, node: Node | None) -> Form:
        """Add an atom to a circuit; a new atom is recorded as serving this subexpression."""
        before = len(circuit.atoms)
        form = circuit.add(atom, name)
        if len(circuit.atoms) > before and node is not None:
            self.served[circuit.number(atom)] = node
        return form

    def written(self, form: Form) -> list[str]:
        """Places of the subexpressions that the atoms of a form serve."""
        nodes = [self.served[atom] for atom in form.atoms if atom in self.served]
        return list(dict.fromkeys(str(self.places[node]) for node in nodes))

    def call(self, form: Form, name: str) -> Form:
        """The form, which has this name if it has none yet."""
        bit = 1 - form if form.constant == 1 else form
        if bit.terms and not bit.constant and bit.normalized() == (bit, Fraction(1)):
            self.called.setdefault(bit, name if bit is form else f"not ({name})")
        return form
