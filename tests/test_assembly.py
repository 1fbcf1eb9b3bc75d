"""Assembly: each function against the composition it stands for, in exact arithmetic."""

import itertools
import random
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import EXACT
from transformist.assembly import (
    attend,
    beside,
    between,
    cancel_residual,
    move,
    parallel,
    postcompose,
    precompose,
    route,
    serial,
    soften,
    split_heads,
    tie_break,
    units,
)
from transformist.errors import InputTooLong, InvalidValue, ShapeMismatch
from transformist.model import (
    BOS,
    EOS,
    Attention,
    Binary,
    Embedding,
    FeedForward,
    Layer,
    LayerNorm,
    LayerStack,
    PositionFunctions,
    PositionTable,
    Sinusoids,
    Stream,
    Transformer,
)

THIRD = Fraction(1, 3)
NETWORK = FeedForward(
    W_1=[[1, THIRD], [2, -1], [0, 3]],
    b_1=[1, 0, THIRD],
    W_2=[[1, 2, 3], [THIRD, 0, -1]],
    b_2=[5, 0],
)
INPUTS = [[Fraction(a, 7), Fraction(b, 5)] for a in (-9, -1, 4) for b in (-6, 0, 11)]


def exact(network, x):
    return network(x, "exact").tolist()


def test_precompose_and_postcompose_are_affine_maps_around_the_network():
    A, b = [[THIRD, 2, 0], [0, 1, -1]], [Fraction(1, 7), 2]
    x = [1, Fraction(1, 9), -2]
    inner = [
        sum(a * v for a, v in zip(row, x, strict=True)) + c for row, c in zip(A, b, strict=True)
    ]
    assert exact(precompose(NETWORK, A, b), x) == exact(NETWORK, inner)
    for inputs in INPUTS:
        y = exact(NETWORK, inputs)
        assert exact(postcompose([[THIRD, -2]], NETWORK), inputs) == [THIRD * y[0] - 2 * y[1]]


def test_route_reads_and_writes_slots():
    stream = Stream(("a", "b", "c", "d"))
    routed = route(NETWORK, stream, ["d", {"a": 2, "b": -1}], ["c", "a"], shift=[0, THIRD])
    x = [3, 1, 100, Fraction(1, 2)]
    y = exact(NETWORK, [Fraction(1, 2), 5 + THIRD])
    assert exact(routed, x) == [y[1], 0, y[0], 0]


def test_beside_sums_what_the_networks_write():
    for x in INPUTS:
        both = exact(beside(NETWORK, NETWORK, NETWORK), x)
        assert both == [3 * y for y in exact(NETWORK, x)]
    with pytest.raises(ShapeMismatch, match="one width"):
        beside(NETWORK, FeedForward(W_1=[[1]], W_2=[[1]]))
    with pytest.raises(ShapeMismatch, match="activation"):
        gelu = FeedForward(W_1=np.eye(2), W_2=np.eye(2), activation="gelu")
        beside(NETWORK, gelu)


def test_cancel_residual_takes_the_input_away():
    for x in INPUTS:
        y = exact(cancel_residual(NETWORK), x)
        assert [a + b for a, b in zip(y, x, strict=True)] == exact(NETWORK, x)
    with pytest.raises(ShapeMismatch, match="R\\^d"):
        cancel_residual(FeedForward(W_1=[[1, 1]], W_2=[[1]]))


def test_a_head_without_query_adds_a_mean_to_a_slot():
    stream = Stream(("x", "mean"))
    head = attend(stream, [{"x": THIRD}], ["mean"])
    assert exact(head, [[3, 0], [6, 0]]) == [[0, Fraction(3, 2)]] * 2


# Heads and stacks, against plain Python over Fraction

ADMITS = {
    "none": lambda i, j: True,
    "future": lambda i, j: j <= i,
    "strict-future": lambda i, j: j < i,
    "past": lambda i, j: j >= i,
    "strict-past": lambda i, j: j > i,
}
HARD = ("average-hard", "leftmost-hard", "rightmost-hard")


def times(W, x):
    return [sum(Fraction(a) * b for a, b in zip(row, x, strict=True)) for row in W.tolist()]


def plus(x, y):
    return [a + b for a, b in zip(x, y, strict=True)]


def attended(head, z):
    """The definition of a hard head."""
    keys = [plus(times(head.W_K, x), head.b_K.tolist()) for x in z]
    values = [plus(times(head.W_V, x), head.b_V.tolist()) for x in z]
    answer = []
    for i, x in enumerate(z):
        q = plus(times(head.W_Q, x), head.b_Q.tolist())
        dots = {
            j: sum(a * b for a, b in zip(q, keys[j], strict=True))
            for j in range(len(z))
            if ADMITS[head.mask](i, j)
        }
        best = [j for j, dot in dots.items() if dot == max(dots.values())]
        chosen = {"leftmost-hard": best[:1], "rightmost-hard": best[-1:]}.get(head.weighting, best)
        total = [Fraction(0)] * head.W_V.shape[0]
        for j in chosen:
            total = plus(total, [v / len(chosen) for v in values[j]])
        written = total if head.W_O is None else times(head.W_O, total)
        answer.append(plus(written, head.b_O.tolist()))
    return answer


def fed(network, x):
    h = plus(times(network.W_1, x), map(Fraction, network.b_1.tolist()))
    return plus(times(network.W_2, [max(v, 0) for v in h]), map(Fraction, network.b_2.tolist()))


def through(layer, z):
    added = [attended(head, z) for head in layer.heads]
    for each in added:
        z = [plus(x, y) for x, y in zip(z, each, strict=True)]
    if layer.feed_forward is not None:
        z = [plus(x, fed(layer.feed_forward, x)) for x in z]
    return z


def ran(stack, x):
    """A stack by definition: the inputs in their slots, 0 elsewhere, layer after layer."""
    slots = stack.stream.slots
    z = [
        [dict(zip(stack.inputs, row, strict=True)).get(s, Fraction(0)) for s in slots] for row in x
    ]
    for layer in stack.layers:
        z = through(layer, z)
    return [[row[slots.index(slot)] for slot in stack.outputs] for row in z]


def drawn_head(source, d, d_out=None):
    d_key, d_value = source.randint(1, 2), source.randint(1, 2)

    def matrix(rows, columns):
        return [[source.randint(-2, 2) for _ in range(columns)] for _ in range(rows)]

    with_output = {"W_V": matrix(d_value, d), "W_O": matrix(d_out or d, d_value)}
    values = with_output if source.random() < 0.7 else {"W_V": matrix(d_out or d, d)}
    sizes = {"b_Q": d_key, "b_K": d_key, "b_V": len(values["W_V"]), "b_O": d_out or d}
    biases = {name: matrix(1, size)[0] for name, size in sizes.items() if source.random() < 0.5}
    return Attention(
        **biases,
        W_Q=matrix(d_key, d),
        W_K=matrix(d_key, d),
        **values,
        weighting=source.choice(HARD),
        mask=source.choice(sorted(ADMITS)),
    )


def drawn_layer(source, d, heads=None):
    def matrix(rows, columns):
        return [[source.randint(-2, 2) for _ in range(columns)] for _ in range(rows)]

    network = FeedForward(W_1=matrix(3, d), b_1=matrix(1, 3)[0], W_2=matrix(d, 3), b_2=[1] * d)
    count = source.randint(0, 2) if heads is None else heads
    return Layer(
        tuple(drawn_head(source, d) for _ in range(count)),
        network if source.random() < 0.7 else None,
    )


def drawn_stack(source, slots, inputs, outputs, heads=None):
    layers = tuple(drawn_layer(source, len(slots), heads) for _ in range(source.randint(1, 2)))
    return LayerStack(Stream(slots), inputs, layers, outputs)


def drawn_input(source, n, d):
    return [
        [Fraction(source.randint(-3, 3), source.randint(1, 2)) for _ in range(d)] for _ in range(n)
    ]


def test_a_drawn_stack_is_what_the_definition_says():
    for seed in range(8):
        source = random.Random(seed)
        stack = drawn_stack(source, ("a", "b", "c"), ("c", "a"), ("b", "c", "b"))
        x = drawn_input(source, 1 + seed % 4, 2)
        assert exact(stack, x) == ran(stack, x)


def test_serial_gives_the_second_what_the_first_gives():
    for seed in range(12):
        source = random.Random(seed)
        first = drawn_stack(source, ("a", "b", "c"), ("c", "a"), ("b", "a"))
        # slots of the same names, in another order, and fresh ones
        second = drawn_stack(source, ("c", "d", "a", "then c"), ("a", "d"), ("c", "a", "then c"))
        both = serial(first, second)
        x = drawn_input(source, 1 + seed % 4, 2)
        assert exact(both, x) == ran(second, ran(first, x))
        assert both.stream.width == 3 + 2 and len(both.layers) == len(first.layers + second.layers)
        assert both.inputs == first.inputs and both.width_out == 3


def test_serial_of_three_is_one_after_the_other():
    source = random.Random(7)
    parts = [drawn_stack(source, ("x", "y"), ("x",), ("y",)) for _ in range(3)]
    x = drawn_input(source, 4, 1)
    expected = ran(parts[2], ran(parts[1], ran(parts[0], x)))
    assert exact(serial(serial(*parts[:2]), parts[2]), x) == expected
    assert exact(serial(parts[0], serial(*parts[1:])), x) == expected


def stack_of(*outputs, inputs=("x",), layers=()):
    return LayerStack(Stream(("x", "y")), inputs, layers, outputs)


def test_serial_refuses_what_does_not_fit():
    with pytest.raises(ShapeMismatch, match="2 given, 1 read"):
        serial(stack_of("x", "y"), stack_of("x"))
    with pytest.raises(InvalidValue, match="one input"):
        serial(stack_of("y", "y"), stack_of("x", inputs=("x", "y")))
    normed = Layer((), FeedForward(W_1=np.eye(2), W_2=np.eye(2)), post_norms=(None, NORM))
    for pair in (
        (stack_of("x", layers=(normed,)), stack_of("x")),
        (stack_of("x"), stack_of("x", layers=(normed,))),
    ):
        with pytest.raises(InvalidValue, match="must have no layer norm"):
            serial(*pair)


NORM = LayerNorm(gain=[1, 1])


def drawn_transformer(source, slots, words, depth, **specials):
    """Over a and b, with a read-out of the last vector that shows every slot."""
    stream = Stream(slots)
    vectors = {s: {slot: source.randint(-2, 2) for slot in slots} for s in words}
    return Transformer(
        stream=stream,
        embedding=Embedding.of(stream, vectors, positions={slots[-1]: "i"}, **specials),
        layers=tuple(drawn_layer(source, len(slots)) for _ in range(depth)),
        read_out=Binary(W_out=stream.reading(slots[0])),
    )


def final(model, x):
    return model.run(x, "exact").streams[-1][1].tolist()


def test_parallel_holds_the_streams_of_both_side_by_side():
    for seed in range(4):
        source = random.Random(seed)
        given = {"front": [BOS]} if seed % 2 else {"back": [EOS]}
        special = [BOS if seed % 2 else EOS]
        one = drawn_transformer(source, ("p", "q"), ["a", "b", *special], 1 + seed % 2, **given)
        other = drawn_transformer(source, ("q", "r", "s"), [*special, "b", "a"], 2, **given)
        for first, second in ((one, other), (other, one)):
            both = parallel(first, second)
            slots = [f"first {s}" for s in first.stream.slots]
            assert both.stream.slots == (*slots, *(f"second {s}" for s in second.stream.slots))
            assert len(both.layers) == 2
            for x in ("", "a", "ba", "abb"):
                top, bottom = final(first, x), final(second, x)
                # by definition, not by the model: embed, then layer after layer
                by_hand = [
                    list(map(Fraction, row)) for row in first.embedding([x], EXACT)[0].tolist()
                ]
                for layer in first.layers:
                    by_hand = through(layer, by_hand)
                assert top == by_hand
                assert final(both, x) == [u + v for u, v in zip(top, bottom, strict=True)]
                assert both(x, "exact") == first(x, "exact")
            joint = Binary(W_out=both.stream.reading(f"second {second.stream.slots[0]}"))
            seen = parallel(first, second, joint)
            assert all(seen(x, "exact") == second(x, "exact") for x in ("", "ab", "bba"))


def with_positions(positions):
    return Transformer(
        stream=Stream(("x", "y")),
        embedding=Embedding(symbols=("a", "b"), vectors=[[1, 2], [3, 4]], positions=positions),
        layers=(),
        read_out=Binary(W_out=[[1, 0]]),
    )


def test_parallel_keeps_the_positions_of_either():
    named, none = with_positions(PositionFunctions((None, "i/n"))), with_positions(None)
    table = with_positions(PositionTable(vectors=[[5, 6], ["1/7", 8], [9, 10]]))
    sinusoids = with_positions(Sinusoids(2))
    for first, second in itertools.product((named, none, table, sinusoids), repeat=2):
        both = parallel(first, second)
        for x in ("a", "bab"):
            pairs = zip(final(first, x), final(second, x), strict=True)
            assert final(both, x) == [u + v for u, v in pairs]
    assert parallel(none, none).embedding.positions is None
    joint = parallel(named, table).embedding.positions
    assert (joint.width, joint.max_length, joint.nonzero, joint.knows_n) == (4, 3, 6, True)
    assert not parallel(sinusoids, table).embedding.positions.knows_n
    with pytest.raises(InputTooLong, match="N = 3"):
        parallel(sinusoids, table)("abab")


def test_parallel_is_built_for_the_shorter_length():
    source = random.Random(1)
    one = drawn_transformer(source, ("p", "q"), ["a", BOS], 1, front=[BOS])
    short, long = replace(one, max_length=5), replace(one, max_length=9)
    assert parallel(short, long).max_length == parallel(one, short).max_length == 5
    assert parallel(one, one).max_length is None


def test_parallel_refuses_what_does_not_fit():
    source = random.Random(0)
    one = drawn_transformer(source, ("p", "q"), ["a", "b", BOS], 1, front=[BOS])
    others = {
        "alphabets": drawn_transformer(source, ("p",), ["a", "c", BOS], 1, front=[BOS]),
        "symbols in front": drawn_transformer(source, ("p",), ["a", "b", EOS], 1, back=[EOS]),
        "symbols at the back": drawn_transformer(
            source, ("p",), ["a", "b", BOS, EOS], 1, front=[BOS], back=[EOS]
        ),
    }
    for what, other in others.items():
        for pair in ((one, other), (other, one)):
            with pytest.raises(InvalidValue, match=f"same {what}"):
                parallel(*pair)
    network = FeedForward(W_1=np.eye(2), W_2=np.eye(2))
    normed = replace(one, layers=(Layer((), network, post_norms=(None, NORM)),))
    for other in (normed, replace(one, final_norm=NORM)):
        for pair in ((one, other), (other, one)):
            with pytest.raises(InvalidValue, match="must have no layer norm"):
                parallel(*pair)


def test_split_heads_is_the_same_function_with_one_head_a_layer():
    for seed in range(8):
        source = random.Random(seed)
        slots = ("a", "b", "c")
        stack = drawn_stack(source, slots, ("a", "b"), ("c", "a"), heads=source.randint(2, 3))
        apart = split_heads(stack)
        assert all(len(layer.heads) <= 1 for layer in apart.layers)
        heads = sum(len(layer.heads) for layer in stack.layers)
        assert sum(len(layer.heads) for layer in apart.layers) == heads
        x = drawn_input(source, 1 + seed % 4, 2)
        assert exact(apart, x) == ran(stack, x)
        # every slot of its own holds what it would
        own = LayerStack(apart.stream, apart.inputs, apart.layers, slots)
        kept = LayerStack(stack.stream, stack.inputs, stack.layers, slots)
        assert exact(own, x) == ran(kept, x)


def test_split_heads_leaves_single_heads_alone_and_refuses_norms():
    source = random.Random(3)
    stack = drawn_stack(source, ("a", "b"), ("a",), ("b",), heads=1)
    assert split_heads(stack).stream == stack.stream
    assert len(split_heads(stack).layers) == len(stack.layers)
    network = FeedForward(W_1=np.eye(2), W_2=np.eye(2))
    normed = Layer((), network, pre_norms=(None, NORM))
    with pytest.raises(InvalidValue, match="must have no layer norm"):
        split_heads(stack_of("x", layers=(normed,)))


def test_a_moved_layer_reads_by_one_matrix_and_writes_by_another():
    for seed in range(8):
        source = random.Random(seed)
        layer = drawn_layer(source, 2, heads=1 + seed % 2)
        R = [[source.randint(-2, 2) for _ in range(3)] for _ in range(2)]
        L = [[source.randint(-2, 2) for _ in range(2)] for _ in range(3)]
        z = drawn_input(source, 3, 3)
        expected = z
        read = [times(np.array(R), x) for x in z]
        for head in layer.heads:
            written = [times(np.array(L), y) for y in attended(head, read)]
            expected = [plus(x, y) for x, y in zip(expected, written, strict=True)]
        if layer.feed_forward is not None:
            read = [times(np.array(R), x) for x in expected]
            written = [times(np.array(L), fed(layer.feed_forward, x)) for x in read]
            expected = [plus(x, y) for x, y in zip(expected, written, strict=True)]
        assert exact(move(layer, R, L), z) == expected


def test_tie_break_makes_average_hard_attention_unique():
    """With integer dot products the gap is 1, and γ = 1 does."""
    for seed in range(24):
        source = random.Random(seed)
        head = drawn_head(source, 2, d_out=2)
        last = seed % 2
        kept = {each.name: getattr(head, each.name) for each in fields(head) if each.init}
        unique = Attention(**{**kept, "weighting": "rightmost-hard" if last else "leftmost-hard"})
        n = 1 + seed % 6
        z = [[Fraction(source.randint(-1, 1)) for _ in range(2)] for _ in range(n)]
        j = range(1, n + 1)
        for terms in ([Fraction(k, n) for k in j], [Fraction(-1, k) for k in j]):
            given = [[*x, 1, t if last else -t] for x, t in zip(z, terms, strict=True)]
            broken = tie_break(head)
            assert broken.weighting == "average-hard" and broken.mask == head.mask
            assert exact(broken, given) == attended(unique, z)


def test_soften_multiplies_queries_and_nothing_else():
    source = random.Random(2)
    head = drawn_head(source, 3)
    soft = soften(head, Fraction(7, 2))
    assert soft.weighting == "softmax" and soft.mask == head.mask
    assert soft.W_Q.tolist() == (np.array(head.W_Q) * 3.5).tolist()
    assert np.any(head.b_Q) and soft.b_Q.tolist() == (head.b_Q * 3.5).tolist()
    for name in ("W_K", "W_V", "b_K", "b_V", "b_O"):
        assert getattr(soft, name).tolist() == getattr(head, name).tolist()
    assert (soft.W_O is None) == (head.W_O is None)
    for x in (drawn_input(source, 5, 3), drawn_input(source, 2, 3)):
        z = EXACT.array(x)
        sharper = soft.scores(z, EXACT).tolist()
        assert sharper == [
            [Fraction(7, 2) * s for s in row] for row in head.scores(z, EXACT).tolist()
        ]


def test_a_head_that_is_moved_and_one_with_a_tie_break_keep_their_scores():
    source = random.Random(7)
    head = Attention(W_Q=[[1, 2]], W_K=[[3, -1]], W_V=[[1, 0]], W_O=[[1]], b_Q=[4], b_K=[5])
    routed = route(head, Stream(("p", "q")), ["q", "p"], ["q"])
    for z in (drawn_input(source, 3, 2), drawn_input(source, 5, 2)):
        scores = head.scores(EXACT.array(z), EXACT).tolist()
        swapped = EXACT.array([x[::-1] for x in z])
        assert routed.scores(swapped, EXACT).tolist() == scores
        marked = EXACT.array([[*x, 1, 2] for x in z])
        added = tie_break(head).scores(marked, EXACT).tolist()
        assert added == [[s + 2 for s in row] for row in scores]


def test_units_add_what_each_of_them_says():
    stream = Stream(("x", "y", "z"))
    network = units(
        stream,
        ({"x": 1, "y": -2}, THIRD, "z"),
        ("y", -1, {"x": 5, "z": -1}),
        ({"z": THIRD}, 0, {"y": THIRD}),
    )
    for x in drawn_input(random.Random(4), 12, 3):
        a, b, c = x
        first, second, third = max(a - 2 * b + THIRD, 0), max(b - 1, 0), max(THIRD * c, 0)
        assert exact(network, x) == [5 * second, THIRD * third, first - second]


def test_attend_adds_forms_of_where_it_attends():
    stream = Stream(("p", "x", "y", "out"))
    head = attend(
        stream,
        [{"x": 2, "y": THIRD}, "y"],
        ["out", {"x": -1, "out": 1}],
        query=["p", {"x": 1, "p": -1}],
        key=[{"y": 1}, "p"],
        weighting="rightmost-hard",
        mask="past",
    )
    z = drawn_input(random.Random(9), 5, 4)
    expected = []
    for i, (p, x, _, _) in enumerate(z):
        dots = {j: p * z[j][2] + (x - p) * z[j][0] for j in range(i, 5)}
        j = max(k for k in dots if dots[k] == max(dots.values()))
        expected.append([0, -z[j][2], 0, 2 * z[j][1] + THIRD * z[j][2] + z[j][2]])
    assert exact(head, z) == expected


def test_what_is_no_model_of_the_kind_is_refused():
    model = tf.recipe("dyck-1").build(max_length=3)
    head = tf.recipe("mean").build()
    stack = tf.recipe("first").build()
    for call in (
        lambda: tf.serial(model, model),
        lambda: tf.parallel(head, head),
        lambda: tf.split_heads(head),
        lambda: tf.soften(stack, 4),
        lambda: tf.tie_break(stack),
    ):
        with pytest.raises(InvalidValue, match="must be of the kind"):
            call()
    for sharpness in (0, -1):
        with pytest.raises(InvalidValue, match="positive"):
            tf.soften(head, sharpness)


def test_a_head_between_linear_maps():
    head = tf.recipe("prefix-mean").build(width=1)
    stream = Stream(("x", "y", "sum"))
    routed = route(head, stream, read=[{"x": 1, "y": 2}], write=["sum"])
    assert exact(routed, [[1, 1, 0], [3, 2, 9]]) == [[0, 0, 3], [0, 0, 5]]
    with pytest.raises(InvalidValue, match="shift must be 0 for a head"):
        route(head, stream, ["x"], ["sum"], shift=1)


def test_serial_finds_free_names():
    first = LayerStack(Stream(("p", "then x")), ("p",), (), ("p",))
    second = LayerStack(Stream(("q", "x", "then x")), ("q",), (), ("q",))
    assert serial(first, second).stream.width == 4


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda h, s: tf.route(h, s, ["a", "b"], ["a"]), "as many columns as the right one has"),
        (lambda h, s: tf.route(h, s, ["a"], ["a", "b"]), "as many columns as the right one has"),
        (lambda h, s: between(h, [[1, 2], [3, 4]], [[1]]), "as many columns as the right one has"),
        (lambda h, s: between(h, 5, [[1]]), "as many columns as the right one has"),
        (lambda h, s: tf.soften(h, [1, 2]), "sharpness 1/τ must be a positive number"),
        (lambda h, s: tf.soften(h, "much"), "sharpness 1/τ must be a positive number"),
    ],
)
def test_maps_that_do_not_fit_a_head_are_refused(ask, words):
    head = tf.Attention(W_Q=[[1]], W_K=[[1]], W_V=[[1]])
    with pytest.raises(tf.TransformistError, match=words):
        ask(head, tf.Stream(("a", "b")))
