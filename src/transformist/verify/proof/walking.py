"""Error bounds of a transformer, operation by operation, from the embedding to the answer."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from transformist.arithmetic import Floating
from transformist.model import (
    Attention,
    FeedForward,
    LayerNorm,
    PositionFunctions,
    Transformer,
)
from transformist.position_features import SINE_STEP, WAVES, position
from transformist.verify.proof.answering import decide
from transformist.verify.proof.attending import Attending, projected
from transformist.verify.proof.grids import SYMBOLS, Grid
from transformist.verify.proof.hidden_units import network
from transformist.verify.proof.ideal import ONE, ZERO_FORM, Form, Ideal
from transformist.verify.proof.normalizing import normalized
from transformist.verify.proof.rounding_errors import (
    Approximation,
    RoundingErrors,
    exponents,
)
from transformist.verify.proof.scoring import Leads
from transformist.verify.proof.slack import Ledger
from transformist.verify.proof.softmax_orders import SoftmaxOrder
from transformist.verify.proof.upwards import ROOM, Unfollowed, require_memory, up

LOG = logging.getLogger(__name__)


class Walk:
    """Error bounds of a model, for all inputs of up to N symbols at once.

    Attributes:
        ledger: the margins that were met.
        streams: bounds of the residual stream after each step of `Transformer.streams`.
        leads: the leads of the best scores of each head, by its place.

    """

    def __init__(
        self, model: Transformer, a: Floating, longest: int, order: SoftmaxOrder, ledger: Ledger
    ) -> None:
        self.model, self.order, self.ledger = model, order, ledger
        self.streams: list[Approximation] = []
        self.leads: dict[str, Leads] = {}
        front = model.embedding.front
        if model.embedding.back or len(front) > 1:
            raise Unfollowed("embedding", "it adds symbols besides a single one in front")
        if model.read_out.at == "cls":
            raise Unfollowed("read-out", "it reads at CLS")
        heads = [head for layer in model.layers for head in layer.heads]
        masks = dict.fromkeys(head.mask for head in heads if not _has_scores(head))
        kinds = len(model.alphabet) + len(front)
        require_memory(model.width, kinds, "embedding")
        self.ideal = Ideal(kinds, kinds - 1 if front else None, longest, [*masks])
        self.rounding = RoundingErrors(a, self.ideal)

    def run(self) -> None:
        """Bound every operation of the model, from the embedding to the answers."""
        r, model = self.rounding, self.model
        z = self.embedded()
        self.streams.append(z)
        for number, layer in enumerate(model.layers):
            LOG.debug(
                "proof to N = %d, layer %d of %d", self.ideal.longest, number, len(model.layers)
            )
            for name, sublayer in layer.sublayers():
                where = f"layer {number}"
                pre, post, f = sublayer.pre_norm, sublayer.post_norm, sublayer.function
                read = self.read(z, pre, f"{where} {name} pre-norm")
                if isinstance(f, FeedForward):
                    z = self.networked(f, read, z, where)
                else:
                    z = self.attended(f.heads, read, z, where)
                z = z if post is None else normalized(post, z, r, f"{where} {name} post-norm")
                self.streams.append(z)
        if model.final_norm is not None:
            z = normalized(model.final_norm, z, r, "final norm")
            self.streams.append(z)
        LOG.debug("proof to N = %d, read-out", self.ideal.longest)
        self.decided(z)

    def read(self, z: Approximation, norm: LayerNorm | None, where: str) -> Approximation:
        """Return what a sublayer reads."""
        return z if norm is None else normalized(norm, z, self.rounding, where)

    def networked(
        self, f: FeedForward, read: Approximation, z: Approximation, where: str
    ) -> Approximation:
        """Return z plus the output of a network."""
        return network(f, read, z, self.rounding, self.ledger, where)

    def decided(self, z: Approximation) -> None:
        """Note the margins of the read-out."""
        decide(self.model.read_out, z, self.rounding, self.ledger)

    def embedded(self) -> Approximation:
        """Return word vectors plus position functions."""
        parts = self.embeddings()
        return parts[0] if len(parts) == 1 else self.rounding.added(parts, "embedding")

    def embeddings(self) -> list[Approximation]:
        """Return word vectors and position functions; both are rounded to the format first."""
        embedding, r, kinds = self.model.embedding, self.rounding, self.ideal.kinds
        order = [embedding.symbols.index(s) for s in (*self.model.alphabet, *embedding.front)]
        vectors = embedding.vectors[order]
        stored, off = r.rounded(vectors)
        forms: list[Form] = [
            {kind: Fraction(column[kind]) for kind in np.flatnonzero(column).tolist()} or ZERO_FORM
            for column in vectors.T
        ]
        words = replace(r.values(forms, off.T), multiples=exponents(stored.T).min(axis=1))
        r.require(words.size[0] + words.error[0], r.a.largest, "embedding")
        if embedding.positions is None:
            return [words]
        if not isinstance(embedding.positions, PositionFunctions):
            raise Unfollowed("embedding", "its positions are not named functions")
        given: list[tuple[Form, float, float]] = [
            (ZERO_FORM, 0.0, 0.0) if name is None else self.position(name)
            for name in embedding.positions.names
        ]
        errors, ratios = (np.outer([each[k] for each in given], np.ones(kinds)) for k in (1, 2))
        places = r.values([form for form, _, _ in given], errors)
        r.require(places.size[0] + places.error[0], r.a.largest, "positions")
        tiny = np.where(ratios > 0, r.tiny, 0.0)
        return [words, replace(places, absolute=tiny, relative=ratios)]

    def position(self, name: str) -> tuple[Form, float, float]:
        """Return a position function, its absolute and its relative error.

        It is computed exactly and rounded once, so it is off by u of itself, or by underflow. Whole
        numbers up to 2ᵖ are numbers of the format. In a model without BOS (which would count in D),
        1/i is a multiple of 1/D for the D = i rows of the mask `future`. In every model i/n is a
        multiple of 1/n; without BOS, n is the number of rows of the mask `none`.
        """
        ideal, r, n = self.ideal, self.rounding, self.ideal.longest
        if name in WAVES:
            return self._wave(name)
        whole = {"1": 1, "i": n, "i^2": n**2, "i^3": n**3, "(-1)^i": 1}
        divided = {"1/i": "future", "-1/i": "future", "i/n": "none", "-i/n": "none"}
        if name not in (*whole, *divided) or (name in ("1/i", "-1/i") and ideal.bos is not None):
            raise Unfollowed("embedding", f"the position function {name} has no bound")
        largest = whole.get(name, 1)
        grid: Grid = (ONE, None)
        lo, hi = np.ones(ideal.kinds), np.full(ideal.kinds, float(largest))
        if name in divided:
            lo = lo * (1 - ROOM) / n  # 1/i and i/n are at least 1/N
            grid = (ONE, divided[name] if ideal.bos is None else SYMBOLS)
        elif name == "(-1)^i":
            lo = -lo
        if ideal.bos is not None:
            lo[ideal.bos] = hi[ideal.bos] = float(position(name, 0, 0))
        number = ideal.add(name.removeprefix("-"), lo, hi, grid)
        form = {number: -ONE if name.startswith("-") else ONE}
        if name in whole and largest <= 2**r.a.precision and r.a.smallest <= 1:
            return form, 0.0, 0.0
        return form, float(up(r.u * largest + r.tiny)), r.u

    def _wave(self, name: str) -> tuple[Form, float, float]:
        """A sine or cosine: a multiple of a power of two, which formats of enough bits hold."""
        ideal, r = self.ideal, self.rounding
        lo, hi = -np.ones(ideal.kinds), np.ones(ideal.kinds)
        if ideal.bos is not None:
            lo[ideal.bos] = hi[ideal.bos] = float(position(name, 0, 0))
        form = {ideal.add(name, lo, hi, (SINE_STEP, None)): ONE}
        if SINE_STEP * 2**r.a.precision >= 1 and r.a.smallest <= SINE_STEP:
            return form, 0.0, 0.0
        return form, float(up(r.u + r.tiny)), r.u

    def attended(
        self, heads: Sequence[Attention], read: Approximation, z: Approximation, layer: str
    ) -> Approximation:
        """Return z + Σ (W_O c + b_O) over the heads."""
        parts = [z]
        given = projected(heads, read, self.rounding, layer)
        for k, (head, own) in enumerate(zip(heads, given, strict=True)):
            where = f"{layer} head {k}"
            attending = Attending(head, where, self.rounding, self.order)
            c = attending.output(own, self.ledger)
            self.leads[where] = attending.leads
            if head.W_O is not None or np.any(head.b_O != 0):
                W_O = np.eye(len(c.forms)) if head.W_O is None else head.W_O
                c = self.rounding.written(W_O, head.b_O, c, f"{where} output")
            parts.append(c)
        return self.rounding.added(parts, f"{layer} attention")


def _has_scores(head: Attention) -> bool:
    """True if some product of query and key may differ from 0."""
    query = np.any(head.W_Q != 0, axis=1) | (head.b_Q != 0)
    key = np.any(head.W_K != 0, axis=1) | (head.b_K != 0)
    return bool((query & key).any())
