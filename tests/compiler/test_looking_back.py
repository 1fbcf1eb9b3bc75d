"""What looks at no later position is compiled to heads that do not, and is read token by token."""

from itertools import product

import pytest

import transformist as tf

BACK = {
    "predecessor": (
        lambda x: x.predecessor(2, default="b"),
        lambda x, i: x[i - 2] if i > 1 else "b",
    ),
    "first": (lambda x: x.first(default="b"), lambda x, _: x[0]),
    "one": (lambda x: x.lookup(1, default="b"), lambda x, _: x[0]),
    "by place": (
        lambda x: x.lookup(x.position("i") - 3, default="c"),
        lambda x, i: x[i - 3] if i > 2 else "c",
    ),
}


@pytest.mark.parametrize("weighting", ["softmax", "average-hard", "rightmost-hard"])
@pytest.mark.parametrize("name", BACK)
def test_what_looks_back_is_read_token_by_token(name, weighting):
    program, definition = BACK[name]
    written = tf.program(alphabet="abc")(lambda x: program(x).tag())
    for longest in (1, 2, 9):
        model = tf.compile(written, max_length=longest, weighting=weighting)
        assert tf.certify(model, "float32").holds
        for n in range(1, min(longest, 4) + 1):
            for x in map("".join, product("abc", repeat=n)):
                decoder = tf.decoder(model, "float32")
                got = "".join(map(decoder.take, x))
                assert got == model(x, "float32") == "".join(definition(x, i) for i in range(n))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.successor(2, default="b"),
        lambda x: x.last(default="b"),
        lambda x: x.lookup(2, default="b"),
        lambda x: x.lookup(x.position("n"), default="b"),
        lambda x: x.lookup((x == "a").count(), default="b"),
    ],
)
def test_what_may_lie_ahead_is_looked_for_there(program):
    written = tf.program(alphabet="abc")(lambda x: program(x).tag())
    model = tf.compile(written, max_length=9, weighting="average-hard")
    assert "none" in {head.mask for layer in model.layers for head in layer.heads}
    assert tf.check(model, written, max_length=6)


@pytest.mark.parametrize("mask", ["none", "future", "strict-future", "past", "strict-past"])
def test_a_count_is_looked_up(mask):
    """Under past masks another position was found, by a mean in which BOS has no part."""
    written = tf.program(alphabet="abc")(
        lambda x: x.lookup((x == "a").count(mask), default="c").tag()
    )
    for weighting in ("softmax", "average-hard"):
        model = tf.compile(written, max_length=6, weighting=weighting)
        assert tf.check(model, written, max_length=6)
