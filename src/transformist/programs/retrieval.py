"""Programs that fetch a symbol from another position.

>>> induction_most_recent("abcab"), reverse("abc")
('abcbc', 'cba')
"""

from __future__ import annotations

from transformist.language import Categories, NextToken, Tag, program


@program(alphabet="abc")
def induction_most_recent(x: Categories) -> NextToken:
    """What followed the last earlier occurrence of each symbol; itself where there is none."""
    previous = x.predecessor(default="none")
    following: Categories = x.select(previous, mask="future").rightmost(x, default=x)
    return following.next_token()


@program(alphabet="abc")
def reverse(x: Categories) -> Tag:
    """The symbols in opposite order."""
    return x.lookup(x.position("n") + 1 - x.position("i"), default="a").tag()
