"""Ablation, patches and differences of traces, from their definitions."""

import dataclasses
import warnings
from fractions import Fraction as F

import numpy as np
import pytest

import transformist as tf
from transformist.errors import NothingChanged, TransformistError
from transformist.model import BOS, PositionFunctions, Stream
from transformist.programs import PROGRAMS

INPUTS = ["(())", ")(", "()()", ""]


def dyck():
    return tf.recipe("dyck-1").build(max_length=4)


def two_heads(seed=0):
    """A layer of two heads and a network, a layer with pre- and post-norms, biases everywhere."""
    draw = np.random.default_rng(seed)
    stream = Stream(("a", "b", "c"))

    def numbers(*shape):
        return (draw.integers(-4, 5, shape) / 4).tolist()

    def head():
        return tf.Attention(
            W_Q=numbers(2, 3), W_K=numbers(2, 3), W_V=numbers(2, 3), W_O=numbers(3, 2),
            b_V=numbers(2), b_O=numbers(3), weighting="average-hard", mask="future",
        )  # fmt: skip

    def network():
        return tf.FeedForward(W_1=numbers(5, 3), b_1=numbers(5), W_2=numbers(3, 5), b_2=numbers(3))

    def norm():
        return tf.LayerNorm(gain=numbers(3), bias=numbers(3), epsilon=1)

    plain = tf.Layer((head(), head()), network())
    normed = tf.Layer((head(),), network(), (norm(), norm()), (None, norm()))
    return tf.Transformer(
        stream=stream,
        embedding=tf.Embedding(
            symbols=("(", ")", BOS),
            vectors=numbers(3, 3),
            front=(BOS,),
            positions=PositionFunctions(("i/n", None, "i")),
        ),
        layers=(plain, normed),
        read_out=tf.Binary(W_out=numbers(1, 3), b_out=[0]),
    )


def additions(model, x, arithmetic="float64"):
    """What every head, every hidden unit and the embedding add, from the streams of a run."""
    trace = model.run(x, arithmetic)
    streams, found = iter(z for _, z in trace.streams), {}
    z = next(streams)
    found["embedding"] = z
    for number, layer in enumerate(model.layers):
        for index, head in enumerate(layer.heads):
            norm = layer.pre_norms[0]
            found["head", number, index] = head(z if norm is None else norm(z))
        z = next(streams)
        norm, network = layer.pre_norms[1], layer.feed_forward
        read = z if norm is None else norm(z)
        hidden = np.maximum(read @ network.W_1.T + network.b_1, 0)
        for unit in range(len(network.W_1)):
            found["unit", number, unit] = np.outer(hidden[:, unit], network.W_2[:, unit])
        found["network", number] = hidden @ network.W_2.T + network.b_2
        z = next(streams)
    return found


def mean_of(model, part):
    rows = np.concatenate([additions(model, x)[part] for x in INPUTS])
    return sum(rows) / len(rows)


@pytest.mark.parametrize("by", ["zero", "mean"])
@pytest.mark.parametrize("make", [dyck, two_heads])
def test_an_ablated_part_adds_a_constant_and_the_others_what_they_did(make, by):
    model = make()
    inputs = INPUTS if by == "mean" else None
    for part in additions(model, "()"):
        if part[0] not in ("head", "unit"):
            continue
        kind, layer, number = part
        changed = tf.ablate(model, by=by, inputs=inputs, **{kind: (layer, number)})
        constant = mean_of(model, part) if by == "mean" else np.zeros(model.width)
        if kind == "head":
            given = changed.layers[layer].heads[number](additions(model, "())")["embedding"])
            assert np.allclose(given, constant, atol=1e-12)
            same = [h for k, h in enumerate(model.layers[layer].heads) if k != number]
            kept = [h for k, h in enumerate(changed.layers[layer].heads) if k != number]
            assert same == kept
        else:
            z = additions(model, "())")["embedding"]
            network, other = (m.layers[layer].feed_forward for m in (model, changed))
            hidden = np.maximum(z @ network.W_1.T + network.b_1, 0)[:, number]
            removed = np.outer(hidden, network.W_2[:, number])
            assert np.allclose(other(z), network(z) - removed + constant, atol=1e-12)


@pytest.mark.parametrize("by", ["zero", "mean"])
@pytest.mark.parametrize("make", [dyck, two_heads])
def test_an_ablated_slot_gets_constants(make, by):
    model = make()
    inputs = INPUTS if by == "mean" else None
    means = {
        part: mean_of(model, part) if by == "mean" else np.zeros(model.width)
        for part in additions(model, "()")
    }
    for column, slot in enumerate(model.stream.slots):
        changed = tf.ablate(model, slot=slot, by=by, inputs=inputs)
        added = additions(changed, "(()")
        for part in ("embedding", *(("network", k) for k in range(len(model.layers)))):
            assert np.allclose(added[part][:, column], means[part][column], atol=1e-12)
        heads = [part for part in added if part[0] == "head"]
        assert heads
        for part in heads:
            assert np.allclose(added[part][:, column], means[part][column], atol=1e-12)


def test_a_mean_is_over_every_row_of_every_input():
    model = dyck()
    changed = tf.ablate(model, slot="sign", by="mean", inputs=["(((", ""], arithmetic="exact")
    # Four rows of "(((" with BOS, and one of the empty string: three of them are 1.
    assert set(changed.run("))", "exact")["sign"]) == {F(3, 5)}


@pytest.mark.filterwarnings("ignore::transformist.errors.NothingChanged")
@pytest.mark.parametrize("arithmetic", ["exact", "float16", "interval"])
def test_a_patch_with_the_same_numbers_changes_nothing(arithmetic):
    model = dyck()
    trace = model.run("())(", arithmetic)
    for after in range(len(trace.streams)):
        patched = tf.patch(model, "())(", source=trace, after=after, arithmetic=arithmetic)
        assert trace.diff(patched) == ()
        assert patched.answer == trace.answer


@pytest.mark.parametrize("after", range(5))
def test_a_whole_patch_goes_on_as_its_source(after):
    model = two_heads()
    x, y = "())(", ")()("
    trace, source, patched = model.run(x), model.run(y), tf.patch(model, x, source=y, after=after)
    for number, ((_, z), (_, same)) in enumerate(zip(source.streams, patched.streams, strict=True)):
        wanted = z if number >= after else trace.streams[number][1]
        assert np.array_equal(same, wanted)


@pytest.mark.parametrize("name", ["induction-most-recent", "dyck-k-d"])
def test_a_whole_patch_of_a_compiled_model_goes_on_as_its_source(name):
    model = tf.compile(PROGRAMS[name], max_length=5)
    x, y = [symbol * 5 for symbol in model.alphabet[:2]]
    source = model.run(y)
    for after in range(len(source.streams)):
        assert tf.patch(model, x, source=y, after=after).answer == source.answer


def test_a_patch_replaces_one_number_at_its_step_and_position():
    model = dyck()
    place = ("layer 0 attention", 2, "balance")
    plain, changed = model.run("()()", "exact"), model.run("()()", "exact", patch={place: "1/3"})
    first, *rest = plain.diff(changed)
    assert (first.after, first.position, first.slot) == place
    assert (first.value, first.other) == (0, F(1, 3))
    assert {each.after for each in rest} == {name for name, _ in plain.streams[2:]}
    # A head with a future mask hands a change on to later positions only.
    assert min(each.position for each in rest) == 2
    assert changed.values("balance", 1).tolist() == [0, F(1, 2), F(1, 3), F(1, 4), 0]


def test_a_patch_of_a_number_that_a_slot_holds_for_a_time():
    model = tf.compile(PROGRAMS["dyck-k-d"], max_length=4)
    late = next(span for span in model.stream.spans if span.first > 1)
    model.run("()", patch={(late.first, 1, late.name): 0})
    with pytest.raises(TransformistError, match="must hold the number"):
        model.run("()", patch={(late.first - 1, 1, late.name): 0})
    with pytest.raises(TransformistError, match="must hold one number.*reuse=False"):
        tf.ablate(model, slot=late.name)


def test_numbers_of_numpy_are_whole_numbers():
    model, (layer, head) = dyck(), np.array([1, 0])
    assert tf.ablate(model, head=(layer, head)) == tf.ablate(model, head=(1, 0))
    one = np.int64(1)
    assert model.run("()", patch={(one, one, "sign"): 0}).diff(
        model.run("()", patch={(1, 1, "sign"): 0})
    ) == ()  # fmt: skip


def test_nothing_is_said_of_the_margins_of_an_ablated_model():
    model = tf.compile(PROGRAMS["majority"], max_length=4, arithmetic="float16")
    assert model.built_for == "float16"
    assert tf.ablate(model, head=(0, 0)).built_for is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "one of head, unit and slot"),
        ({"head": (0, 0), "slot": "sign"}, "one of head, unit and slot"),
        ({"head": (2, 0)}, "layer 2 of a model with 2"),
        ({"head": (0, 1)}, "head 1 of layer 0, which has 1"),
        ({"head": 0}, "given as .layer, head."),
        ({"head": (0, True)}, "given as .layer, head."),
        ({"unit": (0, -1)}, "given as .layer, unit."),
        ({"slot": "depth"}, "no slot"),
        ({"head": (0, 0), "by": "median"}, "no way to ablate"),
        ({"head": (0, 0), "by": "mean"}, "inputs must come with"),
        ({"head": (0, 0), "inputs": ["()"]}, "inputs must come with"),
        ({"head": (0, 0), "by": "mean", "inputs": []}, "a row over which"),
        ({"head": (0, 0), "by": "mean", "inputs": "()"}, "a list of strings"),
        ({"head": (0, 0), "by": "mean", "inputs": 5}, "a list of strings"),
    ],
)
def test_what_cannot_be_ablated_is_refused(arguments, message):
    with pytest.raises(TransformistError, match=message):
        tf.ablate(dyck(), **arguments)


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ([1], "must map"),
        (0, "must map"),
        ({(0, 1): 0}, "must map"),
        ({("layer 5", 1, "sign"): 0}, "no step"),
        ({(9, 1, "sign"): 0}, "a step must be"),
        ({(0, 3, "sign"): 0}, "position must be a whole number from 0 to 2"),
        ({(0, True, "sign"): 0}, "position must be"),
        ({(0, 1, "sgn"): 0}, "no slot"),
        ({(0, 1, "sign"): [1, 2]}, "must be a number"),
        ({(0, 1, "sign"): float("nan")}, "finite"),
        ({(0, 1, "sign"): "one"}, "numbers"),
    ],
)
def test_what_is_no_patch_is_refused(patch, message):
    with pytest.raises(TransformistError, match=message):
        dyck().run("()", patch=patch)


def test_what_is_no_source_is_refused():
    model = dyck()
    with pytest.raises(TransformistError, match="different lengths"):
        tf.patch(model, "()", source="(((")
    with pytest.raises(TransformistError, match="other slots"):
        tf.patch(model, "()", source=two_heads().run("()"))
    with pytest.raises(TransformistError, match="same slots"):
        model.run("()").diff(two_heads().run("()"))
    with pytest.raises(TransformistError, match="number of positions .* received 3 and 2;"):
        model.run("()").diff(model.run("("))
    slots = tf.recipe("dyck-1").build().stream.slots
    other = dataclasses.replace(model, stream=tf.Stream((*slots[:-1], "other")))
    last = len(slots) - 1
    words = f"first different at number {last}: '{slots[-1]}' and 'other'"
    with pytest.raises(TransformistError, match=words):
        model.run("()").diff(other.run("()"))
    with pytest.raises(TransformistError, match="with a trace"):
        model.run("()").diff("()")


def test_a_trace_of_a_model_with_other_steps_or_symbols_in_front_is_no_source():
    def model(*layers, front=()):
        symbols = ("x", "y", *front)
        return tf.Transformer(
            stream=Stream(("a", "b")),
            embedding=tf.Embedding(symbols=symbols, vectors=[[1, 0]] * len(symbols), front=front),
            layers=layers,
            read_out=tf.Binary(W_out=[[1, 0]], b_out=[0]),
        )

    network = tf.FeedForward(W_1=[[1, 0]], b_1=[0], W_2=[[1], [0]], b_2=[0, 0])
    head = tf.Attention(W_Q=[[0, 0]], W_K=[[0, 0]], W_V=[[1, 0]], W_O=[[0], [1]])
    one = model(tf.Layer((), network), tf.Layer((head,)))
    two = model(tf.Layer((head,), network))
    three = model(tf.Layer((), network), tf.Layer((head,)), front=(BOS,))
    with pytest.raises(TransformistError, match="other steps"):
        tf.patch(one, "xy", source=two.run("yy"), after=1)
    with pytest.raises(TransformistError, match="other symbols in front"):
        tf.patch(one, "xyx", source=three.run("yy"))


def test_positions_are_any_sequence():
    model = dyck()
    taken = [
        tf.patch(model, "()()", source="((((", position=each) for each in (range(2, 4), [2, 3])
    ]
    assert not taken[0].diff(taken[1])


def test_a_patch_of_equal_numbers_names_the_steps_at_which_they_differ():
    model = dyck()
    said = (
        "after embedding are equal in both runs, so that the patch changes nothing; these slots "
        "differ after layer 0 feed-forward, layer 1 attention, layer 1 feed-forward"
    )
    with pytest.warns(NothingChanged, match=said):
        assert tf.patch(model, "(())", source="())(", slot="violation").answer
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        after = "layer 0 feed-forward"
        assert not tf.patch(model, "(())", source="())(", slot="violation", after=after).answer
        # One other number among equal ones is a change.
        tf.patch(model, "(())", source="())(", slot="violation", position=[1, 3], after=after)


def test_several_slots_are_ablated_as_one_after_the_other():
    model = dyck()
    both = tf.ablate(model, slot=["violations", "imbalance"])
    assert both == tf.ablate(tf.ablate(model, slot="violations"), slot="imbalance") != model
    assert both.changes == ("ablated: slots violations, imbalance by zero",)
    with pytest.raises(TransformistError, match="at least one"):
        tf.ablate(model, slot=[])


def test_differences_are_plain_numbers():
    differences = dyck().run("()").diff(dyck().run(")("))
    assert differences and all(
        type(each.value) is type(each.other) is float for each in differences
    )
    assert "np." not in repr(differences)
    exact = dyck().run("()", "exact").diff(dyck().run(")(", "exact"))
    assert str(exact[0].value) == "1"
