"""Programs that count.

>>> histogram("abbc"), majority("0110")
([1, 2, 2, 1], False)
>>> fraction_of_previous("aba")
[1, Fraction(1, 2), Fraction(2, 3)]
"""

from __future__ import annotations

from transformist.language import Accept, Categories, Numbers, Tag, program


@program(alphabet="abcd")
def histogram(x: Categories) -> Tag:
    """At each position, how often its symbol occurs in the whole string; nothing for none."""
    counts = [(x == symbol).count() for symbol in x.alphabet]
    own: Numbers = sum((x == a) * count for a, count in zip(x.alphabet, counts, strict=True))
    return own.tag()


@program(alphabet="01")
def majority(x: Categories) -> Accept:
    """Whether there are more 1s than 0s; not where there are as many, so not when empty."""
    lead: Numbers = x.map({"0": -1, "1": 1}).mean()
    return (lead > 0).accept()


@program(alphabet="ab")
def fraction_of_previous(x: Categories) -> Tag:
    """At each position, the fraction of a among the symbols up to it, itself included."""
    return (x == "a").prefix_mean().tag()
