"""Activations other than ReLU and GELU, and gated units, against the real functions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist import bounds
from transformist.arithmetic import INTERVAL, SYSTEMS
from transformist.errors import InvalidValue, NotRepresentable, TransformistError
from transformist.model import FeedForward, Layer, RealVector

FORMATS = [name for name in SYSTEMS if name.startswith(("float", "bfloat"))]
OTHERS = ("sigmoid", "tanh", "elu", "silu")
REAL = {
    "sigmoid": lambda x: 1 / (1 + (-x).exp()),
    "tanh": lambda x: (x.exp() - (-x).exp()) / (x.exp() + (-x).exp()),
    "elu": lambda x: x if x > 0 else x.exp() - 1,
    "silu": lambda x: x / (1 + (-x).exp()),
    "relu": lambda x: max(x, 0),
    "identity": lambda x: x,
}


def real(activation, x):
    """The function to some 60 digits, by the exponential of the standard library's decimals."""
    import decimal

    with decimal.localcontext(prec=60):
        value = decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)
        return Fraction(REAL[activation](value))


def numbers_of(system, count=60):
    rng = np.random.default_rng(count)
    size = 10.0 ** rng.uniform(-4, 1.2, count) * rng.choice([-1, 1], count)
    return [Fraction(v) for v in system.numbers(system.array([0.0, *size]))]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("activation", OTHERS)
def test_an_activation_is_as_near_as_its_error_bound(activation, name):
    system = SYSTEMS[name]
    network = FeedForward(W_1=[[1]], W_2=[[1]], activation=activation)
    for x in numbers_of(system):
        got = Fraction(system.numbers(network([x], system)).item())
        bound = bounds.rounding_error(network, [[float(x)]], system).item()
        off = abs(got - real(activation, x))
        assert off <= bound
        scale = 1 if activation == "sigmoid" else abs(x)
        assert bound <= 40 * system.unit_roundoff * scale + 24 * system.smallest + 1e-15


@pytest.mark.parametrize("activation", OTHERS)
def test_balls_hold_an_activation_and_exact_arithmetic_refuses_it(activation):
    network = FeedForward(W_1=[[1]], W_2=[[1]], activation=activation)
    for x in (Fraction(-700), Fraction(-3, 7), Fraction(0), Fraction(1, 1000), Fraction(9)):
        y = network([x], INTERVAL)
        middle, radius = (f(y).item() for f in (INTERVAL.numbers, INTERVAL.radius))
        assert abs(middle - real(activation, x)) <= radius + Fraction(1, 10**50)
        assert radius < Fraction(1, 2**100)
    with pytest.raises(NotRepresentable, match="other than ReLU"):
        network([1], "exact")


@pytest.mark.parametrize("name", FORMATS)
def test_extreme_numbers_have_the_limits(name):
    system, rows = SYSTEMS[name], [[-1], [1]]
    most = [[system.largest]]
    for activation, ends in (("sigmoid", (0, 1)), ("tanh", (-1, 1))):
        network = FeedForward(W_1=rows, W_2=np.eye(2), activation=activation)
        assert system.numbers(network(most, system))[0].tolist() == list(ends)
    below = FeedForward(W_1=[[-1]], W_2=[[1]], activation="elu")
    assert system.numbers(below(most, system)).item() == -1


GATED = {"glu": "sigmoid", "reglu": "relu", "swiglu": "silu", "bilinear": "identity"}


@pytest.mark.parametrize("activation", GATED)
@pytest.mark.parametrize("name", FORMATS)
def test_gated_units_are_as_near_as_their_error_bound(activation, name):
    system, rng = SYSTEMS[name], np.random.default_rng(5)
    for _ in range(8):
        V, G = rng.integers(-8, 9, (2, 3, 2)) / 8
        c, b = rng.integers(-8, 9, (2, 3)) / 8
        W_2 = rng.integers(-8, 9, (1, 3)) / 8
        network = FeedForward(
            W_1=[*V, *G], b_1=[*c, *b], W_2=W_2, b_2=["1/3"], activation=activation
        )
        x = system.numbers(system.array(rng.normal(size=2)))
        exact = np.array([Fraction(v) for v in x], dtype=object)

        def affine(W, b, exact=exact):
            return [
                sum((Fraction(w) * v for w, v in zip(row, exact, strict=True)), Fraction(c))
                for row, c in zip(W, b, strict=True)
            ]

        gates = [real(GATED[activation], v) for v in affine(G, b)]
        h = [g * v for g, v in zip(gates, affine(V, c), strict=True)]
        expected = sum((Fraction(w) * v for w, v in zip(W_2[0], h, strict=True)), Fraction(1, 3))
        got = Fraction(system.numbers(network(x, system)).item())
        bound = bounds.rounding_error(network, [x.tolist()], system).item()
        assert abs(got - expected) <= bound <= 200 * system.unit_roundoff + 1e-15


def test_products_are_exact_but_for_one_rounding():
    network = tf.recipe("multiply-by-gate").build()
    pairs = list(itertools.product((-3, Fraction(-1, 3), 0, Fraction(2, 7), 5), repeat=2))
    assert network(pairs, "exact").tolist() == [[x * y] for x, y in pairs]
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 2))
    assert network(x)[:, 0].tolist() == (x[:, 0] * x[:, 1]).tolist()


def test_bounds_of_vectors_hold_for_a_sigmoid():
    """σ(0) is 1/2, so that a network without weights before it gives something."""
    network = FeedForward(W_1=[[0]] * 4, W_2=[[1] * 4], activation="sigmoid")
    for norm in ("l1", "l2", "linf"):
        assert bounds.size_bound(network, norm, 0) >= 2 == network([9]).item()
        assert bounds.lipschitz_constant(network, norm) == 0


def model_of(network):
    return tf.Transformer(
        stream=tf.Stream(("x", "y")),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=[[1, "-1/2"], [-2, 3]]),
        layers=(Layer(feed_forward=network),),
        read_out=RealVector(W_out=np.eye(2), at="every"),
    )


@pytest.mark.parametrize("activation", OTHERS)
def test_engines_and_files_know_them_and_proofs_refuse_them(activation, tmp_path):
    network = FeedForward(
        W_1=[[1, 2], [0, 0]], b_1=[0, -1], W_2=[[1, 1], [-1, 2]], activation=activation
    )
    model = model_of(network)
    expected = model("abba")
    assert tf.run(model, "abba", engine="structured") == expected
    assert tf.decoder(model).take_all("abba")[-1] == expected[-1]
    tf.save(model, tmp_path / "model.safetensors")
    assert tf.load(tmp_path / "model.safetensors")("abba") == expected
    with pytest.raises(TransformistError, match=activation):
        tf.certify(model, max_length=3, arithmetic="float32")


@pytest.mark.parametrize("activation", [*OTHERS, "glu", "bilinear"])
def test_certify_refuses_them_after_a_slot_that_holds_a_sum(activation):
    """There the ranges of short inputs are observed, whose numbers may be irrational."""
    head = tf.Attention(
        W_Q=[[0, 0]], W_K=[[0, 0]], W_V=[[1, 0]], W_O=[[1], [0]], mask="future"
    )  # fmt: skip
    rows = 2 if activation in ("glu", "bilinear") else 1
    network = FeedForward(W_1=[[1, 0]] * rows, W_2=[[0], [1]], activation=activation)
    model = tf.Transformer(
        stream=tf.Stream(("x", "y")),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=[[1, 2], [-1, 0]]),
        layers=(Layer((head,)), Layer((head,), network)),
        read_out=tf.Binary(W_out=[[0, 1]]),
    )
    for order in ("any", "flash"):
        with pytest.raises(InvalidValue, match="certify|networks must be of ReLUs") as refusal:
            tf.certify(model, max_length=3, order=order)
        assert "transformist check" in str(refusal.value)
        assert tf.grade_of(model, max_length=3, order=order)[0] == 0


@pytest.mark.parametrize("activation", GATED)
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_bounds_of_vectors_hold_for_gated_units(activation, norm):
    """With all rows alike, the bound for l∞ is reached, but for σ, which stays below 1."""
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        network = FeedForward(
            W_1=rng.normal(size=(6, 4)), b_1=rng.normal(size=6), W_2=rng.normal(size=(2, 3)),
            b_2=rng.normal(size=2), activation=activation,
        )  # fmt: skip
        x = rng.normal(size=(200, 4))
        size = np.linalg.norm(x, order, axis=1)
        bound = float(bounds.size_bound(network, norm, Fraction(size.max())))
        assert (np.linalg.norm(network(x), order, axis=1) <= bound * (1 + 1e-12)).all()
    alike = FeedForward(W_1=[[2, 1], [3, 1]], b_1=[1, 2], W_2=[[5]], activation=activation)
    reached = alike([10, 10]).item() / float(bounds.size_bound(alike, "linf", 10))
    assert 0.999 < reached <= 1
    with pytest.raises(InvalidValue, match=f"units of one factor.*{activation}"):
        bounds.lipschitz_constant(alike, norm)


def test_degrees_of_gated_units():
    weights = {"W_1": [[2], [3]], "W_2": [[5]]}
    for activation, degree in (("bilinear", 2), ("reglu", 2), ("geglu", None), ("glu", None)):
        network = FeedForward(**weights, activation=activation)
        assert bounds.homogeneity(network) == degree
        if degree:
            assert network([8]).item() == 64 * network([1]).item()
        assert bounds.homogeneity(FeedForward(**weights, b_1=[0, 1], activation=activation)) is None


def test_scales_are_the_extreme_ones_within_the_tolerance():
    for tolerance, epsilon in itertools.product(
        (Fraction(1, 2), Fraction(1, 1000)), (1, Fraction(1, 3))
    ):
        c = bounds.sigmoid_scale(tolerance, epsilon)
        assert math.exp(-c * epsilon) <= tolerance < math.exp(-c * epsilon / 2)
        c = bounds.tanh_scale(tolerance, epsilon)
        assert c**2 * epsilon**3 / 3 <= tolerance < 4 * c**2 * epsilon**3 / 3
    for call in (
        lambda: bounds.sigmoid_scale(Fraction(1), Fraction(1)),
        lambda: bounds.sigmoid_scale(Fraction(1, 2), Fraction(0)),
        lambda: bounds.tanh_scale(Fraction(0), Fraction(1)),
    ):
        with pytest.raises(InvalidValue, match="must"):
            call()
