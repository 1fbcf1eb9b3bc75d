"""What a transformer computes in rational numbers, with average-hard attention for softmax.

Written from the definitions (2.1 to 2.5, 5.1, 6.1 of the Cookbook): of the library it reads the
weights of a model and nothing else, so that no mistake is shared. A norm has a root, which is taken
to 2⁻²⁰⁰ of itself where it is irrational; an answer that this does not settle is `None`.

The vectors of an input are whole numbers over one denominator: Python adds and multiplies these
faster than fractions.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Vectors:
    """Vectors of rational numbers: rows of whole numbers, over one denominator."""

    rows: list[list[int]]
    denominator: int = 1

    @classmethod
    def of(cls, rows):
        """Rows of floats or fractions, each taken exactly."""
        ratios = [[x.as_integer_ratio() for x in row] for row in rows]
        denominator = math.lcm(*(q for row in ratios for _, q in row))
        return cls([[p * (denominator // q) for p, q in row] for row in ratios], denominator)

    @classmethod
    def sum(cls, parts):
        """The sum of several, in lowest terms."""
        common = math.lcm(*(part.denominator for part in parts))
        scaled = [part.times(common // part.denominator) for part in parts]
        rows = [[*map(sum, zip(*same, strict=True))] for same in zip(*scaled, strict=True)]
        divisor = math.gcd(common, *(x for row in rows for x in row))
        return cls([[x // divisor for x in row] for row in rows], common // divisor)

    def times(self, factor):
        if factor == 1:
            return self.rows
        return [[x * factor for x in row] for row in self.rows]

    def fractions(self):
        return [[Fraction(x, self.denominator) for x in row] for row in self.rows]


class Affine:
    """W z + b, of which only what is not 0 is kept."""

    def __init__(self, matrix, shift):
        scaled = Vectors.of([*matrix.tolist(), shift.tolist()])
        *rows, self.shift = scaled.rows
        self.rows = [[(k, x) for k, x in enumerate(row) if x] for row in rows]
        self.denominator = scaled.denominator
        self.is_zero = not any(self.rows) and not any(self.shift)

    def __call__(self, z):
        terms = [*zip(self.rows, [b * z.denominator for b in self.shift], strict=True)]
        found = [[sum([w * row[k] for k, w in used], b) for used, b in terms] for row in z.rows]
        return Vectors(found, self.denominator * z.denominator)


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
        embedding, read_out = model.embedding, model.read_out
        self.read_out = Affine(read_out.W_out, read_out.b_out)
        words = Vectors.of(embedding.vectors.tolist())
        self.words = dict(zip(embedding.symbols, words.rows, strict=True))
        self.of_words, self.places = words.denominator, {}

    @staticmethod
    def _head(head):
        return (
            Affine(head.W_Q, head.b_Q),
            Affine(head.W_K, head.b_K),
            Affine(head.W_V, head.b_V),
            head.W_O is not None and Affine(head.W_O, head.b_O),
            Vectors.of([head.b_O.tolist()]),
            head.weighting,
            SEEN[head.mask],
        )

    @staticmethod
    def _network(network):
        assert network.activation == "relu"
        return Affine(network.W_1, network.b_1), Affine(network.W_2, network.b_2)

    def embedded(self, x):
        embedding = self.model.embedding
        symbols = (*embedding.front, *x, *embedding.back)
        words = Vectors([self.words[symbol] for symbol in symbols], self.of_words)
        if embedding.positions is None:
            return words
        n, first = len(x), 1 - len(embedding.front)
        if n not in self.places:
            self.places[n] = Vectors.of(
                [0 if name is None else PLACES[name](i, n) for name in embedding.positions.names]
                for i in range(first, first + len(symbols))
            )
        return Vectors.sum([words, self.places[n]])

    def attend(self, head, z):
        query, key, value, output, shift, weighting, sees = head
        n, values = len(z.rows), value(z)
        if query.is_zero:
            score = [[0] * n] * n
        else:  # over one denominator, which changes neither order nor ties
            queries, keys = query(z).rows, key(z).rows
            score = [[sum(map(operator.mul, a, b)) for b in keys] for a in queries]
        chosen = []
        for i in range(n):
            seen = [j for j in range(n) if sees(i, j)]
            best = max((score[i][j] for j in seen), default=0)
            largest = [j for j in seen if score[i][j] == best]
            if weighting == "leftmost-hard":
                largest = largest[:1]
            elif weighting == "rightmost-hard":
                largest = largest[-1:]
            chosen.append(largest)
        common = math.lcm(*(len(js) for js in chosen if js))
        mixed = [
            [
                sum(column) * (common // len(js))
                for column in zip(*[values.rows[j] for j in js], strict=True)
            ]
            or [0] * len(value.rows)
            for js in chosen
        ]
        mixed = Vectors(mixed, values.denominator * common)
        if output:
            return output(mixed)
        return Vectors.sum([mixed, Vectors(shift.rows * n, shift.denominator)])

    def norm(self, norm, z):
        """(x − μ)/√(σ² + ε) γ + β for each row."""
        if norm is None:
            return z
        if norm.W_N is not None:
            z = Affine(norm.W_N, norm.bias * 0)(z)
        found = []
        for row in z.fractions():
            mean = sum(row) / len(row)
            off = [x - mean for x in row]
            variance = sum(x * x for x in off) / len(row)
            deviation, exact = root(variance + Fraction(norm.epsilon.item()))
            self.is_exact &= exact
            gains = zip(off, norm.gain.tolist(), norm.bias.tolist(), strict=True)
            found.append([x / deviation * Fraction(g) + Fraction(b) for x, g, b in gains])
        return Vectors.of(found)

    def final(self, x):
        """The vectors after the last layer."""
        self.is_exact = True
        z = self.embedded(x)
        for heads, network, pre, post in self.layers:
            if heads:
                given = self.norm(pre[0], z)
                z = Vectors.sum([z, *(self.attend(head, given) for head in heads)])
                z = self.norm(post[0], z)
            if network:
                first, second = network
                hidden = first(self.norm(pre[1], z))
                active = [[max(each, 0) for each in row] for row in hidden.rows]
                z = Vectors.sum([z, second(Vectors(active, hidden.denominator))])
                z = self.norm(post[1], z)
        return self.norm(self.model.final_norm, z)

    def read(self, x, rows):
        """W_out z + b_out at some rows of the vectors after the last layer."""
        z = self.final(x)
        return self.read_out(Vectors(z.rows[rows], z.denominator)).fractions()

    def values(self, x):
        """W_out z + b_out at the rows that are read."""
        front = len(self.model.embedding.front)
        is_every = self.model.read_out.at == "every"
        return self.read(x, slice(front, front + len(x)) if is_every else slice(-1, None))

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
