"""What is printed of Booleans (3.1) and of layer normalization (6), against what it does."""

import itertools
import math
from fractions import Fraction as F

import pytest

import transformist as tf
from transformist.errors import UndefinedValue
from transformist.model import LayerNorm

# 3.1


def test_table_4_and_its_text_exchange_false_and_true():
    table, text = {"false": (-1, 1), "true": (1, -1)}, {"false": (1, -1), "true": (-1, 1)}
    to_bit = tf.recipe("convert-boolean").build(source="pair", target="zero-one")
    assert [to_bit(text[name]).tolist() for name in ("false", "true")] == [[0], [1]]
    assert [to_bit(table[name]).tolist() for name in ("false", "true")] == [[1], [0]]


def properties(false, true):
    """The columns of Table 4 for two points, by definition.

    Any function on finitely many points is continuous. A vector holds one to three Booleans.
    """
    held = [
        sum(choice, ()) for m in (1, 2, 3) for choice in itertools.product((false, true), repeat=m)
    ]
    means, variances = {}, {}
    for x in held:
        mean = F(sum(x), len(x))
        means.setdefault(len(x), set()).add(mean)
        variances.setdefault(len(x), set()).add(sum((v - mean) ** 2 for v in x) / len(x))
    return {
        "continuous operations": True,
        "minimum gap": sum((a - b) ** 2 for a, b in zip(false, true, strict=True)) > 0,
        "fixed mean": all(len(seen) == 1 for seen in means.values()),
        "fixed variance": all(len(seen) == 1 for seen in variances.values()),
    }


def test_one_printed_representation_has_all_properties():
    listed = {each.name: each.properties for each in tf.boolean_representations()}
    assert all(properties((1, -1), (-1, 1)).values())
    assert properties((1, -1), (-1, 1)) == listed["pair"]
    assert properties((0,), (1,)) == listed["zero-one"]
    assert properties((-1,), (1,)) == listed["minus-one-one"]
    assert [name for name, has in listed.items() if all(has.values())] == ["pair"]


# 6


def norm(x, epsilon=0.0, gain=None):
    """Definition 6.1 with β = 0, and γ = 1 unless given, in floats."""
    mean = sum(x) / len(x)
    variance = sum((v - mean) ** 2 for v in x) / len(x)
    gain = gain or [1] * len(x)
    return [(v - mean) / math.sqrt(variance + epsilon) * g for v, g in zip(x, gain, strict=True)]


def test_with_the_printed_epsilon_no_sign_comes_out():
    """LN([δ, −δ]) = δ/√(δ² + ε) is below 1 for every ε > 0; with ε = 0 it is 1, but 0/0 at 0."""
    deltas, epsilons = [F(1), F(1, 100), F(1, 1000)], [F(1), F(1, 10**5), F(1, 10**12)]
    assert all(d * d / (d * d + e) < 1 for d in deltas for e in epsilons)
    assert norm([0.01, -0.01], epsilon=1e-5)[0] == pytest.approx(0.9535, abs=1e-4)
    assert norm([0.001, -0.001], epsilon=1e-5)[0] == pytest.approx(0.3015, abs=1e-4)
    assert all(norm([float(d), -float(d)]) == pytest.approx([1, -1]) for d in deltas)
    with pytest.raises(ZeroDivisionError):
        norm([3.0, 3.0, 3.0])
    with pytest.raises(UndefinedValue, match="coordinates are not all equal"):
        LayerNorm(gain=[1, 1, 1])([3, 3, 3])
    assert LayerNorm(gain=[1, 1])([0.001, -0.001]) == pytest.approx([1, -1])


# 6.1


def sign(x):
    return (x > 0) - (x < 0)


def paired(x, scale):
    """x, −x after a norm with the factor `scale`: what a norm makes of a pair."""
    return [norm([v, -v], epsilon=1.0)[0] if scale else v for v in x]


def test_homogeneous_layers_are_affected_through_attention():
    """The mean of a list of values over all positions, 1-homogeneous; the read-out is a sign.

    A norm at each position divides each value by a number of its own.
    """
    grid = [v for v in range(-3, 4) if v]
    changed = 0
    for values in itertools.product(grid, repeat=3):
        plain, normed = sum(paired(values, False)), sum(paired(values, True))
        if len({abs(v) for v in values}) == 1:  # one factor for all positions
            assert sign(round(plain, 9)) == sign(round(normed, 9))
        changed += sign(round(plain, 9)) != sign(round(normed, 9))
    assert changed > 0
    plain, normed = [sum([3, -1, -1]) / 3, sum(norm([v, -v])[0] for v in (3, -1, -1)) / 3]
    assert (plain, normed) == (1 / 3, -1 / 3)


def test_homogeneous_layers_are_affected_by_a_pre_norm_and_by_a_mean():
    """The residual connection adds what is not scaled; and a norm subtracts the mean."""

    def f(x):
        return [-1.5 * v for v in x]

    x = [2.0, -2.0]
    assert f(x)[0] + x[0] < 0 < f(norm(x))[0] + x[0]
    assert sign(norm([1.0, 2.0])[0]) != sign(1.0)


def test_homogeneous_layers_are_not_affected_position_wise_after_the_residual():
    """Every ReLU network without bias that keeps pairs, slopes a and b, behind post-norms."""
    for a, b in itertools.product(range(-2, 3), repeat=2):

        def added(v, a=a, b=b):
            return v + a * max(v, 0) + b * max(-v, 0)

        for v in range(-3, 4):
            [inner] = paired([v], True)
            [outer] = paired([added(inner)], True)
            assert sign(outer) == sign(added(v)), (a, b, v)


# 6.3


def test_a_printed_norm_of_pairs_needs_a_uniform_gain():
    """c is one number for all coordinates where γ is uniform, and for no other γ in {1, 2, 3}⁴."""
    x = [1.0, 2.0, -1.0, -2.0]
    for gain in itertools.product((1, 2, 3), repeat=4):
        factors = [y / v for y, v in zip(norm(x, gain=list(gain)), x, strict=True)]
        assert (max(factors) - min(factors) < 1e-12) == (len(set(gain)) == 1), gain
    with pytest.raises(ZeroDivisionError):
        norm([0.0, 0.0])
    built = tf.recipe("layernorm-pairs").build(width=2)
    for v in itertools.product(range(-2, 3), repeat=2):
        pair = [*v, *(-t for t in v)]
        if any(v):
            assert built(pair) == pytest.approx(norm(list(map(float, pair))))
        else:
            with pytest.raises(UndefinedValue, match="coordinates that differ"):
                built(pair)


# 6.4


def relu(x):
    return max(F(0), x)


def test_printed_clip_bias():
    """W₂ = [1, −1] gives one number; with b₂ = [−δ, δ] it becomes two, the second 2δ too large."""
    for delta in (F(1, 8), F(1), F(3)):
        library = tf.recipe("clip").build(delta=delta)
        for x in (k * delta / 4 for k in range(-12, 13)):
            once = relu(x + delta) - relu(x - delta)
            clipped = min(max(x, -delta), delta)
            assert [once + b for b in (-delta, delta)] == [clipped, clipped + 2 * delta]
            assert once - delta == clipped == F(library([x])[0])


def printed_sign(x, delta):
    """Section 6.4 with b₂ = −δ: every number doubled and negated, clipped, then LN with ε = 0."""
    doubled = [w for v in x for w in (-v, v)]
    clipped = [float(min(max(w, -delta), delta)) for w in doubled]
    return norm(clipped)[1::2]


def test_printed_sign_is_not_0_at_0_but_changes_the_others():
    delta = F(1, 10)
    large = [s * m * delta for m in (1, 2, 7) for s in (1, -1)]
    build = tf.recipe("layernorm-sign").build(width=3, delta=delta)
    for x in itertools.product(large, repeat=3):
        signs = [sign(v) for v in x]
        assert printed_sign(x, delta) == pytest.approx(signs)
        assert build([float(v) for v in (*x, *(-v for v in x))])[:3] == pytest.approx(signs)
    for x in itertools.product([*large, F(0)], repeat=3):
        if 0 < x.count(0) < 3:  # the zeros stay 0, and the others are no signs
            expected = [sign(v) * math.sqrt(3 / (3 - x.count(0))) for v in x]
            assert printed_sign(x, delta) == pytest.approx(expected)
    assert printed_sign([F(3, 10), F(1, 20), F(-7, 10)], delta) == pytest.approx(
        [1.1547, 0.5774, -1.1547], abs=1e-4
    )
    with pytest.raises(ZeroDivisionError):
        printed_sign([F(0), F(0), F(0)], delta)
