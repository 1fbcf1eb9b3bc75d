"""Builder of forms: embeddings, position functions, means, ReLUs, steps, gates."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from transformist.circuit import (
    LONGEST_CODED,
    SEES_BOS,
    SHARED_ZERO,
    AtCoded,
    Atom,
    Circuit,
    Embedded,
    Fetched,
    Form,
    FunctionOfPlace,
    Match,
    PositionCode,
    PositionFeature,
    Relu,
    Rounded,
    RowNumber,
    StepFunction,
    Uniform,
    at_bos,
    at_symbols,
    total,
)
from transformist.compiler.lower.resets import Resets
from transformist.compiler.source_map import SourceMap
from transformist.compiler.target import OR_ANY_MASKS, Target
from transformist.compiler.uncompilable import (
    NoValueAtLength,
    Subexpressions,
    TagsLookAhead,
    Uncompilable,
)
from transformist.errors import UndefinedValue
from transformist.language import Accept
from transformist.language.node import Node
from transformist.language.output_kinds import Output
from transformist.laws import INFINITY, Range
from transformist.model import Mask
from transformist.position_features import position
from transformist.rounding import power_of_two_at_most


@dataclass(frozen=True)
class Scale:
    """Factor that a number carries in a form, with D the rows that a mask leaves.

    Attributes:
        kind: `mean` for (D − 1)/D, `count` for 1/D; else 1.
        mask: the mask.

    """

    kind: str
    mask: str


AS_IT_IS = Scale("as it is", "")
"""The scale 1."""


@dataclass(frozen=True)
class ComputedPositions:
    """Computation of position functions from the share of BOS.

    Attributes:
        precision: the bits of the significand of the format; `None` where nothing rounds.

    """

    precision: int | None


@dataclass(eq=False)
class Builder:
    """Adds atoms to a circuit for the subexpression that is lowered.

    Attributes:
        source: names and places of the subexpressions.
        circuit: the atoms so far.
        source_map: what they serve.
        positions: the position functions that may be used, all when `None`.
        target: the masks that heads may have.
        resets: resets of numbers whose errors have grown; `None` for no resets.
        computed: how position functions are computed; `None` if the host has them.
        code: the sinusoidal code of positions; `None` for the quadratic one.
        served: the subexpressions that are lowered, each for the sake of the one before it. New
            atoms serve the last.

    """

    source: Subexpressions
    circuit: Circuit
    source_map: SourceMap
    positions: Sequence[str] | None
    target: Target
    resets: Resets | None = None
    computed: ComputedPositions | None = None
    code: PositionCode | None = None
    served: list[Node] = field(default_factory=list)

    def add(self, atom: Atom, name: str) -> Form:
        """An atom; a head whose mask the target does not have is refused."""
        node = self.served[-1] if self.served else None
        if isinstance(atom, Fetched) and not self.target.admits(atom.head.mask):
            raise self.refuse_mask(node or self._handed_out[0].node, atom.head.mask)
        return self.source_map.add(self.circuit, atom, name, node)

    # Names and refusals

    def name(self, node: Node) -> str:
        """Name of a subexpression."""
        return self.source.names[node]

    def case(self, node: Node, value: Any) -> str:
        """Name of the fact that a subexpression has a value."""
        return f"{self.name(node)} = {value}"

    def refuse(self, node: Node, invariant: str, *, received: str, remedy: str) -> Uncompilable:
        """The refusal of a subexpression."""
        return self.source.refused(node, invariant, received=received, remedy=remedy)

    def refuse_length(
        self, node: Node, invariant: str, *, received: str, remedy: str
    ) -> Uncompilable:
        """The refusal of a subexpression that can be compiled for a smaller N."""
        told = {"received": received, "remedy": remedy}
        return self.source.refused(node, invariant, **told, kind=NoValueAtLength)

    def refuse_mask(self, node: Node, mask: str) -> Uncompilable:
        """The refusal of a head whose mask the target does not have."""
        is_tagged = not all(isinstance(each, Accept) for each in self._handed_out)
        remedy = self.target.remedy(mask, is_tagged=is_tagged)
        return self.source.refused(
            node,
            f"every head of {self.target.noun} must have the mask {self.target.masks[0]}",
            received=f"which needs a head of mask {mask}",
            remedy=remedy,
            kind=TagsLookAhead if remedy == self.target.tag_remedy else Uncompilable,
        )

    @property
    def _handed_out(self) -> list[Output]:
        return [each for _, each in self.source.program.output.parts]

    def lookup_mask(self) -> str:
        """The mask of a lookup of a position up to the present one: future, if the target has it.

        The score has a single peak, at that position, so mask none finds the same position.
        """
        return Mask.FUTURE if self.target.admits(Mask.FUTURE) else Mask.NONE

    def needs_length(self, node: Node, why: str) -> Uncompilable:
        """The refusal to compile for any length."""
        return self.refuse(
            node,
            f"max_length must be known, since {why} depends on N",
            received="max_length = None",
            remedy="give max_length",
        )

    def require_means(self, node: Node, received: str = "a mean or count") -> None:
        """Refuse a mean where each position attends to one."""
        if self.circuit.weighting == "rightmost-hard":
            raise self.refuse(
                node,
                "a mean needs a weighting that attends to several positions",
                received=received,
                remedy="compile it with average-hard or softmax attention",
            )

    def require_sharpness(self, node: Node) -> None:
        """Refuse scores whose sharpness under softmax depends on N, where no N is given."""
        if self.circuit.max_length is None and self.circuit.weighting == "softmax":
            raise self.needs_length(node, "the sharpness of the scores")

    # What follows from the symbol

    def embedded(self, values: Sequence[Any], name: str) -> Form:
        """A number for each symbol, 0 at BOS; a constant where they are all the same."""
        numbers = {value: Fraction(value) or SHARED_ZERO for value in set(values)}
        if len(numbers) == 1:
            return Form.of(*numbers.values())
        zeros = (SHARED_ZERO,) * self.circuit.bos
        return self.add(Embedded((*map(numbers.__getitem__, values), *zeros)), name)

    def embedded_case(self, values: Sequence[Any], value: Any, name: str) -> Form:
        """A form that is 1 at the symbols that have this value, 0 elsewhere."""
        return self.embedded([each == value for each in values], name)

    def embedded_in(self, values: Sequence[Any], scale: Scale, node: Node) -> Form:
        """A number for each symbol, times a scale."""
        if len(set(values)) == 1:
            return self.one_in(scale) * Fraction(values[0])
        if scale == AS_IT_IS:
            return self.embedded(values, self.name(node))
        different = [(value, self.case(node, value)) for value in dict.fromkeys(values) if value]
        return total(
            self.gated(self.embedded_case(values, value, name), self.one_in(scale), name) * value
            for value, name in different
        )

    # What follows from the position

    def feature(self, name: str, node: Node) -> Form:
        """A function of the position, by name."""
        allowed = self.positions
        if allowed is not None and name not in allowed:
            raise self.refuse(
                node,
                f"the position function {name}, which the subexpression needs, must be allowed",
                received=f"positions = {', '.join(allowed) or 'none'}",
                remedy=f"allow {name}, or leave positions out",
            )
        if name.endswith("/n") and not self.target.knows_length:
            raise self.refuse(
                node,
                f"a position function of {self.target.noun} must not depend on the length n",
                received=f"which needs the position function {name}",
                remedy=f"use i{OR_ANY_MASKS}",
            )
        try:
            position(name, 0, 0)
        except UndefinedValue:
            if self.circuit.bos:
                raise self.refuse(
                    node,
                    "a position function must have a value at BOS, which is at i = 0",
                    received=f"{name} in a model with BOS",
                    remedy="compare with i, or take a mean for a count over i or n",
                ) from None
        if self.computed is not None:
            return self._computed(name, node, self.computed.precision)
        return self.add(PositionFeature(name), name)

    def _computed(self, name: str, node: Node, precision: int | None) -> Form:
        """A function of the position, from the share 1/(i + 1) of BOS up to here."""
        longest = self.circuit.max_length
        if longest is None:
            raise self.needs_length(node, "the number of hidden units that compute a position")
        self.require_means(node, "a position from the share of BOS")
        if name.endswith("/n"):
            raise self.refuse(
                node,
                "a position function computed from the share of BOS must not depend on n",
                received=f"which needs the position function {name}",
                remedy="use i, or compile it without positions=bos",
            )
        share = self.one_in(Scale("count", Mask.FUTURE))
        place = self.add(RowNumber(share, longest), "i before rounding")
        if precision is not None:
            place = self.add(Rounded(place, Rounded.constant_for(precision)), "i")
        if name == "i":
            return place
        # The function does not depend on n (refused above), so any n gives its value; 0 is BOS.
        values = tuple(int(position(name, i, i)) for i in range(longest + 1))
        return self.add(FunctionOfPlace(place, values), name)

    def at_coded(self, index: tuple[int, int], mask: str, furthest: int) -> AtCoded | None:
        """The head that finds a position by a code, whose sines need not be among `positions`.

        Args:
            index: slope and offset of the index.
            mask: the mask.
            furthest: the largest distance of an index from a position.

        Returns:
            `None` without sinusoidal codes, and where the distance is beyond every wavelength.

        """
        if self.code is None or furthest > LONGEST_CODED:
            return None

        def feature(name: str) -> Form:
            return self.add(PositionFeature(name), name)

        code = PositionCode(max(self.code.longest, furthest, 2))  # 2: at least two wavelengths
        return AtCoded.by(code, index, mask, feature, at_bos(self.circuit))

    def place(self, node: Node) -> Form:
        """A number whose values at different positions are at least 1 apart, in their order.

        It is i, or N i/n where i is not allowed: at most N, and 0 at BOS.
        """
        allowed = self.positions
        if allowed is not None and "i" not in allowed and "i/n" in allowed:
            if self.circuit.max_length is None:
                raise self.needs_length(node, "the distance of multiples of i/n")
            return self.feature("i/n", node) * self.circuit.max_length
        return self.feature("i", node)

    @property
    def tells_places_apart(self) -> bool:
        """True if `place` is allowed and N, which a match has to outweigh, is known."""
        allowed = {"i", "i/n"} if self.positions is None else {"i", "i/n"} & {*self.positions}
        return bool(allowed) and self.circuit.max_length is not None

    def length(self, node: Node) -> Form:
        """n: twice the mean of the positions, BOS being at 0; or the last position."""
        place = self.feature("i", node)
        if self.circuit.weighting == "rightmost-hard":
            return self.add(Fetched(Match((), (), "rightmost", "none"), place), "n")
        # 1 + … + n is n (n + 1)/2: over n + 1 rows with BOS, n rows without.
        mean = self.add(Fetched(Uniform("none"), place), "mean of i")
        return mean * 2 if self.circuit.bos else mean * 2 - 1

    # Means

    def mean(self, node: Node, mask: str, value: Form) -> Form:
        """The mean of a form, by a head with equal scores."""
        self.require_means(node)
        return self.add(Fetched(Uniform(mask), value), self.name(node))

    def mean_scale(self, mask: str) -> Scale:
        """The scale of a mean under a mask."""
        return Scale("mean", mask) if self.circuit.bos and mask in SEES_BOS else AS_IT_IS

    def one_in(self, scale: Scale) -> Form:
        """The number 1 in a scale: the scale itself."""
        if scale == AS_IT_IS:
            return Form.of(1)
        counted = at_bos(self.circuit) if scale.kind == "count" else at_symbols(self.circuit)
        # The mean of 1 at BOS is 1/D, that of 1 at symbols (D − 1)/D.
        form = self.add(Fetched(Uniform(scale.mask), counted), f"1 in {scale.kind} {scale.mask}")
        if scale != Scale("mean", "strict-future"):
            return form
        share = self.one_in(Scale("count", scale.mask))  # over no symbols a mean is 0, but not 0/D
        return form + self.relu(share * 2 - 1, f"nothing in {scale.mask}")

    # Hidden units

    def relu(self, form: Form, name: str) -> Form:
        """max(form, 0); the form or 0 where its sign is known."""
        within = self.circuit.rows(form).hull()
        if within.lo >= 0:
            return form
        if within.hi <= 0:
            return Form()
        return self.add(Relu(form), name)

    def step(self, form: Form, zone: Fraction, name: str) -> Form:
        """[form > 0], where it is at most 0, or at least the zone, at the symbols."""
        within = self.circuit.span(form)
        if within.hi <= 0:
            return Form()
        if within.lo >= zone:
            return Form.of(1)
        return self.add(StepFunction(form, zone), name)

    def zone(self, node: Node, form: Form) -> Fraction:
        """A power of two within the least magnitude but 0 of a form, that of a subexpression."""
        found = self.circuit.separation(form)
        if found is not None:
            return power_of_two_at_most(found)
        if self.circuit.max_length is None:
            raise self.needs_length(node, "its least magnitude but 0")
        raise self.refuse(
            node,
            "a number that is compared must be 0 or at least some known number in magnitude",
            received="no such number is known: it is a mean of numbers of both signs that are "
            "means, or whose denominators depend on the position",
            remedy="compare the numbers first, or take their ReLU, and then the mean; or count",
        )

    def conjunction(self, loose: Form, name: str) -> Form:
        """[form = 1] of a whole number that is at most 1."""
        within = self.circuit.span(loose)
        if within.hi <= 0:
            return Form()
        # A whole number that is at most 1 and at least 1.
        if within.lo >= 1:
            return Form.of(1)
        # A ReLU hands on the error of the form; a step takes it away.
        has_grown = self.resets is not None and self.resets.step_is_due(loose)
        if has_grown or not self.circuit.is_clean(loose):
            return self.add(StepFunction(loose, Fraction(1)), name)
        return self.relu(loose, name)

    def reset(self, form: Form, values: Sequence[Any], name: str) -> Form:
        """Return the form, or a sum of steps with the same values if its error has grown."""
        listed = [] if self.resets is None else self.resets.values_of(form, values)
        if not listed:
            return form
        steps = [
            self.step(form - low, power_of_two_at_most(high - low), f"{name}: reset") * (high - low)
            for low, high in itertools.pairwise(listed)
        ]
        return total(steps) + listed[0]

    def gated(self, bit: Form, form: Form, name: str) -> Form:
        """Return a form equal to `form` where the bit is 1, and 0 where the bit is 0."""
        return self._gate(bit, form, name, self.circuit.span(form))

    def quiet(self, form: Form, name: str) -> Form:
        """Return a form with the same values at the symbols, and 0 at BOS."""
        if not self.circuit.bos:
            return form
        there = self.circuit.span_at_bos(form)
        if there.is_point:
            return form - at_bos(self.circuit) * there.lo if there.lo else form
        within = there.hull(self.circuit.span(form))
        return self._gate(1 - at_bos(self.circuit), form, name, within)

    def _gate(self, bit: Form, form: Form, name: str, within: Range) -> Form:
        """The form x where the bit b is 1, 0 where it is 0; x is within a range."""
        # x = ReLU(x) − ReLU(−x), and ReLU(x + (b − 1) s) is ReLU(x) for b = 1, and 0 for b = 0 if
        # s is at least as large as x can be. As a power of two, s does not round.
        parts = []
        for sign, most in ((1, within.hi), (-1, -within.lo)):
            if most == INFINITY:
                raise self.needs_length(self.served[-1], "its largest magnitude")
            if most > 0:
                shift = Fraction(1) if most <= 1 else 1 / power_of_two_at_most(1 / Fraction(most))
                parts.append(self.relu(form * sign + (bit - 1) * shift, name) * sign)
        return total(parts)
