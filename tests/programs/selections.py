"""One-line programs with selections: all kinds of queries, keys, masks, choices and uses."""

from dataclasses import dataclass

import transformist as tf

MASKS = ("none", "future", "strict-future", "past", "strict-past")

CATEGORIES = (
    lambda x: x,
    lambda x: x.predecessor(default="none"),
    lambda x: x.predecessor(2, default="b"),
    lambda x: x.successor(default="a"),
    lambda x: x.map({"a": "b", "b": "c", "c": "a"}),
    lambda x: x.first(default="a"),
    lambda x: x.last(default="b"),
    lambda x: x.nearest_left(x != "a", default="c"),
    lambda x: x.lookup((x == "b").count("strict-future"), default="a"),
    lambda x: (x == "a").where("b", x),
    lambda x: "a",
)
BOOLEANS = (
    lambda x: x == "a",
    lambda x: x.isin("ab"),
    lambda x: (x == "a").any_so_far(),
    lambda x: (x == "a").any("none"),
    lambda x: (x == "b").any("past"),
    lambda x: (x == "b").predecessor(),
    lambda x: x.position("i") > 2,
    lambda x: (x == "a").mean("future") > "1/2",
    lambda x: True,
)
NUMBERS = (
    lambda x: x.map({"a": 0, "b": 1, "c": 2}),
    lambda x: x.map({"a": 5, "b": 1, "c": -3}).predecessor(),
    lambda x: x.position("(-1)^i"),
    lambda x: sum((x == "a").where(2**k, 0) for k in range(3)),
    lambda x: sum((x == "a").where(2**k, 0) for k in range(3)).predecessor(),
    lambda x: (x == "a").where("1/2", 0),
    lambda x: 1,
)
WHOLE = (
    lambda x: x.position("i"),
    lambda x: (x == "a").count("future"),
    lambda x: x.position("n") + 1 - x.position("i"),
    lambda x: (x != "b").count("past"),
    lambda x: (x == "a").count("strict-future") - (x == "b").count("strict-future"),
    lambda x: (x == "a").count("none") + 1,
    lambda x: x.position("i").nearest_left(x == "a"),
    lambda x: (x == "c").where(x.position("i") * 2, (x == "a").count("strict-past")),
    lambda x: x.map({"a": 5, "b": 1, "c": -3}),
)
LISTED = {"categories": CATEGORIES, "Booleans": BOOLEANS, "numbers": NUMBERS}
QUERIES_AND_KEYS = {**LISTED, "whole numbers": WHOLE}
"""What is matched with what; a constant is a key alone."""

USES = (
    lambda x, found: found.any().tag(),
    lambda x, found: found.any().accept(),
    lambda x, found: (found.any().count("future") > 1).tag(),
    lambda x, found: found.any().any("past").tag(),
    lambda x, found: (found.mean(x == "b") > "1/2").tag(),
    lambda x, found: (found.mean(x.map({"a": 1, "b": 2, "c": 0})) == 0).accept(),
    lambda x, found: found.rightmost(x, default="c").tag(),
    lambda x, found: (found.leftmost(x.predecessor(default="a"), default=x) == "a").accept(
        empty=True
    ),
    lambda x, found: (found.leftmost(x.position("i"), default=0) > 1).tag(),
    lambda x, found: x.lookup(found.rightmost(x.position("i"), default=1), default="c").tag(),
    lambda x, found: (
        x.lookup(found.leftmost(x.map({"a": 0, "b": 2, "c": 1})), default="c") == x
    ).tag(),
    lambda x, found: found.leftmost(x, default="none").tag(),
)
"""What is done with the positions that are found."""


@dataclass(frozen=True)
class Selection:
    """A program, by its parts."""

    kind: str
    query: int
    key: int
    mask: str
    use: int

    @property
    def program(self):
        """The program of three symbols."""
        queries = QUERIES_AND_KEYS[self.kind]

        @tf.program(alphabet="abc")
        def selection(x):
            found = queries[self.query](x).select(queries[self.key](x), mask=self.mask)
            return USES[self.use](x, found)

        return selection


def drawn(draw, kinds=tuple(LISTED)):
    """Any of these kinds."""
    kind = draw.choice(list(kinds))
    size = len(QUERIES_AND_KEYS[kind])
    query, key = draw.randrange(size - 1), draw.randrange(size)
    return Selection(kind, query, key, draw.choice(MASKS), draw.randrange(len(USES)))
