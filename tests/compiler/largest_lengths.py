"""Largest lengths at which formats keep the margins of products, and of selections by numbers.

python tests/compiler/largest_lengths.py    prints the figures of docs/language.md (five minutes)
"""

import itertools

import numpy as np
from test_products import PRODUCTS
from test_whole_keys import NUMBERS, PROGRAMS

import transformist as tf
from transformist.compiler import largest_length

MOST = 3000


def matched(queries, keys, use):
    """The program of two symbols that uses what a selection finds."""
    return lambda x: use(x, NUMBERS[queries][0](x).select(NUMBERS[keys][0](x)))


CASES = {
    "two counts, rightmost": (
        "ab",
        matched("b so far", "a so far", lambda x, found: found.rightmost(x, default="-").tag()),
    ),
    "two counts, mean": (
        "ab",
        matched("b so far", "a so far", lambda x, found: (found.mean(x == "a") > "1/2").tag()),
    ),
    "n + 1 - i and i, rightmost": (
        "ab",
        matched("n + 1 - i", "i", lambda x, found: found.rightmost(x, default="-").tag()),
    ),
    "lookup of i - 2": (
        "ab",
        lambda x: x.lookup(x.position("i") - 2, default="-").tag(),
    ),
    "i - 2 and i, rightmost": (
        "ab",
        lambda x: (
            (x.position("i") - 2)
            .select(x.position("i"), mask="future")
            .rightmost(x, default="-")
            .tag()
        ),
    ),
    **{name: (alphabet, written) for name, (alphabet, written, _) in PROGRAMS.items()},
    **{name: ("ab", written) for name, (written, _) in PRODUCTS.items()},
}


def sinusoidal_gap(frequencies, longest, trials=200):
    """The largest gap of Σ cos(ω d) between d = 0 and d = 1 to N, of some drawn frequencies."""
    draw, apart = np.random.default_rng(0), np.arange(1, longest + 1)
    drawn = (draw.uniform(0, np.pi, frequencies) for _ in range(trials))
    return max(frequencies - np.cos(np.outer(apart, w)).sum(axis=1).max() for w in drawn)


if __name__ == "__main__":
    for name, (alphabet, written) in CASES.items():
        program = tf.program(alphabet=alphabet)(written)
        for weighting, arithmetic in itertools.product(
            ("softmax", "average-hard"), ("bfloat16", "float16", "float32", "float64")
        ):
            given = {"weighting": weighting, "arithmetic": arithmetic}
            print(name, weighting, arithmetic, largest_length(program, most=MOST, **given))
            if name == "lookup of i - 2":
                given["position_codes"] = "sinusoidal"
                print(name, "by sinusoids", largest_length(program, most=MOST, **given))
    print("gap of 8 sinusoids to N = 2047:", sinusoidal_gap(8, 2047))
