"""Certificates as data: every number of a model with its bound, and every margin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from transformist.circuit import (
    At,
    AtCoded,
    Atom,
    Circuit,
    Embedded,
    Errors,
    Fetched,
    Form,
    Head,
    Kept,
    Law,
    Match,
    PositionFeature,
    Relu,
    StepFunction,
    Uniform,
)
from transformist.deferred import Library
from transformist.errors import visible
from transformist.host_evaluation import HostEvaluation
from transformist.laws import Grid, Range, hull
from transformist.verify.proof import EVALUATIONS, slack

_NOTEBOOK = Library("transformist.report.notebook_html")
"""What notebooks show, imported when a notebook asks for it."""

_FIGURES = Library("transformist.figures")
"""The figures, imported when one is drawn: they need matplotlib."""

VERSION = 2
"""Version of certificates. Version 1 could be false for weights that no program is compiled to."""

GRADES = {
    0: "is not shown to hold",
    1: "holds (first grade, proved operation by operation)",
    2: "holds (second grade, by the laws of circuits)",
}
"""Grades of a certificate, in words."""

TAKEN_FOR_GRANTED = (
    "+, −, ×, ÷ and √ are correctly rounded",
    "exp is within 2 units in the last place, and exp(0) is 1",
)
"""Assumptions of every certificate on the platform."""


@dataclass(frozen=True)
class Demand:
    """Margin of a certificate: a quantity, the error allowed, and a bound of the error.

    Attributes:
        place: the slot, or the part of the model.
        what: the quantity.
        error: a bound of it.
        allowed: below this every decision is the ideal one.

    """

    place: str
    what: str
    error: float
    allowed: float

    @property
    def share(self) -> float:
        """The share of the margin that is left; negative where it is exceeded."""
        return slack(self.error, self.allowed)


@dataclass(frozen=True)
class Line:
    """A number that the model computes at every position.

    Attributes:
        name: the slot, or the part of the model.
        atom: the operation that makes the number from those of earlier lines, given by their
            places.
        law: its range at every kind of row (the symbols, and BOS where there is one), its grid and
            its least magnitude but 0.
        errors: the error bounds in the format.
        falls: whether it is a step that the weights compute from 1 downwards.

    """

    name: str
    atom: Atom
    law: Law
    errors: Errors
    falls: bool = False


@dataclass(frozen=True)
class Units:
    """One or two hidden units, and what they add, times their column of W₂.

    Attributes:
        units: their numbers.
        added: the form.

    """

    units: tuple[int, ...]
    added: Form


@dataclass(frozen=True)
class Assumption:
    """Fact that is not derived from the weights, but observed on every input up to a length.

    A certificate for longer inputs does not hold.

    Attributes:
        what: in words.
        line: the number whose range is taken to be less than follows; `None` for another thing.
        checked: it holds exactly for every input up to this length.

    """

    what: str
    line: int | None
    checked: int

    def __str__(self) -> str:
        return f"{self.what} (checked exactly for every input of length up to {self.checked})"


TIES = "the labels that are the largest together"
"""Quantity of the margin where it does not follow that one label is the largest."""


def assumed(circuit: Circuit, line: int | None, checked: int) -> Assumption:
    """Return the assumption that a sum has the range of its law, or that one label is best."""
    if line is None:
        return Assumption("no two labels are the largest together", None, checked)
    rows, bos = circuit.laws[line].rows, circuit.bos
    symbols = hull(rows[: len(circuit.alphabet)])
    at_bos = f", {rows[-1].lo} to {rows[-1].hi} at BOS" if bos else ""
    what = f"{circuit.names[line]} is from {symbols.lo} to {symbols.hi} at symbols{at_bos}"
    return Assumption(what, line, checked)


DESCRIPTION = ("lines", "heads", "units", "weighting")
"""Fields of a certificate that describe its model; no margin depends on them."""

_DESCRIBE = "_describe"
"""Key in `__dict__` of the function that computes the fields of `DESCRIPTION`.

It stays there once it was called, so that threads may read the fields at the same time.
"""


@dataclass(frozen=True)
class Certificate:
    """Statement that a format decides as the weights do exactly, for all inputs up to a length.

    Bounds are sufficient, not necessary: a model without a certificate may still answer rightly.

    Exactly is in rational arithmetic, with average-hard attention for softmax.
    `TAKEN_FOR_GRANTED` says what is asked of the platform.

    Attributes:
        model: what is certified.
        weights: a digest of it.
        arithmetic: the format.
        max_length: N.
        order: the evaluation, by its name in `EVALUATIONS`.
        weighting: of the heads that have scores.
        demands: every margin.
        lines: every number.
        heads: what the heads of each layer attend to.
        units: what the hidden units of each layer are.
        largest_length: the largest N up to `max_length` for which it holds; 0 where none does.
        assumes: the assumptions that are not derived from the weights.
        grade: 1 where it is proved operation by operation, 2 where laws of circuits show it, 0
            where it does not hold.
        stopped: where the proof of the first grade stopped, and why.
        version: of the laws that it was made by.
        host: the evaluation by a stock class of transformers, for which it holds; `None` for that
            of the model itself.

    """

    model: str
    weights: str
    arithmetic: str
    max_length: int
    order: str
    weighting: str
    demands: tuple[Demand, ...]
    lines: tuple[Line, ...]
    heads: tuple[tuple[Head, ...], ...]
    units: tuple[tuple[Units, ...], ...]
    largest_length: int
    assumes: tuple[Assumption, ...]
    grade: int = 0
    stopped: str = ""
    version: int = VERSION
    host: HostEvaluation | None = None

    def described_by(self, describe: Callable[[], Mapping[str, Any]]) -> Certificate:
        """Return this certificate with other values of the fields in `DESCRIPTION`.

        Margins decide whether a certificate holds, and they do not depend on these fields. So the
        fields are computed when one of them is read for the first time, as equality, `hash`,
        `replace`, copies and files do.

        Args:
            describe: returns the values by the names of the fields.

        """
        described = object.__new__(Certificate)
        kept = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in DESCRIPTION:
            del kept[name]
        described.__dict__.update(kept, **{_DESCRIBE: describe})
        return described

    def __getattr__(self, name: str) -> Any:
        # Python calls this only for names that `__dict__` does not have.
        if name not in DESCRIPTION or _DESCRIBE not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        values = self.__dict__[_DESCRIBE]()
        for each in DESCRIPTION:
            self.__dict__.setdefault(each, values[each])
        return self.__dict__[name]

    def __getstate__(self) -> dict[str, Any]:
        # A copy holds the values of the fields and nothing that could compute others.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def words(self) -> str:
        """The evaluation, within a sentence."""
        if self.host is None:
            return EVALUATIONS[self.order].words
        return f"by {self.host.host} of transformers, with eager or sdpa attention"

    @property
    def limiting(self) -> Demand:
        """Margin of which the least share is left; the first, if several have it.

        Shares that differ by less than the rounding of error bounds are one share.
        """
        return min(self.demands, key=lambda demand: round(demand.share, 9))

    @property
    def margin(self) -> float:
        """The smallest share of a margin that is left, over all margins."""
        return min(demand.share for demand in self.demands)

    @property
    def holds(self) -> bool:
        """True if it has a grade, and every margin is kept, given what is assumed."""
        return self.grade > 0 and self.margin > 0

    def _repr_html_(self) -> str:
        """The statement and every bound, for notebooks."""
        html: str = _NOTEBOOK.certificate_html(self)
        return html

    def plot(self) -> Any:
        """Draw the error bound of each slot beside the error allowed.

        Returns:
            A matplotlib `Figure`; its label is a description in words.

        Raises:
            InvalidValue: without matplotlib (extra `figures`).

        """
        return _FIGURES.certificate(self)

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        return f"Certificate({self})"

    def __str__(self) -> str:
        limit = self.limiting
        verdict = GRADES[self.grade if self.holds else 0]
        given = f", given that {'; '.join(map(str, self.assumes))}" if self.assumes else ""
        if self.assumes and not self.holds:
            shown = "; ".join(each.what for each in self.assumes)
            longest = self.largest_length
            held = f"for N = {longest} it holds; for more" if longest else "for any N"
            given = f"; {held} it would have to be shown that {shown}"
        least = (
            f"the least margin is at {limit.place}, {limit.what}: "
            f"up to {limit.error:.3g} of {limit.allowed:.3g}"
        )
        ended = self.stopped if not self.holds and limit.share > 0 else least
        return visible(
            f"{self.model} in {self.arithmetic} for N = {self.max_length}, "
            f"{self.words}: {verdict}{given}; {ended}"
        )


PARTS = (
    Assumption,
    At,
    AtCoded,
    Certificate,
    Demand,
    Embedded,
    Errors,
    PositionFeature,
    Fetched,
    Form,
    Grid,
    HostEvaluation,
    Kept,
    Law,
    Line,
    Match,
    Range,
    Relu,
    StepFunction,
    Uniform,
    Units,
)
"""Classes of the parts of a certificate."""
