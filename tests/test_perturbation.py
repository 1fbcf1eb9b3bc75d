"""Propositions 7.1 to 7.5: bounds that no perturbation exceeds, and how near perturbations come."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest

import transformist as tf
from transformist.bounds import (
    ACTIVATION_SLOPES,
    NORMS,
    bilinear_norm,
    error_after,
    l_inf_1_norm,
    lipschitz_constant,
    normalization_constant,
    normalized_bound,
    operator_norm,
    perturbation_bound,
    size_bound,
    vector_norm,
)
from transformist.errors import InvalidValue, ShapeMismatch, UnknownName
from transformist.model import (
    PLAIN_ACTIVATIONS,
    Attention,
    Binary,
    Embedding,
    FeedForward,
    FeedForwardStack,
    Heads,
    Layer,
    LayerNorm,
    LayerStack,
    PositionEncoding,
    PositionFunctions,
    PositionTable,
    Sinusoids,
    Stream,
    Sublayer,
    Transformer,
)
from transformist.position_features import POSITIONS
from transformist.theory.activations import FRACTIONS, POWERS, WITHIN_ONE, embedding_bound, steps
from transformist.theory.norms import root_above


def _slow(*values):
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


in_norms = pytest.mark.parametrize("norm", NORMS)
ORDER = {"l1": 1, "l2": 2, "linf": np.inf}
ROOM = 1 + 1e-9
"""For the rounding of float64, in which the perturbed values are computed."""


def length(x, norm):
    """The norm, by numpy; the largest over positions."""
    return float(np.linalg.norm(np.atleast_2d(x), ORDER[norm], axis=-1).max())


def steepest(J, norm):
    """x of norm 1 with the largest ‖J x‖."""
    if norm == "l1":
        return np.eye(J.shape[1])[np.abs(J).sum(axis=0).argmax()]
    if norm == "linf":
        return np.where(J[np.abs(J).sum(axis=1).argmax()] < 0, -1.0, 1.0)
    return np.linalg.svd(J)[2][0]


def jacobian(f, x, step=1e-6):
    sides = step * np.eye(len(x))
    return (f(x + sides) - f(x - sides)).T / (2 * step)


def inside(rng, shape, norm, size, corner=False):
    """Vectors of norm at most `size`, two in three on its surface; or corners of the ball."""
    x = rng.normal(size=shape)
    if corner:
        x = np.sign(x) if norm == "linf" else x * (np.abs(x) == np.abs(x).max(-1, keepdims=True))
    x = x / np.linalg.norm(x, ORDER[norm], axis=-1, keepdims=True)
    shrink = rng.choice([1.0, 1.0, rng.uniform()], size=(*shape[:-1], 1))
    return x * shrink * float(size) * (1 - 1e-12)


# Norms


@in_norms
def test_operator_norms_are_reached_and_not_exceeded(norm):
    for seed in range(100):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=rng.integers(1, 7, 2)) * 10.0 ** rng.integers(-30, 30)
        bound = float(operator_norm(A, norm))
        best = length(A @ steepest(A, norm), norm)
        assert bound / (1 + 3e-9) <= best <= bound * ROOM
        for _ in range(20):
            x = rng.normal(size=A.shape[1])
            assert length(A @ x, norm) <= bound * length(x, norm) * ROOM


def test_norms_of_l1_and_linf_are_exact():
    A = [["1/3", "1/7"], [-1, "0.1"]]
    assert operator_norm(A, "l1") == F(4, 3) and operator_norm(A, "linf") == F(11, 10)
    assert bilinear_norm(A, "l1") == 1 and bilinear_norm(A, "linf") == F(1, 3) + F(1, 7) + F(11, 10)
    assert [vector_norm(A, norm) for norm in ("l1", "linf")] == [F(11, 10), 1]
    assert vector_norm([["3/5", "4/5"]], "l2") == 1


def test_the_spectral_bound_is_above_the_true_one():
    """Of matrices whose norm is known, entries that float64 does not hold among them."""
    third = F(1, 3)
    hadamard = signs = np.array([[1, 1], [1, -1]])
    for n in range(1, 6):
        bound = operator_norm([[third] * n] * n, "l2")
        assert n * third <= bound <= n * third * (1 + F(3, 10**9))
        bound = operator_norm(signs, "l2") ** 2
        assert 2**n <= bound <= 2**n * (1 + F(6, 10**9))
        signs = np.kron(hadamard, signs)
    huge = operator_norm([[F(10) ** 400, 0], [0, 1]], "l2")
    assert 1 <= huge / F(10) ** 400 <= 1 + F(3, 10**9)
    assert operator_norm(np.zeros((2, 3)), "l2") == 0


def test_a_matrix_of_nearly_equal_singular_values():
    """Singular vectors are then arbitrary, the bound is not."""
    for seed in range(20):
        Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(30, 30)))
        bound = float(operator_norm(Q + 1e-13 * seed, "l2"))
        assert np.linalg.norm(Q + 1e-13 * seed, 2) * (1 - 1e-13) <= bound <= 1 + 3e-9


def test_the_spectral_bound_needs_no_exact_singular_vectors(monkeypatch):
    """With vectors far from singular, and from orthogonal, it is looser, and still a bound."""
    rng, svd = np.random.default_rng(0), np.linalg.svd
    for noise in (1e-3, 0.03):
        for _ in range(30):
            A = rng.normal(size=(5, 4))
            far = svd(A)[2] + noise * rng.normal(size=(4, 4))
            monkeypatch.setattr(np.linalg, "svd", lambda _, far=far: (None, None, far))
            bound = float(operator_norm(A, "l2"))
            monkeypatch.undo()
            assert 1 <= bound / np.linalg.norm(A, 2) <= 1 + 20 * noise
    for _ in range(30):  # orthogonal, and no singular vectors at all
        A, (Q, _) = rng.normal(size=(4, 4)), np.linalg.qr(rng.normal(size=(4, 4)))
        monkeypatch.setattr(np.linalg, "svd", lambda _, Q=Q: (None, None, Q))
        bound = float(operator_norm(A, "l2"))
        monkeypatch.undo()
        assert 1 <= bound / np.linalg.norm(A, 2) <= 2


@in_norms
def test_bilinear_norms_are_reached_and_not_exceeded(norm):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(3, 3))
        signed = np.outer(*rng.choice([-1, 1], size=(2, 3))) * np.abs(A)
        for matrix, floor in ((A, 0.5), (signed, 1 - 3e-9)):
            corners = np.concatenate(
                [np.eye(3), np.array(list(itertools.product([1, -1], repeat=3)))]
            )
            if norm == "l2":
                U, _, V = np.linalg.svd(matrix)
                left, right = U.T, V
            else:
                left = right = corners[:3] if norm == "l1" else corners[3:]
            best = np.abs(left @ matrix @ right.T).max()
            bound = float(bilinear_norm(matrix, norm))
            assert floor * bound <= best <= bound * ROOM


def test_the_sum_of_row_maxima_bounds_l1_and_nothing_else():
    exceeded = dict.fromkeys(NORMS, 0)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(2, 4))
        printed = float(l_inf_1_norm(A))
        for norm in NORMS:
            exceeded[norm] += length(A @ steepest(A, norm), norm) > printed * ROOM
    assert exceeded["l1"] == 0 and exceeded["l2"] > 15 and exceeded["linf"] > 250
    assert l_inf_1_norm([[1, 1]]) == 1 and l_inf_1_norm([[1, -2], [3, 1]]) == 5
    assert operator_norm([[1, 1]], "l2") > F(14, 10) and operator_norm([[1, 1]], "linf") == 2


def test_roots_are_rounded_up():
    for x in (F(2), F(1, 3), F(10) ** 50, F(1, 10**50), F(0), F(9, 49)):
        root = root_above(x)
        assert x <= root**2 <= x * (1 + F(1, 2**58))
    assert root_above(F(9, 49)) == F(3, 7)


def test_refusals_of_norms():
    for function in (operator_norm, bilinear_norm, vector_norm):
        with pytest.raises(UnknownName, match="no norm has this name.*linf"):
            function([[1]], "lin")
    for function, *norm in ((operator_norm, "l1"), (bilinear_norm, "l2"), (l_inf_1_norm,)):
        with pytest.raises(ShapeMismatch, match=f"^{function.__name__}: .*must be a matrix"):
            function([1, 2], *norm)
    with pytest.raises(ShapeMismatch, match="must be a vector"):
        vector_norm(3, "l1")


# 7.2: networks


def network(seed, activation="relu", shape=(3, 4, 2)):
    rng = np.random.default_rng(seed)
    d, hidden, out = shape
    sizes = ((hidden, d), (hidden,), (out, hidden), (out,))
    W_1, b_1, W_2, b_2 = (rng.normal(size=size) for size in sizes)
    return FeedForward(W_1=W_1, b_1=b_1, W_2=W_2, b_2=b_2, activation=activation)


def largest_ratio(f, K, norm, seed, width, spread=1.0):
    """Over drawn and steepest perturbations of drawn points; none exceeds K."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(25, 1, width)) * spread
    steep = [[steepest(jacobian(f, point), norm)] for point in x[:, 0]]
    drawn = rng.normal(size=(25, 5, width))
    drawn[:, 3:] = np.sign(drawn[:, 3:])
    moved = np.concatenate([np.concatenate([steep, drawn], 1) * s for s in (1e-4, 0.1, 1, -1)], 1)
    change = np.linalg.norm(f(x + moved) - f(x), ORDER[norm], axis=-1)
    ratio = change / (float(K) * np.linalg.norm(moved, ORDER[norm], axis=-1))
    assert (ratio <= 1 + 1e-8).all()
    return ratio.max()


@in_norms
@pytest.mark.parametrize("activation", PLAIN_ACTIVATIONS)
@pytest.mark.trials(12, 20)
def test_networks(activation, norm, trials):
    """Drawn ones come within a factor; one whose matrices add up reaches the constant."""
    found = []
    for seed in range(trials):
        drawn = network(seed, activation)
        found.append(largest_ratio(drawn, lipschitz_constant(drawn, norm), norm, seed, 3))
    # The steepest slopes of sigmoid and tanh are those of the least numbers alone.
    least = {"l1": 0.6, "l2": 0.7, "linf": 0.6}[norm]
    assert max(found) > least * (2 / 3 if activation in ("sigmoid", "tanh") else 1)
    aligned = FeedForward(W_1=[[2, -1, 3]], W_2=[[1], [-5]], activation=activation)
    K = lipschitz_constant(aligned, norm)
    centre = {"relu": 3.0, "gelu": math.sqrt(2), "gelu-tanh": 1.4185, "gelu-sigmoid": 1.4097}
    centre |= {"silu": 2.3994, "sigmoid": 0.0, "tanh": 0.0, "elu": 3.0}
    x = np.array([0, 0, centre[activation] / 3])
    step = steepest(np.array([[2.0, -1, 3]]), norm) * 1e-5
    reached = length(aligned(x + step) - aligned(x - step), norm) / (2e-5 * float(K))
    assert 0.999 < reached <= 1 + 1e-8


@pytest.mark.parametrize("activation", PLAIN_ACTIVATIONS)
def test_slopes_are_reached_and_not_exceeded(activation):
    x = np.linspace(-8, 8, 400_001).reshape(-1, 1)
    act = FeedForward(W_1=[[1]], W_2=[[1]], activation=activation)
    slopes = np.abs(np.diff(act(x)[:, 0])) / np.diff(x[:, 0])
    bound = float(ACTIVATION_SLOPES[activation])
    assert 0.9998 * bound < slopes.max() <= bound * ROOM


@in_norms
def test_stacks_and_sublayers_of_networks(norm):
    parts = (network(1, shape=(3, 4, 3)), network(2, "gelu", shape=(3, 2, 3)))
    stack = FeedForwardStack(parts)
    constants = [lipschitz_constant(part, norm) for part in parts]
    assert lipschitz_constant(stack, norm) == constants[0] * constants[1]
    assert largest_ratio(stack, lipschitz_constant(stack, norm), norm, 0, 3) > 0.04
    one = FeedForward(W_1=[[-3]], W_2=[[2]], b_2=[-5])
    assert largest_ratio(FeedForwardStack((one, one)), 36, norm, 0, 1) > 1 - 1e-8
    added = Sublayer(parts[0])
    assert lipschitz_constant(added, norm) == 1 + constants[0]
    assert largest_ratio(added, 1 + constants[0], norm, 0, 3) > 0.3
    assert error_after(added, [1, 2, 3], [1, 2, "7/2"], norm) == (1 + constants[0]) / 2


# 7.3: attention


def head(rng, d=3, weighting="softmax", mask="none", scale=1.0):
    d_key = int(rng.integers(1, 4))
    W_Q, W_K = scale * rng.normal(size=(2, d_key, d))
    sizes = {"b_Q": d_key, "b_K": d_key, "b_V": 2, "b_O": d}
    return Attention(
        W_Q=W_Q,
        W_K=W_K,
        W_V=rng.normal(size=(2, d)),
        W_O=rng.normal(size=(d, 2)),
        **{name: rng.normal(size=size) for name, size in sizes.items() if rng.uniform() < 0.5},
        weighting=weighting,
        mask=mask,
    )


def moves(f, x, perturbed, norm):
    """‖x̂ − x‖ and ‖f(x̂) − f(x)‖."""
    return length(perturbed - x, norm), length(f(perturbed) - f(x), norm)


@in_norms
@pytest.mark.trials(6, 60)
def test_attention_moves_no_further_than_stated(norm, trials):
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        mask = rng.choice(["none", "future", "strict-future", "past", "strict-past"])
        heads = Heads(tuple(head(rng, mask=mask, scale=rng.choice([0.1, 1])) for _ in range(2)))
        size = float(rng.choice([0.5, 2, 8]))
        K = float(lipschitz_constant(heads, norm, size))
        for delta, corner in itertools.product((1e-3, 0.1, 1.0, 3.0), (False, True)):
            x = inside(rng, (4, 3), norm, size, corner)
            by, moved = moves(heads, x, x + inside(rng, (4, 3), norm, delta, corner), norm)
            sharp = float(perturbation_bound(heads, delta, norm, size))
            assert moved <= sharp * ROOM + 1e-13
            if delta <= 1:
                assert sharp <= K * delta * ROOM
                assert moved <= K * by * ROOM + 1e-13


def extreme(norm, X, a):
    """Vectors (q₁, q₂, k₁, k₂, v) at which the bound of a head with scores a q·k is approached.

    The last position asks; the two before it have opposite keys and values, and nearly equal
    scores half-way.
    """
    if norm == "linf":  # every coordinate has a budget of its own: q and k nearly 0 and as large
        W_Q, W_K = [[a, 0, 0, 0, 0]], [[0, 0, 1, 0, 0]]
        x = [[0, 0, X, 0, X], [0, 0, -X, 0, -X], [X, 0, 0, 0, 0]]
        e = [[0, 0, 1, 0, 1], [0, 0, -1, 0, 1], [1, 0, 0, 0, 0]]
        W_V = [[0, 0, 0, 0, 1]]
    else:  # the query in one coordinate, its perturbation in the other
        W_Q, W_K = [[a, 0, 0, 0, 0], [0, a, 0, 0, 0]], [[0, 0, 1, 0, 0], [0, 0, 0, 1, 0]]
        x = [[0, 0, X, 0, 0], [0, 0, -X, 0, 0], [0, X, 0, 0, 0]]
        e = [[0, 0, 0, 1, 0], [0, 0, 0, -1, 0], [1, 0, 0, 0, 0]]
        W_V = [[0, 0, 1, 0, 0]]
    part = Attention(W_Q=W_Q, W_K=W_K, W_V=W_V, mask="strict-future")
    return part, np.array(x, float), np.array(e, float)


REACHED = {"l1": 0.98, "l2": 0.98, "linf": 0.89}
"""By `extreme`, of the constant and of the bound for any δ."""


@in_norms
def test_the_bound_of_attention_is_approached(norm):
    """At a large X, beside which the constant's other terms are small."""
    X, best, sharpest = 100.0, 0.0, 0.0
    for a in (0.5 / X**2, 2 / X**2, 10 / X**2, 50 / X**2):
        part, x, e = extreme(norm, X, a)
        size = length(x, norm) * (1 + 1e-12)
        K = float(lipschitz_constant(part, norm, size))
        for delta in (1e-4, 0.1, 1.0):
            start = x if norm == "linf" else x - e * delta / 2
            fits = start / max(1.0, length(start, norm) / size)
            by, moved = moves(part, fits, fits + e * delta, norm)
            sharp = float(perturbation_bound(part, by, norm, size))
            assert moved <= sharp * ROOM and moved <= K * by * ROOM
            best, sharpest = max(best, moved / (K * by)), max(sharpest, moved / sharp)
    assert best > REACHED[norm] and sharpest > REACHED[norm]


@in_norms
def test_the_bound_of_biased_queries_is_approached(norm):
    """Two keys, 0 and −1 in the stream, and a query of the bias alone: scores b k are moved."""
    b, best = 1.0, 0.0
    for X in (1.0, 100.0):
        part = Attention(
            W_Q=[[0, 0]], W_K=[[1, 0]], W_V=[[0, 1]], b_Q=[b], b_K=[7], b_V=[5], b_O=[-3]
        )
        x = np.array([[0, X], [0, -X]])
        for delta in (1e-3, 0.1, 1.0):
            e = np.array([[delta, 0], [-delta, 0]])
            by, moved = moves(part, x, x + e, norm)
            sharp = float(perturbation_bound(part, by, norm, X))
            assert moved <= sharp * ROOM
            assert moved <= float(lipschitz_constant(part, norm, X)) * by * ROOM
            best = max(best, moved / sharp)
    assert best > 0.98


@in_norms
def test_the_size_of_a_biased_head_is_reached(norm):
    part = Attention(
        W_Q=[[0, 0]],
        W_K=[[0, 0]],
        W_V=[[2, 0], [0, 2]],
        W_O=[[3, 0], [0, 3]],
        b_V=[5, 0],
        b_O=[7, 0],
    )
    assert part([[1, 0]]).tolist() == [[2 * 3 + 5 * 3 + 7, 0]]
    assert size_bound(part, norm, F(1)) == pytest.approx(28, rel=1e-8)
    empty = Attention(W_Q=[[0]], W_K=[[0]], W_V=[[1]], b_V=[5], b_O=[7], mask="strict-future")
    assert empty([[1]]).tolist() == [[7]] and size_bound(empty, norm, F(1)) == 13


# 7.5: norms


def centred_steps(d):
    """Perturbations of the constant vector, where the slope of a norm is greatest for few d."""
    unit = np.eye(d)
    return np.concatenate([unit, 1 - 2 * unit, unit - np.roll(unit, 1, axis=0)]) * 1e-5


def worst_points(d):
    """x with a first coordinate of share θ of |Cx|², others ± equal; at several sizes."""
    others = np.array([(-1.0) ** k for k in range(d - 1)])
    for theta, size in itertools.product((0.05, 0.3, 0.4, 0.5), (0.3, 0.7, 1.0, 1.5, 3.0)):
        x = np.concatenate([[math.sqrt(theta * d)], others * math.sqrt((1 - theta) * d / (d - 1))])
        yield x * size


@in_norms
@pytest.mark.parametrize("d", [1, 2, 3, 5, 7, 8, *_slow(16, 64)])
def test_the_constants_of_norms(d, norm):
    for epsilon in (1.0, 2.0**-20):
        part = LayerNorm(gain=np.ones(d), bias=np.arange(d), epsilon=epsilon)
        K = normalization_constant(part, norm)
        assert lipschitz_constant(part, norm) == K
        if d == 1:
            assert K == 0
            continue
        scale = math.sqrt(epsilon)
        largest = largest_ratio(part, K, norm, d, d, spread=scale)
        e = centred_steps(d) * scale
        at_centre = np.linalg.norm(part(e) - part(0 * e), ORDER[norm], axis=-1)
        largest = max(
            largest, (at_centre / np.linalg.norm(e, ORDER[norm], axis=-1)).max() / float(K)
        )
        for x in worst_points(d):
            J = jacobian(part, x * scale, 1e-6 * scale)
            slope = length(J @ steepest(J, norm), norm) / float(K)
            assert slope <= 1 + 1e-5
            largest = max(largest, slope)
        assert largest > 0.9999 if norm == "l2" or d <= 7 else 0.6 < largest < 1


@in_norms
@pytest.mark.trials(24, 40)
def test_gains_and_selections_of_norms(norm, trials):
    largest = 0.0
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        part = LayerNorm(
            gain=rng.normal(size=3), bias=rng.normal(size=3), epsilon=rng.uniform(0.1, 1)
        )
        found = largest_ratio(part, lipschitz_constant(part, norm), norm, seed, 3, 0.1)
        selecting = LayerNorm(gain=part.gain, epsilon=part.epsilon, W_N=rng.normal(size=(3, 4)))
        through = lipschitz_constant(selecting, norm)
        found = min(found, largest_ratio(selecting, through, norm, seed, 4, 0.1))
        largest = max(largest, found)
        both = np.abs(part(rng.normal(size=(50, 3)) * 30) - part.bias)
        assert np.linalg.norm(both, ORDER[norm], axis=-1).max() <= float(
            normalized_bound(part, norm)
        )
    assert largest > 0.7


@in_norms
def test_the_sizes_of_normalized_vectors_are_reached(norm):
    for d in range(2, 10):
        part = LayerNorm(gain=np.full(d, -3.0))
        extremes = {
            "l1": np.arange(d) < d // 2,
            "l2": np.arange(d) ** 2,
            "linf": np.arange(d) == 0,
        }[norm]
        bound = float(normalized_bound(part, norm))
        assert bound * (1 - 1e-12) <= length(part(extremes * 1.0), norm) <= bound * ROOM
    assert normalized_bound(LayerNorm(gain=[5]), norm) == 0


# 7.1 and compositions


def drawn_layers(rng, weightings, epsilon, activation="relu"):
    def maybe_norm(chance):
        if rng.uniform() > chance:
            return None
        gain, bias = rng.normal(size=(2, 3))
        return LayerNorm(gain=gain, bias=bias, epsilon=epsilon)

    def layer():
        masks = ["none", "future", "past", "strict-future"]
        heads = tuple(
            head(rng, weighting=rng.choice(weightings), mask=rng.choice(masks), scale=0.3)
            for _ in range(2)
        )
        drawn = network(int(rng.integers(10**6)), activation, shape=(3, 4, 3))
        pre = (maybe_norm(0.4), maybe_norm(0.4))
        return Layer(heads, drawn, pre, (maybe_norm(0.3), maybe_norm(0.3)))

    return tuple(layer() for _ in range(2)), maybe_norm(0.5)


def drawn_transformer(rng, weightings, epsilon, positions):
    stream = Stream(("a", "b", "c"))
    front = ("BOS",) if rng.uniform() < 0.5 and not {"1/i", "-1/i"} & set(positions) else ()
    words = {
        s: dict(zip("abc", rng.normal(size=3), strict=True)) for s in ("x", "y", "EOS", *front)
    }
    places = dict(zip("abc", positions, strict=False))
    layers, final = drawn_layers(rng, weightings, epsilon)
    return Transformer(
        stream=stream,
        embedding=Embedding.of(stream, words, places, front=front, back=("EOS",)),
        layers=layers,
        final_norm=final,
        read_out=Binary(W_out=stream.reading("a"), at="last"),
    )


EVERY = ("softmax", "average-hard", "leftmost-hard", "rightmost-hard")


@in_norms
@pytest.mark.trials(8, 60)
def test_activations_are_bounded(norm, trials):
    nearest = 0.0
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        epsilon = rng.choice([0, 1e-3])
        positions = rng.choice(sorted(POSITIONS), size=2, replace=False)
        model = drawn_transformer(rng, EVERY, epsilon, positions)
        bounds = tf.activation_bounds(model, norm, max_length=6)
        for n in (1, 2, 6):
            x = "".join(rng.choice(["x", "y"], size=n))
            streams = model.run(x).streams
            assert [name for name, _ in streams] == list(bounds)
            for name, z in streams:
                assert length(z, norm) <= float(bounds[name]) * ROOM, name
            nearest = max(nearest, length(streams[1][1], norm) / float(bounds[streams[1][0]]))
    assert nearest > 0.5


@in_norms
def test_sizes_of_parts_are_reached(norm):
    size = F(3)
    line = FeedForward(W_1=[[2]], b_1=[1], W_2=[[4]], b_2=[5])
    value = Attention(W_Q=[[1]], W_K=[[1]], W_V=[[-2]], W_O=[[3]])
    for part in (
        line,
        FeedForwardStack((line, line)),
        value,
        Heads((value, value)),
        Sublayer(line),
    ):
        reached = length(part(np.array([[3.0]])), norm)
        assert abs(reached / float(size_bound(part, norm, size)) - 1) < 1e-8
    assert size_bound(LayerNorm(gain=[2], bias=[7]), norm, size) == 7


def test_the_range_of_every_position_function_is_known():
    for name, function in POSITIONS.items():
        for front, back, N in itertools.product((0, 1, 3), (0, 2), (1, 5)):
            words = {
                "x": {},
                **{special: {} for special in ["BOS", "CLS", "B"][:front]},
                "E": {},
                "F": {},
            }
            embedding = Embedding.of(
                Stream(("p",)),
                words,
                {"p": name},
                front=["BOS", "CLS", "B"][:front],
                back=["E", "F"][:back],
            )
            bound = embedding_bound(embedding, "l1", N)
            values = [
                abs(function(i, n))
                for n in range(1, N + 1)
                for i in range(1 - front, n + back + 1)
                if i or not name.endswith("1/i")
            ]
            assert max(values) == bound, (name, front, back, N)
    assert sorted([*POWERS, *FRACTIONS, *WITHIN_ONE]) == sorted(POSITIONS)


def test_the_range_of_every_position_encoding_is_known():
    words = {"symbols": ("a", "b"), "vectors": [[1, -2], [0, 3]]}
    for encoding, reach in (
        (None, [0, 0]),
        (PositionFunctions((None, "i")), [0, 4]),
        (PositionTable(vectors=[[1, 0], [-5, "1/2"]]), [5, F(1, 2)]),
        (Sinusoids(2), [1, 1]),
    ):
        bound = embedding_bound(Embedding(**words, positions=encoding), "linf", 4)
        assert bound == max(1 + reach[0], 3 + reach[1])


class Squares(PositionEncoding):
    """An encoding of a user's own."""

    width, max_length, nonzero, knows_n = 1, None, 0, False

    def at(self, places, n, a):
        return a.array([[i * i] for i in places])


def test_positions_of_an_unknown_kind_are_not_bounded():
    embedding = Embedding(symbols=("a",), vectors=[[1]], positions=Squares())
    head = Attention(W_Q=[[1]], W_K=[[1]], W_V=[[1]])
    model = Transformer(
        stream=Stream(("p",)),
        embedding=embedding,
        layers=(Layer((head,)),),
        read_out=Binary(W_out=[[1]]),
        max_length=3,
    )
    assert dict(model.run("aa").streams)["embedding"].tolist() == [[2], [5]]
    reason = (
        r": positions must be one of PositionFunctions, PositionTable, Sinusoids; "
        r"received positions of the kind Squares; give a PositionTable of the same vectors, "
    )
    with pytest.raises(InvalidValue, match="^embedding_bound" + reason):
        embedding_bound(embedding, "l1", 3)
    with pytest.raises(InvalidValue, match="^activation_bounds" + reason):
        tf.activation_bounds(model, "l1")
    with pytest.raises(InvalidValue, match="^perturbation_bounds" + reason):
        tf.perturbation_bounds(model, 1, "l1")
    table = PositionTable(vectors=Squares()(3))  # the remedy
    assert embedding_bound(replace(embedding, positions=table), "l1", 3) == 10


@in_norms
@pytest.mark.trials(6, 60)
def test_compositions_move_no_further_than_stated(norm, trials):
    nearest = 0.0
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        layers, _ = drawn_layers(rng, ["softmax"], 0.5, rng.choice(list(PLAIN_ACTIVATIONS)))
        stack = LayerStack(Stream(("a", "b", "c")), ("a", "b", "c"), layers, ("a",))
        bounds = tf.perturbation_bounds(stack, 0.125, norm, size=2)
        x = inside(rng, (40, 4, 3), norm, 2)
        perturbed = x + inside(rng, (40, 4, 3), norm, 0.125, corner=True)
        pairs = zip(stack.streams(x), stack.streams(perturbed), strict=True)
        for (name, bound), (z, other) in zip(bounds.items(), pairs, strict=True):
            moved = np.linalg.norm(other - z, ORDER[norm], axis=-1).max()
            assert moved <= float(bound) * ROOM, (seed, name)
            if name == "layer 0 attention":
                nearest = max(nearest, moved / float(bound))
        assert next(iter(bounds)) == "input" and bounds["input"] == F(1, 8)
    assert nearest > 0.3


@in_norms
@pytest.mark.trials(8, 60)
def test_a_sublayer_with_norms(norm, trials):
    """1 + K, norms on either side, for networks and for attention; its constant holds for δ ≤ 1."""
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        part = rng.choice([network(seed, shape=(3, 4, 3)), Heads((head(rng),))])
        pre, post = (LayerNorm(gain=rng.normal(size=3), epsilon=0.5) for _ in range(2))
        for norms in ((None, None), (pre, None), (None, post), (pre, post)):
            sublayer = Sublayer(part, *norms)
            K = float(lipschitz_constant(sublayer, norm, 2))
            for delta in (1e-3, 1.0):
                x = inside(rng, (4, 3), norm, 2)
                perturbed = x + inside(rng, (4, 3), norm, delta, corner=True)
                by, moved = moves(sublayer, x, perturbed, norm)
                assert moved <= K * by * ROOM
                assert moved <= float(perturbation_bound(sublayer, delta, norm, 2)) * ROOM
                assert moved <= float(error_after(sublayer, x, perturbed, norm, 2)) * ROOM
                assert perturbation_bound(sublayer, delta, norm, 2) <= F(K * ROOM) * F(delta)


def test_the_formulas_of_a_composition():
    """Sizes are those before each sublayer; a norm in front stretches δ ahead of attention."""
    stream, X, delta = Stream(("x",)), 2.0, 0.25
    mean = Attention(W_Q=[[0]], W_K=[[0]], W_V=[[1]])
    own = Attention(W_Q=[[1]], W_K=[[1]], W_V=[[1]])
    stack = LayerStack(stream, ("x",), (Layer((mean,)), Layer((own,))), ("x",))
    moved = list(tf.perturbation_bounds(stack, delta, "l2", size=X).values())
    X, delta = 2 * X, 2 * delta
    last = 2 * delta + 2 * X * math.tanh(delta * (2 * X + delta) / 2)
    assert [float(each) for each in moved[:2]] == [0.25, 0.5]
    assert float(moved[2]) == pytest.approx(last, rel=1e-12)
    pre = LayerNorm(gain=[4, 4], epsilon="1/4")  # K = 8, values of at most 4
    first = Attention(W_Q=[[1, 0]], W_K=[[1, 0]], W_V=np.eye(2))
    sublayer = Sublayer(Heads((first,)), pre)
    assert lipschitz_constant(sublayer, "linf", 1) == 1 + 8 * (1 + 4 * (2 * 4 + 8))


def test_a_transformer_whose_embeddings_are_perturbed():
    model = tf.recipe("dyck-1").build(max_length=4)
    moved = tf.perturbation_bounds(model, "1/1024", "linf")
    z = np.asarray(model.run("(())").streams[0][1])
    other = z + np.random.default_rng(0).choice([-1, 1], size=z.shape) / 1024
    for name, part in steps(model):
        z, other = part(z), part(other)
        assert length(other - z, "linf") <= float(moved[name]) * ROOM


# Refusals


def test_hard_attention_is_refused_since_a_choice_jumps():
    part = Attention(W_Q=[[1, 0]], W_K=[[1, 0]], W_V=[[0, 1]], weighting="average-hard")
    x, other = np.array([[1.0, 0], [1 - 1e-9, 1]]), np.array([[1 - 1e-9, 0], [1.0, 1]])
    assert length(part(other) - part(x), "linf") == 1
    for weighting in EVERY[1:]:
        hard = Attention(W_Q=[[1]], W_K=[[1]], W_V=[[1]], weighting=weighting)
        for refused in (lipschitz_constant, perturbation_bound):
            arguments = (1, "l1", 1) if refused is perturbation_bound else ("l1", 1)
            with pytest.raises(InvalidValue, match=r"a hard choice jumps.*soften"):
                refused(hard, *arguments)
        assert size_bound(hard, "l1", F(2)) == 2


def test_a_norm_without_epsilon_is_refused():
    part = LayerNorm(gain=[1, 1])
    for refused in (
        lambda: lipschitz_constant(part, "l2"),
        lambda: perturbation_bound(part, 1, "l1"),
    ):
        with pytest.raises(InvalidValue, match=r"with ε = 0 it takes \(t, −t\) to \(1, −1\)"):
            refused()


def test_hypotheses_are_checked():
    part = Attention(W_Q=[[1]], W_K=[[1]], W_V=[[1]])
    assert error_after(part, [[2]], [[1]], "l2", 2) == 11
    with pytest.raises(InvalidValue, match="before attention.*received ‖x̂ − x‖ = 1.5"):
        error_after(part, [[2]], [[0.5]], "l2", 2)
    with pytest.raises(InvalidValue, match="‖x‖ = 3, above X = 2; give a larger size"):
        error_after(part, [[3]], [[3]], "l2", 2)
    with pytest.raises(InvalidValue, match="must have one shape"):
        error_after(part, [[3]], [[3], [3]], "l2")
    with pytest.raises(InvalidValue, match="attention needs size.*no size"):
        lipschitz_constant(Sublayer(Heads((part,))), "l1")
    with pytest.raises(InvalidValue, match="size, a bound of norms, must.*size = -1"):
        lipschitz_constant(part, "l1", -1)
    for delta in (-1, "x", math.inf, None):
        with pytest.raises(
            InvalidValue, match="delta, a bound of norms, must be a number of at least 0"
        ):
            perturbation_bound(part, delta, "l1", 1)
    with pytest.raises(UnknownName, match="no norm"):
        lipschitz_constant(part, "l3", 1)
    with pytest.raises(InvalidValue, match="must be one of FeedForward, .*received Layer"):
        lipschitz_constant(Layer((part,)), "l1", 1)
    assert error_after(FeedForward(W_1=[[1]], W_2=[[1]]), [1], [9], "l1") == 8


def test_what_activation_bounds_need():
    model = tf.recipe("parity").build()
    with pytest.raises(InvalidValue, match="function i needs a longest length.*give max_length"):
        tf.activation_bounds(model, "l1")
    short, long = (tf.activation_bounds(model, "l1", max_length=N) for N in (4, 8))
    assert short["embedding"] < long["embedding"]
    with pytest.raises(InvalidValue, match="leave size out"):
        tf.activation_bounds(model, "l1", max_length=4, size=1)
    with pytest.raises(
        InvalidValue, match="a LayerStack needs size, .*received no size; give size"
    ):
        tf.activation_bounds(tf.recipe("first").build(), "l1")


def test_refusals_name_the_function_that_was_called():
    part = Attention(W_Q=[[1]], W_K=[[1]], W_V=[[1]])
    stack, layer = tf.recipe("first").build(), Layer((part,))
    network = FeedForward(W_1=[[1]], W_2=[[1]])
    calls = {
        "activation_bounds": lambda model, **more: tf.activation_bounds(model, "l1", **more),
        "perturbation_bounds": lambda model, **more: tf.perturbation_bounds(model, 1, "l1", **more),
    }
    for name, bounds in calls.items():
        for other in (network, part, layer, None, "dyck-1"):
            with pytest.raises(
                InvalidValue,
                match=rf"^{name}: .*Transformer or a LayerStack.*received {type(other).__name__}; "
                r".*size_bound, perturbation_bound and lipschitz_constant",
            ):
                bounds(other)
        with pytest.raises(InvalidValue, match=f"^{name}: a LayerStack needs size"):
            bounds(stack)
        with pytest.raises(InvalidValue, match=f"^{name}: size, a bound.*size = -1"):
            bounds(stack, size=-1)
        with pytest.raises(InvalidValue, match=f"^{name}: a Transformer must have no size"):
            bounds(tf.recipe("dyck-1").build(max_length=7), size=1)
        with pytest.raises(InvalidValue, match=f"^{name}: the position function i "):
            bounds(tf.recipe("parity").build())
    single = {
        "size_bound": lambda: size_bound(layer, "l1", F(1)),
        "lipschitz_constant": lambda: lipschitz_constant(part, "l1"),
        "perturbation_bound": lambda: perturbation_bound(part, 1, "l1"),
        "perturbation_bounds": lambda: tf.perturbation_bounds(stack, -1, "l1", size=1),
        "error_after": lambda: error_after(part, [[1]], [[1]], "l1", "x"),
    }
    for name, call in single.items():
        with pytest.raises(InvalidValue, match=f"^{name}: "):
            call()


@pytest.mark.parametrize("length", ["3", -1, 2.5, math.nan, True])
def test_a_length_that_is_none_is_refused(length):
    model = tf.recipe("dyck-1").build(max_length=7)
    with pytest.raises(InvalidValue, match="max_length must be a whole number of at least 0"):
        tf.activation_bounds(model, "linf", max_length=length)
