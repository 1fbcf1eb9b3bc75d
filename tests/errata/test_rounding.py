"""What is printed of errors and norms (7.2), against small cases."""

import itertools
from fractions import Fraction as F

import numpy as np
import pytest

import transformist as tf
from transformist.bounds import l_inf_1_norm, operator_norm
from transformist.errors import InvalidValue
from transformist.model import Attention, Embedding, MultiClass, Stream, Transformer

# Proposition 7.1


def test_printed_positions_below_a_number_are_not_bounded():
    """pe(i) = −i is at most P = 0 for all i. With no layer z_i is the embedding: no X bounds it."""
    positions = [-i for i in range(1, 2000)]
    assert max(positions) <= 0
    assert all(any(abs(z) > X for z in positions) for X in (1, 10, 100, 1000))


def model_with(position):
    """One slot that is the position, and no layer."""
    stream = Stream(("place",))
    embedding = Embedding.of(stream, {"a": {}}, positions={"place": position})
    out = MultiClass(W_out=[[1]], labels=("a",), at="every")
    return Transformer(stream=stream, embedding=embedding, layers=(), read_out=out)


def test_bounded_positions_give_bounded_activations():
    """‖pe(i)‖ ≤ P: i/n has a bound for all n, i has none; a whole model stays within its own."""
    assert tf.activation_bounds(model_with("i/n"), "linf")["embedding"] == 1
    with pytest.raises(InvalidValue, match="longest"):
        tf.activation_bounds(model_with("i"), "linf")
    model = tf.recipe("dyck-1-2").build()
    bounds = tf.activation_bounds(model, "linf")
    for n in range(1, 7):
        for x in itertools.product("()", repeat=n):
            for name, stream in model.run("".join(x)).streams:
                assert np.abs(stream).max() <= bounds[name], (x, name)


# Proposition 7.3


def weights(scores, weighting):
    """The three weightings, by definition, for scores that are numbers."""
    best = [j for j, s in enumerate(scores) if s == max(scores)]
    chosen = {"leftmost-hard": best[:1], "rightmost-hard": best[-1:], "average-hard": best}[
        weighting
    ]
    return [F(j in chosen, len(chosen)) for j in range(len(scores))]


@pytest.mark.parametrize("weighting", ["leftmost-hard", "rightmost-hard", "average-hard"])
def test_no_constant_bounds_hard_attention_as_printed(weighting):
    """Scores (0, d) and (d, 0), values (0, 1): x moves by 2⁻ᵏ, the output by 1, for every k."""
    for k in range(40):
        d = F(1, 2**k)
        outputs = [weights(scores, weighting)[1] for scores in ((0, d), (d, 0))]
        assert outputs == [1, 0]
    head = Attention(W_Q=[[0, 0, 1]], W_K=[[1, 0, 0]], W_V=[[0, 1, 0]], weighting=weighting)
    got = [head([[a, 0, 1], [b, 1, 1]], "float64")[0, 0] for a, b in ((0, d), (d, 0))]
    assert got == [1, 0]
    with pytest.raises(InvalidValue, match="softmax"):
        tf.lipschitz_constant(head, "linf", size=1)


def test_a_constant_bounds_softmax_attention():
    """x = [key, value, 1] at two positions, moved by up to 1/2 on a grid of quarters."""
    head = Attention(W_Q=[[0, 0, 1]], W_K=[[1, 0, 0]], W_V=[[0, 1, 0]], weighting="softmax")
    K = float(tf.lipschitz_constant(head, "linf", size=1))

    def output(keys, values):
        e = np.exp(np.array(keys, dtype=float))
        return e @ np.array(values, dtype=float) / e.sum()

    corners = list(itertools.product((-1, 0, 1), repeat=4))
    largest = 0.0
    for a, b, v, w in corners:
        assert head([[a, v, 1], [b, w, 1]])[0, 0] == pytest.approx(output((a, b), (v, w)))
        for k in (1, 2, 8):
            for s in itertools.product((-1, 0, 1), repeat=4):
                moved = [x + y / (2 * k) for x, y in zip((a, b, v, w), s, strict=True)]
                change = abs(output(moved[:2], moved[2:]) - output((a, b), (v, w)))
                largest = max(largest, change * 2 * k)
                assert change <= K / (2 * k)
    assert largest > 1


# L_inf,1


def test_the_printed_norm_bounds_no_operator_norm_but_that_of_l1():
    """Every 2 × 2 matrix over −2 … 2, applied to every x over −1, 0, 1, in whole numbers."""
    numbers = range(-2, 3)
    exceeded = {"l1": 0, "l2": 0, "linf": 0}
    for a, b, c, d in itertools.product(numbers, repeat=4):
        L = max(abs(a), abs(b)) + max(abs(c), abs(d))
        assert l_inf_1_norm([[a, b], [c, d]]) == L
        seen = dict.fromkeys(exceeded, False)
        for x, y in itertools.product((-1, 0, 1), repeat=2):
            u, v = a * x + b * y, c * x + d * y
            seen["l1"] |= abs(u) + abs(v) > L * (abs(x) + abs(y))
            seen["l2"] |= u * u + v * v > L * L * (x * x + y * y)
            seen["linf"] |= max(abs(u), abs(v)) > L * max(abs(x), abs(y))
        exceeded = {name: count + seen[name] for name, count in exceeded.items()}
        assert operator_norm([[a, b], [c, d]], "l1") <= L
    assert exceeded["l1"] == 0 and exceeded["l2"] > 0 and exceeded["linf"] > 0
    assert l_inf_1_norm([[1, 1]]) == 1
    assert operator_norm([[1, 1]], "l2") ** 2 >= 2 and operator_norm([[1, 1]], "linf") == 2
