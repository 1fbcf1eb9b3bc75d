"""What figures say, against the weights and the numbers of the run."""

import xml.dom.minidom

import numpy as np
import pytest

import transformist as tf
from transformist import figures
from transformist.cli import main
from transformist.figures.canvas import short_labels
from transformist.figures.circuit_blocks import CLEAR, WRITE, blocks_of
from transformist.programs import PROGRAMS

pytestmark = pytest.mark.hosts
pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra `figures`)")

DYCK = tf.recipe("dyck-1").build(max_length=8)


def attending(weighting):
    """Every query asks for the slot q, which only b has."""
    head = tf.Attention(W_Q=[[1, 0]], W_K=[[0, 1]], W_V=np.eye(2), mask="none", weighting=weighting)
    return tf.Transformer(
        stream=tf.Stream(("p", "q")),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=[[1, 0], [1, 1]]),
        layers=(tf.Layer(heads=(head,)),),
        read_out=tf.Binary(W_out=[[1, 0]]),
    )


def test_a_key_that_is_not_drawn_is_named():
    trace = attending("leftmost-hard").run("a" * 40 + "b" + "a" * 20)
    label = trace.plot_attention(layer=0, head=0).get_label()
    assert "row 0 (a) attends most to row 40 (b), 1, not drawn" in label
    assert "attends to nothing" not in label
    assert "Queries that are drawn have up to 1 of their weight on keys that are not." in label


@pytest.mark.parametrize("length", [3, 60])
def test_the_keys_of_most_weight_are_those_of_the_run(length):
    trace = attending("softmax").run("a" * length + "b" * length)
    label = trace.plot_attention(layer=0, head=0).get_label()
    line = np.array(trace.attention(layer=0, head=0)[0], dtype=float)
    assert (
        f"row 0 (a) attends most to rows {length}–{2 * length - 1}, {line.max():.3g} each" in label
    )


def test_equal_weights_have_no_most():
    label = DYCK.run("(())").plot_attention(layer=0, head=0).get_label()
    assert "row 4 ()) attends most to rows 0–4, 0.2 each" in label


def test_a_reused_slot_is_written_only_where_it_then_holds_the_number():
    model = tf.compile(PROGRAMS["dyck-k-d"], max_length=8)
    blocks, stream = blocks_of(model), model.stream
    cleared = 0
    for after, block in enumerate(blocks[:-1]):
        now = {stream.held(slot, after) for slot in range(stream.width)}
        before = {stream.held(slot, max(after - 1, 0)) for slot in range(stream.width)}
        for node in block.nodes:
            for use in node.uses:
                if use.role == WRITE:
                    assert use.wire in now, (block.title, use)
                elif use.role == CLEAR:
                    assert use.wire in before - now, (block.title, use)
                    cleared += 1
    assert cleared
    assert "clears partner = (" in model.plot().get_label()


def test_wires_that_are_used_are_drawn_before_others():
    vectors = np.zeros((2, 70))
    vectors[0, 66] = vectors[1, 67] = 1
    model = tf.Transformer(
        stream=tf.Stream(tuple(f"s{k}" for k in range(70))),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=vectors),
        layers=(),
        read_out=tf.Binary(W_out=[[0] * 66 + [1, 0, 0, 0]]),
    )
    texts = {each.get_text() for each in model.plot().axes[0].texts}
    assert {"s66", "s67"} <= texts and "s0" not in texts


def test_a_final_norm_is_part_of_what_the_read_out_reads():
    model = tf.Transformer(
        stream=tf.Stream(("p", "q")),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=[[1, 0], [0, 2]]),
        layers=(),
        read_out=tf.Binary(W_out=[[1, 0]]),
        final_norm=tf.LayerNorm(gain=[-1, 1], W_N=[[0, 1], [1, 0]], epsilon=1),
    )
    (*_, last) = blocks_of(model)
    assert last.title == "read-out final-norm"
    assert [(use.wire, use.sign) for use in last.nodes[0].uses] == [("q", -1)]


def test_a_post_norm_that_shifts_slots_is_a_node():
    network = tf.FeedForward(W_1=[[1, 0]], W_2=[[0], [1]])
    for norm, nodes in (
        (tf.LayerNorm(gain=[1, 1], epsilon=1), 1),
        (tf.LayerNorm(gain=[1, 1], bias=[0, 1], epsilon=1), 2),
    ):
        model = tf.Transformer(
            stream=tf.Stream(("p", "q")),
            embedding=tf.Embedding(symbols=("a",), vectors=[[1, 0]]),
            layers=(tf.Layer(feed_forward=network, post_norms=(None, norm)),),
            read_out=tf.Binary(W_out=[[1, 0]]),
        )
        assert len(blocks_of(model)[1].nodes) == nodes


@pytest.mark.parametrize("after", ["layer 0 feed-forward", "layer 0 attention"])
def test_a_patched_number_is_shown_where_the_step_writes_nothing(after):
    trace = DYCK.run("(())", patch={(after, 2, "accept"): 1})
    label = trace.plot().get_label()
    step = next(part for part in label.split("; ") if f"{after} gives" in part)
    assert "accept" in step
    plain = DYCK.run("(())").plot().get_label()
    assert "accept" not in next(part for part in plain.split("; ") if f"{after} gives" in part)


def test_no_two_wires_have_one_label():
    names = ["x" * 40 + "a" + "y" * 40, "x" * 40 + "b" + "y" * 40, "short"]
    labels = short_labels(names)
    assert len(set(labels.values())) == 3 and labels["short"] == "short"
    figure = tf.compile(PROGRAMS["dyck-k-d"], max_length=8).plot()
    left = [each.get_text() for each in figure.axes[0].texts if each.get_ha() == "right"]
    assert len(left) == len(set(left))


def test_layers_in_any_collection():
    label = DYCK.plot(layers=[0]).get_label()
    for given in ((k for k in [0]), np.array([0]), range(1)):
        assert DYCK.plot(layers=given).get_label() == label
    for given in ([True], [1.0], 1, [], (k for k in ())):
        with pytest.raises(tf.TransformistError, match="layers must be numbers from 0 to 1"):
            DYCK.plot(layers=given)


@pytest.mark.parametrize("symbol", ["\x01", "\x1b[31m", "\ud800", "a\u202eb", "\n", "", "<&>"])
def test_any_symbol_gives_a_file_that_can_be_read(symbol):
    model = tf.Transformer(
        stream=tf.Stream(("p",)),
        embedding=tf.Embedding(symbols=(symbol, "b"), vectors=[[1], [2]]),
        layers=(),
        read_out=tf.Binary(W_out=[[1]]),
    )
    for figure in (model.plot(), model.run([symbol, "b"]).plot(), figures.weights(model)):
        xml.dom.minidom.parseString(figure.bytes_of("svg"))
    assert model.plot().get_label().isprintable()


@pytest.mark.parametrize(
    "interval", [(0, float("inf")), ("a", 1), (float("nan"), 1), (1,), 3, (1, 0), (0, 1e300)]
)
def test_an_interval_has_two_ends(interval):
    with pytest.raises(tf.TransformistError, match="interval must go from a number to a larger"):
        figures.function(tf.recipe("clip"), interval=interval)


def test_anything_else_is_refused():
    for draw in (
        figures.circuit, figures.run, figures.certificate, figures.verdict, figures.function,
        lambda x: figures.attention(x, layer=0, head=0),
        lambda x: figures.accuracy(x, ["a"], reference=len),
        lambda x: figures.accuracy(DYCK, ["()"], reference=len, arithmetics=()),
        lambda x: figures.write(x, "figure.svg"),
    ):  # fmt: skip
        with pytest.raises(tf.TransformistError):
            draw(3)


def test_weights_and_plot_are_not_both_given(capsys, tmp_path):
    assert main(["show", "dyck-1", "--weights", "--plot", str(tmp_path / "x.svg")]) == 2
    assert "--weights and --plot" in capsys.readouterr().err and not [*tmp_path.iterdir()]


@pytest.mark.parametrize("given", [{"slot": []}, {"position": ()}])
def test_a_patch_of_nothing_is_refused(given):
    with pytest.raises(tf.TransformistError, match="at least one"):
        tf.patch(DYCK, "()", source=")(", **given)
