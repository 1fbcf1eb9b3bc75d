"""Weights with a fault: the certificate refuses them, or what it says of them is true."""

import contextlib
import math
import random
from dataclasses import fields, replace
from fractions import Fraction

import bounded
import numpy as np
import pytest
from references import ALPHABETS, every_string_of, given

import transformist as tf
from laws import by_laws, require_refused_by_laws
from transformist.programs import PROGRAMS
from transformist.verify.certificate import Uncertifiable, grade_of

N = 4


def built(name):
    return tf.compile(PROGRAMS[name], max_length=N, arithmetic="exact")


def scaled(array, factors):
    """An array times a number, or numbers."""
    return (np.array([[Fraction(x) for x in row] for row in array]) * factors).tolist()


def parts(model):
    """Each head, network and the read-out, with what puts another in its place."""
    for k, layer in enumerate(model.layers):
        for h, head in enumerate(layer.heads):

            def with_head(new, k=k, h=h, layer=layer):
                heads = (*layer.heads[:h], new, *layer.heads[h + 1 :])
                return with_layer(model, k, replace(layer, heads=heads))

            yield head, with_head
        if layer.feed_forward is not None:

            def with_network(new, k=k, layer=layer):
                return with_layer(model, k, replace(layer, feed_forward=new))

            yield layer.feed_forward, with_network
    yield model.read_out, lambda new: replace(model, read_out=new)


def with_layer(model, k, layer):
    return replace(model, layers=(*model.layers[:k], layer, *model.layers[k + 1 :]))


def one_weight_changed(model, draw):
    """Ten models, in each one weight times another number."""
    every = [
        (part, put, each.name, place)
        for part, put in parts(model)
        for each in fields(part)
        if isinstance(getattr(part, each.name), np.ndarray)
        for place in zip(*np.nonzero(getattr(part, each.name)), strict=True)
    ]
    for part, put, name, place in draw.sample(every, min(16, len(every)))[:10]:
        array = np.array(getattr(part, name), dtype=object)
        factor = draw.choice([-1, 0, 2, Fraction(1, 2), Fraction(3, 4), Fraction(1023, 1024)])
        array[place] = Fraction(array[place]) * factor
        yield put(replace(part, **{name: array.tolist()}))


def zones_halved(model, draw):
    """For each network, its steps begin and end at half of what they did."""
    for part, put in parts(model):
        if not isinstance(part, tf.FeedForward):
            continue
        b_1, factors = [Fraction(b) for b in part.b_1], [1] * len(part.b_1)
        for j, k in steps(part):
            middle = (b_1[j] + b_1[k]) / 2
            height = abs(b_1[j] - b_1[k])
            zero = middle + height  # of x: ReLU(x − ε/4) − ReLU(x − 3ε/4), with ε = 2 · height
            b_1[j], b_1[k] = (2 * zero - (zero - b) for b in (b_1[j], b_1[k]))
            factors[j] = factors[k] = 2
        if max(factors) == 2:
            rows = [[factor] for factor in factors]
            yield put(replace(part, W_1=scaled(part.W_1, rows), b_1=b_1))


def steps(network):
    """Pairs of hidden units that read the same, and of which one takes the other away."""
    units = range(len(network.b_1))
    for j in units:
        for k in units[j + 1 :]:
            same = np.array_equal(network.W_1[j], network.W_1[k])
            if same and np.array_equal(network.W_2[:, j], -network.W_2[:, k]):
                yield j, k


def heads_blunted(model, draw):
    """For each head with scores, a quarter of its 1/τ."""
    for part, put in parts(model):
        if isinstance(part, tf.Attention) and (part.W_K.any() and part.W_Q.any() | part.b_Q.any()):
            b_Q = [Fraction(b) / 4 for b in part.b_Q]
            yield put(replace(part, W_Q=scaled(part.W_Q, Fraction(1, 4)), b_Q=b_Q))


FAULTS = (one_weight_changed, zones_halved, heads_blunted)
FORMATS = ("bfloat16", "float16", "float32")
QUICK = ("majority", "parity")

CASES = [
    pytest.param(name, fault, marks=() if name in QUICK else pytest.mark.slow)
    for name in PROGRAMS
    for fault in FAULTS
]


def held_by_laws(model):
    """Certificates that hold, by format; none of weights of which too little is known."""
    found = {}
    for each in FORMATS:
        with contextlib.suppress(Uncertifiable):
            found[each] = by_laws(model, each, N)
    return {each: certificate for each, certificate in found.items() if certificate.holds}


@pytest.mark.parametrize(("name", "fault"), CASES)
def test_what_is_certified_of_faulty_weights_is_true(name, fault):
    """Their decisions are those that they come to exactly; by the laws, numbers within bounds."""
    alphabet = ALPHABETS[name]
    batches = [[given(name, x) for x in every_string_of(alphabet, n)] for n in range(N + 1)]
    for model in fault(built(name), random.Random(name)):
        ideal = bounded.hard(model)
        proved = {each for each in FORMATS if grade_of(model, each, N)[0]}
        right = {len(xs[0]): ideal.answers(xs, "exact") for xs in batches if proved}
        for each in proved:
            for xs in batches:
                assert model.answers(xs, each) == right[len(xs[0])], each
        held = held_by_laws(model)
        assert not held.keys() - proved
        if held:  # every decision is the right one, as they are proved
            bounded.require(model, N, batches, held, None, exactly="exact")


@pytest.mark.parametrize("name", PROGRAMS)
def test_narrower_zones_and_blunter_heads_leave_no_more_of_a_margin(name):
    model = built(name)
    before = by_laws(model, "float32", N).margin
    for fault in (zones_halved, heads_blunted):
        for other in fault(model, random.Random(name)):
            assert margin(other) <= before


def margin(model):
    """The least margin by the laws in float32; none of a model in which too little is known."""
    try:
        return by_laws(model, "float32", N).margin
    except Uncertifiable:
        return -math.inf


@pytest.mark.parametrize("name", ["reverse", "sort", "contains-abc", "induction-most-recent"])
def test_a_head_too_blunt_is_refused(name):
    """By the laws: what it fetches is further off than with the right 1/τ.

    Where that is still proved to change no answer, it changes none on any input.
    """
    model = built(name)
    xs = [given(name, x) for x in every_string_of(ALPHABETS[name], N)[::7]]
    for other in heads_blunted(model, random.Random(name)):
        assert margin(other) <= 0
        require_refused_by_laws(other, "float32", N)
        assert furthest(other, xs) > 2 * furthest(model, xs)


def furthest(model, xs):
    """How far any number is from its ideal, in float32."""
    ideal = bounded.streams(bounded.hard(model), xs, "exact")
    pairs = zip(bounded.streams(model, xs, "float32"), ideal, strict=True)
    return max(abs(z - exact.astype(float)).max() for z, exact in pairs)


def test_the_faults_are_planted():
    """Some in each kind of weight; and a halved zone decides as before, in exact arithmetic."""
    planted = {
        fault: sum(1 for name in PROGRAMS for _ in fault(built(name), random.Random(0)))
        for fault in FAULTS
    }
    assert planted[zones_halved] >= 20 and planted[heads_blunted] >= 8
    model = built("dyck-1")
    xs = [x for n in range(N + 1) for x in every_string_of("()", n)]
    expected = bounded.hard(model).answers(xs, "exact")
    for other in zones_halved(model, random.Random(0)):
        assert any(np.any(a.W_1 != b.W_1) for a, b in networks(model, other))
        assert bounded.hard(other).answers(xs, "exact") == expected


def networks(model, other):
    pairs = zip(model.layers, other.layers, strict=True)
    return [(a.feed_forward, b.feed_forward) for a, b in pairs if a.feed_forward is not None]
