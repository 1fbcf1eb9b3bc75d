"""A format's answers: by the reference, by sums in any order and grouping, and as GPU kernels do.

`Reference` is `Transformer.values`. `Permuted` is another evaluation of the same definition, which
draws the order and grouping of every sum: of products, of a softmax, of weighted values, of heads.
`Flash` is attention as fused kernels have it: keys in blocks, a running maximum, sums rescaled as
it grows, the probabilities rounded to the format before they are multiplied, division last.
"""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np

_quiet = np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")


class NotANumber(ValueError):
    """What is read out is no number, or a score overflows: a refusal of the evaluation."""


class Reference:
    """As `Transformer.run`, for inputs of one length together."""

    def __init__(self, model, a):
        self.model, self.a = model, a

    def values(self, inputs):
        """The numbers that are read out, float64: (inputs, positions read, k)."""
        *_, (_, z) = self.model.streams(inputs, self.a)
        rows = self.model.rows_read(len(inputs[0]))
        return self.a.numbers(self.model.read_out.values(z[:, rows], self.a))

    def answers(self, inputs):
        return decided(self.model, self.values(inputs))


class Permuted:
    """A transformer of a tiny format, every sum in an order of its own.

    The products are rounded in the accumulator, the sum is stored once; heads, which are stored one
    by one, are added in any order; so are the word and the position of an embedding, as two are.
    """

    def __init__(self, model, a, draw):
        self.model, self.a, self.draw = model, a, draw
        self.round = a.partial.round

    def total(self, terms):
        """Arrays, two at a time, in the accumulator."""
        terms = list(terms)
        if self.draw.random() < 0.3:  # one after the other, the order shuffled or turned round
            self.draw.shuffle(terms) if self.draw.random() < 0.7 else terms.reverse()
            return functools.reduce(lambda x, y: self.round(x + y), terms)
        while len(terms) > 1:
            first = terms.pop(self.draw.randrange(len(terms)))
            second = terms.pop(self.draw.randrange(len(terms)))
            terms.append(self.round(first + second))
        return terms[0]

    def affine(self, z, W, b):
        """W z + b, the bias a summand like the others; each row has an order of its own."""
        found, used = np.empty((*z.shape[:-1], len(W))), np.nonzero(W)
        products = self.a.products(z[..., used[1]], W[used])
        terms = [[] for _ in W]
        for k, row in enumerate(used[0].tolist()):
            terms[row].append(products[..., k])
        for row, shift in enumerate(b.tolist()):
            terms[row] += [np.float64(shift)] if shift or not terms[row] else []
            found[..., row] = self.total(terms[row])
        return self.a.stored(found)

    def weights(self, s, admissible, weighting):
        """The weights of attention (..., n, n)."""
        a = self.a
        if weighting != "softmax":
            chosen = a.maximal(s, admissible)
            if weighting == "average-hard":
                return a.divide(chosen * 1.0, a.array(np.maximum(chosen.sum(-1, keepdims=True), 1)))
            turned = chosen if weighting == "leftmost-hard" else chosen[..., ::-1]
            first = (turned & (np.cumsum(turned, axis=-1) == 1)) * 1.0
            return first if weighting == "leftmost-hard" else first[..., ::-1]
        below = a.keep(a.subtract(s, a.maximum(s, admissible)), admissible)
        e = a.keep(self.exp(below), admissible)
        total = a.stored(self.total(e[..., k] for k in range(e.shape[-1])))[..., None]
        return a.divide(e, np.where(admissible.any(-1, keepdims=True), total, 1.0))

    def exp(self, x):
        """eˣ, rounded, and now and then the number beside it: within 2 units in the last place."""
        found = self.a.exp(x)
        moved = np.array([self.draw.choice((-1, 0, 0, 1)) for _ in range(x.size)]).reshape(x.shape)
        step = np.where(found > 0, np.ldexp(1.0, np.frexp(found)[1] - self.a.precision), 0.0)
        beside = self.a._store(found + moved * np.maximum(step, self.a.smallest))
        return np.where((x == 0) | (beside < 0) | (beside > 1), found, beside)

    def scores(self, q, k):
        a = self.a
        products = a.products(q[..., :, None, :], k[..., None, :, :])
        dot = a.stored(self.total(products[..., m] for m in range(products.shape[-1])))
        s = a.divide(dot, a.sqrt(a.array([q.shape[-1]])))
        if not np.isfinite(s).all():
            raise NotANumber("a score")
        return s

    def mixed(self, s, v, admissible, weighting):
        weights = self.weights(s, admissible, weighting)
        products = self.a.products(weights[..., :, :, None], v[..., None, :, :])
        return self.a.stored(self.total(products[..., j, :] for j in range(v.shape[-2])))

    def head(self, head, z):
        w, n = head.rounded(self.a), z.shape[-2]
        q, k, v = (
            self.affine(z, W, b) for W, b in ((w.W_Q, w.b_Q), (w.W_K, w.b_K), (w.W_V, w.b_V))
        )
        j = np.arange(n)
        admissible = np.broadcast_to(head.mask.admissible(j[:, None], j[None, :]), (len(z), n, n))
        c = self.mixed(self.scores(q, k), v, admissible, head.weighting)
        if w.W_O is not None:
            return self.affine(c, w.W_O, w.b_O)
        return self.a.add(c, w.b_O) if w.b_O.any() else c

    def network(self, network, z):
        w = network.rounded(self.a)
        return self.affine(np.maximum(self.affine(z, w.W_1, w.b_1), 0.0), w.W_2, w.b_2)

    def norm(self, norm, z):
        """(x − μ)/√(σ² + ε) γ + β, both sums in any order."""
        if norm is None:
            return z
        a, w = self.a, norm.rounded(self.a)
        if w.W_N is not None:
            z = self.affine(z, w.W_N, np.zeros(len(w.W_N)))
        d = a.array([norm.width_out])
        columns = range(z.shape[-1])
        mean = a.divide(a._store(self.total(z[..., k] for k in columns))[..., None], d)
        off = a.subtract(z, mean)
        squares = a.multiply(off, off)
        variance = a.divide(a._store(self.total(squares[..., k] for k in columns))[..., None], d)
        deviation = a.sqrt(a.add(variance, w.epsilon))
        if not (deviation > 0).all():
            raise NotANumber("a norm")
        return a.add(a.multiply(a.divide(off, deviation), w.gain), w.bias)

    def heads(self, heads, z):
        parts = [self.head(head, z) for head in heads]
        while len(parts) > 1:
            first = parts.pop(self.draw.randrange(len(parts)))
            second = parts.pop(self.draw.randrange(len(parts)))
            parts.append(self.a.add(first, second))
        return parts[0]

    @_quiet
    def values(self, inputs):
        model, a = self.model, self.a
        z = model.embedding(inputs, a)
        if not z.shape[1]:
            return np.zeros((len(z), 0, len(model.read_out.W_out)))
        for layer in model.layers:
            pre, post = layer.pre_norms, layer.post_norms
            if layer.heads:
                z = a.add(self.heads(layer.heads, self.norm(pre[0], z)), z)
                z = self.norm(post[0], z)
            if layer.feed_forward is not None:
                z = a.add(self.network(layer.feed_forward, self.norm(pre[1], z)), z)
                z = self.norm(post[1], z)
        z = self.norm(model.final_norm, z)
        w = model.read_out.rounded(a)
        return self.affine(z[:, model.rows_read(len(inputs[0]))], w.W_out, w.b_out)

    def answers(self, inputs):
        return decided(self.model, self.values(inputs))


class Flash(Permuted):
    """Attention as fused kernels compute it, on sums that are in any order.

    The scores are dot products in the accumulator, divided by √d_key there; of every block of keys
    the maximum is taken, all sums so far are rescaled by 2^((old − new) log₂e), and the block is
    added: p = 2^((s − m) log₂e), rounded to the format before P·V, not before the sum of p. The
    division by that sum comes last, and one store. 2^x is off by at most `error` of itself, and
    exact for x = 0.

    Attributes:
        block: how many keys are in a block.
        error: ε of the approximate exp2.

    """

    def __init__(self, model, a, draw, block=2, error=Fraction(1, 2**22)):
        super().__init__(model, a, draw)
        self.block, self.error = block, float(error)

    def exp2(self, x):
        """2^x, off by up to ε in a direction that is drawn for every number."""
        signs = np.array([self.draw.uniform(-1, 1) for _ in range(x.size)]).reshape(x.shape)
        found = np.exp2(x) * np.where(x == 0, 1.0, 1 + self.error * signs)
        return self.round(found)

    def scores(self, q, k):
        products = self.a.products(q[..., :, None, :], k[..., None, :, :])
        dot = self.total(products[..., m] for m in range(products.shape[-1]))
        s = self.round(dot / self.round(np.sqrt(np.float64(q.shape[-1]))))
        if not np.isfinite(s).all():
            raise NotANumber("a score")
        return s

    def mixed(self, s, v, admissible, weighting):
        if weighting != "softmax":
            return super().mixed(s, v, admissible, weighting)
        log2e = self.round(np.float64(np.log2(np.e)))
        highest = np.full((*s.shape[:-1], 1), -np.inf)
        total, mixed = np.zeros(highest.shape), np.zeros((*s.shape[:-1], v.shape[-1]))
        for start in range(0, s.shape[-1], self.block):
            part = slice(start, start + self.block)
            shown = np.where(admissible[..., part], s[..., part], -np.inf)
            raised = np.maximum(highest, shown.max(axis=-1, keepdims=True))
            base = np.where(np.isfinite(raised), raised, 0.0)
            down = np.where(np.isfinite(highest), self.round(highest - base), 0.0)
            factor = np.where(np.isfinite(highest), self.exp2(self.round(down * log2e)), 0.0)
            off = np.where(np.isfinite(shown), self.round(shown - base), 0.0)
            p = np.where(np.isfinite(shown), self.exp2(self.round(off * log2e)), 0.0)
            added = self.total(p[..., k] for k in range(p.shape[-1]))[..., None]
            total = self.round(self.round(total * factor) + added)
            narrow = self.a._store(p)
            products = self.round(narrow[..., :, :, None] * v[..., None, part, :])
            more = self.total(products[..., k, :] for k in range(products.shape[-2]))
            mixed = self.round(self.round(mixed * factor) + more)
            highest = raised
        return self.a._store(self.round(mixed / np.where(total > 0, total, 1.0)))


def decided(model, values):
    """The answers of numbers that are read out, as `Ideal.answer` has them."""
    if np.isnan(values).any():
        raise NotANumber("what is read out")
    read_out = model.read_out
    if not hasattr(read_out, "labels"):
        rows = [[bool(x > 0) for x in each[:, 0]] for each in values]
    else:
        rows = [[read_out.labels[int(y.argmax())] for y in each] for each in values]
    if read_out.at != "every":
        return [row[0] for row in rows]
    labels = getattr(read_out, "labels", ())
    is_text = labels and all(isinstance(x, str) and len(x) == 1 for x in labels)
    return ["".join(row) for row in rows] if is_text else rows
