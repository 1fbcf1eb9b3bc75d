"""No observed error exceeds its bound: a million evaluations in each format, beside the ideal."""

import functools
import json
import random
from pathlib import Path

import bounded
import numpy as np
import pytest
from references import ALPHABETS, REFERENCES, every_string_of, given, hard_strings

import transformist as tf
from transformist.programs import PROGRAMS
from transformist.verify.certificate import grade_of

FORMATS = ("bfloat16", "float16", "float32")

LENGTHS = {
    **dict.fromkeys((1, 2, 3, 4, 6, 8, 10, 12, 15, 24, 40), (2**13, 64, FORMATS)),
    **dict.fromkeys((120, 400), (0, 8, FORMATS)),
}
"""For each N: the largest number of strings of one length that are all tried, the number that is
drawn of lengths with more strings, and the formats."""

MORE = {
    "majority": {N: (2**N, 0, FORMATS) for N in (13, 14, 15)},
    "fraction-of-previous": {
        **dict.fromkeys((13, 14), (2**13, 2**14, FORMATS)),
        **dict.fromkeys((15, 16, 17, 18), (2**13, 2**13, ("bfloat16", "float16"))),
        **dict.fromkeys((19, 20, 21, 22), (2**13, 2**12, ("bfloat16",))),
    },
}
"""The same for programs that bfloat16 is certified for beyond four symbols."""


PAGE = Path(__file__).parents[2] / "docs" / "certificates.json"

RECORDED = {
    (each["program"], each["arithmetic"]): each["certified"]
    for each in json.loads(PAGE.read_text(encoding="utf-8"))
}
"""The largest N that the page of certificates has for a program and a format."""

NAMES = [pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS]


def built(name, N):
    return tf.compile(PROGRAMS[name], max_length=N, arithmetic="exact")


@functools.cache
def certified(name, N):
    """The formats in which the program for N is certified."""
    model = built(name, N)
    return [each for each in FORMATS if grade_of(model, each, N)[0]]


def lengths_up_to(N, every):
    return range(N + 1) if every else (N // 2, N - 1, N)


def inputs(name, N, every, drawn):
    """Strings of length up to N, a list for each length; of long ones for the longest and half."""
    alphabet, draw = ALPHABETS[name], random.Random(f"{name} {N}")
    hard = hard_strings(name, max(N, 12), drawn=2)
    for n in lengths_up_to(N, every):
        if len(alphabet) ** n <= every:
            yield every_string_of(alphabet, n)
        else:
            near = [x for x in hard if len(x) == n][: drawn or None]
            yield near + ["".join(draw.choices(alphabet, k=n)) for _ in range(drawn)]


def batches(name, N, every, drawn):
    """The inputs in lists, as models take them."""
    return [[given(name, x) for x in xs] for xs in inputs(name, N, every, drawn) if xs]


def plan(name):
    """Each N, with the numbers of its strings and the formats that may be certified in it."""
    return [*LENGTHS.items(), *MORE.get(name, {}).items()]


def right_answers(name):
    return lambda xs: [REFERENCES[name]("".join(map(str, x))) for x in xs]


@pytest.mark.parametrize("name", NAMES)
def test_no_error_exceeds_its_bound(name):
    """In any slot after any sublayer; and no decision is wrong."""
    for N, (every, drawn, formats) in plan(name):
        held = [each for each in certified(name, N) if each in formats]
        assert {each for each in formats if RECORDED[name, each] >= N} <= {*held}
        xs = batches(name, N, every, drawn) if held else []
        count = bounded.require(built(name, N), N, xs, held, right_answers(name))
        assert count == sum(map(len, xs))


def test_a_million_inputs_are_evaluated_in_each_format():
    """Without the hard strings among them."""
    counts = dict.fromkeys(FORMATS, 0)
    for name in PROGRAMS:
        symbols = len(ALPHABETS[name])
        for N, (every, drawn, formats) in plan(name):
            lengths = lengths_up_to(N, every)
            count = sum(symbols**n if symbols**n <= every else drawn for n in lengths)
            for each in formats:
                counts[each] += count if RECORDED[name, each] >= N else 0
    assert min(counts.values()) >= 10**6, counts


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_error_exceeds_its_bound_on_short_strings(name):
    N, formats = 4, certified(name, 4)
    xs = batches(name, N, 2**6, 4)
    assert bounded.require(built(name, N), N, xs, formats, right_answers(name)) > 20


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("N", [5, pytest.param(40, marks=pytest.mark.slow)])
def test_the_ideal_is_what_rational_arithmetic_gives(name, N):
    model = bounded.hard(built(name, N))
    for n in (0, 1, 4, N):
        draw = random.Random(n)
        xs = [given(name, "".join(draw.choices(ALPHABETS[name], k=n))) for _ in range(5)]
        pairs = zip(
            *(bounded.streams(model, xs, each) for each in ("exact", "float64")), strict=True
        )
        for exact, near in pairs:
            exact = exact.astype(float)
            assert (abs(near - exact) <= bounded.NEAR / 10 * np.maximum(1, abs(exact))).all()
