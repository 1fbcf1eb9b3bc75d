"""Programs that fetch a symbol from another position.

>>> induction_most_recent("abcab"), reverse("abc")
('abcbc', 'cba')
"""

from __future__ import annotations

import functools
import operator

from transformist.language import Accept, Categories, NextToken, Numbers, Tag, program
from transformist.programs.counting import first_of_the_most


@program(alphabet="abc")
def induction_most_recent(x: Categories) -> NextToken:
    """Predict the successor of each symbol's last earlier occurrence; else the symbol itself."""
    previous = x.predecessor(default="none")
    following: Categories = x.select(previous, mask="future").rightmost(x, default=x)
    return following.next_token()


@program(alphabet="abc")
def reverse(x: Categories) -> Tag:
    """The symbols in opposite order."""
    return x.lookup(x.position("n") + 1 - x.position("i"), default="a").tag()


@program(alphabet="abc")
def induction_most_frequent(x: Categories) -> NextToken:
    """Predict the most frequent successor of each symbol so far (the first of several)."""
    previous = x.predecessor(default="none")
    counts: list[Numbers] = [
        sum((x == a) * ((previous == a) & (x == b)).count("future") for a in x.alphabet)
        for b in x.alphabet
    ]
    followed = functools.reduce(operator.add, counts)
    most = first_of_the_most(x.alphabet, counts)
    following: Categories = (followed > 0).where(most, x)
    return following.next_token()


@program(alphabet="ab")
def palindrome(x: Categories) -> Accept:
    """Accept strings that read the same in opposite order."""
    opposite: Categories = x.lookup(x.position("n") + 1 - x.position("i"), default="a")
    return (opposite == x).all().accept()


@program(alphabet="abcd")
def contains_abc(x: Categories) -> Accept:
    """Accept strings that contain abc."""
    a = (x == "a").predecessor()
    ab = (a & (x == "b")).predecessor()
    return (ab & (x == "c")).any().accept()
