"""Programs that put symbols in order.

>>> sort([3, 1, 2, 1]), binary_increment("0111")
([1, 1, 2, 3], '1000')
"""

from __future__ import annotations

from transformist.language import Categories, Numbers, Tag, program


@program(alphabet=[1, 2, 3, 4])
def sort(x: Categories) -> Tag:
    """The numbers in increasing order, each as often as it occurs."""
    place = x.position("i")
    passed: list[Numbers] = [
        (place > x.isin(range(1, value + 1)).count()).where(1, 0) for value in (1, 2, 3)
    ]
    return (passed[0] + passed[1] + passed[2] + 1).tag()


@program(alphabet="01")
def binary_increment(x: Categories) -> Tag:
    """The number plus 1, the most significant bit first; from all ones to all zeros."""
    carries = (x == "1").all("strict-past")
    flipped: Categories = x.table(carries, values=["0", "1", "1", "0"])
    return flipped.tag()
