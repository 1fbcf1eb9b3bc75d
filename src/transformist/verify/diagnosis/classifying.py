"""The operation at fault for a number that is off, and its failure signature.

The error of a number is split into the parts that made it: what the stream held before, what the
step made of inputs that were off, and what the step rounded. The largest part decides: a part that
came in with an input is followed to that input, a step back, until a step is itself at fault. A
comparison is itself at fault if its input is off by rounding alone, by at most ε; a head that
selects, unless a failure other than rounding made its scores wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import FLOAT64, Floating
from transformist.model import ACTIVATIONS, Attention, FeedForward, Heads, LayerNorm, Sublayer
from transformist.verify.diagnosis.comparing import RowNumbers, SideBySide
from transformist.verify.diagnosis.signatures import (
    BelowResolution,
    Blend,
    LinearRegion,
    MovedByNorm,
    Overflow,
    Signature,
)

Vector = NDArray[np.float64]

SHOWN = 4
"""Most positions that a signature lists."""


@dataclass(frozen=True)
class Found:
    """A signature, and the number in which it shows."""

    signature: Signature
    origin: RowNumbers

    @property
    def is_rounding(self) -> bool:
        """True if nothing failed but the rounding of a number."""
        return isinstance(self.signature, BelowResolution)


def spacing(a: Floating, value: float) -> float:
    """Distance of neighbouring numbers of a format at a value.

    Example:
        >>> from transformist.arithmetic import BFLOAT16
        >>> spacing(BFLOAT16, 130.0), spacing(BFLOAT16, 1.0)
        (1.0, 0.0078125)

    """
    # frexp gives |value| = m 2ᵉ with 1/2 ≤ m < 1: with p bits, neighbours differ by 2ᵉ⁻ᵖ; subnormal
    # numbers are multiples of the smallest one.
    _, exponent = math.frexp(abs(value))
    return max(math.ldexp(1.0, exponent - a.precision), a.smallest)


def classify(run: SideBySide, stream: int, row: int, slot: int) -> Found:
    """The signature of the error of one number."""
    return _Classifier(run).found(stream, row, slot)


class _Classifier:
    """Splits the error of a number, and follows the largest part to a step at fault."""

    def __init__(self, run: SideBySide) -> None:
        self.run, self.a = run, run.arithmetic

    # Numbers of the two runs

    def got(self, stream: int, row: int) -> Vector:
        return np.asarray(self.a.numbers(self.run.streams[stream][row]), dtype=float)

    def real(self, stream: int, row: int) -> Vector:
        return np.asarray(
            self.run.ideal.arithmetic.numbers(self.run.exact[stream][row]), dtype=float
        )

    def found(self, stream: int, row: int, slot: int) -> Found:
        """The signature of a number, or of an input of the step that wrote it."""
        got, real = self.got(stream, row)[slot], self.real(stream, row)[slot]
        last = len(self.run.streams) - 1
        if stream == 0:
            return self._stored(stream, row, slot, real)
        if stream == last:
            return self._read_out(stream, row, slot)
        # Each way from here goes to an earlier stream, so that the search ends, at the latest at
        # the embedding.
        step = self.run.format.steps[stream - 1]
        # A hidden unit or a value that overflows leaves 0 · ∞, NaN, in slots that are not written.
        is_lost = not np.isfinite(got) and np.isfinite(self.got(stream - 1, row)[slot])
        if slot not in step.written and not is_lost:
            return self.found(stream - 1, row, slot)
        if self._is_overflow(got, real):
            return self._beyond(stream, row, slot)
        if isinstance(step.function, LayerNorm):
            return self._after_norm(stream, row, slot, self.got(stream - 1, row), real)
        sublayer = step.function
        if sublayer.post_norm is not None:
            return self._after_post_norm(stream, row, slot, sublayer)
        if isinstance(sublayer.function, Heads):
            return self._attention(stream, row, slot, sublayer)
        return self._network(stream, row, slot, sublayer)

    def _stored(self, stream: int, row: int, slot: int, value: float) -> Found:
        """The signature of a number that is off because it is rounded when it is stored."""
        here = RowNumbers(stream, row, (slot,))
        name = self.run.format.held(stream, slot)
        if abs(value) > self.a.largest:
            return Found(Overflow(of=name, value=float(value), largest=self.a.largest), here)
        signature = BelowResolution(of=name, value=float(value), spacing=spacing(self.a, value))
        return Found(signature, here)

    def _is_overflow(self, got: float, real: float) -> bool:
        """True if a number is not finite, or at the largest number with an exact value beyond."""
        at_end = self.a.saturates and abs(got) == self.a.largest < abs(real)
        return bool(at_end or not math.isfinite(got))

    # What overflows

    def _beyond(self, stream: int, row: int, slot: int) -> Found:
        """The overflow behind a number that is not finite, or that saturates."""
        here = RowNumbers(stream, row, (slot,))
        step, before = self.run.format.steps[stream - 1], self.run.streams[stream - 1]
        z, largest = self.got(stream - 1, row), self.a.largest
        if isinstance(step.function, LayerNorm) or step.function.post_norm is not None:
            return self._moved_by_norm(stream, row, slot)
        sublayer = step.function
        if isinstance(sublayer.function, Heads):
            read = self.run.format.read(sublayer, before)
            for number, head in enumerate(sublayer.function.heads):
                # A format rounds the product before it divides it by √d_key.
                scores = self._scores(head, self._float(read), row) * math.sqrt(len(head.W_Q))
                if slot in head.written and (abs(scores) > largest).any():
                    of = f"product of query and key in layer {step.layer} head {number}"
                    value = float(scores[np.argmax(abs(scores))])
                    return Found(Overflow(of=of, value=value, largest=largest), here)
        else:
            network = sublayer.function
            hidden = self._hidden(network, self._read_row(sublayer, stream, row))
            # The product of a gated unit may overflow where its factors do not.
            for numbers in (hidden, ACTIVATIONS[network.activation](hidden, FLOAT64)):
                if np.isfinite(numbers).all() and (abs(numbers) > largest).any():
                    place = int(np.argmax(abs(numbers)))
                    of = f"hidden unit {place % network.hidden} of layer {step.layer}"
                    value = float(numbers[place])
                    return Found(Overflow(of=of, value=value, largest=largest), here)
        lost = np.flatnonzero(~np.isfinite(z))
        if len(lost):
            return self.found(stream - 1, row, int(lost[0]))
        if isinstance(sublayer.function, Heads):
            # The number came with a value from another row.
            rows = np.argwhere(~np.isfinite(self._float(before)))
            if len(rows):
                return self.found(stream - 1, int(rows[0][0]), int(rows[0][1]))
        value = self.real(stream, row)[slot]
        name = self.run.format.held(stream, slot)
        return Found(Overflow(of=name, value=float(value), largest=largest), here)

    def _moved_by_norm(self, stream: int, row: int, slot: int) -> Found:
        """The signature of a norm that moves a number."""
        name = self.run.format.held(stream, slot)
        here = RowNumbers(stream, row, (slot,))
        got, real = self.got(stream, row)[slot], self.real(stream, row)[slot]
        factor = got / real if real else math.inf
        return Found(MovedByNorm(slot=name, factor=float(factor)), here)

    # The read-out

    def _read_out(self, stream: int, row: int, slot: int) -> Found:
        read_out = self.run.format.model.read_out
        rows = self.run.format.model.rows_read(self.run.format.length)
        W = np.asarray(read_out.W_out, dtype=float)[slot]
        z, exact = (f(stream - 1, rows.start + row) for f in (self.got, self.real))
        lost = np.flatnonzero(~np.isfinite(z) & (W != 0))
        if len(lost):
            return self.found(stream - 1, rows.start + row, int(lost[0]))
        # The error of a value that is read out is Σ W (z − exact), carried in, and the rounding of
        # the sum. The larger of the two is followed.
        carried = W * (z - exact)
        got, real = self.got(stream, row)[slot], self.real(stream, row)[slot]
        if abs(carried.sum()) < abs(got - real - carried.sum()):
            return self._stored(stream, row, slot, float(W @ z + float(read_out.b_out[slot])))
        return self.found(stream - 1, rows.start + row, int(np.argmax(abs(carried))))

    # Norms

    def _after_norm(self, stream: int, row: int, slot: int, before: Vector, real: float) -> Found:
        """A number that a norm of the whole stream writes."""
        norm, exact = self.run.format.steps[stream - 1].function, self.real(stream - 1, row)
        assert isinstance(norm, LayerNorm)
        given, wanted = _selected(norm, before)[slot], _selected(norm, exact)[slot]
        if _is_moved(self.got(stream, row)[slot], real, given, wanted):
            return self._moved_by_norm(stream, row, slot)
        return self.found(stream - 1, row, int(np.argmax(abs(before - exact))))

    def _after_post_norm(self, stream: int, row: int, slot: int, sublayer: Sublayer) -> Found:
        """A number that a post-norm writes; what it takes is y + z."""
        bare = Sublayer(sublayer.function, sublayer.pre_norm)
        before, exact = (
            np.asarray(each.arithmetic.numbers(each.applied(bare, z)[row]), dtype=float)
            for each, z in (
                (self.run.format, self.run.streams[stream - 1]),
                (self.run.ideal, self.run.exact[stream - 1]),
            )
        )
        got, real = self.got(stream, row)[slot], self.real(stream, row)[slot]
        if _is_moved(got, real, before[slot], exact[slot]):
            return self._moved_by_norm(stream, row, slot)
        return self._stored(stream, row, slot, float(real))

    def _through_norm(self, sublayer: Sublayer, stream: int, row: int, column: int) -> Found | None:
        """The signature of the norm before a sublayer, if it moves the coordinate that is read."""
        norm = sublayer.pre_norm
        if norm is None:
            return None
        got, real = self._read_row(sublayer, stream, row), self._real_row(sublayer, stream, row)
        before = _selected(norm, self.got(stream - 1, row))
        exact = _selected(norm, self.real(stream - 1, row))
        if not _is_moved(got[column], real[column], before[column], exact[column]):
            return None
        slot = _slot(norm, column)
        name = self.run.format.held(stream - 1, slot)
        factor = got[column] / real[column] if real[column] else math.inf
        signature = MovedByNorm(slot=name, factor=float(factor))
        return Found(signature, RowNumbers(stream - 1, row, (slot,)))

    def _read_row(self, sublayer: Sublayer, stream: int, row: int) -> Vector:
        read = self.run.format.read(sublayer, self.run.streams[stream - 1][row : row + 1])
        row_read: Vector = self._float(read)[0]
        return row_read

    def _real_row(self, sublayer: Sublayer, stream: int, row: int) -> Vector:
        ideal = self.run.ideal
        read = ideal.read(sublayer, self.run.exact[stream - 1][row : row + 1])
        row_read: Vector = np.asarray(ideal.arithmetic.numbers(read), dtype=float)[0]
        return row_read

    def _float(self, x: Any) -> Vector:
        return np.asarray(self.a.numbers(x), dtype=float)

    # Networks

    def _hidden(self, network: FeedForward, read: Vector) -> Vector:
        """W₁ x + b₁ in float64."""
        W_1, b_1 = np.asarray(network.W_1, dtype=float), np.asarray(network.b_1, dtype=float)
        return np.asarray(W_1 @ read + b_1)

    def _network(self, stream: int, row: int, slot: int, sublayer: Sublayer) -> Found:
        network = sublayer.function
        assert isinstance(network, FeedForward)
        activation, W_2 = ACTIVATIONS[network.activation], np.asarray(network.W_2, dtype=float)
        read, exact = (f(sublayer, stream, row) for f in (self._read_row, self._real_row))
        lost = np.flatnonzero(~np.isfinite(read))
        if len(lost):
            return self.found(stream - 1, row, _slot(sublayer.pre_norm, int(lost[0])))
        before, after = self._hidden(network, read), self._hidden(network, exact)
        hidden, wanted = activation(before, FLOAT64), activation(after, FLOAT64)
        carried = W_2[slot] * (hidden - wanted)
        # A network adds W₂ h + b₂ to the slot: the error after it is the error before, plus Σ W₂ (h
        # − exact h), plus what the step itself rounded, which is all the rest.
        held = self.got(stream - 1, row)[slot] - self.real(stream - 1, row)[slot]
        total = self.got(stream, row)[slot] - self.real(stream, row)[slot]
        rounding = total - held - carried.sum()
        parts = abs(np.array([carried.sum(), held, rounding]))
        if parts[2] == parts.max():
            return self._rounded_network(stream, row, slot, network, read)
        if parts[1] == parts.max():
            return self.found(stream - 1, row, slot)
        unit = self._unit(network, W_2[slot], carried, before)
        # The unit was moved by the coordinate whose error, times its weight, is the largest.
        weights = network.W_1[self._row_of(network, unit, before, after)]
        column = int(np.argmax(abs(weights * (read - exact))))
        moved = self._through_norm(sublayer, stream, row, column)
        if moved is not None:
            return moved
        region = self._region(network, W_2[slot], unit, before, after)
        came_from = self.found(stream - 1, row, _slot(sublayer.pre_norm, column))
        # Only rounding by at most ε is a failure of the comparison; any other cause lies before it.
        if region is None or not came_from.is_rounding or abs(region[0] - region[1]) > region[2]:
            return came_from
        layer = self.run.format.steps[stream - 1].layer or 0
        value, real, epsilon = region
        signature = LinearRegion(layer=layer, value=value, exact=real, epsilon=epsilon)
        return Found(signature, RowNumbers(stream, row, (slot,)))

    def _first_layer(self, network: FeedForward) -> tuple[Any, Any]:
        rounded = network.rounded(self.a)
        return rounded.W_1, rounded.b_1

    def _rounded_network(
        self,
        stream: int,
        row: int,
        slot: int,
        network: FeedForward,
        read: Vector,
    ) -> Found:
        """Rounding of a hidden unit; of the sum of the units where no unit rounds."""
        layer = self.run.format.steps[stream - 1].layer
        activation, weights = (
            ACTIVATIONS[network.activation],
            np.asarray(network.W_2[slot], dtype=float),
        )
        before, first = self._hidden(network, read), self._first_layer(network)
        stored = self._float(self.a.affine(self.a.array(read), *first))
        hidden, kept = activation(before, FLOAT64), activation(stored, FLOAT64)
        # The product of a gated unit rounds, besides its factors.
        rounded = self._float(self.a.array(kept)) if network.is_gated else kept
        # `hidden` is computed from the same numbers in float64, so that the difference is rounding
        # alone.
        lost = abs(weights * (rounded - hidden))
        if not lost.any():
            return self._stored(stream, row, slot, float(self.real(stream, row)[slot]))
        unit = int(np.argmax(lost))
        value = float(before[self._row_of(network, unit, stored, before)])
        if abs(rounded[unit] - kept[unit]) > abs(kept[unit] - hidden[unit]):
            value = float(hidden[unit])
        signature = BelowResolution(
            of=f"hidden unit {unit} of layer {layer}",
            value=value,
            spacing=spacing(self.a, value),
        )
        return Found(signature, RowNumbers(stream, row, (slot,)))

    def _row_of(self, network: FeedForward, unit: int, one: Vector, other: Vector) -> int:
        """The row of W₁ that moves a hidden unit most between two vectors of W₁ x + b₁."""
        activation, rows = ACTIVATIONS[network.activation], np.arange(len(one))

        def moved(row: int) -> float:
            mixed = np.where(rows == row, one, other)
            both = [activation(each, FLOAT64)[unit] for each in (mixed, other)]
            return float(abs(both[0] - both[1]))

        return max(network.rows_of(unit), key=moved)

    def _unit(self, network: FeedForward, weights: Vector, carried: Vector, before: Vector) -> int:
        """The unit whose error adds most, together with the unit that makes a comparison with it.

        Far beyond the linear region both are off by as much, with opposite signs.
        """

        def added(unit: int) -> tuple[float, float]:
            partner = self._partner(network, weights, unit, before)
            both = carried[unit] + (0 if partner is None else carried[partner])
            return abs(both), abs(carried[unit])

        return max(map(int, np.flatnonzero(carried)), key=added)

    def _partner(
        self, network: FeedForward, weights: Vector, unit: int, before: Vector
    ) -> int | None:
        """The other unit of the comparison that a unit is part of, as in `_region`."""
        if network.activation != "relu" or not weights[unit]:
            return None
        # Two units make a comparison if they have one row of W₁, opposite weights in W₂ and
        # different biases. Several units may fit: a count has a step at each threshold. The one
        # with the nearest bias is taken.
        W_1 = np.asarray(network.W_1, dtype=float)
        opposite = weights + weights[unit] == 0
        alike = (W_1 - W_1[unit] == 0).all(axis=1) & opposite
        partners = [int(each) for each in np.flatnonzero(alike) if before[each] != before[unit]]
        return min(partners, key=lambda each: abs(before[each] - before[unit]), default=None)

    def _region(
        self, network: FeedForward, weights: Vector, unit: int, before: Vector, after: Vector
    ) -> tuple[float, float, float] | None:
        """The linear region of the comparison that a unit is part of, in the scale of its input.

        Two ReLUs of one row of W₁ whose outputs enter with opposite signs, s ReLU(t + b) −
        s ReLU(t + c) with b > c, are constant outside −b < t < −c, where they rise by s (b − c).
        """
        partner = self._partner(network, weights, unit, before)
        if partner is None:
            return None
        W_1 = np.asarray(network.W_1, dtype=float)
        scale = abs(W_1[unit]).max() or 1.0
        first = unit if before[unit] > before[partner] else partner
        width = abs(before[unit] - before[partner])
        return float(before[first] / scale), float(after[first] / scale), float(width / scale)

    # Heads

    def _scores(self, head: Attention, read: Vector, row: int) -> Vector:
        """The scores of a query in float64."""
        W_Q, W_K, b_Q, b_K = (
            np.asarray(each, dtype=float) for each in (head.W_Q, head.W_K, head.b_Q, head.b_K)
        )
        keys = read @ W_K.T + b_K
        return np.asarray(keys @ (W_Q @ read[row] + b_Q) / math.sqrt(len(W_Q)), dtype=float)

    def _attention(self, stream: int, row: int, slot: int, sublayer: Sublayer) -> Found:
        run, step = self.run, self.run.format.steps[stream - 1]
        heads = sublayer.function
        assert isinstance(heads, Heads)
        held = self.got(stream - 1, row)[slot] - self.real(stream - 1, row)[slot]
        total = self.got(stream, row)[slot] - self.real(stream, row)[slot]
        ideals = run.ideal.steps[stream - 1].function
        assert isinstance(ideals, Sublayer) and isinstance(ideals.function, Heads)
        read = run.format.read(sublayer, run.streams[stream - 1])
        lost = np.argwhere(~np.isfinite(self._float(read)))
        if len(lost):
            return self.found(
                stream - 1, int(lost[0][0]), _slot(sublayer.pre_norm, int(lost[0][1]))
            )
        exact = run.ideal.read(sublayer, run.exact[stream - 1])
        found = [
            _HeadRow(self, number, head, ideal, row, slot, read, exact)
            for number, (head, ideal) in enumerate(
                zip(heads.heads, ideals.function.heads, strict=True)
            )
            if slot in head.written
        ]
        # The stream adds up the errors of all heads; the one with the largest part is examined.
        worst = max(found, key=lambda each: max(abs(each.by_weights), abs(each.by_values)))
        carried = sum(each.by_weights + each.by_values for each in found)
        rounding = total - held - carried
        parts = abs(np.array([worst.by_weights, worst.by_values, held, rounding]))
        if parts[0] == parts.max():
            if not worst.chooses:
                return self._stored(stream, row, slot, float(self.real(stream, row)[slot]))
            source = worst.source_of_scores()
            if source is not None:
                j, column = source
                came_from = self.found(stream - 1, j, _slot(sublayer.pre_norm, column))
                if not came_from.is_rounding:
                    return came_from
            signature = worst.blend(step.layer or 0, lambda j: run.format.position(stream, j))
            return Found(signature, RowNumbers(stream, row, (slot,)))
        if parts[1] == parts.max():
            j, column = worst.source()
            moved = self._through_norm(sublayer, stream, j, column)
            return moved or self.found(stream - 1, j, _slot(sublayer.pre_norm, column))
        if parts[2] == parts.max():
            return self.found(stream - 1, row, slot)
        return self._stored(stream, row, slot, float(self.real(stream, row)[slot]))


class _HeadRow:
    """One query of a head in both runs: the weights, the values, and their parts of an error."""

    def __init__(
        self,
        classifier: _Classifier,
        number: int,
        head: Attention,
        ideal: Attention,
        row: int,
        slot: int,
        read: Any,
        exact: Any,
    ) -> None:
        run, a = classifier.run, classifier.a
        rational, rows = run.ideal.arithmetic, slice(row, row + 1)
        self.number, self.head, self.row = number, head, row
        self.read = classifier._float(read)
        self.exact = np.asarray(rational.numbers(exact), dtype=float)
        self.classifier = classifier
        self.real_scores = self.scores_of(self.exact)
        self.format_scores = classifier._float(head.scores(read, a, rows))[0]
        self.admissible = head.mask.admissible(np.array([[row]]), np.arange(len(self.read))[None])[
            0
        ]
        self.weights = classifier._float(head.weights(read, a, rows))[0]
        self.wanted = np.asarray(
            rational.numbers(ideal.weights(exact, rational, rows)), dtype=float
        )[0]
        # A row of W_O W_V takes what is attended to the slot; both factors are those of the head.
        self.coefficients = np.asarray(head.value_matrix, dtype=float)[slot]
        got, real = self.read @ self.coefficients, self.exact @ self.coefficients
        shift = float(head.value_shift[slot])
        # Σ w g − Σ w′ r = Σ (w − w′) r + Σ w (g − r), with weights w and values g in the format, w′
        # and r without rounding: the first part is the fault of the weights, the second that of the
        # values.
        self.by_weights = float((self.weights - self.wanted) @ (real + shift))
        self.moved = self.weights * (got - real)
        self.by_values = float(self.moved.sum())

    @property
    def chooses(self) -> bool:
        """True if the ideal leaves positions out, or the format does."""
        left_out = (self.wanted == 0) | (self.weights == 0)
        return bool((left_out & self.admissible).any())

    def source(self) -> tuple[int, int]:
        """The row and the coordinate whose error adds most."""
        j = int(np.argmax(abs(self.moved)))
        return j, int(np.argmax(abs(self.coefficients * (self.read[j] - self.exact[j]))))

    def scores_of(self, read: Vector) -> Vector:
        """The scores of the query in float64, for vectors that the head reads."""
        return self.classifier._scores(self.head, read, self.row)

    def source_of_scores(self) -> tuple[int, int] | None:
        """The row and coordinate whose exact value would raise the lead of the wanted key most.

        `None` unless errors of inputs cause more than half of the lost lead; the rest is the
        rounding of the scores.
        """
        wanted, others = self.wanted > 0, self.admissible & (self.wanted == 0)
        if not others.any():
            return None
        # The wanted key with the lowest score in the format, and the other one with the highest.
        key = int(np.argmin(np.where(wanted, self.format_scores, np.inf)))
        other = int(np.argmax(np.where(others, self.format_scores, -np.inf)))

        def lead(scores: Vector) -> float:
            return float(scores[key] - scores[other])

        got, real = lead(self.format_scores), lead(self.real_scores)
        with_errors = lead(self.scores_of(self.read))
        # A lead may be lost to the softmax alone. NaN, of scores that overflow, compares as false.
        if not (got < real and real - with_errors > (real - got) / 2):
            return None
        rows = sorted({self.row, key, other})
        changes = {}
        for at, column in np.argwhere(self.read[rows] != self.exact[rows]):
            mended = self.read.copy()
            mended[rows[at], column] = self.exact[rows[at], column]
            changes[rows[at], int(column)] = lead(self.scores_of(mended)) - with_errors
        return max(changes, key=lambda each: changes[each])

    def blend(self, layer: int, position: Any) -> Blend:
        """The signature of weights on other positions."""
        wanted = self.wanted > 0
        others = self.admissible & ~wanted
        most = [int(j) for j in np.argsort(-self.weights, kind="stable")[:SHOWN]]
        most = [j for j in most if self.weights[j] > 0]
        return Blend(
            layer=layer,
            head=self.number,
            query=position(self.row),
            gap=_lead(self.real_scores, wanted, others),
            lead=_lead(self.format_scores, wanted, others),
            positions=tuple(position(j) for j in most),
            weights=tuple(float(self.weights[j]) for j in most),
            wanted=tuple(position(int(j)) for j in np.flatnonzero(wanted)[:SHOWN]),
            stray=float(self.weights[others].sum()),
        )


def _lead(scores: Vector, wanted: Any, others: Any) -> float:
    """Least wanted score minus the largest of the others; infinite without others."""
    if not others.any():
        return math.inf
    return float(scores[wanted].min() - scores[others].max())


def _is_moved(got: float, real: float, before: float, exact: float) -> bool:
    """True if a norm makes the relative error of a number more than twice what it was."""

    def relative(value: float, right: float) -> float:
        return abs(value - right) / abs(right) if right else abs(value - right)

    return not math.isfinite(got) or relative(got, real) > 2 * relative(before, exact)


def _selected(norm: LayerNorm, z: Vector) -> Vector:
    """W_N z, the vector that a norm scales."""
    return z if norm.W_N is None else np.asarray(np.asarray(norm.W_N, dtype=float) @ z)


def _slot(norm: LayerNorm | None, column: int) -> int:
    """The coordinate of the stream behind one of the vectors that a sublayer reads."""
    if norm is None or norm.W_N is None:
        return column
    return int(np.argmax(abs(np.asarray(norm.W_N, dtype=float)[column])))
