"""Small adversarial models, drawn by kind: a kind and a seed give the same model.

A kind builds numbers in the slots of a stream, in which rounding can hurt, and reads them: by an
answer, a unit, a step, a head. Half of the draws are benign (small whole numbers, dyadic constants,
thresholds half-way), so that a good certifier certifies at least 30 % of every kind. The others
have parameters at which errors are largest; a threshold is then put between what the weights
compute exactly and what the format computes, where these differ, so that the answer is wrong.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction as F

import numpy as np
from in_rationals import Ideal
from tiny import FORMATS, LONGER, Tiny

import transformist as tf
from transformist.errors import TransformistError

PROBED = 24
"""Number of inputs from which the place of a threshold is chosen."""

MOST_INPUTS = 130
"""Largest number of inputs up to N of a drawn model."""


@dataclass(frozen=True)
class Drawn:
    """A model to be tried, in a format."""

    kind: str
    seed: int
    variant: str
    model: tf.Transformer
    a: Tiny
    order: str
    inputs: tuple[tuple[tuple[str, ...], ...], ...]
    place: str = ""

    def __repr__(self):
        return f"{self.kind} {self.seed} ({self.variant}) in {self.a.name}, {self.order}"


@dataclass
class Draft:
    """A model that is being drawn: slots, words, layers, and the draws."""

    draw: random.Random
    a: Tiny
    benign: bool
    alphabet: str = "ab"
    N: int = 3
    bos: bool = False
    slots: list[str] = field(default_factory=list)
    words: dict[str, dict[str, F]] = field(default_factory=dict)
    positions: dict[str, str] = field(default_factory=dict)
    layers: list[tuple[list[dict], list[tuple]]] = field(default_factory=list)
    read_out: dict | None = None
    at: str = "last"
    variant: str = ""
    tried: str = ""
    weighting: str = ""
    sign: int = 0
    off_grid: bool = False
    columns: set = field(default_factory=set)
    made: dict[tuple[int, ...], tf.Layer] = field(default_factory=dict)

    def __post_init__(self):
        self.words = {symbol: {} for symbol in self.symbols}

    @property
    def symbols(self):
        return [*self.alphabet, *["BOS"] * self.bos]

    # Draws

    def chance(self, p):
        return self.draw.random() < p

    def pick(self, *given):
        return self.draw.choice(given)

    def whole(self, low=-3, high=3):
        return F(self.draw.randint(low, high))

    def dyadic(self):
        return F(self.draw.randint(-7, 7), 2 ** self.draw.randint(0, 2))

    def odd(self):
        """A fraction that no binary format holds."""
        return F(self.draw.choice((1, -1)) * self.draw.randint(1, 9), self.pick(3, 5, 7, 11, 41))

    def long(self):
        """A number of one to three bits more than the format has."""
        bits = self.a.precision + self.draw.randint(1, 3)
        exponent = self.draw.randint(-2, 2) - bits
        odd = self.draw.randrange(2 ** (bits - 1) + 1, 2**bits, 2)
        return odd * F(2) ** exponent * self.pick(1, -1)

    def number(self):
        """Small and dyadic where the draw is benign."""
        if self.benign:
            return self.whole() or F(1)
        return self.pick(self.whole, self.dyadic, self.odd, self.long)() or F(1)

    def natural(self):
        """Of either sign only where the draw is not benign."""
        return F(self.draw.randint(1, 3)) if self.benign else self.number()

    def power(self, low, high):
        return F(2) ** self.draw.randint(low, high)

    # Parts

    def slot(self, name=""):
        self.slots.append(f"{name or 's'}{len(self.slots)}")
        return self.slots[-1]

    def put(self, values, name="x", slot=None):
        """A slot with a number for each symbol, BOS last."""
        slot = slot or self.slot(name)
        for symbol, value in zip(self.symbols, values, strict=True):
            self.words[symbol][slot] = F(value)
        return slot

    def embedded(self, number=None, name="x"):
        """A number for each symbol; no constant and no column twice, if a few draws avoid it."""
        number = number or self.number
        for _ in range(6):
            column = tuple(number() for _ in self.symbols)
            if column not in self.columns and (len(set(column)) > 1 or len(column) == 1):
                break
        self.columns.add(column)
        return self.put(column, name)

    def alternating(self, even, odd, name="x"):
        """A slot of two numbers, so that it is no constant where there are two symbols."""
        return self.put([(even, odd)[k % 2] for k in range(len(self.symbols))], name)

    def constant(self, value):
        return self.put([value] * len(self.symbols), "c")

    def position(self, name, slot=None):
        slot = slot or self.slot("p")
        self.positions[slot] = name
        return slot

    def fetch(self, form, into=None, mask="none", weighting=None, scores=(), out=1, keys=None):
        """A head that adds the value, times `out`, to a slot; the scores are of (query, key)."""
        into = into or self.slot("h")
        self.weighting = weighting or self.weighting or self.pick("softmax", "average-hard")
        weighting = self.weighting
        head = {"value": dict(form), "into": into, "out": out, "mask": mask}
        head |= {"weighting": weighting, "scores": scores}
        before = self.layers[-1] if self.layers else ([], [None])
        read = {*form, *(slot for pair in scores for part in pair for slot in part)}
        if before[1] or not read.isdisjoint(each["into"] for each in before[0]):
            self.layer()
        self.layers[-1][0].append(head)
        return into

    def unit(self, form, shift, out):
        """A hidden unit ReLU(form + shift), which adds to slots what `out` says."""
        units = self.layers[-1][1] if self.layers else []
        if not self.layers or any(slot in form for _, _, written in units for slot in written):
            self.layer()
        self.layers[-1][1].append((dict(form), F(shift), dict(out)))

    def layer(self):
        self.layers.append(([], []))

    def step(self, form, at, gap, into, height=1, falls=False):
        """0 or `height` in a slot: two units, whose difference goes from 0 to 1 about `at`."""
        slope = F(2) / gap
        scaled = {slot: slope * w for slot, w in form.items()}
        signs = (height, -height) if not falls else (-height, height)
        for shift, sign in zip((F(1, 2), -F(1, 2)), signs, strict=True):
            self.unit(scaled, shift - slope * at, {into: sign})
        return into

    # The model

    def model(self, read_out=None):
        stream = tf.Stream(tuple(self.slots))
        read_out = read_out or self.read_out
        return tf.Transformer(
            stream=stream,
            embedding=tf.Embedding.of(
                stream, self.words, positions=self.positions, front=("BOS",) * self.bos
            ),
            layers=tuple(self._made(k) for k, layer in enumerate(self.layers) if any(layer)),
            read_out=read_out,
            max_length=self.N,
        )

    def _made(self, number):
        """A layer, made again only if it or the stream has grown: no part of it ever changes."""
        heads, units = self.layers[number]
        size = number, len(heads), len(units), len(self.slots)
        if size not in self.made:
            self.made[size] = self._layer(heads, units)
        return self.made[size]

    def _layer(self, heads, units):
        network = None
        if units:
            network = tf.FeedForward(
                W_1=[self.row(form) for form, _, _ in units],
                b_1=[shift for _, shift, _ in units],
                W_2=[[out.get(slot, 0) for _, _, out in units] for slot in self.slots],
            )
        return tf.Layer(tuple(map(self._head, heads)), network)

    def _head(self, head):
        value, into = head["value"], head["into"]
        scores = head["scores"] or [({}, {})]
        weights = {
            "W_Q": [self.row(query) for query, _ in scores],
            "b_Q": [query.get(None, 0) for query, _ in scores],
            "W_K": [self.row(key) for _, key in scores],
            "b_K": [key.get(None, 0) for _, key in scores],
            "W_V": [self.row(value)],
            "b_V": [value.get(None, 0)],
            "W_O": [[head["out"] if slot == into else 0] for slot in self.slots],
        }
        return tf.Attention(**weights, weighting=head["weighting"], mask=head["mask"])

    def row(self, form):
        return [form.get(slot, F(0)) for slot in self.slots]

    def inputs(self):
        """Every input up to N, a list for each length."""
        shortest = 0 if self.bos or self.at == "every" else 1
        few = "ab" if len(self.alphabet) > 3 else self.alphabet
        lengths = range(shortest, self.N + 1)
        return tuple(tuple(itertools.product(few, repeat=n)) for n in lengths)

    # Thresholds

    def probe(self, form):
        """What a form is exactly, and in the format, on some inputs: at the last or every row."""
        probe = self.model(tf.RealVector(W_out=[self.row(form)], at="last"))
        ideal, found = Ideal(probe), []
        every = [x for xs in self.inputs() for x in xs if x or self.bos]
        some = every if len(every) <= PROBED else self.draw.sample(every, PROBED)
        by_length = {}
        for x in some:
            by_length.setdefault(len(x), []).append(x)
        w = probe.read_out.rounded(self.a)
        rows = slice(None if self.every_row else -1, None)
        for inputs in by_length.values():
            *_, (_, z) = probe.streams(inputs, self.a)
            near = self.a.affine(z[:, rows], w.W_out, w.b_out)[..., 0]
            for x, row in zip(inputs, near.tolist(), strict=True):
                found += zip([y for (y,) in ideal.read(x, rows)], row, strict=True)
        return found

    every_row = False

    def threshold(self, form):
        """Where a form is compared, and how: `half`-way, `wrong`, `near` a value, or a `tie`."""
        pairs = self.probe(form)
        values = sorted({v for v, _ in pairs})
        gaps = [b - a for a, b in itertools.pairwise(values)] or [F(1)]
        least = min(gaps)
        mode = "half"
        if not self.benign or self.chance(0.1):
            mode = self.draw.choices(("wrong", "near", "half", "tie"), (10, 3, 3, 4))[0]
        self.tried, self.sign = mode, 0
        if mode == "wrong":
            known = set(values)
            off = [(v, F(x)) for v, x in pairs if np.isfinite(x) and F(x) != v]
            for v, x in self.draw.sample(off, min(3, len(off))):
                share = self.pick(F(1, 2), F(1, 64), F(63, 64), F(1, 4), F(3, 4))
                if self.off_grid or self.chance(0.4):
                    share += F(1, 3 * 5 * 7 * 41 * 1009)
                t = v + (x - v) * share
                if t not in known:
                    return t, least
        if mode == "tie":
            off = [(v, F(x)) for v, x in pairs if np.isfinite(x) and F(x) != v]
            if off:
                v, x = self.draw.choice(off)
                self.sign = 1 if x > v else -1
                return v, least
            return self.draw.choice(values), least
        low = self.draw.choice(values)
        gap = min((v - low for v in values if v > low), default=least)
        if mode == "near":
            share = F(1, 2 ** self.draw.randint(1, 12))
            return low + self.pick(share, 1 - share) * gap, least
        if mode == "half" and self.chance(0.6):  # of a grid on which all values are
            whole = math.lcm(*(v.denominator for v in values))
            gap = F(1, whole) if not whole & (whole - 1) else F(31, 32 * whole)
            if self.benign and self.chance(0.25):
                return values[-1] + gap * self.draw.randint(1, 3) / 2, least
        return low + gap / 2, least

    # Readers

    def reader(self):
        """One of the readers, mostly an answer where the draw is benign."""
        few = ("answer", "every answer")
        return self.draw.choice(few if self.benign and self.chance(0.5) else [*READERS])

    def read(self, form, where):
        """Read a form in one of the ways of `READERS`."""
        self.variant = f"{self.variant} {where}".strip()
        READERS[where](self, form)

    def answer(self, form, t=None):
        """Accept above a threshold."""
        if t is None:
            t, _ = self.threshold(form)
        sign = self.sign or self.pick(1, 1, 1, -1)
        row = [sign * x for x in self.row(form)]
        self.read_out = tf.Binary(W_out=[row], b_out=[-sign * F(t)], at=self.at)


def by_answer(d, form):
    d.answer(form)


def by_every_answer(d, form):
    d.at, d.every_row = "every", True
    d.answer(form)


def by_labels(d, form):
    """Of two or three labels one is 0, one the form less a threshold, and one is below."""
    t, gap = d.threshold(form)
    rows, shifts, labels = [d.row(form), d.row({})], [-t, F(0)], ["x", "y"]
    if d.chance(0.3):  # above by two gaps
        rows.append([2 * x for x in d.row(form)])
        shifts.append(-2 * t - 2 * gap - gap / 2)
        labels.append("z")
    order = list(range(len(rows)))
    d.draw.shuffle(order)
    d.read_out = tf.MultiClass(
        W_out=[rows[k] for k in order],
        b_out=[shifts[k] for k in order],
        labels=tuple(labels[k] for k in order),
        at=d.at,
    )


def by_unit(d, form):
    """Through a ReLU, of which the answer is."""
    d.every_row = True
    t, gap = d.threshold(form)
    d.every_row = False
    into = d.slot("u")
    shift = -t if d.chance(0.3) or d.tried != "half" else -t + gap * d.draw.randint(0, 3)
    d.unit(form, shift, {into: d.pick(1, 1, 2)})
    d.answer({into: F(1)})


def by_step(d, form):
    """Through two units that end."""
    d.every_row = True
    t, gap = d.threshold(form)
    d.every_row = False
    into = d.slot("t")
    if not d.benign and d.chance(0.3):
        gap *= d.pick(F(1, 2), F(1, 4), F(2))
    d.step(form, t, gap, into, falls=d.chance(0.2))
    d.answer({into: F(1)})


def by_head(d, form):
    """As the value of a head."""
    into = d.fetch(form, mask=d.pick("none", "future", "past"))
    d.answer({into: F(1)})


def by_last(d, form):
    """As the value of a head that takes the row itself."""
    if d.weighting:  # certificates are of heads of one weighting
        return by_head(d, form)
    into = d.fetch(form, mask="future", weighting="rightmost-hard")
    return d.answer({into: F(1)})


def by_units(d, form):
    """Of a unit for each slot, added up in one slot."""
    into = d.slot("u")
    for slot, weight in form.items():
        d.unit({slot: F(1)}, 0, {into: weight})
    d.answer({into: F(1)})


READERS: dict[str, Callable[[Draft, dict], None]] = {
    "answer": by_answer,
    "every answer": by_every_answer,
    "labels": by_labels,
    "unit": by_unit,
    "step": by_step,
    "head": by_head,
    "last": by_last,
    "units": by_units,
}


# Kinds


def constants(d):
    """Slots that hold constants, read beside a number that moves."""
    count = d.draw.randint(1, 5)
    form = {d.constant(d.natural()): d.natural() for _ in range(count)}
    for _ in range(d.draw.randint(1, 2)):
        form[d.embedded()] = d.natural()
    if d.chance(0.2):
        form[d.position("i")] = d.natural()
    d.read(form, d.pick(*READERS))


def cancelling(d):
    """What is large on two paths takes itself away."""
    big = d.power(0, 1) if d.benign else d.power(1, 4) + d.number()
    x = d.embedded(lambda: big + d.whole(0, 3))
    y = d.put([d.words[s][x] - d.whole(0, 2) for s in d.symbols], "y")
    form = {x: F(1), y: F(-1)}
    if d.chance(0.5):
        mask = d.pick("none", "future", "past")
        form = {d.fetch({x: F(1)}, mask=mask): F(1), y: F(-1)}
        if d.chance(0.5):
            form = {
                d.fetch({x: F(1)}, mask=mask): F(1),
                d.fetch({y: F(1)}, mask=d.pick(mask, "none")): F(-1),
            }
    factor = F(1) if d.benign else d.number()
    d.read({slot: w * factor for slot, w in form.items()}, d.pick(*READERS))


def subnormals(d):
    """Weights and numbers about the smallest that the format has."""
    least = d.a.shape.least
    down = d.draw.randint(0, 2) if d.benign else d.draw.randint(0, d.a.precision + 3)
    low = F(2) ** (least + (2 if d.benign else 0) - down)
    up = F(2) ** (d.a.shape.most - d.draw.randint(1, 3)) if d.chance(0.5) else F(1)
    x = d.embedded(lambda: up * (d.whole(0, 3) if d.benign else d.pick(d.whole, d.dyadic)()))
    form = {x: low * (F(1) if d.benign else d.pick(F(1), d.number()))}
    if d.chance(0.4) and not d.benign:
        form = {d.fetch({x: F(1)}, out=low): F(1)}
    if d.chance(0.3):
        y = d.embedded(lambda: low * up * d.whole(0, 3))
        form[y] = d.pick(F(1), F(-1))
    if d.chance(0.3):
        into = d.slot("u")
        (slot, w), *rest = form.items()
        d.unit({slot: w}, 0, {into: d.pick(F(1), 1 / low if d.chance(0.5) else F(2))})
        form = {into: F(1), **dict(rest)}
    d.read(form, d.pick(*READERS))


def scales(d):
    """Huge beside tiny."""
    most, least = d.a.shape.most, d.a.shape.least
    ends = (0, 2) if d.benign else (least, most)
    x = d.embedded(lambda: d.whole(0, 3) * d.power(*ends))
    y = d.embedded(lambda: d.whole(0, 3) * d.power(*ends))
    form = {x: d.power(0, 1), y: d.power(0, 1) * d.pick(1, -1)}
    if not d.benign:
        form = {x: d.power(least - 2, most), y: d.power(least - 2, most) * d.pick(1, -1)}
    if d.chance(0.4):
        form = {d.fetch({slot: F(1)}, mask=d.pick("none", "future")): w for slot, w in form.items()}
    d.read(form, d.pick(*READERS))


def ties(d):
    """Numbers that are equal, answers at their threshold, scores of which several are largest."""
    values = [d.number() for _ in range(2)]
    x = d.embedded(lambda: d.draw.choice(values))
    y = d.embedded(lambda: d.draw.choice(values))
    if d.benign:
        d.put([F(k % 2) for k in range(len(d.symbols))], slot=x)
    if d.chance(0.5):
        return chosen(d, x, y)
    d.variant = "equal"
    d.benign = d.benign and d.chance(0.7)
    d.read({x: F(1), y: d.pick(F(1), F(-1))}, d.pick("answer", "labels", "every answer", "unit"))
    return None


def chosen(d, key, value):
    """A head of one key, of which several are the largest."""
    d.variant = "scores"
    weighting = d.pick("average-hard", "average-hard", "leftmost-hard", "rightmost-hard", "softmax")
    sharp = d.pick(F(1), F(2), F(8)) if d.benign else d.number() or F(1)
    if weighting == "softmax":
        sharp = d.power(2, 4)
    score = [({None: sharp}, {key: F(1)})]
    into = d.fetch({value: F(1)}, mask=masks(d), weighting=weighting, scores=score)
    d.read({into: F(1)}, d.pick("answer", "labels", "unit", "every answer"))


def masks(d):
    if d.bos:
        return d.pick("future", "strict-future", "none", "past")
    return d.pick("none", "future", "past", "strict-future", "strict-past")


def heads(d, most=7):
    """Many heads, alike or not, that add to one slot or to several."""
    count = d.draw.randint(2, 4 if d.benign else most)
    into = d.slot("h")
    big = d.pick(F(1), F(2)) if d.benign else d.power(0, 5)
    mask = masks(d)
    for k in range(count):
        size = big if not k and not d.benign else F(1)
        slot = d.embedded(lambda size=size: size * (d.whole(0, 2) if d.benign else d.number()))
        kind = mask if d.benign or d.chance(0.6) else masks(d)
        d.fetch({slot: F(1)}, into, kind)
    form = {into: F(1)}
    if d.chance(0.3):
        form[d.embedded()] = d.number()
    d.read(form, d.reader())


def repeated(d):
    """A slot to which sums are added again."""
    x = d.embedded(lambda: d.whole(0, 3) if d.benign else d.number())
    into = x if d.chance(0.5) else d.slot("k")
    if into != x:
        d.fetch({x: F(1)}, into, masks(d))
    for _ in range(d.draw.randint(1, 3)):
        y = d.embedded(lambda: d.whole(0, 2) if d.benign else d.number())
        weight = F(1) if d.benign else d.pick(F(1), F(-1), d.number())
        if d.chance(0.4):
            d.fetch({y: F(1)}, into, masks(d), out=weight)
        else:
            d.unit({y: F(1)}, d.whole(-1, 0), {into: weight})
            if d.chance(0.3):
                d.unit({y: F(-1)}, 0, {into: -weight})
        d.layer()
    d.read({into: F(1)}, d.pick(*READERS))


def beside_bos(d):
    """Numbers of BOS apart from those of symbols."""
    x = d.embedded(lambda: d.whole(0, 2) if d.benign else d.number())
    is_bos = d.put([*[0] * len(d.alphabet), 1], "b")
    mask = d.pick("future", "none", "strict-future")
    mean, share = d.fetch({x: F(1)}, mask=mask), d.fetch({is_bos: F(1)}, mask=mask)
    form = {mean: F(1), share: d.whole(-2, 1) if d.benign else d.number()}
    if d.chance(0.4):
        form[x] = d.number()
    d.read(form, d.reader())


def added_constant(d, form, into):
    """The form, rounded by adding and subtracting a constant, where this is above 2^(p−1)."""
    p = d.a.precision
    M = F(5 * 2 ** (p - 3))
    if not d.benign:
        M = d.pick(M, M, F(2 ** (p - 1)), F(2 ** (p - 1) + 1), F(2**p) - d.N, M / 2, M / 4, 2 * M)
    d.unit(form, M, {into: F(1)})
    d.unit({}, M, {into: F(-1)})
    return into


def roundings(d):
    """Multiples of a number in the format's reach, with an error, to which a constant is added."""
    unit = F(1) if d.benign else d.pick(F(1), F(1), F(1, 2), F(2))
    odd = d.pick(3, 5, 7)
    x = d.embedded(lambda: odd * unit * d.whole(0, 3 if d.benign else 6))
    form = {x: F(1, odd)}
    if d.chance(0.3):
        form = {d.fetch({x: F(1, odd)}, mask="none", out=F(1)): F(1)} if not d.benign else form
    if d.chance(0.3):
        form[d.embedded(lambda: unit * d.whole(0, 2))] = F(1) if d.benign else d.number()
    into = added_constant(d, form, d.slot("r"))
    d.read({into: F(1)}, d.reader())


def places(d):
    """Positions from the share of BOS, rounded by a constant, and their squares."""
    flags = [*[F(0)] * len(d.alphabet), F(1)]
    if not d.benign and d.chance(0.4):
        flags[d.pick(0, -1)] = d.pick(F(1), F(9, 8), F(3, 4), F(2), F(1, 4))
    mask = "future" if d.benign or d.chance(0.8) else d.pick("strict-future", "none", "past")
    share, place = d.fetch({d.put(flags, "b"): F(1)}, mask=mask), d.slot("i")
    for j in range(1, d.N + d.pick(1, 1, 1, 2)):
        bent = F(1) if d.benign or d.chance(0.9) else d.pick(F(7, 8), F(17, 16))
        d.unit({share: F(-2 * j) * bent}, 2, {place: F(1)})
    if d.benign or d.chance(0.7):
        place = added_constant(d, {place: F(1)}, d.slot("r"))
    form = {place: F(1)}
    if d.chance(0.4):
        square = d.slot("q")
        d.unit({place: F(1)}, 0, {square: F(1)})
        for j in range(1, d.N):
            d.unit({place: F(1)}, -j, {square: F(2)})
        form = {square: F(1)}
        if d.chance(0.5):
            form[place] = F(d.draw.randint(-3, 3))
    if d.chance(0.3):
        form[d.embedded(lambda: d.whole(0, 2))] = F(1)
    d.read(form, d.reader())


def norms(d):
    """A layer with a norm, which certificates may refuse, or without."""
    constants(d) if d.chance(0.5) else cancelling(d)


def steps(d):
    """Steps of what is embedded, or of means, added up."""
    x = d.embedded(lambda: d.whole(0, 3) if d.benign else d.number())
    source = {x: F(1)}
    if d.chance(0.5):
        source = {d.fetch(source, mask=masks(d)): F(1)}
    if d.chance(0.3):
        source[d.embedded(lambda: d.whole(0, 2))] = F(1)
    if not d.benign:
        source = {slot: w * d.pick(1, 1, d.number()) for slot, w in source.items()}
    into, d.every_row, done = d.slot("t"), True, set()
    for _ in range(d.draw.randint(1, 3)):
        t, gap = d.threshold(source)
        if t in done:
            continue
        done.add(t)
        if d.chance(0.3):
            gap = F(2) ** (gap.numerator.bit_length() - gap.denominator.bit_length() - 1)
        height = F(1) if d.benign else d.pick(1, 1, 1, F(1, 2), -1)
        d.step(source, t, gap, into, height, d.chance(0.2))
        into = into if d.chance(0.5) else d.slot("t")
    d.every_row = False
    written = [slot for slot in d.slots if slot.startswith("t")]
    d.read(
        {slot: d.pick(F(1), F(-1), F(2)) for slot in written}, d.pick("answer", "labels", "head")
    )


def balances(d):
    """Means with one weight for every key, and hidden units that subtract from a number alone."""
    if len(d.alphabet) < 3:
        d.N = max(d.N, d.pick(2, 3, 4))
    x = d.embedded(lambda: d.whole(-2, 2) * (F(1) if d.benign else d.pick(F(1), F(1), F(7, 8))))
    if d.bos and d.chance(0.6):
        d.words["BOS"][x] = F(0)
    mean = d.fetch({x: F(1)}, mask=masks(d), weighting=d.pick("softmax", "average-hard"))
    form = {mean: d.pick(F(1), F(-1))}
    if d.chance(0.3):  # the magnitude
        size = d.slot("m")
        for sign in (F(1), F(-1)):
            d.unit({mean: sign}, 0, {size: F(1)})
        form = {size: F(1)}
    elif d.chance(0.3):
        form[d.fetch({d.embedded(lambda: d.whole(0, 1)): F(1)}, mask=d.pick("none", "future"))] = F(
            -1
        )
    if d.chance(0.6):  # ReLU(2ᵏ y − t), alone or less another
        (slot, sign), into = next(iter(form.items())), d.slot("u")
        k, bits = d.draw.randint(0, 3), d.draw.randint(0, d.a.precision + d.draw.randint(0, 3))
        t = F(d.draw.randint(1, 2 ** min(bits, 3)), 2**bits) * 2**k
        d.unit({slot: sign * 2**k}, -t, {into: F(1)})
        if d.chance(0.6):
            d.unit(
                {slot: sign * 2**k},
                -t - d.pick(F(1, 2), F(1), t) * 2 ** d.pick(0, -k),
                {into: F(-1)},
            )
        form = {into: F(1)}
        if d.chance(0.3):
            form = {d.fetch(form, mask=d.pick("none", "future")): F(1)}
    d.read(form, d.pick("answer", "answer", "every answer", "labels", "step", "unit", "head"))


def lookups(d):
    """Scores 2 q j − j² of a place."""
    place, square = d.position("i"), d.position("i^2")
    value = d.embedded(lambda: d.whole(0, 3) if d.benign else d.number())
    sharp = d.pick(F(1), F(2), F(4), F(8)) if d.benign else d.pick(d.power(-3, 5), abs(d.number()))
    top = max(1, d.N)
    index = d.put([d.whole(0 if d.bos else 1, top) for _ in d.symbols], "q")
    query = {index: 2 * sharp}
    if d.chance(0.4):
        query = {place: 2 * sharp, None: 2 * sharp * d.pick(-1, 0, 1)}
    if not d.benign and d.chance(0.3):
        query[d.constant(d.odd())] = sharp * d.pick(F(1, 8), F(1))
    score = [(query, {place: F(1)}), ({None: -sharp}, {square: F(1)})]
    weighting = d.pick("average-hard", "softmax", "average-hard", "rightmost-hard")
    into = d.fetch({value: F(1)}, mask=masks(d), weighting=weighting, scores=score)
    d.read({into: F(1)}, d.pick("answer", "labels", "every answer"))


def matches(d):
    """Scores of keys that are equal, with a place or without."""
    key = d.embedded(lambda: d.whole(0, 1) if d.benign else d.whole(-1, 2))
    query = key if d.chance(0.4) else d.embedded(lambda: d.whole(0, 1))
    value = d.embedded(lambda: d.whole(0, 3) if d.benign else d.number())
    c = d.power(0, 3) if d.benign else d.pick(d.power(-3, 5), abs(d.number()))
    weighting = d.pick("average-hard", "softmax", "average-hard", "leftmost-hard", "rightmost-hard")
    with_place = d.chance(0.5)
    D = F(d.N + d.draw.randint(1, 3)) if with_place else F(1)
    score = [({None if d.chance(0.3) else query: c * D}, {key: F(1)})]
    if with_place:
        score.append(({None: c}, {d.position("i"): d.pick(F(1), F(-1))}))
        weighting = d.pick("average-hard", "softmax")
    into = d.fetch({value: F(1)}, mask=masks(d), weighting=weighting, scores=score)
    d.read({into: F(1)}, d.pick("answer", "labels", "every answer", "head"))


def wins(d):
    """Comparisons of means of symbols, sums of them, and comparisons of these sums."""
    size, into = len(d.symbols), masks(d)
    weighting = d.pick("softmax", "average-hard")
    means = [
        d.fetch(
            {d.put([F(k == m) for m in range(size)], "f"): F(1)},
            mask=into if d.benign or d.chance(0.7) else masks(d),
            weighting=weighting,
        )
        for k in range(size)
    ]
    gap = F(1, 2 ** max(1, d.N.bit_length() + (0 if d.benign else d.pick(-1, 0, 0, 1))))
    sums = [d.slot("r") for _ in range(d.draw.randint(1, 2))]
    d.layer()
    pairs = [(a, b) for a in means for b in means if a != b] or [(means[0], d.slots[0])]
    for a, b in d.draw.sample(pairs, min(len(pairs), d.draw.randint(1, 5))):
        height = F(1) if d.benign else d.pick(1, 1, 1, 2, F(1, 2))
        for shift, sign in ((0, 1), (-height, -1)):
            out = {each: F(sign * (1 if b < a else -1)) for each in sums}
            d.unit({a: 2 / gap, b: -2 / gap}, shift - F(1, 2), out)
    found = d.slot("t")
    for each in sums:
        d.layer()
        form = {each: F(d.pick(1, 1, -1))}
        if d.chance(0.3):
            form[d.slots[0]] = F(d.pick(1, -1))
        d.step(form, d.draw.randint(-2, 1) + F(1, 2), F(1), found, d.pick(1, 1, -1))
    if d.chance(0.4):
        d.layer()
        again = d.slot("t")
        d.step({found: F(1)}, d.draw.randint(-1, 1) + F(1, 2), F(1), again)
        found = again
    if d.chance(0.3):
        found = d.fetch({found: F(1)}, mask=masks(d), weighting=weighting)
    d.read({found: F(1)}, d.pick("answer", "every answer", "unit"))


# Holes that certificates once had, each where a number is read in each of several ways.


def constant_products(d, where):
    """A constant slot times a weight is not the exact product."""
    k = d.pick(2, 4, 8) if d.benign else d.draw.randrange(3, 2 ** min(d.a.precision, 6), 2)
    x = d.alternating(d.whole(1, 2), d.whole(3, 4))
    c = d.constant(F(1, k))
    d.read({c: F(-k), x: F(1)}, where)


def roundings_of_heads(d, where):
    """Each head is stored, not each kind of head."""
    count = d.draw.randint(2, 3) if d.benign else d.draw.randint(6, 24)
    into, mask = d.slot("h"), d.pick("none", "future", "past")
    big = F(4) if d.benign else d.power(2, d.a.shape.most - 4)
    p = d.a.precision
    half = F(1) if d.benign else big / 2**p  # of the unit in the last place
    parts = d.draw.sample(range(max(1, 2 ** (p - 1) - 2 * count), 2 ** (p - 1)), count)
    for k, part in enumerate(parts):
        small = F(k) if d.benign else half * F(part, 2 ** (p - 1))
        d.fetch({d.constant(small if k else big): F(1)}, into, mask)
    x = d.alternating(F(8), F(16)) if d.benign else d.alternating(half / 2, half)
    d.fetch({x: F(1)}, into, mask)
    d.read({into: F(1)}, where)


def constant_summands(d, where):
    """Summands that are constant round as others do."""
    count = d.draw.randint(1, 3) if d.benign else d.draw.choice((8, 16, 32, 64, 100))
    c = F(1, 2) if d.benign else d.pick(F(1, 3), F(1, 5), abs(d.long()), F(1, 7))
    if d.benign and d.chance(0.5):
        moving = c
    else:  # beside which the constants are lost
        d.off_grid = True
        moving = c * F(2) ** d.draw.randint(0, d.a.precision + 2)
    first = {d.alternating(moving, 2 * moving): F(1)} if d.chance(0.7) else {}
    form = first | {d.constant(c): F(1) for _ in range(count)}
    if not first:
        form[d.alternating(moving, 2 * moving)] = F(1)
    d.read(form, where)


def summed_queries(d, where):
    """A query sums slots, and each summand rounds."""
    x = d.put([F(k % 2) for k in range(len(d.symbols))], "k")
    y = d.put([1 - d.words[s][x] for s in d.symbols], "k")
    f = d.power(0, 1) if d.benign else d.pick(F(3, 11), F(5, 13), F(9, 11), F(10, 13))
    low, high = d.pick((0, 1), (1, 0), (1, 2))
    total = {s: F((low, high)[k % 2]) for k, s in enumerate(d.symbols)}
    one = {d.put([*total.values()], "q"): f}
    if not d.benign:  # the same, of several that take each other away
        rest, one = dict(total), {}
        count = d.draw.randint(1, 3)
        most = 2 ** (d.a.precision - 1) // count
        for _ in range(count):
            large = {s: F(d.draw.randint(most // 2, most - 2)) for s in d.symbols}
            one[d.put([*large.values()], "q")] = f
            rest = {s: rest[s] - large[s] for s in rest}
        one[d.put([*rest.values()], "q")] = f
    same = d.chance(0.7)
    other = {d.put([total[s] if same else d.whole(1, 2) for s in d.symbols], "q"): f}
    value = d.alternating(*d.pick((0, 1), (1, 0)), "v")
    if where in ("rightmost", "leftmost"):
        D = F(d.N + d.draw.randint(0, 5))
        score = [({s: D * w for s, w in q.items()}, {k: F(1)}) for q, k in ((one, x), (other, y))]
        score.append(({None: f}, {d.position("i"): F(1 if where == "rightmost" else -1)}))
        if d.chance(0.2):
            del score[1]
        weighting = d.pick("average-hard", "average-hard", "softmax")
    else:
        score = [(one, {x: F(1)}), (other, {y: F(1)})][: d.draw.randint(1, 2)]
        score += [({}, {})] * (len(score) == 2) * 2  # √d_key is 1 or 2
        weighting = where
    into = d.fetch({value: F(1)}, mask=d.pick("none", "future"), weighting=weighting, scores=score)
    d.variant = f"{d.variant} {where}".strip()
    by_answer(d, {into: F(1)})


def small_weights(d, where):
    """A weight that is subnormal, or 0 in the format, is not as large as it was."""
    least = d.a.shape.least
    if d.benign:
        low, up = F(2) ** (least + 2), F(2)
    else:
        p = d.a.precision
        low = F(2) ** (least - d.draw.randint(*d.pick((0, p + 2), (p - 2, p + 1), (p, p + 1))))
        low *= d.pick(F(1), F(1), F(3, 2), F(5, 4), F(7, 4))
        up = F(2) ** d.draw.randint(d.a.shape.most - 3, d.a.shape.most - 1)
    x = d.alternating(up, up * F(3, 2))
    if where in READERS:
        return d.read({x: low}, where)
    d.variant = where
    if where == "value":
        form = {d.fetch({x: low}): F(1)}
    elif where == "output":
        form = {d.fetch({x: F(1)}, out=low): F(1)}
    elif where == "second":
        into = d.slot("u")
        d.unit({x: F(1)}, 0, {into: low})
        form = {into: F(1)}
    else:
        into = d.slot("w")
        for symbol in d.symbols:
            d.words[symbol][into] = d.words[symbol].pop(x) * low
        form = {into: up}
    return by_answer(d, form)


def ranges_beyond(d, where):
    """What a slot holds on short inputs, which are all that are observed, is not all it holds.

    There are so many symbols that only inputs of one of them are observed.
    """
    d.variant = where
    i = d.put([0] * len(d.symbols), "p")
    d.positions[i] = "i"
    first = d.put([1] + [0] * (len(d.symbols) - 1), "a")
    if where == "units":
        d.unit({first: F(1)}, 0, {i: F(1)})
        if not d.benign:
            d.unit({i: F(1), first: -F(d.N)}, -F(1, 2), {i: F(2)})
    elif where == "mean":
        d.fetch({first: F(1)}, i, "future", "softmax")
    elif where == "square":
        j = d.put([0] * len(d.symbols), "p")
        d.positions[j] = "i^2"
        d.fetch({first: F(1)}, j, "future", "average-hard")
        i = j
    else:
        d.fetch({first: F(1)}, i, "future", where)
    if d.benign:
        d.read({i: F(1)}, "answer")
        return
    read = {i: F(1)}
    if d.chance(0.5):  # beyond what the format counts to
        big = F(2) ** d.a.precision
        into = d.slot("y")
        d.layer()
        d.unit(read, -F(d.observed), {into: big})
        d.unit({first: F(1)}, 0, {into: F(1)})
        read = {into: F(1)}
        d.variant += " beyond"
    by_answer(d, read)


def coarse_sums(d, where):
    """So many roundings that together they are as large as what is rounded."""
    count = d.draw.randint(2, 4) if d.benign else d.draw.randint(5, 12)
    ends = [(j, k) for j in range(6) for k in range(6) if j != k]
    columns = d.draw.sample(ends, count)
    slots = [d.alternating(F(j), F(k), "v") for j, k in columns]
    form = {slot: F(1) for slot in slots}
    if d.chance(0.5):  # each by a head of its own kind
        d.weighting = "average-hard"
        into = d.slot("h")
        for k, slot in enumerate(slots):
            score = [({None: F(1)}, {slot: F(1)})] if k > 2 else ()
            d.fetch({slot: F(1)}, into, ("none", "future", "past")[k % 3], scores=score)
        form = {into: F(1)}
    d.read(form, where)


Draft.observed = 1

MANY = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM"
"""So many symbols that of the inputs of two of them too many are there to be observed."""

HOLES = {
    "D1": (constant_products, tuple(READERS)),
    "D2": (
        roundings_of_heads,
        ("answer", "every answer", "labels", "unit", "step", "head", "last"),
    ),
    "D3": (constant_summands, tuple(READERS)),
    "D4": (
        summed_queries,
        ("rightmost", "leftmost", "average-hard", "rightmost-hard", "leftmost-hard", "softmax"),
    ),
    "D5": (
        small_weights,
        ("answer", "labels", "unit", "step", "head", "value", "output", "second", "embedding"),
    ),
    "D7": (coarse_sums, ("answer", "labels", "every answer", "unit")),
    "D6": (
        ranges_beyond,
        ("rightmost-hard", "leftmost-hard", "units", "mean", "square", "softmax"),
    ),
}
"""The holes of certificates before, each with where it is looked for."""

COSTLY = (
    "heads",
    "repeated",
    "beside_bos",
    "steps",
    "matches",
    "cancelling",
    "norms",
    "constants",
    "roundings",
    "places",
    "balances",
    "wins",
    "D2",
    "D3",
    "D5",
)
"""Kinds of several parts, for which few formats leave a margin."""

SUITED = {
    "D2": ("p7e5-wide-clamping", "p8e5-wide", "p11e5-wide"),
    "D4": ("p8e5-own", "p9e5-own"),
    "D7": ("p3e5-own", "p3e5-wide"),
}
"""The formats in which holes with several parts leave a margin."""

KINDS = {
    each.__name__: each
    for each in (
        constants, cancelling, subnormals, scales, ties, heads, repeated, beside_bos, norms, steps,
        lookups, matches, roundings, places, balances, wins,
    )
}  # fmt: skip

ALL = (*KINDS, *HOLES)


def drawn(kind: str, seed: int) -> Drawn:
    """The model of a kind and a seed. A draw that cannot be evaluated at all is drawn anew."""
    for attempt in itertools.count():
        draw = random.Random(f"{kind} {seed} {attempt}")
        try:
            return _drawn(kind, seed, draw)
        except TransformistError:
            continue
    raise AssertionError


def _drawn(kind, seed, draw):
    benign = draw.random() < (0.7 if kind in COSTLY else 0.55)
    formats = [*FORMATS.values()]
    if benign or draw.random() < 0.1:
        least = 7 if kind in COSTLY else 5
        formats = [each for each in formats if each.precision >= least and each.shape.most > 7]
        formats += [*LONGER.values()] * (3 if kind in COSTLY else 1)
    if benign and kind in ("heads", "beside_bos"):
        formats = [FORMATS["p6e5-wide"], *LONGER.values(), *[LONGER["p11e5-wide"]] * 6]
    if kind in SUITED and not (kind == "D7" and benign):
        formats = [FORMATS.get(name) or LONGER[name] for name in SUITED[kind]]
    a = draw.choice(formats)
    bos = kind in ("beside_bos", "places") or (kind not in HOLES and draw.random() < 0.25)
    alphabet = "abc"[: draw.choice((1, 2, 2, 2, 3))]
    N = draw.choice({1: (1, 2, 3, 4), 2: (1, 2, 3, 4), 3: (1, 2, 3)}[len(alphabet)])
    if kind == "D4" or (
        kind in ("matches", "ties", "lookups", "D1", "D2", "D3", "D5", "D7") and draw.random() < 0.9
    ):
        alphabet, N = "ab", {"D4": 2, "D2": 1, "D7": 1}.get(kind) or draw.randint(1, 3)
    if kind == "D6":
        alphabet, N = MANY, draw.choice((2, 3, 4, 6))
    if benign and kind in COSTLY:
        N = min(N, 2)
    d = Draft(draw, a, benign, alphabet, N, bos)
    place = ""
    if kind in HOLES:
        make, places = HOLES[kind]
        place = draw.choice(places)
        make(d, place)
    else:
        KINDS[kind](d)
    model = d.model()
    if kind == "norms" and draw.random() < (0.2 if benign else 0.7):
        model = with_norm(model, draw)
    order = draw.choice(("any", "any", "any", "any", "any", "reference", "reference", "flash"))
    variant = f"{d.variant}, {'benign' if benign else 'sharp'}, {d.tried}"
    return Drawn(kind, seed, variant, model, a, order, d.inputs(), place)


def with_norm(model, draw):
    """A norm before or after a sublayer, or after the last."""
    from dataclasses import replace

    norm = tf.LayerNorm(gain=[1] * model.width, epsilon=F(1, 4))
    if not model.layers or draw.random() < 0.3:
        return replace(model, final_norm=norm)
    first, *others = model.layers
    index = 0 if first.heads else 1
    norms = (norm, None) if index == 0 else (None, norm)
    which = draw.choice(("pre_norms", "post_norms"))
    return replace(model, layers=(replace(first, **{which: norms}), *others))
