"""Margins of a certificate by the laws of circuits, recorded one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.circuit import (
    READ_OUT,
    Circuit,
    Head,
    MarginOwner,
    Margins,
    Readings,
    StepFunction,
    follow,
    magnitude,
)
from transformist.laws import Range
from transformist.model import Transformer
from transformist.rounding import ANY_ORDER, Order
from transformist.verify.certificate.statement import Assumption, Demand


def noted(
    circuit: Circuit,
    sharpness: Mapping[Head, Fraction],
    a: Floating,
    order: Order = ANY_ORDER,
    readings: Readings | None = None,
    falling: Collection[int] = (),
) -> tuple[Margins, list[Demand]]:
    """Return margins that refuse nothing, and the list in which they record every requirement."""
    demands: list[Demand] = []

    def note(part: MarginOwner, what: str, error: float, allowed: float) -> None:
        place = circuit.names[part] if isinstance(part, int) else part
        demands.append(Demand(place, what, float(error), allowed))

    margins = Margins(
        circuit=circuit,
        a=a,
        order=order,
        falling=falling,
        sharpness=sharpness,
        on_margin=note,
        readings=readings,
    )
    return margins, demands


def follow_within(margins: Margins) -> None:
    """Follow the next atom; require that its number fits, and that a step is a step at BOS."""
    number, circuit = len(margins.errors), margins.circuit
    follow(margins)
    size = magnitude(circuit.laws[number].size) + margins.errors[number].absolute
    margins.require(number, "the size of a number", size, margins.a.largest)
    atom = circuit.atoms[number]
    if circuit.bos and isinstance(atom, StepFunction):
        _require_at_bos(margins, number, atom)


def _require_at_bos(margins: Margins, number: int, atom: StepFunction) -> None:
    """Require that a step is 0 or 1 at BOS, where it is known there, and where BOS stands alone."""
    circuit = margins.circuit
    ranges = [Range.of(circuit.over_nothing(atom.form))]
    if circuit.laws[number].rows[-1].is_point:
        ranges.append(circuit.span_at_bos(atom.form))
    # The two units of a step are 0 up to zone/4 and constant from 3 zone/4 on (`extraction.step`).
    # So a range within one of these sides must be further from the other side than the error.
    for each in ranges:
        at = max(each.hi, atom.zone)
        error = atom.comparison_error(margins, number, at)
        beside = max(atom.zone / 4 - each.hi, each.lo - 3 * atom.zone / 4, Fraction(0))
        margins.require(number, "the error of a comparison at BOS", error, beside)


def require_finite(margins: Margins, model: Transformer) -> None:
    """Require that all weights and sums fit the format, even if no answer depends on them."""
    largest = max(map(_largest, _weights_of(model)))
    margins.require("weights", "the size of a weight", largest, margins.a.largest)
    most = margins.largest_magnitude
    margins.require("sums", "the size of what is added up", most, margins.a.largest)


BEYOND = "the positions beyond those for which what is assumed has been observed"
"""Quantity of the margin for lengths at which an assumption has not been observed."""


def require_observed(margins: Margins, assumes: Iterable[Assumption]) -> None:
    """Require that assumptions have been observed on every input up to the length N."""
    for each in assumes:
        beyond = max(int(margins.circuit.longest) - each.checked, 0)
        margins.require(READ_OUT if each.line is None else each.line, BEYOND, beyond, 1)


def _largest(weights: NDArray[Any]) -> float:
    """Return the largest magnitude of an array of weights, 0 of an empty one."""
    if weights.dtype == np.float64:
        return float(np.abs(weights).max(initial=0.0))
    return max(map(magnitude, weights[np.nonzero(weights)].tolist()), default=0.0)


def _weights_of(model: Transformer) -> Iterator[NDArray[Any]]:
    """Yield all arrays of weights, those of symbols included."""
    yield model.embedding.vectors
    parts: list[Any] = [head for layer in model.layers for head in layer.heads]
    parts += [layer.feed_forward for layer in model.layers if layer.feed_forward is not None]
    for part in (*parts, model.read_out):
        for each in fields(part):
            if isinstance(array := getattr(part, each.name), np.ndarray):
                yield array
