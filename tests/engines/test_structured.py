"""The structured engine answers as the reference, and on long inputs as plain algorithms do."""

import itertools
import platform
import random
import re
import subprocess
import sys
import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import EXACT, number_system
from transformist.engines.structured import answers, estimates, evaluate, evaluation
from transformist.engines.structured import stream_vectors as row_kinds
from transformist.engines.structured.heads import choose_method, every_pair, method
from transformist.engines.structured.heads.head import HeadInput, HeadMaps
from transformist.engines.structured.residual import ResidualStream
from transformist.engines.structured.row_by_row import Many
from transformist.errors import TakesLong
from transformist.model import Heads, Mask
from transformist.programs import PROGRAMS

LETTERS = "abcdefghijklmnopqrstuvwxyz"
RECIPES = [recipe.name for recipe in tf.recipes() if isinstance(recipe.build(), tf.Transformer)]
WEIGHTINGS = ("softmax", "average-hard", "rightmost-hard")


def built(name, weighting, N):
    """A model, or None where the program cannot be compiled to the weighting."""
    if weighting is None:
        recipe = tf.recipe(name)
        return recipe.build(max_length=N) if "max_length" in recipe.parameters else recipe.build()
    try:
        return tf.compile(PROGRAMS[name], max_length=N, weighting=weighting, arithmetic="float64")
    except tf.TransformistError as refusal:
        assert weighting == "rightmost-hard", refusal  # which has no means
        return None


CASES = [(name, None) for name in RECIPES]
CASES += [(name, weighting) for name in PROGRAMS for weighting in WEIGHTINGS]


def text(model, n, seed=0):
    x = random.Random(f"{n} {seed}").choices(model.alphabet, k=n)
    return "".join(x) if all(isinstance(s, str) and len(s) == 1 for s in model.alphabet) else x


def agree(model, x, arithmetic="float64"):
    trace = model.run(x, arithmetic)
    got = evaluate(model, x, arithmetic)
    if isinstance(model.read_out, tf.RealVector):
        near = 1e-9 if arithmetic == "float64" else 1e-5
        np.testing.assert_allclose(got.answer, trace.answer, rtol=0, atol=near)
    else:
        assert got.answer == trace.answer
    if arithmetic == "float64":
        expected = trace.streams[-1][1]
        size = abs(expected).max(axis=0, initial=0)
        noise = (
            (8 + len(x)) * 2**-53 * abs(expected).max(initial=0)
        )  # all that some slots hold there
        assert (abs(got.vectors - expected) <= 1e-9 * size + noise).all()


@pytest.mark.parametrize("few", [2, 512])
@pytest.mark.parametrize(("name", "weighting"), CASES)
def test_it_answers_as_the_reference(name, weighting, few, monkeypatch):
    monkeypatch.setattr(method, "FEW", few)
    monkeypatch.setattr(row_kinds, "BLOCK", 8)
    model = built(name, weighting, 64)
    if model is not None:
        for n in (0, 1, 2, 7, 50):
            agree(model, text(model, n))


def one_symbol(model, symbol, n):
    """The symbol n times, as an input of the model has it."""
    return "".join([symbol] * n) if isinstance(text(model, 0), str) else [symbol] * n


@pytest.mark.parametrize("few", [2, 512])
@pytest.mark.parametrize(("name", "weighting"), CASES)
def test_it_answers_as_the_reference_where_all_symbols_are_one(name, weighting, few, monkeypatch):
    monkeypatch.setattr(method, "FEW", few)
    model = built(name, weighting, 64)
    if model is not None:
        for symbol, n in itertools.product(model.alphabet[:3], (1, 30)):
            agree(model, one_symbol(model, symbol, n))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "weighting"), CASES)
def test_it_answers_as_the_reference_where_2000_symbols_are_one(name, weighting):
    model = built(name, weighting, 2048)
    if model is not None:
        for symbol in model.alphabet[:2]:
            agree(model, one_symbol(model, symbol, 2000))


def hard_heads(model, x):
    """The heads under hard attention, and the vectors that they read in the reference."""
    sublayers = [each for layer in model.layers for _, each in layer.sublayers()]
    for (_, z), sublayer in zip(model.run(x).streams, sublayers, strict=False):
        read = z if sublayer.pre_norm is None else sublayer.pre_norm(z)
        if isinstance(sublayer.function, Heads):
            for head in sublayer.function.heads:
                if head.weighting != "softmax":
                    yield head, read


def exact_rows(head, z, a):
    """At which rows no dot product with a key rounds."""
    w = head.rounded(a)
    q, k = a.affine(z, w.W_Q, w.b_Q), a.affine(z, w.W_K, w.b_K)
    dots = sum(q[:, None, m] * k[None, :, m] for m in range(q.shape[1]))
    off = EXACT.subtract(EXACT.array(dots), head.scores(z, "exact"))
    return (off.numerators == 0).all(axis=1)


@pytest.mark.parametrize("length", [40, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "weighting"), CASES)
def test_hard_heads_attend_where_exact_arithmetic_does(name, weighting, monkeypatch, length):
    """Wherever the scores of a row are exact; values are made a number for each position."""
    model, a = built(name, weighting, 512), number_system("float64")
    found = [] if model is None else list(hard_heads(model, text(model, length)))
    tried = 0
    for head, z in found:
        n, width = z.shape
        place = np.random.default_rng(0).permutation(n)[:, None]
        marked = replace(
            head,
            **{side: np.pad(getattr(head, side), ((0, 0), (0, 1))) for side in ("W_Q", "W_K")},
            W_V=np.eye(1, width + 1, width),
            W_O=np.eye(width + 1, 1),
            b_V=None,
            b_O=None,
        )
        rows = exact_rows(head, z, a)
        tried += rows.sum()
        shares = np.array(head.weights(z, "exact").tolist(), dtype=float).reshape(n, n)
        for few in (2, 512):
            monkeypatch.setattr(method, "FEW", few)
            vectors = Many(np.concatenate([z, place], axis=1))
            stream = ResidualStream.of(n, [(range(width + 1), vectors)])
            given = HeadInput(HeadMaps.of(marked, a), stream)
            got = choose_method(given).mixed(given).whole()
            expected = (shares @ place)[rows]
            np.testing.assert_allclose(got[rows], expected, rtol=1e-12, err_msg=f"FEW = {few}")
    assert tried >= 30 * bool(found)


@pytest.mark.slow
@pytest.mark.parametrize("n", [700, 2000])
@pytest.mark.parametrize(("name", "weighting"), CASES)
def test_it_answers_as_the_reference_up_to_2000(name, weighting, n):
    model = built(name, weighting, 2048)
    if model is not None:
        agree(model, text(model, n, seed=1))


@pytest.mark.parametrize(("name", "weighting"), CASES)
def test_it_answers_as_the_reference_in_float32(name, weighting):
    model = built(name, weighting, 64)
    if model is not None:
        for n in (0, 1, 5, 33, 64):
            agree(model, text(model, n), "float32")


def test_positions_are_those_of_the_reference_bit_for_bit():
    names = ("1", "i", "i^2", "i^3", "i/n", "-i/n", "(-1)^i", "1/i", "-1/i")
    model = tf.Transformer(
        stream=tf.Stream(names),
        embedding=tf.Embedding(
            symbols=("a", "b"),
            vectors=[[0] * 9, [1 / 3] * 9],
            positions=tf.PositionFunctions(names),
        ),
        layers=(),
        read_out=tf.RealVector(W_out=np.eye(9), at="every"),
    )
    for arithmetic in ("float64", "float32"):
        x = text(model, 5000)
        expected = model.run(x, arithmetic).streams[-1][1]
        assert np.array_equal(evaluate(model, x, arithmetic).vectors, expected)


@pytest.mark.parametrize("mask", Mask)
def test_spans_are_the_masks(mask):
    i = np.arange(6)
    first, end = mask.span(i, 6)
    seen = (first[:, None] <= i) & (i < end[:, None])
    assert np.array_equal(seen, mask.admissible(i[:, None], i[None, :]))


# Long runs, against algorithms of a few lines


def balanced(x):
    depth = 0
    for symbol in x:
        depth += 1 if symbol == "(" else -1
        if depth < 0:
            return False
    return depth == 0


@pytest.mark.slow
@pytest.mark.parametrize("source", ["recipe", "program"])
def test_a_million_brackets(source):
    n = 10**6
    model = (
        tf.recipe("dyck-1").build(max_length=n)
        if source == "recipe"
        else tf.compile(PROGRAMS["dyck-1"], max_length=n, arithmetic="float64")
    )
    deep, flat = "(" * (n // 2) + ")" * (n // 2), "()" * (n // 2)
    dip = flat[: n // 2] + ")(" + flat[n // 2 + 2 :]
    open_end = flat[:-2] + "(("
    for x, expected in ((deep, True), (flat, True), (dip, False), (open_end, False)):
        assert balanced(x) is expected
        assert tf.run(model, x, engine="structured") is expected


def following(x):
    """What came after the last earlier occurrence of each symbol; None where there is none."""
    last, answers = {}, []
    for i, symbol in enumerate(x):
        if i:
            last[x[i - 1]] = symbol
        answers.append(last.get(symbol))
    return answers


@pytest.mark.slow
@pytest.mark.parametrize("weighting", [None, "softmax", "average-hard"])
def test_induction_over_26_symbols(weighting):
    n = 10**6
    x = "".join(random.Random(5).choices(LETTERS, k=n))
    if weighting is None:
        model = tf.recipe("induction-most-recent").build(alphabet=LETTERS)
    else:

        @tf.program(alphabet=LETTERS)
        def induction(x):
            previous = x.predecessor(default="none")
            return x.select(previous, mask="future").rightmost(x, default=x).next_token()

        model = tf.compile(induction, max_length=n, weighting=weighting, arithmetic="float64")
    answer = tf.run(model, x, engine="structured")
    expected = following(x)
    known = [i for i in range(n) if expected[i] is not None]
    assert len(known) > n - 200
    assert [answer[i] for i in known] == [expected[i] for i in known]


@pytest.mark.slow
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_a_million_symbols_backwards(weighting):
    n = 10**6
    model = tf.compile(PROGRAMS["reverse"], max_length=n, weighting=weighting, arithmetic="float64")
    x = text(model, n)
    assert tf.run(model, x, engine="structured") == x[::-1]


def well_nested(x, depth):
    stack = []
    for symbol in x:
        if symbol in "([":
            stack.append(")" if symbol == "(" else "]")
        elif not stack or stack.pop() != symbol:
            return False
        if len(stack) > depth:
            return False
    return not stack


def nested(n, depth, rnd):
    """A well nested string of n brackets of two kinds, n even, at most so deep."""
    stack, x = [], []
    while len(x) < n:
        must_close = len(stack) == n - len(x)
        if stack and (must_close or len(stack) == depth or rnd.random() < 0.5):
            x.append(stack.pop())
        else:
            symbol = rnd.choice("([")
            stack.append(")" if symbol == "(" else "]")
            x.append(symbol)
    return "".join(x)


@pytest.mark.slow
def test_a_million_brackets_of_two_kinds():
    n, rnd = 10**6, random.Random(2)
    model = tf.recipe("dyck-k-d").build(kinds=2, depth=8)
    good = nested(n, 8, rnd)
    at = good.rindex("[", 0, n // 2)
    for x in (good, good[:at] + "(" + good[at + 1 :], nested(n - 18, 8, rnd) + "(" * 9 + ")" * 9):
        assert tf.run(model, x, engine="structured") is well_nested(x, 8)


# What is refused, and which engine is taken


def test_another_arithmetic_is_refused():
    with pytest.raises(tf.TransformistError, match="in float64 or float32; received bfloat16"):
        tf.run(tf.recipe("dyck-1").build(), "()", "bfloat16", engine="structured")


def test_what_is_too_long_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(evaluation, "codes", lambda *_: pytest.fail("work was done"))
    with pytest.raises(tf.TransformistError, match="at most N = 4; received length 5"):
        evaluate(tf.recipe("dyck-1").build(max_length=4), "((())")


def test_many_inputs_of_different_lengths():
    model = tf.recipe("dyck-1").build(max_length=60)
    inputs = [text(model, n) for n in (0, 1, 30, 30, 60, 2)] + ["(())", "()" * 30]
    assert answers(model, inputs) == model.answers(inputs) == [balanced(x) for x in inputs]


def test_none_of_many_inputs_is_evaluated_where_one_is_too_long(monkeypatch):
    monkeypatch.setattr(evaluation, "codes", lambda *_: pytest.fail("work was done"))
    with pytest.raises(tf.TransformistError, match="at most N = 4; received length 5"):
        answers(tf.recipe("dyck-1").build(max_length=4), ["()", "((())"])


def test_what_does_not_fit_in_memory_is_refused_with_the_estimate(monkeypatch):
    monkeypatch.setattr(evaluation, "codes", lambda *_: pytest.fail("work was done"))
    monkeypatch.setattr(estimates, "free_memory", lambda: 10**8)
    model = tf.recipe("dyck-1").build(max_length=10**6)
    with pytest.raises(tf.TransformistError, match="which takes .* GiB; give at most") as refusal:
        evaluate(model, "(" * 10**6)
    longest = int(re.search(r"at most (\d+) symbols", str(refusal.value))[1])
    estimates.require_memory(model, longest - 2, number_system("float64"))
    with pytest.raises(tf.TransformistError):
        estimates.require_memory(model, longest + 2, number_system("float64"))


def wide(read_out, d=300, **given):
    """A model of 300 coordinates, one of which is the place."""
    names = (*(f"x{i}" for i in range(d - 1)), "i")
    return tf.Transformer(
        stream=tf.Stream(names),
        embedding=tf.Embedding(
            symbols=("a", "b"),
            vectors=np.eye(2, d),
            positions=tf.PositionFunctions((None,) * (d - 1) + ("i",)),
        ),
        read_out=read_out(np.ones((d, d))),
        **given,
    )


def labelled(W):
    return tf.MultiClass(W_out=W, labels=tuple(map(str, range(len(W)))), at="every")


HULLS = tf.Attention(
    W_Q=np.eye(2, 300, 298), b_Q=[0, 1], W_K=np.eye(2, 300, 298), W_V=np.eye(300), mask="future",
    weighting="average-hard",
)  # fmt: skip


def moving(W_out, **given):
    """A stream that positions move everywhere, of which a network writes one coordinate."""
    d = len(W_out[0])
    one = tf.FeedForward(W_1=np.eye(1, d), b_1=[0], W_2=np.eye(d, 1), b_2=np.zeros(d))
    return tf.Transformer(
        stream=tf.Stream(tuple(f"x{i}" for i in range(d))),
        embedding=tf.Embedding(
            symbols=("a", "b"), vectors=np.eye(2, d), positions=tf.PositionFunctions(("i",) * d)
        ),
        layers=(tf.Layer((), one, **given),),
        read_out=tf.Binary(W_out=W_out),
    )


HEAVY = {
    "all of a stream moves": moving(np.ones((1, 200))),
    "all of a stream moves, and is normalized": moving(
        np.ones((1, 200)), post_norms=(None, tf.LayerNorm(gain=np.ones(200)))
    ),
    "numbers at every position": wide(lambda W: tf.RealVector(W_out=W, at="every"), layers=()),
    "labels at every position": wide(labelled, layers=()),
    "a final norm": wide(
        lambda W: tf.Binary(W_out=W[:1]), layers=(), final_norm=tf.LayerNorm(gain=np.ones(300))
    ),
    "many hulls": wide(lambda W: tf.Binary(W_out=W[:1]), layers=(tf.Layer((HULLS,) * 5),)),
    "letters": tf.recipe("induction-most-recent").build(alphabet=LETTERS),
}


QUICK = ("a final norm", "many hulls", "letters")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in HEAVY],
)
def test_no_more_memory_is_taken_than_is_estimated(name):
    model, n = HEAVY[name], 60_000 if name.startswith("all of a stream") else 6000
    x = text(model, n)
    tracemalloc.start()
    evaluate(model, x[:10])
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    evaluate(model, x)
    taken = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(estimates, "free_memory", lambda: taken)
        with pytest.raises(tf.TransformistError, match="in the memory that is free"):
            estimates.require_memory(model, n, number_system("float64"))


FAULTS = """
import resource, transformist as tf
model, x = tf.recipe("dyck-k-d").build(kinds=2, depth=4), "(())" * 4096
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    tf.run(model, x, engine="structured")
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps by itself")
def test_memory_is_kept_from_one_input_to_the_next():
    """A page that is taken anew is a fault; without what is kept there are thousands."""
    found = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True)
    assert int(found.stdout) < 200, found.stderr


@pytest.mark.parametrize("places", [None, "i"])
def test_labels_that_are_tuples(places):
    """Few distinct vectors are read out, or one for each position."""
    model = tf.Transformer(
        stream=tf.Stream(("x", "y")),
        embedding=tf.Embedding(
            symbols=("a", "b"),
            vectors=[[2, 1], [0, 1]],
            positions=tf.PositionFunctions((places, None)),
        ),
        layers=(),
        read_out=tf.MultiClass(W_out=np.eye(2), labels=((1, 2), (3, 4)), at="every"),
    )
    assert evaluate(model, "abba").answer == model("abba")


def test_heads_that_write_nothing_are_evaluated():
    silent = tf.Attention(W_Q=[[0]], W_K=[[0]], W_V=[[1]], W_O=[[0]], mask="future")
    model = tf.Transformer(
        stream=tf.Stream(("s",)),
        embedding=tf.Embedding(symbols=("a",), vectors=[[1]]),
        layers=(tf.Layer((silent, silent)), tf.Layer((silent,))),
        read_out=tf.RealVector(W_out=[[1]]),
    )
    assert evaluate(model, "aa").answer == model("aa") == [1]


def test_an_unknown_symbol_is_named_with_its_place():
    with pytest.raises(tf.TransformistError, match="received 'x' at position 3"):
        evaluate(tf.recipe("dyck-1").build(), "((x")


@pytest.mark.parametrize("weighting", ["softmax", "average-hard"])
def test_scores_that_overflow_are_refused(weighting):
    big = tf.Attention(
        W_Q=[[1e200]], W_K=[[1e200]], W_V=[[1]], weighting=weighting
    )  # products of 10⁴⁰⁰
    model = tf.Transformer(
        stream=tf.Stream(("x",)),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=[[1], [2]]),
        layers=(tf.Layer((big,)),),
        read_out=tf.Binary(W_out=[[1]]),
    )
    for refused in (model, lambda x: evaluate(model, x)):
        with pytest.raises(tf.TransformistError, match="float64; received one that overflows"):
            refused("ab")


def test_the_empty_input_of_a_model_without_bos_is_refused():
    model = tf.Transformer(
        stream=tf.Stream(("x",)),
        embedding=tf.Embedding(symbols=("a",), vectors=[[1]]),
        layers=(),
        read_out=tf.Binary(W_out=[[1]]),
    )
    with pytest.raises(tf.TransformistError, match="must have at least one symbol"):
        evaluate(model, "")


@pytest.mark.parametrize("positions", ["i/n", "-i/n"])
@pytest.mark.parametrize("specials", [{"back": ("EOS",)}, {"front": ("CLS", "EOS")}])
def test_fractions_of_no_length_are_refused_as_the_reference_does(positions, specials):
    stream = tf.Stream(("place",))
    words = {"a": {}, "EOS": {}, "CLS": {}}
    model = tf.Transformer(
        stream=stream,
        embedding=tf.Embedding.of(stream, words, {"place": positions}, **specials),
        layers=(),
        read_out=tf.RealVector(W_out=[[1]]),
    )
    for engine in ("reference", "structured"):
        with pytest.raises(
            tf.TransformistError, match="needs a divisor other than 0; received i ="
        ):
            tf.run(model, "", engine=engine)
    assert tf.run(model, "aa", engine="structured") == model("aa")


def test_what_overflows_at_a_row_that_is_not_read_is_refused():
    """The reference answers: what it has there reaches no score and no answer."""
    model = tf.Transformer(
        stream=tf.Stream(("x",)),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=[[1e200], [1]]),
        layers=(tf.Layer(feed_forward=tf.FeedForward(W_1=[[1e200]], W_2=[[1]])),),
        read_out=tf.Binary(W_out=[[1]]),
    )
    assert model("ab") is True
    with pytest.raises(tf.TransformistError, match="below .* in float64; received one that overfl"):
        evaluate(model, "ab")


def test_what_takes_every_pair_of_a_long_input_says_so_before(monkeypatch):
    model = tf.recipe("original-transformer").build()
    monkeypatch.setattr(every_pair, "SLOW_LENGTH", 30)
    monkeypatch.setattr(method, "FEW", 2)
    with pytest.warns(TakesLong, match=r"30 × 30 pairs of positions, as neither queries nor keys"):
        evaluate(model, text(model, 30))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(model, text(model, 29))
        evaluate(tf.recipe("dyck-1").build(), "()" * 30)


@pytest.mark.parametrize("engine", ["dense", [], None])
def test_an_unknown_engine_is_refused(engine):
    with pytest.raises(tf.TransformistError) as refusal:
        tf.run(tf.recipe("dyck-1").build(), "()", engine=engine)
    assert f"no engine has this name; received {engine!r}; choose from" in str(refusal.value)


def test_a_symbol_that_is_none_is_refused():
    for engine in ("reference", "structured"):
        with pytest.raises(tf.TransformistError, match=r"received \['\('\] at position 2"):
            tf.run(tf.recipe("dyck-1").build(), ["(", ["("]], engine=engine)


@pytest.mark.parametrize("engine", ["reference", "structured", "auto"])
def test_engines_agree(engine):
    model = tf.recipe("dyck-1").build(max_length=2000)
    for x in ("", "(()", "()" * 400):
        assert tf.run(model, x, engine=engine) is balanced(x)


def test_an_arithmetic_that_only_the_reference_has_is_its_own():
    model = tf.recipe("dyck-1").build(max_length=2000)
    assert tf.run(model, "()" * 300, "bfloat16") == model("()" * 300, "bfloat16")


@pytest.mark.slow
def test_numba_is_loaded_when_the_engine_is_used_and_not_before():
    code = (
        "import sys, transformist as tf; model = tf.recipe('dyck-1').build(); tf.run(model, '()');"
        "before = 'numba' in sys.modules; tf.run(model, '()', engine='structured');"
        "print(before, 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_a_plan_says_what_was_read_off():
    model = built("reverse", "average-hard", 1024)
    assert [(each.method, each.why) for each in tf.plan(model).heads] == [
        ("by query", "the weights make scores 0"),
        ("hull", "keys are points of the plane"),
    ]
    shown = str(tf.plan(model, "abc"))
    assert shown.startswith("on the string given, n = 3:\n")
    assert "layer 1 head 0 (average-hard, mask none): by query, n · queries: 4 distinct" in shown


@pytest.mark.parametrize("n", [12_000, pytest.param(22_000, marks=pytest.mark.slow)])
def test_a_plan_for_a_length_and_a_format(n, monkeypatch):
    """Of squares that are rounded some leave their hull."""
    monkeypatch.setattr(every_pair, "SLOW_LENGTH", min(n, every_pair.SLOW_LENGTH))
    model = built("reverse", "average-hard", n)
    exact = [tf.plan(model, length=each) for each in (1000, n)]
    with pytest.warns(TakesLong):
        rounded = tf.plan(model, arithmetic="float32", length=n)
    found = [*exact, rounded]
    assert [each.heads[1].method for each in found] == ["hull", "hull", "dense"]
    assert [each.length for each in found] == [1000, n, n]
    assert "W_Q" not in repr(found)


@pytest.mark.parametrize(("x", "length"), [("()", 2), (None, -1), (None, "5"), (None, 2.5)])
def test_a_plan_is_for_one_string(x, length):
    with pytest.raises(tf.TransformistError, match="only a drawn string has one"):
        tf.plan(tf.recipe("dyck-1").build(), x, length=length)


@pytest.mark.parametrize(
    ("name", "methods"),
    [
        ("original-transformer", {"dense"}),
        ("dyck-k-d", {"by query"}),
        ("parity", {"by query", "hull"}),
    ],
)
def test_plans_of_the_catalogue(name, methods):
    assert {each.method for each in tf.plan(tf.recipe(name).build()).heads} == methods


@pytest.mark.parametrize(
    ("arithmetic", "how"),
    [
        ("float32", '(engine="structured")'),
        ("exact", '(engine="structured", in float64 or float32)'),
    ],
)
def test_too_long_an_input_for_the_reference_is_pointed_here(arithmetic, how):
    model = tf.recipe("dyck-1").build(max_length=10**5)
    with pytest.raises(tf.TransformistError) as error:
        tf.run(model, "()" * 50_000, arithmetic)
    assert str(error.value).endswith(f"or evaluate it by the structured engine {how}")
