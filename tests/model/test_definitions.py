"""Definitions as values: equal by their arguments, frozen through copies, whole in their parts."""

import copy
import dataclasses
import inspect
import itertools
import math
import os
import pickle
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transformist as tf
from transformist import model as definitions
from transformist.arithmetic import FLOAT32, FLOAT64
from transformist.errors import InvalidValue, NotFinite, ShapeMismatch, TransformistError
from transformist.model import (
    BOS,
    Attention,
    Binary,
    Embedding,
    FeedForward,
    FeedForwardStack,
    Heads,
    LanguageModel,
    Layer,
    LayerNorm,
    LayerStack,
    MultiClass,
    NearestFraction,
    NearZero,
    Outputs,
    PositionFlags,
    PositionFunctions,
    PositionsSideBySide,
    PositionTable,
    ReadOut,
    RealVector,
    Sinusoids,
    Span,
    Stream,
    Sublayer,
    Transformer,
)
from transformist.model.definition import Definition, Function

STREAM = Stream(("x", "y"))
HEAD = Attention(W_Q=[[0, 0]], W_K=[[0, 0]], W_V=[[0, 0], [1, 0]])
OTHER_HEAD = dataclasses.replace(HEAD, mask="future")
NETWORK = FeedForward(W_1=[[1, 0]], W_2=[[1], [2]])
OTHER_NETWORK = dataclasses.replace(NETWORK, b_1=[1])
NORM = LayerNorm(gain=[1, 1])
OTHER_NORM = LayerNorm(gain=[1, 2])
EMBEDDING = Embedding(symbols=("a", BOS), vectors=[[1, 0], [0, 0]], front=(BOS,))
LAYER = Layer((HEAD,), NETWORK)
MATRIX, OTHER_MATRIX = [[1, 2]], [[1, 3]]

READ = {"W_out": MATRIX, "b_out": [0], "at": "every"}
READ_OTHERWISE = {"W_out": OTHER_MATRIX, "b_out": [1], "at": "last"}

ARGUMENTS = {
    Stream: ({"slots": ("x",), "spans": ()}, {"slots": ("y",), "spans": (Span("p", 0, 0, 1),)}),
    Attention: (
        {
            **dict.fromkeys(("W_Q", "W_K"), MATRIX),
            "W_V": [[1, 0], [0, 1]],
            "W_O": [[1, 0], [0, 1]],
            "b_Q": [0],
            "b_K": [0],
            "b_V": [0, 0],
            "b_O": [0, 0],
            "weighting": "softmax",
            "mask": "none",
        },
        {
            **dict.fromkeys(("W_Q", "W_K"), OTHER_MATRIX),
            "W_V": [[1, 0], [0, 2]],
            "W_O": None,
            "b_Q": [1],
            "b_K": [1],
            "b_V": [0, 1],
            "b_O": [0, 1],
            "weighting": "average-hard",
            "mask": "past",
        },
    ),
    FeedForward: (
        {"W_1": [[1]], "b_1": [0], "W_2": [[1]], "b_2": [0], "activation": "relu"},
        {"W_1": [[2]], "b_1": [1], "W_2": [[2]], "b_2": ["1/3"], "activation": "gelu"},
    ),
    FeedForwardStack: ({"parts": (NETWORK,)}, {"parts": (NETWORK, NETWORK)}),
    LayerNorm: (
        {"gain": [1, 1], "bias": [0, 0], "epsilon": 0, "W_N": None},
        {"gain": [1, 2], "bias": [0, 1], "epsilon": "1/3", "W_N": [[1, 0], [0, 1]]},
    ),
    Heads: ({"heads": (HEAD,)}, {"heads": (OTHER_HEAD,)}),
    Sublayer: (
        {"function": NETWORK, "pre_norm": None, "post_norm": None},
        {"function": Heads((HEAD,)), "pre_norm": NORM, "post_norm": NORM},
    ),
    Layer: (
        {
            "heads": (HEAD,),
            "feed_forward": NETWORK,
            "pre_norms": (None, None),
            "post_norms": (None, NORM),
        },
        {
            "heads": (HEAD, HEAD),
            "feed_forward": OTHER_NETWORK,
            "pre_norms": (NORM, None),
            "post_norms": (None, OTHER_NORM),
        },
    ),
    LayerStack: (
        {
            "stream": STREAM,
            "inputs": ("x",),
            "layers": (LAYER,),
            "outputs": ("y",),
            "final_norm": None,
        },
        {
            "stream": Stream(("x", "y"), (Span("p", 0, 0, 1),)),
            "inputs": ("y",),
            "layers": (),
            "outputs": ("x",),
            "final_norm": NORM,
        },
    ),
    Embedding: (
        {
            "symbols": ("a", BOS, "EOS"),
            "vectors": [[1], [2], [3]],
            "positions": None,
            "front": (BOS,),
            "back": (),
        },
        {
            "symbols": ("b", BOS, "EOS"),
            "vectors": [[1], [2], [4]],
            "positions": PositionFunctions(("i",)),
            "front": (),
            "back": ("EOS",),
        },
    ),
    PositionFunctions: ({"names": ("i", None)}, {"names": ("i/n", None)}),
    PositionFlags: ({"places": (1,), "values": [1]}, {"places": (0,), "values": [2]}),
    PositionTable: ({"vectors": MATRIX}, {"vectors": OTHER_MATRIX}),
    PositionsSideBySide: (
        {"parts": (PositionTable(vectors=MATRIX),)},
        {"parts": (PositionTable(vectors=OTHER_MATRIX),)},
    ),
    Sinusoids: ({"d": 2}, {"d": 3}),
    Binary: (READ, READ_OTHERWISE),
    RealVector: (READ, READ_OTHERWISE),
    MultiClass: ({**READ, "labels": ("a",)}, {**READ_OTHERWISE, "labels": ("b",)}),
    LanguageModel: ({**READ, "labels": ("a",)}, {**READ_OTHERWISE, "labels": ("b",)}),
    NearestFraction: (
        {**READ, "scale": 1, "mask": "none", "with_bos": False},
        {"W_out": OTHER_MATRIX, "b_out": [1], "scale": 2, "mask": "past", "with_bos": True},
    ),
    NearZero: ({**READ, "powers": (1,)}, {**READ_OTHERWISE, "powers": (2,)}),
    Outputs: (
        {"names": ("x",), "parts": (Binary(W_out=MATRIX),)},
        {"names": ("y",), "parts": (Binary(W_out=OTHER_MATRIX),)},
    ),
    Transformer: (
        {
            "stream": STREAM,
            "embedding": EMBEDDING,
            "layers": (LAYER,),
            "read_out": Binary(W_out=MATRIX),
            "final_norm": None,
            "max_length": 4,
            "built_for": None,
        },
        {
            "stream": Stream(("x", "z")),
            "layers": (),
            "embedding": dataclasses.replace(EMBEDDING, vectors=[[2, 0], [0, 0]]),
            "read_out": RealVector(W_out=MATRIX),
            "final_norm": NORM,
            "max_length": 5,
            "built_for": "float32",
        },
    ),
}
"""Two values of each argument of each definition; any one can be exchanged for the other."""

FIXED = {(NearestFraction, "at")}
"""Arguments that have one value."""

KINDS = [
    each
    for each in vars(definitions).values()
    if inspect.isclass(each) and issubclass(each, Definition) and not inspect.isabstract(each)
]


def arrays(value):
    """All arrays of a definition and of its parts."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from arrays(each)
    elif dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            if each.init:
                yield from arrays(getattr(value, each.name))


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda each: pickle.loads(pickle.dumps(each)),
    "replace": dataclasses.replace,
}


class TestEquality:
    def test_every_definition_and_every_argument_is_here(self):
        definite = {each for each in KINDS if each.__name__ != "Parameterized"}
        assert definite == set(ARGUMENTS)
        for kind, (arguments, others) in ARGUMENTS.items():
            names = {each.name for each in dataclasses.fields(kind) if each.init}
            assert set(arguments) == names, kind
            assert {*others, *(name for each, name in FIXED if each is kind)} == names, kind

    @pytest.mark.parametrize("kind", ARGUMENTS, ids=lambda each: each.__name__)
    def test_equal_arguments_make_equal_definitions_and_no_others(self, kind):
        arguments, others = ARGUMENTS[kind]
        one = kind(**arguments)
        assert one == kind(**arguments) and hash(one) == hash(kind(**arguments))
        assert one != "x" and one != object()
        for name, value in others.items():
            changed = kind(**{**arguments, name: value})
            assert one != changed and changed != one, name
            assert len({one, changed, kind(**arguments)}) == 2

    @pytest.mark.parametrize("how", COPIES)
    @pytest.mark.parametrize("kind", ARGUMENTS, ids=lambda each: each.__name__)
    def test_copies_are_equal_and_read_only(self, kind, how):
        one = kind(**ARGUMENTS[kind][0])
        hash(one)
        other = COPIES[how](one)
        assert one == other and hash(one) == hash(other)
        assert not any(each.flags.writeable for each in arrays(other))

    def test_read_outs_of_two_kinds_are_not_equal(self):
        assert Binary(W_out=MATRIX) != RealVector(W_out=MATRIX)
        assert MultiClass(W_out=MATRIX, labels=("a",)) != LanguageModel(W_out=MATRIX, labels=("a",))

    def test_one_hash_does_not_make_them_equal(self):
        """In Python −1 and −2 have one hash."""
        one, other = PositionTable(vectors=[[-1]]), PositionTable(vectors=[[-2]])
        assert hash(one) == hash(other) and one != other and len({one, other}) == 2

    def test_what_was_computed_takes_no_part(self):
        used, fresh = (LayerNorm(gain=["1/3", 1]) for _ in range(2))
        used([1, 2], "float32")
        assert used == fresh and hash(used) == hash(fresh)
        assert len(pickle.dumps(used)) == len(pickle.dumps(fresh))

    def test_a_hash_holds_in_one_process_only(self):
        """Hashes of strings differ from process to process: a pickle must not bring one along."""
        hash(NETWORK)
        code = (
            "import pickle, sys; found = pickle.load(sys.stdin.buffer);"
            "from transformist import FeedForward;"
            "print(found == FeedForward(W_1=[[1, 0]], W_2=[[1], [2]]), len({found,"
            "FeedForward(W_1=[[1, 0]], W_2=[[1], [2]])}))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=pickle.dumps(NETWORK),
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": "77"},
        )
        assert done.stdout.split() == [b"True", b"1"]

    def test_recipes_that_are_built_twice(self):
        for name in ("dyck-1", "original-transformer", "induction-most-recent"):
            recipe = tf.recipe(name)
            assert recipe.build() == recipe.build(), name
        assert tf.recipe("dyck-1").build(max_length=4) != tf.recipe("dyck-1").build(max_length=5)


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.fractions(),
    st.sampled_from([0.0, -0.0, 0.1, Fraction(1, 10), 2**53, 2**53 + 1, 5e-324]),
)


def forms(rows):
    """The same numbers in other types: fractions, and float64 where that is exact."""
    exact = np.empty((len(rows), len(rows[0])), object)
    exact[:] = [[Fraction(each) for each in row] for row in rows]
    yield rows
    yield exact
    yield [[Fraction(each) for each in row] for row in rows]
    if all(math.isfinite(f := as_float(each)) and Fraction(f) == each for each in exact.ravel()):
        yield np.array([[as_float(each) for each in row] for row in exact])


def as_float(value):
    try:
        return float(value)
    except OverflowError:
        return math.inf


class TestNumbers:
    @given(st.lists(st.lists(NUMBERS, min_size=2, max_size=2), min_size=1, max_size=3))
    def test_equal_numbers_are_equal_through_types_files_and_pickles(self, rows):
        made = [in_a_model(rows) for rows in forms(rows)]
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "model.safetensors"
            tf.save(made[0], path)
            made += [tf.load(path), *(through(made[0]) for through in COPIES.values())]
        assert all(each == made[0] for each in made) and len(set(made)) == 1
        assert not any(each.flags.writeable for one in made for each in arrays(one))

    @given(st.lists(NUMBERS, min_size=2, max_size=2), st.lists(NUMBERS, min_size=2, max_size=2))
    def test_models_are_equal_where_their_numbers_are(self, row, other):
        one, two = in_a_model([row]), in_a_model([other])
        assert (one == two) == ([Fraction(x) for x in row] == [Fraction(x) for x in other])

    def test_one_array_in_both_types(self):
        """Equality and hash do not ask how the numbers are stored."""
        one, other = PositionTable(vectors=MATRIX), PositionTable(vectors=MATRIX)
        object.__setattr__(other, "vectors", np.array([[Fraction(1), Fraction(2)]]))
        assert one.vectors.dtype != other.vectors.dtype
        assert one == other and hash(one) == hash(other)


def in_a_model(rows):
    return Transformer(
        stream=STREAM,
        embedding=EMBEDDING,
        layers=(Layer((), FeedForward(W_1=rows, W_2=np.zeros((2, len(rows))))),),
        read_out=Binary(W_out=[rows[0]]),
    )


class TestParts:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Layer(heads=HEAD), r"Layer: heads must be a tuple of Attention; received one"),
            (lambda: Layer(heads=(NETWORK,)), "heads must be a tuple of Attention; .*at index 0"),
            (lambda: Layer(feed_forward=HEAD), "feed_forward must be FeedForward or None"),
            (lambda: Layer((HEAD,), pre_norms=NORM), "pre_norms must be a tuple of LayerNorm or N"),
            (lambda: Layer((HEAD,), pre_norms=(NORM,)), "pre_norms must hold 2 of LayerNorm or N"),
            (lambda: Heads(HEAD), "heads must be a tuple of Attention"),
            (lambda: Heads(()), "Heads: heads must hold at least 1 of Attention; received none"),
            (lambda: FeedForwardStack(NETWORK), r"put it in a tuple: parts=\(…,\)"),
            (lambda: FeedForwardStack(()), "parts must hold at least 1 of FeedForward; received n"),
            (lambda: Sublayer(HEAD), "function must be FeedForward or Heads"),
            (lambda: LayerStack(STREAM, ("x",), LAYER, ("x",)), "layers must be a tuple of Layer"),
            (lambda: LayerStack(STREAM, "x", (), ("x",)), "inputs must be a tuple of text"),
            (lambda: made(layers=LAYER), "Transformer: layers must be a tuple of Layer; received"),
            (lambda: made(layers=None), "layers must be a tuple of Layer; received None"),
            (lambda: made(stream="xy"), "stream must be Stream; received 'xy', a str"),
            (lambda: made(read_out=None), "read_out must be ReadOut; received None"),
            (lambda: made(embedding=NORM), "embedding must be Embedding"),
            (lambda: made(max_length=True), "max_length must be a whole number .*; received True"),
            (lambda: made(max_length=1.5), "max_length must be a whole number"),
            (lambda: made(max_length=-1), "max_length must be a whole number"),
            (lambda: Stream("xy"), "slots must be a tuple of text"),
            (lambda: PositionFunctions("i"), "names must be a tuple of text or None"),
            (lambda: MultiClass(W_out=MATRIX, labels=([],)), "labels must be .* hashable values"),
            (lambda: MultiClass(W_out=MATRIX, labels=3), "labels must be a tuple"),
            (lambda: NearZero(W_out=MATRIX, powers=("1",)), "powers must be a tuple of int"),
            (lambda: NearestFraction(**(READ | FRACTION | {"scale": "1"})), "scale must be"),
            (lambda: NearestFraction(**(READ | FRACTION | {"mask": []})), "mask must be text"),
        ],
    )
    def test_refusals(self, make, message):
        with pytest.raises((InvalidValue, ShapeMismatch), match=message) as caught:
            make()
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("kind", ARGUMENTS, ids=lambda each: each.__name__)
    def test_whatever_is_given_is_refused_in_a_line_or_makes_a_value(self, kind):
        for name, value in itertools.product(ARGUMENTS[kind][0], WHATEVER):
            try:
                made = kind(**{**ARGUMENTS[kind][0], name: value})
            except TransformistError as refusal:
                assert "\n" not in str(refusal), (name, value)
                continue
            assert isinstance(hash(made), int), (name, value)
            assert pickle.loads(pickle.dumps(made)) == made, (name, value)

    def test_any_sequence_will_do(self):
        assert Layer([HEAD]) == Layer((HEAD,)) == Layer(iter([HEAD]))
        assert MultiClass(W_out=[[1], [2]], labels="ab") == MultiClass(
            W_out=[[1], [2]], labels=["a", "b"]
        )
        assert MultiClass(W_out=[[1], [2]], labels=range(2)).labels == (0, 1)
        assert isinstance(hash(made(layers=[LAYER])), int)


WHATEVER = [
    *(None, 5, True, -1, 1.5, math.nan, 1j, "x", "", b"x", int, len, object(), NORM, HEAD, NETWORK),
    *([], (), {}, {"a": 1}, {1, 2}, range(2), [None], [[]], [1, 2], ["x"], [1j], [["a", "b"]]),
    *([[1, 2], [3]], (HEAD,), (None, None), np.array("x"), np.array([math.nan]), np.zeros((2, 2))),
    np.zeros((0, 2)),
]

FRACTION = {"scale": 1, "mask": "none", "with_bos": False}


def made(**changes):
    return Transformer(**(ARGUMENTS[Transformer][0] | changes))


FUNCTIONS = [
    HEAD,
    NETWORK,
    FeedForwardStack((FeedForward(W_1=[[1, 1]], W_2=[[1]]),)),
    FeedForward(W_1=[[1, 1], [1, 0]], W_2=[[1]], activation="reglu"),
    NORM,
    Heads((HEAD,)),
    Sublayer(NETWORK),
    LAYER,
    LayerStack(STREAM, ("x", "y"), (LAYER,), ("y",)),
]


class TestGivenNumbers:
    def test_every_function_of_vectors_is_here(self):
        assert {type(each) for each in FUNCTIONS} == {k for k in KINDS if issubclass(k, Function)}

    @pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: type(each).__name__)
    @pytest.mark.parametrize("arithmetic", ["float64", "float32", "bfloat16", "exact"])
    @pytest.mark.parametrize("beyond", [math.nan, math.inf, -math.inf])
    def test_what_is_not_finite_is_refused_in_any_array(self, function, arithmetic, beyond):
        x = np.array([[1.0, 2.0], [3.0, beyond]])
        for given_as in (x, x.astype(np.float32), x.tolist()):
            with pytest.raises(NotFinite, match="every number"):
                function(given_as, arithmetic)

    def test_an_overflow_on_the_way_is_no_number_that_was_given(self):
        """What overflows in a format stays infinite, and where nothing reads it nothing is lost."""
        large = FeedForward(W_1=[[1e38, 0]], W_2=[[9], [0]])
        z = LayerStack(STREAM, ("x", "y"), (Layer((), large), LAYER), ("x", "y"))
        with np.errstate(all="ignore"):
            assert np.isinf(large([[2, 1]], FLOAT32)).any()
            assert z([[2, 1]], "float32").shape == (1, 2)
            model = Transformer(
                stream=STREAM,
                embedding=Embedding(symbols=("a",), vectors=[[2, 1]]),
                layers=(Layer((), large), Layer((), FeedForward(W_1=[[0, 1]], W_2=[[0], [1]]))),
                read_out=Binary(W_out=[[1, 0]]),
                final_norm=LayerNorm(gain=[1, 1], W_N=[[0, 1], [0, -1]], epsilon=1),
            )
            assert np.isinf(model.run("a", "float32").streams[1][1]).any()
            assert model("a", "float32") is True


class TestReadOutsAreAbstract:
    def test_one_without_its_decision_cannot_be_made(self):
        class Undecided(ReadOut):
            pass

        for kind in (ReadOut, Undecided):
            with pytest.raises(TypeError, match="abstract"):
                kind(W_out=MATRIX)

    def test_one_with_it_can(self):
        class First(ReadOut):
            def decide(self, y, values, n, a):
                return values[:, 0].tolist()

        z = [[1.0, 2.0]]
        assert First(W_out=MATRIX)(FLOAT64.array(z), 1, FLOAT64) == [5.0]
        assert First(W_out=MATRIX) == First(W_out=MATRIX) != RealVector(W_out=MATRIX)
