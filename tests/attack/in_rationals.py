"""What a transformer computes in rational numbers, with average-hard attention for softmax.

Written from the definitions (2.1 to 2.5, 5.1, 6.1 of the Cookbook): of the library it reads the
weights of a model and nothing else, so that no mistake is shared. A norm has a root, which is taken
to 2⁻²⁰⁰ of itself where it is irrational; an answer that this does not settle is `None`.
"""

from __future__ import annotations

import math
from fractions import Fraction

ROOT_BITS = 200

PLACES = {
    "1": lambda i, n: Fraction(1),
    "i": lambda i, n: Fraction(i),
    "i^2": lambda i, n: Fraction(i * i),
    "i^3": lambda i, n: Fraction(i**3),
    "1/i": lambda i, n: Fraction(1, i),
    "-1/i": lambda i, n: -Fraction(1, i),
    "i/n": lambda i, n: Fraction(i, n) if i else Fraction(0),
    "-i/n": lambda i, n: -Fraction(i, n) if i else Fraction(0),
    "(-1)^i": lambda i, n: Fraction(-1 if i % 2 else 1),
}

SEEN = {
    "none": lambda i, j: True,
    "future": lambda i, j: j <= i,
    "strict-future": lambda i, j: j < i,
    "past": lambda i, j: j >= i,
    "strict-past": lambda i, j: j > i,
}


class Affine:
    """W z + b, of which only what is not 0 is kept."""

    def __init__(self, matrix, shift):
        self.rows = [[(k, Fraction(x)) for k, x in enumerate(row) if x] for row in matrix.tolist()]
        self.shift = [Fraction(x) for x in shift.tolist()]

    def __call__(self, z):
        return [
            sum((w * z[k] for k, w in row), b) for row, b in zip(self.rows, self.shift, strict=True)
        ]


def root(x: Fraction) -> tuple[Fraction, bool]:
    """√x to ROOT_BITS bits, and whether that is exact."""
    p, q = math.isqrt(x.numerator), math.isqrt(x.denominator)
    if p * p == x.numerator and q * q == x.denominator:
        return Fraction(p, q), True
    scale = 4**ROOT_BITS
    return Fraction(math.isqrt(x.numerator * scale // x.denominator), 2**ROOT_BITS), False


class Ideal:
    """A transformer, in rational numbers."""

    def __init__(self, model):
        self.model, self.is_exact = model, True
        self.layers = [
            (
                [self._head(head) for head in layer.heads],
                layer.feed_forward and self._network(layer.feed_forward),
                layer.pre_norms,
                layer.post_norms,
            )
            for layer in model.layers
        ]
        read_out = model.read_out
        self.read_out = Affine(read_out.W_out, read_out.b_out)
        symbols, vectors = model.embedding.symbols, model.embedding.vectors.tolist()
        self.words = {
            symbol: [Fraction(x) for x in row] for symbol, row in zip(symbols, vectors, strict=True)
        }

    @staticmethod
    def _head(head):
        return (
            Affine(head.W_Q, head.b_Q),
            Affine(head.W_K, head.b_K),
            Affine(head.W_V, head.b_V),
            head.W_O is not None and Affine(head.W_O, head.b_O),
            [Fraction(x) for x in head.b_O.tolist()],
            head.weighting,
            SEEN[head.mask],
        )

    @staticmethod
    def _network(network):
        assert network.activation == "relu"
        return Affine(network.W_1, network.b_1), Affine(network.W_2, network.b_2)

    def embedded(self, x):
        embedding = self.model.embedding
        n, first = len(x), 1 - len(embedding.front)
        rows = [self.words[symbol] for symbol in (*embedding.front, *x, *embedding.back)]
        if embedding.positions is None:
            return rows
        names = embedding.positions.names
        return [
            [
                value if name is None else value + PLACES[name](i, n)
                for value, name in zip(row, names, strict=True)
            ]
            for i, row in enumerate(rows, start=first)
        ]

    def attend(self, head, z):
        query, key, value, output, shift, weighting, sees = head
        values = [value(each) for each in z]
        if any(query.rows) or any(query.shift):
            queries, keys = [query(each) for each in z], [key(each) for each in z]
            score = [
                [sum(p * q for p, q in zip(a, b, strict=True) if p and q) for b in keys]
                for a in queries
            ]
        else:
            score = [[0] * len(z)] * len(z)
        found = []
        for i in range(len(z)):
            seen = [j for j in range(len(z)) if sees(i, j)]
            if not seen:
                mixed = [Fraction(0)] * len(value.rows)
            else:
                best = max(score[i][j] for j in seen)
                chosen = [j for j in seen if score[i][j] == best]
                if weighting == "leftmost-hard":
                    chosen = chosen[:1]
                elif weighting == "rightmost-hard":
                    chosen = chosen[-1:]
                mixed = [
                    sum(column) / len(chosen)
                    for column in zip(*(values[j] for j in chosen), strict=True)
                ]
            found.append(
                output(mixed) if output else [x + b for x, b in zip(mixed, shift, strict=True)]
            )
        return found

    def norm(self, norm, z):
        """(x − μ)/√(σ² + ε) γ + β for each row."""
        if norm is None:
            return z
        found = []
        for row in z:
            if norm.W_N is not None:
                row = Affine(norm.W_N, norm.bias * 0)(row)
            mean = sum(row) / len(row)
            off = [x - mean for x in row]
            variance = sum(x * x for x in off) / len(row)
            deviation, exact = root(variance + Fraction(norm.epsilon.item()))
            self.is_exact &= exact
            gains = zip(off, norm.gain.tolist(), norm.bias.tolist(), strict=True)
            found.append([x / deviation * Fraction(g) + Fraction(b) for x, g, b in gains])
        return found

    def final(self, x):
        """The vectors after the last layer."""
        self.is_exact = True
        z = self.embedded(x)
        for heads, network, pre, post in self.layers:
            if heads:
                given = self.norm(pre[0], z)
                parts = [self.attend(head, given) for head in heads]
                z = [
                    [sum(xs) for xs in zip(*rows, strict=True)]
                    for rows in zip(z, *parts, strict=True)
                ]
                z = self.norm(post[0], z)
            if network:
                first, second = network
                hidden = [
                    [max(each, Fraction(0)) for each in first(row)] for row in self.norm(pre[1], z)
                ]
                z = [
                    [old + new for old, new in zip(row, second(h), strict=True)]
                    for row, h in zip(z, hidden, strict=True)
                ]
                z = self.norm(post[1], z)
        return self.norm(self.model.final_norm, z)

    def values(self, x):
        """W_out z + b_out at the rows that are read."""
        front, z = len(self.model.embedding.front), self.final(x)
        if self.model.read_out.at == "every":
            return [self.read_out(row) for row in z[front : front + len(x)]]
        return [self.read_out(z[-1])]

    def answer(self, x):
        """A truth or a label, a list of them where every position is read; `None` if unsettled."""
        read_out = self.model.read_out
        found = [self.decided(y) for y in self.values(x)]
        if any(each is None for each in found):
            return None
        if read_out.at != "every":
            return found[0]
        labels = getattr(read_out, "labels", ())
        is_text = all(isinstance(label, str) and len(label) == 1 for label in labels)
        return "".join(found) if labels and is_text else found

    def decided(self, y):
        close = Fraction(1, 2 ** (ROOT_BITS // 2))
        if not hasattr(self.model.read_out, "labels"):
            settled = self.is_exact or abs(y[0]) > close
            return y[0] > 0 if settled else None
        first, *rest = sorted(y, reverse=True)
        if not self.is_exact and rest and first - rest[0] <= close:
            return None
        return self.model.read_out.labels[y.index(first)]


def answers(model, inputs):
    ideal = Ideal(model)
    return [ideal.answer(x) for x in inputs]
