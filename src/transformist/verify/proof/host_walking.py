"""Error bounds of a model as a stock class of transformers evaluates its checkpoint.

Let y_c = z_c / 2^(k_c) be the slots in the scales of the checkpoint, and s its shrink: the stream
holds h = s y. Weights have the same powers of two, which cost no rounding, so products, sums and
attention round as in the model itself, and the bounds of `RoundingErrors` hold for them in the
scales of the model. What a class does besides is bounded here:

- *Norms*. Every sublayer and the read-out read x = (h − μ) √eps / (s √(v + eps)), where μ is the
  mean of h (0 in a class that does not centre), and v its variance or mean square: `read`.
- *Mean*. One more slot of the checkpoint holds −Σ y_c, so that μ is 0 but for rounding. The
  *residue* bounds |Σ y| over all slots as computed; the rounding of each sublayer adds to it.
- *Biases* that are weights of the slot that holds 1, which is read through the norm, too: `read`.
- *Activation*. In a gated network a unit is silu(c x)/c times 1: `_gated`.
- *Attention* sums the outputs of all heads of a layer at once: `attended`. Its weights are bounded
  for each way of `host_orders`.
- *Underflow* is larger in the scales of the model, as the stream is shrunk: `HostRounding`.

Weights in the checkpoint are those of the model, rounded to float32. This asks that √d_key is a
power of two, and it excludes biases that a class adds elsewhere than the model does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.host_evaluation import HostClass, HostEvaluation
from transformist.model import (
    Attention,
    Binary,
    FeedForward,
    LanguageModel,
    LayerNorm,
    MultiClass,
    Transformer,
)
from transformist.verify.proof.answering import decide
from transformist.verify.proof.attending import Attending, projected
from transformist.verify.proof.hidden_units import (
    HiddenLayer,
    clipped,
    hidden_layer,
    named_positions,
    relative_to_steps,
)
from transformist.verify.proof.ideal import ONE, Ideal
from transformist.verify.proof.rounding_errors import (
    AffineMap,
    Approximation,
    RoundingErrors,
    Terms,
)
from transformist.verify.proof.slack import Ledger
from transformist.verify.proof.softmax_orders import SoftmaxOrder
from transformist.verify.proof.sparse_rows import exactly
from transformist.verify.proof.upwards import (
    NEARLY,
    Floats,
    Unfollowed,
    compounded,
    require_terms,
    up,
)
from transformist.verify.proof.walking import Walk

LARGEST = 2.0**60
"""Largest number that a proof accepts in a host.

Queries have a factor of at most √d_head, inputs of silu one of 2³⁰, and scores one of d_head, so
that they stay below 2¹²⁷, the limit of float32.
"""

# Relative error of the factor √eps / (s √(v + eps)) for v = 0, and of its product with h − μ. eps
# is rounded (u/2 of its root), v + eps rounds (u/2), 1/√ is off by up to 4u, the gain is rounded
# (u), and h − μ, two products and the sum with a shift of 0 round (4u); a kernel that computes
# h √… − μ √… rounds twice more. This makes 12u.
NORM_ROUNDINGS = 12

SILU_GAP = 0.28
"""Upper bound of |silu(x) − max(x, 0)|, which is largest, 0.2785, near |x| = 1.28."""


class HostRounding(RoundingErrors):
    """Error bounds of float32 in a host.

    A number z_c below 2^(k_c − 126)/s may be flushed to 0, since s z_c / 2^(k_c) is then below the
    least normal number of float32. The largest k_c gives the bound for all slots; numbers outside
    the stream are not shrunk.
    """

    def __init__(self, a: Floating, ideal: Ideal, host: HostEvaluation) -> None:
        super().__init__(a, ideal)
        self.tiny = 2.0 ** (max(0, *host.exponents) - 126) / host.constants.shrink
        self.tiny_partial = self.tiny
        if not self.tiny <= 2.0**-30:
            raise Unfollowed("norms", "the factors of the checkpoint are too small for float32")

    are_stored = False
    """Numbers of the stream are shrunk in the checkpoint: they have other factors of two."""

    def _operations(
        self, terms: Terms, count: NDArray[np.int_], plain: NDArray[np.bool_]
    ) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        # A number that the model keeps as it is gets smaller in the checkpoint, and may underflow.
        growth, underflow, keeps = super()._operations(terms, count, plain)
        return growth, underflow, np.zeros_like(keeps)

    def require(self, size: Any, largest: float, where: str) -> None:
        """Require that numbers overflow in no scale of the host (`LARGEST`)."""
        super().require(size, min(largest, LARGEST), where)


class HostWalk(Walk):
    """Error bounds of a model in a host, for all inputs of up to N symbols at once.

    Attributes:
        host: the evaluation.
        residue: (kinds,): bound of |Σ y| over all slots of the checkpoint.
        of_one: (kinds,): error of the slot that holds 1, as the last norm gives it.

    """

    def __init__(
        self,
        model: Transformer,
        a: Floating,
        longest: int,
        order: SoftmaxOrder,
        ledger: Ledger,
        host: HostEvaluation,
    ) -> None:
        _require_held(model, a, host)
        # Sums over all slots, and over all that a sublayer multiplies (`_wrote`), are covered by
        # the allowance for each bound alone.
        require_terms(model.width, "embedding", "slots")
        super().__init__(model, a, longest, order, ledger)
        self.host = host
        self.rounding = HostRounding(a, self.ideal, host)
        self.scales = np.exp2(np.array(host.exponents, dtype=float))[:, None]
        self.residue, self.of_one = np.zeros(self.ideal.kinds), np.zeros(self.ideal.kinds)

    # The stream

    def embedded(self) -> Approximation:
        """Return word vectors plus positions; both are tables, rounded to float32."""
        # The last slot of each table holds minus the sum of the others, 1 included. It is computed
        # in float64, off by 2⁻⁴² Σ |y|, and rounded (u). Both tables and the two sums of a row,
        # that of the slots and that of the last one, round by less than 5u (1 + Σ |y|).
        parts = self.embeddings()
        together = sum(self._magnitude(part.reach[0]) for part in parts)
        self.residue = up(8 * self.rounding.u * (1 + together))
        return parts[0] if len(parts) == 1 else self.rounding.added(parts, "embedding")

    def _magnitude(self, reach: Floats) -> Floats:
        """(kinds,): Σ |z_c| / 2^(k_c) over the slots of the model."""
        return np.asarray(up((reach / self.scales).sum(axis=0)))

    def _total(self, z: Approximation) -> Floats:
        """(kinds,): Σ |y| over all slots: those of the model, 1, and minus the sum of these."""
        return np.asarray(up(2 * (1 + self._magnitude(z.reach[0])) + self.residue))

    def _wrote(self, W: Any, b: Any, reach: Floats, inner: int, z: Approximation) -> None:
        """Add to the residue what z = z + W x + b rounds."""
        # All rows of the checkpoint, the one of minus the sum included, multiply the same computed
        # x. So the exact W x + b of all rows add up to the rounding of the last row's weights:
        # 2u P, P = Σ_c (|W_c| |x| + |b_c|) / 2^(k_c). Each row rounds by γ of its terms, in any
        # order, together 2γ P, and its sum with the stream by u of the result, together u Σ |y|.
        require_terms(inner, "residue", "numbers that a sublayer multiplies")
        r = self.rounding
        terms = np.abs(r.rounded(W)[0]) @ reach + np.abs(r.rounded(b)[0])[:, None]
        P, rows = self._magnitude(terms), len(self.scales) + 2
        tiny = 2 * rows * (inner + 2) * r.tiny
        self.residue = up(self.residue + (2 * r.growth(inner + 2) + 4 * r.u) * P + tiny)
        self.residue = up(self.residue + 2 * r.u * self._total(z))

    # Norms

    def read(self, z: Approximation, norm: LayerNorm | None, where: str) -> Approximation:
        """Return what a norm of the host makes of the stream: z itself, up to rounding."""
        # With T ≥ Σ |y| ≥ |y_c|, every way of computing v gives |v| ≤ 4 s² T², also where terms
        # cancel. For t = 4 s² T² / eps ≤ 1/4 the factor 1/√(1 + v/eps) is within t of 1: 1.155 at
        # v = −eps/4. With δ for this and for `NORM_ROUNDINGS`, and m for the bound of |μ|/s,
        #
        # |x_c − z_c| ≤ (1 + δ) |z̃_c − z_c| + δ |z_c| + (1 + δ) 2^(k_c) m.
        #
        # The exact mean of D coordinates is at most residue/D. Computed, it is off by at most
        # ((1 + u)^(2D + 16) − 1) Σ |y| / D, in any order: a sum has at most D roundings, and one
        # rounds in the division. By updates m ← m + (y_k − m)/k (Welford), update k is off by
        # u |m| + 3u (|y_k| + |m|)/k, which later updates multiply by k/D; since |m| ≤ Σ |y| / k,
        # these add up to (D + 6 + 3 ln D) u Σ |y| / D.
        #
        # In a class that reads biases from the slot that holds 1, this slot must be read as exactly
        # 1: a network may add and subtract a large bias, to round to whole numbers. It is, if the
        # class computes fl(gain · fl(s / √fl(eps))), which `_reads_one` evaluates. For t ≤ 2⁻²⁶ the
        # sum v + eps rounds to fl(eps), as 0 ≤ v ≤ 2⁻²⁶ eps is less than half a unit of its last
        # place.
        r, constants, D = self.rounding, self.host.constants, self.host.width
        total = self._total(z)
        r.require(total, 2.0**40, where)
        t = up(4 * (constants.shrink * total) ** 2 / constants.epsilon)
        if not (t <= 0.25).all():
            raise Unfollowed(where, "the stream is not small beside eps, so a norm changes it")
        delta = compounded(r.growth(NORM_ROUNDINGS), t)
        # Each of the D numbers may underflow in the mean, and so may the result.
        shift = (4 * D + 8) * r.tiny + np.zeros_like(total)
        if constants.centres:
            shift = shift + (self.residue + r.growth(2 * D + 16) * total) / D
        shift = up(shift * (1 + delta))
        moved = up(shift * self.scales + r.tiny)
        self.of_one = up(delta + shift)
        if constants.biases_from_slot:
            if not ((t <= 2.0**-26).all() and _reads_one(constants)):
                raise Unfollowed(where, "the norm does not give exactly 1 in the slot of 1")
            self.of_one = np.zeros_like(total)
        error = up((1 + delta) * z.error + delta * z.size + self._scaled(moved))
        return replace(
            z,
            error=r.least(error),
            absolute=up((1 + delta) * z.absolute + moved),
            relative=np.asarray(compounded(z.relative, delta)),
            multiples=None,
            cap=None,
            shared=None,
        )

    def _scaled(self, error: Floats) -> Floats:
        """E and, for each mask, the largest D times E."""
        return np.asarray(self.ideal.scales[:, None, None] * error)

    def with_one(self, x: Approximation) -> Approximation:
        """Return what was read, with the slot that holds 1 behind it."""
        one = self.rounding.values([self.ideal.constant(ONE)], self.of_one[None])
        names = ("lo", "hi", "size", "error", "absolute", "relative")
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(x, name), getattr(one, name)], axis=-2) for name in names
        }
        return Approximation([*x.forms, *one.forms], **joined)

    # Sublayers

    def attended(
        self, heads: Sequence[Attention], read: Approximation, z: Approximation, layer: str
    ) -> Approximation:
        """Return z + W_O c + b_O, where one product W_O c adds up the outputs of all heads."""
        r = self.rounding
        given = projected(heads, read, r, layer)
        found = [
            Attending(head, f"{layer} head {k}", r, self.order).output(own, self.ledger)
            for k, (head, own) in enumerate(zip(heads, given, strict=True))
        ]
        names = ("lo", "hi", "size", "error", "absolute", "relative")
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(c, name) for c in found], axis=-2) for name in names
        }
        c = Approximation([form for each in found for form in each.forms], **joined)
        maps = [np.eye(len(head.W_V)) if head.W_O is None else head.W_O for head in heads]
        W_O, b_O = np.hstack(maps), _shared_bias(heads)
        y = r.affine(W_O, b_O, c, f"{layer} attention output").values
        added = r.added([z, y], f"{layer} attention")
        self._wrote(W_O, b_O, c.reach[0], W_O.shape[1], added)
        return added

    def networked(
        self, f: FeedForward, read: Approximation, z: Approximation, where: str
    ) -> Approximation:
        """Return z plus the output of a network."""
        r = self.rounding
        if f.activation != "relu":
            raise Unfollowed(where, f"its activation is {f.activation}")
        inner = clipped(f, r.affine(f.W_1, f.b_1, read, f"{where} units"), read, r)
        layer = hidden_layer(f, inner, r, self.ledger, where)
        if self.host.constants.silu_factor:
            layer = self._gated(layer, inner)
        output = r.affine(layer.W_2, f.b_2, layer.values, f"{where} output")
        y = output.values
        if not self.host.constants.silu_factor:  # a step of 0 is exactly 0
            y = relative_to_steps(output, layer.W_2, f.b_2, layer.values, layer.heights)
        added = r.added([z, y], where)
        self._wrote(layer.W_2, f.b_2, layer.values.reach[0], len(f.b_1), added)
        return named_positions(added, r)

    def _gated(self, layer: HiddenLayer, inner: AffineMap) -> HiddenLayer:
        """Return the hidden units silu(c x)/c · 1, which stand for ReLU(x)."""
        # silu(x) = x σ(x). From x = 32 on 1 + exp(−x) rounds to 1, so the computed silu(x) is x. At
        # −32 and below it is nearly 0, off by less than 32 exp(−32) < 10⁻¹². Between, it is within
        # 0.2785 of ReLU(x), and 8u of itself (4 units in the last place): 0.2785 + 8u · 32 < 0.28.
        # So a unit is off by at most 0.28/c, and by nothing where c x̃ ≥ 32.
        c, values = self.host.constants.silu_factor, layer.values
        assert values.halves is not None
        # The lower end of x̃: a difference, which rounds by 2⁻⁵³ of its terms. NEARLY covers it
        # where the error is at most half of the end.
        v = inner.values
        is_linear = (v.lo * NEARLY - v.error[0] >= 64 / c) & (v.lo >= 2 * v.error[0])
        bent = np.array(
            [sum(np.where(is_linear[unit], 0.0, SILU_GAP / c) for unit in g) for g in layer.groups]
        )
        moved = self._scaled(up(bent))
        quanta = [
            k if not each.any() else None
            for k, each in zip(values.halves.quanta, bent, strict=True)
        ]
        halves = values.halves._replace(reach=up(values.halves.reach + moved), quanta=quanta)
        softened = replace(
            values,
            error=up(values.error + moved),
            absolute=up(values.absolute + moved[0]),
            halves=halves,
        )
        return layer._replace(values=softened)

    # The answer

    def decided(self, z: Approximation) -> None:
        """Note the margins of the logits, less those of the first answer.

        The bias of each logit is a weight of the slot that holds 1. Tokens that are no answer have
        the logit −1024 · 1, below that of the first answer, which is exactly 0. Two answers whose
        logits have the same weights would be told apart by their tokens, so they are refused.
        """
        read_out, where = self.model.read_out, "read-out"
        x = self.with_one(self.read(z, None, where))
        if not (self.of_one < 1).all():
            raise Unfollowed(where, "logits of tokens that are no answer have no bound")
        W = np.hstack([read_out.W_out, np.asarray(read_out.b_out)[:, None]]).astype(object)
        if not isinstance(read_out, Binary):
            W = _less_the_first(W)
        decide(replace(read_out, W_out=W, b_out=np.zeros(len(W))), x, self.rounding, self.ledger)


def _reads_one(constants: HostClass) -> bool:
    """True if a norm without a mean gives exactly 1 where the stream holds s, in float32.

    Each operation is rounded correctly: √, the division 1/√, and two products, that with s exact.
    """
    epsilon, one = np.float32(constants.epsilon), np.float32(1)
    gain = np.float32(math.sqrt(constants.epsilon) / constants.shrink)
    return bool(gain * (np.float32(constants.shrink) * (one / np.sqrt(epsilon))) == one)


def _less_the_first(W: Any) -> Any:
    """Rows less the first one, if float32 holds these differences as it holds the rows.

    A checkpoint holds a rounded difference of rounded rows. Where float32 holds rows and
    differences, it is the exact one.

    Raises:
        Unfollowed: if it does not, or if two rows are equal.

    """
    exact = np.array([[exactly(x) for x in row] for row in W.tolist()], dtype=object)
    less = exact - exact[0]
    for x in {*exact.ravel().tolist(), *less.ravel().tolist()}:
        if float(np.float32(float(x))) != x:
            raise Unfollowed("read-out", "differences of logits have weights that are rounded")
    if len({tuple(row) for row in exact.tolist()}) < len(exact):
        raise Unfollowed("read-out", "two answers have the same weights")
    return less


def _shared_bias(heads: Sequence[Attention]) -> Any:
    """b_O of all heads; at most one of them has any (`_require_held`)."""
    return next((head.b_O for head in heads if np.any(head.b_O != 0)), heads[0].b_O)


def _require_held(model: Transformer, a: Floating, host: HostEvaluation) -> None:
    """Require that the evaluation by a host is one that the bounds cover.

    Raises:
        Unfollowed: at the first part for which they do not.

    """
    name, constants, read_out = host.host, host.constants, model.read_out
    heads = [head for layer in model.layers for head in layer.heads]
    norms = [
        norm for layer in model.layers for norm in (*layer.pre_norms, *layer.post_norms) if norm
    ]
    positions = model.embedding.positions
    with_bias = [[head for head in layer.heads if np.any(head.b_O != 0)] for layer in model.layers]
    faults = {
        f"the checkpoint of {name} must be in float32": a.name != "float32",
        "the host's slots must be those of the model": len(host.exponents) != model.width,
        f"heads in {name} must have mask future": any(h.mask != "future" for h in heads),
        f"heads in {name} must have softmax": any(h.weighting != "softmax" for h in heads),
        "the model must have no norms of its own": bool(norms or model.final_norm),
        "positions must not depend on n": positions is not None and positions.knows_n,
        f"{name} must have no positions": constants.biases_from_slot and positions is not None,
        "d_key must be a power of 4": any(
            len(h.W_Q) != 4 ** (len(h.W_Q).bit_length() // 2) for h in heads
        ),
        "at most one head of a layer must have b_O": any(len(each) > 1 for each in with_bias),
        f"heads in {name} must have no b_O": constants.biases_from_slot and any(with_bias),
        "the answer must be a label": not isinstance(read_out, Binary | MultiClass | LanguageModel),
    }
    for why, is_wrong in faults.items():
        if is_wrong:
            raise Unfollowed("host", why)
