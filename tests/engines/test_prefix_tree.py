"""The tree of prefixes beside the reference: the same answers on every string, bit for bit."""

import itertools

import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.domains import Strings
from transformist.engines.prefix_tree import NotShared, branches, shares_prefixes
from transformist.model import Attention, Embedding, Layer, RealVector, Stream, Transformer
from transformist.programs import PROGRAMS

ARITHMETICS = ("float64", "float32", "bfloat16", "float8_e4m3", "exact", "interval", "saturating")


@tf.program(alphabet=[(0, 1), (1, 0), (1, 1)])
def pairs(x):
    ones = (x == (1, 1)).count("future")
    return tf.outputs(most=(ones > 1).accept(empty=False), here=ones.tag())


def over(value, query, key, has_bos=True, **head):
    """A model with a head over the numbers of BOS, `a` and `b`; i is added to the values."""
    stream = Stream(("value", "query", "key", "found"))
    words = {
        symbol: {"value": v, "query": q, "key": k}
        for symbol, v, q, k in zip(("BOS", "a", "b"), value, query, key, strict=True)
        if has_bos or symbol != "BOS"
    }
    attention = Attention(
        W_Q=[[0, 1, 0, 0]],
        W_K=[[0, 0, 1, 0]],
        W_V=[[1, 0, 0, 0]],
        W_O=[[0], [0], [0], [1]],
        mask="future",
        **head,
    )
    return Transformer(
        stream=stream,
        embedding=Embedding.of(
            stream, words, positions={"value": "i"}, front=["BOS"] if has_bos else []
        ),
        layers=(Layer((attention,)),),
        read_out=RealVector(W_out=[[0, 0, 0, 1]]),
    )


MODELS = {
    **{name: tf.recipe(name).build(max_length=6) for name in ("dyck-1", "induction-most-recent")},
    **{name: tf.compile(PROGRAMS[name], max_length=6) for name in ("dyck-k-d", "majority")},
    "a mean at each position": tf.compile(PROGRAMS["fraction-of-previous"], max_length=6),
    "several outputs over pairs": tf.compile(pairs, max_length=6),
    "a head on positions": over((0, 1, 2), (0, 1, 0), (0, 1, 1)),
    "without BOS": over((0, 1, 2), (0, 1, 0), (0, 1, 1), has_bos=False),
    "a mask that looks ahead": tf.recipe("original-transformer").build(),
}


def every(model, length):
    symbols = model.alphabet
    joined = all(isinstance(symbol, str) and len(symbol) == 1 for symbol in symbols)
    least = 0 if model.embedding.front else 1
    for n in range(least, length + 1):
        for string in itertools.product(symbols, repeat=n):
            yield "".join(string) if joined else string


def shared(model, length, a, **given):
    """The answers by string, and the lengths of the levels of each branch."""
    found, lengths = {}, []
    domain = Strings(model.alphabet, lambda _: ())
    for branch in branches(model, domain, length, a, **given):
        levels = list(branch)
        lengths.append([level.length for level in levels])
        for level in levels:
            of_length = [x for x in every(model, level.length) if len(x) == level.length]
            end = level.first + len(level.strings)
            assert level.strings == of_length[level.first : end]
            assert not {*level.strings} & {*found}
            found |= zip(level.strings, level.answers, strict=True)
    return found, lengths


@pytest.mark.parametrize("name", [name for name in MODELS if shares_prefixes(MODELS[name])])
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("most_numbers", [2**20, 1000])
def test_the_answers_are_those_of_the_reference(name, arithmetic, most_numbers):
    model, a = MODELS[name], number_system(arithmetic)
    length = next(n for n in range(7, 0, -1) if n <= 6 and len(model.alphabet) ** n <= 80)
    strings = list(every(model, length))
    try:
        expected = dict(zip(strings, model.answers(strings, a), strict=True))
    except tf.TransformistError as refusal:
        with pytest.raises(type(refusal)):
            shared(model, length, a, most_numbers=most_numbers)
        return
    found, lengths = shared(model, length, a, most_numbers=most_numbers)
    assert found == expected
    assert (len(lengths) > 2) == (most_numbers == 1000)


def test_some_share_prefixes_and_some_do_not():
    assert {name: shares_prefixes(model) for name, model in MODELS.items()} == {
        "dyck-1": True,
        "induction-most-recent": True,
        "dyck-k-d": True,
        "majority": False,
        "a mean at each position": True,
        "several outputs over pairs": True,
        "a head on positions": True,
        "without BOS": True,
        "a mask that looks ahead": False,
    }


@pytest.mark.parametrize(
    "model",
    [
        # 2 · 300 · 300 is beyond float16, and the reference computes the score of BOS with `a`.
        over((0, 1, 2), (300, 0, 0), (0, 300, 0)),
        over((0, 1, 2), (0, 60000, 0), (0, 0, 2), weighting="average-hard"),
    ],
)
def test_scores_that_may_overflow_are_left_to_the_reference(model):
    assert shares_prefixes(model)
    with pytest.raises(NotShared):
        shared(model, 2, number_system("float16"))
    shared(model, 2, number_system("float64"))


def test_a_value_that_overflows_is_left_to_the_reference():
    model = over((0, 1, 2), (0, 0, 0), (0, 0, 0))
    (head,) = model.layers[0].heads
    huge = Attention(W_Q=head.W_Q, W_K=head.W_K, W_V=head.W_V * 60000, W_O=head.W_O, mask="future")
    model = Transformer(
        stream=model.stream,
        embedding=model.embedding,
        layers=(Layer((huge,)),),
        read_out=model.read_out,
    )
    with pytest.raises(NotShared):
        shared(model, 2, number_system("float16"))


def is_dyck(x):
    depth = 0
    for symbol in x:
        depth += 1 if symbol == "(" else -1
        if depth < 0:
            return False
    return depth == 0


@pytest.mark.parametrize(
    "wrong", [["))(("], [""], ["))))", "((()"], ["()()()()", "(((((())", "))))))))"]]
)
def test_a_check_counts_to_the_first_counterexample(wrong, monkeypatch):
    """The branches after that of ")))" hold a shorter string that is wrong, too."""
    from transformist.engines import prefix_tree

    monkeypatch.setattr(prefix_tree.branches, "__defaults__", (1500,))
    model = tf.recipe("dyck-1").build(max_length=8)
    verdict = tf.check(model, lambda x: is_dyck(x) != (x in wrong), max_length=8)
    strings = ["".join(x) for n in range(9) for x in itertools.product("()", repeat=n)]
    first = min(map(strings.index, wrong))
    assert (verdict.counterexample.input, verdict.cases) == (strings[first], first + 1)


@pytest.mark.parametrize(("wrong", "raises"), [("(((", "(()))"), ("(()))", "(((")])
def test_the_first_of_a_counterexample_and_an_error_decides(wrong, raises):
    def reference(x):
        if x == raises:
            raise ValueError("no answer")
        return is_dyck(x) != (x == wrong)

    model = tf.recipe("dyck-1").build(max_length=6)
    if len(wrong) < len(raises):
        assert tf.check(model, reference, max_length=6).counterexample.input == wrong
    else:
        with pytest.raises(tf.errors.InvalidValue, match="no answer"):
            tf.check(model, reference, max_length=6)


@pytest.mark.slow
@pytest.mark.parametrize(("arithmetic", "length"), [("float64", 18), ("exact", 15)])
def test_every_string_of_dyck_1(arithmetic, length):
    model = tf.recipe("dyck-1").build(max_length=length)
    verdict = tf.check(model, is_dyck, max_length=length, arithmetic=arithmetic)
    assert verdict.held and verdict.cases == 2 ** (length + 1) - 1
