"""Printed weights beside ours: the page, and the printed matrices from the documents."""

import importlib.util
import itertools
import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import transformist as tf
from transformist.errors import InvalidValue

_spec = importlib.util.spec_from_file_location(
    "printed_page", Path(__file__).parents[1] / "docs" / "printed.py"
)
page = sys.modules["printed_page"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(page)


def test_the_page_is_made_of_the_recipes():
    assert page.PAGE.read_text("utf-8") == page.page(), "run python docs/printed.py"


def test_every_recipe_with_a_printed_form_stands_there():
    have = {each.name for each in tf.recipes() if "printed" in each.parameters}
    assert have <= {pair.ours.name for pair in page.PAIRS}


@pytest.mark.parametrize("pair", page.PAIRS, ids=lambda pair: pair.ours.name)
def test_the_two_sides_differ(pair):
    assert pair.printed.text() != pair.ours.text()


def test_addition_is_printed_in_section_4_5():
    printed = tf.recipe("add").build(printed=True)
    assert printed.W_1.tolist() == [[1, 0], [-1, 0], [0, 1], [0, -1]]
    assert printed.W_2.tolist() == [[1, -1, 1, -1]]
    assert not printed.b_1.any() and not printed.b_2.any()


@pytest.mark.parametrize("N", [1, 2, 64, 1000])
def test_the_temperature_is_printed_in_section_5_7(N):
    head = tf.recipe("soften").build(printed=True, max_length=N)
    (inverse,) = {float(w) for w in head.W_Q[:, :N].diagonal()}
    # τ = γ/ln 8N and the gap of scores is γ = 1/√N; rounded up to 4 significant bits.
    assert 1 <= inverse / (math.sqrt(N) * math.log(8 * N)) <= 9 / 8
    with pytest.raises(InvalidValue, match="for which the temperature is printed"):
        tf.recipe("soften").build(printed=True, tolerance="1/8")


def test_eq_zero_is_printed_in_section_9_2_1():
    N = 4
    table = tf.recipe("dyck-1").build(printed=True, max_length=N).weights_table()
    read, bias = (table["layer 1 feed-forward", name] for name in ("W_1", "b_1"))
    writes = table["layer 1 feed-forward", "W_2"]
    epsilon = Fraction(1, (N + 1) ** 2)  # BOS is a position too
    for slot, bit in (("balance", "balanced"), ("shortfalls", "unviolated")):
        units = np.flatnonzero(read.values[:, read.columns.index(slot)])
        assert [Fraction(b) for b in bias.values.ravel()[units]] == [epsilon, 0, -epsilon]
        written = writes.values[writes.rows.index(bit), units]
        assert [Fraction(w) for w in written] == [1 / epsilon, -2 / epsilon, 1 / epsilon]


def test_the_printed_hash_lookup_returns_any_value():
    hashes = [[math.sqrt(2 / (i * i + 1)) * x for x in (i, 1, -i, -1)] for i in (1, 2, 3)]
    rows = [
        [*hashes[query - 1], *key, value]
        for query, key, value in zip((3, 1, 2), hashes, (5, 7, -1.5), strict=True)
    ]
    head = tf.recipe("layernorm-hash-lookup").build(printed=True)
    assert head(rows).ravel().tolist() == [-1.5, 5, 7]


def entries(stack, layer):
    """What a network of a stack adds to each slot, by the slot that it reads."""
    table = stack.weights_table()
    part = f"layer {layer} feed-forward"
    read, written = table[part, "W_1"], table[part, "W_2"]
    return {
        (read.columns[source], written.rows[target]): Fraction(one * other)
        for hidden, row in enumerate(read.values)
        for source, one in enumerate(row)
        for target, other in enumerate(written.values[:, hidden])
        if one * other
    }


B = 16
PRINTED = [
    {
        (s, f): v if s == f[0] else -v
        for s, f in itertools.product("ab", ("a > b", "b > a"))
        for v in [1]
    },
    *[{(f, f): by for f in ("a > b", "b > a")} for by in (B, B, Fraction(1, B) - 1)],
    *[{("b > a", "a"): by, ("a > b", "b"): by} for by in (B, B, -B)],
]
"""By layer, slot read and slot written: ReLU of both differences; ∞ x, ∞ x, x/∞, of which the
residual connection adds x in the last; and the special operation, whose matrices are crossed."""


def test_the_maximum_is_printed_as_a_chain_of_seven_networks():
    stack = tf.recipe("max-of-two").build(printed=True)
    names = {"x1": "a", "x2": "b"}
    found = [
        {
            (names.get(s, s), names.get(t, t)): value
            for (s, t), value in entries(stack, layer).items()
        }
        for layer in range(len(stack.layers))
    ]
    assert found == PRINTED


@pytest.mark.parametrize("step", ["1/16", "1"])
def test_the_printed_maximum_needs_1_over_B(step):
    pairs = list(itertools.product(range(-3, 4), repeat=2))
    model = tf.recipe("max-of-two").build(printed=True)
    got = model([list(pair) for pair in pairs], f"saturating:16:{step}").tolist()
    expected = [[a if a >= b else 0, b if b >= a else 0] for a, b in pairs]
    wrong = [pair for pair, y, due in zip(pairs, got, expected, strict=True) if y != due]
    # With steps of 1 the weight 1/16 − 1 is −1: no flag is left, and nothing is cleared.
    assert len(wrong) == (0 if step == "1/16" else 36)


def test_a_printed_form_is_true_or_false(capsys):
    from transformist.cli import main

    assert main(["show", "add", "--set", "printed=true", "--weights"]) == 0
    assert capsys.readouterr().out.count("hidden 3") == 2
    assert main(["show", "add", "--set", "printed=1"]) == 2
    assert "printed must be true or false" in capsys.readouterr().err
