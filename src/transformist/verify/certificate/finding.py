"""Certificates by the laws of circuits, read off weights.

The ideal is what the weights compute in exact arithmetic with hard attention: a head attends to the
largest score, or to all that are largest. A bound of how far rounding, and the weight that softmax
leaves elsewhere, move every number is composed atom by atom; a step, and a choice of a head, whose
margin is kept starts again from its ideal value.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from transformist.arithmetic import Floating
from transformist.circuit import READ_OUT, Form, Head, Kept, Margins
from transformist.errors import NotRepresentable, UndefinedValue
from transformist.model import Transformer
from transformist.rounding import ORDERS
from transformist.verify.certificate.affine import read
from transformist.verify.certificate.chosen_rows import needed_rows, read_elsewhere
from transformist.verify.certificate.extraction import Extracted, extract
from transformist.verify.certificate.identity import digest
from transformist.verify.certificate.observing import Observations, TieScan, observe
from transformist.verify.certificate.read_outs import READ_OUTS, ReadOutForms
from transformist.verify.certificate.recorded_margins import (
    follow_within,
    noted,
    require_finite,
    require_observed,
)
from transformist.verify.certificate.refusals import Uncertifiable, UncertifiableAfterASum
from transformist.verify.certificate.statement import (
    TIES,
    Certificate,
    Demand,
    Line,
    Units,
    assumed,
)

LOG = logging.getLogger(__name__)


class Search:
    """Certificates of a model for lengths up to N; short inputs are tried once."""

    def __init__(self, model: Transformer, a: Floating, n: int, order: str) -> None:
        self.model, self.a, self.n, self.order = model, a, n, order

    def certificate(self, n: int) -> Certificate:
        """Return a certificate, with assumptions only if it needs them and a slot holds a sum."""
        # An assumption limits a certificate to lengths that were observed, so it is a last resort.
        try:
            found = self._made(n, None)
        except UncertifiableAfterASum:
            return self._made(n, self.observations)
        if found.holds or not any(isinstance(line.atom, Kept) for line in found.lines):
            return found
        return self._made(n, self.observations)

    def described(self, n: int) -> Description:
        """Return the numbers, heads and units by laws alone, without margins."""
        found = extract(self.model, n)
        rows = read_elsewhere(self.model.read_out, found.contents, found.state)
        return _followed(self.model, self.a, self.order, found, rows).description

    def holds(self, n: int) -> bool:
        """True if a certificate for length n can be made, and it holds."""
        try:
            return self.certificate(n).holds
        except Uncertifiable:
            return False

    @cached_property
    def observations(self) -> Observations:
        """Ranges of the contents of slots on short inputs.

        Raises:
            Uncertifiable: for a model whose numbers are not all rational.

        """
        try:
            return observe(self.model, self.n)
        except (NotRepresentable, UndefinedValue) as refusal:
            raise Uncertifiable(
                "a slot that goes on to hold a sum must have rational values, which short inputs "
                "show",
                received=refusal.received or refusal.invariant,
                where="certify",
                remedy="write the networks with ReLUs, or test the model: transformist check",
            ) from None

    @cached_property
    def ties(self) -> TieScan:
        """Scan of short inputs for labels that are the largest together."""
        return TieScan(self.model)

    def _made(self, n: int, observations: Observations | None) -> Certificate:
        """Return every number and margin, given the observations."""
        extracted = extract(self.model, n, observations.held if observations else None)
        circuit = extracted.circuit
        read_out = self.model.read_out
        rows, count = needed_rows(circuit, read_out, extracted.contents, extracted.state)
        found = _followed(self.model, self.a, self.order, extracted, rows)
        description, margins = found.description, found.margins
        require_finite(margins, self.model)
        rule = READ_OUTS.get(type(read_out))
        if rule is None:
            raise Uncertifiable(
                "a read-out must accept, choose a label, or take the nearest fraction",
                received=type(read_out).__name__,
                where="certify",
                remedy="give a model with one of these",
            )
        # Where the forms do not show that one label is always best, a tie could be broken
        # otherwise by rounding. Then all short inputs are tried, and the certificate says that it
        # assumes it for longer ones.
        is_one = rule(margins, read_out, ReadOutForms(found.forms, count))
        seen = observations.length if observations else 0
        assumes = [assumed(circuit, each, seen) for each in extracted.assumed]
        if not is_one:
            holds, checked = self.ties(n)
            margins.require(READ_OUT, TIES, not holds, 1)
            assumes.append(assumed(circuit, None, checked))
        require_observed(margins, assumes)
        return Certificate(
            model=repr(self.model),
            weights=digest(self.model),
            arithmetic=self.a.name,
            max_length=n,
            order=self.order,
            weighting=description.weighting,
            demands=tuple(found.demands),
            lines=description.lines,
            heads=description.heads,
            units=description.units,
            grade=2,
            largest_length=n,
            assumes=tuple(assumes),
        )


class Description(NamedTuple):
    """Numbers, heads and units of a model, as a `Certificate` has them."""

    lines: tuple[Line, ...]
    heads: tuple[tuple[Head, ...], ...]
    units: tuple[tuple[Units, ...], ...]
    weighting: str


class Followed(NamedTuple):
    """A circuit whose numbers all have an error bound.

    Attributes:
        description: of the circuit.
        margins: the error bounds.
        demands: the margins that have been recorded so far.
        forms: of the rows of the read-out that are read.

    """

    description: Description
    margins: Margins
    demands: list[Demand]
    forms: list[Form]


def _followed(
    model: Transformer, a: Floating, order: str, found: Extracted, rows: Sequence[int]
) -> Followed:
    """Bound the error of every number of a circuit, and read these rows of the read-out."""
    circuit, contents, readings = found.circuit, found.contents, found.contents.readings
    forms = read(*contents.add_read_out(model.read_out, rows), found.state, {})
    margins, demands = noted(circuit, found.sharpness, a, ORDERS[order], readings, found.falling)
    for count, _ in enumerate(circuit.atoms):
        LOG.debug("error bounds of %d of %d numbers", count, len(circuit.atoms))
        follow_within(margins)
    parts = zip(circuit.names, circuit.atoms, circuit.laws, margins.errors, strict=True)
    lines = tuple(Line(*part, number in found.falling) for number, part in enumerate(parts))
    description = Description(lines, found.heads, found.units, circuit.weighting)
    return Followed(description, margins, demands, forms)
