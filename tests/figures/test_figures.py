"""Figures: what they show is what the weights do; nothing is blank, clipped or in another's way."""

import io
import itertools
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import transformist as tf
from transformist import figures, verify
from transformist.cli import main
from transformist.figures.circuit_blocks import WRITE, blocks_of
from transformist.programs import PROGRAMS

needs_matplotlib = pytest.mark.hosts
"""CI installs matplotlib for the tests with this mark, in the extra `hosts`."""


@pytest.fixture(autouse=True)
def matplotlib(request):
    if request.node.get_closest_marker("hosts"):
        pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra `figures`)")


def compiled(name, **options):
    return tf.compile(PROGRAMS[name], **{"max_length": 16, **options})


def long_names():
    """An alphabet of words, some of which matplotlib would take for formulas."""
    alphabet = ("the cat that sat upon a mat", "$x_1$", "a_b^c", "tab\there", "日本", "")
    return tf.recipe("induction-most-recent").build(max_length=8, alphabet=alphabet)


FIGURES = {
    "circuit": lambda: compiled("dyck-1").plot(),
    "circuit of 30 slots": lambda: compiled("dyck-k-d").plot(),
    "circuit of words": lambda: long_names().plot(),
    "circuit with norms": lambda: tf.recipe("original-transformer").build().plot(),
    "weights": lambda: figures.weights(compiled("dyck-1")),
    "weights of words": lambda: figures.weights(long_names()),
    "run on 8": lambda: compiled("induction-most-recent").run("abcababc").plot(),
    "run on 16": lambda: compiled("dyck-1").run("(()())" * 2 + "(())", "exact").plot(),
    "run on words": lambda: long_names().run(["$x_1$", "the cat that sat upon a mat"] * 3).plot(),
    "attention": lambda: compiled("dyck-1").run("(())").plot_attention(layer=0, head=0),
    "attention to words": lambda: (
        long_names().run(["$x_1$", "a_b^c", "日本"]).plot_attention(layer=1, head=0)
    ),
    "certificate": lambda: tf.certify(compiled("dyck-1"), "float32").plot(),
    "no certificate": lambda: tf.certify(compiled("dyck-1", max_length=999), "bfloat16").plot(),
    "verdict": lambda: tf.check(compiled("dyck-1"), PROGRAMS["dyck-1"], max_length=4).plot(),
    "lengths": lambda: figures.lengths(
        [verify.first_failure(tf.recipe("quadratic-lookup"), "bfloat16", longest=20)]
    ),
    "curves": lambda: figures.curves(
        {"a": [(10, 1e-9), (1000, 3), (30, 7)], "b": [(20, 1e9)]}, x="n", y="m", logarithmic="xy"
    ),
    "curves over names": lambda: figures.curves(
        {"a": [("float8_e4m3", 1), ("float8_e5m2", 2), ("exact", 0)]}, x="arithmetic", y="share"
    ),
    "function": lambda: figures.function(tf.recipe("relu-by-gelu")),
    "function of two": lambda: figures.function(tf.recipe("multiply-by-gelu"), interval=(-1, 1)),
}
"""A figure of each kind, and those whose names, sizes or symbols make them hard to lay out."""

QUICK = ("attention", "certificate", "circuit of words", "run on words", "verdict")
"""Figures of a quick run."""


def pixels(figure):
    from matplotlib.image import imread

    return imread(io.BytesIO(figure.bytes_of("png")))[:, :, :3]


@needs_matplotlib
@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FIGURES],
)
def test_nothing_is_blank_clipped_or_overlapping(name):
    figure = FIGURES[name]()
    image = pixels(figure)
    is_ink = (image < 0.98).any(axis=2)
    assert 0.002 < is_ink.mean() < 0.9
    border = np.concatenate(
        [is_ink[:4].ravel(), is_ink[-4:].ravel(), is_ink[:, :4].ravel(), is_ink[:, -4:].ravel()]
    )
    assert not border.any()
    boxes = text_boxes(figure)
    assert len(boxes) > 3
    for (text, one), (other, two) in itertools.combinations(boxes, 2):
        assert not overlap(one, two), (text, other)
    assert len(figure.get_label()) > 20


def text_boxes(figure):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    from transformist.figures.drawing import style

    with style():
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        hidden = [*out_of_sight(figure)]
        renderer = canvas.get_renderer()
        found = [each for each in figure.findobj(Text) if each.get_visible() and each.get_text()]
        return [
            (each.get_text(), each.get_window_extent(renderer))
            for each in found
            if each not in hidden
        ]


def out_of_sight(figure):
    """The labels of ticks outside of the limits of their axes, which are not drawn."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            shown = [each for each in axis.get_major_ticks() if low <= each.get_loc() <= high]
            for tick in axis.get_children():
                if hasattr(tick, "get_loc") and tick not in shown:
                    yield from (tick.label1, tick.label2)


def overlap(one, two):
    """True if two boxes share more than a rim of two pixels."""
    across = min(one.x1, two.x1) - max(one.x0, two.x0)
    down = min(one.y1, two.y1) - max(one.y0, two.y0)
    return across > 2 and down > 2


@pytest.mark.parametrize("name", ["dyck-1", "induction-most-recent", "sort"])
def test_a_circuit_reads_and_writes_what_the_sublayers_do(name):
    """A change of a slot changes what a sublayer adds if and only if some node of it reads it."""
    model = compiled(name, reuse=False)
    stream, rng = model.stream.slots, np.random.default_rng(4)
    sublayers = [each for layer in model.layers for _, each in layer.sublayers()]
    blocks = blocks_of(model)
    assert len(blocks) == len(sublayers) + 2
    for block, sublayer in zip(blocks[1:-1], sublayers, strict=True):
        uses = [use for node in block.nodes for use in node.uses]
        read = {use.wire for use in uses if use.role != WRITE}
        z = rng.uniform(-1, 1, (40, 7, len(stream)))
        added = sublayer(z) - z
        assert {use.wire for use in uses if use.role == WRITE} == {
            slot
            for slot, is_any in zip(stream, (added != 0).any(axis=(0, 1)), strict=True)
            if is_any
        }
        for index, slot in enumerate(stream):
            changed = z.copy()
            changed[..., index] = rng.uniform(-9, 9, (40, 7))
            is_read = not np.allclose(sublayer(changed) - changed, added, rtol=0, atol=1e-9)
            assert is_read == (slot in read), (block.title, slot)


@needs_matplotlib
@pytest.mark.slow
def test_the_same_figure_has_the_same_bytes_whatever_the_user_has_set():
    import matplotlib

    once = {kind: compiled("dyck-1").plot().bytes_of(kind) for kind in ("svg", "png", "pdf")}
    with matplotlib.rc_context({"font.size": 30, "svg.hashsalt": None, "lines.linewidth": 9}):
        assert {kind: compiled("dyck-1").plot().bytes_of(kind) for kind in once} == once


@needs_matplotlib
def test_an_svg_has_the_text_alternative_and_the_symbols_as_they_are():
    text = FIGURES["run on words"]().bytes_of("svg").decode()
    (told,) = re.findall(r"<desc>(.*?)</desc>", text)
    assert "$x_1$" in told and ">$x_1$<" in text and "layer 1 attention gives" in told


@needs_matplotlib
@pytest.mark.slow
def test_what_is_left_out_is_said():
    label = figures.circuit(wide(200)).get_label()
    assert "Drawn in part: 60 of 202 nodes and 59 of 201 slots." in label
    assert "Drawn in part" not in compiled("dyck-k-d").plot().get_label()
    assert "of layer 9" not in label
    long = compiled("dyck-1", max_length=80).run("()" * 40)
    assert "32 of 81 positions" in long.plot().get_label()
    assert "48 of 81 positions" in long.plot_attention(layer=0, head=0).get_label()


def wide(width):
    """A model with so many slots, each read by a hidden unit that writes it."""
    stream = tf.Stream(tuple(f"s{k}" for k in range(width + 1)))
    network = tf.FeedForward(W_1=np.eye(width + 1)[:width], W_2=np.eye(width + 1, width))
    return tf.Transformer(
        stream=stream,
        embedding=tf.Embedding(symbols=("a",), vectors=np.eye(1, width + 1, width)),
        layers=(tf.Layer((), network),),
        read_out=tf.Binary(W_out=np.eye(1, width + 1)),
    )


CURVES = {
    "a dict from names to lists of points": ([(1, 2)], {"a": 3}, {"a": [1, 2]}, {"a": [(1, "b")]}),
    "every curve must have a point": ({}, {"a": [(1, 2)], "b": []}),
    "a number in every point, or a text in every point": ({"a": [(1, 2), ("b", 2)]},),
    "must be finite": ({"a": [(1, float("nan"))]}, {"a": [(float("inf"), 1)]}),
    "positive": ({"a": [(1, 0)]}, {"a": [(-1, 1)]}, {"a": [("b", 1)]}),
}


@pytest.mark.parametrize("said", CURVES)
def test_points_that_no_curve_has_are_refused(said):
    for points in CURVES[said]:
        with pytest.raises(tf.TransformistError, match=said):
            figures.curves(points, x="x", y="y", logarithmic="xy")
    with pytest.raises(tf.TransformistError, match="logarithmic must be"):
        figures.curves({"a": [(1, 2)]}, x="x", y="y", logarithmic="yx")


@needs_matplotlib
def test_the_description_of_a_long_curve_has_both_ends():
    points = [(k, k * k) for k in range(100)]
    label = figures.curves({"square": points}, x="k", y="m").get_label()
    assert label.startswith("m by k. square: 0 at 0, 121 at 11, ")
    assert "9801 at 99 (10 of 100 points)." in label


@needs_matplotlib
def test_layers_can_be_chosen():
    label = compiled("dyck-1").plot(layers=[1]).get_label()
    assert "layer 1 attention" in label and "layer 0" not in label
    with pytest.raises(tf.TransformistError, match="layers must be numbers from 0 to 1; received"):
        compiled("dyck-1").plot(layers=[2])


@needs_matplotlib
def test_a_share_of_right_answers_is_counted():
    model = compiled("dyck-1")
    label = figures.accuracy(
        model, ["()", ")(", "(("], reference=lambda x: x == "()" or x == ")(", arithmetics=["exact"]
    ).get_label()
    assert "exact: 67% at 2" in label


@needs_matplotlib
def test_a_certificate_shows_the_least_margin_first():
    statement = tf.certify(compiled("dyck-1"), "float32")
    told = statement.plot().get_label().split(": holds (grade 1).")[1].rstrip(".").split(";")
    used = [float(e) / float(a) for each in told for e, a in re.findall("up to (.*) of (.*)", each)]
    limit = statement.limiting
    assert len(used) == len(told) and used == pytest.approx(sorted(used, reverse=True), rel=0.02)
    assert (used[0], float(told[0].split()[-1])) == pytest.approx(
        (limit.error / limit.allowed, limit.allowed), rel=0.01
    )


@needs_matplotlib
def test_a_curve_tells_the_largest_difference():
    recipe = tf.recipe("greater-than-zero")
    wrong = recipe.replace(construct=tf.recipe("greater-or-equal-zero").construct)
    assert "largest difference 0" in figures.function(recipe).get_label()
    assert "largest difference 1" in figures.function(wrong).get_label()


@needs_matplotlib
def test_what_cannot_be_drawn_is_refused():
    for call, words in (
        (lambda: figures.function(tf.recipe("dyck-1")), "must take one or two numbers"),
        (lambda: figures.function(tf.recipe("conditional")), "must take one or two numbers"),
        (lambda: figures.function(tf.recipe("identity")), "one with 2 outputs"),
        (lambda: figures.function(tf.recipe("clip"), interval=(1, 1)), "interval"),
        (lambda: figures.weights("dyck-1"), "must have weights"),
        (lambda: figures.lengths([]), "first_failure"),
        (lambda: figures.accuracy(compiled("dyck-1"), [], reference=bool), "must be inputs"),
    ):
        with pytest.raises(tf.TransformistError, match=words):
            call()


@needs_matplotlib
@pytest.mark.parametrize("ending", ["svg", "PDF", "png"])
def test_a_figure_is_written(tmp_path, ending):
    path = tmp_path / f"figure.{ending}"
    figure = figures.function(tf.recipe("clip"))
    figures.write(figure, path)
    assert path.read_bytes() == figure.bytes_of(ending.lower())


@needs_matplotlib
def test_a_place_that_cannot_be_written_to_is_refused(tmp_path):
    figure = figures.function(tf.recipe("clip"))
    for name, words in (("a.jpeg", ".svg, .pdf or .png"), ("no/where.svg", "no/where.svg")):
        with pytest.raises(tf.TransformistError, match=words):
            figures.write(figure, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_missing_library_is_named_with_its_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import transformist as tf\n"
        "try: tf.recipe('dyck-1').build().plot()\n"
        "except tf.TransformistError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "matplotlib must be installed" in done.stdout
    assert "pip install 'transformist[figures]'" in done.stdout


@needs_matplotlib
@pytest.mark.parametrize(
    ("name", "told"),
    [("dyck-1", "layer 1 feed-forward"), ("clip", "feed-forward: W_1"), ("programs/reverse", "v")],
)
def test_show_draws_a_model(name, told, tmp_path, capsys):
    path = tmp_path / "figure.svg"
    assert main(["show", name, "--plot", str(path)]) == 0
    assert told in path.read_text() and str(path) in capsys.readouterr().out
    assert main(["show", name, "--plot", str(path.with_suffix(".gif"))]) == 2
    assert ".svg, .pdf or .png" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == [path]


@needs_matplotlib
@pytest.mark.parametrize(
    ("line", "told"),
    [
        (["dyck-1", "(())"], "layer 1 feed-forward"),
        (["programs/parity", "0110", "--arithmetic", "float32"], "layer 0 attention"),
    ],
)
def test_run_draws_its_layers(line, told, tmp_path, capsys):
    path = tmp_path / "run.svg"
    assert main(["run", *line]) == 0
    plain = capsys.readouterr().out
    assert main(["run", *line, "--plot", str(path)]) == 0
    assert capsys.readouterr().out == f"{plain}wrote {path}\n"  # and the answer is still printed
    assert told in path.read_text()


@needs_matplotlib
def test_run_describes_its_figure_in_json(tmp_path, capsys):
    path = tmp_path / "run.png"
    assert main(["run", "dyck-1", "())(", "--plot", str(path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["figure"] == str(path) and path.read_bytes().startswith(b"\x89PNG")
    assert "answer False" in facts["description"]


@needs_matplotlib
@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["dyck-1", "()", "--engine", "structured"], "--plot with --engine structured"),
        (["min", "[1, 2]"], "--plot must come with a model on strings"),
    ],
)
def test_a_run_without_layers_to_draw_is_refused(line, words, tmp_path, capsys):
    assert main(["run", *line, "--plot", str(tmp_path / "run.svg")]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@needs_matplotlib
@pytest.mark.parametrize("file", ["run.gif", "no/run.svg", ""])
def test_a_file_that_cannot_be_a_figure_is_refused_before_the_input_is_read(
    file, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", None)  # to read it would be another error
    assert main(["run", "dyck-1", "--plot", file]) == 2
    assert "--plot: " in capsys.readouterr().err
