"""Largest lengths at which formats keep the margins of products, and of selections by numbers.

python tests/compiler/largest_lengths.py    prints the figures of docs/language.md (five minutes)
"""

import itertools

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
    **{name: (alphabet, written) for name, (alphabet, written, _) in PROGRAMS.items()},
    **{name: ("ab", written) for name, (written, _) in PRODUCTS.items()},
}

if __name__ == "__main__":
    for name, (alphabet, written) in CASES.items():
        program = tf.program(alphabet=alphabet)(written)
        for weighting, arithmetic in itertools.product(
            ("softmax", "average-hard"), ("bfloat16", "float16", "float32", "float64")
        ):
            given = {"weighting": weighting, "arithmetic": arithmetic}
            print(name, weighting, arithmetic, largest_length(program, most=MOST, **given))
