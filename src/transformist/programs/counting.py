"""Programs that count.

>>> histogram("abbc"), majority("0110")
([1, 2, 2, 1], False)
>>> fraction_of_previous("aba")
[1, Fraction(1, 2), Fraction(2, 3)]
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

from transformist.language import Accept, Booleans, Categories, Numbers, Tag, program


@program(alphabet="abcd")
def histogram(x: Categories) -> Tag:
    """Count, at each position, of its symbol in the whole string; no tags for the empty string."""
    counts = [(x == symbol).count() for symbol in x.alphabet]
    own: Numbers = sum((x == a) * count for a, count in zip(x.alphabet, counts, strict=True))
    return own.tag()


@program(alphabet="01")
def majority(x: Categories) -> Accept:
    """Accept strings with more 1s than 0s; an equal number, as in the empty string, is rejected."""
    lead: Numbers = x.map({"0": -1, "1": 1}).mean()
    return (lead > 0).accept()


@program(alphabet="ab")
def fraction_of_previous(x: Categories) -> Tag:
    """Fraction of a, at each position, among the symbols up to it, itself included."""
    return (x == "a").prefix_mean().tag()


@program(alphabet="abcd")
def double_histogram(x: Categories) -> Tag:
    """Number of symbols, at each position, that occur as often as its own, itself included."""
    counts = [(x == symbol).count() for symbol in x.alphabet]
    own: Numbers = sum((x == a) * count for a, count in zip(x.alphabet, counts, strict=True))
    alike: Numbers = sum((count == own).where(1, 0) for count in counts)
    return alike.tag()


def first_of_the_most(symbols: Sequence[Any], counts: Sequence[Numbers]) -> Categories:
    """The symbol with the largest count; of several the first."""
    leads = [
        [
            counts[k] > counts[j] if j < k else counts[k] >= counts[j]
            for j in range(len(counts))
            if j != k
        ]
        for k in range(len(counts) - 1)
    ]
    wins = [functools.reduce(operator.and_, each) for each in leads]
    values = [
        next((s for s, bit in zip(symbols, bits, strict=False) if bit), symbols[-1])
        for bits in itertools.product((False, True), repeat=len(wins))
    ]
    found: Categories = wins[0].table(*wins[1:], values=values)
    return found


@program(alphabet="abcd")
def most_frequent_token(x: Categories) -> Tag:
    """The symbol that occurs most often, at every position; of several the first."""
    return first_of_the_most(x.alphabet, [(x == symbol).count() for symbol in x.alphabet]).tag()


@program(alphabet="01")
def parity(x: Categories) -> Accept:
    """Accept strings with an odd number of 1s."""
    sign: Numbers = x.position("(-1)^i").lookup((x == "1").count(), default=1)
    return (sign < 0).accept()


@program(alphabet="abc")
def equal_abc(x: Categories) -> Accept:
    """Accept as many a as b as c, in this order; the empty string is accepted."""
    late_a: Booleans = (x == "a") & x.isin("bc").any_so_far()
    late_b: Booleans = (x == "b") & (x == "c").any_so_far()
    more_a: Numbers = x.map({"a": 1, "b": -1, "c": 0}).mean()
    more_b: Numbers = x.map({"a": 0, "b": 1, "c": -1}).mean()
    in_order: Booleans = ~(late_a | late_b).any()
    return (in_order & (more_a == 0) & (more_b == 0)).accept()
