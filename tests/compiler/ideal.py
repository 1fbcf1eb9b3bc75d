"""The numbers of a circuit from their definitions: in rationals, with hard attention."""

import itertools
import random
from fractions import Fraction

from transformist.circuit import At, Embedded, PositionFeature, Relu, StepFunction, Uniform
from transformist.position_features import POSITIONS


def seen(mask, i, rows):
    return {
        "none": range(rows),
        "future": range(i + 1),
        "strict-future": range(i),
        "past": range(i, rows),
        "strict-past": range(i + 1, rows),
    }[mask]


class Ideal:
    """The atoms of a circuit on one input, at every row."""

    def __init__(self, circuit, x):
        self.circuit, self.x = circuit, x
        self.symbols = [circuit.alphabet.index(each) for each in x]
        if circuit.bos:
            self.symbols = [len(circuit.alphabet), *self.symbols]
        self.rows = range(len(self.symbols))
        self.atoms = []
        for atom in circuit.atoms:
            self.atoms.append([self.value(atom, i) for i in self.rows])

    def form(self, form, i):
        return form.constant + sum(factor * self.atoms[atom][i] for atom, factor in form.terms)

    def value(self, atom, i):
        if isinstance(atom, Embedded):
            return atom.values[self.symbols[i]]
        if isinstance(atom, PositionFeature):
            return Fraction(POSITIONS[atom.name](i + 1 - self.circuit.bos, len(self.x)))
        if isinstance(atom, Relu):
            return max(self.form(atom.form, i), Fraction(0))
        if isinstance(atom, StepFunction):
            above = (self.form(atom.form, i) - atom.zone / 4) / (atom.zone / 2)
            return min(max(above, Fraction(0)), Fraction(1))
        chosen = self.chosen(atom.head, i)
        return sum((self.form(atom.value, j) for j in chosen), Fraction(0)) / max(len(chosen), 1)

    def chosen(self, head, i):
        places = list(seen(head.mask, i, len(self.rows)))
        if isinstance(head, Uniform) or not places:
            return places
        if isinstance(head, At):
            index, unit = self.form(head.index, i), self.form(head.unit, i)
            scores = {
                j: 2 * index * self.form(head.place, j) - unit * self.form(head.square, j)
                for j in places
            }
        else:
            scores = {j: self.score(head, i, j) for j in places}
        best = [j for j in places if scores[j] == max(scores.values())]
        if isinstance(head, At):
            return best[:1]
        return {"leftmost": best[:1], "rightmost": best[-1:]}.get(head.choose, best)

    def score(self, head, i, j):
        """By the match first, then by the place."""
        match = sum(
            self.form(key, j) * self.form(query, i)
            for key, query in zip(head.keys, head.queries, strict=True)
        )
        return (match, j if head.choose == "rightmost" else -j if head.choose == "leftmost" else 0)


def strings(program, longest, count, seed):
    draw = random.Random(f"{program.name} {seed}")
    alphabet = program.alphabet
    for n in range(min(longest, 3 if len(alphabet) < 4 else 2) + 1):
        yield from itertools.product(alphabet, repeat=n)
    for n in sorted({1, longest // 2, longest - 1, longest}):
        yield from (tuple([symbol] * n) for symbol in alphabet)
        yield tuple((list(alphabet) * n)[:n])
        yield from (tuple(draw.choices(alphabet, k=n)) for _ in range(count))


def given(program, x):
    return "".join(x) if all(isinstance(a, str) for a in program.alphabet) else list(x)
