"""Answers in numbers, and the values that any read-out makes its answers of."""

from fractions import Fraction

import numpy as np
import pytest

from transformist.arithmetic import EXACT, FLOAT16, INTERVAL
from transformist.errors import NotFinite, ShapeMismatch
from transformist.model import (
    BOS,
    CLS,
    Binary,
    Embedding,
    MultiClass,
    RealVector,
    Stream,
    Transformer,
)

STREAM = Stream(("x", "y"))
WORDS = {"a": {"x": 1}, "b": {"x": -1, "y": 3}, BOS: {"y": 100}, CLS: {"y": 50}}
W_OUT, B_OUT = [[1, "1/2"], [0, 2], [3, 0]], [0, 1, "1/3"]


def model(kind=RealVector, front=(), back=(), **options):
    given = {"W_out": W_OUT, "b_out": B_OUT, **options}
    return Transformer(
        stream=STREAM,
        embedding=Embedding.of(STREAM, WORDS, front=front, back=back),
        layers=(),
        read_out=kind(**given),
    )


EXPECTED = {
    "a": [1, 1, Fraction(10, 3)],
    "b": [Fraction(1, 2), 7, Fraction(-8, 3)],
    BOS: [50, 201, Fraction(1, 3)],
    CLS: [25, 101, Fraction(1, 3)],
}


@pytest.mark.parametrize(
    ("options", "read"),
    [
        ({"at": "every"}, "aba"),
        ({"at": "every", "front": (BOS,), "back": (CLS,)}, "aba"),
        ({"at": "last"}, "a"),
        ({"at": "last", "back": (CLS,)}, [CLS]),
        ({"at": "cls", "front": (CLS, BOS)}, [CLS]),
        ({"at": "cls", "front": (BOS,), "back": (CLS,)}, [CLS]),
    ],
)
def test_values_are_those_at_the_positions_read(options, read):
    made = model(**options)
    expected = [EXPECTED[symbol] for symbol in read]
    short, long = made.values(["b", "aba"], "exact")
    assert EXACT.numbers(long).tolist() == expected and short.shape == (1, 3)
    answer = made("aba", "exact")
    assert answer == (expected if options["at"] == "every" else expected[0])
    assert made.answers(["b", "aba"], "exact")[1] == answer


def test_values_are_what_other_read_outs_decide_on():
    labels = model(MultiClass, labels=("p", "q", "r"), at="every")
    assert labels("ab") == "rq"
    (values,) = labels.values(["ab"])
    assert values.argmax(axis=1).tolist() == [2, 1]
    accepts = model(Binary, W_out=[[1, 0]], b_out=[0])
    assert [y.tolist() for y in accepts.values(["ab", "ba", "a"])] == [[[-1]], [[1]], [[1]]]


def test_intervals_answer_in_balls():
    made = model(at="every")
    ((first, second, third),) = made("a", "interval")
    assert (first, second) == (1, 1) and third.startswith("[3.3333333333333333333 +/- ")
    (y,) = made.values(["a"], "interval")
    assert abs(INTERVAL.numbers(y)[0, 2] - Fraction(10, 3)) <= INTERVAL.radius(y)[0, 2] < 2**-100


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeMismatch, match="a row for each output"):
        RealVector(W_out=[1, 2])
    with pytest.raises(NotFinite, match="NaN"):
        RealVector(W_out=[[1]])(FLOAT16.array(np.array([[0.0]])) * np.float16("nan"), 1, FLOAT16)
