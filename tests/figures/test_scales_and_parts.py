"""Colours, numbers, nodes and parts of figures, against the model or the run that they show."""

import numpy as np
import pytest

import transformist as tf
from transformist import figures
from transformist.figures.circuit_blocks import WRITE, blocks_of
from transformist.figures.matrix_cells import cell_text
from transformist.programs import PROGRAMS

pytestmark = pytest.mark.hosts
pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra `figures`)")

DYCK = tf.recipe("dyck-1").build(max_length=1000)
LETTERS = tf.recipe("induction-most-recent").build(
    max_length=8, alphabet="ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)


def nodes(model, block=0):
    return {node.label: node for node in blocks_of(model)[block].nodes}


def texts(axes):
    return [each.get_text() for each in axes.texts]


def model_of(vectors, slots, **options):
    symbols = [f"s{k}" for k in range(len(vectors))]
    return tf.Transformer(
        stream=tf.Stream(slots),
        embedding=tf.Embedding(symbols=symbols, vectors=vectors),
        layers=(),
        **{"read_out": tf.Binary(W_out=[[1] * len(slots)]), **options},
    )


@pytest.mark.parametrize("interval", [(-2, 2), (-0.02, 0.02), (-1, 3)])
def test_the_largest_difference_is_found_where_it_is_narrow(interval):
    recipe = tf.recipe("relu-by-gelu")
    x = np.linspace(-0.02, 0.02, 40001)
    real = np.abs(recipe.build()(x[:, None])[:, 0] - np.maximum(x, 0)).max()
    label = figures.function(recipe, interval=interval).get_label()
    told = float(label.split("largest difference ")[1].split()[0])
    assert told == pytest.approx(real, rel=0.01) and "at the points drawn" in label


def test_points_that_are_added_are_inputs_of_the_claim():
    # Within (0, ε) the ramp differs by up to 1, and the claim takes no input there.
    for interval in ((-2, 2), (-0.1, 0.3)):
        label = figures.function(tf.recipe("greater-than-zero"), interval=interval).get_label()
        assert "largest difference 0 at the points drawn" in label


def test_sinusoids_write_every_slot():
    model = tf.recipe("original-transformer").build()
    assert {use.wire for use in nodes(model)["positions"].uses} == set(model.stream.slots)


@pytest.mark.parametrize(
    ("positions", "filled"),
    [
        (tf.model.PositionFunctions(("i", None, "i/n")), (0, 2)),
        (tf.model.PositionTable(vectors=[[0, 1, 0], [0, 0, 0]]), (1,)),
        (tf.model.Sinusoids(3), (0, 1, 2)),
        (tf.model.PositionFlags(places=(2,), values=[3]), (0,)),
        (tf.model.PositionFlags(places=(2,), values=[0]), ()),
        (
            tf.model.PositionsSideBySide(
                (
                    tf.model.PositionFunctions((None, "i")),
                    tf.model.PositionTable(vectors=[[2], [0]]),
                )
            ),
            (1, 2),
        ),
    ],
)
def test_filled_coordinates_are_those_with_numbers(positions, filled):
    assert positions.filled == filled
    assert np.flatnonzero((positions(2) != 0).any(axis=0)).tolist() == list(filled)


def test_symbols_with_different_numbers_are_different_nodes():
    for model, several in (
        (DYCK, {"(", ")", "BOS"}),
        (model_of([[1, 0], [-1e-4, 0], [1, 0]], ("p", "q")), {"s0 s2", "s1"}),
    ):
        assert set(nodes(model)) == several
    assert [nodes(DYCK)[each].uses[0].sign for each in "()"] == [1, -1]


def test_a_node_of_many_symbols_says_that_each_writes_some_and_no_more():
    found = nodes(LETTERS)
    assert set(found) == {"26 symbols: A … Z", "BOS"}
    assert found["26 symbols: A … Z"].is_some and not found["BOS"].uses
    label = LETTERS.plot().get_label()
    assert "embedding, each of 26 symbols: A … Z writes some of is A, is B" in label
    assert "BOS uses no slot" in label
    # Many symbols that write the same slot are one node that claims no less.
    same = nodes(model_of([[k + 1, 0] for k in range(20)], ("p", "q")))
    ((_, node),) = same.items()
    assert not node.is_some and [use.wire for use in node.uses] == ["p"]


def test_numbers_that_are_read_have_names():
    labels = set(nodes(tf.recipe("original-transformer").build(), block=-1))
    assert labels == {"16 labels: answer 0 … answer 15"}


def test_a_circuit_in_part_keeps_the_read_out_and_marks_what_is_cut():
    label = LETTERS.plot().get_label()
    assert "64 of 78 slots" in label and "read-out" in label
    axes = LETTERS.plot().axes[0]
    marks = [each for each in texts(axes) if each.startswith("+") and each[1:].isdigit()]
    wires = {each.get_text() for each in axes.texts if each.get_ha() == "right"}
    hidden = [
        len({use.wire for use in node.uses} - wires)
        for block in blocks_of(LETTERS)
        for node in block.nodes
    ]
    assert marks == [f"+{count}" for count in hidden if count]
    deep = tf.recipe("dyck-k-d").build(kinds=8, depth=12).plot()
    assert "60 of 78 nodes" in deep.get_label() and "read-out, answer reads" in deep.get_label()


def test_no_node_is_drawn_without_a_wire_that_it_uses():
    size = 90
    model = model_of(
        np.eye(size),
        tuple(f"x{k}" for k in range(size)),
        read_out=tf.RealVector(W_out=np.eye(size)),
    )
    figure = model.plot()
    axes = figure.axes[0]
    wires = {each.get_text() for each in axes.texts if each.get_ha() == "right"}
    for block in figure.get_label().split("read-out")[1:]:
        assert any(wire in block for wire in wires)


def colours(figure):
    """The share of full colour of the first cell of each row, by the name of the row."""
    found = {}
    for axes in figure.axes:
        names = [each.get_text() for each in axes.get_yticklabels()]
        (image,) = axes.images
        found |= dict(zip(names, np.abs(image.get_array()).max(axis=1).tolist(), strict=True))
    return found


def test_residues_look_like_zero_and_the_scale_is_said():
    embedding = [[1, 1e-175, 1e-4]]
    trace = model_of(embedding, ("whole", "residue", "small")).run(["s0"])
    figure = trace.plot()
    shares = colours(figure)
    assert shares["whole"] == 1 and shares["residue"] < 1e-100
    assert shares["small"] == pytest.approx(1e-4 * 2**10)
    shown = [each for axes in figure.axes for each in texts(axes)]
    assert shown == ["1", "≈0", "0.0001"]
    scale = "the largest magnitude of the slot in the run, but at least 2^-10"
    assert scale in figure.get_label()
    assert any(scale in each.get_text() for each in figure.texts)
    weights = figures.weights(DYCK)
    assert "Full colour: the largest magnitude of the matrix" in weights.get_label()


@pytest.mark.parametrize(
    ("value", "text"),
    [(2048, "2048"), (-2048, "-2048"), (-2 / 3, "-0.667"), (2 / 3, "0.667"), (65504, "65504"),
     (-0.000244140625, "-0.000244"), (1e-9, "≈0"), (-123456.7, "-1.23e5"), (float("inf"), "inf"),
     (1234.25, "1234.2"), (-1e100, "-1e100")],
)  # fmt: skip
def test_a_cell_has_three_digits_and_whole_numbers_whole(value, text):
    assert cell_text(float(value), 1) == text


def test_the_title_of_the_first_step_stands_beside_the_symbols():
    figure = model_of([[1, 2, 3]], ("a", "b", "c")).run(["s0"]).plot()
    (title,) = [each for each in figure.texts if each.get_text() == "embedding"]
    left = figure.axes[0].get_position().x0 * figure.get_size_inches()[0]
    assert left - title.get_position()[0] * figure.get_size_inches()[0] > 9 * 0.068


def test_matrices_go_on_in_a_row_below():
    wide, high = figures.weights(tf.recipe("original-transformer").build()).get_size_inches()
    assert wide < 26 and high < 100


def ticks(figure):
    return [each.get_text() for each in figure.axes[-1].get_xticklabels()]


def test_a_long_run_keeps_both_ends_and_says_so():
    trace = DYCK.run("()" * 400)
    figure = trace.plot()
    assert ticks(figure) == [str(k) for k in [*range(24), *range(793, 801)]]
    assert "32 of 801 positions (0–23, 793–800)" in figure.get_label()
    label = trace.plot_attention(layer=0, head=0).get_label()
    assert "48 of 801 positions (0–35, 789–800)" in label and "row 800 ())" in label


def test_positions_can_be_chosen():
    trace = DYCK.run("()" * 400)
    figure = trace.plot(positions=[800, 3, 4])
    assert ticks(figure) == ["3", "4", "800"]
    assert "3 of 801 positions (3, 4, 800)" in figure.get_label()
    told = trace.plot_attention(layer=0, head=0, positions=range(799, 801)).get_label()
    assert "row 799" in told and "row 0 (BOS)" not in told.split("on keys that are not.")[1][:20]
    assert "Queries that are drawn have up to 0.999 of their weight on keys that are not." in told
    for draw in (trace.plot, lambda **k: trace.plot_attention(layer=0, head=0, **k)):
        for wrong, words in (([], "at least one"), ([801], "from 0 to 800"), ("12", "at least one"),
                             (3, "at least one"), ([1.5], "whole number")):  # fmt: skip
            with pytest.raises(tf.TransformistError, match=words):
                draw(positions=wrong)


def test_a_part_without_weight_elsewhere_says_so():
    trace = DYCK.run("()" * 40)
    told = trace.plot_attention(layer=0, head=0, positions=range(9)).get_label()
    assert "No query that is drawn has weight on keys that are not." in told


def test_every_query_has_an_arc_and_weights_without_one_are_counted():
    trace = DYCK.run("()" * 20)
    figure = trace.plot_attention(layer=0, head=0)
    starts = {round(line.get_xdata()[0]) for line in figure.axes[-1].lines}
    assert starts == set(range(41))
    # Even weights have an arc each; other small weights have none, and the figure says how many.
    head = tf.Attention(W_Q=[[1]], W_K=[[1]], W_V=[[1]], mask="none")
    model = tf.Transformer(
        stream=tf.Stream(("p",)),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=[[0], [2]]),
        layers=(tf.Layer(heads=(head,)),),
        read_out=tf.Binary(W_out=[[1]]),
    )
    trace = model.run("b" + "a" * 9)
    small = int((trace.attention(layer=0, head=0)[0] < 1 / 32).sum())
    figure = trace.plot_attention(layer=0, head=0)
    said = f"No arc for {small} weights below 1/32"
    assert small == 9 and said in figure.get_label()
    assert any(said in each.get_text() for each in figure.texts)


def test_long_labels_are_cut_where_they_are_equal():
    trace = tf.compile(PROGRAMS["dyck-k-d"], max_length=8).run("([])")
    figure = trace.plot()
    for axes in figure.axes:
        names = [each.get_text() for each in axes.get_yticklabels()]
        assert len(names) == len(set(names))


def test_what_was_changed_is_in_every_figure_and_text():
    ablated = tf.ablate(DYCK, head=(1, 0))
    said = "ablated: head (1, 0) by zero"
    trace = ablated.run("()")
    for each in (
        repr(ablated), repr(trace), ablated._repr_html_(), trace._repr_html_(),
        ablated.plot().get_label(), trace.plot().get_label(),
        trace.plot_attention(layer=0, head=0).get_label(),
    ):  # fmt: skip
        assert said in each
    for figure in (ablated.plot(), trace.plot(), trace.plot_attention(layer=0, head=0)):
        assert any(said in text for axes in (figure, *figure.axes) for text in texts(axes))
    assert "ablated" not in repr(DYCK) + DYCK._repr_html_() + DYCK.plot().get_label()
    patched = DYCK.run("(())", patch={(2, 2, "violation"): 1})
    said = "patched: violation at position 2 after layer 0 feed-forward"
    for each in (repr(patched), patched._repr_html_(), patched.plot().get_label()):
        assert said in each
    assert "patched" not in repr(DYCK.run("(())"))


def test_a_certificate_names_sizes_and_slots():
    for arithmetic in ("float32", "float16"):
        label = tf.certify(DYCK, arithmetic).plot().get_label()
        assert "layer 1 unit 0: accept: the error of a comparison" in label
    figure = tf.certify(DYCK, "float16").plot()
    assert " of 65504" in figure.get_label()
    assert "size or count" in figure.axes[0].get_xlabel()


def test_a_writer_is_known_by_its_sign():
    assert all(use.role == WRITE for use in nodes(DYCK)["("].uses)
