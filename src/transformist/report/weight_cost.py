"""Cost of weights that depend on N: their count and their bits, as a function of N."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.claims import Model, Recipe, Settings
from transformist.position_features import POSITIONS, WAVES, position
from transformist.report.size import counted


@dataclass(frozen=True)
class WeightCost:
    """Count and bits of the weights of a model; a computation of the weights writes all of them.

    The bits of a number p/q in lowest terms are those of p and of q, and of an integer those of p.
    Positions by formula have no weights.

    Attributes:
        nonzero: the number of weights that are not 0.
        distinct: the number of different magnitudes among them.
        bits: the sum of their bits.
        longest: the most bits of one of them.

    """

    nonzero: int
    distinct: int
    bits: int
    longest: int


def weight_cost(model: Model) -> WeightCost:
    """Count the weights of a model and their bits.

    Example:
        >>> import transformist as tf
        >>> weight_cost(tf.recipe("scale").build(factor="5/3"))
        WeightCost(nonzero=4, distinct=2, bits=12, longest=5)

    """
    found: Counter[Fraction] = Counter()
    for _, matrix in model.weights_table():
        found.update(_magnitudes(matrix.values))
    lengths = {value: bits(value) for value in found}
    return WeightCost(
        nonzero=found.total(),
        distinct=len(found),
        bits=sum(count * lengths[value] for value, count in found.items()),
        longest=max(lengths.values(), default=0),
    )


def _magnitudes(values: NDArray[Any]) -> Counter[Fraction]:
    """Number of times that each magnitude other than 0 occurs; formulas are left out."""
    if values.dtype == object:
        numbers = [value for value in values.ravel().tolist() if not isinstance(value, str)]
        counts = Counter(abs(Fraction(value)) for value in numbers)
    else:
        each, times = np.unique(np.abs(values), return_counts=True)
        pairs = zip(each.tolist(), times.tolist(), strict=True)
        counts = Counter({Fraction(value): count for value, count in pairs})
    del counts[Fraction(0)]
    return counts


def bits(value: Fraction) -> int:
    """Bits of an integer p, or of p and q in lowest terms.

    Example:
        >>> bits(Fraction(8)), bits(Fraction(-1, 3))
        (4, 3)

    """
    own = abs(value.numerator).bit_length()
    return own if value.denominator == 1 else own + value.denominator.bit_length()


HALVINGS = 2
"""The cost is shown at N, N/2 and N/4: smaller models cost less than the one that is shown."""


def costs_by_length(recipe: Recipe[Any], settings: Settings) -> list[dict[str, int]] | None:
    """The cost at N and at the lengths before it; `None` where weights do not depend on N.

    Example:
        >>> import transformist as tf
        >>> recipe = tf.recipe("position-one-hot")
        >>> [each["nonzero"] for each in costs_by_length(recipe, recipe.settings({}))]
        [16, 32, 64]

    """
    longest = settings.get("max_length")
    if "N" not in recipe.claim.dependence(settings) or longest is None:
        return None
    lengths = sorted({max(1, longest >> halvings) for halvings in range(HALVINGS + 1)})
    return [
        {
            "max_length": N,
            **asdict(weight_cost(recipe.construct(**{**settings, "max_length": N}))),
        }
        for N in lengths
    ]


def feature_bits(model: Model, needed: Sequence[str], n: int) -> dict[str, int]:
    """The most bits of each positional feature at the positions 1 to n.

    Args:
        model: has the features of its own embedding.
        needed: the features that the claim needs of lists of vectors.
        n: the length.

    Example:
        >>> import transformist as tf
        >>> feature_bits(tf.recipe("dyck-1-2").build(), (), 16)
        {'i/n': 9}

    """
    tables = (matrix.values.ravel().tolist() for _, matrix in model.weights_table())
    own = {value for table in tables for value in table if isinstance(value, str)}
    return {
        name: max(bits(Fraction(position(name, i, n))) for i in range(1, n + 1))
        for name in (*POSITIONS, *WAVES)
        if name in {*own, *needed}
    }


def cost_in_words(costs: Sequence[Mapping[str, int]]) -> str:
    """The cost at each N.

    Example:
        >>> cost_in_words([{"max_length": 4, "nonzero": 1, "distinct": 1, "bits": 3, "longest": 3}])
        'at N = 4: 1 non-zero parameter of 1 magnitude, at most 3 bits each, 3 in all'

    """
    return "; ".join(
        f"at N = {each['max_length']}: {counted(each['nonzero'], 'non-zero parameter')} of "
        f"{counted(each['distinct'], 'magnitude')}, at most {each['longest']} bits each, "
        f"{each['bits']} in all"
        for each in costs
    )
