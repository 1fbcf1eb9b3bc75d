"""What a proof says of every number of a model is true of it: range, grid, and three error bounds.

The ideal is evaluated here by the library's exact arithmetic with hard attention, which shares no
code with the proof; what a format computes, by the reference.
"""

import itertools
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.errors import TransformistError
from transformist.programs import PROGRAMS
from transformist.verify.proof import EVALUATIONS, prove, upwards
from transformist.verify.proof.grids import SYMBOLS, best_keys
from transformist.verify.proof.ideal import Ideal
from transformist.verify.proof.rounding_errors import RoundingErrors
from transformist.verify.proof.slack import Ledger
from transformist.verify.proof.upwards import Unfollowed, up
from transformist.verify.proof.walking import Walk

SPANS = {
    "none": lambda i, n: n,
    "future": lambda i, n: i + 1,
    "strict-future": lambda i, n: i,
    "past": lambda i, n: n - i,
    "strict-past": lambda i, n: n - i - 1,
}


def hardened(model):
    layers = [
        replace(
            layer,
            heads=tuple(
                replace(h, weighting="average-hard") if h.weighting == "softmax" else h
                for h in layer.heads
            ),
        )
        for layer in model.layers
    ]
    return replace(model, layers=tuple(layers))


def walked(model, arithmetic, n, order="any"):
    walk = Walk(model, number_system(arithmetic), n, EVALUATIONS[order], Ledger())
    try:
        with np.errstate(all="ignore"):
            walk.run()
    except Unfollowed:
        pass
    return walk


def counts(model, x):
    """The numbers of which a value may be a multiple of 1/d, by name: for each row, d.

    They are the rows that each mask admits, the symbols of the input, and the keys with the largest
    score of each head, which average-hard attention gives a weight.
    """
    n = len(x) + len(model.embedding.front)
    found = {mask: [span(i, n) for i in range(n)] for mask, span in SPANS.items()}
    found |= {None: [1] * n, SYMBOLS: [len(x)] * n}
    exact = number_system("exact")
    streams = (z for _, z in hardened(model).streams([x], exact))
    for number, layer in enumerate(hardened(model).layers):
        for _, sublayer in layer.sublayers():
            z = sublayer.read(next(streams), exact)
            for k, head in enumerate(getattr(sublayer.function, "heads", ())):
                weights = exact.numbers(head.weights(z, exact))[0]
                best = [sum(each != 0 for each in row) for row in weights]
                found[best_keys(f"layer {number} head {k}")] = best
    return found


def hold_against(walk, model, arithmetic, inputs):
    """Hold every number of the stream, after every step, against what is known of it."""
    a, exact = number_system(arithmetic), number_system("exact")
    kinds = [*model.alphabet, *model.embedding.front]
    ideal = walk.ideal
    for x in inputs:
        rows = [kinds.index(s) for s in (*model.embedding.front, *x)]
        n, count = len(rows), counts(model, x)
        steps = zip(
            walk.streams,
            hardened(model).streams([x], "exact"),
            model.streams([x], arithmetic),
            strict=False,
        )
        for known, (name, wanted), (_, found) in steps:
            v = exact.numbers(wanted)[0]
            off = [
                [abs(Fraction(float(y)) - Fraction(z)) for y, z in zip(*pair, strict=True)]
                for pair in zip(a.numbers(found)[0], v, strict=True)
            ]
            for i, kind in enumerate(rows):
                for slot in range(model.width):
                    where = (name, x, i, slot)
                    value, error = Fraction(v[i][slot]), off[i][slot]
                    assert known.lo[slot, kind] <= value <= known.hi[slot, kind], where
                    assert abs(value) <= known.size[0, slot, kind], where
                    assert error <= known.error[0, slot, kind], where
                    mixed = known.absolute[slot, kind] + known.relative[slot, kind] * float(
                        abs(value)
                    )
                    assert float(error) <= mixed * (1 + 1e-12), where
                    for mask, size, bound in zip(
                        ideal.masks, known.size[1:], known.error[1:], strict=True
                    ):
                        d = SPANS[mask](i, n)
                        assert d * abs(value) <= size[slot, kind] * (1 + 1e-12), where
                        assert d * error <= bound[slot, kind], where
                    grid = ideal.grid(known.forms[slot])
                    if grid is not None:
                        d = max(count[grid[1]][i], 1)
                        assert value == 0 if not grid[0] else (value * d / grid[0]).denominator == 1


def short_and_drawn(model, n, draw, count):
    alphabet = model.alphabet
    short = [x for m in range(4) for x in itertools.product(alphabet, repeat=m)]
    short = draw.sample(short, min(len(short), count))
    long = [tuple(draw.choices(alphabet, k=m)) for m in (n // 2, n - 1, n) for _ in range(2)]
    constant = [(alphabet[0],) * n, (alphabet[-1],) * n]
    return [x for x in (*short, *long, *constant) if x or model.embedding.front]


@pytest.mark.parametrize("arithmetic", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_number_is_what_is_said_of_it(name, arithmetic):
    draw = random.Random(f"{name} {arithmetic}")
    model = tf.compile(PROGRAMS[name], max_length=12)
    walk = walked(model, arithmetic, 12)
    if arithmetic != "float16":  # in which squares of positions may overflow, which ends the walk
        steps = [bool(layer.heads) + (layer.feed_forward is not None) for layer in model.layers]
        assert len(walk.streams) == 1 + sum(steps)
    hold_against(walk, model, arithmetic, short_and_drawn(model, 12, draw, 12))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_proved(name):
    model = tf.compile(PROGRAMS[name], max_length=200)
    for order in EVALUATIONS:
        assert prove(model, number_system("float32"), 200, order).holds, order
    found = tf.certify(model, "float32", 200)
    assert found.holds and (found.grade, found.stopped, found.largest_length) == (1, "", 200)


def test_recipes_are_proved():
    models = {
        "dyck-1": tf.recipe("dyck-1").build(max_length=200),
        "induction-most-recent": tf.recipe("induction-most-recent").build(alphabet="abc"),
    }
    for name, model in models.items():
        assert prove(model, number_system("float32"), 200, "any").holds, name
        assert tf.certify(model, "float32", 200).grade == 1


def some_number(draw):
    return draw.choice(
        [0, 0, 1, -1, 2, Fraction(1, 2), Fraction(1, 3), Fraction(-2, 7), 5, 3, Fraction(9, 8)]
    )


def some_matrix(draw, rows, columns, density=0.5):
    return [
        [some_number(draw) if draw.random() < density else 0 for _ in range(columns)]
        for _ in range(rows)
    ]


def some_network(draw, d):
    hidden = draw.randint(1, 3)
    W_1, W_2 = some_matrix(draw, hidden, d), some_matrix(draw, d, hidden)
    b_1, b_2 = [some_number(draw) for _ in range(hidden)], [0] * d
    if draw.random() < 0.5:  # a pair: a step, a ramp or a copy
        sign = draw.choice([1, -1])
        W_1 += [[sign * x for x in W_1[0]]]
        b_1 += [b_1[0] - abs(some_number(draw)) if sign > 0 else -b_1[0]]
        W_2 = [[*row, -row[0]] for row in W_2]
    if draw.random() < 0.3:
        b_2 = [some_number(draw) for _ in range(d)]
    return tf.FeedForward(W_1=W_1, b_1=b_1, W_2=W_2, b_2=b_2)


def some_head(draw, d, places):
    keys, values = draw.randint(1, 2), draw.randint(1, 2)
    density = draw.choice([0, 0, 0.4])
    W_Q, W_K = some_matrix(draw, keys, d, density), some_matrix(draw, keys, d, density)
    if places and draw.random() < 0.4:
        W_Q, W_K = [[0] * d], [[0] * (d - 2) + [1, 0]]
    biases = {"b_Q": [draw.choice([0, 1, 4]) for _ in W_Q]} if draw.random() < 0.6 else {}
    if draw.random() < 0.3:
        biases["b_V"] = [some_number(draw) for _ in range(values)]
    return tf.Attention(
        W_Q=W_Q,
        W_K=W_K,
        W_V=some_matrix(draw, values, d),
        W_O=some_matrix(draw, d, values),
        weighting=draw.choice(["softmax", "softmax", "average-hard", "rightmost-hard"]),
        mask=draw.choice(list(SPANS)),
        **biases,
    )


def some_model(seed):
    draw = random.Random(f"a model {seed}")
    d, bos, places = draw.randint(3, 5), draw.random() < 0.7, draw.random() < 0.5
    stream = tf.Stream(tuple(f"s{k}" for k in range(d)))
    front = ("BOS",) if bos else ()
    symbols = ("a", "b", *front)
    vectors = some_matrix(draw, len(symbols), d, 0.7)
    names = [None] * d
    if places:
        vectors = [[*row[:-2], 0, 0] for row in vectors]
        names[-2:] = draw.choice([("i", "i^2"), ("i", "(-1)^i"), ("i", "1")])
    embedding = tf.Embedding(
        symbols=symbols,
        vectors=vectors,
        positions=tf.PositionFunctions(tuple(names)) if places else None,
        front=front,
    )
    layers = tuple(
        tf.Layer(
            tuple(some_head(draw, d, places) for _ in range(draw.randint(0, 2))),
            some_network(draw, d) if draw.random() < 0.7 else None,
        )
        for _ in range(draw.randint(1, 3))
    )
    read_out = tf.Binary(W_out=some_matrix(draw, 1, d), b_out=[some_number(draw)])
    return tf.Transformer(
        stream=stream, embedding=embedding, layers=layers, read_out=read_out, max_length=9
    )


@pytest.mark.parametrize("block", range(6))
@pytest.mark.trials(4, 50)
def test_numbers_of_drawn_models_are_what_is_said_of_them(block, trials):
    for seed in range(trials):
        model = some_model(f"{block} {seed}")
        draw = random.Random(seed)
        arithmetic = draw.choice(["float32", "bfloat16", "float16", "float64"])
        walk = walked(model, arithmetic, 9)
        try:
            hold_against(walk, model, arithmetic, short_and_drawn(model, 9, draw, 4))
        except TransformistError:
            continue  # the format overflows, or the exact arithmetic has no such number


def test_a_kernel_may_round_the_largest_score_twice():
    """2^fma(s, c, -fl(s c)) is not 1 for the largest s itself: even one key has a rounded weight.

    So the only key of BOS does not give its value bit for bit by `flash`.
    """
    f, score = np.float32, np.float32(2.0**20 + 1)
    c = f(np.log2(np.e))
    p = f(2.0 ** (float(score) * float(c) - float(f(score * c))))
    off = {v: abs(float(f(f(p * v) / p)) - float(v)) for v in (f(1 + k / 64) for k in range(64))}
    value = max(off, key=off.get)
    assert p != 1 and off[value] > 0
    first = tf.Attention(
        W_Q=[[0, 1, 0]], W_K=[[0, 1, 0]], W_V=[[1, 0, 0]], W_O=[[0], [0], [1]], mask="future"
    )
    model = tf.Transformer(
        stream=tf.Stream(("v", "key", "o")),
        embedding=tf.Embedding(
            symbols=("a", "BOS"),
            vectors=[[1, 0, 0], [float(value), 1024 + 2.0**-11, 0]],
            front=("BOS",),
        ),
        layers=(tf.Layer((first,)),),
        read_out=tf.Binary(W_out=[[0, 0, 1]], b_out=[-1]),
    )
    errors = [
        walked(model, "float32", 3, order).streams[-1].error[0, 2, 1] for order in EVALUATIONS
    ]
    assert dict(zip(EVALUATIONS, errors, strict=True))["reference"] == 0
    assert dict(zip(EVALUATIONS, errors, strict=True))["flash"] >= off[value]


def test_bounds_hold_multiples_that_float64_does_not():
    """0.1 as float64 has 53 bits, so 3 times it lies between two float64s."""
    g = Fraction(0.1)
    for k in range(3, 400, 2):
        ideal = Ideal(1, None, 400, [])
        number = ideal.add("i", k, k, (Fraction(1), None))
        ((lo,),), ((hi,),), _ = ideal.measured([{number: g}])
        assert lo <= k * g <= hi


def test_a_proof_knows_of_no_other_law():
    """What finds certificates and the compiler could be wrong together with it."""
    import pathlib

    root = pathlib.Path(tf.__file__).parent / "verify" / "proof"
    allowed = {"arithmetic", "errors", "host_evaluation", "model", "position_features"}
    allowed |= {"verify.proof"}
    for path in root.glob("*.py"):
        for line in path.read_text().splitlines():
            if line.startswith("from transformist."):
                module = line.split()[1].removeprefix("transformist.")
                assert any(module == a or module.startswith(f"{a}.") for a in allowed), (path, line)


@pytest.mark.parametrize("arithmetic", ["float64", "float32"])
@pytest.mark.parametrize("name", ["dyck-1", "induction-most-recent", "histogram", "reverse"])
def test_the_structured_engine_is_within_what_is_proved_of_it(name, arithmetic):
    from transformist.engines.structured import evaluate

    n = 40
    model = tf.compile(PROGRAMS[name], max_length=n)
    walk = walked(model, arithmetic, n, "structured")
    kinds, last = [*model.alphabet, *model.embedding.front], walk.streams[-1]
    draw, exact = random.Random(name), number_system("exact")
    for length in (0, 1, 2, 9, n - 1, n):
        x = tuple(draw.choices(model.alphabet, k=length))
        *_, (_, wanted) = hardened(model).streams([x], "exact")
        found = evaluate(model, x, arithmetic).vectors.astype(float)
        pairs = zip((*model.embedding.front, *x), found, exact.numbers(wanted)[0], strict=True)
        for symbol, computed, ideal in pairs:
            kind = kinds.index(symbol)
            for slot, (y, z) in enumerate(zip(computed, ideal, strict=True)):
                assert abs(Fraction(float(y)) - Fraction(z)) <= last.error[0, slot, kind], (x, slot)


def test_an_error_relative_to_the_largest_value_is_not_relative_to_a_mean():
    """The values of a mean are 2²⁰ and 1: the mean may be a small share of the largest value."""
    stream = tf.Stream(("x", "mean"))
    head = tf.Attention(
        W_Q=[[0, 0]], W_K=[[0, 0]], W_V=[[1, 0]], W_O=[[0], [1]], mask="future", weighting="softmax"
    )
    model = tf.Transformer(
        stream=stream,
        embedding=tf.Embedding.of(stream, {"a": {"x": 2**20}, "b": {"x": 1}}),
        layers=(tf.Layer(heads=(head,)),),
        read_out=tf.Binary(W_out=[[0, 1]], b_out=[-1]),
        max_length=100,
    )
    known = walked(model, "float64", 100, "structured").streams[-1]
    of_largest = 2.0**20 * (5000 * 2.0**-53 + 2.0**-40)
    assert (known.relative[1] < 1e-13).all() and (known.absolute[1] >= of_largest).all()
    assert (known.error[0, 1] >= of_largest).all()


def test_what_is_not_a_number_is_no_bound():
    """0 · ∞ and 0/0 stand where a bound is missing; as 0 they would say "exact"."""
    assert up(np.array([0.0, 1.0, np.nan, np.inf])).tolist() == [0.0, up(1.0), np.inf, np.inf]


def test_bounds_that_are_mostly_0_are_raised_as_one_by_one():
    drawn = np.random.default_rng(1)
    x = np.zeros((2, 100, 200))
    at = drawn.integers(0, x.size, 900)
    x.reshape(-1)[at] = drawn.choice([1.0, 3e-308, 2.0**-600, -1.0, np.nan, np.inf, 1e300], 900)
    assert x.size > upwards.FEW
    for given in (x, x.swapaxes(1, 2)):
        wanted = np.array([float(up(value)) for value in given.ravel().tolist()])
        assert np.array_equal(up(given).ravel(), wanted)
        raised = upwards.at_least_tiniest(up(given)).ravel()
        assert np.array_equal(raised, np.where(wanted > 0, np.maximum(wanted, upwards.TINIEST), 0))


@pytest.mark.parametrize("order", ["any", "flash"])
@pytest.mark.parametrize("name", ["dyck-k-d", "induction-most-frequent", "majority", "palindrome"])
def test_rows_that_a_head_does_not_write_may_be_left_out(name, order, monkeypatch):
    """All rows of an output matrix together, and those alone that are not 0, give one proof."""
    model = tf.compile(PROGRAMS[name], max_length=12)

    def margins():
        return [
            [*place, *(float(x) for x in both)]
            for a in ("float32", "bfloat16")
            for *place, error, allowed in prove(model, number_system(a), 12, order).margins
            for both in [(error, allowed)]
        ]

    few = margins()

    def every_row(self, W, b, z, where):
        return self.affine(W, b, z, where).values

    monkeypatch.setattr(RoundingErrors, "written", every_row)
    for own, other in zip(few, margins(), strict=True):
        assert own[:2] == other[:2] and own[2:] == pytest.approx(other[2:], rel=2.0**-30)
