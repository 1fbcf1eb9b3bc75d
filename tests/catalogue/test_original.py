"""The encoder of 2017 against einsum over the corrected tensor equations, in numpy's float64.

The tolerance is 2⁻⁴⁰ for every number, relative to 1: numbers here are below 4, both sides round in
float64, and norms with ε near 2⁻¹⁷ can multiply an error by some hundred each. The two were at most
5·10⁻¹⁵ apart.
"""

import functools
import itertools
import json
import math
import sys
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist import bounds
from transformist.arithmetic import INTERVAL, SYSTEMS
from transformist.catalogue.original import weights
from transformist.cli import main
from transformist.errors import InvalidValue, UndefinedValue
from transformist.model import (
    ACTIVATIONS,
    GATES,
    PositionTable,
    RealVector,
    Sinusoids,
    rationals,
)
from transformist.theory.transformer_error import MOST_ENTRIES
from transformist.verify import check_recipe, first_failure, string_claims

TOLERANCE = 2.0**-40
RECIPE = tf.recipe("original-transformer")
CONFIGS = [
    {},
    {"mask": "future", "seed": 5},
    {"heads": 8, "d_model": 32, "d_ff": 7, "layers": 1, "vocabulary": 5},
    {"heads": 3, "d_model": 15, "layers": 3, "mask": "future", "norm_epsilon": "1/1000"},
    {"d_model": 2, "mask": "strict-future", "norm_epsilon": 1},
    {"mask": "past", "layers": 4},
]
MASKED = {
    "none": lambda i, j: i < 0,
    "future": lambda i, j: j > i,
    "strict-future": lambda i, j: j >= i,
    "past": lambda i, j: j < i,
}


def tensors(settings):
    return weights(
        *(settings[name] for name in ["vocabulary", "d_model", "heads", "d_ff", "layers", "seed"])
    )


def waves(D, ell):
    delta, beta = np.arange(D)[:, None], np.arange(ell)[None, :]
    odd = delta % 2 == 1
    phase = beta / 10 ** (4 * (delta - odd) / D)
    return np.where(odd, np.cos(phase), np.sin(phase))


def softmax(B, axis):
    e = np.exp(B)
    total = e.sum(axis=axis, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


def normalized(e, gain, bias, epsilon):
    centred = e - e.mean(axis=0)
    deviation = np.sqrt((centred**2).mean(axis=0) + float(epsilon))
    return gain[:, None] * centred / deviation + bias[:, None]


def by_einsum(x, settings, over="keys", mixed="keys", changes=None):
    """The vectors, a row for each position; softmax over, and V summed over, keys or queries."""
    drawn = tensors(settings)
    e = drawn["E"][:, list(x)] + waves(settings["d_model"], len(x))
    i, j = np.arange(len(x))[:, None], np.arange(len(x))[None, :]
    for layer in drawn["layers"]:
        layer = {**layer, **(changes or {})}
        Q, K, V = (np.einsum("ndD,Da->nda", layer[w], e) for w in ("W_q", "W_k", "W_v"))
        B = np.einsum("nda,ndb->nab", Q, K) / np.sqrt(Q.shape[1])
        B = np.where(MASKED[settings["mask"]](i, j), -np.inf, B)
        P = softmax(B, axis={"keys": 2, "queries": 1}[over])
        A = np.einsum({"keys": "ndb,nab->nda", "queries": "nda,nab->ndb"}[mixed], V, P)
        e = e + layer["W_o"] @ A.reshape(e.shape)
        e = normalized(e, layer["gamma_a"], layer["beta_a"], settings["norm_epsilon"])
        hidden = np.maximum(layer["W_1"] @ e + layer["b_1"][:, None], 0)
        e = e + layer["W_2"] @ hidden + layer["b_2"][:, None]
        e = normalized(e, layer["gamma_f"], layer["beta_f"], settings["norm_epsilon"])
    return e.T


def inputs(settings):
    rng = np.random.default_rng(settings["seed"])
    return [tuple(rng.integers(0, settings["vocabulary"], n).tolist()) for n in (1, 2, 3, 9, 40)]


def distance(model, x, expected):
    return np.abs(np.array(model(x)) - expected).max()


@pytest.mark.parametrize("given", CONFIGS, ids=str)
def test_it_is_what_einsum_gives(given):
    settings = RECIPE.settings(given)
    model = RECIPE.build(**given)
    for x in inputs(settings):
        assert distance(model, x, by_einsum(x, settings)) <= TOLERANCE


@pytest.mark.parametrize("given", CONFIGS[:3], ids=str)
def test_the_printed_equations_give_something_else(given):
    """(12) sums over the position that asks, (13) takes α from the wrong side of softmax."""
    settings = RECIPE.settings({**given, "mask": "none"})
    model = RECIPE.build(**{**given, "mask": "none"})
    for x in inputs(settings)[1:]:
        for over, mixed in itertools.product(("keys", "queries"), repeat=2):
            far = distance(model, x, by_einsum(x, settings, over, mixed))
            assert (far <= TOLERANCE) if (over, mixed) == ("keys", "keys") else (far > 1e-3)
    alone = inputs(settings)[0]  # of one position, keys and queries are the same
    assert distance(model, alone, by_einsum(alone, settings, "queries", "queries")) <= TOLERANCE


def test_every_tensor_matters():
    settings = RECIPE.settings({"layers": 1})
    model = RECIPE.build(layers=1)
    (layer,) = tensors(settings)["layers"]
    x = (3, 1, 4, 1, 5)
    for name, tensor in layer.items():
        assert distance(model, x, by_einsum(x, settings, changes={name: 2 * tensor})) > 1e-3, name


def test_weights_are_few_bits_and_no_two_draws_alike():
    seen = []
    for seed in (0, 1):
        drawn = weights(16, 16, 2, 32, 2, seed)
        flat = [drawn["E"], *(tensor for layer in drawn["layers"] for tensor in layer.values())]
        for tensor in flat:
            assert ((tensor * 256) % 1 == 0).all() and np.abs(tensor).max() <= 1
            for name in ("float32", "float16", "bfloat16"):
                system = SYSTEMS[name]
                assert (system.numbers(system.array(tensor)) == tensor).all()
        seen += [tensor.tobytes() for tensor in flat]
    assert len(set(seen)) == len(seen)


def test_weights_are_drawn_evenly_from_their_range():
    E = weights(4096, 16, 2, 32, 1, 0)["E"] * 256
    assert E.min() == -256 and E.max() == 256
    counts = np.bincount((E + 256).astype(int).ravel(), minlength=513)
    assert counts.min() > 60 and counts.max() < 200  # 128 each, give or take 11
    (layer,) = weights(2, 16, 2, 32, 1, 0)["layers"]
    assert 100 < np.abs(layer["W_q"]).max() * 256 <= 110  # ⌊256 √(6/32)⌋
    assert layer["gamma_a"].min() >= 0.5 and layer["gamma_a"].max() <= 1


def test_the_same_seed_gives_the_same_bytes_on_every_machine():
    drawn = weights(16, 16, 2, 32, 2, 0)
    assert (drawn["E"][0, :4] * 256).tolist() == FIRST_WORDS
    assert (drawn["layers"][1]["W_2"][0, :4] * 256).tolist() == FIRST_OF_W_2


FIRST_WORDS = [147, 83, 156, 174]
FIRST_OF_W_2 = [55, 85, 81, -73]


def test_the_sizes_of_the_paper_build():
    model = RECIPE.build(d_model=512, heads=8, d_ff=2048, layers=1, vocabulary=50)
    settings = RECIPE.settings(
        {"d_model": 512, "heads": 8, "d_ff": 2048, "layers": 1, "vocabulary": 50}
    )
    x = (7, 49, 0)
    assert distance(model, x, by_einsum(x, settings)) <= TOLERANCE


def nudged(part, name):
    """The part with one weight 2⁻⁴⁰ larger."""
    kept = {each.name: getattr(part, each.name) for each in fields(part) if each.init}
    weight = rationals(kept[name])
    weight[tuple(size // 2 for size in weight.shape)] += Fraction(1, 2**40)
    return type(part)(**{**kept, name: weight})


def wrong_encoders(model):
    """Each array of weights moved a little, and what else makes the encoder another one."""
    last = model.layers[-1]

    def ending(**changes):
        return replace(model, layers=(*model.layers[:-1], replace(last, **changes)))

    for name in ("W_Q", "W_K", "W_V", "W_O"):
        yield name, ending(heads=(last.heads[0], nudged(last.heads[1], name)))
    for name in ("W_1", "b_1", "W_2", "b_2"):
        yield name, ending(feed_forward=nudged(last.feed_forward, name))
    first, second = last.post_norms
    for name in ("gain", "bias", "epsilon"):
        yield f"{name} of attention", ending(post_norms=(nudged(first, name), second))
        yield f"{name} of the network", ending(post_norms=(first, nudged(second, name)))
    yield "words", replace(model, embedding=nudged(model.embedding, "vectors"))
    table = PositionTable(vectors=np.roll(Sinusoids(model.width)(25), -1, axis=0))
    yield "positions from 1", replace(model, embedding=replace(model.embedding, positions=table))
    yield "pre-norm", ending(post_norms=(None, None), pre_norms=last.post_norms)
    hard = [type(h)(W_Q=h.W_Q, W_K=h.W_K, W_V=h.W_V, W_O=h.W_O, mask="past") for h in last.heads]
    yield "mask", ending(heads=tuple(hard))


@pytest.mark.slow
def test_no_wrong_encoder_meets_the_claim(monkeypatch):
    monkeypatch.setattr(string_claims, "STRINGS", 2**9)
    monkeypatch.setattr(string_claims, "LONGEST_IN", {"interval": 4})
    monkeypatch.setattr(string_claims, "DRAWN", 2)
    claim = replace(RECIPE.claim, variants=())
    recipe = replace(RECIPE, claim=claim)
    assert check_recipe(recipe, 1).held
    for what, wrong in wrong_encoders(RECIPE.build()):
        built = functools.wraps(RECIPE.construct)(lambda wrong=wrong, **_: wrong)
        verdict = check_recipe(replace(recipe, construct=built), 1)
        assert not verdict.held, what
        assert verdict.counterexample.arithmetic == "interval"


def test_a_reference_that_differs_a_little_is_refuted(monkeypatch):
    monkeypatch.setattr(string_claims, "LONGEST_IN", {"interval": 3})
    monkeypatch.setattr(string_claims, "DRAWN", 0)

    def other(x, **settings):
        return [
            [y + Fraction(1, 2**80) for y in row] for row in RECIPE.claim.reference(x, **settings)
        ]

    other = functools.wraps(RECIPE.claim.reference)(other)
    claim = replace(RECIPE.claim, variants=(), reference=other)
    assert not check_recipe(replace(RECIPE, claim=claim), 1).held
    loose = replace(
        claim, error=lambda *, n, arithmetic: Fraction(n, 2**80 if arithmetic is INTERVAL else 1)
    )
    assert check_recipe(replace(RECIPE, claim=loose), 1).held


def growing(error):
    return lambda *, n: n * error


def test_a_claim_on_numbers_is_searched_in_the_formats_it_names():
    """Were another error claimed in float16: one that is kept, and one that is not."""
    for error, length in ((Fraction(1, 8), None), (Fraction(1, 2**20), 1)):
        claim = replace(RECIPE.claim, error=growing(error))
        found = first_failure(replace(RECIPE, claim=claim), "float16", longest=2)
        assert found.length == length and found.searched >= 1
    with pytest.raises(InvalidValue, match="claims nothing: bounds.transformer_error is 5 to 6"):
        first_failure(RECIPE, "float8_e4m3")


def test_formats_are_claimed_where_the_bound_says_something():
    formats = {"interval", "float64", "float32"}
    for layers, more in ((1, {"float16", "bfloat16"}), (3, {"float16"}), (4, set())):
        assert set(RECIPE.claim.safe_lengths(RECIPE.settings({"layers": layers}))) == formats | more


def test_a_variant_that_a_format_does_not_hold_is_a_counterexample(monkeypatch):
    monkeypatch.setattr(string_claims, "LONGEST_IN", {"interval": 2})
    monkeypatch.setattr(string_claims, "DRAWN", 2)
    sizes = {"norm_epsilon": 10**9, "layers": 1, "d_model": 2, "d_ff": 2, "vocabulary": 2}
    claim = replace(RECIPE.claim, variants=(sizes,), safe_length=only_float16)
    verdict = check_recipe(replace(RECIPE, claim=claim), 1)
    assert not verdict.held and "refused: 1000000000" in str(verdict.counterexample)


def only_float16(*, arithmetic):
    return None if arithmetic.name == "float16" else 0


def test_a_norm_of_a_constant_vector_is_refused_on_both_sides():
    """A single coordinate, less its mean, is 0."""
    settings = {"d_model": 1, "heads": 1, "norm_epsilon": 0, "d_ff": 1, "layers": 1}
    assert RECIPE.claim.reference((0,), **SMALLEST, norm_epsilon=Fraction(1)) == [
        [Fraction(*(weights(2, 1, 1, 1, 1, 0)["layers"][0]["beta_f"][0]).as_integer_ratio())]
    ]
    with pytest.raises(UndefinedValue, match="give a larger norm_epsilon"):
        RECIPE.claim.reference((0,), **SMALLEST, norm_epsilon=Fraction(0))
    with pytest.raises(UndefinedValue, match="coordinates are not all equal"):
        RECIPE.construct(**{**RECIPE.parameters, **settings})((0,))


SMALLEST = {
    "d_model": 1,
    "heads": 1,
    "d_ff": 1,
    "layers": 1,
    "vocabulary": 2,
    "mask": "none",
    "seed": 0,
}


def test_heads_divide_the_width():
    with pytest.raises(InvalidValue, match="d_model = 16, heads = 3; give a d_model that is a mul"):
        RECIPE.build(heads=3)


def test_balls_hold_what_floats_approach():
    model = RECIPE.build()
    (balls,) = model.values([(2, 7, 1)], "interval")
    exact = INTERVAL.numbers(balls).astype(float)
    assert INTERVAL.radius(balls).max() < 2.0**-90
    for name, close in (("float64", 1e-14), ("float32", 1e-5), ("float16", 0.05)):
        (y,) = model.values([(2, 7, 1)], name)
        assert 0 < np.abs(SYSTEMS[name].numbers(y) - exact).max() < close


@pytest.mark.parametrize("given", CONFIGS, ids=str)
@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16"])
def test_no_number_is_further_off_than_the_error_bound(name, given):
    settings, system = RECIPE.settings(given), SYSTEMS[name]
    model = RECIPE.build(**given)
    for x in inputs(settings)[:4]:
        bound = bounds.transformer_error(model, x, name)
        (y,) = model.values([x], system)
        off = np.abs(rationals(system.numbers(y)) - rationals(real_vectors(x, settings)))
        assert bound.shape == off.shape and (off <= bound).all()
        most = np.abs(system.numbers(y)).max()
        limit = {"float64": 1e-9, "float32": 1e-4, "float16": most / 4}.get(name, math.inf)
        assert bound.max() < (most / 4 if settings["layers"] == 1 else limit)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n"),
    [
        *itertools.product(["float64", "float32", "float16", "bfloat16"], [36, 100]),
        ("float16", 250),
    ],
)
def test_long_inputs_are_within_the_error_bound(name, n):
    settings, system = RECIPE.settings({"layers": 1 if name == "bfloat16" else 2}), SYSTEMS[name]
    model = RECIPE.build(layers=settings["layers"])
    for x in inputs_of_length(n, settings):
        bound = bounds.transformer_error(model, x, name)
        (y,) = model.values([x], system)
        off = np.abs(rationals(system.numbers(y)) - rationals(real_vectors(x, settings)))
        assert (off <= bound).all()
        assert bound.max() < {"float64": 1e-9, "float32": 1e-4}.get(name, 0.25)


def inputs_of_length(n, settings):
    """One word, then another; and drawn words."""
    domain = RECIPE.claim.domain(vocabulary=settings["vocabulary"])
    return domain.hard(n)[-2:]


def real_vectors(x, settings):
    """The equations of the claim, to 2⁻²⁰⁰."""
    return RECIPE.claim.reference(x, **settings)


def test_the_error_bound_is_0_where_nothing_rounds_and_refused_for_hard_heads():
    model = RECIPE.build()
    assert bounds.transformer_error(model, (1, 2), "interval").tolist() == [[0] * 16] * 2
    hard = tf.recipe("dyck-1").build(max_length=4, weighting="average-hard")
    with pytest.raises(InvalidValue, match="every head must have softmax"):
        bounds.transformer_error(hard, "()", "float32")


def drawn_transformer(rng):
    """A small transformer: norms before, after or nowhere, biases, W_O or none, heads."""
    d, inner = 3, int(rng.integers(1, 4))

    def draw(*shape):
        return rng.integers(-256, 257, shape) / 256

    def norm():
        return tf.LayerNorm(gain=draw(d), bias=draw(d), epsilon=Fraction(1, 64))

    def head():
        wide = rng.random() < 0.5
        value = {"W_V": draw(inner, d), "W_O": draw(d, inner)} if wide else {"W_V": draw(d, d)}
        return tf.Attention(
            W_Q=3 * draw(inner, d),
            W_K=3 * draw(inner, d),
            b_Q=draw(inner),
            b_K=draw(inner),
            b_V=draw(len(value["W_V"])),
            b_O=draw(d),
            mask=str(rng.choice(["none", "future", "strict-past"])),
            **value,
        )

    def norms():
        return tuple(norm() if rng.random() < 0.5 else None for _ in range(2))

    activation = str(rng.choice([*ACTIVATIONS]))
    rows = 2 * inner if activation in GATES else inner
    layers = tuple(
        tf.Layer(
            tuple(head() for _ in range(rng.integers(1, 3))),
            tf.FeedForward(
                W_1=draw(rows, d),
                b_1=draw(rows),
                W_2=draw(d, inner),
                b_2=draw(d),
                activation=activation,
            ),
            pre_norms=norms(),
            post_norms=norms(),
        )
        for _ in range(rng.integers(1, 3))
    )
    return tf.Transformer(
        stream=tf.Stream(("x", "y", "z")),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=draw(2, d), positions=Sinusoids(d)),
        layers=layers,
        read_out=RealVector(W_out=draw(2, d), b_out=draw(2), at="every"),
        final_norm=norm() if rng.random() < 0.5 else None,
    )


@pytest.mark.parametrize("most", [MOST_ENTRIES, 100, 0])
@pytest.mark.parametrize("seed", range(12))
def test_the_error_bound_holds_for_drawn_transformers(seed, most, monkeypatch):
    """Also with few generators, and where each position has its own."""
    module = sys.modules["transformist.theory.transformer_error"]
    monkeypatch.setattr(module, "MOST_ENTRIES", most)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        model = drawn_transformer(rng)
        x = "".join(rng.choice(["a", "b"], rng.integers(1, 6)))
        (balls,) = model.values([x], INTERVAL)
        real = rationals(INTERVAL.numbers(balls))
        for name in ("float64", "float32", "float16", "bfloat16", "float8_e5m2"):
            (y,) = model.values([x], name)
            off = np.abs(rationals(SYSTEMS[name].numbers(y)) - real)
            bound = bounds.transformer_error(model, x, name)
            assert (off <= bound + 2.0**-80).all()
            assert name != "float64" or bound.max() < 1e-7
            assert name != "float16" or most == 0 or bound.max() < 1


def test_the_roundings_of_a_part_count():
    """1 + 1/3 less 85/64: the sum rounds in bfloat16, and what is read of it does not."""
    layer = tf.Layer(feed_forward=tf.FeedForward(W_1=[[1, 0]], W_2=[["1/3"], [0]]))
    model = tf.Transformer(
        stream=tf.Stream(("x", "y")),
        embedding=tf.Embedding(symbols=("a",), vectors=[[1, "-85/64"]]),
        layers=(layer,),
        read_out=RealVector(W_out=[[1, 1]], at="every"),
    )
    (y,) = model.values(["a"], "bfloat16")
    off = abs(Fraction(SYSTEMS["bfloat16"].numbers(y).item()) - (Fraction(4, 3) - Fraction(85, 64)))
    (bound,) = bounds.transformer_error(model, "a", "bfloat16").ravel()
    assert 2.0**-9 < off <= bound < 8 * off


class TestCommands:
    def run(self, capsys, *words):
        code = main([*words])
        out, err = capsys.readouterr()
        return code, out, err

    def test_run_prints_vectors_and_how_far_they_are_off(self, capsys):
        code, out, _ = self.run(capsys, "run", RECIPE.name, "[2, 7, 1]", "--set", "d_model=4")
        assert code == 0 and len(out.splitlines()) >= 5
        assert "e-16 of the real value, by interval arithmetic" in " ".join(out.split())

    def test_the_distance_is_a_bound_and_near(self, capsys):
        settings = RECIPE.settings({})
        for name in ("float64", "float16"):
            words = ("run", RECIPE.name, "[2, 7, 1]", "--arithmetic", name, "--json")
            got = json.loads(self.run(capsys, *words)[1])
            off = np.abs(np.array(got["answer"]) - by_einsum((2, 7, 1), settings)).max()
            (bound,) = got["error_bound"]
            assert got["within_claim"] is True
            assert off - TOLERANCE <= bound <= off + TOLERANCE

    def test_interval_is_within_the_claim(self, capsys):
        words = ("run", RECIPE.name, "[2, 7, 1]", "--arithmetic", "interval")
        got = json.loads(self.run(capsys, *words, "--json")[1])
        assert got["within_claim"] is True and got["answer"][0][0].startswith("[")
        assert "hold the real values" in self.run(capsys, *words)[1]

    def test_a_longer_input_than_balls_reach_says_so(self, capsys):
        text = json.dumps([1] * 900)
        words = ("run", RECIPE.name, text, "--set", "d_model=2", "--set", "layers=1")
        code, out, _ = self.run(capsys, *words)
        assert code == 0 and "at most bounds.transformer_error of the input" in " ".join(
            out.split()
        )
        words = *words, "--set", "layers=2", "--arithmetic", "bfloat16"
        code, out, _ = self.run(capsys, *words)
        assert code == 0 and "no error bound: the input is too long" in " ".join(out.split())

    def test_deep_stacks_take_balls_of_more_bits(self, capsys):
        words = ("run", RECIPE.name, "[1, 2]", "--set", "layers=12", "--set", "d_model=4")
        code, _, err = self.run(capsys, *words, "--arithmetic", "interval:64")
        assert code == 2 and "evaluate with more bits" in err and err.count("\n") == 1
        code, out, _ = self.run(capsys, *words, "--arithmetic", "interval:512")
        assert code == 0 and "of interval hold the" in out
        code, out, _ = self.run(capsys, *words)
        assert code == 0 and "of the real value, by interval arithmetic" in out

    def test_show_names_the_paper(self, capsys):
        _, out, _ = self.run(capsys, "show", RECIPE.name)
        shown = " ".join(out.split())
        assert "section 3.1 to 3.5 of Attention Is All You Need" in shown
        assert "first failure found none to" in shown
        assert "not in bfloat16: " in shown
        got = json.loads(self.run(capsys, "show", RECIPE.name, "--json")[1])
        assert got["sources"][0].startswith("Attention Is All You Need") and got["document"]
        assert got["safe_lengths"] == dict.fromkeys(("interval", "float64", "float32", "float16"))

    def test_there_is_no_search_where_nothing_is_claimed(self, capsys):
        code, _, err = self.run(capsys, "precision", RECIPE.name, "--arithmetic", "float8_e4m3")
        assert code == 2 and "prints an error bound for an input" in " ".join(err.split())


def test_drawn_weights_cannot_be_changed():
    drawn = weights(2, 2, 1, 1, 1, 0)
    with pytest.raises(ValueError, match="read-only"):
        drawn["E"][:] = 0
    with pytest.raises(ValueError, match="read-only"):
        drawn["layers"][0]["W_q"][0] = 0
