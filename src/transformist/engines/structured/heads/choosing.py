"""The choice of a method for a head: the first that its weights, and the vectors met, allow."""

from __future__ import annotations

from transformist.engines.structured.heads.by_hull import ByHull
from transformist.engines.structured.heads.by_key import ByKey
from transformist.engines.structured.heads.by_query import ByQuery
from transformist.engines.structured.heads.every_pair import EveryPair
from transformist.engines.structured.heads.head import HeadInput
from transformist.engines.structured.heads.method import Method
from transformist.engines.structured.heads.weightings import OTHER

METHODS: tuple[type[Method], ...] = (ByQuery, ByKey, ByHull, EveryPair)
"""In the order of their costs; the last fits always."""


def choose_method(given: HeadInput) -> Method:
    """The method for a head on a whole input.

    Raises:
        NotFinite: for a query, key or value that overflows.

    """
    knows = given.maps.kind != OTHER and given.is_finite
    candidates = (each(given.maps) for each in (METHODS if knows else [EveryPair]))
    return next(each for each in candidates if each.fits(given))
