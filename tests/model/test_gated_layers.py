"""Transformers whose layers have gated units, against their formula in balls of Arb.

The formula is written out here, number by number, and uses nothing of the model but its weights.
"""

import dataclasses
from fractions import Fraction

import flint
import numpy as np
import pytest

import transformist as tf
from transformist import assembly, bounds
from transformist.arithmetic import INTERVAL, SYSTEMS
from transformist.errors import InvalidValue, ShapeMismatch, TransformistError
from transformist.figures.circuit_blocks import blocks_of, describe
from transformist.figures.explorer_page.model_data import model_data
from transformist.model import GATES, RealVector, rationals
from transformist.programs import PROGRAMS
from transformist.verify.certificate.identity import digest
from transformist.verify.certificate.refusals import Unproved

SLOTS = ("p", "q", "r", "s")
FORMATS = [name for name in SYSTEMS if name.startswith(("float", "bfloat"))]
EXACT_GATES = ("bilinear", "reglu")


def numbers(rng, *shape):
    """Rationals, of which not all are multiples of a power of two."""
    return rng.integers(-6, 7, shape).astype(object) * Fraction(1, 6)


def drawn(seed, activation, layers=2):
    """Heads that take means, under several masks, and gated networks; no norms."""
    rng = np.random.default_rng(seed)

    def layer():
        mask = str(rng.choice(["none", "future", "strict-future", "past"]))
        head = tf.Attention(
            W_Q=[[0] * 4], W_K=[[0] * 4], W_V=numbers(rng, 2, 4), b_V=numbers(rng, 2),
            W_O=numbers(rng, 4, 2), b_O=numbers(rng, 4), mask=mask,
        )  # fmt: skip
        return tf.Layer((head,), network(rng, activation))

    return tf.Transformer(
        stream=tf.Stream(SLOTS),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=numbers(rng, 2, 4)),
        layers=tuple(layer() for _ in range(layers)),
        read_out=RealVector(W_out=numbers(rng, 2, 4), b_out=numbers(rng, 2), at="every"),
    )


def network(rng, activation, hidden=3):
    return tf.FeedForward(
        W_1=numbers(rng, 2 * hidden, 4), b_1=numbers(rng, 2 * hidden), W_2=numbers(rng, 4, hidden),
        b_2=numbers(rng, 4), activation=activation,
    )  # fmt: skip


def arb(x):
    return flint.arb(flint.fmpq(Fraction(x).numerator, Fraction(x).denominator))


OPENED = {
    "glu": lambda g: 1 / (1 + (-g).exp()),
    "bilinear": lambda g: g,
    "reglu": lambda g: g.max(arb(0)),
    "geglu": lambda g: g * (1 + (g / arb(2).sqrt()).erf()) / 2,
    "swiglu": lambda g: g / (1 + (-g).exp()),
}


def affine(W, b, z):
    return [
        sum((arb(w) * v for w, v in zip(row, z, strict=True)), arb(c))
        for row, c in zip(rationals(W).tolist(), rationals(b).tolist(), strict=True)
    ]


def gated(f, z):
    """W₂ (v ∘ act(g)) + b₂, v and g the first and the last rows of W₁ z + b₁."""
    rows, half = affine(f.W_1, f.b_1, z), len(f.W_1) // 2
    h = [v * OPENED[f.activation](g) for v, g in zip(rows[:half], rows[half:], strict=True)]
    return affine(f.W_2, f.b_2, h)


ADMITTED = {
    "none": lambda i, j: True,
    "future": lambda i, j: j <= i,
    "strict-future": lambda i, j: j < i,
    "past": lambda i, j: j >= i,
}


def formula(model, x):
    """The numbers of every position, as balls."""
    words = dict(
        zip(model.embedding.symbols, rationals(model.embedding.vectors).tolist(), strict=True)
    )
    z = [[arb(v) for v in words[each]] for each in x]
    for layer in model.layers:
        (head,) = layer.heads
        values = [affine(head.W_V, head.b_V, row) for row in z]
        after = []
        for i, row in enumerate(z):
            seen = [v for j, v in enumerate(values) if ADMITTED[head.mask](i, j)]
            mean = [sum(column, arb(0)) / max(len(seen), 1) for column in zip(*seen, strict=True)]
            mean = mean or [arb(0)] * 2
            moved = affine(head.W_O, head.b_O, mean)
            after.append([one + other for one, other in zip(row, moved, strict=True)])
        z = [
            [one + other for one, other in zip(row, gated(layer.feed_forward, row), strict=True)]
            for row in after
        ]
    return [affine(model.read_out.W_out, model.read_out.b_out, row) for row in z]


def in_rationals(ball):
    mantissa, exponent = ball.mid().man_exp()
    return int(mantissa) * Fraction(2) ** int(exponent)


def expected(model, x):
    """The middles of the balls, which are narrower than 2⁻³⁰⁰."""
    with flint.ctx.workprec(512):
        balls = formula(model, x)
        assert all(ball.rad() < flint.arb(2) ** -300 for row in balls for ball in row)
        return np.array([[in_rationals(ball) for ball in row] for row in balls], dtype=object)


@pytest.mark.parametrize("activation", GATES)
@pytest.mark.parametrize("seed", range(4))
def test_every_arithmetic_is_as_near_the_formula_as_its_bound(activation, seed):
    model = drawn(seed, activation)
    for x in ("a", "ab", "babba"):
        real = expected(model, x)
        (y,) = model.values([x], INTERVAL)
        off = np.abs(rationals(INTERVAL.numbers(y)) - real)
        assert (off <= rationals(INTERVAL.radius(y)) + Fraction(1, 2**250)).all()
        for name in FORMATS:
            try:
                (y,) = model.values([x], name)
            except TransformistError:
                continue
            got, bound = SYSTEMS[name].numbers(y), bounds.transformer_error(model, x, name)
            if np.isfinite(got).all():
                assert (np.abs(rationals(got) - real) <= bound + 2.0**-120).all()
            size = float(max(abs(real).max(), 1))
            assert bound.max() < size * {"float64": 1e-10, "float32": 1e-3}.get(name, np.inf)
        if activation in EXACT_GATES:
            (y,) = model.values([x], "exact")
            assert np.abs(rationals(SYSTEMS["exact"].numbers(y)) - real).max() < 2.0**-290


@pytest.mark.parametrize("activation", GATES)
def test_engines_files_and_tables_know_gated_units(activation, tmp_path):
    model = drawn(1, activation)
    masks = {layer.heads[0].mask for layer in model.layers}
    tf.save(model, tmp_path / "model.safetensors")
    again = tf.load(tmp_path / "model.safetensors")
    assert again == model and again.layers[0].feed_forward.activation == activation
    for x in ("a", "abba", "ab" * 20):
        reference = np.array(model(x))
        assert np.array_equal(again(x), reference)
        near = pytest.approx(reference, rel=1e-12, abs=1e-12)
        assert np.array(tf.run(model, x, engine="structured")) == near
        if masks <= {"future", "strict-future"}:
            assert np.array(tf.decoder(model).take_all(x)[-1]) == near
    text = str(model.weights_table())
    assert f"layer 0 feed-forward: {activation}" in text
    assert "value 2" in text and "gate 2" in text and "hidden 2" in text


@pytest.mark.parametrize("activation", GATES)
@pytest.mark.parametrize("seed", [5, 8])
def test_decoders_know_gated_units(activation, seed):
    model = drawn(seed, activation)
    layers = [
        dataclasses.replace(each, heads=(dataclasses.replace(each.heads[0], mask="future"),))
        for each in model.layers
    ]
    model = dataclasses.replace(model, layers=tuple(layers))
    x = "abbab" * 4
    found = tf.decoder(model).take_all(x)
    assert np.array(found[-1]) == pytest.approx(np.array(model(x))[-1], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("activation", GATES)
def test_certificates_refuse_gated_units_by_name(activation):
    model = tf.compile(PROGRAMS["dyck-1"], max_length=8)
    certificate = tf.certify(model)
    network = next(each.feed_forward for each in model.layers if each.feed_forward is not None)
    rows = np.concatenate([network.W_1, network.W_1])
    changed = dataclasses.replace(
        network, W_1=rows, b_1=np.concatenate([network.b_1] * 2), activation=activation
    )
    layers = tuple(
        dataclasses.replace(each, feed_forward=changed) if each.feed_forward is network else each
        for each in model.layers
    )
    other = dataclasses.replace(model, layers=layers)
    for order in ("any", "reference", "structured", "flash"):
        with pytest.raises(TransformistError, match=f"layer 0.*{activation}.*write it"):
            tf.certify(other, order=order)
    with pytest.raises(Unproved):
        tf.check_certificate(other, certificate)
    forged = dataclasses.replace(certificate, weights=digest(other), model=repr(other))
    with pytest.raises(Unproved):
        tf.check_certificate(other, forged)
    assert tf.grade_of(other)[0] == 0


def test_pages_refuse_gated_units_by_name():
    with pytest.raises(InvalidValue, match="explorer.*received swiglu"):
        model_data(drawn(0, "swiglu"))


@pytest.mark.parametrize("activation", GATES)
def test_an_ablated_unit_is_0(activation):
    model = drawn(2, activation)
    changed = tf.ablate(model, unit=(1, 2))
    network = model.layers[1].feed_forward
    W_2 = network.W_2.copy()
    W_2[:, 2] = 0
    layers = (
        model.layers[0],
        dataclasses.replace(model.layers[1], feed_forward=dataclasses.replace(network, W_2=W_2)),
    )
    assert changed("abba") == dataclasses.replace(model, layers=layers)("abba")
    with pytest.raises(InvalidValue):
        tf.ablate(model, unit=(1, 3))
    means = tf.ablate(model, unit=(0, 0), by="mean", inputs=["ab"])
    assert np.isfinite(np.array(means("ab"))).all() and means("ab") != model("ab")


@pytest.mark.parametrize("activation", GATES)
def test_models_of_gated_units_are_composed(activation):
    rng = np.random.default_rng(4)
    one, other, x = network(rng, activation), network(rng, activation, hidden=2), [1, 2, -1, 3]
    together = assembly.beside(one, other)
    assert together(x) == pytest.approx(one(x) + other(x), rel=1e-12)
    assert together.hidden == 5 and together.rows_of(4) == (4, 9)
    A = numbers(rng, 4, 2)
    assert assembly.precompose(one, A, [1, 0, 0, 0])([2, 5]) == pytest.approx(
        one(np.asarray(A, float) @ [2, 5] + [1, 0, 0, 0]), rel=1e-12
    )
    first, second = drawn(1, activation), drawn(3, activation, layers=1)
    both = assembly.parallel(first, second, RealVector(W_out=np.eye(8), at="every"))
    streams = [dict(each.run("abab").streams) for each in (first, second)]
    wanted = np.hstack([[*each.values()][-1] for each in streams])
    assert np.array(both("abab")) == pytest.approx(wanted, rel=1e-12)
    flagged = assembly.with_flags(first, {"flag": {2: 1}}, at=0)
    assert flagged("abab") == first("abab")
    with pytest.raises(ShapeMismatch, match="one activation"):
        assembly.beside(one, dataclasses.replace(other, W_1=other.W_1, activation="relu",
                                                 W_2=np.zeros((4, 4))))  # fmt: skip


def multiplying(vector, W_out):
    """x y to the slot z, by a bilinear unit."""
    return tf.Transformer(
        stream=tf.Stream(("x", "y", "z")),
        embedding=tf.Embedding(symbols=("a",), vectors=[vector]),
        layers=(
            tf.Layer(
                feed_forward=tf.FeedForward(
                    W_1=[[1, 0, 0], [0, 1, 0]], W_2=[[0], [0], [1]], activation="bilinear"
                )
            ),
        ),
        read_out=tf.Binary(W_out=[W_out]),
    )


def test_a_product_that_overflows_is_diagnosed():
    """300 · 300 is beyond float16, though no row of W₁ is."""
    found = tf.diagnose(multiplying([300, 300, 0], [400, 0, -1]), "a", arithmetic="float16")
    assert found.signature.name == "saturation or overflow"
    assert (found.signature.of, found.signature.value) == ("hidden unit 0 of layer 0", 90000)


def test_a_product_that_rounds_is_diagnosed():
    """129 · 3 = 387 is 388 in bfloat16, and 388 − 388 = 0 is not below 0."""
    model = multiplying([129, 3, -388], [0, 0, -1])
    found = tf.diagnose(model, "a", arithmetic="bfloat16")
    assert found.signature.of == "hidden unit 0 of layer 0"
    assert (found.signature.value, found.signature.spacing) == (387, 2)


def test_units_that_ablation_names_are_those_of_a_diagnosis():
    """The second of two units overflows; its rows of W₁ are 1 and 3."""
    network = tf.FeedForward(
        W_1=[[0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 1, 0]], W_2=[[0, 0], [0, 0], [1, 1]],
        activation="bilinear",
    )  # fmt: skip
    model = multiplying([300, 300, 0], [400, 0, -1])
    model = dataclasses.replace(model, layers=(tf.Layer(feed_forward=network),))
    found = tf.diagnose(model, "a", arithmetic="float16")
    assert found.signature.of == "hidden unit 1 of layer 0"
    steep = dataclasses.replace(network, W_1=[[0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 300, 0]])
    model = dataclasses.replace(model, layers=(tf.Layer(feed_forward=steep),))
    found = tf.diagnose(model, "a", arithmetic="float16")
    assert (found.signature.of, found.signature.value) == ("hidden unit 1 of layer 0", 90000)


def test_circuits_show_what_both_factors_read():
    text = describe(blocks_of(multiplying([1, 2, 0], [0, 0, 1])))
    assert "unit 0 reads x, y and writes z" in text
