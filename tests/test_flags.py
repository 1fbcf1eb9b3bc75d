"""Functions from transformers to transformers, on given ones, against their definitions."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist import assembly
from transformist.arithmetic import number_system
from transformist.assembly import flags, maxima
from transformist.errors import InvalidValue, TransformistError, UnknownName
from transformist.hosts.named_arrays import fixed_positions, longest_input
from transformist.model import (
    Attention,
    Binary,
    Embedding,
    FeedForward,
    Layer,
    LayerNorm,
    LayerStack,
    PositionFunctions,
    PositionsSideBySide,
    PositionTable,
    RealVector,
    Sinusoids,
    Stream,
    Transformer,
    rationals,
)

B = 16
GRID = f"saturating:{B}:1/16"
NUMBERS = (-16, -3, Fraction(-1, 16), 0, Fraction(1, 16), 2, 5, 16)


def given(positions=None, front=(), norm=None):
    """A transformer on x and y: a mean, a network, the numbers read out."""
    return Transformer(
        stream=Stream(("x", "y")),
        embedding=Embedding(
            symbols=("a", "b", *front),
            vectors=[[1, "-1/2"], [-2, 3], *[[0, 1]] * len(front)],
            positions=positions,
            front=front,
        ),
        layers=(
            Layer(
                (
                    Attention(
                        W_Q=[[1, 0]],
                        W_K=[[0, 1]],
                        W_V=[[1, 2], [0, 1]],
                        b_V=[1, 0],
                        weighting="average-hard",
                        mask="future",
                    ),
                ),
                FeedForward(W_1=[[1, 1], [1, -1]], b_1=[1, 0], W_2=[[1, 0], [-1, 2]], b_2=[0, 1]),
                post_norms=(None, norm),
            ),
        ),
        read_out=RealVector(W_out=[[1, 2], [0, 1]], at="every"),
    )


POSITIONS = {
    "none": None,
    "functions": PositionFunctions(("1/i", "i/n")),
    "table": PositionTable(vectors=[[k, -k] for k in range(1, 9)]),
    "sinusoids": Sinusoids(2),
    "side by side": PositionsSideBySide(
        (PositionTable(vectors=[[1], [2], [3], [4], [5], [6]]), PositionFunctions(("i",)))
    ),
}
FLAGS = {"second": {2: 1}, "several": {1: "1/3", 4: -2, 5: 7}}


@pytest.mark.parametrize("at", [None, 0, 1, 2])
@pytest.mark.parametrize("kind", POSITIONS)
def test_flags_stand_in_any_coordinate_and_change_no_answer(kind, at):
    model = given(POSITIONS[kind])
    if kind == "sinusoids" and at == 1:
        with pytest.raises(InvalidValue, match="must not stand inside positions of the kind Sinus"):
            flags.with_flags(model, FLAGS, at)
        return
    flagged = flags.with_flags(model, FLAGS, at)
    place = 2 if at is None else at
    assert flagged.stream.slots == ("x", "y")[:place] + tuple(FLAGS) + ("x", "y")[place:]
    for x in ("a", "ab", "babba"):
        assert flagged(x, "exact") == model(x, "exact")
        trace = flagged.run(x, "exact")
        for name, marks in FLAGS.items():
            expected = [Fraction(marks.get(i, 0)) for i in range(1, len(x) + 1)]
            assert [Fraction(v) for v in trace[name].tolist()] == expected


def test_a_symbol_in_front_of_the_input_has_position_0():
    flagged = flags.with_flags(given(front=("BOS",)), {"mark": {0: 5, 2: 1}})
    assert flagged.run("ab", "exact")["mark"].tolist() == [5, 0, 1]
    assert flagged("ab", "exact") == given(front=("BOS",))("ab", "exact")


def test_a_given_recipe_keeps_its_answers_with_flags(tmp_path):
    model = tf.recipe("dyck-1").build(max_length=8)
    flagged = flags.with_flags(model, {"third": {3: 1}}, at=0)
    strings = ["".join(x) for n in range(7) for x in itertools.product("()", repeat=n)]
    assert flagged.answers(strings, "exact") == model.answers(strings, "exact")
    tf.save(flagged, tmp_path / "flagged.safetensors")
    assert tf.load(tmp_path / "flagged.safetensors").run("(())")["third"].tolist()[3] == 1


LAYERS = {
    "head": Layer(
        (
            Attention(
                W_Q=np.ones((1, 3)),
                W_K=np.ones((1, 3)),
                W_V=[[1, 2, 3], [4, 5, 6]],
                b_V=[1, 2],
                W_O=[[1, 0], [2, 1], [0, 3]],
                b_O=[1, 1, 1],
                weighting="rightmost-hard",
            ),
        )
    ),
    "head without W_O": Layer(
        (
            Attention(
                W_Q=np.ones((2, 3)),
                W_K=np.ones((2, 3)),
                W_V=np.arange(9).reshape(3, 3),
                b_V=[1, 2, 3],
                weighting="leftmost-hard",
            ),
        )
    ),
    "network": Layer(
        feed_forward=FeedForward(
            W_1=[[1, 2, 3], [-1, 1, 2]], b_1=[1, 0], W_2=[[1, 2], [3, 4], [5, 6]], b_2=[1, 1, 1]
        )
    ),
}


@pytest.mark.parametrize("ignored", [("x",), ("y",), ("x", "z"), ("x", "y", "z"), ()])
@pytest.mark.parametrize("kind", LAYERS)
def test_any_layer_ignores_coordinates(kind, ignored):
    """What is left does not depend on them, and is what the layer makes of 0 in their place."""
    slots = ("x", "y", "z")
    stack = LayerStack(Stream(slots), slots, (LAYERS[kind],), slots)
    blind = flags.ignoring(stack, ignored)
    rng = np.random.default_rng(0)
    kept = [k for k, slot in enumerate(slots) if slot not in ignored]
    for _ in range(5):
        z = rng.integers(-4, 5, (4, 3))
        blanked = z.copy()
        blanked[:, [k for k in range(3) if k not in kept]] = 0
        got, alone = (
            np.array(f(v.tolist(), "exact").tolist()) for f, v in ((blind, z), (stack, blanked))
        )
        assert (got[:, kept] == alone[:, kept]).all()
        others = [k for k in range(3) if k not in kept]
        assert (got[:, others] == z[:, others]).all()


def test_some_layers_ignore_a_slot_and_others_do_not():
    slots = ("x", "y", "z")
    stack = LayerStack(Stream(slots), slots, (LAYERS["network"], LAYERS["head"]), slots)
    half = flags.ignoring(stack, ["x"], layers=[1])
    assert half.layers[0] is stack.layers[0] and half.layers[1] is not stack.layers[1]
    for bad in ([2], [-1], ["x"]):
        with pytest.raises(InvalidValue, match="must be a list of some of 0 to 1"):
            flags.ignoring(stack, ["x"], layers=bad)
    with pytest.raises(UnknownName, match="slot"):
        flags.ignoring(stack, ["w"])
    with pytest.raises(InvalidValue, match="no layer norm"):
        flags.ignoring(given(norm=LayerNorm(gain=[1, 1], epsilon=1)), ["x"])


def transformer(width, positions=None):
    """A transformer of no layers whose symbols are all vectors of some of the numbers."""
    symbols = list(itertools.product(NUMBERS, repeat=width))
    slots = tuple(f"x{k}" for k in range(width))
    return Transformer(
        stream=Stream(slots),
        embedding=Embedding(symbols=tuple(symbols), vectors=symbols, positions=positions),
        layers=(),
        read_out=RealVector(W_out=np.eye(width), at="every"),
    )


def stream_after(model, x, slots, arithmetic=GRID):
    trace = model.run(x, arithmetic)
    return np.array([[Fraction(v) for v in trace[slot].tolist()] for slot in slots]).T.tolist()


def words(width, n, count=12):
    rng = np.random.default_rng(n)
    symbols = list(itertools.product(NUMBERS, repeat=width))
    return [tuple(symbols[k] for k in rng.integers(0, len(symbols), n)) for _ in range(count)]


def clamp(x):
    return min(max(Fraction(x), Fraction(-B)), Fraction(B))


def test_a_vector_is_added_and_one_cleared_at_a_flag_of_a_given_transformer():
    flagged = flags.with_flags(transformer(2), {"flag": {3: 1}, "clear": {1: 1, 4: 2}}, at=1)
    model = flags.add_at_flag(flagged, "flag", {"x0": 3, "x1": "-1/2"})
    model = flags.zero_at_flag(model, "clear", ["x0", "x1"], B)
    assert [layer.heads for layer in model.layers] == [()] * 4
    for x in words(2, 5):
        expected = [list(map(Fraction, vector)) for vector in x]
        expected[2] = [clamp(expected[2][0] + 3), clamp(expected[2][1] - Fraction(1, 2))]
        expected[0] = expected[3] = [Fraction(0)] * 2
        assert stream_after(model, x, ["x0", "x1"]) == expected


def test_layers_are_added_in_front_of_others():
    flagged = flags.with_flags(transformer(1), {"flag": {1: 1}})
    first = flags.add_at_flag(flagged, "flag", {"x0": 1})
    both = flags.zero_at_flag(first, "flag", ["x0"], B, before=0)
    assert stream_after(both, ((5,),), ["x0"]) == [[1]]
    after = flags.zero_at_flag(first, "flag", ["x0"], B)
    assert stream_after(after, ((5,),), ["x0"]) == [[0]]
    with pytest.raises(InvalidValue, match="one of the layers 0 to 0, or last"):
        flags.add_at_flag(first, "flag", {"x0": 1}, before=2)


def test_a_product_is_written_to_the_right_and_in_place():
    M = [[1, 2], [-1, 1]]
    flagged = flags.with_flags(transformer(2), {"flag": {2: 1}, "receiver": {4: 1}}, at=0)
    model = flags.linear_to_the_right(flagged, ["x0", "x1"], M, B)
    still = flags.linear_in_place(
        flags.with_slots(flagged, ["s0", "s1"], at=1), ["x0", "x1"], ["s0", "s1"], M, B
    )
    for x in words(2, 5, count=60):
        a, b = x[1]
        product = [Fraction(a) + 2 * Fraction(b), Fraction(b) - Fraction(a)]
        if max(map(abs, [*product, 2 * Fraction(b)])) <= B:
            assert stream_after(model, x, ["x0", "x1"])[3] == product
            assert stream_after(still, x, ["x0", "x1", "s0", "s1"])[1] == [*product, 0, 0]


def test_gates_and_maxima_of_a_given_transformer():
    flagged = flags.with_flags(transformer(2), {"f0": {1: 1, 2: 1}, "f1": {2: 1, 3: 1}})
    gated = flags.gate_by_flags(flagged, {"x0": "f0", "x1": "f1"}, B)
    largest = maxima.keep_largest(transformer(3), ["x0", "x1", "x2"], B)
    printed = maxima.keep_larger_as_printed(transformer(2), ["x0", "x1"], B)
    for x in words(2, 3):
        kept = [[x[0][0], 0], [x[1][0], x[1][1]], [0, x[2][1]]]
        assert stream_after(gated, x, ["x0", "x1"]) == kept
        both = [[a if a >= b else 0, b if b >= a else 0] for a, b in x]
        assert stream_after(printed, x, ["x0", "x1"]) == both
    for x in words(3, 4):
        expected = [
            [v if k == vector.index(max(vector)) else 0 for k, v in enumerate(vector)]
            for vector in x
        ]
        assert stream_after(largest, x, ["x0", "x1", "x2"]) == expected


def test_what_flags_refuse():
    model = given()
    for call, message in (
        (lambda: flags.with_flags(model, {}), "with at least one entry"),
        (lambda: flags.with_flags(model, {"f": {1: 1}}, at=3), "one of 0 to 2"),
        (lambda: flags.with_flags(model, {"f": {}}), "at least 1"),
        (lambda: flags.with_flags(model, {"f": {1.5: 1}}), "places"),
        (lambda: flags.with_flags(model, {"x": {1: 1}}), "no name twice"),
        (
            lambda: flags.with_flags(given(norm=LayerNorm(gain=[1, 1], epsilon=1)), {"f": {1: 1}}),
            "no layer norm",
        ),
        (lambda: maxima.keep_larger_as_printed(model, ["x"], B), "must have two slots"),
    ):
        with pytest.raises(TransformistError, match=message) as refusal:
            call()
        assert "\n" not in str(refusal.value)


def test_the_printed_scores_are_minus_B_but_at_the_flag():
    stack = tf.recipe("linear-to-the-right").build(matrix=[[1]], printed=True)
    head = stack.layers[-1].heads[0]
    slots = stack.stream.slots
    rows = np.zeros((3, len(slots)))
    rows[:, slots.index("other")] = [1, 0, 1]
    scores = np.array(head.scores(rows, "exact").tolist())
    assert scores[0].tolist() == [-B, 0, -B] and scores[2].tolist() == [-B, 0, -B]
    assert (rationals(head.W_Q) != 0).sum() == (rationals(head.W_K) != 0).sum() == 1


PLAIN = Transformer(
    stream=Stream(("x", "flag", "receiver", "t")),
    embedding=Embedding(symbols=("a",), vectors=[[7, 0, 0, 0]]),
    layers=(),
    read_out=Binary(W_out=[[1, 0, 0, 0]]),
)
STACK = LayerStack(PLAIN.stream, ("x",), (), ("x",))


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (lambda: flags.gate_by_flags(PLAIN, {}, 4), "flags must map names of slots.*one entry"),
        (lambda: flags.gate_by_flags(PLAIN, ["x"], 4), "flags must map.*received .'x'"),
        (lambda: flags.gate_by_flags(PLAIN, {"x": 3}, 4), "the flags must be a list of names"),
        (lambda: flags.gate_by_flags(PLAIN, {"x": "x"}, 4), "must not be one of the slots"),
        (lambda: flags.with_flags(PLAIN, ["x"]), "flags must map names of slots to numbers"),
        (lambda: flags.with_flags(PLAIN, {"q": 3}), "the flag .q. must map positions.*received 3"),
        (lambda: flags.with_flags(PLAIN, {"q": {"a": 1}}), "places must be a tuple of int"),
        (lambda: flags.with_flags(STACK, {"q": {1: 1}}), "of the kind Transformer.*LayerStack"),
        (lambda: flags.with_slots(PLAIN, "ab"), "slots must be a list of names.*'ab'"),
        (lambda: flags.with_slots(PLAIN, None), "slots must be a list of names.*None"),
        (lambda: flags.with_layers(PLAIN, 3), "layers must be a list of Layer"),
        (lambda: flags.ignoring(PLAIN, None), "slots must be a list of names.*None"),
        (lambda: flags.ignoring(PLAIN, "x"), "slots must be a list of names.*'x'"),
        (lambda: flags.ignoring(PLAIN, ["x"], 3), "layers that ignore slots.*received 3"),
        (lambda: flags.ignoring(PLAIN, ["x"], [[]]), "layers that ignore slots"),
        (lambda: flags.add_at_flag(PLAIN, 3, "x"), "flag must be a slot, or a form"),
        (lambda: flags.add_at_flag(PLAIN, "flag", 3), "vector must be a slot, or a form"),
        (lambda: flags.zero_at_flag(PLAIN, "flag", None, 4), "slots must be a list of names"),
        (lambda: flags.zero_at_flag(PLAIN, "flag", ["flag"], 4), "must not be one of the slots"),
        (lambda: flags.linear_to_the_right(PLAIN, None, [[1]], 4), "slots must be a list"),
        (lambda: flags.linear_in_place(PLAIN, ["x"], None, [[1]], 4), "scratch must be a list"),
        (lambda: assembly.keep_largest(PLAIN, None, 4), "slots must be a list of names"),
        (lambda: assembly.keep_largest(PLAIN, ["x", "x"], 4), "each once"),
        (lambda: assembly.keep_larger_as_printed(PLAIN, ["x"], 4), "must have two slots"),
    ],
)
def test_wrong_arguments_are_refused(call, refusal):
    with pytest.raises(InvalidValue, match=refusal):
        call()


@pytest.mark.parametrize("largest", [0, -1, None, "q", float("nan"), float("inf")])
def test_the_largest_number_is_positive(largest):
    for call in (
        lambda: flags.zero_at_flag(PLAIN, "flag", ["x"], largest),
        lambda: flags.gate_by_flags(PLAIN, {"x": "flag"}, largest),
        lambda: flags.linear_to_the_right(PLAIN, ["x"], [[1]], largest),
        lambda: flags.linear_in_place(PLAIN, ["x"], ["t"], [[1]], largest),
        lambda: assembly.keep_largest(PLAIN, ["x", "t"], largest),
        lambda: assembly.keep_larger_as_printed(PLAIN, ["x", "t"], largest),
    ):
        with pytest.raises(InvalidValue, match="`largest` must be greater than 0"):
            call()


@pytest.mark.parametrize("model", [None, 3, PLAIN.stream])
def test_what_is_no_model_is_refused(model):
    for call in (
        lambda: flags.with_flags(model, {"q": {1: 1}}),
        lambda: flags.with_slots(model, ["q"]),
        lambda: flags.with_layers(model, []),
        lambda: flags.add_at_flag(model, "flag", "x"),
        lambda: flags.zero_at_flag(model, "flag", ["x"], 4),
        lambda: flags.gate_by_flags(model, {"x": "flag"}, 4),
        lambda: flags.linear_to_the_right(model, ["x"], [[1]], 4),
        lambda: flags.linear_in_place(model, ["x"], ["t"], [[1]], 4),
        lambda: flags.ignoring(model, ["x"]),
        lambda: assembly.keep_largest(model, ["x"], 4),
        lambda: assembly.keep_larger_as_printed(model, ["x", "t"], 4),
    ):
        with pytest.raises(InvalidValue, match="must be of the kind Transformer"):
            call()


def test_exported_flags_have_a_longest_input():
    """Side by side with other positions they become a table, which ends there."""
    flagged = flags.with_flags(PLAIN, {"q": {2: 1}})
    with pytest.raises(InvalidValue, match="PositionsSideBySide, which become a table"):
        fixed_positions(flagged, number_system("float32"), None)
    assert longest_input(flagged, 5) == 5 and longest_input(PLAIN, 5) is None
