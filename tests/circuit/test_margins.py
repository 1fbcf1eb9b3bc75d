"""What sums cost in an order, against sums that are computed; and what is done with a demand."""

import itertools
from fractions import Fraction as F

import numpy as np
import pytest

from transformist.arithmetic import number_system
from transformist.bounds import ANY_ORDER, REFERENCE_ORDER, STRUCTURED_ORDER
from transformist.circuit import (
    Circuit,
    Embedded,
    Form,
    Margins,
    PositionFeature,
    Readings,
    Relu,
    StepFunction,
    Sum,
    Uniform,
    follow,
)
from transformist.circuit.atoms import Fetched

FLOAT32 = number_system("float32")


def followed(circuit, order=REFERENCE_ORDER, asked=None, a=FLOAT32, **given):
    def note(*demand):
        if asked is not None:
            asked.append(demand)

    margins = Margins(circuit=circuit, sharpness={}, a=a, order=order, on_margin=note, **given)
    for _ in circuit.atoms:
        follow(margins)
    return margins


def beside_a_step():
    """A step of x from −1000 to 1, and the ReLU of a third, which end in one slot."""
    circuit = Circuit(("a", "b"), False, 8, "softmax")
    x = circuit.add(Embedded((F(-1000), F(1))), "x")
    third = circuit.add(Embedded((F(1, 3), F(-1))), "third")
    step = circuit.add(StepFunction(x, F(1)), "step")
    return circuit, step + circuit.add(Relu(third), "relu")


def test_the_units_of_a_step_that_falls_are_as_large_as_what_is_left_above():
    """2 ReLU(3/4 − x) − 2 ReLU(1/4 − x), of x = −1000: both are above 2000, and a third is lost."""
    circuit, form = beside_a_step()
    x, step = Form.atom(0), form.atoms[0]
    upper, lower = np.float32(2001.5), np.float32(2000.5)
    third = np.float32(1 / 3)
    sums = [
        np.float32(np.float32(a + b) + c)
        for a, b, c in itertools.permutations((upper, -lower, third))
    ]
    off = max(abs(float(each) - 1 - float(third)) for each in sums)
    added = Sum(tuple((F(1), Form.atom(atom)) for atom in form.atoms), is_of_units=True)
    read = {step: [tuple(Sum(((F(sign * 2), x),), F(s, 2)) for s in (3, 1)) for sign in (-1, 1)]}
    relu = Sum(((F(1), Form.atom(1)),))
    readings = Readings(sums={form: [added], Form.atom(1): [relu]}, steps=read)
    for given in (None, readings):
        rising, falling = (
            followed(circuit, ANY_ORDER, falling=each, readings=given).error(form)
            for each in ((), {step})
        )
        assert rising < off <= falling


def test_a_number_rounds_beside_constants_that_cancel():
    """1/3 + 1000 − 1000 is not 1/3, though the form is an atom by itself."""
    circuit = Circuit(("a", "b"), False, 8, "softmax")
    third = circuit.add(Embedded((F(1, 3), F(0))), "third")
    x = np.float32(1 / 3)
    off = abs(float(np.float32(x + np.float32(1000)) - np.float32(1000)) - float(x))
    assert followed(circuit).rounding(third) == 0
    beside = Sum(((F(1), third), (F(1), Sum((), F(1000)))), F(-1000))
    readings = Readings(sums={third: [Sum(((F(1), third),)), beside]})
    assert 0 < off <= followed(circuit, readings=readings).rounding(third)


def test_the_structured_engine_is_as_far_from_the_reference_as_evaluate_says():
    """(16 n + 5000) 2⁻⁵³ + 2⁻⁴⁰ of the largest value, in float64; nothing in float32."""
    circuit = Circuit(("a", "b"), False, 8, "softmax")
    value = circuit.add(Embedded((F(3), F(-5))), "value")
    mean = circuit.add(Fetched(Uniform("future"), value), "mean")
    for name, apart in (("float64", 5 * (F(16 * 8 + 5000, 2**53) + F(1, 2**40))), ("float32", 0)):
        a = number_system(name)
        reference, structured = (
            F(followed(circuit, order, a=a).errors[mean.atoms[0]].absolute)
            for order in (REFERENCE_ORDER, STRUCTURED_ORDER)
        )
        assert abs(structured - reference - apart) <= apart / 2**40


def test_a_demand_says_what_asks_for_it_and_is_done_with_as_is_given():
    """An atom asks by its number, a read-out by its name."""
    circuit = Circuit(("a", "b"), False, 8, "softmax")
    place = circuit.add(PositionFeature("i"), "i")
    circuit.add(Fetched(Uniform("future"), place), "mean")
    circuit.add(StepFunction(place - 2, F(1)), "step")
    asked = []
    margins = followed(circuit, asked=asked)
    assert [(part, what) for part, what, *_ in asked] == [
        (1, "the number of positions of a mean"),
        (2, "the error of a comparison"),
    ]
    margins.require_count("read-out", place, place, 1, 0, 8)
    assert [part for part, *_ in asked[2:]] == ["read-out", "read-out"]

    def refuse(part, what, error, allowed):
        raise LookupError(part)

    strict = Margins(circuit=circuit, sharpness={}, a=FLOAT32, order=ANY_ORDER, on_margin=refuse)
    follow(strict)
    with pytest.raises(LookupError, match="1"):
        follow(strict)
