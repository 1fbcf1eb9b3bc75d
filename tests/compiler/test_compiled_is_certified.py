"""Programs that compile for a format are certified in it: all worked and nearly all drawn ones."""

import random
from collections import Counter

import pytest

import transformist as tf
from drawn_programs import drawn, program_of
from transformist.errors import TransformistError
from transformist.programs import PROGRAMS

LEFT_OUT = 0.05
"""Largest part of the drawn programs that compile but have no certificate that holds.

They hand out fetched numbers with a default, or functions of such numbers, which the weights alone
do not show to be clear of the middle of two labels.
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_worked_program_is_certified(name):
    model = tf.compile(PROGRAMS[name], max_length=12, arithmetic="float32")
    assert tf.certify(model, "float32").holds


@tf.program(alphabet="abc")
def same_parity(x):
    """The last symbol at a later position of the same parity, or the present one."""
    sign = x.position("(-1)^i")
    return sign.select(sign, mask="strict-past").rightmost(x, default=x).tag()


@tf.program(alphabet="abc")
def before_the_last_a(x):
    """The symbol two before the last a, or the present one."""
    return x.predecessor(2, default="c").nearest_left(x == "a", default=x).tag()


@pytest.mark.parametrize("program", [same_parity, before_the_last_a])
@pytest.mark.parametrize("arithmetic", ["float32", "float64"])
def test_a_symbol_that_depends_on_several_heads_is_certified(program, arithmetic):
    model = tf.compile(program, max_length=8, arithmetic=arithmetic)
    assert tf.certify(model, arithmetic).grade == 1
    draw = random.Random(4)
    texts = ["", *("".join(draw.choices("abc", k=n)) for n in range(1, 9) for _ in range(20))]
    for text, got in zip(texts, model.answers(texts, arithmetic), strict=True):
        assert got == program(text), text


def verdict(case):
    """Return the grade of the certificate of a drawn program, or why there is none."""
    try:
        model = tf.compile(
            program_of(case.body.text, case.alphabet),
            max_length=case.max_length,
            arithmetic=case.arithmetic,
            heads=case.heads,
            positions=case.positions,
        )
    except TransformistError:
        return "refused"
    grade, _ = tf.grade_of(model, case.arithmetic)
    return f"grade {grade}" if grade else "not held"


@pytest.mark.trials(1, 250)
@pytest.mark.parametrize("seed", range(8))
def test_nearly_all_that_compiles_is_certified(trials, seed):
    """2,000 programs in all."""
    draw, counts = random.Random(seed), Counter()
    while counts.total() < trials:
        case = drawn(draw)
        if case.weighting == "softmax" and case.max_length is not None:
            found = verdict(case)
            counts[found] += found != "refused"
    print(dict(counts))
    assert counts["not held"] <= LEFT_OUT * trials, counts
