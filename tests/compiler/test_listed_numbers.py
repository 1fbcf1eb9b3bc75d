"""Listed numbers that are handed out: by the number where its margin fits, else by a label."""

import itertools
from fractions import Fraction

import pytest

import transformist as tf
from transformist.compiler.uncompilable import Uncompilable

FINE = {"a": Fraction(1, 1000), "b": Fraction(2, 1000)}
WIDE = {"a": Fraction(1, 1000), "b": 1000}


@tf.program(alphabet="ab")
def large(x):
    return x.map({"a": 100000, "b": 100001}).tag()


@tf.program(alphabet="ab")
def added(x):
    y = x.map(WIDE)
    return (y + y.predecessor(default=0) * 7).tag()


@tf.program(alphabet="ab")
def fetched(x):
    return x.map(FINE).nearest_left(x == "a", default=1000).tag()


@tf.program(alphabet="ab")
def alternating(x):
    return (x.position("(-1)^i") * x.map(WIDE)).tag()


@tf.program(alphabet="ab")
def chosen(x):
    y = x.map(WIDE)
    most_a = (x == "a").prefix_mean() > "1/2"
    return most_a.where(y, y.predecessor(default=-9)).clip(-5, 500).tag()


REFERENCES = {
    large: lambda x, i: {"a": 100000, "b": 100001}[x[i]],
    added: lambda x, i: WIDE[x[i]] + 7 * (WIDE[x[i - 1]] if i else 0),
    fetched: lambda x, i: next((FINE["a"] for k in range(i) if x[k] == "a"), 1000),
    alternating: lambda x, i: WIDE[x[i]] * (1 if i % 2 else -1),
    chosen: lambda x, i: min(
        500,
        max(
            -5,
            WIDE[x[i]] if 2 * x[: i + 1].count("a") > i + 1 else WIDE[x[i - 1]] if i else -9,
        ),
    ),
}
"""The answer at the position i, from 0. Without labels each program is refused in float32."""


@pytest.mark.parametrize("program", REFERENCES, ids=lambda each: each.name)
def test_a_number_whose_margin_does_not_fit_is_read_by_its_label(program):
    model = tf.compile(program, max_length=12)
    assert abs(model.read_out.W_out).max() == 1  # a comparison with the number v has 2 v here
    for n in range(6):
        for x in map("".join, itertools.product("ab", repeat=n)):
            wanted = [REFERENCES[program](x, i) for i in range(n)]
            assert model(x, "float32") == program(x) == wanted, x
    found = tf.certify(model, "float32", 12)
    assert found.holds and found.grade == 1


def test_a_number_whose_margin_fits_is_compared():
    """The values 1 and 3 by 2 v y − v²; the same in exact arithmetic for values far apart."""

    @tf.program(alphabet="ab")
    def odd(x):
        return x.map({"a": 1, "b": 3}).tag()

    assert tf.compile(odd).read_out.b_out.tolist() == [-1, -9]
    assert tf.compile(large, arithmetic="exact").read_out.b_out.tolist() == [
        -(10**10),
        -(100001**2),
    ]


def test_a_refusal_is_that_of_the_number():
    """Neither way fits in bfloat16: the mean is too fine for it, whatever is handed out."""
    with pytest.raises(Uncompilable, match="the error of a comparison in bfloat16") as refused:
        tf.compile(chosen, max_length=300, arithmetic="bfloat16")
    assert "prefix_mean" in str(refused.value)
