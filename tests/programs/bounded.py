"""What a certificate promises, measured: no decision and no number in a slot is further off.

The ideal of a model is the same weights in float64 with average-hard attention, whose distance from
rational arithmetic is below `NEAR` (tested); the bounds are those of the circuit that is read off
the weights, after every sublayer.
"""

from dataclasses import replace

import numpy as np

from transformist.arithmetic import number_system
from transformist.bounds import REFERENCE_ORDER
from transformist.model import Binary, MultiClass, NearestFraction
from transformist.verify.certificate import extract
from transformist.verify.certificate.recorded_margins import follow_within, noted

NEAR = 1e-12
"""How far float64 is from rational arithmetic, beside a number of magnitude 1."""

ROWS = 2**15
"""How many rows of a stream are evaluated together."""


def hard(model):
    """The model with average-hard attention for softmax."""
    layers = []
    for layer in model.layers:
        heads = [
            replace(head, weighting="average-hard") if head.weighting == "softmax" else head
            for head in layer.heads
        ]
        layers.append(replace(layer, heads=tuple(heads)))
    return replace(model, layers=tuple(layers))


def prefixes(model):
    """The model up to each of its streams."""
    yield replace(model, layers=())
    for k, layer in enumerate(model.layers):
        before = model.layers[:k]
        if layer.heads and layer.feed_forward is not None:
            yield replace(model, layers=(*before, replace(layer, feed_forward=None)))
        yield replace(model, layers=(*before, layer))


def bounds(model, N, formats):
    """How far each slot of each stream can be off in each format: (streams, d)."""
    found = [extract(prefix, N) for prefix in prefixes(model)]
    return {each: np.array([_bounds(at, number_system(each)) for at in found]) for each in formats}


def _bounds(found, a):
    contents = found.contents
    given = found.circuit, found.sharpness, a, REFERENCE_ORDER, contents.readings, found.falling
    margins, _ = noted(*given)
    for _ in found.circuit.atoms:
        follow_within(margins)
    return [0.0 if each is None else margins.sum_error(each) for each in contents.held]


def streams(model, xs, arithmetic):
    """The numbers of every stream: arrays (inputs, rows, d)."""
    a = number_system(arithmetic)
    return [a.numbers(z) for _, z in model.streams(xs, a)]


# Decisions, from their definitions: the right answers as an array, made once for all formats, and
# whether numbers decide so


def _wanted_truth(_read_out, expected):
    return np.array(expected)


def _accepts(y, wanted):
    return (y[:, 0, 0] > 0) == wanted


def _wanted_labels(read_out, expected):
    numbers = {label: number for number, label in enumerate(read_out.labels)}
    return np.array([[numbers[label] for label in each] for each in expected])


def _labels(y, wanted):
    return (y.argmax(axis=2) == wanted.reshape(y.shape[:2])).all(axis=1)


def _wanted_fractions(_read_out, expected):
    return np.array([[float(each) for each in row] for row in expected])


def _fractions(y, wanted):
    i = np.arange(1, y.shape[1] + 1)
    return (i * abs(y[:, :, 0] - wanted.reshape(y.shape[:2])) < 0.5).all(axis=1)


DECIDES = {
    Binary: (_wanted_truth, _accepts),
    MultiClass: (_wanted_labels, _labels),
    NearestFraction: (_wanted_fractions, _fractions),
}


def answers_wanted(model, expected):
    """The right answers of inputs of one length as `is_right` takes them."""
    make, _ = DECIDES[type(model.read_out)]
    return make(model.read_out, expected)


def is_right(model, z, n, wanted, arithmetic):
    """Whether each decision from the last vectors of inputs of length n is the one wanted."""
    a, read_out = number_system(arithmetic), model.read_out
    y = a.numbers(read_out.values(a.array(z[:, model.rows_read(n)]), a))
    _, decide = DECIDES[type(read_out)]
    return decide(y, wanted)


# What is promised


def require(model, N, batches, formats, expected, exactly="float64"):
    """Evaluate inputs, and see that every bound and every decision is kept.

    Args:
        model: certified for N in the formats.
        batches: lists of inputs, each of one length.
        formats: by name.
        expected: a function from inputs to their right answers; `None` asks of bounds alone.
        exactly: the arithmetic of the ideal.

    Returns:
        How many inputs were evaluated in each format.

    """
    limits = bounds(model, N, formats)
    ideal, count = hard(model), 0
    for batch in batches:
        size = max(1, ROWS // (len(batch[0]) + 1))
        for start in range(0, len(batch), size):
            xs = batch[start : start + size]
            exact = [z.astype(float) for z in streams(ideal, xs, exactly)]
            right_ones = None if expected is None else answers_wanted(model, expected(xs))
            for each in formats:
                last = _require(model, xs, each, exact, limits[each])
                if expected is not None:
                    right = is_right(model, last, len(xs[0]), right_ones, each)
                    assert right.all(), (each, xs[int(np.argmin(right))])
            count += len(xs)
    return count


def _require(model, xs, arithmetic, exact, limits):
    """The last vectors, where every slot of every stream is within its bound."""
    for step, z in enumerate(streams(model, xs, arithmetic)):
        far = abs(z - exact[step])
        over = ~(far <= limits[step] + NEAR * np.maximum(1, abs(exact[step])))
        if over.any():
            k, i, slot = np.argwhere(over)[0]
            raise AssertionError(
                f"{arithmetic}, stream {step}, slot {model.stream.slots[slot]}, row {i} of "
                f"{xs[k]!r}: off by {far[k, i, slot]}, bound {limits[step][slot]}"
            )
    return z
