"""Zonotopes: drawn points of one are mapped into the zonotope of the image, with the same ε."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.errors import UndefinedValue
from transformist.model import GATES, PLAIN_ACTIVATIONS, Attention, FeedForward, LayerNorm
from transformist.theory.attention_zonotopes import attended, attended_by_rows, spread
from transformist.theory.transformer_error import transformer_error
from transformist.theory.zonotopes import (
    SLOPES,
    Zonotope,
    linear,
    network,
    normalized,
    product,
    summed,
)

N, D, M = 4, 3, 7


def drawn_zonotope(rng, size):
    """Vectors ẑ, of which some numbers are exactly 0, with generators and a rest."""
    value = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.9)
    generators = rng.normal(size=(N, D, M)) * size / M
    rest = rng.random((N, D)) * size / M * (rng.random((N, D)) < 0.5)
    return Zonotope((value, np.zeros((N, D))), generators, rest)


def points(rng, x, count=40):
    """ε and z = ẑ − Σ gₖ εₖ − r: some in corners, where |εₖ| is 1 and r as large as it may be."""
    for k in range(count):
        epsilon, r = rng.uniform(-1, 1, M), rng.uniform(-1, 1, (N, D))
        if k % 2:
            epsilon, r = np.sign(epsilon), np.sign(r)
        yield epsilon, x.value - x.generators @ epsilon - x.rest * r


def part(rng, kind):
    def draw(*shape):
        return rng.normal(size=shape)

    if kind == "attention":
        mask = str(rng.choice(["none", "future", "strict-future", "past"]))
        wide = {"W_V": draw(2, D), "W_O": draw(D, 2), "b_V": draw(2)}
        value = wide if rng.random() < 0.5 else {"W_V": draw(D, D)}
        head = Attention(
            W_Q=2 * draw(2, D), W_K=draw(2, D), b_Q=draw(2), b_O=draw(D), mask=mask, **value
        )
        return head, lambda x: attended(head, x)
    if kind == "norm":
        norm = LayerNorm(
            gain=draw(D), bias=draw(D), epsilon=float(rng.choice([0, 0.01, 1])),
            W_N=draw(D, D) if rng.random() < 0.5 else None,
        )  # fmt: skip
        return norm, lambda x: normalized(norm, x)
    rows = 8 if kind in GATES else 4
    f = FeedForward(W_1=draw(rows, D), b_1=draw(rows), W_2=draw(2, 4), b_2=draw(2), activation=kind)
    return f, lambda x: network(f, x)


KINDS = ["attention", "norm", *PLAIN_ACTIVATIONS, *GATES]


@pytest.mark.parametrize("kind", KINDS)
def test_points_of_a_zonotope_stay_in_its_image(kind):
    """Also within the rest alone, once the generators with the same ε are taken away."""
    reached = 0.0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        size = 10.0 ** rng.uniform(-4, 0.5)
        x = drawn_zonotope(rng, size)
        f, mapped = part(rng, kind)
        with np.errstate(all="ignore"):
            y = mapped(x)
        ours = f(x.value)
        assert (np.abs(ours - y.value) <= y.near[1] + 1e-13).all()
        for epsilon, z in points(rng, x):
            moved = ours - f(z)
            assert (np.abs(moved - y.generators @ epsilon) <= y.rest + 1e-11).all(), (seed, size)
            assert (np.abs(moved) <= y.radius + 1e-11).all()
            ratios = np.abs(moved) / np.maximum(y.radius, 1e-9)
            reached = max(reached, ratios.max())
    assert reached > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_the_rest_of_small_zonotopes_is_of_second_order(kind):
    """A tenth of the size leaves a hundredth of the rest, and a tenth of the radius."""
    found = []
    for size in (1e-3, 1e-4):
        rng = np.random.default_rng(3)
        x = drawn_zonotope(rng, size)
        x = x._replace(near=(x.near[0] + 0.1, x.near[1]), rest=np.zeros((N, D)))
        y = part(rng, kind)[1](x)
        found.append((y.rest.max(), y.radius.max()))
    (rest, radius), (less, smaller) = found
    assert less <= rest / 50 + 1e-8 and smaller == pytest.approx(radius / 10, rel=0.1)


def test_sums_and_products_of_zonotopes():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, other = drawn_zonotope(rng, 1), drawn_zonotope(rng, 0.3)
        W, b = rng.normal(size=(2, D)), rng.normal(size=2)
        for epsilon, z in points(rng, x):
            w = other.value - other.generators @ epsilon - other.rest * rng.uniform(-1, 1, (N, D))
            for y, moved in (
                (summed(x, other), x.value + other.value - z - w),
                (product(x, other), x.value * other.value - z * w),
                (linear(W, b, x), (x.value - z) @ W.T),
            ):
                assert (np.abs(moved - y.generators @ epsilon) <= y.rest + 1e-12).all()


def test_rows_of_heads_with_errors_of_their_own():
    """Each position has ε of its own, and every row the generators of all of them."""
    reached = 0.0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = drawn_zonotope(rng, 10.0 ** rng.uniform(-4, 0.5))
        heads = [part(rng, "attention")[0] for _ in range(2)]
        with np.errstate(all="ignore"):
            rows = [summed(y, spread(x, i)) for i, y in enumerate(attended_by_rows(heads, x))]
        ours = x.value + heads[0](x.value) + heads[1](x.value)
        for _ in range(40):
            epsilon, r = (np.sign(rng.uniform(-1, 1, shape)) for shape in ((N, M), (N, D)))
            z = x.value - np.einsum("ndm,nm->nd", x.generators, epsilon) - x.rest * r
            moved = ours - z - heads[0](z) - heads[1](z)
            for i, y in enumerate(rows):
                beyond = np.abs(moved[i] - y.generators[0] @ epsilon.ravel())
                assert (beyond <= y.rest[0] + 1e-11).all()
                reached = max(reached, (np.abs(moved[i]) / np.maximum(y.radius[0], 1e-9)).max())
    assert reached > 0.5


def of_one_generator(value, generator):
    value, generator = np.array(value, dtype=float), np.array(generator, dtype=float)
    return Zonotope((value, np.zeros(value.shape)), generator[..., None], np.zeros(value.shape))


def share_reached(x, mapped, f):
    """The largest share of the rest that a point takes up beyond the generators."""
    y, most = mapped(x), 0.0
    for epsilon in np.linspace(-1, 1, 21):
        moved = f(x.value) - f(x.value - x.generators[..., 0] * epsilon)
        beyond = np.abs(moved - y.generators[..., 0] * epsilon)
        assert (beyond <= y.rest + 1e-13).all()
        most = max(most, (beyond / np.maximum(y.rest, 1e-9)).max())
    return most


READS = {"W_V": [[0, 0, 1]], "W_O": [[1], [0], [0]]}


def by_rows(head):
    """The rows of a head as one zonotope, for generators of the first position."""

    def mapped(x):
        rows = [*attended_by_rows([head], x)]
        near = tuple(np.concatenate([each.near[k] for each in rows]) for k in range(2))
        generators = np.concatenate([each.generators for each in rows])[..., :1]
        return Zonotope(near, generators, np.concatenate([each.rest for each in rows]))

    return mapped


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("lead", [0.0, 2.0])
def test_softmax_is_curved(lead, rows):
    """One score moves, by nothing but its key: weights 1/2, where only the third order is left,
    and 0.88, where the second is."""
    head = Attention(W_Q=[[0, 0, 0]], W_K=[[0, 1, 0]], b_Q=[1], **READS)
    x = of_one_generator([[0, lead, 1], [0, 0, 0]], [[0, 0.2, 0], [0, 0, 0]])
    mapped = by_rows(head) if rows else lambda x: attended(head, x)
    assert share_reached(x, mapped, head) > (0.2 if lead else 0)


def test_scores_move_with_queries_and_keys():
    """Query and key are 0 and both move: the score moves by their product alone."""
    head = Attention(W_Q=[[1, 0, 0]], W_K=[[0, 1, 0]], **READS)
    x = of_one_generator([[0, 0, 1], [0, 0, 0]], [[0.2, 0.2, 0], [0.2, 0, 0]])
    assert share_reached(x, lambda x: attended(head, x), head) > 0.4


@pytest.mark.parametrize("direction", [[1, 1, -2], [1, -1, 0]])
def test_norms_are_curved(direction):
    """Across the vector, where the squares of the changes count, and aslant."""
    norm = LayerNorm(gain=[1, 1, 1], epsilon=0)
    value = [1, -1, 0] if direction[2] else [2, -1, -1]
    x = of_one_generator([value], [np.multiply(direction, 0.1)])
    assert share_reached(x, lambda x: normalized(norm, x), norm) > 0.5


def test_what_cancels_between_numbers_cancels():
    x = Zonotope((np.ones((1, 2)), np.zeros((1, 2))), np.ones((1, 2, 1)), np.zeros((1, 2)))
    assert linear(np.array([[1, -1]]), np.zeros(1), x).radius.item() < 1e-8
    assert linear(np.array([[1, 1]]), np.zeros(1), x).radius.item() == pytest.approx(2)


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_are_the_derivatives_and_change_no_faster(name):
    x = np.linspace(-9, 9, 180_001)
    act = FeedForward(W_1=[[1]], W_2=[[1]], activation=name)
    derivative, curvature = SLOPES[name]
    slopes = np.diff(act(x[:, None])[:, 0]) / np.diff(x)
    assert np.abs(slopes - derivative((x[1:] + x[:-1]) / 2)).max() < 1e-5
    steepest = (np.abs(np.diff(derivative(x))) / np.diff(x)).max()
    assert 0.95 * curvature < steepest <= curvature
    far = np.array([-1e6, -1e3, 1e3, 1e6])
    with np.errstate(all="ignore"):
        ends = derivative(far)
    assert np.isfinite(ends).all() and set(np.round(ends, 9)) <= {0, 1}
    assert set(SLOPES) == {*PLAIN_ACTIVATIONS} - {"relu"}


def one_word(vector, layers=(), W_out=((1,),)):
    """A model whose input `a` has the given vector."""
    stream = tf.Stream(tuple("pq"[: len(vector)]))
    return tf.Transformer(
        stream=stream,
        embedding=tf.Embedding.of(stream, {"a": dict(zip(stream.slots, vector, strict=True))}),
        layers=layers,
        read_out=tf.MultiClass(W_out=W_out, b_out=[0], labels=("x",)),
    )


def distance(model, arithmetic):
    """The distance of the number that a format gives from the exact one."""
    got, exact = (
        number_system(name).numbers(model.values(["a"], name)[0]) for name in (arithmetic, "exact")
    )
    return abs(Fraction(float(got[0, 0])) - exact[0, 0])


def test_bounds_hold_where_float64_underflows():
    """What float64 has as 0 is multiplied by large weights: by ReLU, in words and in parameters."""
    tiny = Fraction(1, 10**170)
    twice = tf.Layer((), tf.FeedForward(W_1=[[1, 0], [-1, 0]], W_2=[[0, 0], [1, 1]]))
    grown = tf.Layer((), tf.FeedForward(W_1=[[0, 1], [0, -1]], W_2=[[0, 0], [2**120, -(2**120)]]))
    for model, arithmetic in (
        (one_word([tiny, 0], (twice,) + (grown,) * 6, [[0, 1]]), "bfloat16"),
        (one_word([tiny, 0], (twice,) + (grown,) * 6, [[0, 1]]), "float32"),
        (one_word([1e300], W_out=[[Fraction(24, 10**325)]]), "float64"),
        (one_word([Fraction(24, 10**325)], W_out=[[1e300]]), "float64"),
    ):
        (bound,) = transformer_error(model, "a", arithmetic).ravel()
        assert 0 < distance(model, arithmetic) <= Fraction(float(bound)), arithmetic


def test_no_bound_where_a_norm_has_no_value_in_real_numbers():
    """1/10 + 1/5 and 3/10 differ in float64 alone; a later norm has values of at most √d."""
    added = tf.FeedForward(W_1=[[0, 0]], b_1=[1], W_2=[[Fraction(1, 5)], [0]])
    divided = tf.Layer((), added, post_norms=(None, LayerNorm(gain=[1, 1])))
    model = one_word([Fraction(1, 10), Fraction(3, 10)], (divided,), [[1, 0]])
    later = dataclasses.replace(model, final_norm=LayerNorm(gain=[1, 1], epsilon=1))
    for each in (model, later):
        assert np.isfinite(each.values(["a"], "float64")).all()
        with pytest.raises(UndefinedValue):
            each.values(["a"], "exact")
        assert np.isinf(transformer_error(each, "a", "float64")).all()
