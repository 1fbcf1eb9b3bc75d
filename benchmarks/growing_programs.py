"""Programs whose models have any number of weights, for the growth of compilation in their size."""

from dataclasses import dataclass

import transformist as tf
from transformist.language import Program
from transformist.programs import PROGRAMS

GENERATORS = {
    "S4": {"a": (1, 2, 3, 0), "b": (1, 0, 2, 3)},
    "A4": {"a": (1, 2, 0, 3), "b": (1, 0, 3, 2)},
}
BINARY_MOD_3 = {"0": (0, 2, 1), "1": (1, 0, 2)}
"""Digit b takes the rest q of what was read to 2 q + b, modulo 3."""


@dataclass(frozen=True)
class Case:
    """A program, the format it is certified for, and the options to compile it with.

    `compiled_for` is the arithmetic to compile for, if it is another one.
    """

    name: str
    program: Program
    max_length: int
    arithmetic: str = "float32"
    compiled_for: str | None = None

    def model(self):
        return tf.compile(
            self.program,
            max_length=self.max_length,
            arithmetic=self.compiled_for or self.arithmetic,
        )


def symbols(count):
    return [f"t{k}" for k in range(count)]


def shift(count):
    """Each symbol's successor but one; the alphabet is as large as is asked for."""

    @tf.program(alphabet=symbols(count))
    def shifted(x):
        return x.predecessor(2, default="t0").tag()

    return Case(f"shift by 2, {count} symbols", shifted, 10)


def rightmost(count):
    """The last later symbol that equals the symbol before."""

    @tf.program(alphabet=symbols(count))
    def found(x):
        later = x.select(x, mask="strict-future")
        return later.rightmost(x.predecessor(default="t0"), default="t0").tag()

    return Case(f"select and rightmost, {count} symbols", found, 10)


def share(count):
    """A share of one symbol among many."""

    @tf.program(alphabet=symbols(count))
    def shares(x):
        return (x == "t0").prefix_mean().tag()

    return Case(f"share of a symbol, {count} symbols", shares, 10)


def compose(f, g):
    return tuple(g[q] for q in f)


def machine(name, step, max_length):
    """A finite-state machine by prefix composition of its permutations; accepts where 0 → 0."""
    identity = tuple(range(len(next(iter(step.values())))))

    @tf.program(alphabet=list(step))
    def run(x):
        seen, y, k = set(step.values()), x.map({s: str(f) for s, f in step.items()}), 1
        while k <= max_length:
            before = y.predecessor(k, default=str(identity))
            left = seen | {identity}
            products = {(str(f), str(g)): str(compose(f, g)) for f in left for g in seen}
            y = before.table(y, values=products)
            seen |= {compose(f, g) for f in left for g in seen}
            k *= 2
        return y.isin([str(f) for f in seen if f[0] == 0]).accept(empty=True)

    return Case(f"{name}, N = {max_length}", run, max_length)


def permutations(group, max_length):
    return machine(group, GENERATORS[group], max_length)


def binary_mod_3(max_length):
    return machine("binary mod 3", BINARY_MOD_3, max_length)


def cyclic(order, max_length=60):
    """The length of the input counted to a modulus; its tables have `order`² pairs."""
    rotation, identity = (*range(1, order), 0), tuple(range(order))
    return machine(f"mod {order}", {"a": rotation, "b": identity}, max_length)


def flips(steps):
    """Parity of the last positions, one exclusive or after the other."""

    @tf.program(alphabet="01")
    def parity(x):
        one = x == "1"
        found = one
        for k in range(1, steps + 1):
            found = found ^ one.predecessor(k, default=False)
        return found.accept(empty=False)

    return Case(f"parity of the last {steps + 1}", parity, 256, "float64")


def places(N):
    """A function of the position with a different value at each place: a step for each."""

    @tf.program(alphabet="ab")
    def squares(x):
        return x.position("i").map(lambda i: i * i % 7, max_length=N).tag()

    return Case(f"i² mod 7, N = {N}", squares, N, "float64")


def worked(name, N):
    """A worked program with exact weights; for a large N it has no certificate in float32."""
    return Case(f"{name}, N = {N}", PROGRAMS[name], N, compiled_for="exact")
