"""Margins of each kind of read-out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from transformist.circuit import READ_OUT, SEES_BOS, Form, Margins, rows_under
from transformist.model import Binary, MultiClass, NearestFraction
from transformist.verify.certificate.counted_labels import (
    CountForms,
    answers_the_empty_input,
    as_count,
)
from transformist.verify.certificate.uniqueness import apart, distance_from_zero, has_one_best


class ReadOutForms(NamedTuple):
    """Forms of the rows of a read-out.

    Attributes:
        forms: of every row, or of the needed rows alone if `counted` is set.
        counted: y and w if the rows of weights show a count (`chosen_rows`).

    """

    forms: list[Form]
    counted: CountForms | None = None


def _binary(margins: Margins, _read_out: Binary, answers: ReadOutForms) -> bool:
    (form,), circuit = answers.forms, margins.circuit
    error = margins.error(form)
    # An answer is the sign of the form, which an error below the distance from 0 does not change.
    margins.require(READ_OUT, "the answer", error, distance_from_zero(circuit, form))
    if circuit.bos:
        alone = abs(circuit.over_nothing(form))
        margins.require(READ_OUT, "the answer on the empty input", error, alone)
    return True


def _labels(margins: Margins, read_out: MultiClass, answers: ReadOutForms) -> bool:
    """Require margins of a count times D, and of other labels by their least distance."""
    circuit, forms = margins.circuit, answers.forms
    if answers_the_empty_input(read_out, circuit):
        alone = sorted((circuit.over_nothing(form) for form in forms), reverse=True)
        gap = alone[0] - alone[1] if len(alone) > 1 else Fraction(1)
        worst = max(margins.error(form) for form in forms)
        margins.require(READ_OUT, "the answer on the empty input", 2 * worst, gap)
    count = answers.counted or as_count(circuit, read_out, forms)
    if count is not None:
        y, w = count
        scale = circuit.grid(y).c  # type: ignore[union-attr]
        first, last = (Fraction(read_out.labels[k]) for k in (0, -1))  # type: ignore[arg-type]
        margins.require_count(READ_OUT, y, w, scale, int(first * scale), int(last * scale), forms)
        return True
    if len(forms) == 1:
        return True
    # Two labels are compared: each may be off by the error, in opposite directions.
    error = max(margins.error(form) for form in forms)
    margins.require(READ_OUT, "the answer", 2 * error, apart(circuit, forms))
    return has_one_best(circuit, read_out, forms)


def _fraction(margins: Margins, read_out: NearestFraction, answers: ReadOutForms) -> bool:
    (form,), circuit = answers.forms, margins.circuit
    grid = circuit.grid(form)
    wanted = frozenset({rows_under(read_out.mask)})
    sees_bos = circuit.bos and read_out.mask in SEES_BOS
    # Then scale · D · mean is a whole number, and rounding to the nearest one takes away an error
    # below 1/2.
    fits = grid is not None and grid.counts <= wanted and read_out.scale % grid.c == 0
    fits = fits and read_out.with_bos == sees_bos
    error = read_out.scale * margins.scaled_error(form)
    margins.require(READ_OUT, "the answer, a mean", error, Fraction(1, 2) if fits else Fraction(0))
    return True


READ_OUTS: Mapping[type[Any], Callable[[Margins, Any, ReadOutForms], bool]] = {
    Binary: _binary,
    MultiClass: _labels,
    NearestFraction: _fraction,
}
"""Margins of each kind of read-out; each function returns True if one answer is always best."""
